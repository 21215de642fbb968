//! What a sender did, as JSON and as text.

use std::fmt;

use serde::Serialize;
use thalweg_video::format::VideoFormat;
use thalweg_video::io::SendReport;

use super::figures::{FpsFigures, cost, micros_or_unknown};
use super::live::micros;
use super::paced::PacingFigures;
use super::sounded::SoundSentFigures;

/// What a sender did.
#[derive(Debug, Serialize)]
pub struct SentFigures {
    pub picture: String,
    pub frames_sent: u64,
    /// Dropped whole because the sender was late by more than a frame.
    pub frames_dropped: u64,
    /// Frame times without a frame because the source was late.
    pub frames_missed: u64,
    pub packets_sent: u64,
    pub packets_resent: u64,
    /// Not taken by the system.
    pub packets_lost_here: u64,
    /// How often packets became smaller because a path became narrower.
    pub replans: u64,
    pub seconds: f64,
    pub cpu_seconds: f64,
    #[serde(flatten)]
    pub fps: FpsFigures,
    pub rtt_us: Option<f64>,
    /// What the last report of a receiver said.
    pub receiver: Option<PeerFigures>,
    pub late_mean_us: f64,
    pub late_max_us: f64,
    pub system_calls: u64,
    /// Answers of the network that datagrams cannot be delivered.
    pub socket_errors: u64,
    /// What became of sound; null without it.
    pub sound: Option<SoundSentFigures>,
    /// How evenly packets left; absent where it is not measured, or the models do not fit.
    #[serde(flatten)]
    pub pacing: Option<PacingFigures>,
    /// Why there is no pacing, though it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_missing: Option<String>,
}

/// What a receiver reported.
#[derive(Debug, Serialize)]
pub struct PeerFigures {
    pub packets_lost: i32,
    pub jitter_rfc3550_us: f64,
}

impl SentFigures {
    /// The figures of a report, with those of the sound.
    pub fn new(format: VideoFormat, report: &SendReport, sound: Option<SoundSentFigures>) -> SentFigures {
        let sender = report.sender;
        SentFigures {
            picture: format.to_string(),
            frames_sent: sender.frames_sent,
            frames_dropped: sender.frames_dropped,
            frames_missed: sender.frames_missed,
            packets_sent: sender.packets_sent,
            packets_resent: sender.packets_resent,
            packets_lost_here: report.lost,
            replans: report.replans,
            seconds: report.elapsed.as_secs_f64(),
            cpu_seconds: report.cpu.as_secs_f64(),
            fps: FpsFigures::new(&report.fps),
            rtt_us: report.peer.and_then(|peer| peer.round_trip).map(micros),
            receiver: report
                .peer
                .map(|peer| PeerFigures { packets_lost: peer.lost, jitter_rfc3550_us: micros(peer.jitter) }),
            late_mean_us: micros(report.lateness.mean()),
            late_max_us: micros(report.lateness.max),
            system_calls: report.sockets.calls,
            socket_errors: report.sockets.asynchronous_errors,
            sound,
            pacing: report.pacing.and_then(Result::ok).map(|summary| PacingFigures::new(&summary)),
            pacing_missing: report.pacing.and_then(Result::err).map(|refusal| refusal.to_string()),
        }
    }

    /// Why the stream left this host incomplete, if it did.
    pub fn complaint(&self) -> Option<String> {
        let SentFigures { frames_dropped, frames_missed, packets_lost_here, .. } = self;
        let sound = || self.sound.as_ref().and_then(SoundSentFigures::complaint);
        let picture = (frames_dropped + frames_missed + packets_lost_here > 0).then(|| {
            format!(
                "{frames_dropped} frames were dropped because this host was late, {frames_missed} because the source was, and the \
                 system did not take {packets_lost_here} packets; send less, or see `thalweg advisor`"
            )
        });
        picture.or_else(sound)
    }
}

impl fmt::Display for SentFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SentFigures { frames_sent, frames_dropped, frames_missed, packets_sent, packets_resent, .. } = self;
        writeln!(f, "{}", self.picture)?;
        writeln!(f, "frames   {frames_sent} sent, {frames_dropped} dropped, {frames_missed} missed, {}", self.fps)?;
        writeln!(
            f,
            "packets  {packets_sent} sent, {packets_resent} again, {} not taken by the system",
            self.packets_lost_here
        )?;
        if self.replans > 0 {
            writeln!(f, "         the path became narrower {} times, and packets smaller", self.replans)?;
        }
        writeln!(f, "cost     {}", cost(self.cpu_seconds, self.seconds))?;
        writeln!(f, "timing   packets left {:.1} µs late, {:.1} µs at most", self.late_mean_us, self.late_max_us)?;
        match &self.receiver {
            None => write!(f, "receiver no report came")?,
            Some(peer) => write!(
                f,
                "receiver {} packets lost, RTT {}, jitter {:.1} µs by RFC 3550",
                peer.packets_lost,
                micros_or_unknown(self.rtt_us),
                peer.jitter_rfc3550_us
            )?,
        }
        if let Some(pacing) = &self.pacing {
            write!(f, "\n{pacing}")?;
        }
        if let Some(reason) = &self.pacing_missing {
            write!(f, "\npacing   unknown: {reason}")?;
        }
        self.sound.as_ref().map_or(Ok(()), |sound| write!(f, "\n{sound}"))
    }
}
