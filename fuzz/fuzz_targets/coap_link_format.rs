//! A list of links: what is read can be written and reads the same; filters never panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::link_format::{encode, parse};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(links) => {
            assert_eq!(parse(&encode(&links)).as_ref(), Ok(&links));
            let filter = text.get(..text.len().min(8)).unwrap_or_default();
            links.iter().for_each(|link| {
                link.matches(filter);
                assert!(link.matches("href=*"));
            });
        }
        Err(error) => assert!(error.offset <= text.len() && text.is_char_boundary(error.offset)),
    }
});
