//! Samples as readers hand them over: what may be held of them, and when they came.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thalweg::types::Instant;
use thalweg::{Payload, clock};

/// The payload of a sample that waits for long. A short one is copied, as it would keep the whole buffer of its datagram.
pub fn held(payload: &Payload) -> Payload {
    match payload.len() {
        0..COPIED_MAX => Payload::from(&payload[..]),
        _ => payload.clone(),
    }
}

/// The wall clock by which samples come: where the host's is set forward, so is this one; where that is set back, this one goes on, so that
/// what comes later has the later stamp.
#[derive(Debug, Default)]
pub struct ReceptionClock {
    /// `None` before the first look.
    offsets: Mutex<Option<ClockOffsets>>,
}

/// What is to be added to the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct ClockOffsets {
    /// For the stamps.
    stamps: i128,
    /// For the host's wall clock, as it was looked at last.
    wall: i128,
}

/// The clocks at one moment, to tell by the wall clock when samples came.
#[derive(Clone, Copy, Debug)]
pub struct ReceptionTime {
    offset_ns: i128,
}

impl ReceptionClock {
    /// The clocks now.
    pub fn read(&self) -> ReceptionTime {
        self.at(clock::now(), clock::wall_clock().to_unix())
    }

    /// How far the host's wall clock is behind the stamps, since it was set back; zero when it is not.
    pub fn behind(&self) -> Duration {
        let offsets = *self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = offsets.map_or(0, |offsets| offsets.stamps - offsets.wall);
        Duration::from_nanos(u64::try_from(behind).unwrap_or(0))
    }

    fn at(&self, now: Instant, since_epoch: Duration) -> ReceptionTime {
        let wall = i128::try_from(since_epoch.as_nanos()).unwrap_or(i128::MAX) - i128::from(now.as_nanos());
        let mut offsets = self.offsets.lock().unwrap_or_else(PoisonError::into_inner);
        let before = offsets.map(|offsets| offsets.stamps);
        let stamps = before.filter(|before| wall + STEP_NS < *before).unwrap_or(wall);
        *offsets = Some(ClockOffsets { stamps, wall });
        ReceptionTime { offset_ns: stamps }
    }
}

impl ReceptionTime {
    /// The reception of a sample in nanoseconds since 1970.
    pub fn log_time_ns(&self, received: Instant) -> u64 {
        let log_time = i128::from(received.as_nanos()) + self.offset_ns;
        u64::try_from(log_time.max(0)).unwrap_or(u64::MAX)
    }
}

/// Bytes of samples that are copied rather than held in the buffer in which they came.
const COPIED_MAX: usize = 16 << 10;
/// Distances of the two clocks up to this are noise: they are read one after the other, and a thread may stand still in between.
const STEP_NS: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_that_is_set_back_sets_no_stamp_back() {
        let clock = ReceptionClock::default();
        let begun_s = 20_000 * 86_400_i64;
        // Each is a second after the one before; the wall clock is so many seconds ahead of where it began.
        let look = |number: i64, ahead_s: i64| {
            let now = Instant::from_nanos((5 + number).unsigned_abs() * 1_000_000_000);
            let wall = Duration::from_secs((begun_s + number + ahead_s).unsigned_abs());
            let stamp = clock.at(now, wall).log_time_ns(now) / 1_000_000_000;
            stamp.cast_signed() - begun_s
        };
        let ahead = [0, 0, 3_600, 3_600, 0, -60];
        let seconds: Vec<i64> = (0..).zip(ahead).map(|(number, ahead_s)| look(number, ahead_s)).collect();
        assert_eq!(seconds, [0, 1, 3_602, 3_603, 3_604, 3_605]);
        assert_eq!(clock.behind(), Duration::from_secs(3_660));
        assert_eq!(look(6, 3_700), 3_706, "it is ahead of the stamps again");
        assert_eq!(clock.behind(), Duration::ZERO);
    }
}
