//! When frames are presented: the sender's clock as arrivals show it.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_base::time::{Instant, nanos};

/// How long an arrival counts for the base: a lower delay is noticed at once, a higher one after this time.
const BASE_WINDOW: Duration = Duration::from_secs(5);
/// The minima that are kept: one for each half second.
const BUCKET: Duration = Duration::from_millis(500);
/// Minima that the drift is computed from, at most: a minute.
const BUCKETS_MAX: usize = 120;
/// Minima that the drift is computed from, at least: 5 s, in which 10 ppm are 50 µs.
const BUCKETS_MIN: usize = 10;

/// The playout clock: base + time stamp + delay, where the base is the least difference between an arrival and its time
/// stamp in the last 5 s.
#[derive(Debug)]
pub(super) struct Playout {
    delay: i64,
    buckets: VecDeque<Bucket>,
    base: Option<i64>,
}

/// The least difference of half a second.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Its number in half seconds.
    number: u64,
    arrival: Instant,
    /// Arrival minus time stamp in nanoseconds.
    difference: i64,
}

impl Playout {
    pub(super) fn new(delay: Duration) -> Playout {
        let delay = i64::try_from(nanos(delay)).expect("a few frame times");
        Playout { delay, buckets: VecDeque::with_capacity(BUCKETS_MAX + 1), base: None }
    }

    /// Notes that the first packet of a frame came.
    pub(super) fn record(&mut self, arrival: Instant, timestamp: i64) {
        let difference = difference(arrival, timestamp);
        let number = arrival.as_nanos() / nanos(BUCKET);
        match self.buckets.back_mut() {
            Some(newest) if newest.number >= number => {
                if difference < newest.difference {
                    (newest.arrival, newest.difference) = (arrival, difference);
                }
            }
            _ => {
                if self.buckets.len() == BUCKETS_MAX {
                    self.buckets.pop_front();
                }
                self.buckets.push_back(Bucket { number, arrival, difference });
            }
        }
        let oldest = number.saturating_sub(nanos(BASE_WINDOW) / nanos(BUCKET));
        let recent = self.buckets.iter().rev().take_while(|bucket| bucket.number > oldest || bucket.number == number);
        self.base = recent.map(|bucket| bucket.difference).min();
    }

    /// Whether a frame that began at `arrival` would make others due earlier.
    pub(super) fn is_early(&self, arrival: Instant, timestamp: i64) -> bool {
        self.base.is_some_and(|base| difference(arrival, timestamp) < base)
    }

    /// When the frame of a time stamp is presented; `None` before any arrival.
    pub(super) fn deadline(&self, timestamp: i64) -> Option<Instant> {
        let nanos = self.base?.saturating_add(nanos_of(timestamp)).saturating_add(self.delay);
        Some(Instant::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }

    /// How much longer the sender's second is than ours, in millionths, by least squares over the minima of up to a
    /// minute; `None` in the first 5 s.
    pub(super) fn drift_ppm(&self) -> Option<f64> {
        if self.buckets.len() < BUCKETS_MIN {
            return None;
        }
        let origin = self.buckets.front()?;
        let points = self.buckets.iter().map(|bucket| {
            let time = bucket.arrival.since(origin.arrival).as_secs_f64();
            (time, bucket.difference.saturating_sub(origin.difference) as f64 / 1000.0)
        });
        let count = self.buckets.len() as f64;
        let (time, micros) = points.clone().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        let (time, micros) = (time / count, micros / count);
        let products = points.fold((0.0, 0.0), |sum, point| {
            let (time, micros) = (point.0 - time, point.1 - micros);
            (sum.0 + time * micros, sum.1 + time * time)
        });
        (products.1 > 0.0).then(|| products.0 / products.1)
    }

    /// Forgets what another sender showed.
    pub(super) fn reset(&mut self) {
        self.buckets.clear();
        self.base = None;
    }
}

/// An arrival minus its time stamp in nanoseconds.
fn difference(arrival: Instant, timestamp: i64) -> i64 {
    signed(arrival).saturating_sub(nanos_of(timestamp))
}

/// Nanoseconds of a time stamp of 90 kHz that is counted on beyond 32 bits.
fn nanos_of(timestamp: i64) -> i64 {
    timestamp.saturating_mul(100_000) / 9
}

fn signed(instant: Instant) -> i64 {
    i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: i64 = 3003;

    fn at(micros: i64) -> Instant {
        Instant::from_nanos(u64::try_from(micros).unwrap() * 1000)
    }

    /// The arrival of frame `index` by a sender whose clock is `ppm` slow, with a delay in microseconds.
    fn arrival(index: i64, ppm: f64, delay: i64) -> Instant {
        let nanos = nanos_of(index * FRAME) as f64 * (1.0 + ppm / 1e6);
        at(1_000_000 + nanos as i64 / 1000 + delay)
    }

    #[test]
    fn frames_are_due_a_delay_after_the_earliest_arrival() {
        let mut playout = Playout::new(Duration::from_millis(60));
        assert_eq!(playout.deadline(0), None);
        playout.record(arrival(0, 0.0, 9000), 0);
        assert_eq!(playout.deadline(0), Some(at(1_069_000)));
        playout.record(arrival(1, 0.0, 200), FRAME);
        playout.record(arrival(2, 0.0, 4000), 2 * FRAME);
        let expect = at(1_060_200 + 66_733);
        let deadline = playout.deadline(2 * FRAME).unwrap();
        assert!(deadline.as_nanos().abs_diff(expect.as_nanos()) < 1000, "{deadline:?}");
    }

    #[test]
    fn a_higher_delay_of_the_network_is_followed_after_five_seconds() {
        let mut playout = Playout::new(Duration::ZERO);
        let mut followed = None;
        for index in 0..600 {
            let delay = if index < 150 { 100 } else { 5100 };
            playout.record(arrival(index, 0.0, delay), index * FRAME);
            let late = playout.deadline(index * FRAME).unwrap().since(arrival(index, 0.0, 0));
            if late > Duration::from_micros(5000) {
                followed = followed.or(Some(index));
            }
        }
        // 5 s are 150 frames; the bucket of the last quick arrival counts whole.
        assert!((285..=315).contains(&followed.unwrap()), "{followed:?}");
    }

    #[test]
    fn drift_is_found_under_jitter() {
        for ppm in [-100.0, -3.0, 0.0, 3.0, 100.0] {
            let mut playout = Playout::new(Duration::ZERO);
            let mut rng = thalweg_base::rng::Rng::new(1);
            for index in 0..1500 {
                assert!(index > 130 || playout.drift_ppm().is_none(), "too early to tell at frame {index}");
                let jitter = rng.below(300) as i64;
                playout.record(arrival(index, ppm, jitter), index * FRAME);
            }
            let found = playout.drift_ppm().unwrap();
            assert!((found - ppm).abs() < 1.0, "{found} instead of {ppm}");
        }
    }

    #[test]
    fn times_at_the_ends_of_their_ranges_do_no_harm() {
        let mut playout = Playout::new(Duration::from_secs(1));
        playout.record(Instant::NEVER, i64::MIN / 2);
        playout.record(Instant::ZERO, i64::MAX / 2);
        assert!(playout.deadline(i64::MAX).is_some());
        playout.reset();
        assert_eq!(playout.deadline(0), None);
    }
}
