//! The ends of instances: disposing and unregistering.

use thalweg_cdr as cdr;
use thalweg_rtps::history::{ChangeKind, PayloadKind};
use thalweg_rtps::types::{KeyHash, Keyed, SequenceNumber};
use thalweg_rtps::writer::InstanceStanding;

use super::DataWriter;
use super::sending::{Outgoing, copied, serialize, write};
use crate::{Error, ErrorKind, TopicType};

impl<T: TopicType> DataWriter<T> {
    /// Disposes the instance that the key members of `sample` name: readers see it as `NotAliveDisposed`.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the type has no key; else as [`DataWriter::write`].
    pub fn dispose(&self, sample: &T) -> Result<SequenceNumber, Error> {
        self.end_instance("dispose", sample, ChangeKind::Dispose)
    }

    /// Announces that this writer will not write the instance any more. Readers see it as disposed too, unless the QoS turns
    /// `autodispose` off; then they see it without writers, once all have unregistered it.
    ///
    /// A writer knows which instances it has written or disposed: as many as the QoS's `max_instances`, without that limit 2^20 of them at
    /// once. One that it does not know because it has more is unregistered without being disposed, since others may write it.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the type has no key, or when this writer has not written or disposed the instance, or not
    /// since it unregistered it (DDS 1.4 §2.2.2.4.2.7): then nothing is sent. Else as [`DataWriter::write`].
    pub fn unregister(&self, sample: &T) -> Result<SequenceNumber, Error> {
        self.end_instance("unregister", sample, self.unregister_kind())
    }

    fn end_instance(&self, operation: &'static str, sample: &T, kind: ChangeKind) -> Result<SequenceNumber, Error> {
        self.require_key(operation)?;
        let instance = self.instance_of(operation, sample)?;
        let kind = self.permitted(operation, kind, &instance)?;
        let representation = self.cell().representation;
        let encoded = serialize(64, |buffer| cdr::encode_key(sample, representation, buffer));
        let payload = encoded.map_err(|error| self.unencodable(operation, error))?;
        write(self.runtime().state(), self.cell(), Outgoing { kind, instance, timestamp: None, payload, related: None })
    }
}

impl<T> DataWriter<T> {
    /// Disposes the instance of a serialized key (encapsulation header and key members). `instance` as in
    /// [`DataWriter::write_payload`].
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the topic has no key; else as [`DataWriter::write_serialized`].
    pub fn dispose_serialized(&self, key: &[u8], instance: Option<KeyHash>) -> Result<SequenceNumber, Error> {
        self.end_serialized("dispose", key, instance, ChangeKind::Dispose)
    }

    /// Unregisters the instance of a serialized key, as [`DataWriter::unregister`] does.
    ///
    /// # Errors
    /// As [`DataWriter::unregister`] and [`DataWriter::write_serialized`].
    pub fn unregister_serialized(&self, key: &[u8], instance: Option<KeyHash>) -> Result<SequenceNumber, Error> {
        self.end_serialized("unregister", key, instance, self.unregister_kind())
    }

    fn end_serialized(
        &self,
        operation: &'static str,
        key: &[u8],
        instance: Option<KeyHash>,
        kind: ChangeKind,
    ) -> Result<SequenceNumber, Error> {
        self.require_key(operation)?;
        let payload = copied(key);
        let instance = self.instance_of_payload(operation, &payload, instance, PayloadKind::Key)?;
        let kind = self.permitted(operation, kind, &instance)?;
        write(self.runtime().state(), self.cell(), Outgoing { kind, instance, timestamp: None, payload, related: None })
    }

    fn require_key(&self, operation: &'static str) -> Result<(), Error> {
        if self.cell().topic.keyed == Keyed::Yes {
            return Ok(());
        }
        let cause = "needs instances, and the topic's type has no key";
        Err(Error::new(ErrorKind::PreconditionNotMet, operation, cause).on_topic(&self.cell().topic.name))
    }

    /// How an instance may end by this writer: only what it has registered is unregistered, and disposed with that.
    fn permitted(&self, operation: &'static str, kind: ChangeKind, instance: &KeyHash) -> Result<ChangeKind, Error> {
        if !kind.unregisters() {
            return Ok(kind);
        }
        let registration = self.cell().writer.lock().registration(instance);
        match registration {
            InstanceStanding::Registered => Ok(kind),
            InstanceStanding::Unknown => Ok(ChangeKind::Unregister),
            InstanceStanding::NotRegistered => {
                let cause = "failed: this writer has not written the instance, or has unregistered it already";
                let error = Error::new(ErrorKind::PreconditionNotMet, operation, cause);
                Err(error.on_topic(&self.cell().topic.name).advise("call dispose to end an instance of other writers"))
            }
        }
    }

    fn unregister_kind(&self) -> ChangeKind {
        if self.cell().qos().autodispose { ChangeKind::DisposeUnregister } else { ChangeKind::Unregister }
    }
}
