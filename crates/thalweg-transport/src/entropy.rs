//! Randomness from the kernel, for seeds, names and keys.

use std::io;
use std::sync::OnceLock;

use thalweg_rtps::types::{GuidPrefix, VendorId};

use crate::sys::process;

/// A seed that differs from run to run.
///
/// # Errors
/// When the kernel's random source is not available to this process (a sandbox that forbids `getrandom`).
pub fn seed() -> io::Result<u64> {
    let mut bytes = [0; 8];
    process::random(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// 256 bits that nobody can guess, for keys.
///
/// # Errors
/// As [`seed`].
pub fn key() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    process::random(&mut bytes)?;
    Ok(bytes)
}

/// Bytes in front of a participant's name that all participants of a process share.
pub const PROCESS_LEN: usize = 8;

/// A name for a new participant (RTPS 2.5 §9.3.1.1): Thalweg's vendor id, 48 random bits of this process and 32 of the participant.
/// Two of 10,000 processes share theirs with a probability below 10⁻⁶, and still have different participants then, most likely.
///
/// # Errors
/// As [`seed`].
pub fn guid_prefix() -> io::Result<GuidPrefix> {
    let mut prefix = [0; 12];
    process::random(&mut prefix)?;
    let [vendor_0, vendor_1] = VendorId::THALWEG.0;
    prefix[..2].copy_from_slice(&[vendor_0, vendor_1]);
    // The first participant names the process.
    static OF_PROCESS: OnceLock<(u32, GuidPrefix)> = OnceLock::new();
    let (process, first) = OF_PROCESS.get_or_init(|| (std::process::id(), GuidPrefix(prefix)));
    if *process == std::process::id() {
        prefix[..PROCESS_LEN].copy_from_slice(&first.0[..PROCESS_LEN]);
    }
    Ok(GuidPrefix(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_name_the_vendor_and_differ() {
        let (a, b) = (guid_prefix().unwrap(), guid_prefix().unwrap());
        assert_eq!(a.vendor(), VendorId::THALWEG);
        assert_ne!(a, b);
        assert_ne!(seed().unwrap(), seed().unwrap());
        assert_ne!(key().unwrap(), key().unwrap());
    }
}
