//! Samples that the application serializes where they are sent from.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use thalweg_cdr as cdr;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Timestamp;
use thalweg_rtps::types::{KeyHash, SequenceNumber};

use super::DataWriter;
use super::data_writer::padding_of;
use super::sending::{recycle, take_buffer};
use crate::Error;

/// A buffer of a writer's pool for the serialized members of one sample, to be filled and [committed](Loan::commit). It is sent from
/// where it lies and shared with the history without a copy; dropped, it goes back to the pool.
pub struct Loan<'a, T> {
    writer: &'a DataWriter<T>,
    /// Encapsulation header, body and padding. Nobody else refers to it.
    buffer: Arc<Vec<u8>>,
    body_bytes: usize,
}

impl<T> DataWriter<T> {
    /// Lends a buffer for a sample of `body_bytes` serialized bytes; the encapsulation header and the padding are made as for
    /// [`DataWriter::write_body`]. The content of the buffer is unspecified, and may be that of an earlier sample of this process: fill
    /// all of it.
    pub fn loan(&self, encapsulation: cdr::Encapsulation, body_bytes: usize) -> Loan<'_, T> {
        let padding = padding_of(encapsulation, body_bytes);
        let mut buffer = take_buffer(cdr::ENCAPSULATION_BYTES + body_bytes + padding);
        let bytes = Arc::get_mut(&mut buffer).expect("a buffer that was just taken has no other owner");
        bytes[..2].copy_from_slice(&encapsulation.id().to_be_bytes());
        bytes[2..cdr::ENCAPSULATION_BYTES].copy_from_slice(&[0, padding as u8]);
        bytes[cdr::ENCAPSULATION_BYTES + body_bytes..].fill(0);
        Loan { writer: self, buffer, body_bytes }
    }
}

impl<T> Loan<'_, T> {
    /// Writes the sample, with the present time as its source timestamp.
    ///
    /// # Errors
    /// As [`DataWriter::write_payload`].
    pub fn commit(self) -> Result<SequenceNumber, Error> {
        self.commit_as(None, None)
    }

    /// As [`Loan::commit`], with `instance` and `timestamp` as in [`DataWriter::write_payload`].
    ///
    /// # Errors
    /// As [`DataWriter::write_payload`].
    pub fn commit_as(self, instance: Option<KeyHash>, timestamp: Option<Timestamp>) -> Result<SequenceNumber, Error> {
        let payload = Payload::new(Arc::clone(&self.buffer));
        self.writer.write_payload(&payload, instance, timestamp)
    }

    fn body(&self) -> std::ops::Range<usize> {
        cdr::ENCAPSULATION_BYTES..cdr::ENCAPSULATION_BYTES + self.body_bytes
    }
}

impl<T> Deref for Loan<'_, T> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.body()]
    }
}

impl<T> DerefMut for Loan<'_, T> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let body = self.body();
        &mut Arc::get_mut(&mut self.buffer).expect("a buffer on loan has no other owner")[body]
    }
}

impl<T> Drop for Loan<'_, T> {
    fn drop(&mut self) {
        recycle(&self.buffer);
    }
}

impl<T> fmt::Debug for Loan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes, {:?})", self.body_bytes, self.writer)
    }
}
