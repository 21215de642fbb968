//! A writer of a type that is known at run time, and what it writes.

use std::time::{Duration, Instant};

use thalweg::qos::WriterQos;
use thalweg::{DataWriter, DomainParticipant, Raw, Topic};
use thalweg_types::document::Document;

use super::offer::{TopicEnds, text};
use super::samples::{Next, SampleSource};
use super::{LOOK_PERIOD, PubOptions};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, remark};
use crate::qos_options::QosOptions;
use crate::strangers::MismatchedEndpoints;
use crate::value_type::{ValueType, representation};

/// The topic that is written.
pub struct PublishedTopic {
    /// Its name on the wire.
    pub name: String,
    /// Its type.
    pub of: ValueType,
}

/// A writer, made anew while readers come that ask for another QoS, until the first sample is written.
pub struct Session<'a> {
    participant: &'a DomainParticipant,
    options: &'a PubOptions,
    qos: &'a QosOptions,
    destination: &'a PublishedTopic,
    topic: Topic<Raw>,
    ends: TopicEnds,
    offered: WriterQos,
    writer: DataWriter<Raw>,
    written: u64,
}

impl<'a> Session<'a> {
    /// A writer for the readers that are known by now; where they ask for what is refused, with the QoS of the options alone.
    ///
    /// # Errors
    /// The type cannot be described to others, or the QoS is refused.
    pub fn new(
        participant: &'a DomainParticipant,
        options: &'a PubOptions,
        qos: &'a QosOptions,
        destination: &'a PublishedTopic,
    ) -> Result<Session<'a>, Failure> {
        let topic = destination.of.topic(participant, &destination.name)?;
        let ends = TopicEnds::of(participant, &destination.name);
        let mut offered = ends.offer(qos);
        let writer = participant.create_writer(&topic, offered.clone()).or_else(|error| {
            remark(format_args!("{REFUSED}: {error}"));
            offered = TopicEnds::default().offer(qos);
            participant.create_writer(&topic, offered.clone())
        });
        let writer = writer.map_err(Failure::from_cause)?;
        Ok(Session { participant, options, qos, destination, topic, ends, offered, writer, written: 0 })
    }

    /// Refuses a sample that does not fit the type.
    ///
    /// # Errors
    /// The path of the first value that does not fit, and what is expected there.
    pub fn check(&self, sample: &Document) -> Result<(), Failure> {
        let refused = |error| Failure::Usage(format!("the sample is no {}: {error}", self.destination.of.name()));
        self.encoded(sample.clone()).map(drop).map_err(refused)
    }

    /// Waits until as many readers match as the options want, and none has come for a while; follows what they ask for.
    ///
    /// # Errors
    /// Too few match in time.
    pub fn wait_for_readers(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        if self.options.wait_matching > 0 {
            self.wait_until_matched(interrupt)?;
        }
        let (offered, matched) = (text(&self.offered), self.writer.matched_readers().len());
        remark(format_args!("offers {offered}; {matched} of {} readers match", self.ends.readers.len()));
        if matched < self.ends.readers.len() {
            remark(MismatchedEndpoints::of(self.participant, self.writer.guid()).explain());
        }
        Ok(())
    }

    fn wait_until_matched(&mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        let wanted = self.options.wait_matching;
        let begun = Instant::now();
        let mut changed = begun;
        loop {
            if interrupt.came() {
                return Err(Failure::Interrupted);
            }
            if self.follow_readers() {
                changed = Instant::now();
            }
            // Best-effort readers lose what is written before they, too, have matched, and others may come in the same breath.
            let is_quiet = changed.elapsed() >= SETTLE;
            let matched = self.writer.matched_readers().len();
            let patience = self.options.source.patience;
            let is_late = begun.elapsed() >= patience;
            if matched >= wanted && (is_quiet || is_late) {
                return Ok(());
            }
            if is_late {
                let why = MismatchedEndpoints::of(self.participant, self.writer.guid()).explain();
                return Err(Failure::TimedOut(format!(
                    "{matched} of {wanted} readers of topic {:?} matched within {} s; {why}; start them, wait longer with --patience, \
                     or do not wait with --wait-matching 0",
                    self.destination.name,
                    patience.as_secs_f64()
                )));
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Looks who has the topic, and makes the writer anew where that changes its QoS; true where others have come or gone.
    fn follow_readers(&mut self) -> bool {
        let ends = TopicEnds::of(self.participant, &self.destination.name);
        if ends == self.ends {
            return false;
        }
        self.ends = ends;
        let offer = self.ends.offer(self.qos);
        if offer != self.offered {
            match self.participant.create_writer(&self.topic, offer.clone()) {
                Ok(writer) => (self.writer, self.offered) = (writer, offer),
                Err(error) => remark(format_args!("{REFUSED}: {error}")),
            }
        }
        true
    }

    /// Writes the samples at their times, and waits until the readers have acknowledged them.
    ///
    /// # Errors
    /// A sample does not fit the type, a write fails, or readers do not acknowledge in time.
    pub fn run(&mut self, mut samples: SampleSource, interrupt: &Interrupt) -> Result<(), Failure> {
        let ended = self.write_all(&mut samples, interrupt);
        let acknowledged = self.writer.wait_for_acknowledgments(self.options.source.patience);
        let (verb, name) = (if self.options.dispose { "disposed" } else { "wrote" }, &self.destination.name);
        let what = match (self.options.dispose, self.written) {
            (true, 1) => "instance",
            (true, _) => "instances",
            (false, 1) => "sample",
            (false, _) => "samples",
        };
        remark(format_args!("{verb} {} {what} of {name}", self.written));
        ended?;
        acknowledged.map_err(|error| match error.is_timeout() {
            true => Failure::TimedOut(format!("not everything was acknowledged in time: {error}")),
            false => Failure::from_cause(error),
        })
    }

    fn write_all(&mut self, samples: &mut SampleSource, interrupt: &Interrupt) -> Result<(), Failure> {
        let (limit, period) = (self.options.limit(), self.options.period());
        let mut due = Instant::now();
        while limit.is_none_or(|limit| self.written < limit) {
            interrupt.wait_until(due);
            let next = if interrupt.came() { Next::Interrupted } else { samples.next(interrupt)? };
            match next {
                Next::Value(sample, line) => self.write(sample, line)?,
                Next::End => break,
                // Without a count, Ctrl-C is how the user says that it is enough.
                Next::Interrupted if limit.is_none() && !samples.are_lines() => break,
                Next::Interrupted => return Err(Failure::Interrupted),
            }
            due = due.checked_add(period).unwrap_or(due);
        }
        Ok(())
    }

    fn write(&mut self, sample: Document, line: Option<u64>) -> Result<(), Failure> {
        let refused = |error: thalweg::cdr::EncodeError| {
            let what = line.map_or_else(|| "the sample".to_owned(), |line| format!("line {line}"));
            Failure::Failed(format!("{what} is no {}: {error}", self.destination.of.name()))
        };
        if self.options.dispose {
            let key = self.encoded(sample).map_err(refused)?;
            self.writer.dispose_serialized(&key, None).map_err(Failure::from_cause)?;
        } else if self.options.unregister {
            let key = self.encoded_key(&sample).map_err(refused)?;
            let payload = self.encoded(sample).map_err(refused)?;
            self.writer.write_serialized(&payload).map_err(Failure::from_cause)?;
            self.writer.unregister_serialized(&key, None).map_err(Failure::from_cause)?;
        } else {
            let payload = self.encoded(sample).map_err(refused)?;
            self.writer.write_serialized(&payload).map_err(Failure::from_cause)?;
        }
        self.written += 1;
        Ok(())
    }

    /// The bytes of a sample, or of its key where instances are disposed.
    fn encoded(&self, sample: Document) -> Result<Vec<u8>, thalweg::cdr::EncodeError> {
        match self.options.dispose {
            true => self.encoded_key(&sample),
            false => self.destination.of.encode(sample, representation(&self.offered)),
        }
    }

    fn encoded_key(&self, sample: &Document) -> Result<Vec<u8>, thalweg::cdr::EncodeError> {
        self.destination.of.encode_key(sample, representation(&self.offered)).map(|(_, key)| key)
    }
}

/// Beginning of the remark that a writer for all readers cannot be made; an error follows.
const REFUSED: &str = "no writer can offer what the readers ask for";
/// Time without a new reader after which the readers are taken for complete.
const SETTLE: Duration = Duration::from_millis(300);
