//! `histograms.csv`: the latencies of each pair in each second, one line for each bucket that holds something, and one for the samples
//! that never arrived.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::fates::Joined;
use thalweg_lab_station::not_written;

use crate::error::LabError;
use crate::statistics::Buckets;

/// Writes both latencies of each pair in each second.
pub(crate) fn write(folder: &Path, joined: &Joined) -> Result<(), LabError> {
    let mut text = format!("{HEADER}\n");
    let mut add = |(writer, reader, second): (u32, u32, u64), name: &str, buckets: &Buckets| {
        for (edge, count) in buckets.iter() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{writer},{reader},{second},{name},{edge},{count}");
        }
        if buckets.never() > 0 {
            let _ = writeln!(text, "{writer},{reader},{second},{name},{NEVER},{}", buckets.never());
        }
    };
    for (key, (response, service)) in &joined.seconds {
        add(*key, RESPONSE, response);
        add(*key, "service", service);
    }
    for ((reader, second), buckets) in &joined.round_trips {
        add((0, *reader, *second), ROUND_TRIP, buckets);
    }
    let path = folder.join(FILE);
    std::fs::write(&path, text).map_err(|error| LabError::from(not_written(&path, &error)))
}

/// What a latency is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LatencyKind {
    /// From when a sample was due to its arrival.
    Response,
    /// From the write of a latency sample of a closed loop to its answer.
    RoundTrip,
}

/// The latencies of a run by the second of the measurement in which samples were due or sent, all pairs together.
pub(crate) fn load(folder: &Path, kind: LatencyKind) -> Result<BTreeMap<u64, Buckets>, LabError> {
    let path = folder.join(FILE);
    let shown = path.display();
    let text =
        std::fs::read_to_string(&path).map_err(|error| LabError::Here(format!("{shown} cannot be read: {error}")))?;
    let wanted = if kind == LatencyKind::Response { RESPONSE } else { ROUND_TRIP };
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(LabError::Here(format!("{shown}:1: expected {HEADER:?}")));
    }
    let mut seconds: BTreeMap<u64, Buckets> = BTreeMap::new();
    for (index, line) in lines.enumerate() {
        let words: Vec<&str> = line.split(',').collect();
        let [_, _, second, latency, edge, count] = words[..] else {
            return Err(LabError::Here(format!("{shown}:{}: expected six columns", index + 2)));
        };
        let number = |word: &str| {
            word.parse().map_err(|_| LabError::Here(format!("{shown}:{}: {word:?} is no number", index + 2)))
        };
        if latency == wanted {
            let entry: &mut Buckets = seconds.entry(number(second)?).or_default();
            match edge {
                NEVER => entry.record_never(number(count)?),
                edge => entry.add_bucket(number(edge)?, number(count)?),
            }
        }
    }
    Ok(seconds)
}

const FILE: &str = "histograms.csv";
const HEADER: &str = "writer,reader,second,latency,up_to_ns,count";
const RESPONSE: &str = "response";
const ROUND_TRIP: &str = "round-trip";
const NEVER: &str = "never";
