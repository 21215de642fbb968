//! An undo file that a killed process or a power failure left: no panic, and what stays of it is read the same again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_advisor::read_any;

fuzz_target!(|bytes: &[u8]| {
    if let Some((places, kept)) = read_any(bytes) {
        assert!(bytes.starts_with(&kept));
        assert_eq!(read_any(&kept), Some((places, kept.clone())));
    }
});
