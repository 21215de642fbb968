//! What a writer does at the moment, and why, in numbers that people can read.

mod codec;

use std::time::Duration;

use super::Writer;
use super::route::RouteExplanation;
use crate::types::Guid;

/// What a writer does at the moment and why.
#[derive(Clone, Debug, PartialEq)]
pub struct WriterExplanation {
    /// The writer.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// The configured method, such as `auto`.
    pub method: String,
    /// The method in use now, such as `immediate`.
    pub method_now: String,
    /// Average time between two writes; `None` before the second.
    pub write_interval: Option<Duration>,
    /// Bytes of a typical serialized sample; 0 before the first.
    pub sample_bytes: usize,
    /// Samples that shared a datagram on average; 0 before the first.
    pub samples_per_datagram: f64,
    /// Largest UDP payload that every reader gets in one packet.
    pub datagram_bytes: usize,
    /// Matched readers.
    pub readers: usize,
    /// Reliable readers that owe an acknowledgement.
    pub readers_behind: usize,
    /// Reliable readers that are not waited for because they stopped acknowledging.
    pub readers_given_up: usize,
    /// Bytes that may be on their way to the slowest reader; `None` without a limit.
    pub window_bytes: Option<u64>,
    /// Bytes on their way now, as the window counts them.
    pub in_flight_bytes: u64,
    /// Samples in the history.
    pub held_samples: usize,
    /// Why `method_now` is what it is, a sentence each.
    pub reasons: Vec<String>,
    /// Where first transmissions go, with the computation.
    pub route: RouteExplanation,
}

impl Writer {
    /// What this writer does at the moment and why. `topic` is left empty: the writer does not know it.
    pub fn explain(&self) -> WriterExplanation {
        WriterExplanation {
            guid: self.guid,
            topic: String::new(),
            method: "immediate".to_owned(),
            method_now: "immediate".to_owned(),
            write_interval: None,
            sample_bytes: self.history.bytes().checked_div(self.history.len()).unwrap_or(0),
            samples_per_datagram: 0.0,
            datagram_bytes: self.route.datagram_bytes(),
            readers: self.readers.len(),
            readers_behind: self.readers_behind(),
            readers_given_up: self.readers_given_up(),
            window_bytes: None,
            in_flight_bytes: 0,
            held_samples: self.history.len(),
            reasons: Vec::new(),
            route: self.route.explain(),
        }
    }
}
