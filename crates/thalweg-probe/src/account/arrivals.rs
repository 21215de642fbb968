//! What a receiver knows of a stream of numbered datagrams.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::DatagramHeader;

/// Numbers behind the highest one among which each arrival is remembered. Chosen here: a second of minimal datagrams at 250,000 a
/// second may be overtaken, at 32 KiB a stream.
pub const WINDOW: u64 = 1 << 18;

/// The datagrams of one stream so far, in fixed memory whatever arrives.
#[derive(Clone, Debug)]
pub struct Arrivals {
    token: u32,
    size_bytes: usize,
    /// One bit for each of the [`WINDOW`] numbers below `next`, at the number's place modulo the window.
    seen: Box<[u64]>,
    counts: ArrivalCounts,
    /// Transit time of the datagram before, in the two clocks' difference of microseconds, and RFC 3550's estimate from it.
    transit_us: Option<u32>,
    jitter_us: f64,
    first: Option<Instant>,
    last: Instant,
}

/// Counts of a stream's arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Different datagrams of the stream.
    pub received: u64,
    /// Their payload bytes, heads included.
    pub bytes: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Datagrams that arrived after one with a higher number.
    pub reordered: u64,
    /// Arrivals so far behind the highest number ([`WINDOW`]) that nobody knows whether they came before; not received.
    pub outdated: u64,
    /// Datagrams of somebody else, or of another length; not received.
    pub foreign: u64,
    /// One more than the highest number.
    pub next: u64,
}

impl Arrivals {
    /// Of a stream whose datagrams bear `token` and have this length.
    pub fn new(token: u32, size_bytes: usize) -> Arrivals {
        Arrivals {
            token,
            size_bytes,
            seen: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            counts: ArrivalCounts::default(),
            transit_us: None,
            jitter_us: 0.0,
            first: None,
            last: Instant::ZERO,
        }
    }

    /// Notes a datagram that arrived at `arrived`.
    #[inline]
    pub fn handle_datagram(&mut self, arrived: Instant, datagram: &[u8]) {
        match DatagramHeader::from_wire(datagram) {
            Some(header)
                if header.token == self.token && datagram.len() == self.size_bytes && header.number < u64::MAX =>
            {
                self.handle_header(arrived, header);
            }
            _ => self.counts.foreign += 1,
        }
    }

    fn handle_header(&mut self, arrived: Instant, header: DatagramHeader) {
        let number = header.number;
        if number >= self.counts.next {
            self.forget(number);
            self.counts.next = number + 1;
        } else if self.counts.next - number > WINDOW {
            self.counts.outdated += 1;
            return;
        } else if self.is_seen(number) {
            self.counts.duplicates += 1;
            return;
        } else {
            self.counts.reordered += 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        self.counts.received += 1;
        self.counts.bytes += self.size_bytes as u64;
        self.first.get_or_insert(arrived);
        self.last = self.last.max(arrived);
        self.note_transit(arrived, header.sent_us);
    }

    /// RFC 3550 §6.4.1: the difference of the transit times of neighbours in arrival, smoothed by 1/16. Clocks need not agree.
    fn note_transit(&mut self, arrived: Instant, sent_us: u32) {
        // Both clocks wrap at 2³² µs, and so does their difference.
        let transit_us = ((arrived.as_nanos() / 1_000) as u32).wrapping_sub(sent_us);
        if let Some(before) = self.transit_us.replace(transit_us) {
            let difference = (transit_us.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter_us += (f64::from(difference) - self.jitter_us) / 16.0;
        }
    }

    /// Makes the places of the numbers up to `number` free, which were those of numbers that leave the window.
    fn forget(&mut self, number: u64) {
        let next = self.counts.next;
        if number - next >= WINDOW {
            self.seen.fill(0);
            return;
        }
        let mut at = next;
        while at <= number {
            let (word, bit) = place(at);
            if bit == 1 && at + 63 <= number {
                self.seen[word] = 0;
                at += 64;
            } else {
                self.seen[word] &= !bit;
                at += 1;
            }
        }
    }

    fn is_seen(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }

    /// What was counted so far.
    pub fn counts(&self) -> ArrivalCounts {
        self.counts
    }

    /// The jitter by RFC 3550 §6.4.1 in microseconds. It converges to the spacing of bursts where a sender sends in bursts: it tells
    /// of the sender as much as of the network.
    pub fn jitter_us(&self) -> f64 {
        self.jitter_us
    }

    /// The first and the last arrival.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        self.first.map(|first| (first, self.last))
    }

    /// Time between the first and the last arrival.
    pub fn duration(&self) -> Duration {
        self.span().map_or(Duration::ZERO, |(first, last)| last.since(first))
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}
