//! Reading by instance, and what a reader knows of instances.

use std::time::Duration;

use thalweg_cdr as cdr;
use thalweg_rtps::history::{InstanceState, PayloadKind, ReadFilter};
use thalweg_rtps::types::KeyHash;
use thalweg_transport::clock;

use super::data_reader::append;
use super::{DataReader, Sample};
use crate::runtime::{Deadline, on_io_thread};
use crate::{Error, ErrorKind, TopicType};

impl<T> DataReader<T> {
    /// The instance with samples that follows `after` in the order of key hashes; `None` starts with the first.
    pub fn next_instance(&self, after: Option<KeyHash>) -> Option<KeyHash> {
        self.cell().reader.lock().cache().next_instance(after)
    }

    /// State of an instance; `None` when it is not known, or no longer.
    pub fn instance_state(&self, instance: KeyHash) -> Option<InstanceState> {
        self.cell().reader.lock().cache().instance_state(instance)
    }

    /// Removes up to `max` samples of one instance.
    pub fn take_instance(&self, instance: KeyHash, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.take_into(max, &ReadFilter::instance(instance), &mut samples);
        samples
    }

    /// As [`DataReader::take_instance`], but the samples stay, marked READ.
    pub fn read_instance(&self, instance: KeyHash, max: usize) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.read_into(max, &ReadFilter::instance(instance), &mut samples);
        samples
    }

    /// Removes up to `max` samples of the first instance behind `after` that has samples which `filter` selects; `None` starts with
    /// the first. `after` need not be known any more. Empty when there is none.
    pub fn take_next_instance(&self, after: Option<KeyHash>, max: usize, filter: &ReadFilter) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.fetch(
            |reader, into| reader.take_next_instance(clock::now, after, max, filter, into),
            |taken| append(&mut samples, taken),
        );
        samples
    }

    /// As [`DataReader::take_next_instance`], but the samples stay, marked READ.
    pub fn read_next_instance(&self, after: Option<KeyHash>, max: usize, filter: &ReadFilter) -> Vec<Sample<T>> {
        let mut samples = Vec::new();
        self.fetch(
            |reader, into| reader.read_next_instance(clock::now, after, max, filter, into),
            |taken| append(&mut samples, taken),
        );
        samples
    }

    /// Waits until the samples have come that matched reliable writers keep for late readers (DDS 1.4 §2.2.2.5.3.27). Returns at once
    /// without such writers, and with DURABILITY VOLATILE: wait for their match first. Within an inline listener it never waits.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] after `timeout`.
    pub fn wait_for_historical_data(&self, timeout: Duration) -> Result<(), Error> {
        /// A HEARTBEAT without news wakes nobody.
        const LOOK_PERIOD: Duration = Duration::from_millis(5);
        let (cell, deadline) = (self.cell(), Deadline::after(timeout));
        let mut reader = cell.reader.lock();
        while !reader.has_historical_data() {
            if deadline.has_passed() || on_io_thread() {
                let cause = format!("timed out after {timeout:?}: a matched writer has more");
                let error =
                    Error::new(ErrorKind::Timeout, "wait_for_historical_data", cause).on_topic(self.topic_name());
                return Err(error.advise("take samples where the reader is full, or wait longer"));
            }
            reader = cell.waiters.wait(&cell.reader, reader, Deadline::after(deadline.left().min(LOOK_PERIOD)));
        }
        Ok(())
    }
}

impl<T: TopicType> DataReader<T> {
    /// The key members of an instance that the reader knows (DDS 1.4 §2.2.2.5.3.28); the values of other members are unspecified.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when the instance is not known, or only by a hash; [`ErrorKind::Error`] when its bytes are not a
    /// value of the type.
    pub fn key_value(&self, instance: KeyHash) -> Result<T, Error> {
        let failed = |kind, cause: String| Error::new(kind, "key_value", cause).on_topic(self.topic_name());
        let payload = self.cell().reader.lock().cache().key_payload(instance);
        let unknown = || failed(ErrorKind::BadParameter, "failed: the instance, or its key, is not known".to_owned());
        let (payload, kind) = payload.ok_or_else(unknown)?;
        let decoded = match kind {
            PayloadKind::Data => cdr::decode(&payload),
            PayloadKind::Key => cdr::decode_key(&payload),
        };
        decoded.map_err(|error| failed(ErrorKind::Error, format!("cannot be decoded: {error}")).because(error))
    }

    /// The instance of a value's key members, if the reader knows it (DDS 1.4 §2.2.2.5.3.29).
    pub fn lookup_instance(&self, key: &T) -> Option<KeyHash> {
        let instance = KeyHash(if T::KEYED { cdr::key_hash(key).ok()? } else { [0; 16] });
        self.instance_state(instance).map(|_| instance)
    }
}
