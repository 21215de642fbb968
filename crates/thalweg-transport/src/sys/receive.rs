//! `recvmmsg` into shared buffers, and the error queue.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

use super::address::RawAddress;
use super::control::{self, AsyncError, Control, ControlBuffer};

/// Room for packet info, GRO size and drop counter, with space to spare.
const CONTROL_BYTES: usize = 256;

/// Memory that receiving reuses: headers, addresses and control messages of up to `capacity` messages.
pub(crate) struct ReceiveSlots {
    headers: Vec<libc::mmsghdr>,
    pieces: Vec<libc::iovec>,
    addresses: Vec<RawAddress>,
    controls: Vec<ControlBuffer<CONTROL_BYTES>>,
}

// SAFETY: the raw pointers in `headers` and `pieces` are set anew within each call and never followed outside of it.
unsafe impl Send for ReceiveSlots {}

/// A buffer for the kernel to fill; no other reference to it exists until it is released.
pub(crate) struct Armed {
    slab: Arc<Vec<u8>>,
    /// Where its bytes begin.
    start: *mut u8,
}

// SAFETY: `start` points into the heap memory of `slab`, which moves with it and which nothing but this refers to.
unsafe impl Send for Armed {}

impl Armed {
    /// All of `slab`, as long as it is.
    ///
    /// # Panics
    /// When it has another owner.
    pub(crate) fn new(mut slab: Arc<Vec<u8>>) -> Armed {
        let start = Arc::get_mut(&mut slab).expect("a buffer that is being filled has no other owner").as_mut_ptr();
        Armed { slab, start }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.slab
    }

    pub(crate) fn release(self) -> Arc<Vec<u8>> {
        self.slab
    }
}

/// One received message, which GRO may have joined from several datagrams of one sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) bytes: usize,
    pub(crate) source: Option<SocketAddr>,
    /// The datagram was longer than the buffer.
    pub(crate) truncated: bool,
    pub(crate) control: Control,
}

impl ReceiveSlots {
    pub(crate) fn new(capacity: usize) -> ReceiveSlots {
        // SAFETY: mmsghdr is plain data (integers and pointers) for which all zeroes is a valid value.
        let header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let piece = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        ReceiveSlots {
            headers: vec![header; capacity],
            pieces: vec![piece; capacity],
            addresses: vec![RawAddress::EMPTY; capacity],
            controls: vec![ControlBuffer([0; CONTROL_BYTES]); capacity],
        }
    }

    /// Fills one buffer a message, without waiting; returns how many messages came.
    ///
    /// # Panics
    /// When there are more buffers than slots.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>, buffers: &mut [Armed]) -> io::Result<usize> {
        let count = buffers.len();
        assert!(count <= self.headers.len(), "as many slots as buffers");
        for (slot, buffer) in buffers.iter_mut().enumerate() {
            self.pieces[slot] = libc::iovec { iov_base: buffer.start.cast(), iov_len: buffer.slab.len() };
            let header = &mut self.headers[slot].msg_hdr;
            header.msg_name = self.addresses[slot].as_mut_ptr().cast();
            header.msg_namelen = RawAddress::BYTES as libc::socklen_t;
            header.msg_iov = &raw mut self.pieces[slot];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[slot].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
            header.msg_flags = 0;
        }
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: `count` headers were filled above; each points to an address, a control buffer and an iovec of this
        // struct, and the iovec to exactly the initialised bytes of a buffer of `buffers`, which has no other owner.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// The datagram that the last call stored in `slot`.
    pub(crate) fn arrival(&self, slot: usize) -> Arrival {
        let header = &self.headers[slot];
        let control_bytes = control_bytes(header.msg_hdr.msg_controllen);
        let flags = header.msg_hdr.msg_flags;
        Arrival {
            bytes: header.msg_len as usize,
            source: self.addresses[slot].socket_address(),
            truncated: flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0,
            control: control::parse(&self.controls[slot].0[..control_bytes]),
        }
    }
}

/// Takes one entry from the socket's error queue; `None` when it is empty.
pub(crate) fn take_error(socket: BorrowedFd<'_>) -> Option<AsyncError> {
    let mut control = ControlBuffer([0u8; CONTROL_BYTES]);
    // SAFETY: msghdr is plain data (integers and pointers) for which all zeroes is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let mut destination = RawAddress::EMPTY;
    header.msg_name = destination.as_mut_ptr().cast();
    header.msg_namelen = RawAddress::BYTES as libc::socklen_t;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = CONTROL_BYTES as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header points to a live address and a live control buffer of the stated lengths, and to nothing else.
    let result = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    if result < 0 {
        return None;
    }
    let bytes = control_bytes(header.msg_controllen);
    let unknown = AsyncError { errno: 0, info: 0, destination: None };
    let error = control::parse(&control.0[..bytes]).error.unwrap_or(unknown);
    Some(AsyncError { destination: destination.socket_address(), ..error })
}

/// Bytes of control messages that the kernel stored; the C libraries disagree on the type of the field.
fn control_bytes(stored: impl TryInto<usize>) -> usize {
    stored.try_into().unwrap_or(0).min(CONTROL_BYTES)
}
