//! Randomness from the kernel, for seeds, names and keys.

use std::io;

use crate::sys::process;

/// A seed that differs from run to run.
///
/// # Errors
/// When the kernel's random source is not available to this process (a sandbox that forbids `getrandom`).
pub fn seed() -> io::Result<u64> {
    bytes().map(u64::from_ne_bytes)
}

/// 256 unpredictable bits, for keys.
///
/// # Errors
/// As [`seed`].
pub fn key() -> io::Result<[u8; 32]> {
    bytes()
}

/// Unpredictable bytes.
///
/// # Errors
/// As [`seed`].
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    process::random(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_differs() {
        assert_ne!(bytes::<10>().unwrap(), bytes::<10>().unwrap());
        assert_ne!(seed().unwrap(), seed().unwrap());
        assert_ne!(key().unwrap(), key().unwrap());
    }
}
