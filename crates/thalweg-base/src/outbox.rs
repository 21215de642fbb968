//! Datagrams ready to be sent: the state machines write them and the transport reads them.

use std::ops::Range;

use crate::locator::Locator;
use crate::payload::Payload;

/// A reusable list of datagrams. Headers and small payloads are copied into one buffer, larger payloads are referred to;
/// in steady state nothing is allocated.
///
/// Neighbouring datagrams with the same destinations and equal sizes (the last may be shorter) can leave as one GSO call.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    payloads: Vec<Payload>,
    pieces: Vec<Piece>,
    destinations: Vec<Locator>,
    datagrams: Vec<Entry>,
    open: Option<Open>,
    cost: u64,
    joining: Joining,
}

/// Memory of [`Outbox::join`].
#[derive(Debug, Default)]
struct Joining {
    order: Vec<usize>,
    pieces: Vec<Piece>,
    datagrams: Vec<Entry>,
}

#[derive(Debug, Clone)]
enum Piece {
    Copied(Range<usize>),
    Referred { payload: usize, range: Range<usize> },
}

#[derive(Debug)]
struct Entry {
    pieces: Range<usize>,
    destinations: Range<usize>,
    len: usize,
}

#[derive(Debug)]
struct Open {
    first_piece: usize,
    copied_from: usize,
    len: usize,
    destinations: Range<usize>,
}

/// Payloads up to this size are copied into the datagram: cheaper than a reference count and a gather entry.
const COPY_MAX_BYTES: usize = 512;

/// One datagram of an [`Outbox`].
#[derive(Clone, Copy, Debug)]
pub struct OutboundDatagram<'a> {
    outbox: &'a Outbox,
    entry: &'a Entry,
}

impl<'a> OutboundDatagram<'a> {
    /// Bytes of the datagram.
    pub fn len(&self) -> usize {
        self.entry.len
    }

    /// True for a datagram without bytes; an outbox holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entry.len == 0
    }

    /// Every address that gets a copy.
    #[inline]
    pub fn destinations(&self) -> &'a [Locator] {
        &self.outbox.destinations[self.entry.destinations.clone()]
    }

    /// True when both datagrams go to the very same list of destinations.
    #[inline]
    pub fn same_destinations(&self, other: &OutboundDatagram<'_>) -> bool {
        self.entry.destinations == other.entry.destinations || self.destinations() == other.destinations()
    }

    /// The bytes, piece by piece, in order.
    #[inline]
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let outbox = self.outbox;
        outbox.pieces[self.entry.pieces.clone()].iter().map(move |piece| match piece {
            Piece::Copied(range) => &outbox.bytes[range.clone()],
            Piece::Referred { payload, range } => &outbox.payloads[*payload][range.clone()],
        })
    }

    /// The bytes in one new buffer; for the simulator and tests.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces().flatten().copied().collect()
    }
}

impl Outbox {
    /// An empty outbox.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// Forgets all datagrams, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.payloads.clear();
        self.pieces.clear();
        self.destinations.clear();
        self.datagrams.clear();
        self.open = None;
        self.cost = 0;
    }

    /// True when no datagram was finished.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Bytes of all finished datagrams, each counted once for every destination.
    #[inline]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Bytes of the datagram that was finished last.
    #[inline]
    pub fn last_len(&self) -> Option<usize> {
        self.datagrams.last().map(|entry| entry.len)
    }

    /// Number of finished datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// The finished datagrams in order.
    #[inline]
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = OutboundDatagram<'_>> {
        self.datagrams.iter().map(|entry| OutboundDatagram { outbox: self, entry })
    }

    /// Finished datagram number `index`.
    pub fn datagram(&self, index: usize) -> Option<OutboundDatagram<'_>> {
        self.datagrams.get(index).map(|entry| OutboundDatagram { outbox: self, entry })
    }

    /// Starts a datagram to `destinations`; finishes the one that was open.
    #[inline]
    pub fn begin(&mut self, destinations: &[Locator]) {
        self.finish();
        let unchanged = self.datagrams.last().map(|entry| entry.destinations.clone());
        let range = match unchanged {
            Some(range) if self.destinations[range.clone()] == *destinations => range,
            _ => {
                let start = self.destinations.len();
                self.destinations.extend_from_slice(destinations);
                start..self.destinations.len()
            }
        };
        self.open =
            Some(Open { first_piece: self.pieces.len(), copied_from: self.bytes.len(), len: 0, destinations: range });
    }

    /// Bytes written into the open datagram so far.
    #[inline]
    pub fn open_len(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.len + self.bytes.len() - open.copied_from)
    }

    /// The buffer to append headers to; appended bytes belong to the open datagram.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends `range` of `payload`: small ranges by copy, larger ones by reference.
    #[inline]
    pub fn push_payload(&mut self, payload: &Payload, range: Range<usize>) {
        if range.len() <= COPY_MAX_BYTES {
            self.bytes.extend_from_slice(&payload[range]);
            return;
        }
        self.close_copied_piece();
        let Some(open) = self.open.as_mut() else { return };
        open.len += range.len();
        let same_as_last =
            self.payloads.last().is_some_and(|last| last.as_ptr() == payload.as_ptr() && last.len() == payload.len());
        if !same_as_last {
            self.payloads.push(payload.clone());
        }
        self.pieces.push(Piece::Referred { payload: self.payloads.len() - 1, range });
    }

    /// Completes the open datagram; one without bytes is dropped.
    #[inline]
    pub fn finish(&mut self) {
        self.close_copied_piece();
        let Some(open) = self.open.take() else { return };
        if open.len > 0 {
            let pieces = open.first_piece..self.pieces.len();
            self.cost += (open.len * open.destinations.len()) as u64;
            self.datagrams.push(Entry { pieces, destinations: open.destinations, len: open.len });
        }
    }

    /// Joins finished datagrams that go to the same single destination, as far as `bytes_max` goes: the first `header_bytes`, the
    /// same in all of them, are kept once. Those to one destination keep their order.
    pub fn join(&mut self, header_bytes: usize, bytes_max: usize) {
        let Joining { mut order, mut pieces, mut datagrams } = std::mem::take(&mut self.joining);
        order.extend(0..self.datagrams.len());
        order.sort_by_key(|index| (&self.destinations[self.datagrams[*index].destinations.clone()], *index));
        for index in order.drain(..) {
            let entry = &self.datagrams[index];
            let joinable = |last: &Entry| {
                let same =
                    self.destinations[last.destinations.clone()] == self.destinations[entry.destinations.clone()];
                same && entry.destinations.len() == 1 && last.len + entry.len - header_bytes <= bytes_max
            };
            let mut added = &self.pieces[entry.pieces.clone()];
            if let Some(last) = datagrams.last_mut().filter(|last| joinable(last))
                && let [Piece::Copied(first), rest @ ..] = added
                && first.len() >= header_bytes
            {
                pieces.push(Piece::Copied(first.start + header_bytes..first.end));
                added = rest;
                last.len += entry.len - header_bytes;
                last.pieces.end += 1 + added.len();
                self.cost -= header_bytes as u64;
            } else {
                let start = pieces.len();
                datagrams.push(Entry {
                    pieces: start..start + added.len(),
                    destinations: entry.destinations.clone(),
                    len: entry.len,
                });
            }
            pieces.extend_from_slice(added);
        }
        std::mem::swap(&mut self.pieces, &mut pieces);
        std::mem::swap(&mut self.datagrams, &mut datagrams);
        pieces.clear();
        datagrams.clear();
        self.joining = Joining { order, pieces, datagrams };
    }

    #[inline]
    fn close_copied_piece(&mut self) {
        let end = self.bytes.len();
        let Some(open) = self.open.as_mut() else { return };
        if end > open.copied_from {
            self.pieces.push(Piece::Copied(open.copied_from..end));
            open.len += end - open.copied_from;
            open.copied_from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locator(port: u32) -> Locator {
        Locator { kind: Locator::UDP_V4, port, address: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1] }
    }

    #[test]
    fn datagrams_keep_their_bytes_and_destinations() {
        let mut outbox = Outbox::new();
        let large = Payload::from(vec![7u8; 2000]);
        outbox.begin(&[locator(1)]);
        outbox.buffer().extend_from_slice(b"head");
        outbox.push_payload(&large, 0..1000);
        outbox.buffer().extend_from_slice(b"tail");
        assert_eq!(outbox.open_len(), 1008);
        outbox.begin(&[locator(1)]);
        outbox.push_payload(&large, 0..4);
        outbox.begin(&[locator(2)]);
        outbox.finish();
        let datagrams: Vec<_> = outbox.datagrams().collect();
        assert_eq!(datagrams.len(), 2, "a datagram without bytes is dropped");
        assert_eq!(datagrams[0].len(), 1008);
        assert_eq!(datagrams[0].to_vec().len(), 1008);
        assert_eq!(&datagrams[0].to_vec()[..4], b"head");
        assert_eq!(&datagrams[0].to_vec()[1004..], b"tail");
        assert!(datagrams[0].same_destinations(&datagrams[1]));
        assert_eq!(datagrams[1].to_vec(), vec![7u8; 4]);
    }

    #[test]
    fn what_goes_to_one_destination_is_joined_as_far_as_it_fits() {
        let mut outbox = Outbox::new();
        let large = Payload::from(vec![7u8; 600]);
        for (destinations, content) in [
            (&[locator(1)][..], &b"a"[..]),
            (&[locator(2)], b"b"),
            (&[locator(1), locator(2)], b"c"),
            (&[locator(1)], b"d"),
            (&[locator(1)], &[b'e'; 20]),
            (&[locator(2)], b"f"),
            (&[locator(1), locator(2)], b"g"),
        ] {
            outbox.begin(destinations);
            outbox.buffer().extend_from_slice(b"head");
            outbox.buffer().extend_from_slice(content);
        }
        outbox.begin(&[locator(2)]);
        outbox.buffer().extend_from_slice(b"head");
        outbox.push_payload(&large, 0..600);
        outbox.finish();
        outbox.join(4, 20);
        let mut joined: Vec<_> =
            outbox.datagrams().map(|datagram| (datagram.destinations().to_vec(), datagram.to_vec())).collect();
        assert!(outbox.datagrams().zip(&joined).all(|(datagram, (_, bytes))| datagram.len() == bytes.len()));
        assert_eq!(outbox.cost(), joined.iter().map(|(to, bytes)| to.len() * bytes.len()).sum::<usize>() as u64);
        joined.sort();
        let long = [&b"head"[..], &[7; 600]].concat();
        let expected = [
            (vec![locator(1)], b"headad".to_vec()),
            (vec![locator(1)], [&b"head"[..], &[b'e'; 20]].concat()),
            (vec![locator(1), locator(2)], b"headc".to_vec()),
            (vec![locator(1), locator(2)], b"headg".to_vec()),
            (vec![locator(2)], long),
            (vec![locator(2)], b"headbf".to_vec()),
        ];
        assert_eq!(joined, expected);
        outbox.join(4, 2_000);
        assert_eq!(outbox.len(), 4, "one for each destination, and those with two");
    }
}
