//! The samples of a topic in a hurry, by whether a transfer ran beside them.

use std::time::Duration;

use super::duel::{DuelOrder, Received, Sent};
use super::result::{Foreground, LatencyPoint};
use crate::figures::millis;
use crate::statistics::Summary;

/// Milliseconds of each transfer.
pub(crate) fn transfers_ms(sent: &Sent) -> Vec<f64> {
    sent.transfers_ns.iter().map(|(from, to)| millis(Duration::from_nanos(to - from))).collect()
}

/// The samples of the topic in a hurry, sorted by whether a transfer was running when they were due.
pub(crate) struct Sorted {
    pub(crate) points: Vec<LatencyPoint>,
    /// Whether a transfer was running when each sample that was sent was due.
    due: Vec<bool>,
    origin_ns: u64,
    loads: Vec<(u64, u64)>,
}

impl Sorted {
    pub(crate) fn of(order: &DuelOrder, sent: &Sent, received: &Received) -> Sorted {
        let loads = merge(&sent.transfers_ns);
        let is_loaded = |due: u64| loads.iter().any(|(from, to)| (*from..*to).contains(&due));
        let point = |(_, due, arrived): &(u64, u64, u64)| LatencyPoint {
            at_s: due.saturating_sub(sent.origin_ns) as f64 / 1e9,
            latency_us: arrived.saturating_sub(*due) as f64 / 1e3,
            loaded: is_loaded(*due),
        };
        let period = order.period.as_nanos() as u64;
        Sorted {
            points: received.samples_ns.iter().map(point).collect(),
            due: (0..sent.hurried).map(|number| is_loaded(sent.origin_ns + number * period)).collect(),
            origin_ns: sent.origin_ns,
            loads,
        }
    }

    /// Latencies under one condition, in microseconds.
    pub(crate) fn latencies(&self, loaded: bool) -> Vec<f64> {
        self.points.iter().filter(|point| point.loaded == loaded).map(|point| point.latency_us).collect()
    }

    /// The topic under one condition; `None` when nothing of it arrived.
    pub(crate) fn foreground(&self, loaded: bool) -> Option<Foreground> {
        let due = self.due.iter().filter(|was| **was == loaded).count() as u64;
        let latency = Summary::of(&self.latencies(loaded))?;
        Some(Foreground { lost: due.saturating_sub(latency.count), latency })
    }

    /// When transfers ran, in seconds since the start.
    pub(crate) fn loads_s(&self) -> Vec<(f64, f64)> {
        let seconds = |nanos: u64| nanos.saturating_sub(self.origin_ns) as f64 / 1e9;
        self.loads.iter().map(|(from, to)| (seconds(*from), seconds(*to))).collect()
    }
}

/// Joins transfers that follow each other within a few milliseconds to one stretch of load.
fn merge(transfers: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (from, to) in transfers {
        match out.last_mut() {
            Some(last) if from.saturating_sub(last.1) < GAP_NANOS => last.1 = *to,
            _ => out.push((*from, *to)),
        }
    }
    out
}

const GAP_NANOS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quick::duel::Course;
    use crate::station::{Sending, StationNetwork};

    const MS: u64 = 1_000_000;

    fn order() -> DuelOrder {
        DuelOrder {
            network: StationNetwork::default(),
            period: Duration::from_millis(10),
            course: Course::Phases { phase: Duration::from_millis(100), loaded: vec![false, true] },
            bulk: Sending::default(),
            flow_controller: None,
            bulk_history: 256,
            patience: Duration::from_secs(20),
            transfer_samples: 10,
            sample_bytes: 1_000,
        }
    }

    #[test]
    fn samples_are_sorted_by_the_transfers_that_really_ran() {
        let origin_ns = 1_000 * MS;
        let transfers_ns = vec![(1_100 * MS, 1_150 * MS), (1_151 * MS, 1_198 * MS)];
        let sent = Sent { origin_ns, hurried: 20, transfers_ns, transfers_bytes: Vec::new() };
        let arrive = |number: u64| {
            (
                number,
                origin_ns + number * 10 * MS,
                origin_ns + number * 10 * MS + if number < 10 { 50_000 } else { 200_000 },
            )
        };
        // Sample 3 is lost in the quiet half.
        let received = Received { samples_ns: (0..20).filter(|number| *number != 3).map(arrive).collect() };
        let sorted = Sorted::of(&order(), &sent, &received);
        let [quiet, loaded] = [false, true].map(|loaded| sorted.foreground(loaded).expect("samples"));
        assert_eq!((quiet.latency.count, quiet.lost), (9, 1));
        assert_eq!((loaded.latency.count, loaded.lost), (10, 0));
        assert_eq!((quiet.latency.mean, loaded.latency.mean), (50.0, 200.0));
        assert_eq!(sorted.loads_s(), [(0.1, 0.198)]);
        assert_eq!(transfers_ms(&sent), [50.0, 47.0]);
    }
}
