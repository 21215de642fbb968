//! Writing and waiting as a task of any asynchronous runtime.

use std::future::Future;
use std::sync::Arc;

use thalweg_cdr as cdr;
use thalweg_rtps::history::{ChangeKind, PayloadKind};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::types::{KeyHash, SequenceNumber};

use super::blocking::{acknowledgement_outcome, request_acknowledgements, store_failure};
use super::sending::{Outgoing, attempt, serialize};
use super::{DataWriter, WriterCell};
use crate::conditions::StatusKinds;
use crate::runtime::Waiters;
use crate::status::WriterStatus;
use crate::until::{Until, Watched};
use crate::{Error, TopicType, trace};

impl Watched for WriterCell {
    fn waiters(&self) -> &Arc<Waiters> {
        &self.waiters
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Writes a sample as [`DataWriter::write`] does, and waits for room without blocking a thread. `max_blocking_time` limits only
    /// calls that block: here the task's own time-out does. Nothing was written when the future is dropped before its end.
    ///
    /// The sample is encoded by this call, so that the future does not borrow it.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`](crate::ErrorKind::BadParameter) when the value cannot be encoded.
    pub fn send(&self, sample: &T) -> impl Future<Output = Result<SequenceNumber, Error>> + Send + Unpin + '_ {
        trace::write_enter();
        let representation = self.cell().representation;
        let encoded = self.instance_of("send", sample).map_err(Err).and_then(|instance| {
            if let Some(last) = self.unwanted(sample, instance) {
                return Err(Ok(last));
            }
            let encode = |buffer: &mut Vec<u8>| cdr::encode(sample, representation, buffer);
            let payload = serialize(cdr::encoded_size_hint(sample), encode);
            let payload = payload.map_err(|error| Err(self.unencodable("send", error)))?;
            trace::serialized();
            Ok(Outgoing { kind: ChangeKind::Write, instance, timestamp: None, payload, related: None })
        });
        self.send_outgoing(encoded)
    }
}

/// Asynchronous use. The futures belong to no runtime: the participant's I/O thread wakes the task. Each may be dropped at any time;
/// none ends by itself.
impl<T> DataWriter<T> {
    /// As [`DataWriter::send`] for a sample that is already serialized, with its encapsulation header; `instance` as in
    /// [`DataWriter::write_payload`].
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`](crate::ErrorKind::BadParameter) as for [`DataWriter::write_payload`].
    pub fn send_payload(
        &self,
        payload: &Payload,
        instance: Option<KeyHash>,
    ) -> impl Future<Output = Result<SequenceNumber, Error>> + Send + Unpin + '_ {
        trace::write_enter();
        let instance = self.instance_of_payload("send", payload, instance, PayloadKind::Data);
        let payload = payload.clone();
        let outgoing =
            |instance| Outgoing { kind: ChangeKind::Write, instance, timestamp: None, payload, related: None };
        self.send_outgoing(instance.map(outgoing).map_err(Err))
    }

    /// Sends a change, or has come to an end before.
    fn send_outgoing(
        &self,
        outgoing: Result<Outgoing, Result<SequenceNumber, Error>>,
    ) -> impl Future<Output = Result<SequenceNumber, Error>> + Send + Unpin + '_ {
        let state = self.runtime().state();
        let mut outgoing = Some(outgoing);
        let mut waits = false;
        Until::new(self.cell(), move |cell| {
            let change = match outgoing.take()? {
                Ok(change) => change,
                Err(outcome) => return Some(outcome),
            };
            let has_room = !waits || cell.writer.lock().ask_for_room(&change.instance, change.payload.len());
            if has_room {
                match attempt(state, cell, false, change.clone()) {
                    Ok(written) => return Some(Ok(written.sequence)),
                    Err(refused) => {
                        if let Some(error) = store_failure(cell, &refused) {
                            return Some(Err(error));
                        }
                    }
                }
            } else if let Some(error) = cell.store_failure("send") {
                return Some(Err(error));
            }
            (waits, outgoing) = (true, Some(Ok(change)));
            None
        })
    }

    /// Ends when every matched reliable reader has acknowledged all samples written so far, which it requests at once; the future's
    /// counterpart of [`DataWriter::wait_for_acknowledgments`].
    ///
    /// # Errors
    /// [`ErrorKind::Error`](crate::ErrorKind::Error) when a reader was given up, as for [`DataWriter::wait_for_acknowledgments`].
    pub fn until_acknowledged(&self) -> impl Future<Output = Result<(), Error>> + Send + Unpin + '_ {
        let mut asked = None;
        Until::new(self.cell(), move |cell| {
            let last = *asked.get_or_insert_with(|| request_acknowledgements(self.runtime().state(), cell));
            acknowledgement_outcome(cell, &mut cell.writer.lock(), last)
        })
    }

    /// Ends when at least `count` readers are matched.
    pub fn until_matched(&self, count: usize) -> impl Future<Output = ()> + Send + Unpin + '_ {
        Until::new(self.cell(), move |cell| (cell.writer.lock().matched_readers().len() >= count).then_some(()))
    }

    /// The statuses that have changed since they were last read or told, as soon as there is one; they count as told. A status
    /// listener is told first, and leaves nothing to this future.
    pub fn until_status(&self) -> impl Future<Output = Vec<WriterStatus>> + Send + Unpin + '_ {
        let changed = |changed: &Vec<_>| !changed.is_empty();
        Until::new(self.cell(), move |cell| Some(cell.take_changed(StatusKinds::ANY)).filter(changed))
    }
}
