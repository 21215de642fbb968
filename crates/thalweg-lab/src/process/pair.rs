//! Two processes of an experiment that talk with each other: one of them is heard, the other one may know why it failed.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Stop, Supervised};
use crate::error::LabError;

/// A sending and a receiving process; dropping it ends both.
#[derive(Debug)]
pub(crate) struct ProcessPair {
    sender: Supervised,
    // Dropped after the sender, so that nothing it still sends goes nowhere.
    receiver: Supervised,
}

impl ProcessPair {
    /// Of processes that were started.
    pub(crate) fn new(receiver: Supervised, sender: Supervised) -> ProcessPair {
        ProcessPair { sender, receiver }
    }

    /// What the sender is called in messages to the user.
    pub(crate) fn name(&self) -> &str {
        self.sender.name()
    }

    /// Hands the sender one more line of JSON.
    ///
    /// # Errors
    /// It is gone.
    pub(crate) fn send(&mut self, order: &impl Serialize) -> Result<(), LabError> {
        self.sender.send(order)
    }

    /// Hears the sender, see [`Supervised::hear_word`], and the receiver's reason when that gave up first.
    ///
    /// # Errors
    /// One of them failed, died or stayed silent, or `stop` was requested.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self, patience: Duration, stop: &Stop) -> Result<T, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            match self.sender.hear_word(LOOK_PERIOD, stop) {
                Err(LabError::Silent { .. }) if Instant::now() < deadline => self.receiver.check_alive()?,
                Err(LabError::Silent { process, last_words, .. }) => {
                    return Err(LabError::Silent { process, patience, last_words });
                }
                // What the sender noticed is often only that the receiver is gone.
                Err(error @ (LabError::Failed { .. } | LabError::Died { .. })) => {
                    return Err(self.receiver.check_alive().err().unwrap_or(error));
                }
                other => return other,
            }
        }
    }

    /// Hears the receiver.
    ///
    /// # Errors
    /// As [`Supervised::hear_word`].
    pub(crate) fn hear_receiver<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        stop: &Stop,
    ) -> Result<T, LabError> {
        self.receiver.hear_word(patience, stop)
    }

    /// Lines that both wrote on their standard error, the latest of each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        [self.sender.remarks(), self.receiver.remarks()].concat()
    }

    /// Ends both in peace.
    ///
    /// # Errors
    /// As [`Supervised::finish`].
    pub(crate) fn finish(self) -> Result<(), LabError> {
        self.sender.finish()?;
        self.receiver.finish()
    }
}

const LOOK_PERIOD: Duration = Duration::from_millis(200);
