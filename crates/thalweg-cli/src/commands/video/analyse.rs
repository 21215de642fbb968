//! `thalweg video analyse`.

use std::time::Duration;

use clap::Args;
use thalweg_video::conformance::PacingKind;
use thalweg_video::io::{AnalysisReport, run_analyser};

use super::analysed::AnalysedFigures;
use super::ends::LimitOptions;
use super::hearing::HearingOptions;
use super::live::LiveLine;
use super::ports::refuse_shared;
use super::recv::from_receive;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either};

/// Options of `video analyse`.
#[derive(Args, Clone, Debug)]
pub struct VideoAnalyseOptions {
    /// Where packets are heard, and what they are.
    #[command(flatten)]
    pub hearing: HearingOptions,

    /// When it ends; without --seconds and --frames after 5 seconds.
    #[command(flatten)]
    pub limit: LimitOptions,

    /// Fail unless the stream is paced as a narrow (2110TPN), narrow linear (2110TPNL) or wide (2110TPW) sender's (default: tell alone).
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub expect: Option<PacingKind>,

    /// Print one JSON object at the end instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Measures a stream and prints what it is.
///
/// # Errors
/// The options do not fit, the network fails, nothing came, or the stream is not as expected.
pub fn run(options: &VideoAnalyseOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let session = options.hearing.find_session(interrupt)?;
    let mut hear = options.hearing.driver_options(session.as_ref())?;
    if hear.bind.len() > 1 {
        return Err(Failure::Usage("one path is analysed at a time; give one --bind".to_owned()));
    }
    refuse_shared((&hear.bind, hear.control), None)?;
    hear.frames_max = options.limit.frames.unwrap_or(u64::MAX);
    let default = if options.limit.frames.is_some() { Duration::MAX } else { DEFAULT_TIME };
    hear.duration = options.limit.seconds.unwrap_or(default);
    let format = hear.receiver.format;
    let line = LiveLine::open();
    let report = run_analyser(&hear, &interrupt.flag(), |report| line.show(live_text(report)));
    drop(line);
    let report = report.map_err(from_receive)?;
    let figures = AnalysedFigures::new(format, &report);
    print_either(options.json, &figures, &figures)?;
    if report.analysis.packets_expected == 0 && !interrupt.came() {
        let shape = report.analysis.shape;
        return Err(Failure::TimedOut(match shape.malformed + shape.foreign {
            0 => "no packet came; check address, port and firewall, and whether the sender runs".to_owned(),
            count => format!("{count} datagrams came and none is of such a stream"),
        }));
    }
    match options.expect.map(|kind| (kind, figures.fault(kind))) {
        Some((kind, Some(fault))) => Err(Failure::Failed(format!("the stream is not {}: {fault}", kind.word()))),
        _ => Ok(()),
    }
}

fn live_text(report: &AnalysisReport) -> String {
    let analysis = &report.analysis;
    let text = format!("{} frames, {} packets missing", analysis.frames, analysis.packets_missing);
    let Some(Ok(times)) = analysis.times else { return format!("{text}, learning") };
    let kind = times.pacing.kind().map_or("none", PacingKind::word);
    format!("{text}, pacing {kind}, jitter {:.1} µs from the schedule", times.jitter_schedule_nanos / 1000.0)
}

fn kind(text: &str) -> Result<PacingKind, String> {
    PacingKind::from_word(text).ok_or_else(|| "no kind of sender; give 2110TPN, 2110TPNL or 2110TPW".to_owned())
}

const DEFAULT_TIME: Duration = Duration::from_secs(5);
