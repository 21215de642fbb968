//! What a writer does at the moment, and why, in numbers that people can read.

use std::fmt;
use std::time::Duration;

use super::Writer;
use super::route::RouteExplanation;
use super::transmit::Form;
use crate::qos::Method;
use crate::time::Instant;
use crate::types::Guid;

/// What a writer does at the moment and why.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct WriterExplanation {
    /// The writer.
    pub guid: Guid,
    /// Its topic.
    pub topic: String,
    /// The configured method, such as `auto`.
    pub method: String,
    /// The method in use now, such as `immediate`.
    pub method_now: String,
    /// Average time between two writes, or the time since the last one after a pause of more than eight of these; `None` before the second.
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
    /// Answers refused because they tell of what was never sent.
    pub implausible: u64,
    /// Why `method_now` is what it is, a sentence each.
    pub reasons: Vec<String>,
    /// Where first transmissions go, with the computation.
    pub route: RouteExplanation,
}

/// A line for people: what the writer does, why, and who is waited for. `thalweg why` shows the route too.
impl fmt::Display for WriterExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WriterExplanation { guid, topic, method, method_now, readers, readers_behind, held_samples, .. } = self;
        write!(f, "writer {guid} of topic {topic:?} sends by {method}")?;
        if method != method_now {
            write!(f, ", now {method_now}")?;
        }
        if !self.reasons.is_empty() {
            write!(f, " ({})", self.reasons.join("; "))?;
        }
        write!(f, "; {readers_behind} of {readers} readers owe an acknowledgement")?;
        if self.readers_given_up > 0 {
            write!(f, ", {} of them are given up", self.readers_given_up)?;
        }
        write!(f, "; {held_samples} samples in its history")
    }
}

impl Writer {
    /// What this writer does at `now` and why. `topic` is left empty: the writer does not know it.
    pub fn explain(&self, now: Instant) -> WriterExplanation {
        let (method_now, reasons) = self.explain_method(now);
        let sent = self.counters;
        WriterExplanation {
            guid: self.guid,
            topic: String::new(),
            method: self.collection.method().to_string(),
            method_now: method_now.to_owned(),
            write_interval: self.collection.write_interval_at(now),
            sample_bytes: self.collection.sample_bytes(),
            samples_per_datagram: sent.transmitted as f64 / sent.datagrams.max(1) as f64,
            datagram_bytes: self.route.datagram_bytes(),
            readers: self.readers.len(),
            readers_behind: self.readers_behind(),
            readers_given_up: self.readers_given_up(),
            window_bytes: self.flow.window(),
            in_flight_bytes: self.flow.in_flight(),
            held_samples: self.history.len(),
            implausible: sent.implausible,
            reasons,
            route: self.route.explain(),
        }
    }

    /// The method in use at `at`, and why, a sentence each.
    fn explain_method(&self, at: Instant) -> (&'static str, Vec<String>) {
        let (batched, plain) = [Form::Batch, Form::Plain].map(|form| self.route.destinations_in(form).len()).into();
        let shared = match (batched, plain) {
            (1.., 0) => "batch",
            (1.., _) => "batch and coalesce",
            _ => "coalesce",
        };
        let mut reasons = Vec::new();
        let now = match self.collection.method() {
            Method::Immediate => "immediate",
            Method::Asynchronous { .. } => "asynchronous",
            Method::Coalesce(_) | Method::Batch(_) => shared,
            Method::Auto => {
                let (interval, send) = (self.collection.write_interval_at(at), self.collection.send_time());
                let collects = self.collection.collects_at(at);
                let than = if collects { "faster" } else { "no faster" };
                let interval =
                    interval.map_or("no two samples were".to_owned(), |time| format!("samples are, every {time:?},"));
                reasons.push(format!("{interval} written {than} than datagrams leave, which takes {send:?} each"));
                if collects { shared } else { "immediate" }
            }
        };
        if plain > 0 && now.starts_with("batch") {
            reasons.push(format!("{plain} of {} destinations do not understand DATA_BATCH", batched + plain));
        }
        if self.collection.was_blocked() {
            reasons.push("samples wait for acknowledgements or tokens".to_owned());
        }
        (now, reasons)
    }
}
