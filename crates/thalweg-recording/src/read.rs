//! Reads a file from its beginning to its end, or to where it was cut off.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use mcap::McapError;
use mcap::records::Record;
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use serde::{Deserialize, Serialize};

use crate::channel::{CDR, INSTANCES, RecordedWriter};
use crate::chunk::Chunk;
use crate::error::RecordingError;
use crate::records::{self, END_BYTES, EndRecord, Found};
use crate::schema::TypeSchema;
use crate::structure::FileStructure;
use crate::summary::{RecordingSummary, SUMMARY};

/// A channel of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadChannel {
    /// Its number in the file.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// The encoding of its messages.
    pub message_encoding: String,
    /// The writer that it stands for, or why its messages cannot be written to a topic.
    pub writer: Result<RecordedWriter, String>,
}

impl ReadChannel {
    /// Whether its messages are ends of instances: not samples of a topic that somebody has given the same name.
    pub fn has_instance_ends(&self) -> bool {
        self.name == INSTANCES && self.message_encoding != CDR
    }
}

/// What a file has next.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A message.
    Message {
        /// Its channel.
        channel: Arc<ReadChannel>,
        /// The low 32 bits of its sequence number.
        sequence: u32,
        /// When it arrived, in nanoseconds since 1970.
        log_time_ns: u64,
        /// When it was written.
        publish_time_ns: u64,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// The end of an instance.
    InstanceEnd {
        /// What ended.
        end: InstanceEnd,
        /// When the notice arrived, in nanoseconds since 1970.
        log_time_ns: u64,
        /// When the instance ended.
        publish_time_ns: u64,
    },
    /// The counts at the end of a file of ours.
    Summary(RecordingSummary),
}

/// The end of an instance, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceEnd {
    /// The topic on the wire.
    pub topic: String,
    /// The writer's GUID.
    pub writer: String,
    /// The notice's sequence number.
    pub sequence: i64,
    /// True for a dispose, false for unregistering alone.
    pub disposed: bool,
    /// The serialized key with its encapsulation header, in hexadecimal; empty when it did not come along.
    pub key: String,
}

impl InstanceEnd {
    /// The serialized key; `None` where there is none.
    pub fn key_bytes(&self) -> Option<Vec<u8>> {
        let digits = self.key.as_bytes();
        if digits.is_empty() || !digits.len().is_multiple_of(2) {
            return None;
        }
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
    }
}

/// Reads a recording without holding more than a chunk of it.
pub struct RecordingReader<R> {
    input: R,
    reader: LinearReader,
    record_bytes_max: usize,
    /// The chunk that is being read.
    chunk: Option<Chunk>,
    schemas: BTreeMap<u16, Arc<TypeSchema>>,
    channels: BTreeMap<u16, Arc<ReadChannel>>,
    /// Bytes of both.
    definition_bytes: usize,
    /// How many channels the file says that it has, in its summary.
    channels_told: Option<usize>,
    has_begun: bool,
    is_over: bool,
    /// Why the file ends before its end.
    cut_off: Option<String>,
    /// The records, where they are compared with what the end of the file says of them.
    structure: Option<FileStructure>,
}

impl<R: Read> RecordingReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> RecordingReader<R> {
        RecordingReader::with_limit(input, RECORD_BYTES_MAX)
    }

    /// As [`RecordingReader::new`], with the most bytes that a record or chunk may have, compressed or not.
    pub fn with_limit(input: R, record_bytes_max: usize) -> RecordingReader<R> {
        RecordingReader::with_options(input, LinearReaderOptions::default(), record_bytes_max)
    }

    fn with_options(input: R, options: LinearReaderOptions, record_bytes_max: usize) -> RecordingReader<R> {
        let options = options.with_record_length_limit(record_bytes_max).with_emit_chunks(true);
        RecordingReader {
            input,
            reader: LinearReader::new_with_options(options),
            record_bytes_max,
            chunk: None,
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            definition_bytes: 0,
            channels_told: None,
            has_begun: false,
            is_over: false,
            cut_off: None,
            structure: None,
        }
    }

    /// As [`RecordingReader::with_limit`], and compares the data and the index with their checksums, and notes what
    /// [`RecordingReader::structure_faults`] tells.
    pub fn audited(input: R, record_bytes_max: usize) -> RecordingReader<R> {
        let options =
            LinearReaderOptions::default().with_validate_data_section_crc(true).with_validate_summary_section_crc(true);
        let reader = RecordingReader::with_options(input, options, record_bytes_max);
        RecordingReader { structure: Some(FileStructure::new()), ..reader }
    }

    /// In what the index and the statistics of a file that was read [audited](RecordingReader::audited) to its end differ from its
    /// records.
    pub fn structure_faults(&self) -> Vec<String> {
        self.structure.as_ref().map(FileStructure::faults).unwrap_or_default()
    }

    /// Why the file ends before its end, once [`RecordingReader::read_entry`] has given `None`.
    pub fn cut_off(&self) -> Option<&str> {
        self.cut_off.as_deref()
    }

    /// The channels that were met so far.
    pub fn channels(&self) -> impl Iterator<Item = &Arc<ReadChannel>> {
        self.channels.values()
    }

    /// The next entry; `None` at the end, or where the file was cut off.
    ///
    /// # Errors
    /// The file cannot be read, is no MCAP file, or its content contradicts itself.
    pub fn read_entry(&mut self) -> Result<Option<Entry>, RecordingError> {
        while !self.is_over {
            match self.step() {
                Ok(Step::Entry(entry)) => return Ok(Some(entry)),
                Ok(Step::More) => {}
                Ok(Step::End) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<Step, RecordingError> {
        if let Some(chunk) = &mut self.chunk {
            match chunk.next_record()? {
                Some(found) => return self.take(found),
                None => self.chunk = None,
            }
        }
        let wanted = match self.reader.next_event() {
            None => return Ok(Step::End),
            Some(Ok(LinearReadEvent::ReadRequest(wanted))) => wanted,
            Some(Ok(LinearReadEvent::Record { opcode, data })) => {
                self.has_begun = true;
                if let Some(structure) = &mut self.structure {
                    structure.see(opcode, data);
                }
                return match records::parse(opcode, data)? {
                    Found::Chunk => {
                        self.chunk = Some(Chunk::new(data, self.record_bytes_max)?);
                        Ok(Step::More)
                    }
                    found => self.take(found),
                };
            }
            Some(Err(McapError::UnexpectedEof)) if self.has_begun => {
                self.cut_off = Some("it ends before its end: it was not closed, or its end was cut off".to_owned());
                return Ok(Step::End);
            }
            Some(Err(McapError::BadMagic | McapError::UnexpectedEof)) if !self.has_begun => {
                return Err(RecordingError::new("it is no MCAP file"));
            }
            Some(Err(error)) => return Err(records::broken(error)),
        };
        // A length in a broken file is believed only as far as there are bytes.
        let room = self.reader.insert(wanted.min(READ_BYTES));
        let count = loop {
            match self.input.read(room) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.map_err(RecordingError::new)?,
            }
        };
        self.reader.notify_read(count);
        Ok(Step::More)
    }

    fn take(&mut self, found: Found) -> Result<Step, RecordingError> {
        match found {
            Found::Nothing | Found::Chunk => Ok(Step::More),
            Found::ChannelCount(count) => {
                self.channels_told = Some(count);
                Ok(Step::More)
            }
            Found::Record(record) => self.keep(record),
            Found::InstanceEnd(EndRecord { end, log_time_ns, publish_time_ns }) => {
                Ok(Step::Entry(Entry::InstanceEnd { end, log_time_ns, publish_time_ns }))
            }
        }
    }

    fn keep(&mut self, record: Record<'static>) -> Result<Step, RecordingError> {
        match record {
            Record::Schema { header, data } => {
                let text = String::from_utf8_lossy(&data).into_owned();
                let schema = TypeSchema { name: header.name, encoding: header.encoding, text };
                self.hold_definition(schema_bytes(&schema))?;
                if let Some(old) = self.schemas.insert(header.id, Arc::new(schema)) {
                    self.definition_bytes -= schema_bytes(&old) + DEFINITION_OVERHEAD;
                }
            }
            Record::Channel(channel) if !self.channels.contains_key(&channel.id) => {
                let of_metadata = channel.metadata.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
                self.hold_definition(channel.topic.len() + channel.message_encoding.len() + of_metadata)?;
                let schema = match channel.schema_id {
                    0 => None,
                    id => Some(self.schemas.get(&id).cloned().ok_or_else(|| {
                        RecordingError::new(format!("its channel {:?} has an unknown schema", channel.topic))
                    })?),
                };
                let writer =
                    RecordedWriter::of_channel(&channel.topic, &channel.message_encoding, &channel.metadata, schema);
                let read = ReadChannel {
                    id: channel.id,
                    name: channel.topic,
                    message_encoding: channel.message_encoding,
                    writer,
                };
                self.channels.insert(channel.id, Arc::new(read));
            }
            Record::Message { header, data } => {
                if let Some(structure) = &mut self.structure {
                    structure.see_message();
                }
                let Some(channel) = self.channels.get(&header.channel_id) else {
                    return Err(RecordingError::new(format!(
                        "a message belongs to channel {}, which it has not",
                        header.channel_id
                    )));
                };
                let (log_time_ns, publish_time_ns) = (header.log_time, header.publish_time);
                if channel.has_instance_ends() {
                    let end = records::read_end(&data)?;
                    return Ok(Step::Entry(Entry::InstanceEnd { end, log_time_ns, publish_time_ns }));
                }
                let (channel, sequence, data) = (Arc::clone(channel), header.sequence, data.into_owned());
                return Ok(Step::Entry(Entry::Message { channel, sequence, log_time_ns, publish_time_ns, data }));
            }
            Record::Metadata(metadata) if metadata.name == SUMMARY => {
                let text = metadata.metadata.get(SUMMARY).map_or("", String::as_str);
                let summary = serde_json::from_str(text)
                    .map_err(|error| RecordingError::new(format!("its counts are not understood: {error}")))?;
                return Ok(Step::Entry(Entry::Summary(summary)));
            }
            _ => {}
        }
        Ok(Step::More)
    }

    /// Counts the bytes of a schema or channel, which are held to the end: a short file may compress any number of them.
    fn hold_definition(&mut self, bytes: usize) -> Result<(), RecordingError> {
        self.definition_bytes += bytes.saturating_add(DEFINITION_OVERHEAD);
        if self.definition_bytes > DEFINITION_BYTES_MAX {
            let most = DEFINITION_BYTES_MAX >> 20;
            return Err(RecordingError::new(format!("its schemas and channels have more than {most} MiB")));
        }
        Ok(())
    }
}

fn schema_bytes(schema: &TypeSchema) -> usize {
    schema.name.len() + schema.encoding.len() + schema.text.len()
}

enum Step {
    Entry(Entry),
    More,
    End,
}

/// Most bytes of a record or chunk, chosen by us: a chunk is held whole until its checksum is known, and the greatest samples
/// in use have a quarter of this.
pub(crate) const RECORD_BYTES_MAX: usize = 256 << 20;
/// Most bytes of all schemas and channels, chosen by us: several times what a thousand topics of a large robot have.
const DEFINITION_BYTES_MAX: usize = 64 << 20;
/// Memory of a schema or channel beside its texts, so that empty ones are counted, too.
const DEFINITION_OVERHEAD: usize = 256;
/// Bytes that are read at once.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// The channels of a file: from its index, or where it was cut off, from all of it up to where it cannot be read further.
///
/// # Errors
/// When it cannot be read as far as a channel, or is no MCAP file.
pub fn channels_of(path: &Path) -> Result<Vec<Arc<ReadChannel>>, RecordingError> {
    let failed = |error: &dyn std::fmt::Display| RecordingError::of_file(path, error);
    let mut file = File::open(path).map_err(|error| failed(&error))?;
    if let Some(channels) = indexed_channels(&mut file) {
        return Ok(channels);
    }
    file.rewind().map_err(|error| failed(&error))?;
    let mut reader = RecordingReader::new(file);
    loop {
        match reader.read_entry() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) if reader.channels.is_empty() => return Err(failed(&error)),
            // Whoever reads on is told why.
            Err(_) => break,
        }
    }
    Ok(reader.channels.into_values().collect())
}

/// The channels in the index at the end of a file; `None` without one.
pub fn indexed_channels(file: &mut (impl Read + Seek)) -> Option<Vec<Arc<ReadChannel>>> {
    let mut end = [0; END_BYTES];
    file.seek(SeekFrom::End(-i64::try_from(END_BYTES).ok()?)).ok()?;
    file.read_exact(&mut end).ok()?;
    file.seek(SeekFrom::Start(records::summary_start(&end)?)).ok()?;
    let options = LinearReaderOptions::default().with_skip_start_magic(true);
    let mut reader = RecordingReader::with_options(file, options, RECORD_BYTES_MAX);
    while reader.read_entry().ok()?.is_some() {}
    // An index may leave out channels that have no messages, or all of them.
    if reader.cut_off.is_some() || reader.channels.len() < reader.channels_told? {
        return None;
    }
    Some(reader.channels.into_values().collect())
}
