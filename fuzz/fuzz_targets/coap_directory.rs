//! A resource directory: registrations, updates and lookups with any query and payload; its bounds hold and its links are
//! link format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_coap::directory::ResourceDirectory;
use thalweg_coap::link_format;

fuzz_target!(|text: &str| {
    let mut directory = ResourceDirectory::new();
    // Each line is an order: its first letter says which, and a tab parts query and payload.
    for (second, line) in text.lines().take(64).enumerate() {
        let now = Instant::from_nanos(second as u64 * 1_000_000_000);
        let mut letters = line.chars();
        let order = letters.next();
        let (query, payload) = letters.as_str().split_once('\t').unwrap_or((letters.as_str(), ""));
        let arguments = query.split('&').filter(|argument| !argument.is_empty());
        match order {
            Some('u') => drop(directory.handle_update(now, second as u64 / 2, arguments, None)),
            Some('d') => drop(directory.handle_removal(now, second as u64 / 2)),
            Some('r' | 'e') => {
                let found = match order {
                    Some('r') => directory.find_resources(arguments),
                    _ => directory.find_endpoints(arguments),
                };
                if let Ok(links) = found {
                    let text = link_format::encode(links.iter());
                    let again =
                        if text.is_empty() { Vec::new() } else { link_format::parse(&text).expect("link format") };
                    assert_eq!(again.len(), links.len());
                }
            }
            _ => drop(directory.handle_registration(now, arguments, payload.as_bytes(), Some("coap://h"))),
        }
        assert!(directory.counts().bytes <= 16 << 20);
    }
});
