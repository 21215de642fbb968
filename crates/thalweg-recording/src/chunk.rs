//! A chunk of a file: its records, once all of it is there.

use mcap::records::op;
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::error::RecordingError;
use crate::read::READ_BYTES;
use crate::records::{self, Found};

/// A chunk that is being read.
pub struct Chunk {
    /// As a record of a file.
    bytes: Vec<u8>,
    /// How many of them were read.
    place: usize,
    reader: LinearReader,
}

impl Chunk {
    /// The content of a chunk's record, which may have so many bytes when it is unpacked.
    ///
    /// # Errors
    /// A record in it that is not packed is longer than the chunk: the format's parser would count on beyond its end.
    pub fn new(content: &[u8], record_bytes_max: usize) -> Result<Chunk, RecordingError> {
        if !records::has_its_records(content) {
            return Err(RecordingError::new("its content is broken: a record is longer than its chunk"));
        }
        let bytes = [&[op::CHUNK][..], &(content.len() as u64).to_le_bytes(), content].concat();
        let options = LinearReaderOptions::default()
            .with_skip_start_magic(true)
            .with_skip_end_magic(true)
            .with_record_length_limit(record_bytes_max)
            .with_prevalidate_chunk_crcs(true);
        Ok(Chunk { bytes, place: 0, reader: LinearReader::new_with_options(options) })
    }

    /// The next record that is used; `None` behind the last one.
    ///
    /// # Errors
    /// It cannot be unpacked, or contradicts itself.
    pub fn next_record(&mut self) -> Result<Option<Found>, RecordingError> {
        loop {
            match self.reader.next_event() {
                None => return Ok(None),
                Some(Ok(LinearReadEvent::ReadRequest(wanted))) => {
                    let rest = &self.bytes[self.place..];
                    let count = wanted.min(READ_BYTES).min(rest.len());
                    self.reader.insert(count).copy_from_slice(&rest[..count]);
                    self.reader.notify_read(count);
                    self.place += count;
                }
                Some(Ok(LinearReadEvent::Record { opcode, data })) => {
                    let found = records::parse(opcode, data)?;
                    if matches!(found, Found::Record(_) | Found::InstanceEnd(_)) {
                        return Ok(Some(found));
                    }
                }
                Some(Err(error)) => return Err(records::broken(error)),
            }
        }
    }
}
