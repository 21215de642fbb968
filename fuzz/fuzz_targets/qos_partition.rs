//! Any two partition names, divided by a NUL: no panic, symmetric, and names without wildcards match only themselves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::qos::{name_matches, partitions_match};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (one, other) = text.split_once('\0').unwrap_or((text, text));
    let matches = name_matches(one, other);
    assert_eq!(matches, name_matches(other, one));
    assert_eq!(matches, partitions_match(&[one], &[other]));
    if !text.contains(['*', '?', '[', '\\']) {
        assert_eq!(matches, one == other);
    }
});
