//! The interface of a middleware that a station can measure.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::fault::Fault;
use crate::note::Note;
use crate::order::{Order, PublisherPlace, SubscriberPlace, WriterEffort};

/// A middleware under measurement.
pub trait Middleware {
    /// Its settings besides the order's other parts: domain, profile, size of a sample.
    type Setup: DeserializeOwned + Sync;

    /// Joins as one publisher; a participant of its own.
    ///
    /// # Errors
    /// The middleware refuses it.
    fn publication(order: &Order<Self::Setup>, place: &PublisherPlace) -> Result<Box<dyn Publication>, Fault>;

    /// Called once in each process when the first measured sample is about to be due.
    fn begin_measurement(_order: &Order<Self::Setup>) {}

    /// Called once in each process after the end of sending; writes its records since the beginning into the order's folder,
    /// times since `origin_ns`.
    ///
    /// # Errors
    /// It cannot be written.
    fn end_measurement(_order: &Order<Self::Setup>, _origin_ns: u64) -> Result<(), Fault> {
        Ok(())
    }

    /// Joins as one subscriber; a participant of its own, with one subscription for each topic.
    ///
    /// # Errors
    /// The middleware refuses it.
    fn subscription(order: &Order<Self::Setup>, place: &SubscriberPlace) -> Result<Box<dyn Subscription>, Fault>;
}

/// A writer of samples that carry a time and a number.
pub trait Publication: Send {
    /// Readers matched now.
    fn matched(&self) -> usize;

    /// Writes a sample with this time and number; `false` when it found no room in time.
    ///
    /// # Errors
    /// The writer cannot go on.
    fn write(&mut self, time_ns: u64, id: u64) -> Result<bool, Fault>;

    /// Whether all matched readers acknowledged everything within `patience`; best-effort ones never owe anything.
    ///
    /// # Errors
    /// The middleware cannot tell.
    fn wait_for_acknowledgements(&self, patience: Duration) -> Result<bool, Fault>;

    /// Its counters on the wire, as far as the middleware has them.
    fn effort(&self) -> WriterEffort {
        WriterEffort::default()
    }
}

/// The readers of one subscriber.
pub trait Subscription {
    /// Writers matched now, by all its topics together.
    fn matched(&self) -> usize;

    /// Gives each arrival to `note` until `over` holds, and returns it. Earlier arrivals may be dropped.
    ///
    /// # Errors
    /// A sample is none of ours, or the middleware cannot go on.
    fn run(&self, over: &(dyn Fn() -> bool + Sync), note: Note) -> Result<Note, Fault>;

    /// Samples that newer ones took the place of before they were taken, as far as the middleware tells.
    fn overwritten(&self) -> u64 {
        0
    }

    /// Samples that arrived and found the history full, as far as the middleware tells.
    fn rejected(&self) -> u64 {
        0
    }
}
