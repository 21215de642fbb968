//! The handle that applications write through.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use thalweg_cdr as cdr;
use thalweg_rtps::history::{ChangeKind, PayloadKind};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Timestamp;
use thalweg_rtps::types::{Guid, KeyHash, Keyed, SequenceNumber};
use thalweg_rtps::writer::{WriterCounters, WriterExplanation};
use thalweg_transport::clock;

use super::blocking;
use super::sending::{Outgoing, copied, serialize, transmit, write, write_filled, write_serialized};
use super::{WriterCell, WriterStatusListener};
use crate::runtime::{Delivery, Runtime};
use crate::status::{DeadlineMissed, IncompatibleQos, LivelinessLost, Matched, ReadersGivenUp, WriterStatus};
use crate::{Error, ErrorKind, TopicType, trace};

/// Writes samples of type `T` to one topic (DDS 1.4 §2.2.2.4.2).
///
/// All methods take `&self` and may be called from any thread. A write sends on the calling thread. Dropping the writer deletes it
/// and tells its readers; samples without acknowledgement are lost, so call [`DataWriter::wait_for_acknowledgments`] first where
/// that matters.
///
/// ```no_run
/// # use std::time::Duration;
/// # use thalweg::qos::WriterQos;
/// # use thalweg::{DomainParticipant, Topic};
/// # #[derive(Topic)]
/// # struct Pose { x: f64 }
/// # fn main() -> Result<(), thalweg::Error> {
/// # let participant = DomainParticipant::new(0)?;
/// let topic = participant.create_topic::<Pose>("pose");
/// let writer = participant.create_writer(&topic, WriterQos::default().keep_last(8))?;
/// writer.write(&Pose { x: 1.0 })?;
/// writer.wait_for_acknowledgments(Duration::from_secs(1))?;
/// # Ok(())
/// # }
/// ```
pub struct DataWriter<T> {
    runtime: Arc<Runtime>,
    cell: Arc<WriterCell>,
    type_marker: PhantomData<fn(&T)>,
}

impl<T: TopicType> DataWriter<T> {
    /// Writes a sample, with the present time as its source timestamp, and returns its number.
    ///
    /// Reliable with KEEP_ALL (or exhausted limits), it waits up to `max_blocking_time` for room. With KEEP_ALL and samples
    /// above 2 KiB (collected ones from 512 bytes on) it also waits for readers on this host that are far behind, 5 ms at most, so that
    /// samples under way stay in the processor's cache; then it goes on in any case.
    ///
    /// Where the writer is volatile and the content filters of all its readers refuse the sample, nothing is sent or kept, and the
    /// number is that of the last sample written.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when there was no room in time: the text gives the number of readers that owe
    /// acknowledgements and the limit to raise; within an inline listener it comes at once, see [`Delivery::Inline`].
    /// [`ErrorKind::BadParameter`] when the value cannot be encoded.
    pub fn write(&self, sample: &T) -> Result<SequenceNumber, Error> {
        self.write_encoded(sample, None)
    }

    /// As [`DataWriter::write`], with a source timestamp of the application's choice.
    ///
    /// # Errors
    /// As [`DataWriter::write`].
    pub fn write_at(&self, sample: &T, timestamp: Timestamp) -> Result<SequenceNumber, Error> {
        self.write_encoded(sample, Some(timestamp))
    }

    fn write_encoded(&self, sample: &T, timestamp: Option<Timestamp>) -> Result<SequenceNumber, Error> {
        trace::write_enter();
        let instance = self.instance_of("write", sample)?;
        if let Some(last) = self.unwanted(sample, instance) {
            return Ok(last);
        }
        let representation = self.cell.representation;
        let (state, hint) = (self.runtime.state(), cdr::encoded_size_hint(sample));
        let encode = |buffer: &mut Vec<u8>| cdr::encode(sample, representation, buffer);
        write_filled(state, &self.cell, instance, timestamp, hint, encode)
            .map_err(|error| self.unencodable("write", error))?
    }

    /// The number of the last sample that was written, if nobody wants this one.
    #[inline]
    pub(super) fn unwanted(&self, sample: &T, instance: KeyHash) -> Option<SequenceNumber> {
        if self.cell.filters().any() { self.pass_over_unwanted(sample, instance) } else { None }
    }

    /// Does not write a sample that the content filter of every reader refuses; returns the number of the last one that was written.
    #[inline(never)]
    fn pass_over_unwanted(&self, sample: &T, instance: KeyHash) -> Option<SequenceNumber> {
        let refusing = self.cell.filters().refusing(sample);
        if refusing.is_empty() {
            return None;
        }
        let passed = self.cell.writer.lock().pass_over_unwanted(clock::now(), instance, &refusing)?;
        self.runtime.state().rearm(self.cell.guid().entity, passed.arm);
        Some(passed.sequence)
    }

    pub(super) fn instance_of(&self, operation: &'static str, sample: &T) -> Result<KeyHash, Error> {
        if !T::KEYED {
            return Ok(KeyHash::default());
        }
        cdr::key_hash(sample).map(KeyHash).map_err(|error| self.unencodable(operation, error))
    }

    pub(super) fn unencodable(&self, operation: &'static str, error: cdr::EncodeError) -> Error {
        Error::new(ErrorKind::BadParameter, operation, format!("cannot encode the sample: {error}"))
            .on_topic(&self.cell.topic.name)
            .because(error)
    }
}

impl<T> DataWriter<T> {
    pub(super) fn new(runtime: Arc<Runtime>, cell: Arc<WriterCell>) -> DataWriter<T> {
        DataWriter { runtime, cell, type_marker: PhantomData }
    }

    pub(crate) fn cell(&self) -> &Arc<WriterCell> {
        &self.cell
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Writes a sample that is already serialized, with its encapsulation header of four bytes (RTPS 2.5 §10.2).
    /// `bytes` are copied once, into a recycled buffer.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when there is no encapsulation header, or the topic is keyed and its key cannot be read;
    /// else as [`DataWriter::write`].
    pub fn write_serialized(&self, bytes: &[u8]) -> Result<SequenceNumber, Error> {
        trace::write_enter();
        let instance = self.instance_of_payload("write", bytes, None, PayloadKind::Data)?;
        let (state, cell) = (self.runtime.state(), &self.cell);
        if cell.collects() {
            return write_serialized(state, cell, instance, None, bytes);
        }
        let payload = copied(bytes);
        write(state, cell, Outgoing { kind: ChangeKind::Write, instance, timestamp: None, payload, related: None })
    }

    /// As [`DataWriter::write_serialized`] for the serialized members alone: the header is made of `encapsulation`, and the bytes are
    /// padded as XCDR2 wants it.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when the topic is keyed and its key cannot be read; else as [`DataWriter::write`].
    pub fn write_body(&self, encapsulation: cdr::Encapsulation, body: &[u8]) -> Result<SequenceNumber, Error> {
        let padding = padding_of(encapsulation, body.len());
        let fill = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
            buffer.extend_from_slice(&encapsulation.id().to_be_bytes());
            buffer.extend_from_slice(&[0, padding as u8]);
            buffer.extend_from_slice(body);
            buffer.extend_from_slice(&[0; 3][..padding]);
            Ok(())
        };
        match serialize(cdr::ENCAPSULATION_BYTES + body.len() + padding, fill) {
            Ok(payload) => self.write_payload(&payload, None, None),
            Err(never) => match never {},
        }
    }

    /// As [`DataWriter::write_serialized`] without a copy: `payload` is shared with the history until all readers have acknowledged
    /// it. `instance` is the sample's key hash, where the application knows it; `timestamp` is its source timestamp, `None` for
    /// now.
    ///
    /// # Errors
    /// As [`DataWriter::write_serialized`].
    pub fn write_payload(
        &self,
        payload: &Payload,
        instance: Option<KeyHash>,
        timestamp: Option<Timestamp>,
    ) -> Result<SequenceNumber, Error> {
        trace::write_enter();
        let instance = self.instance_of_payload("write", payload, instance, PayloadKind::Data)?;
        let payload = payload.clone();
        let outgoing = Outgoing { kind: ChangeKind::Write, instance, timestamp, payload, related: None };
        write(self.runtime.state(), &self.cell, outgoing)
    }

    pub(super) fn instance_of_payload(
        &self,
        operation: &'static str,
        payload: &[u8],
        instance: Option<KeyHash>,
        kind: PayloadKind,
    ) -> Result<KeyHash, Error> {
        let bad = |cause: &str| Error::new(ErrorKind::BadParameter, operation, cause).on_topic(&self.cell.topic.name);
        if payload.len() < cdr::ENCAPSULATION_BYTES {
            return Err(bad("got fewer than the four bytes of an encapsulation header"));
        }
        if self.cell.topic.keyed == Keyed::No {
            return Ok(KeyHash::default());
        }
        let computed = || self.cell.topic.keys.instance_of(payload, kind);
        let cannot = || {
            bad("cannot tell the instance of the bytes")
                .advise("pass its key hash, or create the topic with a function that computes it")
        };
        instance.or_else(computed).ok_or_else(cannot)
    }

    /// Sends collected samples at once (see [`Method`](crate::qos::Method)): a batch that is not full, for example at the end of a
    /// burst. Samples of an asynchronous writer still wait for tokens.
    pub fn flush(&self) {
        transmit(self.runtime.state(), &self.cell, false, |writer, _| (writer.flush(), None));
    }

    /// Announces that several samples will be written, which need not leave before [`DataWriter::resume_publications`]: then they share
    /// datagrams (DDS 1.4 §2.2.2.4.1.8). [`DataWriter::flush`], a wait for acknowledgements or for room, and 60,000 bytes let them leave
    /// earlier. Samples of an asynchronous writer wait for their flow controller alone.
    pub fn suspend_publications(&self) {
        self.cell.writer.lock().suspend();
    }

    /// Ends what [`DataWriter::suspend_publications`] began, and sends what waits.
    pub fn resume_publications(&self) {
        transmit(self.runtime.state(), &self.cell, false, |writer, _| (writer.resume(), None));
    }

    /// Waits until every matched reliable reader has acknowledged all samples written so far (DDS 1.4 §2.2.2.4.1.12), and requests
    /// acknowledgements at once.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] after `timeout`, saying how many readers owe an acknowledgement. [`ErrorKind::Error`] when a reader was
    /// given up since the last call, or is given up and owes one: with a finite
    /// [`WriterQos::reader_patience`](crate::qos::WriterQos::reader_patience) not everything that was written may have reached every
    /// reader.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<(), Error> {
        blocking::wait_for_acknowledgments(self.runtime.state(), &self.cell, timeout)
    }

    /// Waits until at least `count` readers are matched.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] after `timeout`, saying how many there are.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> Result<(), Error> {
        blocking::wait_for_matched(&self.cell, count, timeout)
    }

    /// Calls `listener` for every status change of this writer, in place of an earlier listener. It is told at once of changes
    /// since the writer was created, or since the status was last read, that no earlier listener was told of.
    /// [`Publisher::writer_builder`](crate::Publisher::writer_builder) sets a listener before the first change.
    ///
    /// # Errors
    /// [`ErrorKind::Error`] when the listener thread cannot be started.
    pub fn on_status(
        &self,
        delivery: Delivery,
        listener: impl FnMut(WriterStatus) + Send + 'static,
    ) -> Result<(), Error> {
        let state = self.runtime.state();
        state.start_listening(delivery)?;
        let listener: Box<WriterStatusListener> = Box::new(listener);
        self.cell.status_listener().set(delivery, listener);
        state.announce_writer_changes(&self.cell);
        Ok(())
    }

    /// PUBLICATION_MATCHED; its changes start from zero again.
    pub fn publication_matched(&self) -> Matched {
        self.cell.tell_matched()
    }

    /// OFFERED_INCOMPATIBLE_QOS, with the explanation; its changes start from zero again.
    pub fn offered_incompatible_qos(&self) -> IncompatibleQos {
        self.cell.tell_incompatible()
    }

    /// OFFERED_DEADLINE_MISSED; its change starts from zero again.
    pub fn offered_deadline_missed(&self) -> DeadlineMissed {
        self.cell.tell_deadline_missed()
    }

    /// LIVELINESS_LOST; its change starts from zero again.
    pub fn liveliness_lost(&self) -> LivelinessLost {
        self.cell.tell_liveliness_lost()
    }

    /// Gives a sign of life of the application without a sample, where the writer's LIVELINESS is manual: of this writer if it is so by
    /// topic, of all such writers of the participant if by participant (DDS 1.4 §2.2.2.4.2.22). Every write is one as well.
    pub fn assert_liveliness(&self) {
        let state = self.runtime.state();
        // An asynchronous writer leaves a sign of its own to the I/O thread.
        let by_participant = transmit(state, &self.cell, false, |writer, now| {
            let by_participant = writer.assert_liveliness(now);
            (by_participant, (!by_participant).then_some(now))
        });
        if by_participant {
            self.runtime.command(|now, participant| participant.assert_liveliness(now));
        }
    }

    /// Samples written from now on belong together: readers with coherent access see all of them at once or none (DDS 1.4
    /// §2.2.2.4.1.10). Calls may be nested; only the outermost pair makes a set. Readers without coherent access see them as they come.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the writer's PRESENTATION is not coherent, or spans all writers of its publisher: then
    /// [`Publisher::begin_coherent_changes`](crate::Publisher::begin_coherent_changes) begins sets.
    pub fn begin_coherent_changes(&self) -> Result<(), Error> {
        self.require_own_sets("begin_coherent_changes")?;
        if !self.cell.qos().presentation.coherent {
            let cause = "needs coherent access, which the writer's PRESENTATION does not offer";
            return Err(Error::new(ErrorKind::PreconditionNotMet, "begin_coherent_changes", cause)
                .on_topic(&self.cell.topic.name));
        }
        self.cell.writer.lock().begin_coherent_changes();
        Ok(())
    }

    /// Ends the set that [`DataWriter::begin_coherent_changes`] began.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when none was begun, or when the sets span all writers of the publisher: then
    /// [`Publisher::end_coherent_changes`](crate::Publisher::end_coherent_changes) ends them.
    pub fn end_coherent_changes(&self) -> Result<(), Error> {
        self.require_own_sets("end_coherent_changes")?;
        let state = self.runtime.state();
        // The timers of the writer are set, and an asynchronous one leaves the end to the I/O thread.
        let ended = transmit(state, &self.cell, false, |writer, now| {
            let ended = writer.end_coherent_changes(now, self.cell.stamp(state, now));
            (ended, ended.then_some(now))
        });
        if !ended {
            let cause = "found no coherent set that was begun";
            return Err(Error::new(ErrorKind::PreconditionNotMet, "end_coherent_changes", cause)
                .on_topic(&self.cell.topic.name));
        }
        Ok(())
    }

    /// Refuses to begin or end the writer's part of a set of its publisher.
    fn require_own_sets(&self, operation: &'static str) -> Result<(), Error> {
        if !self.cell.qos().presentation.spans_group() {
            return Ok(());
        }
        let cause = "concerns one writer, and the sets of GROUP access those of a whole publisher";
        let error = Error::new(ErrorKind::PreconditionNotMet, operation, cause).on_topic(&self.cell.topic.name);
        Err(error.advise("call begin_coherent_changes and end_coherent_changes of the publisher"))
    }

    /// READERS_GIVEN_UP: readers that exhausted [`WriterQos::reader_patience`](crate::qos::WriterQos::reader_patience); its changes start
    /// from zero again.
    pub fn readers_given_up(&self) -> ReadersGivenUp {
        self.cell.tell_given_up()
    }

    /// GUIDs of the readers matched now.
    pub fn matched_readers(&self) -> Vec<Guid> {
        self.cell.writer.lock().matched_readers().collect()
    }

    /// Counts of samples that this writer sent and repaired, and of answers that it refused.
    pub fn counters(&self) -> WriterCounters {
        self.cell.writer.lock().counters()
    }

    /// The transmission method and destinations of its samples now, with the reasons; `thalweg why` prints the same.
    pub fn explain(&self) -> WriterExplanation {
        let mut told = self.cell.writer.lock().explain(clock::now());
        told.topic.clone_from(&self.cell.topic.name);
        told
    }

    /// Samples in its history: not acknowledged by all readers, or kept for late readers.
    pub fn held(&self) -> usize {
        self.cell.writer.lock().held()
    }

    /// Its GUID.
    pub fn guid(&self) -> Guid {
        self.cell.guid()
    }

    /// Name of its topic.
    pub fn topic_name(&self) -> &str {
        &self.cell.topic.name
    }
}

/// Bytes that pad a body of so many bytes to a multiple of four, where XCDR2 wants it (DDS-XTypes 1.3 §7.6.3.1.2).
pub(super) fn padding_of(encapsulation: cdr::Encapsulation, body_bytes: usize) -> usize {
    match encapsulation.representation {
        cdr::Representation::Xcdr1 => 0,
        cdr::Representation::Xcdr2 => body_bytes.wrapping_neg() & 3,
    }
}

impl<T> Drop for DataWriter<T> {
    fn drop(&mut self) {
        self.flush();
        self.cell.status_listener().clear();
        let (state, entity) = (self.runtime.state(), self.cell.guid().entity);
        state.endpoints.remove(entity);
        self.runtime.command(|now, participant| {
            participant.delete_writer(now, entity);
            state.forget_unused_type(&self.cell.topic.name);
        });
    }
}

impl<T> fmt::Debug for DataWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataWriter({}, {:?})", self.guid(), self.topic_name())
    }
}
