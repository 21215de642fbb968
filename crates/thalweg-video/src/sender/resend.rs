//! Packets that are sent again because a receiver asked for them.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::history::{FRAMES_KEPT, SentFrame, SentFrames};
use super::{BATCH_OCTETS_MAX, SenderCounters, VideoSender};
use crate::rfc4175::PacketPlan;

/// Packets that wait to be sent again, at most: more than a tenth of a frame of 4K in small packets, which is what a frame earns.
pub const RESEND_QUEUE_MAX: usize = 2048;
/// Repeated packets that leave together at most: as many as a "wide" sender's regular ones (ST 2110-21).
const RESEND_BATCH_MAX: usize = 16;
/// Batches of repeated packets that may follow each other at once.
const RESEND_BURST_BATCHES: u64 = 2;
/// The part of the stream's octets that repetitions may add: one in this many.
const RESEND_DIVISOR: u64 = 10;
/// How fast they may add them, as a part of the stream's rate: one in this many. After a pause of either end or of the network many
/// are asked for at once, and a tenth of the rate would take longer than they are of use.
const RESEND_RATE_DIVISOR: u64 = 4;
/// Frames whose tenth may be saved up for repetitions: those that are kept.
const SAVED_FRAMES_MAX: u64 = FRAMES_KEPT as u64 + 1;
/// Octets before the payload of a repetition: its original number (RFC 4588 §4).
const ORIGINAL_NUMBER_OCTETS: usize = 2;

/// How packets are sent again that a receiver asked for (RFC 4585). Repetitions add at most a tenth to what was sent, and at most a
/// quarter to its rate: requests that go on while the stream pauses are not answered for long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resend {
    /// Not at all; requests are counted.
    #[default]
    Never,
    /// Unchanged, in the same stream: for receivers without RFC 4588. They cannot tell repetitions from delayed packets.
    Same,
    /// In a stream of their own, each with its original number (RFC 4588 §4).
    Retransmission {
        /// The payload type of the stream of repetitions.
        payload_type: u8,
        /// Its synchronization source.
        ssrc: u32,
        /// The number of its first packet.
        first_sequence: u16,
    },
}

impl Resend {
    /// The octets that a repetition has more than its original: plan datagrams that leave room for them.
    pub const fn added_octets(self) -> usize {
        match self {
            Resend::Retransmission { .. } => ORIGINAL_NUMBER_OCTETS,
            Resend::Never | Resend::Same => 0,
        }
    }

    pub(super) fn payload_type(self) -> Option<u8> {
        match self {
            Resend::Retransmission { payload_type, .. } => Some(payload_type),
            Resend::Never | Resend::Same => None,
        }
    }
}

impl VideoSender {
    /// Sends the newest packet again to receivers that have asked for packets before: behind the last one of a stream nothing else would
    /// tell them that it is missing.
    pub fn repeat_newest(&mut self, now: Instant) {
        if self.counters.packets_resent > 0 {
            let newest = self.next_sequence.wrapping_sub(1);
            self.resends.push(now, newest, &mut self.frames, &mut self.counters);
        }
    }
}

/// The queue of repetitions and the limit of their rate.
#[derive(Debug)]
pub(super) struct Resends {
    resend: Resend,
    queue: VecDeque<u32>,
    next_sequence: u16,
    octet_nanos: f64,
    tolerance: Duration,
    /// When the repetitions so far would end at the highest rate.
    busy_until: Instant,
    allowance: Allowance,
}

/// What repetitions may still add, in tenths of octets: each octet of the stream earns one. Negative after a batch that added more.
#[derive(Debug)]
struct Allowance {
    tenths: i64,
    tenths_max: i64,
}

impl Resends {
    /// Goes on for frames that are cut in another way.
    pub(super) fn replan(&mut self, plan: &PacketPlan) {
        let mut anew = Resends::new(plan, self.resend);
        // What was sent before counts: plans may follow each other quickly.
        anew.allowance.tenths = anew.allowance.tenths.min(self.allowance.tenths);
        *self = Resends { next_sequence: self.next_sequence, busy_until: self.busy_until, ..anew };
    }

    pub(super) fn new(plan: &PacketPlan, resend: Resend) -> Resends {
        let frame_octets = plan.frame_datagram_octets() as u64;
        let octets_per_second = frame_octets as f64 * plan.format().rate().hertz();
        let octet_nanos = 1e9 * RESEND_RATE_DIVISOR as f64 / octets_per_second;
        let batch_octets = u64::from(plan.datagram_octets_max()) * RESEND_BATCH_MAX as u64;
        let tolerance = batch_octets * (RESEND_BURST_BATCHES - 1);
        let queue = if resend == Resend::Never { VecDeque::new() } else { VecDeque::with_capacity(RESEND_QUEUE_MAX) };
        let next_sequence = match resend {
            Resend::Retransmission { first_sequence, .. } => first_sequence,
            Resend::Never | Resend::Same => 0,
        };
        let tolerance = Duration::from_nanos((tolerance as f64 * octet_nanos) as u64);
        let burst = batch_octets * RESEND_BURST_BATCHES * RESEND_DIVISOR;
        // A frame has at most FRAME_OCTETS_MAX octets.
        let [burst, saved] = [burst, frame_octets * SAVED_FRAMES_MAX].map(|tenths| tenths as i64);
        let allowance = Allowance { tenths: burst, tenths_max: burst.max(saved) };
        Resends { resend, queue, next_sequence, octet_nanos, tolerance, busy_until: Instant::ZERO, allowance }
    }

    /// Notes that the stream sent so many octets.
    pub(super) fn note_stream(&mut self, octets: u64) {
        self.allowance.tenths = self.allowance.tenths.saturating_add_unsigned(octets).min(self.allowance.tenths_max);
    }

    /// Takes a request for one packet that came at `asked`.
    pub(super) fn push(
        &mut self,
        asked: Instant,
        sequence: u32,
        frames: &mut SentFrames,
        counters: &mut SenderCounters,
    ) {
        let Some((frame, packet)) = frames.find(sequence) else {
            counters.requests_unknown += 1;
            return;
        };
        let is_taken = self.resend != Resend::Never
            && self.queue.len() < RESEND_QUEUE_MAX
            && frames.get_mut(frame).mark_pending(packet, asked);
        if is_taken {
            self.queue.push_back(sequence);
        } else {
            counters.requests_refused += 1;
        }
    }

    /// When the next repetitions may leave; `None` also until the stream has sent more. Forgets those whose frames are gone.
    pub(super) fn due(&mut self, frames: &SentFrames, counters: &mut SenderCounters) -> Option<Instant> {
        while let Some(sequence) = self.queue.front() {
            if frames.find(*sequence).is_some() {
                return (self.allowance.tenths > 0).then(|| self.busy_until - self.tolerance);
            }
            self.queue.pop_front();
            counters.requests_unknown += 1;
        }
        None
    }

    /// Takes the next packets of one frame and one size; tells `each` the frame, the packet's place and the number of
    /// the repetition. Returns the frame's index.
    pub(super) fn take(
        &mut self,
        now: Instant,
        frames: &mut SentFrames,
        plan: &PacketPlan,
        mut each: impl FnMut(&SentFrame, usize, u16),
    ) -> usize {
        let added = self.resend.added_octets();
        let mut taken: Option<(usize, u16)> = None;
        let (mut count, mut octets) = (0, 0);
        while let Some((index, packet)) = self.queue.front().and_then(|sequence| frames.find(*sequence)) {
            let size = plan.packet(packet % plan.field_packets()).0.datagram_octets;
            let datagram_octets = usize::from(size) + added;
            let is_full = count == RESEND_BATCH_MAX || octets + datagram_octets > BATCH_OCTETS_MAX;
            if is_full || taken.is_some_and(|taken| taken != (index, size)) {
                break;
            }
            self.queue.pop_front();
            frames.get_mut(index).mark_sent(packet, now);
            each(frames.get(index), packet, self.next_sequence);
            self.next_sequence = self.next_sequence.wrapping_add(1);
            taken = Some((index, size));
            count += 1;
            octets += datagram_octets;
        }
        self.allowance.tenths = self.allowance.tenths.saturating_sub_unsigned(octets as u64 * RESEND_DIVISOR);
        let cost = Duration::from_nanos((octets as f64 * self.octet_nanos) as u64);
        self.busy_until = self.busy_until.max(now) + cost;
        taken.expect("a repetition is due").0
    }
}
