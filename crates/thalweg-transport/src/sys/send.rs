//! Scatter-gather sending: `sendmsg` for one message, `sendmmsg` for several.

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::address::{Family, RawAddress};
use super::control::SendControl;

/// Memory that sending reuses; one a thread. Its pointers are only followed within [`Gather::transmit`].
#[derive(Default)]
pub(crate) struct SendScratch {
    pieces: Vec<libc::iovec>,
    messages: Vec<OutMessage>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers in `pieces` and `headers` are set anew by each `Gather` and followed only while its `'bytes` lasts; left
// over from an earlier one they are just numbers.
unsafe impl Send for SendScratch {}

/// One message for the kernel: some pieces to one address; with GSO it becomes several datagrams.
#[derive(Clone, Debug)]
pub(crate) struct OutMessage {
    /// Which of the gathered pieces.
    pub(crate) pieces: Range<usize>,
    /// Which datagrams of the outbox they are.
    pub(crate) datagrams: Range<usize>,
    pub(crate) address: RawAddress,
    pub(crate) control: SendControl,
}

/// The destination of messages for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressing {
    /// Each message brings its address.
    Each,
    /// The socket is connected to the one address of all.
    Connected,
}

/// Messages under construction that refer to bytes living at least as long as `'bytes`.
pub(crate) struct Gather<'scratch, 'bytes> {
    scratch: &'scratch mut SendScratch,
    bytes: PhantomData<&'bytes [u8]>,
}

impl<'scratch, 'bytes> Gather<'scratch, 'bytes> {
    pub(crate) fn new(scratch: &'scratch mut SendScratch) -> Self {
        scratch.pieces.clear();
        scratch.messages.clear();
        Gather { scratch, bytes: PhantomData }
    }

    /// Forgets all messages and pieces.
    pub(crate) fn clear(&mut self) {
        self.scratch.pieces.clear();
        self.scratch.messages.clear();
    }

    /// Number of pieces gathered so far; the index of the next one.
    pub(crate) fn pieces(&self) -> usize {
        self.scratch.pieces.len()
    }

    pub(crate) fn push_piece(&mut self, piece: &'bytes [u8]) {
        self.scratch.pieces.push(libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() });
    }

    pub(crate) fn push_message(&mut self, message: OutMessage) {
        self.scratch.messages.push(message);
    }

    /// Number of messages.
    pub(crate) fn len(&self) -> usize {
        self.scratch.messages.len()
    }

    pub(crate) fn message(&self, index: usize) -> Option<&OutMessage> {
        self.scratch.messages.get(index)
    }

    /// Changes the control messages of message `index` and of those behind it.
    pub(crate) fn remark(&mut self, index: usize, mut change: impl FnMut(&SendControl) -> SendControl) {
        let rest = self.scratch.messages.get_mut(index..).unwrap_or_default();
        rest.iter_mut().for_each(|message| message.control = change(&message.control));
    }

    /// End of the group of messages from `first` on that share its address family.
    pub(crate) fn same_family(&self, first: usize) -> (Family, usize) {
        let rest = self.scratch.messages.get(first..).unwrap_or_default();
        let family = rest.first().map_or(Family::V4, |message| message.address.family());
        let count = rest.iter().take_while(|message| message.address.family() == family).count();
        (family, first + count)
    }

    /// The address that messages `range` share.
    pub(crate) fn only_address(&self, range: Range<usize>) -> Option<&RawAddress> {
        let messages = self.scratch.messages.get(range)?;
        let (first, rest) = messages.split_first()?;
        rest.iter().all(|message| message.address == first.address).then_some(&first.address)
    }

    /// Hands messages `range` to the kernel by one system call; returns how many it took.
    pub(crate) fn transmit(
        &mut self,
        socket: BorrowedFd<'_>,
        range: Range<usize>,
        addressing: Addressing,
    ) -> io::Result<usize> {
        let SendScratch { pieces, messages, headers } = &mut *self.scratch;
        headers.clear();
        for message in &messages[range] {
            headers.push(header_of(message, &mut pieces[message.pieces.clone()], addressing));
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if let [single] = headers.as_mut_slice() {
            // SAFETY: the header points to the scratch's pieces, address and control, which live and do not move during
            // the call, and the pieces to bytes that `'bytes` keeps alive; the kernel only reads all of them.
            let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const single.msg_hdr, flags) };
            return if sent >= 0 { Ok(1) } else { Err(io::Error::last_os_error()) };
        }
        let count = headers.len() as libc::c_uint;
        // SAFETY: as above for each header; `headers` holds `count` of them and the kernel writes only their `msg_len`.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, flags as _) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn header_of(message: &OutMessage, pieces: &mut [libc::iovec], addressing: Addressing) -> libc::mmsghdr {
    // SAFETY: mmsghdr is plain data (integers and pointers) for which all zeroes is a valid value.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    if addressing == Addressing::Each {
        header.msg_hdr.msg_name = message.address.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_namelen = message.address.len();
    }
    header.msg_hdr.msg_iov = pieces.as_mut_ptr();
    header.msg_hdr.msg_iovlen = pieces.len() as _;
    let control = message.control.bytes();
    if !control.is_empty() {
        header.msg_hdr.msg_control = control.as_ptr().cast_mut().cast();
        header.msg_hdr.msg_controllen = control.len() as _;
    }
    header
}
