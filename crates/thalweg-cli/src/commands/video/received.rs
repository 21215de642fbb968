//! What a receiver got, as JSON and as text.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use thalweg_video::format::VideoFormat;
use thalweg_video::io::ReceiveReport;
use thalweg_video::sink::VerifySummary;

use super::figures::{FpsFigures, cost, micros_or_unknown};
use super::live::micros;
use super::sounded::SoundReceivedFigures;

/// What a receiver got.
#[derive(Debug, Serialize)]
pub struct ReceivedFigures {
    pub picture: String,
    #[serde(flatten)]
    pub frames: FrameFigures,
    #[serde(flatten)]
    pub packets: PacketFigures,
    pub law: FateLaw,
    pub cpu_seconds: f64,
    pub seconds: f64,
    #[serde(flatten)]
    pub fps: FpsFigures,
    #[serde(flatten)]
    pub times: TimeFigures,
    pub layers: LayerFigures,
    /// What the verifying sink found; null with another sink.
    pub verified: Option<VerifiedFigures>,
    /// What became of sound; null without it.
    pub sound: Option<SoundReceivedFigures>,
}

/// Frames of a receiver.
#[derive(Debug, Serialize)]
pub struct FrameFigures {
    pub frames_expected: u64,
    pub frames_complete: u64,
    pub frames_concealed: u64,
    /// Incomplete and not presented.
    pub frames_dropped: u64,
    /// Incomplete before the first one that was presented, as after joining a running stream.
    pub frames_before_start: u64,
    /// Of which nothing came.
    pub frames_lost: u64,
    /// That nobody took in time.
    pub frames_discarded: u64,
    /// Presented, and lost since the sink was slow.
    pub frames_sink_missed: u64,
}

/// Packets of a receiver.
#[derive(Debug, Serialize)]
pub struct PacketFigures {
    pub packets_received: u64,
    pub packets_lost: u64,
    pub packets_recovered: u64,
    pub packets_reordered: u64,
    pub packets_duplicate: u64,
    pub packets_requested: u64,
}

/// received + recovered + lost + outstanding = expected, counted by number and checked.
#[derive(Debug, Serialize)]
pub struct FateLaw {
    pub received: u64,
    pub recovered: u64,
    pub lost: u64,
    /// Missing when receiving ended, of frames whose time had not come.
    pub outstanding: u64,
    pub expected: u64,
    pub holds: bool,
}

/// Times of a receiver in microseconds.
#[derive(Debug, Serialize)]
pub struct TimeFigures {
    /// From the first packet to the first picture that was presented; null without one.
    pub first_picture_us: Option<f64>,
    pub rtt_us: Option<f64>,
    pub jitter_rfc3550_us: f64,
    pub jitter_schedule_us: f64,
    pub frame_interval_p50_us: f64,
    pub frame_interval_p99_us: f64,
    pub frame_latency_p50_us: f64,
    pub frame_latency_p99_us: f64,
    pub frame_latency_max_us: f64,
    pub presented_late_max_us: f64,
    /// Of the sender's clock against ours; null in the first 5 s.
    pub drift_ppm: Option<f64>,
    /// After so many seconds the drift is a frame; null without drift.
    pub drift_frame_s: Option<f64>,
}

/// Losses by the layer that saw them.
#[derive(Debug, Serialize)]
pub struct LayerFigures {
    /// Numbers that did not come at first.
    pub wire_gaps: u64,
    /// SO_RXQ_OVFL of the sockets: messages that found the receive buffer full.
    pub rxq_ovfl: u64,
    /// The same counted in /proc/net/udp, at the last whole second.
    pub proc_net_udp: u64,
    /// Packets that came after their frame was presented.
    pub late: u64,
    /// Frames with concealed pixels.
    pub concealed: u64,
    pub malformed: u64,
    pub foreign: u64,
    pub outside: u64,
    pub unplaced: u64,
    pub receive_buffer_bytes: Vec<usize>,
    /// Counters of the kernel and its devices for lost packets that grew meanwhile, other programs' traffic included: softnet, UDP, NIC.
    pub host: BTreeMap<String, u64>,
}

/// What the test picture proves.
#[derive(Debug, Serialize)]
pub struct VerifiedFigures {
    pub frames_checked: u64,
    pub frames_proved: u64,
    pub frames_wrong: u64,
    pub lines_wrong: u64,
    pub lines_concealed: u64,
    pub frames_out_of_order: u64,
    pub numbers_missing: u64,
    pub holds: bool,
}

impl ReceivedFigures {
    /// The figures of a report, with the drops that /proc/net/udp showed, what the verifying sink found, and those of the sound.
    pub fn new(
        format: VideoFormat,
        report: &ReceiveReport,
        proc_net_udp: u64,
        verified: Option<VerifySummary>,
        sound: Option<SoundReceivedFigures>,
    ) -> ReceivedFigures {
        let frames = report.receiver.frames;
        ReceivedFigures {
            picture: format.to_string(),
            frames: FrameFigures {
                frames_expected: frames.expected(),
                frames_complete: frames.complete,
                frames_concealed: frames.concealed,
                frames_dropped: frames.dropped,
                frames_before_start: frames.before_start,
                frames_lost: frames.lost,
                frames_discarded: frames.discarded,
                frames_sink_missed: report.sink_missed,
            },
            packets: PacketFigures::new(report),
            law: FateLaw::new(report),
            cpu_seconds: report.cpu.as_secs_f64(),
            seconds: report.elapsed.as_secs_f64(),
            fps: FpsFigures::new(&report.fps),
            times: TimeFigures::new(format, report),
            layers: LayerFigures::new(report, proc_net_udp),
            verified: verified.map(VerifiedFigures::from),
            sound,
        }
    }

    /// Datagrams that were refused, in words.
    pub fn refusals(&self) -> String {
        let LayerFigures { malformed, foreign, outside, .. } = self.layers;
        format!("{malformed} are no such RTP, {foreign} of another stream, {outside} outside the picture")
    }

    /// What was lost or is wrong, if something is.
    pub fn complaint(&self) -> Option<String> {
        let FrameFigures { frames_expected, frames_complete, frames_before_start, frames_sink_missed, .. } =
            self.frames;
        let (law, lost) = (&self.law, self.packets.packets_lost);
        let incomplete = frames_expected - frames_complete - frames_before_start;
        if !law.holds {
            return Some(format!("the counts of packets contradict each other: {law}"));
        }
        if let Some(verified) = self.verified.as_ref().filter(|verified| verified.frames_checked > 0 && !verified.holds)
        {
            return Some(format!(
                "the frames are not those of the test picture: {verified}; for others give --sink null"
            ));
        }
        let sound = || self.sound.as_ref().and_then(SoundReceivedFigures::complaint);
        let picture = (incomplete + lost + frames_sink_missed > 0).then(|| {
            format!(
                "{incomplete} of {frames_expected} frames came incomplete or not at all, {lost} packets were lost, and the sink was \
                 too slow for {frames_sink_missed} frames; the counters by layer tell where"
            )
        });
        picture.or_else(sound)
    }
}

impl PacketFigures {
    fn new(report: &ReceiveReport) -> PacketFigures {
        let packets = report.receiver.packets;
        PacketFigures {
            packets_received: packets.received,
            packets_lost: packets.lost,
            packets_recovered: packets.recovered,
            packets_reordered: packets.reordered,
            packets_duplicate: packets.duplicates,
            packets_requested: report.receiver.repair.requests,
        }
    }
}

impl FateLaw {
    fn new(report: &ReceiveReport) -> FateLaw {
        let packets = report.receiver.packets;
        FateLaw {
            received: packets.received,
            recovered: packets.recovered,
            lost: packets.lost,
            outstanding: packets.outstanding,
            expected: packets.expected,
            holds: packets.are_consistent(),
        }
    }
}

impl TimeFigures {
    fn new(format: VideoFormat, report: &ReceiveReport) -> TimeFigures {
        let times = report.times;
        let frame_s = format.frame_time().as_secs_f64();
        TimeFigures {
            first_picture_us: times.first_picture.map(micros),
            rtt_us: times.round_trip.map(micros),
            jitter_rfc3550_us: micros(times.jitter_rfc3550),
            jitter_schedule_us: micros(times.jitter_schedule),
            frame_interval_p50_us: micros(times.intervals.p50),
            frame_interval_p99_us: micros(times.intervals.p99),
            frame_latency_p50_us: micros(times.latency.p50),
            frame_latency_p99_us: micros(times.latency.p99),
            frame_latency_max_us: micros(times.latency.max),
            presented_late_max_us: micros(times.late_max),
            drift_ppm: times.drift_ppm,
            drift_frame_s: times.drift_ppm.map(f64::abs).filter(|ppm| *ppm > 0.0).map(|ppm| frame_s * 1e6 / ppm),
        }
    }
}

impl LayerFigures {
    fn new(report: &ReceiveReport, proc_net_udp: u64) -> LayerFigures {
        let (packets, refused) = (report.receiver.packets, report.receiver.refused);
        LayerFigures {
            wire_gaps: packets.expected - packets.received,
            rxq_ovfl: report.sockets.kernel_drops,
            proc_net_udp,
            late: packets.late,
            concealed: report.receiver.frames.concealed,
            malformed: refused.malformed,
            foreign: refused.foreign,
            outside: refused.outside,
            unplaced: packets.unplaced,
            receive_buffer_bytes: report.receive_buffer_bytes.clone(),
            host: report.layers.losses().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

impl From<VerifySummary> for VerifiedFigures {
    fn from(summary: VerifySummary) -> VerifiedFigures {
        VerifiedFigures {
            frames_checked: summary.frames,
            frames_proved: summary.proved,
            frames_wrong: summary.wrong,
            lines_wrong: summary.lines_wrong,
            lines_concealed: summary.lines_concealed,
            frames_out_of_order: summary.out_of_order,
            numbers_missing: summary.numbers_missing,
            holds: summary.is_proved(),
        }
    }
}

impl fmt::Display for ReceivedFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (frames, times, layers) = (&self.frames, &self.times, &self.layers);
        writeln!(f, "{}", self.picture)?;
        writeln!(
            f,
            "frames   {} expected, {} complete, {} concealed, {} dropped, {} lost, {} before the start, {}",
            frames.frames_expected,
            frames.frames_complete,
            frames.frames_concealed,
            frames.frames_dropped,
            frames.frames_lost,
            frames.frames_before_start,
            self.fps
        )?;
        let packets = &self.packets;
        writeln!(
            f,
            "packets  {}\n         {} reordered, {} duplicate, {} asked for",
            self.law, packets.packets_reordered, packets.packets_duplicate, packets.packets_requested
        )?;
        writeln!(f, "cost     {}", cost(self.cpu_seconds, self.seconds))?;
        writeln!(
            f,
            "timing   jitter {:.1} µs by RFC 3550, {:.1} µs from the schedule; frames {:.0} µs apart, p99 {:.0}; RTT {}",
            times.jitter_rfc3550_us,
            times.jitter_schedule_us,
            times.frame_interval_p50_us,
            times.frame_interval_p99_us,
            micros_or_unknown(times.rtt_us)
        )?;
        writeln!(
            f,
            "         first picture after {}; frame from first to last packet p50 {:.0} µs, p99 {:.0}; {}",
            micros_or_unknown(times.first_picture_us),
            times.frame_latency_p50_us,
            times.frame_latency_p99_us,
            drift(times)
        )?;
        write!(
            f,
            "layers   wire gaps {}, SO_RXQ_OVFL {}, /proc/net/udp {}, late {}, concealed {}; {}",
            layers.wire_gaps,
            layers.rxq_ovfl,
            layers.proc_net_udp,
            layers.late,
            layers.concealed,
            self.refusals()
        )?;
        for (name, count) in &layers.host {
            write!(f, "\n         {name} {count}")?;
        }
        self.verified.as_ref().map_or(Ok(()), |verified| write!(f, "\npicture  {verified}"))?;
        self.sound.as_ref().map_or(Ok(()), |sound| write!(f, "\n{sound}"))
    }
}

impl fmt::Display for FateLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FateLaw { received, recovered, lost, outstanding, expected, holds } = self;
        write!(f, "{received} received + {recovered} recovered + {lost} lost")?;
        if *outstanding > 0 {
            write!(f, " + {outstanding} outstanding")?;
        }
        write!(f, " {} {expected} expected", if *holds { "=" } else { "≠" })
    }
}

impl fmt::Display for VerifiedFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} frames checked, {} proved, {} wrong ({} lines), {} lines concealed, {} out of order",
            self.frames_checked,
            self.frames_proved,
            self.frames_wrong,
            self.lines_wrong,
            self.lines_concealed,
            self.frames_out_of_order
        )
    }
}

fn drift(times: &TimeFigures) -> String {
    match (times.drift_ppm, times.drift_frame_s) {
        (Some(ppm), Some(seconds)) => format!("drift {ppm:.2} ppm, a frame in {seconds:.0} s"),
        (Some(_), None) => "no drift".to_owned(),
        (None, _) => "drift unknown in the first 5 s".to_owned(),
    }
}
