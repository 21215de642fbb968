//! Questions to the driver of an interface (`SIOCETHTOOL`), each with room of the size that the kernel fills.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A question whose answer has a fixed size: words of 32 bits, the command first.
pub(crate) trait Question {
    /// Words of the structure in linux/ethtool.h.
    const WORDS: usize;
}

/// `struct ethtool_coalesce`.
pub(crate) struct Coalesce;
/// `struct ethtool_ringparam`.
pub(crate) struct Ring;
/// `struct ethtool_channels`.
pub(crate) struct Channels;
/// `struct ethtool_drvinfo`.
pub(crate) struct DriverInfo;

impl Question for Coalesce {
    const WORDS: usize = 23;
}
impl Question for Ring {
    const WORDS: usize = 9;
}
impl Question for Channels {
    const WORDS: usize = 9;
}
impl Question for DriverInfo {
    const WORDS: usize = 49;
}

/// Asks or tells the driver what `words` hold; the first word is the command.
///
/// # Panics
/// When `words` has another size than the kernel's structure, or the command is not one of `Q`.
pub(crate) fn ask<Q: Question>(socket: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    assert_eq!(words.len(), Q::WORDS, "the kernel fills the whole structure");
    let fits = match words[0] {
        GET_COALESCE | SET_COALESCE => Q::WORDS == Coalesce::WORDS,
        GET_RING | SET_RING => Q::WORDS == Ring::WORDS,
        GET_CHANNELS => Q::WORDS == Channels::WORDS,
        GET_DRIVER => Q::WORDS == DriverInfo::WORDS,
        _ => false,
    };
    assert!(fits, "a command of this structure");
    call(socket, name, words)
}

/// Names of the features that this kernel knows, in the order of their bits.
pub(crate) fn feature_names(socket: BorrowedFd<'_>, name: &str) -> io::Result<Vec<String>> {
    // ethtool_sset_info: command, reserved, a mask of 64 bits, one count.
    let mask = (1_u64 << SET_OF_FEATURES).to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
    let mut count = [GET_SET_SIZES, 0, half(0), half(4), 0];
    call(socket, name, &mut count)?;
    let count = usize::try_from(count[4]).unwrap_or(usize::MAX);
    if count > FEATURES_MAX {
        return Err(io::Error::other(format!("the kernel tells of {count} features, more than {FEATURES_MAX}")));
    }
    // ethtool_gstrings: command, set, count, strings. The kernel writes as many as it has, a number that never changes while it runs.
    let mut strings = vec![0; 3 + FEATURES_MAX * STRING_WORDS];
    strings[..3].copy_from_slice(&[GET_STRINGS, SET_OF_FEATURES, count as u32]);
    call(socket, name, &mut strings)?;
    Ok(strings[3..].chunks(STRING_WORDS).take(count).map(text).collect())
}

/// Available, requested, active and never changed bits of each block of 32 features.
pub(crate) fn features(socket: BorrowedFd<'_>, name: &str) -> io::Result<Vec<[u32; 4]>> {
    // The kernel fills no more blocks than `size` says, and says how many it has.
    let mut words = vec![0; 2 + 4 * BLOCKS_MAX];
    words[..2].copy_from_slice(&[GET_FEATURES, BLOCKS_MAX as u32]);
    call(socket, name, &mut words)?;
    let blocks = usize::try_from(words[1]).unwrap_or(0).min(BLOCKS_MAX);
    Ok(words[2..].as_chunks::<4>().0[..blocks].to_vec())
}

/// Switches feature number `index` of a kernel with this many blocks.
pub(crate) fn set_feature(
    socket: BorrowedFd<'_>,
    name: &str,
    blocks: usize,
    (index, is_on): (usize, bool),
) -> io::Result<()> {
    // ethtool_sfeatures: command, size, then a mask of the bits to change and their new values for each block.
    let mut words = vec![0; 2 + 2 * blocks];
    words[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    let (block, bit) = (index / 32, 1_u32 << (index % 32));
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, format!("there is no feature number {index}"));
    let change = words[2..].as_chunks_mut::<2>().0.get_mut(block).ok_or_else(missing)?;
    *change = [bit, if is_on { bit } else { 0 }];
    call(socket, name, &mut words)
}

/// Text in words, up to its first zero byte.
pub(crate) fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `words` has to be as long as what the kernel writes for its command; the functions above see to that.
fn call(socket: BorrowedFd<'_>, name: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: ifreq is plain data (bytes and pointers) for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let long = || io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no name of an interface"));
    // The last byte stays zero: the name ends within the field.
    let (_, field) = request.ifr_name.split_last_mut().ok_or_else(long)?;
    for (place, byte) in field.get_mut(..name.len()).ok_or_else(long)?.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the request has a NUL-terminated name and points to `words`, which is live for the call and holds, by the callers above,
    // the whole structure that its command makes the kernel read and write.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    // Of a change of features the kernel returns notes, such as that another feature had to stay off; the caller reads them again.
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From linux/sockios.h and linux/ethtool.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
pub(crate) const GET_DRIVER: u32 = 0x03;
pub(crate) const GET_COALESCE: u32 = 0x0e;
pub(crate) const SET_COALESCE: u32 = 0x0f;
pub(crate) const GET_RING: u32 = 0x10;
pub(crate) const SET_RING: u32 = 0x11;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_SIZES: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
pub(crate) const GET_CHANNELS: u32 = 0x3c;
const SET_OF_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN` is 32 bytes.
const STRING_WORDS: usize = 8;
/// Linux 6.18 has 64; a kernel with more than this is refused.
const FEATURES_MAX: usize = 1024;
const BLOCKS_MAX: usize = FEATURES_MAX / 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn loopback_answers_what_it_can_and_refuses_the_rest() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let names = feature_names(socket.as_fd(), "lo").unwrap();
        assert!(names.iter().any(|name| name == "tx-udp-segmentation"), "{names:?}");
        assert_eq!(features(socket.as_fd(), "lo").unwrap().len(), names.len().div_ceil(32));
        let mut ring = [0; Ring::WORDS];
        ring[0] = GET_RING;
        let refusal = ask::<Ring>(socket.as_fd(), "lo", &mut ring).unwrap_err();
        assert_eq!(refusal.raw_os_error(), Some(libc::EOPNOTSUPP));
        let long = feature_names(socket.as_fd(), "a-name-of-sixteen").unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    #[should_panic(expected = "a command of this structure")]
    fn a_command_of_another_structure_never_reaches_the_kernel() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut words = [0; Ring::WORDS];
        words[0] = GET_COALESCE;
        let _ = ask::<Ring>(socket.as_fd(), "lo", &mut words);
    }
}
