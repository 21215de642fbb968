use proptest::prelude::*;

use super::*;

/// The links of a text, written again; or the error.
#[track_caller]
fn check(text: &str, expected: &str) {
    let written = match parse(text) {
        Ok(links) => encode(&links),
        Err(error) => error.to_string(),
    };
    assert_eq!(written, expected, "input: {text}");
}

/// RFC 6690 §5.
const EXAMPLE: &str = r#"</sensors>;ct=40;title="Sensor Index",</sensors/temp>;rt="temperature-c";if="sensor",</sensors/light>;rt="light-lux";if="sensor",<http://www.example.com/sensors/t123>;anchor="/sensors/temp";rel="describedby",</t>;anchor="/sensors/temp";rel="alternate""#;

#[test]
fn the_example_of_the_rfc_reads_and_writes_the_same() {
    check(EXAMPLE, EXAMPLE);
    assert_eq!(parse(EXAMPLE).unwrap().len(), 5);
}

#[test]
fn flags_plain_values_and_spaces_are_read() {
    check("</a>;obs;ct=0 , </b>; rt=light ;sz=12", r#"</a>;obs;ct=0,</b>;rt="light";sz=12"#);
    check(r#"</a>;title="say \"yes\", \\ no; <x>""#, r#"</a>;title="say \"yes\", \\ no; <x>""#);
    check("", "");
}

#[test]
fn errors_name_the_place() {
    check("/a", "byte 0: expected '<' before a target");
    check("</a", "byte 3: expected '>' after a target");
    check("</a></b>", "byte 4: expected ',' between links");
    check("</a>;", "byte 5: expected name of an attribute");
    check("</a>;rt=", "byte 8: expected value of an attribute");
    check(r#"</a>;rt="x"#, "byte 10: expected closing '\"'");
    check(r#"</a>;rt="x\"#, "byte 11: expected closing '\"'");
    check("</a>,", "byte 5: expected '<' before a target");
}

#[track_caller]
fn check_filter(argument: &str, targets: &[&str]) {
    let links = parse(EXAMPLE).unwrap();
    let found: Vec<&str> =
        links.iter().filter(|link| link.matches(argument)).map(|link| link.target.as_str()).collect();
    assert_eq!(found, targets, "filter: {argument}");
}

#[test]
fn filters_select_links() {
    check_filter("href=/sensors", &["/sensors"]);
    check_filter("href=/sensors/*", &["/sensors/temp", "/sensors/light"]);
    check_filter("if=sensor", &["/sensors/temp", "/sensors/light"]);
    check_filter("rt=light*", &["/sensors/light"]);
    check_filter("rt=light", &[]);
    check_filter("ct=40", &["/sensors"]);
    check_filter("title", &["/sensors"]);
    check_filter("title=Sensor", &[]);
}

#[test]
fn one_of_several_values_is_enough() {
    let link = WebLink::new("/a").with("rt", "temperature light-lux").with_flag("obs").with("rev", "up next");
    assert!(link.matches("rt=light-lux") && link.matches("rt=light*") && link.matches("rt=temperature light-lux"));
    assert!(!link.matches("rt=lux") && link.matches("obs") && !link.matches("obs=1") && link.matches("rev=next"));
}

fn link() -> impl Strategy<Value = WebLink> {
    let attribute = ("[a-z][a-z0-9*-]{0,6}", proptest::option::of(any::<String>()));
    ("[^>]{0,12}", proptest::collection::vec(attribute, 0..4))
        .prop_map(|(target, attributes)| WebLink { target, attributes })
}

proptest! {
    #[test]
    fn what_is_written_reads_the_same(links in proptest::collection::vec(link(), 0..5)) {
        prop_assert_eq!(parse(&encode(&links)).unwrap(), links);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>(), edges in "[<>;=,\"\\\\ a\u{e9}]{0,24}") {
        let _ = parse(&text);
        if let Ok(links) = parse(&edges) {
            prop_assert_eq!(parse(&encode(&links)).unwrap(), links);
        }
    }
}
