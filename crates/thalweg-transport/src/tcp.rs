//! What the standard library does not tell of a TCP connection.

use std::io;
use std::os::fd::AsFd;

/// Segments that the kernel has sent again since the connection began.
///
/// # Errors
/// The socket is none of TCP.
pub fn retransmitted_segments(connection: &impl AsFd) -> io::Result<u32> {
    crate::sys::tcp::retransmitted_segments(connection.as_fd())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::retransmitted_segments;

    #[test]
    fn loopback_sends_nothing_again_and_udp_has_no_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(retransmitted_segments(&connection).unwrap(), 0);
        assert!(retransmitted_segments(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
