//! What a writer offers to every reader.

use std::time::Duration;

use super::MatchedReader;
use crate::qos::{Durability, Method, Reliability, WriterQos};

/// What the QoS offers to every reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub reliable: bool,
    /// Zero for best effort.
    pub max_blocking_time: Duration,
    /// For readers that come later.
    pub history: bool,
    /// Collected samples as DATA_BATCH, to readers that understand it.
    pub batches: bool,
}

impl Offered {
    pub(super) fn new(qos: &WriterQos) -> Offered {
        let (reliable, max_blocking_time) = match qos.reliability {
            Reliability::Reliable { max_blocking_time } => (true, max_blocking_time),
            Reliability::BestEffort => (false, Duration::ZERO),
        };
        let history = qos.durability != Durability::Volatile;
        let batches = !matches!(qos.transmission.method, Method::Coalesce(_));
        Offered { reliable, max_blocking_time, history, batches }
    }

    /// Leaves the reader with what it asks for and the writer offers.
    pub(super) fn restrict(&self, matched: &mut MatchedReader) {
        matched.reliable &= self.reliable;
        matched.wants_history &= self.history;
        matched.batches &= self.batches;
    }
}
