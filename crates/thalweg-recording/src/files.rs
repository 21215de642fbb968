//! The files of a recording.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::PrivateRecordOptions;
use mcap::{WriteOptions, Writer};

use crate::channel::{CDR, RecordedWriter};
use crate::error::RecordingError;
use crate::records;
use crate::schema::TypeSchema;
use crate::summary::{RecordingSummary, SUMMARY};

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// They are not: the disk has to follow, and the processor need not.
    #[default]
    None,
    /// LZ4.
    Lz4,
    /// Zstandard, level 1.
    Zstd,
}

/// Where and how a recording is written.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The file; with `split_bytes`, a number is put before its extension.
    pub path: PathBuf,
    /// Size at which the next file begins; the end of a file may lie a chunk, the indexes and what is repeated at its beginning beyond.
    pub split_bytes: Option<u64>,
    /// The chunks' compression.
    pub compression: Compression,
    /// Bytes of samples in a chunk, beyond which it is written.
    pub chunk_bytes: u64,
}

/// A sample or the end of an instance, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct RecordedMessage<'a> {
    /// The low 32 bits of its sequence number.
    pub sequence: u32,
    /// When it arrived, in nanoseconds since 1970.
    pub log_time_ns: u64,
    /// When it was written; without a time stamp, as `log_time_ns`.
    pub publish_time_ns: u64,
    /// The serialized sample.
    pub data: &'a [u8],
}

/// Writes one file after the other. Dropping it ends the last one as [`RecordingFiles::finish`] does, but without a summary.
pub struct RecordingFiles {
    options: FileOptions,
    writers: Vec<Arc<RecordedWriter>>,
    open: Option<OpenFile>,
    /// Paths of all files.
    paths: Vec<PathBuf>,
}

struct OpenFile {
    path: PathBuf,
    writer: Writer<Counted>,
    bytes: Arc<AtomicU64>,
    /// Bytes at its beginning that do not count for its size.
    repeated_bytes: u64,
    /// The channels of writers, by their numbers.
    channels: BTreeMap<usize, u16>,
    /// Bytes of private records since the last flush, which end no chunk.
    private_bytes: u64,
    /// Whether the chunk that is written has messages.
    has_messages: bool,
    /// Whether there are messages that no chunk in the file has.
    is_dirty: bool,
}

impl RecordingFiles {
    /// Creates the first file.
    ///
    /// # Errors
    /// When it exists already or cannot be created, or, with `split_bytes`, one of those that are to follow it exists.
    pub fn create(options: FileOptions) -> Result<RecordingFiles, RecordingError> {
        if let Some(other) = options.split_bytes.and_then(|_| left_over(&options.path)) {
            return Err(RecordingError::of_file(&other, EXISTS));
        }
        let mut files = RecordingFiles { options, writers: Vec::new(), open: None, paths: Vec::new() };
        files.open = Some(files.begin()?);
        Ok(files)
    }

    /// Makes a writer known; its channel is written with its first message of each file. Returns its number.
    pub fn add_writer(&mut self, writer: RecordedWriter) -> usize {
        self.writers.push(Arc::new(writer));
        self.writers.len() - 1
    }

    /// Begins the next file if this one has its size, with `summary` at the end of this one; true when it did.
    ///
    /// # Errors
    /// When the file cannot be ended, or the next one not be created.
    pub fn begin_if_due(&mut self, summary: impl FnOnce() -> RecordingSummary) -> Result<bool, RecordingError> {
        let bytes = self.open.as_ref().map_or(0, |open| open.bytes.load(Ordering::Relaxed) - open.repeated_bytes);
        let is_due = self.options.split_bytes.is_some_and(|split| bytes >= split);
        if is_due {
            self.finish(&summary())?;
            self.open = Some(self.begin()?);
        }
        Ok(is_due)
    }

    /// What was written since the last file began does not count for its size: it stood in the one before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn count_from_here(&mut self) -> Result<(), RecordingError> {
        self.flush()?;
        if let Some(open) = &mut self.open {
            open.repeated_bytes = open.bytes.load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// The files so far.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Writes a sample of a writer.
    ///
    /// # Errors
    /// When the file cannot be written, such as for want of space.
    pub fn write(&mut self, writer: usize, message: &RecordedMessage<'_>) -> Result<(), RecordingError> {
        let described = self.writers.get(writer).cloned();
        let described = described.ok_or_else(|| RecordingError::new("a sample of an unknown writer"))?;
        let open = self.open()?;
        let channel = match open.channels.get(&writer) {
            Some(channel) => *channel,
            None => {
                let channel = open.add_channel(&described)?;
                open.channels.insert(writer, channel);
                channel
            }
        };
        open.put(channel, message)
    }

    /// Writes that an instance ended: the data are the JSON of an [`InstanceEnd`](crate::read::InstanceEnd).
    ///
    /// Notices are private records (MCAP, *Records*), in the chunks where these have messages. Other programs skip them: a channel of them
    /// would be a topic that `ros2 bag` refuses with the whole file. Such a record has the opcode 0x80, the text `thalweg.instance_end` behind its length in 32
    /// bits, the times of reception and of the end in 64 bits each, in nanoseconds since 1970, and the JSON; numbers are little-endian.
    ///
    /// # Errors
    /// As [`RecordingFiles::write`].
    pub fn write_end(&mut self, message: &RecordedMessage<'_>) -> Result<(), RecordingError> {
        let chunk_bytes = self.options.chunk_bytes;
        let open = self.open()?;
        open.put_end(message)?;
        if open.private_bytes > chunk_bytes { self.flush() } else { Ok(()) }
    }

    /// Ends the current chunk, so that a file that is cut off later is read up to here.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        match self.open.as_mut().filter(|open| open.is_dirty) {
            None => Ok(()),
            Some(open) => {
                open.is_dirty = false;
                open.private_bytes = 0;
                open.has_messages = false;
                open.writer.flush().map_err(|error| RecordingError::of_content(&open.path, error))
            }
        }
    }

    /// Ends the last file with its indexes and the counts.
    ///
    /// # Errors
    /// When the file cannot be written; what was flushed before can be read all the same.
    pub fn finish(&mut self, summary: &RecordingSummary) -> Result<(), RecordingError> {
        self.open.take().map_or(Ok(()), |open| open.finish(summary))
    }

    fn open(&mut self) -> Result<&mut OpenFile, RecordingError> {
        self.open.as_mut().ok_or_else(|| RecordingError::new("the recording is over"))
    }

    fn begin(&mut self) -> Result<OpenFile, RecordingError> {
        let path = match self.options.split_bytes {
            None => self.options.path.clone(),
            Some(_) => numbered(&self.options.path, self.paths.len()),
        };
        let failed = |error: &dyn std::fmt::Display| RecordingError::of_file(&path, error);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => failed(&EXISTS),
            _ => failed(&error),
        })?;
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Counted { file: BufWriter::new(file), bytes: Arc::clone(&bytes) };
        let compression = match self.options.compression {
            Compression::None => None,
            Compression::Lz4 => Some(mcap::Compression::Lz4),
            Compression::Zstd => Some(mcap::Compression::Zstd),
        };
        let mut options = WriteOptions::new()
            // Serialized samples with `offered_qos_profiles`, as that profile wants them; Python's `rosbags` reads no other one.
            .profile("ros2")
            .library(concat!("thalweg ", env!("CARGO_PKG_VERSION")))
            .compression(compression)
            // The thread that writes compresses, too: the rest of the machine belongs to the robot.
            .compression_threads(0)
            .chunk_size(Some(self.options.chunk_bytes))
            // Chunks leave whole, so that a file that is cut off ends in at most one broken record.
            .disable_seeking(true);
        if self.options.compression == Compression::Zstd {
            options = options.compression_level(1);
        }
        let writer = options.create(counted).map_err(|error| RecordingError::of_content(&path, error))?;
        self.paths.push(path.clone());
        Ok(OpenFile {
            path,
            writer,
            bytes,
            repeated_bytes: 0,
            channels: BTreeMap::new(),
            private_bytes: 0,
            has_messages: false,
            is_dirty: false,
        })
    }
}

impl OpenFile {
    fn add_channel(&mut self, writer: &RecordedWriter) -> Result<u16, RecordingError> {
        let failed = |error| RecordingError::of_content(&self.path, error);
        // `ros2 bag` refuses a file with a channel that has no schema.
        let undescribed = || Arc::new(TypeSchema::undescribed(&writer.type_name));
        let schema = writer.schema.clone().unwrap_or_else(undescribed);
        let schema = self.writer.add_schema(&schema.name, &schema.encoding, schema.text.as_bytes()).map_err(failed)?;
        self.writer.add_channel(schema, &writer.channel_name(), CDR, &writer.to_metadata()).map_err(failed)
    }

    fn put(&mut self, channel_id: u16, message: &RecordedMessage<'_>) -> Result<(), RecordingError> {
        let header = MessageHeader {
            channel_id,
            sequence: message.sequence,
            log_time: message.log_time_ns,
            publish_time: message.publish_time_ns,
        };
        self.is_dirty = true;
        self.has_messages = true;
        let written = self.writer.write_to_known_channel(&header, message.data);
        written.map_err(|error| RecordingError::of_content(&self.path, error))
    }

    fn put_end(&mut self, message: &RecordedMessage<'_>) -> Result<(), RecordingError> {
        let record = records::instance_end(message.log_time_ns, message.publish_time_ns, message.data);
        self.is_dirty = true;
        self.private_bytes += record.len() as u64;
        // The index tells of a chunk without messages that it begins in 1970, and viewers believe that of the file.
        let place = if self.has_messages { PrivateRecordOptions::IncludeInChunks.into() } else { Default::default() };
        let written = self.writer.write_private_record(records::PRIVATE, &record, place);
        written.map_err(|error| RecordingError::of_content(&self.path, error))
    }

    fn finish(mut self, summary: &RecordingSummary) -> Result<(), RecordingError> {
        let failed = |error| RecordingError::of_content(&self.path, error);
        let text = serde_json::to_string(summary).map_err(|error| RecordingError::of_file(&self.path, error))?;
        let metadata =
            Metadata { name: SUMMARY.to_owned(), metadata: [(SUMMARY.to_owned(), text)].into_iter().collect() };
        self.writer.write_metadata(&metadata).map_err(failed)?;
        self.writer.finish().map_err(failed)?;
        Ok(())
    }
}

const EXISTS: &str = "exists already, and is not written over; name another file";

/// A file of an earlier recording under the name of one that may follow the first.
fn left_over(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names = std::fs::read_dir(folder).ok()?.flatten().map(|entry| path.with_file_name(entry.file_name()));
    let number = |other: &PathBuf| {
        let stem = other.file_stem()?.to_str()?.strip_prefix(path.file_stem()?.to_str()?)?;
        stem.strip_prefix('_')?.parse::<usize>().ok()
    };
    names.filter(|other| number(other).is_some_and(|number| numbered(path, number) == *other)).min()
}

/// `run_3.mcap` of `run.mcap`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}_{number}{extension}"))
}

/// A file that counts its bytes.
struct Counted {
    file: BufWriter<File>,
    bytes: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.file.write(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Counted {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
