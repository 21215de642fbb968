//! Many samples in one call.

use thalweg_cdr as cdr;
use thalweg_rtps::history::ChangeKind;

use super::DataWriter;
use super::sending::{Outgoing, serialize, write, write_all};
use crate::{Error, TopicType, trace};

/// Samples that are serialized before the first of them is sent: enough that the lock and the system call cost nothing each, few
/// enough that the first need not wait and the bytes stay in the processor's cache.
const GROUP_MAX: usize = 64;

impl<T: TopicType> DataWriter<T> {
    /// Writes samples as [`DataWriter::write`] does one by one, with one look at the history and one passage to the network for up to 64
    /// of them: in order, each with a number of its own. Returns how many were written.
    ///
    /// # Errors
    /// As [`DataWriter::write`], with the number of samples in front of the failing one: these were written, that one and those behind
    /// it were not.
    pub fn write_many<'a>(&self, samples: impl IntoIterator<Item = &'a T>) -> Result<usize, (usize, Error)>
    where
        T: 'a,
    {
        let mut samples = samples.into_iter();
        let mut written = 0;
        if self.cell().filters().any() {
            // Each sample is judged by itself.
            for sample in samples {
                self.write(sample).map_err(|error| (written, error))?;
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
            written += self.write_group(group).map_err(|(count, error)| (written + count, error))?;
            match failure {
                Some(error) => return Err((written, error)),
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
    fn write_group(&self, group: Vec<Outgoing>) -> Result<usize, (usize, Error)> {
        let (state, count) = (self.runtime().state(), group.len());
        let mut left = group.into_iter();
        while left.len() > 0 {
            if let Some(refused) = write_all(state, self.cell(), &mut left) {
                let in_front = count - left.len() - 1;
                write(state, self.cell(), refused).map_err(|error| (in_front, error))?;
            }
        }
        Ok(count)
    }
}
