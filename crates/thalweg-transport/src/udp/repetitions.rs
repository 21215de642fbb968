//! Datagrams of discovery that tell this process nothing, refused before they wake it.

use std::io;

use crate::filter::FilterInstruction;
use crate::socket::UdpSocket;

/// The mark of refused datagrams: four bytes at an offset.
pub type RefusedBytes = (usize, [u8; 4]);

/// Lets `socket` refuse datagrams that bear all of `refused`.
pub(super) fn refuse(socket: &UdpSocket, refused: &[RefusedBytes]) -> io::Result<()> {
    socket.set_filter(&program(refused))
}

/// Takes every datagram that is too short, or differs from one of `refused`.
fn program(refused: &[RefusedBytes]) -> Vec<FilterInstruction> {
    let needed = refused.iter().map(|(offset, bytes)| UDP_HEADER_LEN + offset + bytes.len()).max().unwrap_or(0);
    // Two instructions a word, and the refusal, are skipped by a datagram that is taken.
    let to_accept = |words: usize| (2 * words + 1) as u8;
    let mut program =
        vec![FilterInstruction::length(), FilterInstruction::if_at_least(needed as u32, (0, to_accept(refused.len())))];
    for (done, (offset, bytes)) in refused.iter().enumerate() {
        // X is 0 at the start.
        program.push(FilterInstruction::bytes_at_x(4, (UDP_HEADER_LEN + offset) as u32));
        program.push(FilterInstruction::if_equal(u32::from_be_bytes(*bytes), (0, to_accept(refused.len() - done - 1))));
    }
    program.extend([FilterInstruction::drop(), FilterInstruction::accept()]);
    program
}

const UDP_HEADER_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket as Plain;
    use std::os::fd::AsFd;

    use super::super::{Family, UdpConfig};
    use super::*;
    use crate::socket::{Oversize, PortSharing};

    #[test]
    fn only_datagrams_that_bear_all_of_it_are_refused() {
        let socket = UdpSocket::open(&UdpConfig::default(), Family::V4, 0, PortSharing::Exclusive, Oversize::Cut)
            .expect("a socket");
        refuse(&socket, &[(4, *b"mark"), (8, *b"name")]).expect("Linux takes filters");
        let plain = Plain::bind("127.0.0.1:0").expect("a socket");
        let copy = Plain::from(socket.as_fd().try_clone_to_owned().expect("descriptors"));
        let arrives = |datagram: &[u8]| {
            plain.send_to(datagram, ("127.0.0.1", socket.port())).expect("loopback");
            // Loopback delivers before the call that sends returns.
            copy.recv(&mut [0; 100]).is_ok()
        };
        assert!(!arrives(b"RTPSmarkname") && !arrives(b"RTPSmarkname and more"));
        for taken in [b"RTPSmark".as_slice(), b"RTPSmarkname"[..11].as_ref(), b"RTPSmarkName", b"RTPSMarkname", b""] {
            assert!(arrives(taken), "{taken:?}");
        }
    }
}
