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

/// A latency sample of a closed loop, as its publisher saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    /// Its place among the publisher's samples, from 0.
    pub number: u64,
    /// The subscriber that answers it.
    pub reader: u32,
    /// Just before the write.
    pub sent_ns: u64,
    /// When its answer was there; `None` where none came.
    pub answered_ns: Option<u64>,
}

/// What a subscriber of a closed loop got of a publisher within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCount {
    /// Number of the publisher.
    pub writer: u32,
    /// The second of the measurement from 1; 0 is the time before it, and the number after the last one the time after it.
    pub second: u64,
    /// Samples that had not arrived before.
    pub received: u64,
    /// Samples that had.
    pub duplicates: u64,
    /// Those received after a later one.
    pub reordered: u64,
}

/// Records of a closed loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedRecords {
    /// Of the measured time, in the order of the writes.
    pub round_trips: Vec<LatencySample>,
    /// By number of the subscriber.
    pub arrivals: Vec<Vec<ArrivalCount>>,
}

impl ClosedRecords {
    /// Reads the files of a run with so many endpoints.
    ///
    /// # Errors
    /// A file is missing or damaged; the text names its line.
    pub fn read(folder: &Path, publishers: u32, subscribers: u32) -> Result<ClosedRecords, Fault> {
        let path = folder.join(ROUND_TRIPS);
        let round_trip = |[number, reader, sent_ns, answered_ns]: [u64; 4]| {
            let answered_ns = (answered_ns > 0).then_some(answered_ns);
            Ok(LatencySample { number, reader: known(&path, reader, subscribers, "subscriber")?, sent_ns, answered_ns })
        };
        let arrivals = |index| {
            let path = arrivals_file(folder, index);
            let count = |[writer, second, received, duplicates, reordered]: [u64; 5]| {
                let writer = known(&path, writer, publishers, "publisher")?;
                Ok(ArrivalCount { writer, second, received, duplicates, reordered })
            };
            read_rows::<5>(&path, ARRIVALS_HEADER)?.into_iter().map(count).collect()
        };
        Ok(ClosedRecords {
            round_trips: read_rows::<4>(&path, ROUND_TRIPS_HEADER)?
                .into_iter()
                .map(round_trip)
                .collect::<Result<_, Fault>>()?,
            arrivals: (0..subscribers).map(arrivals).collect::<Result<_, Fault>>()?,
        })
    }
}

/// The number of an endpoint, which must be one of so many.
fn known(path: &Path, number: u64, count: u32, role: &str) -> Result<u32, Fault> {
    let known = u32::try_from(number).ok().filter(|number| *number < count);
    known.ok_or_else(|| Fault::Here(format!("{}: unknown {role}", path.display())))
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
                let writer = known(&path, writer, publishers, "publisher")?;
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

/// Writes the round trips of a closed loop.
///
/// # Errors
/// The file cannot be written.
pub fn write_round_trips(folder: &Path, round_trips: &[LatencySample]) -> Result<(), Fault> {
    // No answer comes at the origin.
    let row = |one: &LatencySample| [one.number, u64::from(one.reader), one.sent_ns, one.answered_ns.unwrap_or(0)];
    write_rows(&folder.join(ROUND_TRIPS), ROUND_TRIPS_HEADER, round_trips.iter().map(row))
}

/// Writes the counts of a subscriber of a closed loop.
///
/// # Errors
/// The file cannot be written.
pub fn write_arrivals(folder: &Path, index: u32, counts: &[ArrivalCount]) -> Result<(), Fault> {
    let row = |one: &ArrivalCount| [u64::from(one.writer), one.second, one.received, one.duplicates, one.reordered];
    write_rows(&arrivals_file(folder, index), ARRIVALS_HEADER, counts.iter().map(row))
}

fn arrivals_file(folder: &Path, index: u32) -> PathBuf {
    folder.join(format!("arrivals-{index:03}.csv"))
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
const ROUND_TRIPS: &str = "round-trips.csv";
const ROUND_TRIPS_HEADER: &str = "number,reader,sent_ns,answered_ns";
const ARRIVALS_HEADER: &str = "writer,second,received,duplicates,reordered";
const RECEIVED_HEADER: &str = "writer,number,written_ns,received_ns";
