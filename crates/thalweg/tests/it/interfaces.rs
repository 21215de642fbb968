//! Interfaces that the application names.

use thalweg::{DomainParticipant, ErrorKind};

use crate::fixture::*;

#[test]
fn an_interface_that_does_not_exist_is_refused_with_a_list_of_those_that_do() {
    for entry in ["eth7x", "192.0.2.77"] {
        let error = DomainParticipant::builder(domain()).allow_interface(entry).create().expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::BadParameter);
        let text = error.to_string();
        assert!(text.contains(&format!("{entry:?}")) && text.contains("lo (127.0.0.1"), "{text}");
        assert!(text.contains(", up, multicast)"), "{text}");
    }
}

#[test]
fn an_interface_may_be_denied_that_does_not_exist_and_allowed_by_its_address() {
    let builder = || DomainParticipant::builder(domain()).deny_interface("eth7x");
    assert!(builder().create().is_ok());
    assert!(builder().allow_interface("127.0.0.1").create().is_ok());
}
