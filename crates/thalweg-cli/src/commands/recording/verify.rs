//! `thalweg record verify`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thalweg_recording::bag::recording_files;
use thalweg_recording::verify::{self, RANGES_TOLD, RecordingVerification, VerifiedWriter};

use crate::outcome::{Failure, InLine, print_either};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg record verify run.mcap",
    "thalweg record verify run_0.mcap run_1.mcap --json"
))]
/// Says whether the files of a recording are whole: checksums, index and statistics, the order of each writer's samples, and for each
/// writer that last - first + 1 = recorded + dropped + missing, with what the files have as what is recorded.
pub struct RecordVerifyOptions {
    /// The files of one recording, in their order, or a folder with a metadata.yaml of rosbag2.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Print one JSON object (default: text).
    #[arg(long)]
    pub json: bool,
}

/// All that was found.
#[derive(Serialize)]
struct RecordingView {
    files: Vec<FileView>,
    writers: Vec<WriterView>,
    /// What is wrong; empty for a whole recording.
    faults: Vec<String>,
}

#[derive(Serialize)]
struct FileView {
    file: String,
    messages: u64,
    /// Whether it has the recorder's counts at its end.
    has_counts: bool,
}

#[derive(Serialize)]
struct WriterView {
    /// Its topic on the wire and its GUID.
    writer: String,
    /// Of the numbers in the files; their low 32 bits where there are no counts.
    first: i64,
    last: i64,
    /// Samples and ends of instances in the files.
    recorded: u64,
    /// Those that stand in a second file for late readers.
    repeated: u64,
    /// Null where there are no counts.
    dropped_memory: Option<u64>,
    dropped_disk: Option<u64>,
    missing: Option<u64>,
    /// The first ranges of numbers between `first` and `last` that the files have not, both ends included.
    absent: Vec<(i64, i64)>,
    /// How many numbers those and further ranges have.
    absent_count: u64,
    /// How many times it began anew under its GUID, with numbers from 1 on.
    begun_anew: u64,
}

/// Verifies files and prints what was found.
///
/// # Errors
/// Something is wrong with the files, or output cannot be written.
pub fn verify(options: &RecordVerifyOptions) -> Result<(), Failure> {
    let view = view(verify::verify(&recording_files(&options.files).map_err(Failure::from_cause)?));
    print_either(options.json, &view, text(&view))?;
    match view.faults.len() {
        0 => Ok(()),
        1 => Err(Failure::Failed("the recording has a fault".to_owned())),
        count => Err(Failure::Failed(format!("the recording has {count} faults"))),
    }
}

fn view(found: RecordingVerification) -> RecordingView {
    let file = |file: verify::VerifiedFile| FileView {
        file: file.path.display().to_string(),
        messages: file.messages,
        has_counts: file.has_counts,
    };
    let writer = |(name, found): (String, VerifiedWriter)| {
        let counts = found.counts.as_ref();
        WriterView {
            writer: name,
            first: found.first,
            last: found.last,
            recorded: found.found,
            repeated: found.repeated,
            dropped_memory: counts.map(|counts| counts.dropped_memory),
            dropped_disk: counts.map(|counts| counts.dropped_disk),
            missing: counts.map(|counts| counts.missing()),
            absent: found.ranges,
            absent_count: found.absent,
            begun_anew: found.begun_anew,
        }
    };
    RecordingView {
        files: found.files.into_iter().map(file).collect(),
        writers: found.writers.into_iter().map(writer).collect(),
        faults: found.faults,
    }
}

fn text(view: &RecordingView) -> String {
    let file = |file: &FileView| {
        let counts = if file.has_counts { "" } else { ", without the recorder's counts" };
        format!("{}: {} messages{counts}", file.file, file.messages)
    };
    let mut lines: Vec<String> = view.files.iter().map(file).collect();
    for one in &view.writers {
        let WriterView { writer, first, last, recorded, .. } = one;
        let mut line = format!("  {writer}: {recorded} of {first} to {last}");
        if let (Some(memory), Some(disk), Some(missing)) = (one.dropped_memory, one.dropped_disk, one.missing) {
            line.push_str(&format!(", dropped {} (memory {memory}, disk {disk}), missing {missing}", memory + disk));
        }
        if one.begun_anew > 0 {
            line.push_str(&format!(", began anew {} times", one.begun_anew));
        }
        if one.repeated > 0 {
            line.push_str(&format!(", {} repeated for late readers", one.repeated));
        }
        if one.absent_count > 0 {
            let range =
                |(start, end): &(i64, i64)| if start == end { start.to_string() } else { format!("{start}–{end}") };
            let ranges: Vec<String> = one.absent.iter().map(range).collect();
            let more = if one.absent.len() == RANGES_TOLD { " …" } else { "" };
            line.push_str(&format!("; not in the files: {}{more}", ranges.join(", ")));
        }
        lines.push(InLine(line).to_string());
    }
    let faults = view.faults.iter().map(|fault| format!("fault: {}", InLine(fault)));
    let end = if view.faults.is_empty() { Some("whole".to_owned()) } else { None };
    lines.into_iter().chain(faults).chain(end).collect::<Vec<_>>().join("\n")
}
