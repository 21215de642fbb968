//! Types as Fast DDS describes them, and topics of them; `types.hpp` says how a type is written, `topic.cpp` what is done with it.

use std::ffi::{CString, c_char};

unsafe extern "C" {
    fn fast_types() -> i32;
    fn fast_topic(domain: u32, address: *const c_char) -> i32;
}

/// Answers descriptions on standard input, and ends with it.
pub fn run() -> ! {
    // SAFETY: it takes nothing and leaves nothing behind.
    std::process::exit(unsafe { fast_types() })
}

/// Writes or reads a topic of a type that standard input describes, and ends with it. Options are `--domain N`, 0 unless given, and
/// `--address A`, the IPv4 address of the only interface, 127.0.0.1 unless given.
pub fn run_topic(mut options: impl Iterator<Item = String>) -> ! {
    let (mut domain, mut address) = (0, c"127.0.0.1".to_owned());
    while let Some(option) = options.next() {
        let value = options.next();
        let taken = match (option.as_str(), value) {
            ("--domain", Some(value)) => value.parse::<u32>().map(|value| domain = value).is_ok(),
            ("--address", Some(value)) => CString::new(value).map(|value| address = value).is_ok(),
            _ => false,
        };
        if !taken {
            eprintln!("{option} is no option with a value that `topic` takes");
            std::process::exit(2);
        }
    }
    // SAFETY: the address lives for the call, which leaves nothing behind.
    std::process::exit(unsafe { fast_topic(domain, address.as_ptr()) })
}
