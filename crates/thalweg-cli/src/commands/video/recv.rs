//! `thalweg video recv`.

use std::io::{IsTerminal, Stdout, stdout};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use terminal_size::terminal_size_of;
use thalweg_host::{HostFiles, Task};
use thalweg_video::format::VideoFormat;
use thalweg_video::io::{
    Farewell, ReceiveError, ReceiveOptions, ReceiveReport, ReceiveSecond, SoundReceiveOptions, SoundReceiveReport,
    SoundReceiver, run_receiver,
};
use thalweg_video::receiver::Concealment;
use thalweg_video::sdp::SessionDescription;
use thalweg_video::sink::{FrameSink, NullSink, PreviewSink, RawSink, VerifySink, Y4mSink};

use super::ends::{LimitOptions, after};
use super::hearing::HearingOptions;
use super::listening::{ListeningOptions, OpenSoundSink};
use super::live::{LiveLine, micros_or_dash};
use super::offered::pixel_aspect;
use super::path::{RETRANSMISSION, RepairName, SOUND_RETRANSMISSION};
use super::ports::refuse_shared;
use super::received::ReceivedFigures;
use super::sounded::SoundReceivedFigures;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either};

/// Options of `video recv`.
#[derive(Args, Clone, Debug)]
pub struct VideoReceiveOptions {
    /// Where packets are heard, and what they are.
    #[command(flatten)]
    pub hearing: HearingOptions,

    /// Give frames to verify, which proves of each line of the test picture that it is from its frame, to null, to preview, which draws ten a
    /// second on a terminal with colours, or into file:PATH: YUV4MPEG2 if the path ends in .y4m, frames as they lay in packets otherwise
    /// (default: verify).
    #[arg(long, value_name = "SINK", default_value = "verify", hide_default_value = true, value_parser = sink)]
    pub sink: SinkName,

    /// How packets become frames.
    #[command(flatten)]
    pub playout: PlayoutOptions,

    /// Sound beside the picture.
    #[command(flatten)]
    pub sound: ListeningOptions,

    /// When it ends.
    #[command(flatten)]
    pub limit: LimitOptions,

    /// Go on when the sender leaves, for another one (default: end).
    #[arg(long)]
    pub stay: bool,

    /// Print one JSON object at the end instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// How packets become frames.
#[derive(Args, Clone, Copy, Debug)]
pub struct PlayoutOptions {
    /// Present a frame N frame times after its first packet came, 0.5 to 8; lost packets can come again until then (default: 2).
    #[arg(long, value_name = "N", default_value_t = 2.0, hide_default_value = true, value_parser = playout_frames)]
    pub playout_frames: f64,

    /// Show previous pixels where some are missing, interpolate them from the lines beside, flag them black, or drop the frame (default:
    /// previous).
    #[arg(long, value_name = "HOW", default_value_t = Concealment::Previous, hide_default_value = true)]
    pub conceal: Concealment,

    /// Ask for lost packets, of picture and sound (default: as the session description says, rtx without one).
    #[arg(long, value_enum)]
    pub repair: Option<RepairName>,
}

/// Where frames go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkName {
    Verify,
    Null,
    Preview,
    File(PathBuf),
}

/// The sink of a run.
enum OpenSink {
    Verify(Box<VerifySink>),
    Null(NullSink),
    Preview(PreviewSink<Stdout>),
    Raw(RawSink),
    Y4m(Y4mSink),
}

/// Receives until the sender leaves or a limit ends it, and prints what was done.
///
/// # Errors
/// The options do not fit, the network or the sink fails, nothing came, frames were lost, or a check failed.
pub fn run(options: &VideoReceiveOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let session = options.hearing.find_session(interrupt)?;
    let mut receive = options.driver_options(session.as_ref())?;
    let mut hear = options.sound.driver_options(session.as_ref(), options.hearing.rtcp, &mut receive)?;
    if let (Some(hear), Some(told)) = (&mut hear, options.playout.repair) {
        hear.receiver.repair = told.repair(hear.receiver.repair, SOUND_RETRANSMISSION);
    }
    refuse_shared((&receive.bind, receive.control), hear.as_ref().map(|hear| (&hear.bind[..], hear.control)))?;
    let mut sink = options.open_sink(receive.receiver.format, session.as_ref().map_or((1, 1), pixel_aspect))?;
    let proves = options.sink == SinkName::Verify;
    let open = |hear: &SoundReceiveOptions| options.sound.open_sink(hear.receiver.format, proves);
    let mut sound = hear.as_ref().map(open).transpose()?;
    let opened = hear.as_ref().map(SoundReceiver::open).transpose().map_err(from_receive)?;
    let Received { report, drops, heard } = receive_both(&mut sink, &receive, sound.as_mut().zip(opened), interrupt);
    let report = report.map_err(from_receive)?;
    let (sound_report, sound_failure) = match heard.transpose() {
        Ok(report) => (report, None),
        Err(error) => (None, Some(error)),
    };
    let sounded = sound
        .as_ref()
        .zip(hear.as_ref())
        .zip(sound_report)
        .map(|((sink, hear), report)| SoundReceivedFigures::new(hear.receiver.format, &report, sink.summary()));
    let verified = match &sink {
        OpenSink::Verify(sink) => Some(sink.summary()),
        _ => None,
    };
    let figures = ReceivedFigures::new(receive.receiver.format, &report, drops, verified, sounded);
    print_either(options.json, &figures, &figures)?;
    if let Some(error) = sound_failure {
        return Err(from_receive(error));
    }
    let is_short = options.limit.seconds.is_some() || options.limit.frames.is_some();
    if report.receiver.packets.expected == 0 && !interrupt.came() {
        let refused = report.receiver.refused;
        return Err(Failure::TimedOut(match refused.malformed + refused.foreign + refused.outside {
            0 => "no packet came; check address, port and firewall, and whether the sender runs".to_owned(),
            _ => format!("packets came and none fits: {}; check --size, --format and --scan", figures.refusals()),
        }));
    }
    match figures.complaint() {
        Some(complaint) => Err(Failure::Failed(complaint)),
        None if is_short && interrupt.came() => Err(Failure::Interrupted),
        None => Ok(()),
    }
}

/// What both receivers did, and the drops that /proc/net/udp showed.
struct Received {
    report: Result<ReceiveReport, ReceiveError>,
    drops: u64,
    heard: Option<Result<SoundReceiveReport, ReceiveError>>,
}

/// Receives a picture, and the sound beside it on a thread of its own, which ends with the picture.
fn receive_both(
    sink: &mut OpenSink,
    receive: &ReceiveOptions,
    sound: Option<(&mut OpenSoundSink, SoundReceiver<'_>)>,
    interrupt: &Interrupt,
) -> Received {
    let (line, files, is_over) = (LiveLine::open(), HostFiles::here(), AtomicBool::new(false));
    let mut drops = 0;
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let hearing = sound.map(|(sink, opened)| scope.spawn(move || opened.run(sink.as_dyn(), is_over)));
        let report = run_receiver(sink.as_dyn(), receive, &interrupt.flag(), |second| {
            // The sockets are gone when the report is there, and may be when its last second is told.
            drops = drops.max(files.socket_drops(Task::This));
            line.show(live_text(second));
        });
        is_over.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Received { report, drops, heard: hearing.map(join) }
    })
}

impl VideoReceiveOptions {
    fn driver_options(&self, session: Option<&SessionDescription>) -> Result<ReceiveOptions, Failure> {
        let mut receive = self.hearing.driver_options(session)?;
        let config = &mut receive.receiver;
        config.playout = config.format.frame_time().mul_f64(self.playout.playout_frames);
        config.concealment = self.playout.conceal;
        if let Some(told) = self.playout.repair {
            config.repair = told.repair(config.repair, RETRANSMISSION);
        }
        receive.frames_max = self.limit.frames.unwrap_or(u64::MAX);
        receive.duration = self.limit.seconds.unwrap_or(Duration::MAX);
        receive.farewell = if self.stay { Farewell::Continue } else { Farewell::End };
        Ok(receive)
    }

    fn open_sink(&self, format: VideoFormat, pixel_aspect: (u16, u16)) -> Result<OpenSink, Failure> {
        Ok(match &self.sink {
            SinkName::Verify => {
                let sink = VerifySink::new(format).map_err(|error| Failure::Usage(error.to_string()))?;
                OpenSink::Verify(Box::new(sink))
            }
            SinkName::Null => OpenSink::Null(NullSink),
            SinkName::Preview => {
                let Some((width, height)) = terminal_size_of(stdout()).filter(|_| stdout().is_terminal()) else {
                    return Err(Failure::Usage("a preview needs a terminal as standard output".to_owned()));
                };
                // The last line is that of the figures.
                OpenSink::Preview(PreviewSink::new(format, stdout(), (width.0, height.0.saturating_sub(2))))
            }
            SinkName::File(path) if path.extension().is_some_and(|extension| extension == "y4m") => {
                OpenSink::Y4m(Y4mSink::create_with_aspect(path, format, pixel_aspect).map_err(Failure::from_cause)?)
            }
            SinkName::File(path) => OpenSink::Raw(RawSink::create(path).map_err(Failure::from_cause)?),
        })
    }
}

impl OpenSink {
    fn as_dyn(&mut self) -> &mut dyn FrameSink {
        match self {
            OpenSink::Verify(sink) => sink.as_mut(),
            OpenSink::Null(sink) => sink,
            OpenSink::Preview(sink) => sink,
            OpenSink::Raw(sink) => sink,
            OpenSink::Y4m(sink) => sink,
        }
    }
}

fn live_text(second: &ReceiveSecond) -> String {
    let report = &second.report;
    let (packets, frames) = (report.receiver.packets, report.receiver.frames);
    format!(
        "{:6.2} fps, {} frames complete, {} concealed, {} packets lost, {} recovered, {:.2} CPU, RTT {}, jitter {}",
        second.fps,
        frames.complete,
        frames.concealed,
        packets.lost,
        packets.recovered,
        second.processors,
        micros_or_dash(report.times.round_trip),
        micros_or_dash(Some(report.times.jitter_schedule)),
    )
}

/// A failure of the driver: wrong options, or a network or sink that fails.
pub fn from_receive(error: ReceiveError) -> Failure {
    match error {
        ReceiveError::Config(_) => Failure::Usage(error.to_string()),
        ReceiveError::Socket(_) | ReceiveError::Sink(_) => Failure::Failed(error.to_string()),
    }
}

fn sink(text: &str) -> Result<SinkName, String> {
    match text {
        "verify" => Ok(SinkName::Verify),
        "null" => Ok(SinkName::Null),
        "preview" => Ok(SinkName::Preview),
        _ => after(text, "file")
            .map(|path| SinkName::File(path.into()))
            .ok_or_else(|| "no sink; give verify, null, preview or file:PATH".to_owned()),
    }
}

fn playout_frames(text: &str) -> Result<f64, String> {
    let frames = text.parse().ok().filter(|frames| (0.5..=8.0).contains(frames));
    frames.ok_or_else(|| "no playout delay; give 0.5 to 8 frame times, such as 2".to_owned())
}
