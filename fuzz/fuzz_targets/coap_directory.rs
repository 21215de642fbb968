//! A resource directory: registrations, updates and lookups with any query and payload, by three clients; its bounds hold and
//! its links are link format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_coap::directory::{RegistrationLocation, ResourceDirectory};
use thalweg_coap::identity::{Caller, Transport};
use thalweg_coap::link_format;

fuzz_target!(|text: &str| {
    let mut directory = ResourceDirectory::new();
    let clients = ["192.0.2.1:5683", "[fe80::1%2]:7", "[2001:db8::1]:7"]
        .map(|address| Caller::anonymous(address.parse().expect("an address"), Transport::Udp));
    let mut locations: Vec<RegistrationLocation> = Vec::new();
    // Each line is an order: its first letter says which, and a tab parts query and payload.
    for (second, line) in text.lines().take(64).enumerate() {
        let now = Instant::from_nanos(second as u64 * 1_000_000_000);
        let mut letters = line.chars();
        let order = letters.next();
        let (query, payload) = letters.as_str().split_once('\t').unwrap_or((letters.as_str(), ""));
        let arguments = query.split('&').filter(|argument| !argument.is_empty());
        let caller = Some(&clients[second % clients.len()]);
        let location = locations.get(second / 2).copied();
        match (order, location) {
            (Some('u'), Some(location)) => drop(directory.handle_update(now, caller, location, arguments)),
            (Some('d'), Some(location)) => drop(directory.handle_removal(now, caller, location)),
            (Some('u' | 'd'), None) => {}
            (Some('r' | 'e'), _) => {
                let found = match order {
                    Some('r') => directory.find_resources(caller, arguments),
                    _ => directory.find_endpoints(caller, arguments),
                };
                if let Ok(links) = found {
                    let text = link_format::encode(links.iter());
                    let again =
                        if text.is_empty() { Vec::new() } else { link_format::parse(&text).expect("link format") };
                    assert_eq!(again.len(), links.len());
                }
            }
            _ => {
                let registered = directory.handle_registration(now, caller, arguments, payload.as_bytes());
                if let Ok((location, is_new)) = registered {
                    assert_eq!(is_new, !locations.contains(&location));
                    locations.push(location);
                }
            }
        }
        assert!(directory.counts().bytes <= 16 << 20);
    }
});
