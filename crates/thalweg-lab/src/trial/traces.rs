//! Layer traces: when chosen samples passed the layers of both ends, as CSV, as spans between two points, and for trace viewers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thalweg::trace::Point;
use thalweg_lab_station::not_written;

use crate::error::LabError;

/// A sample passed a point in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) process: String,
    /// GUID of the writer, and of the reader on its side.
    pub(crate) writer: String,
    pub(crate) reader: String,
    pub(crate) sequence: u64,
    pub(crate) point: Point,
    /// Since the origin of the schedule.
    pub(crate) at_ns: u64,
    pub(crate) thread: u32,
}

/// The way of a sample from one point to the next that it passed; named after the point at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it ends: its place in `rows` of [`spans`].
    pub(crate) end: usize,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// From when the sample's `write` was called to the beginning.
    pub(crate) since_write_ns: Option<u64>,
}

/// Writes what this process traced since tracing was started; `process` names it.
pub(crate) fn write(folder: &Path, process: &str, origin_ns: u64) -> Result<(), LabError> {
    let mut text = format!("{HEADER}\n");
    for passage in thalweg::trace::take() {
        let Some(at_ns) = passage.at.as_nanos().checked_sub(origin_ns) else { continue };
        let (writer, reader, sequence) = (passage.writer, passage.reader, passage.sequence.0);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{writer},{reader},{sequence},{},{at_ns},{}", passage.point.name(), passage.thread);
    }
    let path = folder.join(format!("{PREFIX}{}.csv", process.replace(' ', "-")));
    std::fs::write(&path, text).map_err(|error| LabError::from(not_written(&path, &error)))
}

/// The files of a run's processes by the processes' names.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: PathBuf| {
        let process = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(".csv")?.to_owned();
        Some((process, path))
    };
    let mut out: Vec<(String, PathBuf)> = entries.filter_map(named).collect();
    out.sort();
    out
}

/// Replaces each time of each process by what `to` makes of it.
pub(super) fn shift(folder: &Path, to: impl Fn(&str, u64) -> u64) -> Result<(), LabError> {
    for (process, path) in files(folder) {
        let mut out = format!("{HEADER}\n");
        for row in load(&process, &path)? {
            let Row { writer, reader, sequence, point, at_ns, thread, .. } = row;
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{writer},{reader},{sequence},{},{},{thread}", point.name(), to(&process, at_ns));
        }
        std::fs::write(&path, out).map_err(|error| LabError::from(not_written(&path, &error)))?;
    }
    Ok(())
}

/// Traces of all processes of a run; empty without tracing.
pub(crate) fn read(folder: &Path) -> Result<Vec<Row>, LabError> {
    let all: Result<Vec<Vec<Row>>, LabError> =
        files(folder).iter().map(|(process, path)| load(process, path)).collect();
    Ok(all?.concat())
}

/// Traces of one process.
fn load(process: &str, path: &Path) -> Result<Vec<Row>, LabError> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| LabError::Here(format!("{shown} cannot be read: {error}")))?;
    let row = |(index, line): (usize, &str)| {
        parse(process, line).ok_or_else(|| LabError::Here(format!("{shown}:{}: expected {HEADER}", index + 1)))
    };
    text.lines().enumerate().skip(1).map(row).collect()
}

fn parse(process: &str, line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split(',').collect();
    let [writer, reader, sequence, point, at_ns, thread] = words[..] else { return None };
    Some(Row {
        process: process.to_owned(),
        writer: writer.to_owned(),
        reader: reader.to_owned(),
        sequence: sequence.parse().ok()?,
        point: Point::ALL.into_iter().find(|known| known.name() == point)?,
        at_ns: at_ns.parse().ok()?,
        thread: thread.parse().ok()?,
    })
}

/// Which row tells of a sample's point, by side: the reader, or nobody for the publisher.
type Way<'a> = BTreeMap<(&'a str, Point), usize>;

/// From each point that a sample passed to the next one. The first datagram of a sample counts where it is sent, the last one where the
/// call is done; what crosses to a reader begins with the system call, which on one host may return later than the reader receives.
pub(crate) fn spans(rows: &[Row]) -> Vec<Span> {
    let mut samples: BTreeMap<(&str, u64), Way<'_>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let side = if row.point < Point::Received { "" } else { row.reader.as_str() };
        let points = samples.entry((&row.writer, row.sequence)).or_default();
        let place = points.entry((side, row.point)).or_insert(index);
        let is_later = row.at_ns > rows[*place].at_ns;
        if is_later == (row.point == Point::SendExit) {
            *place = index;
        }
    }
    let mut out = Vec::new();
    for points in samples.values() {
        let at = |side: &str, point| points.get(&(side, point)).map(|index: &usize| rows[*index].at_ns);
        let written = at("", Point::WriteEnter);
        let mut sides: Vec<&str> = points.keys().map(|(side, _)| *side).collect();
        sides.dedup();
        for side in sides {
            let mut from = if side.is_empty() { None } else { at("", Point::SendEnter) };
            for (_, index) in points.iter().filter(|((other, _), _)| *other == side) {
                let to_ns = rows[*index].at_ns;
                if let Some(from_ns) = from.filter(|from| *from <= to_ns) {
                    let since_write_ns = written.and_then(|written| from_ns.checked_sub(written));
                    out.push(Span { end: *index, from_ns, to_ns, since_write_ns });
                }
                from = Some(to_ns);
            }
        }
    }
    out
}

/// Writes the trace of a run for Perfetto and `chrome://tracing`; nothing where nothing was traced.
pub(super) fn export(folder: &Path) -> Result<(), LabError> {
    let rows = read(folder)?;
    if rows.is_empty() {
        return Ok(());
    }
    let path = folder.join(EXPORT);
    std::fs::write(&path, to_json(&rows).to_string()).map_err(|error| LabError::from(not_written(&path, &error)))
}

/// The Trace Event Format: a complete event for each span, a flow from each sending to each receiving process.
fn to_json(rows: &[Row]) -> Value {
    let mut processes: Vec<&str> = rows.iter().map(|row| row.process.as_str()).collect();
    processes.sort_unstable();
    processes.dedup();
    let number = |process: &str| processes.iter().position(|other| *other == process).map_or(0, |place| place + 1);
    let name = |process: &&str| json!({ "name": "process_name", "ph": "M", "pid": number(process), "tid": 0, "args": { "name": process } });
    let mut events: Vec<Value> = processes.iter().map(name).collect();
    for span in spans(rows).into_iter().take(EXPORT_MAX) {
        let row = &rows[span.end];
        let crosses = row.point == Point::Received;
        let mut event = json!({
            "name": label(row.point),
            "cat": if row.point < Point::Received { "publisher" } else { "subscriber" },
            "ph": "X",
            "pid": number(&row.process),
            "tid": row.thread,
            "ts": span.from_ns as f64 / 1e3,
            "dur": (span.to_ns - span.from_ns) as f64 / 1e3,
            "args": { "writer": row.writer, "sequence": row.sequence },
        });
        if crosses {
            // The way between processes belongs to no thread of theirs.
            event["tid"] = json!(0);
        }
        events.push(event);
    }
    json!({ "displayTimeUnit": "ns", "traceEvents": events })
}

/// The work on the way to a point.
pub(crate) fn label(point: Point) -> &'static str {
    match point {
        Point::WriteEnter => "call write",
        Point::Serialized => "serialize",
        Point::Stored => "find room and store",
        Point::TokenGranted => "get the token",
        Point::Packed => "pack into datagrams",
        Point::SendEnter => "leave the lock",
        Point::SendExit => "system call that sends",
        Point::Received => "kernel, wire, kernel",
        Point::Parsed => "parse",
        Point::Reassembled => "reassemble",
        Point::Ordered => "order",
        Point::Cached => "put into the cache",
        Point::Notified => "notify",
        Point::Taken => "wake up and take",
    }
}

/// The file for trace viewers.
const EXPORT: &str = "trace.json";
const PREFIX: &str = "trace-";
const HEADER: &str = "writer,reader,sequence,point,at_ns,thread";
/// A viewer shows no more at a time; the CSV files hold all.
const EXPORT_MAX: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(process: &str, reader: &str, point: Point, at_ns: u64) -> Row {
        let (process, reader) = (process.to_owned(), reader.to_owned());
        Row { process, writer: "w".to_owned(), reader, sequence: 100, point, at_ns, thread: 1 }
    }

    /// A sample of two datagrams to two readers; the first one receives before the system call returns.
    fn rows() -> Vec<Row> {
        vec![
            row("p", "", Point::WriteEnter, 1_000),
            row("p", "", Point::Serialized, 1_500),
            row("p", "", Point::Stored, 1_600),
            row("p", "", Point::SendEnter, 2_000),
            row("p", "", Point::SendExit, 3_000),
            row("p", "", Point::SendEnter, 3_100),
            row("p", "", Point::SendExit, 4_000),
            row("s", "r1", Point::Received, 3_900),
            row("s", "r1", Point::Cached, 4_100),
            row("s", "r2", Point::Received, 5_000),
            row("s", "r2", Point::Taken, 5_500),
        ]
    }

    #[test]
    fn spans_go_from_point_to_point_on_both_sides() {
        let rows = rows();
        let found: Vec<(&str, Point, u64, u64, Option<u64>)> = spans(&rows)
            .into_iter()
            .map(|span| {
                let end = &rows[span.end];
                (end.reader.as_str(), end.point, span.from_ns, span.to_ns, span.since_write_ns)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("", Point::Serialized, 1_000, 1_500, Some(0)),
                ("", Point::Stored, 1_500, 1_600, Some(500)),
                ("", Point::SendEnter, 1_600, 2_000, Some(600)),
                ("", Point::SendExit, 2_000, 4_000, Some(1_000)),
                ("r1", Point::Received, 2_000, 3_900, Some(1_000)),
                ("r1", Point::Cached, 3_900, 4_100, Some(2_900)),
                ("r2", Point::Received, 2_000, 5_000, Some(1_000)),
                ("r2", Point::Taken, 5_000, 5_500, Some(4_000)),
            ]
        );
    }

    #[test]
    fn the_export_is_what_trace_viewers_read() {
        let text = to_json(&rows()).to_string();
        let parsed: Value = serde_json::from_str(&text).expect("JSON");
        let events = parsed["traceEvents"].as_array().expect("an array of events");
        assert_eq!(events.iter().filter(|event| event["ph"] == "M").count(), 2);
        let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(complete.len(), 8);
        for event in complete {
            assert!(event["ts"].is_f64() && event["dur"].as_f64() >= Some(0.0) && event["pid"].is_u64(), "{event}");
            assert!(event["tid"].is_u64() && event["name"].is_string(), "{event}");
        }
    }

    #[test]
    fn rows_survive_their_file_and_nonsense_is_refused() {
        assert_eq!(parse("p", "w,,100,write_enter,1000,1"), Some(row("p", "", Point::WriteEnter, 1_000)));
        for line in ["w,,100,write,1000,1", "w,,x,write_enter,1000,1", "w,,100,write_enter,1000"] {
            assert_eq!(parse("p", line), None, "{line}");
        }
    }
}
