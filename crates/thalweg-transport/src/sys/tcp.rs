//! What the kernel tells of a TCP connection.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Segments that were sent again since the connection began (`tcpi_total_retrans`).
pub(crate) fn retransmitted_segments(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (level, option, place) = (libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast());
    // SAFETY: `info` is live and `len` bytes long, and `len` itself live for the call; the descriptor is borrowed, hence open.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut len) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the type has integers alone, for which zeroes are a value; the kernel has overwritten the first `len` bytes of them.
    Ok(unsafe { info.assume_init() }.tcpi_total_retrans)
}
