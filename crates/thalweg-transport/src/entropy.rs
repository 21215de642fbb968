//! Randomness from the kernel, for seeds, names and keys.

use std::io;

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

/// A name for a new participant: Thalweg's vendor id and 80 random bits (RTPS 2.5 §9.3.1.1), so that two participants
/// share a name with a probability below 10⁻¹⁵ even among 10,000.
///
/// # Errors
/// As [`seed`].
pub fn guid_prefix() -> io::Result<GuidPrefix> {
    let mut prefix = [0; 12];
    let [vendor_0, vendor_1] = VendorId::THALWEG.0;
    prefix[0] = vendor_0;
    prefix[1] = vendor_1;
    process::random(&mut prefix[2..])?;
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
