//! What the ends of a stream tell each other, beside the measured topic, on two reliable topics: greeting, end of the stream, what
//! each end saw. So all ends have the whole result, wherever they run.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::figures::{ReaderEnd, WriterEnd};
use super::options::ANSWER_PATIENCE;
use crate::error::LabError;
use crate::process::Stop;
use crate::station::{
    ArrivalHandler, ArrivedSample, DeliveryGuarantee, Ended, Flow, Numbered, SampleReceiver, SampleSender, Station,
    Wait,
};

/// A sentence of the conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// The writer asks whether the readers are ready.
    Greeting,
    /// A reader, named by a number of its own, is.
    Ready(u64),
    /// The stream is over, and everything in it was acknowledged.
    End(WriterEnd),
    /// Counts of this reader.
    Result(u64, ReaderEnd),
    /// Counts of all readers, the same at all ends.
    Results(Vec<ReaderEnd>),
}

/// One side of the conversation.
pub(super) struct Talk {
    pub(super) sender: SampleSender,
    pub(super) receiver: SampleReceiver,
}

impl Talk {
    /// The writer's side.
    pub(super) fn of_writer(station: &Station) -> Result<Talk, LabError> {
        Ok(Talk { sender: station.sender(TO_READER, DELIVERY)?, receiver: station.receiver(TO_WRITER, DELIVERY)? })
    }

    /// A reader's side.
    pub(super) fn of_reader(station: &Station) -> Result<Talk, LabError> {
        Ok(Talk { sender: station.sender(TO_WRITER, DELIVERY)?, receiver: station.receiver(TO_READER, DELIVERY)? })
    }

    /// Whether at least so many others are there, in both directions.
    pub(super) fn is_matched(&self, others: usize) -> bool {
        self.sender.matched() >= others && self.receiver.matched() >= others
    }

    /// Greets until so many readers have answered.
    pub(super) fn greet(&self, readers: usize, stop: &Stop) -> Result<(), LabError> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut ready = HashSet::new();
        while Instant::now() < deadline {
            self.say(&Word::Greeting)?;
            let asked = Instant::now();
            while asked.elapsed() < GREETING_PERIOD {
                match self.receiver.run(Wait::Block, GREETING_PERIOD, &|| stop.is_requested(), Hear(None))? {
                    (Hear(Some(Word::Ready(reader))), _) => ready.insert(reader),
                    (_, Ended::Over) => return Err(LabError::Interrupted),
                    _ => false,
                };
                if ready.len() >= readers {
                    return Ok(());
                }
            }
        }
        let (there, patience) = (ready.len(), ANSWER_PATIENCE.as_secs());
        Err(LabError::Here(format!(
            "the other end matched but did not answer within {patience} s: {there} of {readers} readers did"
        )))
    }

    /// Counts of each reader.
    pub(super) fn results(&self, readers: usize, stop: &Stop) -> Result<Vec<ReaderEnd>, LabError> {
        let mut ends = HashMap::new();
        while ends.len() < readers {
            let (reader, end) = self.hear(ANSWER_PATIENCE, stop, |word| match word {
                Word::Result(reader, end) => Some((reader, end)),
                _ => None,
            })?;
            ends.insert(reader, end);
        }
        Ok(ends.into_values().collect())
    }

    pub(super) fn say(&self, word: &Word) -> Result<(), LabError> {
        say(&self.sender, word)
    }

    /// Waits for the word that `wanted` picks; skips others.
    pub(super) fn hear<T>(
        &self,
        patience: Duration,
        stop: &Stop,
        wanted: impl Fn(Word) -> Option<T>,
    ) -> Result<T, LabError> {
        loop {
            match self.receiver.run(Wait::Block, patience, &|| stop.is_requested(), Hear(None))? {
                (Hear(Some(word)), _) => {
                    if let Some(found) = wanted(word) {
                        return Ok(found);
                    }
                }
                (_, Ended::Over) => return Err(LabError::Interrupted),
                _ => {
                    let patience = patience.as_secs();
                    return Err(LabError::Here(format!("the other end did not report within {patience} s")));
                }
            }
        }
    }
}

/// Says one word.
pub(super) fn say(sender: &SampleSender, word: &Word) -> Result<(), LabError> {
    sender.send(&Numbered { number: 0, payload: serde_json::to_vec(word).map_err(LabError::here)? })
}

/// The word in a sample of the conversation.
pub(super) fn word(arrival: &ArrivedSample<'_>) -> Result<Word, LabError> {
    serde_json::from_slice(arrival.payload).map_err(|error| {
        LabError::Here(format!("the other end says something that this version does not understand: {error}"))
    })
}

/// Keeps the first word that arrives.
struct Hear(Option<Word>);

impl ArrivalHandler for Hear {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        self.0 = Some(word(&arrival)?);
        Ok(Flow::Enough)
    }
}

const TO_READER: &str = "thalweg_perf_to_reader";
const TO_WRITER: &str = "thalweg_perf_to_writer";
const DELIVERY: DeliveryGuarantee = DeliveryGuarantee::Reliable { max_samples: 1_000 };
const GREETING_PERIOD: Duration = Duration::from_millis(50);
