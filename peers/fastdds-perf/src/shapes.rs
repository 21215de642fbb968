//! The shapes demonstration on Fast DDS, which `shapes.cpp` has.

use std::ffi::{CString, c_char};

unsafe extern "C" {
    fn fast_shapes(count: i32, words: *const *const c_char) -> i32;
}

/// Publishes or subscribes as the options say, and ends with it.
pub fn run(options: impl Iterator<Item = String>) -> ! {
    let words: Vec<CString> = options.filter_map(|word| CString::new(word).ok()).collect();
    let pointers: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    let count = i32::try_from(pointers.len()).unwrap_or(i32::MAX);
    // SAFETY: there are so many texts, which live for the call; it leaves nothing behind.
    std::process::exit(unsafe { fast_shapes(count, pointers.as_ptr()) })
}
