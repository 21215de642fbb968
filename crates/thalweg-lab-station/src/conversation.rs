//! What the ends of a stream tell each other, beside the measured topic, on reliable topics: greeting, begin and end of the stream, what
//! each end saw. So all ends have the whole result, wherever they run.

use std::collections::{HashMap, HashSet};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::channel::SampleChannel;
use crate::fault::Fault;
use crate::link::Stop;
use crate::middleware::{ArrivedSample, Middleware, NumberedSample, SampleReader, SampleSink, SampleWriter};
use crate::perf_options::ANSWER_PATIENCE;
use crate::station::receive;
use crate::stream_figures::{ReaderEnd, WriterEnd};

/// A sentence of the conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Sentence {
    /// The writer asks whether the readers are at this point; it is repeated until all have answered.
    Ask(StreamPoint),
    /// A reader, named by a number of its own, is.
    Here(StreamPoint, u64),
    /// The stream is over, and everything in it was acknowledged.
    End(WriterEnd),
    /// Counts of this reader.
    Result(u64, ReaderEnd),
    /// Counts of all readers, the same at all ends.
    Results(Vec<ReaderEnd>),
}

/// A point of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StreamPoint {
    /// Everybody is there.
    Greeting,
    /// The warm-up is over; what comes now is measured.
    Begin,
}

/// One side of the conversation.
pub(crate) struct Talk<M: Middleware> {
    writer: M::Writer,
    readers: Vec<M::Reader>,
    heard: Receiver<Result<Sentence, Fault>>,
}

impl<M: Middleware<Sample: NumberedSample>> Talk<M> {
    /// The writer's side, with so many readers.
    pub(crate) fn of_writer(middleware: &M, readers: usize) -> Result<Talk<M>, Fault> {
        let topics = if M::JOINS_WRITERS { 1 } else { readers };
        Talk::open(middleware, TO_READER, &(0..topics).map(to_writer).collect::<Vec<_>>())
    }

    /// The side of reader `number`.
    pub(crate) fn of_reader(middleware: &M, number: usize) -> Result<Talk<M>, Fault> {
        let topic = to_writer(if M::JOINS_WRITERS { 0 } else { number });
        Talk::open(middleware, &topic, &[TO_READER.to_owned()])
    }

    fn open(middleware: &M, to: &str, from: &[String]) -> Result<Talk<M>, Fault> {
        let (sender, heard) = channel();
        let writer = middleware.writer(&SampleChannel::reliable(to))?;
        let reader = |topic: &String| middleware.reader(&SampleChannel::reliable(topic), Ear(sender.clone()));
        Ok(Talk { writer, readers: from.iter().map(reader).collect::<Result<_, _>>()?, heard })
    }

    /// Whether at least so many others are there, in both directions.
    pub(crate) fn is_matched(&self, others: usize) -> bool {
        self.writer.matched() >= others && self.writers_matched() >= others
    }

    /// Writers that are heard.
    pub(crate) fn writers_matched(&self) -> usize {
        self.readers.iter().map(SampleReader::matched).sum()
    }

    /// Asks until so many readers have answered.
    pub(crate) fn ask(&mut self, point: StreamPoint, readers: usize, stop: &Stop) -> Result<(), Fault> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut here = HashSet::new();
        while Instant::now() < deadline {
            self.say(&Sentence::Ask(point))?;
            let asked = Instant::now();
            while asked.elapsed() < ASKING_PERIOD {
                if let Some(Sentence::Here(at, reader)) = self.hear(ASKING_PERIOD, stop)?
                    && at == point
                {
                    here.insert(reader);
                }
                if here.len() >= readers {
                    return Ok(());
                }
            }
        }
        let (there, patience) = (here.len(), ANSWER_PATIENCE.as_secs());
        Err(Fault::Here(format!(
            "the other end matched but did not answer within {patience} s: {there} of {readers} readers did"
        )))
    }

    /// Counts of each reader.
    pub(crate) fn results(&mut self, readers: usize, stop: &Stop) -> Result<Vec<ReaderEnd>, Fault> {
        let mut ends = HashMap::new();
        while ends.len() < readers {
            let (reader, end) = self.wait_for(ANSWER_PATIENCE, stop, |sentence| match sentence {
                Sentence::Result(reader, end) => Some((reader, end)),
                _ => None,
            })?;
            ends.insert(reader, end);
        }
        Ok(ends.into_values().collect())
    }

    pub(crate) fn say(&mut self, sentence: &Sentence) -> Result<(), Fault> {
        self.writer.write(&M::Sample::of(serde_json::to_vec(sentence).map_err(Fault::here)?))?;
        self.writer.flush()
    }

    /// Waits until everything said was heard, or for a while: what then is missing the other end reports.
    pub(crate) fn settle(&mut self) -> Result<(), Fault> {
        self.writer.wait_for_acknowledgements(ANSWER_PATIENCE).map(drop)
    }

    /// The next sentence, where one comes within `patience`.
    pub(crate) fn hear(&mut self, patience: Duration, stop: &Stop) -> Result<Option<Sentence>, Fault> {
        receive(&self.heard, Instant::now() + patience, stop)?.transpose()
    }

    /// Waits for the sentence that `wanted` picks; skips others.
    pub(crate) fn wait_for<T>(
        &mut self,
        patience: Duration,
        stop: &Stop,
        wanted: impl Fn(Sentence) -> Option<T>,
    ) -> Result<T, Fault> {
        loop {
            match self.hear(patience, stop)?.map(&wanted) {
                Some(Some(found)) => return Ok(found),
                Some(None) => {}
                None => {
                    let patience = patience.as_secs();
                    return Err(Fault::Here(format!("the other end did not report within {patience} s")));
                }
            }
        }
    }
}

/// Hands on what is said.
struct Ear(Sender<Result<Sentence, Fault>>);

impl<M: Middleware> SampleSink<M> for Ear {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let sentence = serde_json::from_slice(arrival.bytes()).map_err(|error| {
            Fault::Here(format!("the other end says something that this version does not understand: {error}"))
        });
        // Nobody listens any more at the end of a measurement.
        let _ = self.0.send(sentence);
    }

    fn fail(&mut self, fault: Fault) {
        let _ = self.0.send(Err(fault));
    }
}

/// The topic of the writer's sentences.
pub const TO_READER: &str = "thalweg_perf_to_reader";

/// The topic of a reader's sentences: one for all but where the middleware does not join several writers.
pub fn to_writer(reader: usize) -> String {
    format!("thalweg_perf_to_writer_{reader}")
}

const ASKING_PERIOD: Duration = Duration::from_millis(50);
