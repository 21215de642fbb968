//! Samples that are related to others, as a reply is to its request.

use thalweg_cdr as cdr;
use thalweg_rtps::history::{ChangeKind, PayloadKind};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::types::{KeyHash, SampleIdentity, SequenceNumber};

use super::DataWriter;
use super::sending::{Outgoing, serialize, write};
use crate::{Error, TopicType, trace};

impl<T: TopicType> DataWriter<T> {
    /// As [`DataWriter::write`] for a sample that is related to another one, as a reply is to its request: readers find it in
    /// [`Sample::related_identity`](crate::Sample::related_identity) (DDS-RPC 1.0).
    ///
    /// # Errors
    /// As [`DataWriter::write`].
    pub fn write_related(&self, sample: &T, related: SampleIdentity) -> Result<SequenceNumber, Error> {
        trace::write_enter();
        let instance = self.instance_of("write_related", sample)?;
        if let Some(last) = self.unwanted(sample, instance) {
            return Ok(last);
        }
        let representation = self.cell().representation;
        let encode = |buffer: &mut Vec<u8>| cdr::encode(sample, representation, buffer);
        let payload = serialize(cdr::encoded_size_hint(sample), encode);
        let payload = payload.map_err(|error| self.unencodable("write_related", error))?;
        trace::serialized();
        self.write_reply(payload, instance, related)
    }
}

impl<T> DataWriter<T> {
    /// As [`DataWriter::write_payload`] for a sample that is related to another one; see [`DataWriter::write_related`].
    ///
    /// # Errors
    /// As [`DataWriter::write_payload`].
    pub fn write_payload_related(
        &self,
        payload: &Payload,
        instance: Option<KeyHash>,
        related: SampleIdentity,
    ) -> Result<SequenceNumber, Error> {
        trace::write_enter();
        let instance = self.instance_of_payload("write_payload_related", payload, instance, PayloadKind::Data)?;
        self.write_reply(payload.clone(), instance, related)
    }

    fn write_reply(
        &self,
        payload: Payload,
        instance: KeyHash,
        related: SampleIdentity,
    ) -> Result<SequenceNumber, Error> {
        let (kind, related) = (ChangeKind::Write, Some(related));
        write(self.runtime().state(), self.cell(), Outgoing { kind, instance, timestamp: None, payload, related })
    }

    /// The identity of a sample that this writer wrote, by the number that the write returned: what replies to it are related to.
    pub fn identity_of(&self, sequence: SequenceNumber) -> SampleIdentity {
        SampleIdentity { writer: self.guid(), sequence }
    }
}
