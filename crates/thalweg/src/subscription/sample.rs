//! A received sample on loan.

use std::fmt;
use std::marker::PhantomData;

use thalweg_cdr as cdr;
use thalweg_rtps::history::{PayloadKind, SampleInfo, TakenSample};
use thalweg_rtps::payload::Payload;
use thalweg_rtps::types::SampleIdentity;

use crate::{Error, ErrorKind, TopicType};

/// One received sample: its bytes, which may share a buffer with neighbours, and its description (DDS 1.4 §2.2.2.5.5).
///
/// Decoding happens when [`Sample::data`] is called, on the caller's thread. The buffer goes back to its pool when the last
/// sample in it is dropped. A sample that is kept for long may keep neighbours alive: up to 8 KiB, or eight times its own size,
/// when it has at most 512 bytes or a key; otherwise up to 64 KiB.
#[derive(Clone)]
pub struct Sample<T> {
    taken: TakenSample,
    type_marker: PhantomData<fn() -> T>,
}

impl<T> Sample<T> {
    pub(crate) fn new(taken: TakenSample) -> Sample<T> {
        Sample { taken, type_marker: PhantomData }
    }

    /// The sample's description, without its value.
    pub fn info(&self) -> &SampleInfo {
        &self.taken.info
    }

    /// Whether there is a value; false for a sample that only tells that an instance was disposed or lost its writers.
    pub fn is_valid(&self) -> bool {
        self.taken.info.valid
    }

    /// Whether its writer disposed the instance by it, whatever has become of the instance since; false for values, and where the writer
    /// has only unregistered the instance, or is gone.
    pub fn disposes(&self) -> bool {
        self.taken.change.disposes()
    }

    /// Its identity: what a reply to it is related to.
    pub fn identity(&self) -> SampleIdentity {
        SampleIdentity { writer: self.taken.info.writer, sequence: self.taken.info.sequence }
    }

    /// The sample that its writer related it to, as a reply is related to its request; see
    /// [`DataWriter::write_related`](crate::DataWriter::write_related).
    pub fn related_identity(&self) -> Option<SampleIdentity> {
        self.taken.related.as_deref().copied()
    }

    /// The serialized sample with its encapsulation header. For an invalid sample these are a sample or key of its instance, as
    /// [`Sample::bytes_kind`] tells, or empty; what came with it, where the reader
    /// [tells every end](crate::DataReaderBuilder::tell_every_end).
    pub fn bytes(&self) -> &[u8] {
        &self.taken.payload
    }

    /// Whether [`Sample::bytes`] are a whole sample or only a key.
    pub fn bytes_kind(&self) -> PayloadKind {
        self.taken.payload_kind
    }

    /// The bytes as a payload, which can be kept or written again without a copy.
    pub fn payload(&self) -> &Payload {
        &self.taken.payload
    }
}

impl<T: TopicType> Sample<T> {
    /// Decodes the value.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the sample has none, see [`Sample::is_valid`]; [`ErrorKind::Error`] when the
    /// bytes are not a value of the type, naming the offset and the expected bytes.
    pub fn data(&self) -> Result<T, Error> {
        self.expect_value("data")?;
        cdr::decode(self.bytes()).map_err(|error| undecodable("data", error))
    }

    /// As [`Sample::data`], in place of a value that is there, whose memory is used again: nothing is allocated where strings and
    /// sequences need no more than they had.
    ///
    /// # Errors
    /// As [`Sample::data`]; the value is then some value of its type.
    pub fn data_into(&self, value: &mut T) -> Result<(), Error> {
        self.expect_value("data_into")?;
        cdr::decode_into(value, self.bytes()).map_err(|error| undecodable("data_into", error))
    }

    fn expect_value(&self, operation: &'static str) -> Result<(), Error> {
        if self.is_valid() {
            return Ok(());
        }
        let cause = "found no value: the sample tells the end of an instance";
        Err(Error::new(ErrorKind::PreconditionNotMet, operation, cause)
            .advise("call key() for its key, and check is_valid() before data()"))
    }

    /// Decodes the key members, also those of an invalid sample; the values of other members are unspecified.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] when the key is not known, because the instance ended before any sample or key of it
    /// arrived; [`ErrorKind::Error`] as for [`Sample::data`].
    pub fn key(&self) -> Result<T, Error> {
        if self.bytes().is_empty() {
            let cause = "is not known: only a hash of it has arrived";
            return Err(Error::new(ErrorKind::PreconditionNotMet, "key", cause));
        }
        let decoded = match self.taken.payload_kind {
            PayloadKind::Data => cdr::decode(self.bytes()),
            PayloadKind::Key => cdr::decode_key(self.bytes()),
        };
        decoded.map_err(|error| undecodable("key", error))
    }
}

fn undecodable(operation: &'static str, error: cdr::DecodeError) -> Error {
    Error::new(ErrorKind::Error, operation, format!("cannot be decoded: {error}"))
        .because(error)
        .advise("writer and reader must use the same type definition")
}

impl<T> fmt::Debug for Sample<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({} bytes, {:?})", self.bytes().len(), self.info())
    }
}
