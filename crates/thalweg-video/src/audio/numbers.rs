//! Packets of sound by their numbers, each counted once.

use crate::receiver::{PacketTotals, RestartWatch, Seen, SequenceWindow};

/// A packet so far ahead may be one of a sender that began anew (RFC 3550 §A.1, `MAX_DROPOUT`).
const CONTINUED_PACKETS_MAX: u16 = 3000;
/// By how many packets numbers and times may differ behind an outage: packets are lost and reordered there too.
const DIFFERENCE_MAX: u16 = 64;
/// The longest gap in packets whose end time tells: numbers have 16 bits.
const GAP_MAX: u64 = 60_000;

/// The numbers of one stream. Of each packet they are told the packet times since the newest one, by its time stamp.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    window: SequenceWindow,
    beginnings: RestartWatch,
}

impl Numbers {
    /// Tells the newest `packets` packets apart, or more.
    pub(super) fn new(packets: usize) -> Numbers {
        Numbers { window: SequenceWindow::new(packets), beginnings: RestartWatch::default() }
    }

    /// Counts a packet; returns its number, and what that tells.
    pub(super) fn count(&mut self, sequence: u16, since_newest: i64) -> (u64, Seen) {
        let packets = u64::try_from(since_newest).ok().filter(|packets| *packets <= GAP_MAX);
        let packets = packets.filter(|_| self.agree(sequence, since_newest));
        let around = self.window.newest().zip(packets).map(|(newest, packets)| newest + packets);
        let number = self.window.number(sequence, 0, around);
        // What the network delays, or a second path brings again, is of a time before the newest packet.
        if since_newest > 0 && RestartWatch::is_behind(number, self.window.newest()) {
            let Some(before) = self.beginnings.handle_behind(number) else { return (number, Seen::Held) };
            self.restart();
            self.window.insert(before);
        }
        (number, self.window.insert(number))
    }

    /// The number of a packet that was sent again; `None` before the first one of the stream.
    pub(super) fn number_of_original(&self, sequence: u16) -> Option<u64> {
        self.window.number_of_original(sequence, 0)
    }

    /// Counts a packet that was sent again; returns what its number tells.
    pub(super) fn count_again(&mut self, number: u64) -> Seen {
        self.window.insert_again(number)
    }

    /// Counts a packet that came in the stream as one that was sent again, if it was asked for.
    pub(super) fn count_if_asked(&mut self, number: u64) {
        self.window.count_if_asked(number);
    }

    /// Which numbers came.
    pub(super) fn window(&self) -> &SequenceWindow {
        &self.window
    }

    pub(super) fn window_mut(&mut self) -> &mut SequenceWindow {
        &mut self.window
    }

    /// Whether a packet beyond a jump of the times is one of the same sender, whose numbers go on or jump as far.
    pub(super) fn go_on(&self, sequence: u16, since_newest: i64) -> bool {
        (1..=CONTINUED_PACKETS_MAX).contains(&self.ahead(sequence)) || self.agree(sequence, since_newest)
    }

    /// The sender begins anew: numbers before and behind have nothing to do with each other.
    pub(super) fn restart(&mut self) {
        self.beginnings.finish();
        self.window.finish();
    }

    /// The highest number, with its wraps in the upper half.
    pub(super) fn highest(&self) -> u32 {
        // The window counts wraps on beyond 32 bits.
        self.window.newest().unwrap_or_default() as u32
    }

    /// All packets until now.
    pub(super) fn totals(&self) -> PacketTotals {
        self.window.totals()
    }

    /// By how much a number is ahead of the highest one, in 16 bits.
    pub(super) fn ahead(&self, sequence: u16) -> u16 {
        // The lower half is what packets carry.
        sequence.wrapping_sub(self.highest() as u16)
    }

    fn agree(&self, sequence: u16, since_newest: i64) -> bool {
        let difference = self.ahead(sequence).wrapping_sub(since_newest as u16) as i16;
        difference.unsigned_abs() <= DIFFERENCE_MAX
    }
}
