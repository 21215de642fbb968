//! Many samples in one call.

use std::error::Error as StdError;
use std::fmt;

use thalweg_cdr as cdr;
use thalweg_rtps::history::ChangeKind;

use super::DataWriter;
use super::sending::{Outgoing, serialize, write, write_all};
use crate::{Error, TopicType, trace};

/// Samples that are serialized before the first of them is sent: enough that the lock and the system call cost nothing each, few
/// enough that the first need not wait and the bytes stay in the processor's cache.
const GROUP_MAX: usize = 64;

/// Why [`DataWriter::write_many`] ended early, and where; `?` makes an [`Error`] of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct WriteManyError {
    /// Samples in front of the failing one. These were written, that one and those behind it were not.
    pub written: usize,
    /// Why the next one was not written.
    pub error: Error,
}

impl fmt::Display for WriteManyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (after {} samples)", self.error, self.written)
    }
}

impl StdError for WriteManyError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.error)
    }
}

impl From<WriteManyError> for Error {
    fn from(failed: WriteManyError) -> Error {
        failed.error
    }
}

impl<T: TopicType> DataWriter<T> {
    /// Writes samples as [`DataWriter::write`] does one by one, with one look at the history and one passage to the network for up to 64
    /// of them: in order, each with a number of its own. Returns how many were written.
    ///
    /// # Errors
    /// As [`DataWriter::write`], with the number of samples that were written.
    pub fn write_many<'a>(&self, samples: impl IntoIterator<Item = &'a T>) -> Result<usize, WriteManyError>
    where
        T: 'a,
    {
        let mut samples = samples.into_iter();
        let mut written = 0;
        if self.cell().filters().any() {
            // Each sample is judged by itself.
            for sample in samples {
                self.write(sample).map_err(|error| WriteManyError { written, error })?;
                written += 1;
            }
            return Ok(written);
        }
        loop {
            trace::write_enter();
            let (mut group, mut failure) = (Vec::new(), None);
            for sample in samples.by_ref().take(GROUP_MAX) {
                match self.prepare(sample) {
                    Ok(outgoing) => group.push(outgoing),
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            let is_last = group.is_empty();
            let behind = |failed: WriteManyError| WriteManyError { written: written + failed.written, ..failed };
            written += self.write_group(group).map_err(behind)?;
            match failure {
                Some(error) => return Err(WriteManyError { written, error }),
                None if is_last => return Ok(written),
                None => {}
            }
        }
    }

    fn prepare(&self, sample: &T) -> Result<Outgoing, Error> {
        let instance = self.instance_of("write_many", sample)?;
        let representation = self.cell().representation;
        let encode = |buffer: &mut Vec<u8>| cdr::encode(sample, representation, buffer);
        let payload = serialize(cdr::encoded_size_hint(sample), encode);
        let payload = payload.map_err(|error| self.unencodable("write_many", error))?;
        Ok(Outgoing { kind: ChangeKind::Write, instance, timestamp: None, payload, related: None })
    }

    /// Writes what is serialized. What finds no room waits for it as a single write does, and the others follow.
    fn write_group(&self, group: Vec<Outgoing>) -> Result<usize, WriteManyError> {
        let (state, count) = (self.runtime().state(), group.len());
        let mut left = group.into_iter();
        while left.len() > 0 {
            if let Some(refused) = write_all(state, self.cell(), &mut left) {
                let written = count - left.len() - 1;
                write(state, self.cell(), refused).map_err(|error| WriteManyError { written, error })?;
            }
        }
        Ok(count)
    }
}
