//! The calls that the standard library does not make.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::{mem, ptr};

use peer_protocol::Interface;

/// Turns the -1 of a call into the error that it stands for.
fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn set<T>(socket: &UdpSocket, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is `length` bytes long and read only during the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), length) };
    checked(result as isize).map(drop)
}

/// Asks for large buffers; returns what the receive buffer became, in the kernel's way of counting.
pub fn set_buffers(socket: &UdpSocket) -> io::Result<u64> {
    const WANTED: i32 = 4 << 20;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &WANTED)?;
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &WANTED)?;
    let (mut bytes, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: both pointers are to live variables of the lengths that the call expects.
    let result = unsafe {
        let value = ptr::from_mut(&mut bytes).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, value, &mut length)
    };
    checked(result as isize)?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// Has the kernel cut what is sent into datagrams of that many bytes; 0 sends it as one.
pub fn set_segment(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &(bytes as i32))
}

/// Lets the kernel hand over what it joined.
pub fn join_segments(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, &1i32)
}

/// How a socket uses multicast on an interface.
#[derive(Clone, Copy)]
pub enum Multicast {
    Send,
    Receive(Ipv4Addr),
}

pub fn set_multicast(socket: &UdpSocket, interface: &Interface, use_: Multicast) -> io::Result<()> {
    let name = CString::new(interface.name.as_str())?;
    // SAFETY: the string lives during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let (name, group, source) = match use_ {
        // The loopback address is never picked by itself: it has the scope of this host.
        Multicast::Send => (libc::IP_MULTICAST_IF, Ipv4Addr::UNSPECIFIED, interface.address),
        Multicast::Receive(group) => (libc::IP_ADD_MEMBERSHIP, group, Ipv4Addr::UNSPECIFIED),
    };
    let address = |address: Ipv4Addr| libc::in_addr { s_addr: u32::from(address).to_be() };
    let request = libc::ip_mreqn {
        imr_multiaddr: address(group),
        imr_address: address(source),
        imr_ifindex: i32::try_from(index).map_err(io::Error::other)?,
    };
    set(socket, libc::IPPROTO_IP, name, &request)
}

/// Wakes the thread that receives from the socket, which then receives nothing.
pub fn shut_down(socket: &UdpSocket) {
    // SAFETY: a plain call. For sockets that are not connected it reports an error, and wakes all the same.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RD) };
}

/// Receives what is there; does not wait.
pub fn receive_now(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `len` bytes to the buffer.
    let result =
        unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    checked(result)
}

/// Receives datagrams of equal length that the kernel joined: returns the bytes of all and the length of each.
pub fn receive_joined(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, usize)> {
    let mut control = [0u64; 8];
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = empty_message();
    (message.msg_iov, message.msg_iovlen) = (&raw mut bytes, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of_val(&control));
    // SAFETY: the message points to live buffers of the lengths it states.
    let received = checked(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) })?;
    // SAFETY: the kernel filled the control buffer that the message points to, and the macros stay within its length.
    let length = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_length =
            !header.is_null() && ((*header).cmsg_level, (*header).cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO);
        is_length.then(|| libc::CMSG_DATA(header).cast::<i32>().read_unaligned())
    };
    let length = length.and_then(|length| usize::try_from(length).ok()).filter(|length| *length > 0);
    Ok((received, length.unwrap_or(received.max(1))))
}

/// Sends the bytes as datagrams of equal length, in as few calls as the kernel takes.
pub fn send_several(socket: &UdpSocket, bytes: &[u8], length: usize) -> io::Result<()> {
    let mut parts: Vec<libc::iovec> = Vec::with_capacity(bytes.len() / length + 1);
    let part = |part: &[u8]| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
    parts.extend(bytes.chunks(length).map(part));
    let mut messages = messages(&mut parts);
    let mut sent = 0;
    while sent < messages.len() {
        let rest = &mut messages[sent..];
        // SAFETY: each message points to an entry of `parts`, and that to bytes which the kernel only reads.
        let result = unsafe { libc::sendmmsg(socket.as_raw_fd(), rest.as_mut_ptr(), rest.len() as u32, 0) };
        sent += checked(result as isize)?;
    }
    Ok(())
}

/// Receives several datagrams by one call.
pub struct Slots {
    bytes: Vec<u8>,
    length: usize,
}

impl Slots {
    const COUNT: usize = 64;

    /// Room for datagrams of up to `length` bytes.
    pub fn new(length: usize) -> Slots {
        Slots { bytes: vec![0; length * Slots::COUNT], length }
    }

    /// Waits for one datagram and takes those that are there as well; the bytes of each.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<impl Iterator<Item = &[u8]>> {
        let part = |slot: &mut [u8]| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        let mut parts: Vec<libc::iovec> = self.bytes.chunks_mut(self.length).map(part).collect();
        let mut messages = messages(&mut parts);
        let (pointer, count) = (messages.as_mut_ptr(), messages.len() as u32);
        // SAFETY: each message points to an entry of `parts`, and that to a slot of its length within `bytes`, which
        // nothing else borrows during the call.
        let result =
            unsafe { libc::recvmmsg(socket.as_raw_fd(), pointer, count, libc::MSG_WAITFORONE, ptr::null_mut()) };
        messages.truncate(checked(result as isize)?);
        let slots = self.bytes.chunks(self.length);
        Ok(messages.into_iter().zip(slots).map(|(message, slot)| &slot[..message.msg_len as usize]))
    }
}

/// A message for each of the parts, which must outlive them.
fn messages(parts: &mut [libc::iovec]) -> Vec<libc::mmsghdr> {
    let message = |part| {
        let mut message = empty_message();
        (message.msg_iov, message.msg_iovlen) = (ptr::from_mut(part), 1);
        libc::mmsghdr { msg_hdr: message, msg_len: 0 }
    };
    parts.iter_mut().map(message).collect()
}

fn empty_message() -> libc::msghdr {
    // SAFETY: null pointers and lengths of zero are a valid message.
    unsafe { mem::zeroed() }
}
