//! The RFC's vectors, and laws of protection: what is opened is what was protected, and nothing else is opened.

mod files;
mod laws;
mod vectors;

use std::sync::Arc;

use super::{Context, ContextParameters, Keyring, OneRun, Past};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| !digit.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Client and server with the same secret.
fn ends(past: Past) -> (Arc<Context>, Keyring) {
    let secret = [7; 16];
    let client = ContextParameters::new(&secret, b"c", b"s").unwrap();
    let server = ContextParameters::new(&secret, b"s", b"c").unwrap();
    let client = Context::new(&client, 0, Box::new(OneRun), Past::Unused);
    (client, Keyring::new([Context::new(&server, 0, Box::new(OneRun), past)]).unwrap())
}
