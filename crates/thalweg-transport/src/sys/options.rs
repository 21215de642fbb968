//! Socket options that `socket2` does not offer.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Reads an integer option.
pub(crate) fn get(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: `value` is a live c_int of `len` bytes and `len` itself live for the call; the descriptor is borrowed, hence open.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut len) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option that is a row of words; a kernel that has fewer of them is refused.
pub(crate) fn words<const N: usize>(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<[u32; N]> {
    let mut words = [0_u32; N];
    let mut len = size_of_val(&words) as libc::socklen_t;
    let place = words.as_mut_ptr().cast();
    // SAFETY: `words` is live and has `len` bytes, `len` itself is live for the call, and the descriptor is borrowed, hence open.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut len) };
    match result {
        0 if len as usize == size_of_val(&words) => Ok(words),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets an integer option.
pub(crate) fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is a live c_int of `len` bytes for the whole call; the descriptor is borrowed, hence open.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
