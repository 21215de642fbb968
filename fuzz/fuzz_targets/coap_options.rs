//! Options in any order: inserted, they are sorted, and equal numbers keep their order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_coap::message::{OptionNumber, RequestBuf};

fuzz_target!(|script: &[u8]| {
    let mut rest = script;
    let mut request = RequestBuf::default();
    let mut expected: Vec<(OptionNumber, &[u8])> = Vec::new();
    while let [high, low, len, tail @ ..] = rest {
        let (value, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let number = OptionNumber(u16::from_be_bytes([*high, *low]));
        request = request.with_option(number, value);
        expected.push((number, value));
    }
    expected.sort_by_key(|(number, _)| *number);
    assert!(request.view().options.eq(expected.iter().copied()));
    for (number, value) in &expected {
        assert!(request.view().options.values(*number).any(|found| found == *value));
    }
});
