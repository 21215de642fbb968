//! The result of a load: one object with fixed keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::{ArrivalProcess, LoadPlan};
use crate::figures::micros;
use crate::statistics::Latencies;
use crate::statistics::endless::option;

/// Value of [`LoadResult::schema`].
pub const SCHEMA: &str = "thalweg.coap-load/1";

/// The result of a load on a server, as its clients saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Which keys to expect: [`SCHEMA`].
    pub schema: String,
    /// The requested resource.
    pub plan: LoadPlan,
    /// Seconds in which requests were counted.
    pub seconds: f64,
    /// Requests counted a second.
    pub offered_per_s: f64,
    /// Right answers a second: those that came in these seconds ([`LoadCounts::right_answers`]).
    pub served_per_s: f64,
    /// Outcomes of the requests.
    pub counts: LoadCounts,
    /// Response times of all requests.
    pub latency: ResponseTimes,
    /// The same by the time at which requests were due; empty unless windows were requested.
    pub windows: Vec<Window>,
    /// Statistics of the generator itself.
    pub generator: GeneratorFigures,
    /// The generator's capacity without a server's work, where that was measured.
    pub generator_capacity: Option<Capacity>,
    /// Resources that the server used, where its process was named.
    pub server: Option<ServerFigures>,
}

impl LoadResult {
    /// Whether the counts add up and the rates follow from them; the text says what does not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let counts = &self.counts;
        // Whoever counted each attempt of a closed loop as a request is read as well.
        let is_tried_again = matches!(self.plan.arrival, ArrivalProcess::Closed(_)) && counts.offered == counts.sent;
        if !is_tried_again && counts.offered != counts.sent + counts.unsent {
            return Err("the requests offered are not those sent and unsent".to_owned());
        }
        if counts.sent != counts.served + counts.rejected + counts.wrong + counts.lost {
            return Err("the requests sent are not those served, rejected, wrong and lost".to_owned());
        }
        // What was told went through a file, whose numbers may differ in the last bit.
        let follows =
            |rate: f64, count: u64, seconds: f64| (rate * seconds - count as f64).abs() <= 1e-9 * count.max(1) as f64;
        let per_cpu_s = self.server.as_ref().and_then(|server| Some((server.served_per_cpu_s?, server.cpu_s)));
        let rates = [
            ("offered_per_s", Some((self.offered_per_s, self.seconds)), counts.offered),
            ("served_per_s", Some((self.served_per_s, self.seconds)), counts.right_answers()),
            ("served_per_cpu_s", per_cpu_s, counts.right_answers()),
        ];
        let wrong =
            rates.into_iter().find(|(_, rate, count)| rate.is_some_and(|(rate, time)| !follows(rate, *count, time)));
        wrong.map_or(Ok(()), |(name, ..)| Err(format!("{name} does not follow from its count")))
    }
}

/// Outcomes of the counted requests: `offered` = `sent` + `unsent`, or `sent` in a closed loop, and `sent` = `served` + `rejected` + `wrong` + `lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadCounts {
    /// Requests that were due.
    pub offered: u64,
    /// Requests that the system took, repetitions left out.
    pub sent: u64,
    /// Requests that the system refused to send; in a closed loop its refusals, after each of which the request is tried again.
    pub unsent: u64,
    /// Requests with a right answer in time: success code, token, message ID and payload.
    pub served: u64,
    /// Right answers that came while requests were counted, whenever those were due; missing in results of versions that did not count
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<u64>,
    /// Requests answered by another code, such as 5.03 or 4.29, or by a Reset.
    pub rejected: u64,
    /// Requests whose first answer had the wrong payload, type or message ID.
    pub wrong: u64,
    /// Requests without an answer in time.
    pub lost: u64,
    /// Lost requests whose answer came after all.
    pub late: u64,
    /// Further answers to requests that had one.
    pub duplicates: u64,
    /// Datagrams that answer nothing that was asked: unknown token, another client's token, or no CoAP. Counted during the whole
    /// run.
    pub unexpected: u64,
    /// Repetitions of confirmable requests.
    pub repeated: u64,
    /// Datagrams of the flood that the system took, during the whole run.
    pub flood: u64,
    /// First answers by code, such as `2.05`; `RST` for a Reset.
    pub codes: BTreeMap<String, u64>,
}

impl LoadCounts {
    /// What rates and costs count: `answered`, or `served` where that is missing. A server that falls behind goes on answering after the
    /// counted time, and those answers are none of its rate.
    pub fn right_answers(&self) -> u64 {
        self.answered.unwrap_or(self.served)
    }
}

/// Response times in microseconds. In the quantiles a request without a verified answer is infinitely late, which JSON writes as `never`. A
/// quantile is null when fewer than ten requests lie beyond it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseTimes {
    /// Shortest; null when there is none.
    pub min_us: Option<f64>,
    /// Median.
    #[serde(default, with = "option")]
    pub p50_us: Option<f64>,
    /// 90th percentile.
    #[serde(default, with = "option")]
    pub p90_us: Option<f64>,
    /// 99th percentile.
    #[serde(default, with = "option")]
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    #[serde(default, with = "option")]
    pub p999_us: Option<f64>,
    /// Longest; null when there is none.
    pub max_us: Option<f64>,
}

impl ResponseTimes {
    /// Those of `offered` requests, of which these had a verified answer.
    pub(super) fn of(latencies: &Latencies, offered: u64) -> ResponseTimes {
        let quantile = |q| latencies.quantile_of(q, offered);
        let is_any = latencies.count() > 0;
        ResponseTimes {
            min_us: is_any.then(|| micros(latencies.min())),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: is_any.then(|| micros(latencies.max())),
        }
    }
}

/// Requests that were due in one part of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// When it began, in seconds since requests were counted.
    pub start_s: f64,
    /// Its length in seconds; the last may be shorter than the others.
    pub seconds: f64,
    /// Requests that were due in it.
    pub offered: u64,
    /// Those with a right answer in time.
    pub served: u64,
    /// Those answered by another code.
    pub rejected: u64,
    /// Those without an answer in time.
    pub lost: u64,
    /// Right answers that came within the window, whenever their requests were due.
    pub answered: u64,
    /// Response times of those that were due in it.
    pub latency: ResponseTimes,
}

/// Statistics of the generator while requests were counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFigures {
    /// Processor seconds of its thread; it never sleeps during a run.
    pub cpu_s: f64,
    /// Share of its time that it had something to send or to read, 0 to 1.
    pub busy: f64,
    /// Delay of sending after the scheduled time, 99th percentile in microseconds; null in a closed loop and for too few.
    pub slip_p99_us: Option<f64>,
    /// The latest of all; null in a closed loop.
    pub slip_max_us: Option<f64>,
    /// Whether the figures are the generator's rather than the server's: it was busy for more than 95 % of its time, or more
    /// than 1 % of the requests left more than 1 ms late.
    pub generator_limited: bool,
    /// Whether a client used a message ID twice: a server that keeps them for 247 s may take that for a duplicate.
    pub message_ids_reused: bool,
}

/// The generator's rate against a responder of the same process that keeps no state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Verified answers a second.
    pub served_per_s: f64,
    /// Share of the time that the generator was busy.
    pub busy: f64,
    /// Verified answers for each second that the generator was busy: its rate with a faster responder.
    pub served_per_busy_s: f64,
}

/// Resources that the server's process used while requests were counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Processor seconds of all its threads.
    pub cpu_s: f64,
    /// Right answers that came meanwhile for each of them; null when it used less than a tick of the system.
    pub served_per_cpu_s: Option<f64>,
    /// Memory at the end in KiB (`VmRSS`).
    pub resident_kib: u64,
}
