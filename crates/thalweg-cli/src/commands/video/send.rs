//! `thalweg video send`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use thalweg_video::io::{
    SendError, SendOptions, SendReport, SendSecond, SessionAnnouncement, SoundSendReport, SoundSender, run_sender,
};
use thalweg_video::sap::SapConfig;
use thalweg_video::source::{AtEnd, FrameSource, PictureSource, RawSource, Y4mSource};

use super::description::{OfferedStream, VocabularyName, origin};
use super::ends::{LimitOptions, after};
use super::live::{LiveLine, micros_or_dash};
use super::packets::{PacketOptions, from_send};
use super::picture::PictureOptions;
use super::ports::{refuse_shared, sound_control};
use super::sent::SentFigures;
use super::sound::{OpenSound, SoundOptions};
use super::sounded::SoundSentFigures;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, remark};

/// Options of `video send`.
#[derive(Args, Clone, Debug)]
pub struct VideoSendOptions {
    /// Send to ADDR:PORT, one host or a group; given twice, send the same by two paths, ST 2022-7 (default: none, it has to be given).
    #[arg(long, value_name = "ADDR:PORT", required = true)]
    pub to: Vec<SocketAddr>,

    /// Send picture (bars with a moving box, and a number in each line that a receiver proves), y4m:PATH, raw:PATH, frames as they lie in
    /// packets, or v4l2:DEVICE, a camera in the form that it has, in builds with --features v4l2 (default: picture).
    #[arg(long, value_name = "SOURCE", default_value = "picture", hide_default_value = true, value_parser = source)]
    pub source: SourceName,

    /// Begin files again at their ends (default: the stream ends with the picture's).
    #[arg(long)]
    pub repeat: bool,

    /// The form of the picture, where no file tells it.
    #[command(flatten)]
    pub picture: PictureOptions,

    /// How packets are made and leave.
    #[command(flatten)]
    pub packets: PacketOptions,

    /// Sound beside the picture.
    #[command(flatten)]
    pub sound: SoundOptions,

    /// When it ends.
    #[command(flatten)]
    pub limit: LimitOptions,

    /// Write a session description for receivers into FILE before the first packet (default: none).
    #[arg(long, value_name = "FILE")]
    pub sdp: Option<PathBuf>,

    /// Announce the session to everybody in its scope by SAP, each 30 seconds, until it ends (default: not).
    #[arg(long)]
    pub announce: bool,

    /// Measure how evenly packets leave, by the models of ST 2110-21, as analyse does where they arrive (default: not).
    #[arg(long)]
    pub conformance: bool,

    /// Print one JSON object at the end instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Where frames come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceName {
    Picture,
    Y4m(PathBuf),
    Raw(PathBuf),
    Camera(PathBuf),
}

/// Sends until the source or a limit ends it, and prints what was done.
///
/// # Errors
/// The options do not fit, the source or the network fails, or frames were lost here.
pub fn run(options: &VideoSendOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut source = options.open_source()?;
    let mut send = options.driver_options()?;
    let mut sound = options.sound.open(&send, options.packets.repair, options.at_end())?;
    let sound_send = sound.as_ref().map(|sound| sound.driver_options(&mut send)).transpose()?;
    refuse_shared((&send.to, send.control), None)?;
    let opened = sound_send.as_ref().map(SoundSender::open).transpose().map_err(from_send)?;
    let announcement = options.publish_description(&send, source.as_ref(), sound.as_ref())?;
    let (report, heard) = send_both(source.as_mut(), &send, sound.as_mut().zip(opened), interrupt);
    drop(announcement);
    let report = report.map_err(from_send)?;
    let (sound_report, sound_failure) = match heard.transpose() {
        Ok(report) => (report, None),
        Err(error) => (None, Some(error)),
    };
    let sounded =
        sound.as_ref().zip(sound_report).map(|(sound, report)| SoundSentFigures::new(sound.format(), &report));
    let figures = SentFigures::new(source.format(), &report, sounded);
    print_either(options.json, &figures, &figures)?;
    if figures.socket_errors > 0 {
        remark("Somebody answered that a datagram cannot be delivered; is the receiver running at this port?");
    }
    if let Some(error) = sound_failure {
        return Err(from_send(error));
    }
    let is_short = options.limit.seconds.is_some() || options.limit.frames.is_some();
    match figures.complaint() {
        Some(complaint) => Err(Failure::Failed(complaint)),
        None if is_short && interrupt.came() => Err(Failure::Interrupted),
        None => Ok(()),
    }
}

/// Sends a picture, and the sound beside it on a thread of its own, which ends with the picture.
fn send_both(
    source: &mut dyn FrameSource,
    send: &SendOptions,
    sound: Option<(&mut OpenSound, SoundSender<'_>)>,
    interrupt: &Interrupt,
) -> (Result<SendReport, SendError>, Option<Result<SoundSendReport, SendError>>) {
    let (line, is_over) = (LiveLine::open(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let sounding = sound.map(|(sound, opened)| scope.spawn(move || opened.run(sound.source.as_mut(), is_over)));
        let report = run_sender(source, send, &interrupt.flag(), |second| line.show(live_text(second)));
        is_over.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (report, sounding.map(join))
    })
}

impl VideoSendOptions {
    fn at_end(&self) -> AtEnd {
        if self.repeat { AtEnd::Repeat } else { AtEnd::Stop }
    }

    fn open_source(&self) -> Result<Box<dyn FrameSource>, Failure> {
        let at_end = self.at_end();
        Ok(match &self.source {
            SourceName::Picture | SourceName::Camera(_) if self.repeat => {
                return Err(Failure::Usage("such a source has no end; leave --repeat out".to_owned()));
            }
            SourceName::Camera(path) => open_camera(path, &self.picture)?,
            SourceName::Picture => {
                let source = PictureSource::new(self.picture.format()?);
                Box::new(source.map_err(|error| Failure::Usage(error.to_string()))?)
            }
            SourceName::Y4m(path) => {
                self.picture.refuse_beside("a y4m file")?;
                Box::new(Y4mSource::open(path, at_end).map_err(Failure::from_cause)?)
            }
            SourceName::Raw(path) => {
                Box::new(RawSource::open(path, self.picture.format()?, at_end).map_err(Failure::from_cause)?)
            }
        })
    }

    fn driver_options(&self) -> Result<SendOptions, Failure> {
        let mut send = self.packets.driver_options(&self.to)?;
        send.frames_max = self.limit.frames.unwrap_or(u64::MAX);
        send.duration = self.limit.seconds.unwrap_or(Duration::MAX);
        send.measures_pacing = self.conformance;
        Ok(send)
    }

    /// Writes and announces what receivers need, as far as it is asked for.
    fn publish_description(
        &self,
        send: &SendOptions,
        source: &dyn FrameSource,
        sound: Option<&OpenSound>,
    ) -> Result<Option<SessionAnnouncement>, Failure> {
        let is_published = self.sdp.is_some() || self.announce;
        let pixel_aspect = source.pixel_aspect();
        if pixel_aspect != (1, 1) && (!is_published || self.packets.vocabulary == VocabularyName::Plain) {
            let (width, height) = pixel_aspect;
            remark(format_args!(
                "The pixels are {width}:{height}, which receivers learn from a session description of ST 2110-20 alone."
            ));
        }
        if !is_published {
            return Ok(None);
        }
        let plan = send.plan(source.format()).map_err(from_send)?;
        let sound = sound.map(|sound| (sound.format(), sound.to(), sound_control(send.control)));
        let text = OfferedStream { pixel_aspect, sound, ..self.packets.offered(&plan, &self.to) }.to_text()?;
        if let Some(path) = &self.sdp {
            std::fs::write(path, &text)
                .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))?;
        }
        let Some(to) = self.to.first().filter(|_| self.announce) else { return Ok(None) };
        let config = SapConfig { interval_min: ANNOUNCEMENT_INTERVAL, ..SapConfig::new(origin(*to)) };
        let interface = send.stream.multicast_interface.unwrap_or(zone(*to));
        let announcement = SessionAnnouncement::start(text, to.ip(), config, interface);
        announcement
            .map(Some)
            .map_err(|error| Failure::Failed(format!("the session cannot be announced: {error}; --interface may help")))
    }
}

/// The index of the interface that the zone of an address names; 0 without one.
fn zone(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(address) => address.scope_id(),
    }
}

fn live_text(second: &SendSecond) -> String {
    let report = &second.report;
    let peer = report.peer.unwrap_or_default();
    format!(
        "{:6.2} fps, {} frames, {} dropped, {:.2} CPU, receiver: {} lost, RTT {}, jitter {}",
        second.fps,
        report.sender.frames_sent,
        report.sender.frames_dropped,
        second.processors,
        peer.lost,
        micros_or_dash(peer.round_trip),
        micros_or_dash(report.peer.map(|peer| peer.jitter)),
    )
}

fn source(text: &str) -> Result<SourceName, String> {
    if text == "picture" {
        return Ok(SourceName::Picture);
    }
    let y4m = after(text, "y4m").map(|path| SourceName::Y4m(path.into()));
    let source = y4m.or_else(|| after(text, "raw").map(|path| SourceName::Raw(path.into())));
    let source = source.or_else(|| after(text, "v4l2").map(|path| SourceName::Camera(path.into())));
    source.ok_or_else(|| "no source; give picture, y4m:PATH, raw:PATH or v4l2:DEVICE".to_owned())
}

/// Opens a camera for pictures of this form, or of the one that it has.
#[cfg(feature = "v4l2")]
fn open_camera(path: &Path, picture: &PictureOptions) -> Result<Box<dyn FrameSource>, Failure> {
    use thalweg_video::source::{CameraSource, CameraWishes};

    let PictureOptions { size, rate, format, scan } = *picture;
    let wishes = CameraWishes { pixels: format, size, rate, scan };
    Ok(Box::new(CameraSource::open(path, &wishes).map_err(Failure::from_cause)?))
}

#[cfg(not(feature = "v4l2"))]
fn open_camera(path: &Path, _: &PictureOptions) -> Result<Box<dyn FrameSource>, Failure> {
    let path = path.display();
    Err(Failure::Usage(format!("this build opens no cameras, such as {path}; build it with --features v4l2")))
}

/// What devices of studios use instead of RFC 2974's five minutes.
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(30);
