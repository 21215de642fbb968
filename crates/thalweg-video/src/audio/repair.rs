//! Missing packets of sound that are asked for again while they can still be played (RFC 4585 §6.2.1).

use std::time::Duration;

use thalweg_base::time::Instant;

use super::numbers::Numbers;
use crate::receiver::{NackItem, Repair, Repairs, RequestCounters, Seen};

/// The requests of a receiver of sound, and what came of them.
#[derive(Clone, Debug)]
pub(super) struct SoundRepairs {
    /// `None` where nothing is asked for.
    repairs: Option<Repairs>,
    has_own_stream: bool,
    repetitions: u64,
    needless: u64,
}

/// Where a packet lies in its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoundPlace {
    pub(super) number: u64,
    /// Its first sample.
    pub(super) first: i64,
    /// Samples of each channel in it.
    pub(super) frames: i64,
}

impl SoundRepairs {
    /// Requests as `repair` says, of packets that are played within `reach` after the next one came.
    pub(super) fn new(repair: Repair, reach: Duration) -> SoundRepairs {
        let repairs = match repair {
            Repair::Off => None,
            Repair::Nack { reorder_window, .. } => Some(Repairs::new(reorder_window, reach)),
        };
        SoundRepairs { repairs, has_own_stream: repair.retransmission().is_some(), repetitions: 0, needless: 0 }
    }

    /// Notes a packet of the stream: what is missing before it is asked for if its samples, the packets being equal, are not played
    /// before `next`.
    pub(super) fn handle_packet(
        &mut self,
        now: Instant,
        seen: &Seen,
        place: SoundPlace,
        next: i64,
        numbers: &mut Numbers,
    ) {
        let (Seen::New(gap), Some(repairs)) = (seen, &mut self.repairs) else { return };
        if gap.is_empty() && !self.has_own_stream {
            numbers.count_if_asked(place.number);
        }
        let ahead = u64::try_from((place.first - next) / place.frames).unwrap_or(0);
        let first = place.number.saturating_sub(ahead).clamp(gap.start, gap.end);
        repairs.counters.given_up += first - gap.start;
        for number in first..gap.end {
            // Numbers of 16 bits, counted on, stay far below 63.
            let behind = place.number as i64 - number as i64;
            repairs.handle_gap(now, number..number + 1, place.first - behind * place.frames);
        }
    }

    /// Notes a packet that was sent again, and what its number tells.
    pub(super) fn handle_repetition(&mut self, now: Instant, number: u64, seen: &Seen) {
        self.repetitions += 1;
        self.needless += u64::from(!matches!(seen, Seen::New(_)));
        if let Some(repairs) = &mut self.repairs {
            repairs.handle_repetition(now, number);
        }
    }

    /// Takes a round trip that reports measured.
    pub(super) fn handle_round_trip(&mut self, round_trip: Duration) {
        if let Some(repairs) = &mut self.repairs {
            repairs.handle_round_trip(round_trip);
        }
    }

    /// The list of what is asked for now; `due` tells when a sample is played.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        numbers: &mut Numbers,
        due: impl Fn(i64) -> Instant,
    ) -> Option<&[NackItem]> {
        self.repairs.as_mut()?.poll(now, numbers.window_mut(), |first| Some(due(first)))
    }

    /// When the next list is due; [`Instant::NEVER`] without anything missing.
    pub(super) fn due(&mut self, numbers: &Numbers) -> Instant {
        self.repairs.as_mut().map_or(Instant::NEVER, |repairs| repairs.due(numbers.window()))
    }

    /// Forgets what is missing: the stream began anew.
    pub(super) fn reset(&mut self) {
        if let Some(repairs) = &mut self.repairs {
            repairs.reset();
        }
    }

    /// What was asked for, and what came of it.
    pub(super) fn counters(&self) -> RequestCounters {
        let made = self.repairs.as_ref().map(|repairs| repairs.counters).unwrap_or_default();
        RequestCounters {
            lists: made.lists,
            requests: made.requests,
            given_up: made.given_up,
            repetitions: self.repetitions,
            needless: self.needless,
        }
    }
}
