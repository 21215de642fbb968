//! Announcements that tell a participant nothing, refused before they wake it.

use std::io;

use thalweg_rtps::types::GuidPrefix;
use thalweg_rtps::wire::write::{HEADER_LEN, PAD};

use super::socket::UdpSocket;
use crate::entropy::PROCESS_LEN;
use crate::filter::Instruction;

/// Lets `socket` refuse what a participant of the same process as `prefix` marks as known to all of them.
pub(super) fn refuse_own(socket: &UdpSocket, prefix: GuidPrefix) -> io::Result<()> {
    socket.set_filter(&program(prefix))
}

fn program(prefix: GuidPrefix) -> [Instruction; 10] {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let [first, second] = [word(&prefix.0[..4]), word(&prefix.0[4..PROCESS_LEN])];
    // X is 0 at the start.
    let load = |offset: usize| Instruction::bytes_at_x(4, offset as u32);
    [
        Instruction::length(),
        Instruction::if_at_least((UDP_HEADER_LEN + HEADER_LEN + PAD.len()) as u32, (0, 7)),
        load(UDP_HEADER_LEN + HEADER_LEN),
        Instruction::if_equal(word(&PAD), (0, 5)),
        load(PREFIX_AT),
        Instruction::if_equal(first, (0, 3)),
        load(PREFIX_AT + 4),
        Instruction::if_equal(second, (0, 1)),
        Instruction::drop(),
        Instruction::accept(),
    ]
}

const UDP_HEADER_LEN: usize = 8;
/// Behind "RTPS", the version and the vendor.
const PREFIX_AT: usize = UDP_HEADER_LEN + 8;

#[cfg(test)]
mod tests {
    use super::super::socket::{Oversize, Sharing};
    use super::super::{Family, UdpConfig};
    use super::*;
    use crate::entropy;
    use std::net::UdpSocket as Plain;
    use std::os::fd::AsFd;
    use thalweg_rtps::wire::write;

    /// Whether a socket of a process that `own` belongs to gets a datagram of `sender`.
    fn check(own: GuidPrefix, sender: GuidPrefix, marked: bool) -> bool {
        let socket =
            UdpSocket::open(&UdpConfig::default(), Family::V4, 0, Sharing::Exclusive, Oversize::Cut).expect("a socket");
        refuse_own(&socket, own).expect("Linux takes filters");
        let mut datagram = Vec::new();
        write::header(&mut datagram, sender);
        datagram.extend_from_slice(if marked { &PAD } else { &[9, 1, 0, 0] });
        let plain = Plain::bind("127.0.0.1:0").expect("a socket");
        plain.send_to(&datagram, ("127.0.0.1", socket.port())).expect("loopback");
        let copy = Plain::from(socket.as_fd().try_clone_to_owned().expect("descriptors"));
        // Loopback delivers before the call that sends returns.
        copy.recv(&mut [0; 100]).is_ok()
    }

    #[test]
    fn only_marked_datagrams_of_the_own_process_are_refused() {
        let [own, sibling] = [(); 2].map(|()| entropy::guid_prefix().expect("entropy"));
        let mut stranger = sibling;
        stranger.0[PROCESS_LEN - 1] ^= 1;
        assert!(!check(own, sibling, true));
        assert!(check(own, sibling, false));
        assert!(check(own, stranger, true));
    }
}
