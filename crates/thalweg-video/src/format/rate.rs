//! Exact frame rates.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::FormatError;

/// Ticks a second of the RTP clock of video (RFC 4175 §4.1).
const CLOCK_HZ: u128 = 90_000;
/// Frames a second at least: slower streams are pictures.
pub(super) const HERTZ_MIN: u32 = 1;
/// Frames a second at most.
pub(super) const HERTZ_MAX: u32 = 1000;
/// The largest number of the fraction; ST 2110-20 asks for the smallest numbers, and broadcast needs 120000/1001.
pub(super) const NUMBER_MAX: u32 = 1_000_000;

/// Frames a second as an exact fraction in lowest terms, such as 30000/1001.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRate {
    numerator: u32,
    denominator: u32,
}

impl FrameRate {
    /// 30000/1001, the "29.97" of television.
    pub const NTSC: FrameRate = FrameRate { numerator: 30_000, denominator: 1001 };
    /// 25 frames a second.
    pub const PAL: FrameRate = FrameRate { numerator: 25, denominator: 1 };

    /// The rate of `numerator` frames in `denominator` seconds.
    ///
    /// # Errors
    ///
    /// The rate is below 1 or above 1,000 frames a second, or one of the numbers is 0 or above a million.
    pub fn new(numerator: u32, denominator: u32) -> Result<FrameRate, FormatError> {
        let numbers = 1..=NUMBER_MAX;
        let are_small = numbers.contains(&numerator) && numbers.contains(&denominator);
        if !are_small || numerator < denominator * HERTZ_MIN || numerator > denominator.saturating_mul(HERTZ_MAX) {
            return Err(FormatError::Rate { numerator, denominator });
        }
        let divisor = common_divisor(numerator, denominator);
        Ok(FrameRate { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Frames in [`FrameRate::denominator`] seconds.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// Seconds in which [`FrameRate::numerator`] frames pass.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// Frames a second, rounded.
    pub fn hertz(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// The time that `frames` frames take, to the nanosecond below.
    pub fn time_of(self, frames: u64) -> Duration {
        self.time_of_halves(2 * u128::from(frames))
    }

    /// The time that `halves` half frames take, to the nanosecond below; fields are half a frame apart.
    pub(crate) fn time_of_halves(self, halves: u128) -> Duration {
        let nanos = halves * u128::from(self.denominator) * 500_000_000 / u128::from(self.numerator);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The whole frames that have passed after `time`.
    pub fn frames_in(self, time: Duration) -> u64 {
        let frames = time.as_nanos() * u128::from(self.numerator) / (u128::from(self.denominator) * 1_000_000_000);
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Ticks of the 90 kHz clock that `halves` half frames take, rounded down: exact for 30000/1001 (3003 a frame),
    /// and never off by more than a tick in any length of time.
    pub fn ticks_of_halves(self, halves: u64) -> u64 {
        let ticks = u128::from(halves) * u128::from(self.denominator) * CLOCK_HZ / (2 * u128::from(self.numerator));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Ticks of the 90 kHz clock between frames, rounded to nearest; at least 90.
    pub fn frame_ticks(self) -> u32 {
        let (numerator, denominator) = (u64::from(self.numerator), u64::from(self.denominator));
        u32::try_from((90_000 * denominator + numerator / 2) / numerator).expect("a frame takes a second at most")
    }
}

impl fmt::Display for FrameRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(formatter, "{}", self.numerator),
            denominator => write!(formatter, "{}/{denominator}", self.numerator),
        }
    }
}

impl FromStr for FrameRate {
    type Err = FormatError;

    /// Reads `25` or `30000/1001`; never a decimal fraction, which would not be exact.
    fn from_str(text: &str) -> Result<FrameRate, FormatError> {
        let expected = "frames a second, exactly: 25 or 30000/1001";
        let number = |text: &str| text.parse().map_err(|_| FormatError::Unreadable { what: "rate", expected });
        match text.split_once('/') {
            Some((numerator, denominator)) => FrameRate::new(number(numerator)?, number(denominator)?),
            None => FrameRate::new(number(text)?, 1),
        }
    }
}

fn common_divisor(mut left: u32, mut right: u32) -> u32 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}
