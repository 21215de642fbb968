//! Types as Fast DDS describes them; `types.cpp` says how a type is written.

unsafe extern "C" {
    fn fast_types() -> i32;
}

/// Answers descriptions on standard input, and ends with it.
pub fn run() -> ! {
    // SAFETY: it takes nothing and leaves nothing behind.
    std::process::exit(unsafe { fast_types() })
}
