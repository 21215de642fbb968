//! `thalweg record`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use thalweg_recording::files::{Compression, FileOptions};
use thalweg_recording::recorder::{Recorder, RecorderOptions};

use super::type_source;
use super::verify::{RecordVerifyOptions, verify};
use crate::commands::topic::{SelectionOptions, TypeFiles};
use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, InLine, print_either, remark};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = crate::after_help!(
    "thalweg record --output run.mcap",
    "thalweg record /scan '/camera/*' --exclude '*raw' --output run.mcap --split 1G --compress zstd",
    "thalweg record verify run.mcap"
))]
/// Records topics of any type in MCAP files, which Foxglove, Python's mcap and ROS tools read: samples as they are on the wire, with
/// the type, QoS and GUID of each writer. A slow disk never holds the writers back: samples that find no room in memory are dropped
/// and counted. Ctrl-C ends the file in order; one that is cut off by a crash can be read up to the last second.
pub struct RecordOptions {
    #[command(subcommand)]
    /// What is done instead of recording.
    pub command: Option<RecordCommand>,

    #[command(flatten)]
    /// The topics.
    pub selection: SelectionOptions,

    /// Write to FILE, which must not exist; with --split, a number comes before its extension (default: recording.mcap).
    #[arg(long, short, value_name = "FILE", default_value = "recording.mcap", hide_default_value = true)]
    pub output: PathBuf,

    /// Begin another file when one has SIZE bytes, with K, M or G such as 1G (default: one file).
    #[arg(long, value_name = "SIZE", value_parser = crate::parse::size)]
    pub split: Option<u64>,

    /// Compress in this way; it costs time of one processor (default: none).
    #[arg(long, value_enum, value_name = "METHOD", default_value = "none", hide_default_value = true)]
    pub compress: CompressionName,

    /// Let SIZE bytes of samples wait for the disk; further ones are dropped and counted (default: 256M).
    #[arg(long, value_name = "SIZE", default_value = "256M", hide_default_value = true, value_parser = crate::parse::size)]
    pub memory: u64,

    /// Exit after SECONDS (default: go on until Ctrl-C).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub duration: Option<Duration>,

    /// Exit once N samples are recorded, at the next look 20 ms later at most (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Print the counts by writer as one JSON object (default: one line of text).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// Where types come from.
    pub files: TypeFiles,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

/// What is done with recordings.
#[derive(Subcommand, Debug)]
pub enum RecordCommand {
    Verify(RecordVerifyOptions),
}

/// Ways to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressionName {
    /// Not at all.
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard, level 1: smaller.
    Zstd,
}

/// Records until it is told to end.
///
/// # Errors
/// An option cannot be used, the domain cannot be joined, or the file cannot be written.
pub fn record(options: &RecordOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(RecordCommand::Verify(options)) = &options.command {
        interrupt.end_at_once();
        return verify(options);
    }
    let participant = options.member.participant()?;
    let types = type_source(&options.files);
    let recorder_options = RecorderOptions {
        topics: options.selection.selection(),
        memory_bytes_max: usize::try_from(options.memory).unwrap_or(usize::MAX),
        files: FileOptions {
            path: options.output.clone(),
            split_bytes: options.split,
            compression: match options.compress {
                CompressionName::None => Compression::None,
                CompressionName::Lz4 => Compression::Lz4,
                CompressionName::Zstd => Compression::Zstd,
            },
            chunk_bytes: CHUNK_BYTES,
        },
    };
    let mut recorder = Recorder::start(&participant, recorder_options, &types).map_err(Failure::from_cause)?;
    let until = options.duration.map(|duration| Instant::now() + duration);
    let is_enough = |recorder: &Recorder<'_>| options.count.is_some_and(|count| recorder.summary().recorded() >= count);
    while !interrupt.came()
        && !recorder.has_failed()
        && until.is_none_or(|until| Instant::now() < until)
        && !is_enough(&recorder)
    {
        recorder.look().iter().map(InLine).for_each(remark);
        std::thread::sleep(LOOK_PERIOD);
    }
    let waited = recorder.waiting_bytes_most();
    let (summary, paths) = recorder.finish().map_err(Failure::from_cause)?;
    for path in &paths {
        remark(format_args!("wrote {}", path.display()));
    }
    remark(format_args!("at most {} KiB waited for the disk", waited.div_ceil(1024)));
    let is_short = options.count.is_some_and(|count| summary.recorded() < count);
    print_either(options.json, &summary, &summary)?;
    match (is_short, interrupt.came()) {
        (true, true) => Err(Failure::Interrupted),
        (true, false) => Err(Failure::TimedOut(format!("{summary} in time"))),
        (false, _) => Ok(()),
    }
}

/// Bytes of a chunk, chosen by us: what a reader has to hold, and what compression looks at.
const CHUNK_BYTES: u64 = 2 << 20;
/// Interval at which topics are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
