//! Whole Ethernet frames of an interface, for programs that stand in for a switch.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use crate::sys::{interfaces, packet};

/// An interface whose frames are received and sent as they are. Needs the right to raw sockets and large buffers (`CAP_NET_RAW`, `CAP_NET_ADMIN`).
#[derive(Debug)]
pub struct FramePort {
    socket: Socket,
}

/// The outcome of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSent {
    /// The interface took it.
    Taken,
    /// The interface's queue was full.
    Refused,
}

impl FramePort {
    /// Bytes before each Ethernet header that belong to the kernel (`struct virtio_net_hdr`): unfinished checksums, and of what size the
    /// packets are that it has not cut. They are handed back as they came, so that a frame with an uncomputed checksum stays acceptable, or
    /// changed to fit what is left of the packets.
    pub const PREFIX_BYTES: usize = 10;

    /// Opens the interface `name` of this network namespace.
    ///
    /// # Errors
    /// There is no such interface, or the process may not use raw sockets.
    pub fn open(name: &str) -> io::Result<FramePort> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name}"));
        let found =
            interfaces::addresses()?.into_iter().find(|interface| interface.name == name).ok_or_else(missing)?;
        Ok(FramePort { socket: packet::open(found.index, RECEIVE_BUFFER_BYTES)? })
    }

    /// Takes the next frame, prefix included; `None` when none waits. A frame that does not fit into `buffer` is cut off.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.socket).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a frame with the prefix that it came with. It is `head` and, behind it, `rest`, which may be empty.
    ///
    /// # Errors
    /// The interface is gone or down, or the kernel understands the prefix or the frame behind it otherwise.
    pub fn send(&self, head: &[u8], rest: &[u8]) -> io::Result<FrameSent> {
        let parts = [IoSlice::new(head), IoSlice::new(rest)];
        match (&self.socket).write_vectored(&parts) {
            Ok(_) => Ok(FrameSent::Taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS) => {
                Ok(FrameSent::Refused)
            }
            Err(error) => Err(error),
        }
    }

    /// Frames that came while the receive buffer was full, since the last call.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn take_missed(&self) -> io::Result<u64> {
        packet::take_drops(self.socket.as_fd()).map(u64::from)
    }
}

impl AsFd for FramePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Some ten thousand small frames: what arrives while the process waits for a CPU.
const RECEIVE_BUFFER_BYTES: i32 = 32 << 20;
