//! Octets in JSON: base64 with the alphabet for URLs and without padding (RFC 4648 §5).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().enumerate().fold(0u32, |group, (at, byte)| group | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(group >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

/// `None` when the text is not one that [`encode`] makes, but for padding at its end.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut group = 0u32;
        for (at, digit) in chunk.iter().enumerate() {
            let number = ALPHABET.iter().position(|known| known == digit)? as u32;
            group |= number << (18 - 6 * at);
        }
        let count = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        let [_, first, second, third] = group.to_be_bytes();
        let octets = [first, second, third];
        // Bits behind the last octet would make two texts of the same octets.
        if octets[count..].iter().any(|rest| *rest != 0) {
            return None;
        }
        bytes.extend_from_slice(&octets[..count]);
    }
    Some(bytes)
}
