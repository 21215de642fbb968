//! When frames and their packets are due.

use std::time::Duration;

use thalweg_base::time::{Instant, nanos};

use super::batching::Batches;
use crate::format::{Field, FrameRate};
use crate::rfc4175::PacketPlan;

/// Batches that may follow each other at once after a delay. One is what a punctual sender needs; some more carry a
/// sender over timers that are coarser than its batches, and are less than a receiver's socket holds by far.
const CATCH_UP_BATCHES: u64 = 4;

/// The time of each frame, in whole frame times since the first one.
#[derive(Debug)]
pub(super) struct FrameClock {
    rate: FrameRate,
    first: Option<Instant>,
    next_index: u64,
}

impl FrameClock {
    pub(super) fn new(rate: FrameRate, first: Option<Instant>) -> FrameClock {
        FrameClock { rate, first, next_index: 0 }
    }

    pub(super) fn next_start(&self) -> Option<Instant> {
        self.first.map(|_| self.start(self.next_index))
    }

    /// When frame `index` is due; [`Instant::NEVER`] before there was a first one.
    pub(super) fn start(&self, index: u64) -> Instant {
        self.field_start(index, Field::First)
    }

    pub(super) fn field_start(&self, index: u64, field: Field) -> Instant {
        let halves = 2 * u128::from(index) + u128::from(field.bit());
        self.first.map_or(Instant::NEVER, |first| first + self.rate.time_of_halves(halves))
    }

    /// Ticks of 90 kHz since the first frame, wrapping; 0 before it.
    pub(super) fn ticks_at(&self, now: Instant) -> u32 {
        let since = now.since(self.first.unwrap_or(now)).as_nanos();
        (since * 9 / 100_000) as u32
    }

    /// The place of a frame that is given at `now`, and the places that stay empty before it.
    pub(super) fn take_index(&mut self, now: Instant) -> (u64, u64) {
        let first = *self.first.get_or_insert(now);
        let index = if now > self.start(self.next_index + 1) {
            // The next whole frame time: one that is begun already would be late from its first packet on.
            self.rate.frames_in(now.since(first)) + 1
        } else {
            self.next_index
        };
        let missed = index - self.next_index;
        self.next_index = index + 1;
        (index, missed)
    }
}

/// Spreads the packets of a field over its active part, and bounds how fast a late sender catches up.
#[derive(Debug)]
pub(super) struct Pacer {
    active: Duration,
    field_packets: u64,
    /// The least time that a packet takes on average: four fifths of its regular time.
    packet_nanos_min: u64,
    tolerance: Duration,
    /// When the packets that were given out would end at the highest rate.
    busy_until: Instant,
}

impl Pacer {
    pub(super) fn new(plan: &PacketPlan, batches: &Batches, active_per_mille: u16) -> Pacer {
        let fields = u32::from(plan.format().scan().fields());
        let active = plan.format().frame_time() * u32::from(active_per_mille) / (1000 * fields);
        let field_packets = plan.field_packets() as u64;
        let packet_nanos_min = nanos(active) * 4 / 5 / field_packets;
        let tolerance = Duration::from_nanos(packet_nanos_min * u64::from(batches.longest()) * (CATCH_UP_BATCHES - 1));
        Pacer { active, field_packets, packet_nanos_min, tolerance, busy_until: Instant::ZERO }
    }

    /// When a batch is due that begins with `packet` of a field that begins at `start`.
    pub(super) fn due(&self, start: Instant, packet: u32) -> Instant {
        let share = u128::from(nanos(self.active)) * u128::from(packet) / u128::from(self.field_packets);
        let scheduled = start + Duration::from_nanos(u64::try_from(share).expect("less than a frame time"));
        scheduled.max(self.busy_until - self.tolerance)
    }

    /// Notes that `count` packets were given out at `now`.
    pub(super) fn record(&mut self, now: Instant, count: u32) {
        self.busy_until = self.busy_until.max(now) + Duration::from_nanos(self.packet_nanos_min * u64::from(count));
    }
}
