//! What the browser may do with the page.

use sha2::{Digest, Sha256};

/// The page's only script.
pub(super) const SCRIPT: &str = include_str!("script.js");

/// The Content Security Policy: nothing is loaded, nothing is sent, and no other script than ours runs, whatever text ends up in the page.
pub(super) fn policy() -> String {
    let digest = base64(&Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |chunk: &[u8]| {
        let bits = (0..3).fold(0, |bits, index| bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0)));
        let letter = move |index: usize| match index <= chunk.len() {
            true => LETTERS[(bits >> (18 - 6 * index) & 63) as usize] as char,
            false => '=',
        };
        [letter(0), letter(1), letter(2), letter(3)]
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_as_the_rfc_says() {
        for (bytes, expect) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), expect, "{bytes}");
        }
    }
}
