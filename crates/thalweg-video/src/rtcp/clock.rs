//! Wall-clock time of RTCP, and how it maps to the time stamps of a stream.

use std::time::Duration;

use thalweg_base::time::Instant;

/// Seconds from 1900, where NTP begins, to 1970.
const UNIX_EPOCH_SECONDS: u64 = 2_208_988_800;

/// Wall-clock time as NTP counts it: seconds since 1900 and a fraction, 32 bits each (RFC 3550 §4).
///
/// It wraps in 2036; differences stay right across that moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// The time at `since_1970`, to the nearest fraction below.
    pub fn from_unix(since_1970: Duration) -> NtpTime {
        let seconds = since_1970.as_secs().wrapping_add(UNIX_EPOCH_SECONDS);
        let fraction = (u64::from(since_1970.subsec_nanos()) << 32) / 1_000_000_000;
        NtpTime((seconds << 32) | fraction)
    }

    /// The middle 32 bits, as LSR and LRR carry them: seconds modulo 65,536 and 1/65,536 of a second (RFC 3550 §6.4.1).
    pub fn compact(self) -> u32 {
        (self.0 >> 16) as u32
    }

    /// Nanoseconds from `earlier` to `self`, rounded; negative when `earlier` is later. Right within 68 years.
    pub fn nanos_since(self, earlier: NtpTime) -> i64 {
        let difference = i128::from(self.0.wrapping_sub(earlier.0) as i64);
        ((difference * 1_000_000_000 + (1 << 31)) >> 32) as i64
    }

    /// The time `nanos` nanoseconds later, or earlier when negative.
    pub fn offset_by(self, nanos: i64) -> NtpTime {
        let difference = ((i128::from(nanos) << 32) + 500_000_000).div_euclid(1_000_000_000) as i64;
        NtpTime(self.0.wrapping_add_signed(difference))
    }
}

/// What the wall clock showed at an instant of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    at: Instant,
    ntp: NtpTime,
}

impl WallClock {
    /// A wall clock that shows `ntp` at `at` and runs at the speed of the monotonic clock.
    pub fn new(at: Instant, ntp: NtpTime) -> WallClock {
        WallClock { at, ntp }
    }

    /// What it shows at `now`.
    pub fn ntp(&self, now: Instant) -> NtpTime {
        self.ntp.offset_by(signed_nanos(now, self.at))
    }

    /// When it shows `ntp`; [`Instant::ZERO`] for times before the monotonic clock began.
    pub fn instant(&self, ntp: NtpTime) -> Instant {
        let nanos = i128::from(self.at.as_nanos()) + i128::from(ntp.nanos_since(self.ntp));
        Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// A pair of an RTP time stamp and the wall-clock time at which it was sampled: what a sender report says of its stream
/// (RFC 3550 §6.4.1). Streams of one sender are brought together by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaClock {
    /// Wall-clock time of the sender.
    pub ntp: NtpTime,
    /// RTP time stamp at that time.
    pub rtp: u32,
    /// Ticks of the RTP time stamp a second; never zero.
    pub rate_hz: u32,
}

impl MediaClock {
    /// The mapping of a report; none for a rate of zero.
    pub fn new(ntp: NtpTime, rtp: u32, rate_hz: u32) -> Option<MediaClock> {
        (rate_hz > 0).then_some(MediaClock { ntp, rtp, rate_hz })
    }

    /// The sender's wall-clock time at a time stamp within half a wrap of the report's: 6.6 hours at 90 kHz.
    pub fn ntp_of(&self, rtp: u32) -> NtpTime {
        let ticks = i64::from(rtp.wrapping_sub(self.rtp) as i32);
        let rate = i64::from(self.rate_hz.max(1));
        // 2³¹ ticks times 10⁹ fits 64 bits.
        self.ntp.offset_by((ticks * 1_000_000_000 + rate / 2).div_euclid(rate))
    }

    /// The time stamp at a wall-clock time of the sender, rounded to the nearest tick.
    pub fn rtp_of(&self, ntp: NtpTime) -> u32 {
        let nanos = i128::from(ntp.nanos_since(self.ntp));
        let ticks = (nanos * i128::from(self.rate_hz) + 500_000_000).div_euclid(1_000_000_000);
        self.rtp.wrapping_add(ticks as u32)
    }
}

/// A duration in units of 1/65,536 s, as DLSR and DLRR carry it; saturates at 18 hours.
pub(super) fn to_compact(duration: Duration) -> u32 {
    u32::try_from((duration.as_nanos() << 16) / 1_000_000_000).unwrap_or(u32::MAX)
}

/// Nanoseconds of a duration in units of 1/65,536 s.
pub(super) fn compact_nanos(compact: u32) -> u64 {
    (u64::from(compact) * 1_000_000_000) >> 16
}

/// Nanoseconds from `earlier` to `later`, negative when they are the other way round.
fn signed_nanos(later: Instant, earlier: Instant) -> i64 {
    let difference = i128::from(later.as_nanos()) - i128::from(earlier.as_nanos());
    difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
