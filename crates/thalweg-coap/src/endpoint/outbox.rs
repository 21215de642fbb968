//! Datagrams ready to be sent.

use super::Peer;

/// A reusable list of datagrams in one buffer; in steady state nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct CoapOutbox {
    bytes: Vec<u8>,
    ends: Vec<(Peer, usize)>,
}

/// One datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The destination.
    pub peer: Peer,
    /// The whole datagram.
    pub bytes: &'a [u8],
}

impl CoapOutbox {
    /// The datagrams, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Transmit<'_>> {
        self.iter_from(0)
    }

    /// The datagrams behind the first `count`, of which there are as many or more.
    pub(crate) fn iter_from(&self, count: usize) -> impl Iterator<Item = Transmit<'_>> {
        let mut start = count.checked_sub(1).map_or(0, |last| self.ends[last].1);
        self.ends[count..].iter().map(move |&(peer, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            Transmit { peer, bytes }
        })
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets the datagrams and keeps the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends the datagram that `write` appends to the buffer; gives its length.
    #[inline]
    pub(crate) fn push(&mut self, peer: Peer, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.ends.push((peer, self.bytes.len()));
        self.bytes.len() - start
    }

    /// Takes the last datagram back.
    pub(super) fn drop_last(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().map_or(0, |(_, end)| *end));
    }

    /// The datagram that was appended last.
    pub(super) fn last(&self) -> &[u8] {
        let start = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before].1);
        &self.bytes[start..]
    }
}
