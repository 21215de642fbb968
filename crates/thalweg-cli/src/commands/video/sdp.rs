//! `thalweg video sdp`: writes session descriptions, and explains them.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use thalweg_video::io::{hear_sessions, interface_index};
use thalweg_video::sdp::{MediaDescription, SessionDescription, StreamDescription, VideoDescription};
use thalweg_video::source::AtEnd;

use super::description::{OfferedStream, read};
use super::offered::{StreamReception, receptions};
use super::packets::{PacketOptions, from_send};
use super::picture::PictureOptions;
use super::ports::{refuse_shared, sound_control};
use super::sound::SoundOptions;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_line};

/// Options of `video sdp`.
#[derive(Args, Clone, Debug)]
pub struct VideoDescribeOptions {
    /// Describe the stream that `video send` sends to ADDR:PORT with the same options; given twice, one of two paths, ST 2022-7
    /// (default: none, it has to be given unless one is explained).
    #[arg(long, value_name = "ADDR:PORT", required_unless_present_any = ["explain", "listen"], conflicts_with_all = ["explain", "listen"])]
    pub to: Vec<SocketAddr>,

    /// Explain the session description in FILE, and what of it is received here (default: one is written).
    #[arg(long, value_name = "FILE", conflicts_with_all = DESCRIBING, conflicts_with = "interface")]
    pub explain: Option<PathBuf>,

    /// Listen for SECONDS to sessions that are announced by SAP, and explain them (default: one is written).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds, conflicts_with_all = DESCRIBING, conflicts_with = "explain")]
    pub listen: Option<Duration>,

    /// Write into FILE (default: standard output).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["explain", "listen"])]
    pub out: Option<PathBuf>,

    /// Print JSON: one object with --explain, a list with --listen (default: text).
    #[arg(long, conflicts_with = "to")]
    pub json: bool,

    /// The form of the picture.
    #[command(flatten)]
    pub picture: PictureOptions,

    /// How packets are made and leave.
    #[command(flatten)]
    pub packets: PacketOptions,

    /// Sound beside the picture.
    #[command(flatten)]
    pub sound: SoundOptions,
}

/// A description explained.
#[derive(Serialize)]
struct Explanation {
    name: String,
    origin: String,
    streams: Vec<ExplainedStream>,
}

/// One stream of a description.
#[derive(Serialize)]
struct ExplainedStream {
    /// What it carries.
    media: String,
    payload_type: u8,
    /// Where packets go, and where RTCP does.
    to: Vec<SocketAddr>,
    /// Whom each is heard from; empty for everybody.
    sources: Vec<Vec<IpAddr>>,
    rtcp_ports: Vec<u16>,
    /// The payload type of repetitions; null when they come in the stream or not at all.
    retransmission: Option<u8>,
    accepts_nack: bool,
    /// What it promises by ST 2110-21; null when nothing.
    pacing: Option<&'static str>,
    mbit_per_s: Option<f64>,
    /// Options that `video recv` needs to receive it.
    needs: Vec<&'static str>,
    /// Why `video recv` does not receive it; null when it does.
    refusal: Option<String>,
}

/// Writes or explains a session description.
///
/// # Errors
/// The options do not fit, or a file cannot be read or written.
pub fn run(options: &VideoDescribeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if let Some(duration) = options.listen {
        return listen(options, duration, interrupt);
    }
    if let Some(path) = &options.explain {
        let explanation = Explanation::of(&read(path)?);
        return print_either(options.json, &explanation, explanation.to_text());
    }
    let format = options.picture.format()?;
    let send = options.packets.driver_options(&options.to)?;
    let plan = send.plan(format).map_err(from_send)?;
    let sound = options.sound.open(&send, options.packets.repair, AtEnd::Stop)?;
    let control = sound_control(send.control);
    refuse_shared((&send.to, send.control), sound.as_ref().map(|sound| (sound.to(), control)))?;
    let sound = sound.as_ref().map(|sound| (sound.format(), sound.to(), control));
    let text = OfferedStream { sound, ..options.packets.offered(&plan, &options.to) }.to_text()?;
    match &options.out {
        None => print_line(text.trim_end()),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display()))),
    }
}

/// Explains what is announced.
fn listen(options: &VideoDescribeOptions, duration: Duration, interrupt: &Interrupt) -> Result<(), Failure> {
    let index = options.packets.interface.as_deref().map_or(Ok(0), interface_index);
    let index = index.map_err(|error| Failure::Usage(error.to_string()))?;
    let sessions = hear_sessions(index, duration, &interrupt.flag())
        .map_err(|error| Failure::Failed(format!("no announcement can be heard: {error}; --interface may help")))?;
    let explained: Vec<Explanation> = sessions.iter().map(Explanation::of).collect();
    let text = match &explained[..] {
        [] => "nobody announces a session".to_owned(),
        explained => explained.iter().map(Explanation::to_text).collect::<Vec<_>>().join("\n\n"),
    };
    print_either(options.json, &explained, text)
}

impl Explanation {
    fn of(session: &SessionDescription) -> Explanation {
        let streams = session.streams.iter().zip(receptions(session));
        let streams = streams.map(|(stream, reception)| ExplainedStream::of(stream, reception)).collect();
        Explanation { name: session.name.clone(), origin: session.origin.clone(), streams }
    }

    fn to_text(&self) -> String {
        let mut text = format!("session {:?} of {}", self.name, self.origin);
        for (stream, number) in self.streams.iter().zip(1..) {
            // Writing to a text cannot fail.
            let _ = write!(text, "\nstream {number}: {}", stream.to_text());
        }
        text
    }
}

impl ExplainedStream {
    fn of(stream: &StreamDescription, reception: StreamReception) -> ExplainedStream {
        let (needs, refusal) = match reception {
            StreamReception::Received { needs } => (needs, None),
            StreamReception::Refused(reason) => (Vec::new(), Some(reason)),
        };
        let (media, rate, pacing) = match &stream.media {
            MediaDescription::Video(video) => explain_video(video),
            MediaDescription::Audio(audio) => {
                (format!("{} {} Hz, {} channels", audio.encoding.word(), audio.rate_hz, audio.channels), None, None)
            }
        };
        ExplainedStream {
            media,
            payload_type: stream.payload_type,
            to: stream.paths.iter().map(|path| path.destination).collect(),
            sources: stream.paths.iter().map(|path| path.sources.clone()).collect(),
            rtcp_ports: stream.paths.iter().map(|path| path.rtcp_port).collect(),
            retransmission: stream.retransmission.map(|again| again.payload_type),
            accepts_nack: stream.accepts_nack,
            pacing,
            mbit_per_s: rate,
            needs,
            refusal,
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{}, payload type {}", self.media, self.payload_type);
        for ((to, rtcp), sources) in self.to.iter().zip(&self.rtcp_ports).zip(&self.sources) {
            let _ = write!(text, "\n  to {to}, RTCP at port {rtcp}");
            let sources: Vec<String> = sources.iter().map(IpAddr::to_string).collect();
            if !sources.is_empty() {
                let _ = write!(text, ", from {} alone", sources.join(" and "));
            }
        }
        let _ = write!(
            text,
            "\n  lost packets {}",
            match (self.accepts_nack, self.retransmission) {
                (false, _) => "are not sent again".to_owned(),
                (true, None) => "can be asked for and come in the stream".to_owned(),
                (true, Some(payload_type)) => format!("can be asked for and come with payload type {payload_type}"),
            }
        );
        if let Some(rate) = self.mbit_per_s {
            let _ = write!(text, "\n  {rate:.1} Mbit/s of picture");
        }
        if let Some(word) = self.pacing {
            let _ = write!(text, ", paced as {word}");
        }
        match &self.refusal {
            None => {
                text.push_str("\n  `thalweg video recv` receives it");
                if !self.needs.is_empty() {
                    let _ = write!(text, " with {}", self.needs.join(" and "));
                }
            }
            Some(refusal) => {
                let _ = write!(text, "\n  not received here: {refusal}");
            }
        }
        text
    }
}

fn explain_video(video: &VideoDescription) -> (String, Option<f64>, Option<&'static str>) {
    let rate = video.rate.map_or_else(|| "untold rate".to_owned(), |rate| rate.to_string());
    let mut text = format!(
        "{} with {} bits, {}x{}, {rate}, {}",
        video.sampling.word(),
        video.depth,
        video.width,
        video.height,
        video.scan
    );
    let (pixel_width, pixel_height) = video.pixel_aspect;
    if pixel_width != pixel_height {
        let _ = write!(text, ", pixels {pixel_width}:{pixel_height}");
    }
    let pacing = video.studio.as_ref().and_then(|studio| studio.pacing).map(|pacing| pacing.word());
    let format = video.rate.and_then(|rate| video.to_format(rate).ok());
    (text, format.map(|format| format.octets_per_second() * 8e-6), pacing)
}

/// The options that tell of a stream what a description says of it; `--interface` is of use to a listener too.
const DESCRIBING: [&str; 16] = [
    "size",
    "rate",
    "format",
    "scan",
    "mtu",
    "packing",
    "batching",
    "repair",
    "rtcp",
    "dscp",
    "ttl",
    "vocabulary",
    "sound",
    "channels",
    "sound_to",
    "packet_time",
];
