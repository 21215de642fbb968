//! Offset and drift of another host's clock against this one's, from probes with four timestamps.
//!
//! Of each ten probes in a row the one with the shortest round trip counts; a line through these is the estimate. What it may be wrong by
//! is half the shortest round trip, which asymmetric ways can hide, and how far the probes lie from the line (residual).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A question to another host's clock; all times in nanoseconds of the monotonic clock of the host named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Sent, here.
    pub sent_ns: u64,
    /// Heard, there.
    pub heard_ns: u64,
    /// Answered, there.
    pub answered_ns: u64,
    /// Back, here.
    pub back_ns: u64,
}

impl Probe {
    /// Time on the way, both directions together; `None` for a probe that came back before it was sent.
    fn round_trip_ns(&self) -> Option<i64> {
        let whole = self.back_ns.checked_sub(self.sent_ns)?;
        let there = self.answered_ns.checked_sub(self.heard_ns)?;
        i64::try_from(whole.checked_sub(there)?).ok()
    }

    /// Offset of the other clock, if both directions took equally long.
    fn ahead_ns(&self) -> i64 {
        let out = i128::from(self.heard_ns) - i128::from(self.sent_ns);
        let back = i128::from(self.answered_ns) - i128::from(self.back_ns);
        clamped((out + back) / 2)
    }

    /// The middle of the way, here.
    fn at_ns(&self) -> u64 {
        self.sent_ns.midpoint(self.back_ns)
    }
}

/// Offset and drift of another host's clock against this one's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFit {
    /// A moment of this host's clock.
    pub at_ns: u64,
    /// Offset of the other clock at that moment.
    pub ahead_ns: i64,
    /// Drift of the other clock, in millionths.
    pub drift_ppm: f64,
    /// The shortest round trip.
    pub round_trip_ns: u64,
    /// Distance of the counting probes from the line, plus the uncertainty from their delay beyond the shortest.
    pub residual_ns: u64,
    /// Probes that were answered.
    pub probes: u32,
    /// Whether no straight line can be true: one of the clocks jumped, or was slewed.
    pub is_stepped: bool,
}

impl ClockFit {
    /// The estimate from these probes; `None` where too few were answered.
    pub fn of(probes: &[Probe]) -> Option<ClockFit> {
        let mut probes: Vec<(Probe, i64)> =
            probes.iter().filter_map(|probe| Some((*probe, probe.round_trip_ns()?))).collect();
        if probes.len() < PROBES_MIN {
            return None;
        }
        probes.sort_by_key(|(probe, _)| probe.at_ns());
        let shortest = probes.iter().map(|(_, trip)| *trip).min()?;
        let envelope = envelope(&probes, shortest);
        let at_ns = envelope.first()?.0.at_ns();
        let line = Line::through(&envelope, at_ns);
        let beyond = |(probe, trip): &(Probe, i64)| line.distance(probe) + (trip - shortest) as f64 / 2.0;
        let residual = envelope.iter().map(beyond).fold(0.0, f64::max);
        // The truth lies within half a probe's round trip, and the line within half the shortest one of the truth.
        let is_possible = |(probe, trip): &(Probe, i64)| line.distance(probe) <= (trip + shortest) as f64 / 2.0 + 1.0;
        Some(ClockFit {
            at_ns,
            ahead_ns: line.base + line.offset.round() as i64,
            // As many digits as a file keeps exactly.
            drift_ppm: (line.slope * 1e12).round() / 1e6,
            round_trip_ns: shortest.unsigned_abs(),
            residual_ns: residual.ceil() as u64,
            probes: u32::try_from(probes.len()).unwrap_or(u32::MAX),
            is_stepped: !probes.iter().all(is_possible),
        })
    }

    /// Bound on the error of the estimate: half the shortest round trip and the residual.
    pub fn bound(&self) -> Duration {
        Duration::from_nanos(self.round_trip_ns.div_ceil(2) + self.residual_ns)
    }

    /// The other host's time at a time of this one's.
    pub fn there(&self, here_ns: u64) -> u64 {
        let since = i128::from(here_ns) - i128::from(self.at_ns);
        let drift = (since as f64 * self.drift_ppm / 1e6).round() as i128;
        unsigned(i128::from(here_ns) + i128::from(self.ahead_ns) + drift)
    }

    /// This host's time at a time of the other's.
    pub fn here(&self, there_ns: u64) -> u64 {
        let since = i128::from(there_ns) - i128::from(self.ahead_ns) - i128::from(self.at_ns);
        let slope = self.drift_ppm / 1e6;
        let drift = (since as f64 * slope / (1.0 + slope)).round() as i128;
        unsigned(i128::from(self.at_ns) + since - drift)
    }
}

/// The best probe of each ten in a row, without those that took more than twice the shortest round trip; the best of the first and of the
/// second half stay in any case.
fn envelope(probes: &[(Probe, i64)], shortest: i64) -> Vec<(Probe, i64)> {
    let best = |group: &[(Probe, i64)]| group.iter().min_by_key(|(_, trip)| *trip).copied();
    let halves = probes.split_at(probes.len() / 2);
    let ends = [best(halves.0), best(halves.1)];
    let groups = probes.len().div_ceil(GROUP).max(4);
    let mut out: Vec<(Probe, i64)> = probes.chunks(probes.len().div_ceil(groups)).filter_map(best).collect();
    out.retain(|(_, trip)| *trip <= 2 * shortest);
    out.extend(ends.into_iter().flatten());
    out.sort_by_key(|(probe, _)| probe.at_ns());
    out.dedup();
    out
}

/// Offset of a clock, as a line over time: `base + offset + slope · (time − at)`.
struct Line {
    at_ns: u64,
    /// Taken out before floating point, which has no room for times since the start of a host.
    base: i64,
    offset: f64,
    slope: f64,
}

impl Line {
    /// The least squares; level where the points span less than a second, which tells no drift.
    fn through(points: &[(Probe, i64)], at_ns: u64) -> Line {
        let base = points.iter().min_by_key(|(_, trip)| *trip).map_or(0, |(probe, _)| probe.ahead_ns());
        let place = |(probe, _): &(Probe, i64)| {
            ((probe.at_ns() - at_ns) as f64, (i128::from(probe.ahead_ns()) - i128::from(base)) as f64)
        };
        let points: Vec<(f64, f64)> = points.iter().map(place).collect();
        let span = points.iter().map(|(x, _)| *x).fold(0.0, f64::max);
        if span < SPAN_MIN_NS {
            return Line { at_ns, base, offset: 0.0, slope: 0.0 };
        }
        let count = points.len() as f64;
        let (mean_x, mean_y) =
            points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
        let (mut xy, mut xx) = (0.0, 0.0);
        for (x, y) in points {
            xy += (x - mean_x) * (y - mean_y);
            xx += (x - mean_x) * (x - mean_x);
        }
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        Line { at_ns, base, offset: mean_y - slope * mean_x, slope }
    }

    /// Distance of a probe from it, in nanoseconds.
    fn distance(&self, probe: &Probe) -> f64 {
        let since = (i128::from(probe.at_ns()) - i128::from(self.at_ns)) as f64;
        let ahead = (i128::from(probe.ahead_ns()) - i128::from(self.base)) as f64;
        (ahead - self.offset - self.slope * since).abs()
    }
}

fn clamped(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn unsigned(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}

/// Fewer answered probes than this tell too little.
pub(super) const PROBES_MIN: usize = 8;
/// Neighbouring probes of which the best counts.
const GROUP: usize = 10;
const SPAN_MIN_NS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_base::rng::Rng;

    /// Two clocks and the way between them, times in nanoseconds of the clock here.
    struct World {
        /// The other clock at time 0 of this one.
        ahead_ns: i128,
        drift_ppm: f64,
        /// When the other clock jumps, and by how much.
        step: (u64, i128),
        out_ns: u64,
        back_ns: u64,
        /// How much longer a question may take on its way while the run goes on.
        queue_ns: u64,
    }

    /// The clock here started long before.
    const START_NS: u64 = 3_000_000_000_000_000;

    impl World {
        fn new(ahead_ns: i128, drift_ppm: f64) -> World {
            World { ahead_ns, drift_ppm, step: (u64::MAX, 0), out_ns: 40_000, back_ns: 40_000, queue_ns: 0 }
        }

        fn there(&self, here_ns: u64) -> u64 {
            let since = i128::from(here_ns - START_NS);
            let step = if here_ns >= self.step.0 { self.step.1 } else { 0 };
            let drift = (since as f64 * self.drift_ppm / 1e6) as i128;
            u64::try_from(i128::from(here_ns) + self.ahead_ns + drift + step)
                .expect("after the start of the other host")
        }

        /// Asked 50 times a second for 3 s, once a second for 20 s, and 50 times a second for 3 s.
        fn probes(&self, seed: u64) -> Vec<Probe> {
            let mut random = Rng::new(seed);
            let often = |from: u64| (0..150).map(move |index| from + index * 20_000_000);
            let meanwhile = (0..20).map(|index| START_NS + 3_000_000_000 + index * 1_000_000_000);
            let times = often(START_NS).chain(meanwhile).chain(often(START_NS + 23_000_000_000));
            let probe = |sent_ns: u64| {
                let is_meanwhile = (3_000_000_000..23_000_000_000).contains(&(sent_ns - START_NS));
                let queue = if is_meanwhile { (random.share() * self.queue_ns as f64) as u64 } else { 0 };
                let noise = |random: &mut Rng| (-(1.0 - random.share()).ln() * 5_000.0) as u64;
                let arrives = sent_ns + self.out_ns + queue + noise(&mut random);
                let leaves = arrives + 7_000;
                let back_ns = leaves + self.back_ns + noise(&mut random);
                Probe { sent_ns, heard_ns: self.there(arrives), answered_ns: self.there(leaves), back_ns }
            };
            times.map(probe).collect()
        }

        /// The estimate, and how far it is off at worst.
        fn fit(&self, seed: u64) -> (ClockFit, u64) {
            let fit = ClockFit::of(&self.probes(seed)).expect("enough probes");
            let error = |second: u64| {
                let here = START_NS + second * 1_000_000_000;
                self.there(here).abs_diff(fit.there(here))
            };
            (fit, (0..=26).map(error).max().expect("some seconds"))
        }
    }

    #[test]
    fn offset_and_drift_are_found_within_the_bound() {
        for (seed, ahead_ns, drift_ppm) in
            [(1, 0, 0.0), (2, -2_999_000_000_000_000, 50.0), (3, 9_000_000_000_000_000, -120.0), (4, 1_234_567, 0.3)]
        {
            let (fit, error) = World::new(ahead_ns, drift_ppm).fit(seed);
            let bound = fit.bound().as_nanos() as u64;
            assert!(error <= bound, "off by {error} ns: {fit:?}");
            assert!((fit.drift_ppm - drift_ppm).abs() < 0.5, "{fit:?}");
            assert!((40_000..60_000).contains(&bound) && !fit.is_stepped, "{fit:?}");
            assert_eq!(fit.probes, 320);
        }
    }

    #[test]
    fn an_asymmetric_way_shifts_the_estimate_and_the_bound_covers_it() {
        let world = World { out_ns: 140_000, back_ns: 20_000, ..World::new(5_000_000_000, 20.0) };
        let (fit, error) = world.fit(5);
        assert!((55_000..=fit.bound().as_nanos() as u64).contains(&error), "off by {error} ns: {fit:?}");
        assert!(fit.bound() < Duration::from_micros(100) && !fit.is_stepped, "{fit:?}");
    }

    #[test]
    fn queues_during_the_run_do_not_spoil_the_estimate() {
        let (quiet, _) = World::new(5_000_000_000, 20.0).fit(6);
        let (fit, error) = World { queue_ns: 20_000_000, ..World::new(5_000_000_000, 20.0) }.fit(6);
        assert!(error <= fit.bound().as_nanos() as u64, "off by {error} ns: {fit:?}");
        assert!(fit.bound() < 2 * quiet.bound() && !fit.is_stepped, "{fit:?}");
    }

    #[test]
    fn a_step_is_seen_and_widens_the_bound() {
        for by_ns in [5_000_000, -300_000] {
            let step = (START_NS + 12_000_000_000, by_ns);
            let (fit, error) = World { step, ..World::new(5_000_000_000, 0.0) }.fit(7);
            assert!(fit.is_stepped, "{fit:?}");
            assert!(error <= 2 * fit.bound().as_nanos() as u64, "off by {error} ns: {fit:?}");
            assert!(fit.bound().as_nanos() > by_ns.unsigned_abs() / 8, "{fit:?}");
        }
    }

    #[test]
    fn too_few_answers_or_impossible_ones_tell_nothing() {
        let probes = World::new(0, 0.0).probes(8);
        assert_eq!(ClockFit::of(&probes[..7]), None);
        assert!(ClockFit::of(&probes[..8]).is_some_and(|fit| fit.drift_ppm == 0.0));
        let impossible = Probe { sent_ns: 10, heard_ns: 0, answered_ns: 0, back_ns: 9 };
        assert_eq!(ClockFit::of(&[impossible; 20]), None);
        let longer_there = Probe { sent_ns: 10, heard_ns: 0, answered_ns: 50, back_ns: 20 };
        assert_eq!(ClockFit::of(&[longer_there; 20]), None);
    }

    #[test]
    fn times_are_the_same_there_and_back() {
        let (fit, _) = World::new(-2_999_000_000_000_000, 80.0).fit(9);
        for here in [START_NS, START_NS + 1_234_567_891, START_NS + 3_600_000_000_000] {
            assert!(fit.here(fit.there(here)).abs_diff(here) <= 1, "{here}");
        }
        let (ahead, _) = World::new(5_000_000_000, 0.0).fit(9);
        assert_eq!(ahead.here(0), 0, "before the start of this host");
    }
}
