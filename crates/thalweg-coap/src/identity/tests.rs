use std::net::SocketAddr;
use std::sync::Arc;

use super::*;
use crate::message::{Code, OptionNumber, RequestBuf};
use crate::oscore::{ContextParameters, OneRun, Past};

fn caller(session: Option<SessionIdentity>) -> Caller {
    let address: SocketAddr = "192.0.2.7:40000".parse().unwrap();
    Caller { session: session.map(Arc::new), ..Caller::anonymous(address, Transport::Dtls) }
}

fn psk(identity: &str) -> Option<SessionIdentity> {
    Some(SessionIdentity::PresharedKey(identity.as_bytes().to_vec()))
}

fn subject(subject: &str) -> Option<SessionIdentity> {
    Some(SessionIdentity::Certificate { subject: subject.to_owned() })
}

/// The code of the refusal, or "allowed".
#[track_caller]
fn check(rules: &[&str], method: Code, path: &str, session: Option<SessionIdentity>, expect: &str) {
    let rules = AccessRules::new(rules.iter().map(|rule| rule.parse::<AccessRule>().unwrap()));
    let request = RequestBuf::new(method, path);
    let refusal = rules.refuse(&request.view(), &caller(session));
    let got = refusal.map_or("allowed".to_owned(), |response| response.code.to_string());
    assert_eq!(got, expect, "{method:?} {path}");
}

#[test]
fn the_longest_path_decides_and_what_no_rule_covers_is_open() {
    let rules = ["/a get any", "/a/b any psk:porter", "/a/b get psk:guest"];
    check(&rules, Code::GET, "/", None, "allowed");
    check(&rules, Code::PUT, "/ab", None, "allowed");
    check(&rules, Code::GET, "/a", None, "allowed");
    check(&rules, Code::PUT, "/a", None, "4.01");
    check(&rules, Code::PUT, "/a/x", psk("porter"), "4.03");
    check(&rules, Code::GET, "/a/b", None, "4.01");
    check(&rules, Code::PUT, "/a/b/c", psk("porter"), "allowed");
    check(&rules, Code::GET, "/a/b", psk("guest"), "allowed");
    check(&rules, Code::PUT, "/a/b", psk("guest"), "4.03");
}

#[test]
fn no_spelling_of_a_path_leads_past_its_rule() {
    for path in ["/a/b", "/a%2Fb", "//a/b", "/a//b", "/a/b/", "/a/b?x", "/%2Fa/b"] {
        check(&["/a/b any none"], Code::GET, path, psk("porter"), "4.03");
    }
}

#[test]
fn a_rule_is_about_the_path_that_its_escapes_stand_for() {
    check(&["/a%20b any none"], Code::GET, "/a%20b/c", psk("porter"), "4.03");
    check(&["/a%20b any none"], Code::GET, "/a%2520b", psk("porter"), "allowed");
    check(&["/50%25 any none"], Code::GET, "/50%25", psk("porter"), "4.03");
}

#[test]
fn a_request_for_another_server_is_under_the_rules_for_the_proxy_whatever_its_path() {
    let proxied = [
        RequestBuf::get("/a").with_option(OptionNumber::PROXY_SCHEME, b"coap"),
        RequestBuf::get("/").with_option(OptionNumber::PROXY_URI, b"coap://lamp/a"),
    ];
    let check_proxied = |rules: &[&str], session: Option<SessionIdentity>, expect: &str| {
        let rules = AccessRules::new(rules.iter().map(|rule| rule.parse::<AccessRule>().unwrap()));
        for request in &proxied {
            let refusal = rules.refuse(&request.view(), &caller(session.clone()));
            let got = refusal.map_or("allowed".to_owned(), |response| response.code.to_string());
            assert_eq!(got, expect, "{rules:?}");
        }
    };
    check_proxied(&["proxy get psk:porter"], psk("porter"), "allowed");
    check_proxied(&["proxy get psk:porter"], psk("guest"), "4.03");
    check_proxied(&["proxy get psk:porter"], None, "4.01");
    check_proxied(&["/ any known"], None, "4.01");
    check_proxied(&["/ any none", "proxy get any"], None, "allowed");
    check_proxied(&["/a any none"], None, "allowed");
    check(&["proxy any none"], Code::GET, "/proxy", None, "allowed");
}

#[test]
fn clients_are_told_by_what_they_proved() {
    let common = subject("CN=device-1,O=Works");
    check(&["/ any subject:device-1"], Code::GET, "/x", common.clone(), "allowed");
    check(&["/ any subject:CN=device-1,O=Works"], Code::GET, "/x", common.clone(), "allowed");
    check(&["/ any subject:device"], Code::GET, "/x", common.clone(), "4.03");
    check(&["/ any psk:device-1"], Code::GET, "/x", common.clone(), "4.03");
    check(&["/ any known"], Code::GET, "/x", common, "allowed");
    check(&["/ any known"], Code::GET, "/x", None, "4.01");
    check(&["/ any transport:coaps"], Code::GET, "/x", None, "allowed");
    check(&["/ any transport:coap"], Code::GET, "/x", None, "4.01");
    check(&["/ any net:192.0.2.0/24"], Code::GET, "/x", None, "allowed");
    check(&["/ any net:192.0.3.0/24"], Code::GET, "/x", None, "4.01");
}

#[test]
fn an_oscore_context_that_was_taken_away_proves_no_id_any_more() {
    let parameters = ContextParameters::new(&[7; 16], b"s", &[5]).unwrap();
    let context = Context::new(&parameters, 0, Box::new(OneRun), Past::Unused);
    let rules = AccessRules::new(["/ any oscore:05".parse::<AccessRule>().unwrap()]);
    let caller = Caller { oscore: Some(Arc::clone(&context)), ..caller(None) };
    let is_refused = || rules.refuse(&RequestBuf::get("/x").view(), &caller).is_some();
    assert!(!is_refused());
    context.retire();
    assert!(is_refused());
}

#[test]
fn a_name_within_another_part_of_the_subject_is_no_common_name() {
    for forged in ["O=x\\,CN=device-1,CN=other", "O=CN=device-1", "CN=device-1,CN=other", "CN=other+CN=device-1"] {
        check(&["/ any subject:device-1"], Code::GET, "/x", subject(forged), "4.03");
    }
}

#[test]
fn rules_that_cannot_be_read_say_why() {
    for (text, expect) in [
        ("/a get", "PATH METHODS WHO"),
        ("a get any", "begins with a slash"),
        ("/a%2 any none", "begins no escape"),
        ("/a%ff any none", "no UTF-8"),
        ("/a got any", "is no method"),
        ("/a get all", "use any, none"),
        ("/a get oscore:0", "hexadecimal"),
        ("/a get net:10.0.0.0/33", "too many bits"),
        ("/a get transport:http", "scheme"),
    ] {
        let error = text.parse::<AccessRule>().unwrap_err().to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }
}
