//! The samples of a topic in a hurry, by whether a transfer ran beside them.

use serde::{Deserialize, Serialize};

use super::beside::{PERIOD_NANOS, Received, Sent};

/// The topic in a hurry under one condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HurriedTopic {
    /// Each sample that arrived: when it was due in seconds since the start, and its latency from then on in microseconds.
    pub points: Vec<(f64, f64)>,
    /// Samples that were due.
    pub due: u64,
}

impl HurriedTopic {
    /// Latencies in microseconds.
    pub fn latencies_us(&self) -> Vec<f64> {
        self.points.iter().map(|(_, latency_us)| *latency_us).collect()
    }

    /// Samples that never arrived.
    pub fn lost(&self) -> u64 {
        self.due.saturating_sub(self.points.len() as u64)
    }
}

/// The topic without transfers and with them, by whether one was running when a sample was due.
pub(super) fn sort(sent: &Sent, received: &Received) -> [HurriedTopic; 2] {
    let loads = merge(&sent.transfers_ns);
    let is_loaded = |due: u64| loads.iter().any(|(from, to)| (*from..*to).contains(&due));
    let mut both = [HurriedTopic::default(), HurriedTopic::default()];
    for (_, due, arrived) in &received.samples_ns {
        let point = (due.saturating_sub(sent.origin_ns) as f64 / 1e9, arrived.saturating_sub(*due) as f64 / 1e3);
        both[usize::from(is_loaded(*due))].points.push(point);
    }
    for number in 0..sent.hurried {
        both[usize::from(is_loaded(sent.origin_ns + number * PERIOD_NANOS))].due += 1;
    }
    both
}

/// When transfers ran, in seconds since the start.
pub(super) fn loads_s(sent: &Sent) -> Vec<(f64, f64)> {
    let seconds = |nanos: u64| nanos.saturating_sub(sent.origin_ns) as f64 / 1e9;
    merge(&sent.transfers_ns).iter().map(|(from, to)| (seconds(*from), seconds(*to))).collect()
}

/// Milliseconds of each transfer.
pub(super) fn transfers_ms(sent: &Sent) -> Vec<f64> {
    sent.transfers_ns.iter().map(|(from, to)| (to - from) as f64 / 1e6).collect()
}

/// Bits a second that left the host during each transfer, headers included; none where the kernel does not tell.
pub(super) fn bits_per_second(sent: &Sent) -> Vec<f64> {
    let seconds = sent.transfers_ns.iter().map(|(from, to)| (to - from) as f64 / 1e9);
    sent.transfers_bytes.iter().zip(seconds).map(|(bytes, seconds)| *bytes as f64 * 8.0 / seconds).collect()
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

    const MS: u64 = 1_000_000;

    #[test]
    fn samples_are_sorted_by_the_transfers_that_really_ran() {
        let origin_ns = 1_000 * MS;
        let transfers_ns = vec![(1_100 * MS, 1_150 * MS), (1_151 * MS, 1_198 * MS)];
        let sent = Sent { origin_ns, hurried: 20, transfers_ns, transfers_bytes: vec![1_000_000, 500_000] };
        let arrive = |number: u64| {
            let due = origin_ns + number * 10 * MS;
            (number, due, due + if number < 10 { 50_000 } else { 200_000 })
        };
        // Sample 3 is lost in the quiet half.
        let received = Received { samples_ns: (0..20).filter(|number| *number != 3).map(arrive).collect() };
        let [quiet, loaded] = sort(&sent, &received);
        assert_eq!((quiet.points.len(), quiet.due, quiet.lost()), (9, 10, 1));
        assert_eq!((loaded.points.len(), loaded.lost()), (10, 0));
        assert_eq!((quiet.points[3], loaded.points[0]), ((0.04, 50.0), (0.1, 200.0)));
        assert_eq!(loads_s(&sent), [(0.1, 0.198)]);
        assert_eq!(transfers_ms(&sent), [50.0, 47.0]);
        assert_eq!(bits_per_second(&sent)[0], 160e6);
    }
}
