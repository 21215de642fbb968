//! Monotonic protocol time and the wire's timestamps.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// The duration that DDS calls infinite.
pub const INFINITE: Duration = Duration::MAX;

/// The nanoseconds of a duration; saturates at about 584 years.
#[inline]
pub const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// A point in monotonic protocol time: nanoseconds since an arbitrary zero chosen by the driver of the participant.
///
/// Never compared with wall-clock time: boards boot in 1970 and clocks step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The earliest instant.
    pub const ZERO: Instant = Instant(0);
    /// An instant that never comes.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after zero.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since zero.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero when `earlier` is later than `self`.
    #[inline]
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at [`Instant::NEVER`], so that an infinite duration leads there.
    #[inline]
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// Saturates at [`Instant::ZERO`].
    #[inline]
    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(nanos(duration)))
    }
}

/// Wall-clock time of a sample as it travels: seconds since 1970 and a binary fraction (`Time_t`, RTPS 2.5 §9.3.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: u32,
    /// Fraction of a second in units of 2⁻³² s.
    pub fraction: u32,
}

impl Timestamp {
    /// The value that means "no time" on the wire.
    pub const INVALID: Timestamp = Timestamp { seconds: u32::MAX, fraction: u32::MAX };

    /// Converts the time since 1970; rounds to the nearest fraction.
    pub fn from_unix(since_epoch: Duration) -> Timestamp {
        let (seconds, fraction) = to_fraction(since_epoch, NANOS_IN_SECOND / 2);
        Timestamp { seconds, fraction }
    }

    /// Time since 1970, to the nearest nanosecond.
    pub fn to_unix(self) -> Duration {
        from_fraction(self.seconds, self.fraction)
    }
}

/// Offset of wall-clock time from protocol time, as the driver of a participant measured it last.
///
/// It serves two needs of the wire only: time stamps of our discovery data, and the age of samples that expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochOffset {
    nanos: i64,
}

impl EpochOffset {
    /// The offset of a clock that shows `wall_clock` at `now`.
    pub fn new(now: Instant, wall_clock: Timestamp) -> EpochOffset {
        let wall = i64::try_from(wall_clock.to_unix().as_nanos()).unwrap_or(i64::MAX);
        EpochOffset { nanos: wall.saturating_sub_unsigned(now.0) }
    }

    /// The wall-clock time at `at`.
    pub fn timestamp(self, at: Instant) -> Timestamp {
        Timestamp::from_unix(Duration::from_nanos(at.0.saturating_add_signed(self.nanos)))
    }

    /// The instant at which the wall clock shows `timestamp`; [`Instant::ZERO`] for earlier ones.
    pub fn instant(self, timestamp: Timestamp) -> Instant {
        let wall = i64::try_from(timestamp.to_unix().as_nanos()).unwrap_or(i64::MAX);
        Instant(u64::try_from(wall.saturating_sub(self.nanos)).unwrap_or(0))
    }

    /// How long before `now` the wall clock showed `timestamp`, also where that was before the zero of protocol time; zero for times
    /// to come.
    pub fn age(self, now: Instant, timestamp: Timestamp) -> Duration {
        let shown = self.nanos.saturating_add_unsigned(now.0);
        let wall = i64::try_from(timestamp.to_unix().as_nanos()).unwrap_or(i64::MAX);
        Duration::from_nanos(u64::try_from(shown.saturating_sub(wall)).unwrap_or(0))
    }
}

/// Which of the two neighbours on the wire a duration becomes that lies between them: both read as the same nanosecond. Implementations
/// compare what is offered with what is requested after rounding of their own, so a writer rounds down and a reader up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The shorter one.
    Down,
    /// The longer one.
    Up,
}

/// Splits a duration into seconds and units of 2⁻³² s, as `Duration_t` carries it.
///
/// [`INFINITE`] and anything beyond the wire's range becomes `0x7fffffff, 0xffffffff` (RTPS 2.5 §9.3.2.3).
pub fn duration_to_wire(duration: Duration, rounding: Rounding) -> (i32, u32) {
    if duration == INFINITE || duration.as_secs() >= i32::MAX as u64 {
        return (i32::MAX, u32::MAX);
    }
    let added = if rounding == Rounding::Up { NANOS_IN_SECOND - 1 } else { 0 };
    let (seconds, fraction) = to_fraction(duration, added);
    (seconds as i32, fraction)
}

/// Reverses [`duration_to_wire`]; negative durations read as zero.
pub fn duration_from_wire(seconds: i32, fraction: u32) -> Duration {
    match seconds {
        i32::MAX => INFINITE,
        s if s < 0 => Duration::ZERO,
        s => from_fraction(s as u32, fraction),
    }
}

/// Seconds and fraction of a duration, with so many parts of `NANOS_IN_SECOND` of a fraction added.
fn to_fraction(duration: Duration, added: u64) -> (u32, u32) {
    let fraction = ((u64::from(duration.subsec_nanos()) << 32) + added) / NANOS_IN_SECOND;
    // 999_999_999.9 ns would round up to a whole second; staying just below keeps the seconds right.
    (duration.as_secs() as u32, fraction.min(u64::from(u32::MAX)) as u32)
}

fn from_fraction(seconds: u32, fraction: u32) -> Duration {
    let nanos = (u64::from(fraction) * NANOS_IN_SECOND + (1 << 31)) >> 32;
    // The last fraction would round up to a whole second; staying below keeps the seconds right in both directions.
    Duration::from_secs(u64::from(seconds)) + Duration::from_nanos(nanos.min(999_999_999))
}

const NANOS_IN_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_durations_survive_a_round_trip_to_the_nanosecond() {
        for nanos in [0, 1, 999_999_999, 100_000_000, 250_000_000, 1_500_000_001] {
            let duration = Duration::from_nanos(nanos);
            for rounding in [Rounding::Down, Rounding::Up] {
                let (seconds, fraction) = duration_to_wire(duration, rounding);
                assert_eq!(duration_from_wire(seconds, fraction), duration, "{nanos} ns");
            }
        }
        let longest = duration_from_wire(i32::MAX - 1, u32::MAX);
        assert_eq!(longest, Duration::new(i32::MAX as u64 - 1, 999_999_999), "the seconds stay and it is not infinite");
        let (seconds, fraction) = duration_to_wire(longest, Rounding::Up);
        assert_eq!(duration_from_wire(seconds, fraction), longest);
        assert_eq!(duration_to_wire(Duration::from_millis(250), Rounding::Down), (0, 1 << 30));
        assert_eq!(duration_to_wire(Duration::from_millis(300), Rounding::Down), (0, 1_288_490_188), "…8.8");
        assert_eq!(duration_to_wire(Duration::from_millis(300), Rounding::Up), (0, 1_288_490_189));
        assert_eq!(duration_to_wire(INFINITE, Rounding::Down), (i32::MAX, u32::MAX));
        assert_eq!(duration_from_wire(i32::MAX, u32::MAX), INFINITE);
    }

    #[test]
    fn an_offset_leads_there_and_back() {
        let wall = Timestamp::from_unix(Duration::from_secs(1_800_000_000));
        let now = Instant::from_nanos(5_000_000_000);
        let offset = EpochOffset::new(now, wall);
        assert_eq!((offset.timestamp(now), offset.instant(wall)), (wall, now));
        let later = now + Duration::from_millis(250);
        assert_eq!(offset.instant(offset.timestamp(later)), later);
        assert_eq!(offset.instant(Timestamp::default()), Instant::ZERO, "before the zero of protocol time");
        // A board that boots in 1970 has run for longer than its clock says.
        let early = EpochOffset::new(now, Timestamp { seconds: 1, fraction: 0 });
        assert_eq!(early.instant(Timestamp { seconds: 2, fraction: 0 }), now + Duration::from_secs(1));
        assert_eq!(early.timestamp(Instant::ZERO), Timestamp::default());
    }

    #[test]
    fn an_age_is_known_beyond_the_zero_of_protocol_time() {
        let wall = Duration::from_secs(1_800_000_000);
        let now = Instant::from_nanos(5_000_000_000);
        let offset = EpochOffset::new(now, Timestamp::from_unix(wall));
        let hour = Duration::from_secs(3_600);
        assert_eq!(offset.age(now, Timestamp::from_unix(wall - hour)), hour);
        assert_eq!(offset.age(now + hour, Timestamp::from_unix(wall - hour)), hour * 2);
        assert_eq!(offset.age(now, Timestamp::default()), wall);
        assert_eq!(offset.age(now, Timestamp::from_unix(wall)), Duration::ZERO);
        assert_eq!(offset.age(now, Timestamp::from_unix(wall + hour)), Duration::ZERO, "it is to come");
        let early = EpochOffset::new(now, Timestamp { seconds: 1, fraction: 0 });
        assert_eq!(early.age(now, Timestamp::default()), Duration::from_secs(1));
    }

    #[test]
    fn infinite_durations_lead_to_never() {
        assert_eq!(Instant::from_nanos(5) + INFINITE, Instant::NEVER);
    }
}
