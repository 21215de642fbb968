//! When samples are to be played.

use std::time::Duration;

use thalweg_base::time::Instant;

/// How long the earliest arrival counts.
const SECONDS_OBSERVED: usize = 5;

/// How fast times of playing follow: parts of a million, which nobody hears and every clock stays within.
const SLEW_PPM: i64 = 500;

/// A difference that is not followed slowly: sound so far from its picture is noticed (ITU-R BT.1359).
const STEP_NANOS: i64 = 40_000_000;

/// Maps samples, counted from the first one, to times of playing: the earliest arrival within five seconds and a delay, or the
/// picture's times.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    delay: Duration,
    /// How long samples may wait at most, in nanoseconds.
    reach: i64,
    /// When sample 0 is to be played.
    base: Option<i64>,
    /// When the base was moved last.
    moved: Instant,
    earliest: EarliestArrival,
    picture: Option<Picture>,
    /// Whether the base has been that of the picture.
    has_met_picture: bool,
    steps: u64,
}

/// What brings sound and picture together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    /// When sample 0 would be played with the picture.
    base: i64,
    /// Whether the sound follows, or the difference is only told.
    follows: bool,
}

impl Picture {
    /// The picture's time for sample 0, from that of a recent one: `shown` is when the picture of its time is shown. All samples
    /// have this base, also when their time stamps are half a wrap away from the report that told it.
    pub(super) fn new(shown: Instant, sample: i64, follows: bool) -> Picture {
        Picture { base: signed(shown).saturating_sub(sample_nanos(sample)), follows }
    }
}

impl Timeline {
    pub(super) fn new(delay: Duration, reach: Duration) -> Timeline {
        Timeline {
            delay,
            reach: i64::try_from(reach.as_nanos()).unwrap_or(i64::MAX),
            base: None,
            moved: Instant::ZERO,
            earliest: EarliestArrival::default(),
            picture: None,
            has_met_picture: false,
            steps: 0,
        }
    }

    pub(super) fn set_picture(&mut self, picture: Option<Picture>) {
        self.picture = picture;
    }

    /// Takes the arrival of a packet that begins with a sample.
    pub(super) fn handle_arrival(&mut self, now: Instant, sample: i64) {
        self.earliest.add(now, signed(now).saturating_sub(sample_nanos(sample)));
    }

    /// Moves the times towards the earliest arrival or the picture, as far as the time since the last call allows. A large
    /// difference is a step, and so is the first one to the picture.
    pub(super) fn follow(&mut self, now: Instant) {
        let Some(target) = self.target() else { return };
        let meets_picture = self.picture_base().is_some() && !self.has_met_picture;
        self.has_met_picture |= meets_picture;
        let Some(base) = self.base else {
            (self.base, self.moved) = (Some(target), now);
            return;
        };
        let difference = target.saturating_sub(base);
        let passed = thalweg_base::time::nanos(now.since(self.moved)).min(1_000_000_000);
        let reach = (passed as i64) * SLEW_PPM / 1_000_000;
        if difference.saturating_abs() >= STEP_NANOS || (meets_picture && difference != 0) {
            self.base = Some(target);
            self.steps += 1;
        } else if reach > 0 {
            self.base = Some(base.saturating_add(difference.clamp(-reach, reach)));
        } else {
            return;
        }
        self.moved = now;
    }

    /// When a sample is to be played; never before the first packet.
    pub(super) fn due(&self, sample: i64) -> Instant {
        let due = |base: i64| u64::try_from(base.saturating_add(sample_nanos(sample))).unwrap_or_default();
        self.base.map_or(Instant::NEVER, |base| Instant::from_nanos(due(base)))
    }

    /// The first sample that is not to have been played before `now`.
    pub(super) fn sample_at(&self, now: Instant) -> Option<i64> {
        self.base.map(|base| (signed(now).saturating_sub(base) as i128 * 3).div_euclid(62_500) as i64)
    }

    /// Nanoseconds by which samples are played after the picture of their time; negative when before it.
    pub(super) fn behind_picture(&self) -> Option<i64> {
        self.picture.zip(self.base).map(|(picture, base)| base.saturating_sub(picture.base))
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    fn target(&self) -> Option<i64> {
        let own = self.earliest.minimum()?.saturating_add(self.delay.as_nanos() as i64);
        Some(self.picture_base().unwrap_or(own))
    }

    /// The picture's time for sample 0, where the sound can follow it: what is to be played before it comes, or waits for longer than
    /// there is room, would never be heard. Reports of two clocks that differ tell such times.
    fn picture_base(&self) -> Option<i64> {
        let (picture, earliest) = self.picture.filter(|picture| picture.follows).zip(self.earliest.minimum())?;
        (earliest..=earliest.saturating_add(self.reach)).contains(&picture.base).then_some(picture.base)
    }
}

/// The smallest difference of arrival and sampling within some seconds.
#[derive(Clone, Debug, Default)]
struct EarliestArrival {
    /// For each second, its number and the smallest difference in it.
    seconds: [Option<(u64, i64)>; SECONDS_OBSERVED],
    last: u64,
}

impl EarliestArrival {
    fn add(&mut self, now: Instant, difference: i64) {
        self.last = now.as_nanos() / 1_000_000_000;
        let slot = &mut self.seconds[self.last as usize % SECONDS_OBSERVED];
        match slot {
            Some((second, earliest)) if *second == self.last => *earliest = difference.min(*earliest),
            _ => *slot = Some((self.last, difference)),
        }
    }

    fn minimum(&self) -> Option<i64> {
        let oldest = self.last.saturating_sub(SECONDS_OBSERVED as u64 - 1);
        self.seconds.iter().flatten().filter(|(second, _)| *second >= oldest).map(|(_, earliest)| *earliest).min()
    }
}

/// Nanoseconds of a number of samples at 48 kHz.
fn sample_nanos(sample: i64) -> i64 {
    (i128::from(sample) * 62_500).div_euclid(3).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

fn signed(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}
