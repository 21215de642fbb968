//! The raw data of a run: one CSV file for each endpoint, times in nanoseconds since the origin of the schedule.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// A sample that a publisher wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenSample {
    /// Its place among the publisher's samples, from 0.
    pub number: u64,
    /// Just before the write.
    pub written_ns: u64,
    /// When the write returned.
    pub returned_ns: u64,
}

/// An arrival at a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSample {
    /// Number of its publisher.
    pub writer: u32,
    /// Its place among the publisher's samples, from 0.
    pub number: u64,
    /// Just before the write, as the sample itself says.
    pub written_ns: u64,
    /// When the subscriber had it.
    pub received_ns: u64,
}

/// Records of all endpoints of a run, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawRecords {
    /// In the order of the writes.
    pub written: Vec<Vec<WrittenSample>>,
    /// In the order of arrival.
    pub received: Vec<Vec<ReceivedSample>>,
}

impl RawRecords {
    /// Reads the files of a run with so many endpoints.
    ///
    /// # Errors
    /// A file is missing or damaged; the text names its line.
    pub fn read(folder: &Path, publishers: u32, subscribers: u32) -> Result<RawRecords, Fault> {
        let written = |index| {
            let rows = read_rows::<3>(&publisher_file(folder, index), WRITTEN_HEADER)?;
            let row = |[number, written_ns, returned_ns]: [u64; 3]| WrittenSample { number, written_ns, returned_ns };
            Ok::<_, Fault>(rows.into_iter().map(row).collect())
        };
        let received = |index| {
            let path = subscriber_file(folder, index);
            let row = |[writer, number, written_ns, received_ns]: [u64; 4]| {
                let writer = u32::try_from(writer).ok().filter(|writer| *writer < publishers);
                let writer = writer.ok_or_else(|| Fault::Here(format!("{}: unknown publisher", path.display())))?;
                Ok(ReceivedSample { writer, number, written_ns, received_ns })
            };
            read_rows::<4>(&path, RECEIVED_HEADER)?.into_iter().map(row).collect()
        };
        Ok(RawRecords {
            written: (0..publishers).map(written).collect::<Result<_, _>>()?,
            received: (0..subscribers).map(received).collect::<Result<_, Fault>>()?,
        })
    }
}

/// Writes the records of a publisher.
///
/// # Errors
/// The file cannot be written.
pub fn write_written(folder: &Path, index: u32, samples: &[WrittenSample]) -> Result<(), Fault> {
    let row = |sample: &WrittenSample| [sample.number, sample.written_ns, sample.returned_ns];
    write_rows(&publisher_file(folder, index), WRITTEN_HEADER, samples.iter().map(row))
}

/// Writes the records of a subscriber.
///
/// # Errors
/// The file cannot be written.
pub fn write_received(folder: &Path, index: u32, samples: &[ReceivedSample]) -> Result<(), Fault> {
    let row =
        |sample: &ReceivedSample| [u64::from(sample.writer), sample.number, sample.written_ns, sample.received_ns];
    write_rows(&subscriber_file(folder, index), RECEIVED_HEADER, samples.iter().map(row))
}

fn publisher_file(folder: &Path, index: u32) -> PathBuf {
    folder.join(format!("publisher-{index:03}.csv"))
}

fn subscriber_file(folder: &Path, index: u32) -> PathBuf {
    folder.join(format!("subscriber-{index:03}.csv"))
}

fn write_rows<const N: usize>(path: &Path, header: &str, rows: impl Iterator<Item = [u64; N]>) -> Result<(), Fault> {
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        writeln!(out, "{header}")?;
        let mut line = String::new();
        for row in rows {
            line.clear();
            for (column, value) in row.iter().enumerate() {
                line.push_str(if column == 0 { "" } else { "," });
                line.push_str(&value.to_string());
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        // After this, only a faulty disk loses the file.
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    };
    write().map_err(|error: std::io::Error| not_written(path, &error))
}

/// The error of a file that could not be written.
pub fn not_written(path: &Path, error: &std::io::Error) -> Fault {
    Fault::Here(format!("{} cannot be written: {error}; nothing of this run counts", path.display()))
}

fn read_rows<const N: usize>(path: &Path, header: &str) -> Result<Vec<[u64; N]>, Fault> {
    let shown = path.display();
    let file = File::open(path).map_err(|error| Fault::Here(format!("{shown} cannot be read: {error}")))?;
    let unreadable = |error| Fault::Here(format!("{shown} cannot be read: {error}"));
    let mut lines = BufReader::new(file).lines();
    if lines.next().transpose().map_err(unreadable)?.as_deref() != Some(header) {
        return Err(Fault::Here(format!("{shown}:1: expected {header:?}")));
    }
    let mut out = Vec::new();
    for (index, line) in lines.enumerate() {
        let line = line.map_err(unreadable)?;
        let mut row = [0; N];
        let mut words = line.split(',');
        for value in &mut row {
            let word = words.next().and_then(|word| word.parse().ok());
            *value = word.ok_or_else(|| Fault::Here(format!("{shown}:{}: expected {N} numbers", index + 2)))?;
        }
        out.push(row);
    }
    Ok(out)
}

const WRITTEN_HEADER: &str = "number,written_ns,returned_ns";
const RECEIVED_HEADER: &str = "writer,number,written_ns,received_ns";
