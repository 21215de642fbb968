//! What an analyser found, as JSON and as text.

use std::fmt;

use serde::Serialize;
use thalweg_video::analysis::{StreamAnalysis, StreamTimes};
use thalweg_video::conformance::PacingKind;
use thalweg_video::format::{Scan, VideoFormat};
use thalweg_video::io::AnalysisReport;
use thalweg_video::receiver::LineDialect;

use super::live::micros;
use super::paced::PacingFigures;

/// A stream as it came.
#[derive(Debug, Serialize)]
pub struct AnalysedFigures {
    /// The form that was told, not seen.
    pub picture: String,
    pub seconds: f64,
    pub ssrc: Option<String>,
    pub payload_type: u8,
    pub restarts: u64,
    pub frames: u64,
    pub packets_expected: u64,
    pub packets_missing: u64,
    /// Messages that found our receive buffer full: not missing on the wire.
    pub rxq_ovfl: u64,
    pub packets_reordered: u64,
    #[serde(flatten)]
    pub cut: CutFigures,
    #[serde(flatten)]
    pub lines: LineFigures,
    pub malformed: u64,
    pub foreign: u64,
    pub outside: u64,
    /// Null until the packets of a frame are known, and where the models of ST 2110-21 do not fit them.
    #[serde(flatten)]
    pub times: Option<AnalysedTimes>,
    /// Why there are no times.
    pub times_missing: Option<String>,
}

/// How frames are cut into packets.
#[derive(Debug, Serialize)]
pub struct CutFigures {
    pub packets_a_frame: Option<u32>,
    /// Frames with another number of packets.
    pub frames_irregular: u64,
    pub datagram_octets_min: usize,
    pub datagram_octets_max: usize,
    pub pieces_max: usize,
    /// Packets that end a frame or field.
    pub markers: u64,
    /// Ticks of 90 kHz from frame to frame, and the rate that they mean.
    pub frame_ticks: Option<u32>,
    pub fps_of_ticks: Option<f64>,
}

/// How lines and packets are numbered.
#[derive(Debug, Serialize)]
pub struct LineFigures {
    /// `progressive`, `in-field` (ST 2110-20, FFmpeg), `in-frame` (GStreamer) or `unknown`.
    pub line_numbering: &'static str,
    pub line_max: u16,
    pub second_field_packets: u64,
    /// The upper half of sequence numbers: 0 where the sender does not count beyond 16 bits, or not yet.
    pub extended_sequence_max: u16,
}

/// Pacing and regularity.
#[derive(Debug, Serialize)]
pub struct AnalysedTimes {
    #[serde(flatten)]
    pub pacing: PacingFigures,
    pub jitter_rfc3550_us: f64,
    pub jitter_schedule_us: f64,
    pub frame_interval_p50_us: f64,
    pub frame_interval_p99_us: f64,
    pub frame_interval_max_us: f64,
}

impl AnalysedFigures {
    pub fn new(format: VideoFormat, report: &AnalysisReport) -> AnalysedFigures {
        let (analysis, shape) = (&report.analysis, report.analysis.shape);
        let (times, times_missing) = match analysis.times {
            Some(Ok(times)) => (Some(AnalysedTimes::new(&times)), None),
            Some(Err(refusal)) => (None, Some(refusal.to_string())),
            None => (None, Some("too few whole frames came to know the packets of one".to_owned())),
        };
        AnalysedFigures {
            picture: format.to_string(),
            seconds: report.elapsed.as_secs_f64(),
            ssrc: analysis.ssrc.map(|ssrc| format!("{ssrc:08x}")),
            payload_type: shape.payload_type,
            restarts: analysis.restarts,
            frames: analysis.frames,
            packets_expected: analysis.packets_expected,
            packets_missing: analysis.packets_missing,
            rxq_ovfl: report.sockets.kernel_drops,
            packets_reordered: analysis.packets_reordered,
            cut: CutFigures::new(analysis),
            lines: LineFigures::new(format, analysis),
            malformed: shape.malformed,
            foreign: shape.foreign,
            outside: shape.outside,
            times,
            times_missing,
        }
    }

    /// Why the stream is not of a kind, if it is not.
    pub fn fault(&self, kind: PacingKind) -> Option<String> {
        let Some(times) = &self.times else { return self.times_missing.clone() };
        times.pacing.fault(kind)
    }
}

impl CutFigures {
    fn new(analysis: &StreamAnalysis) -> CutFigures {
        let shape = analysis.shape;
        let rate = |ticks: u32| (90_000_000.0 / f64::from(ticks.max(1))).round() / 1000.0;
        CutFigures {
            packets_a_frame: analysis.frame_packets,
            frames_irregular: analysis.frames_irregular,
            datagram_octets_min: shape.datagram_octets_min,
            datagram_octets_max: shape.datagram_octets_max,
            pieces_max: shape.pieces_max,
            markers: shape.markers,
            frame_ticks: analysis.frame_ticks,
            fps_of_ticks: analysis.frame_ticks.map(rate),
        }
    }
}

impl LineFigures {
    fn new(format: VideoFormat, analysis: &StreamAnalysis) -> LineFigures {
        let line_numbering = match analysis.dialect {
            LineDialect::InField => "in-field",
            LineDialect::InFrame => "in-frame",
            LineDialect::Unknown if format.scan() == Scan::Progressive => "progressive",
            LineDialect::Unknown => "unknown",
        };
        let shape = analysis.shape;
        LineFigures {
            line_numbering,
            line_max: shape.line_max,
            second_field_packets: shape.second_field_packets,
            extended_sequence_max: shape.extended_max,
        }
    }
}

impl AnalysedTimes {
    fn new(times: &StreamTimes) -> AnalysedTimes {
        let rounded = |nanos: f64| (nanos / 100.0).round() / 10.0;
        AnalysedTimes {
            pacing: PacingFigures::new(&times.pacing),
            jitter_rfc3550_us: rounded(times.jitter_rfc3550_nanos),
            jitter_schedule_us: rounded(times.jitter_schedule_nanos),
            frame_interval_p50_us: micros(times.intervals.p50),
            frame_interval_p99_us: micros(times.intervals.p99),
            frame_interval_max_us: micros(times.intervals.max),
        }
    }
}

impl fmt::Display for AnalysedFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "told     {}", self.picture)?;
        let ssrc = self.ssrc.as_deref().unwrap_or("none");
        writeln!(f, "source   {ssrc}, payload type {}, {} restarts", self.payload_type, self.restarts)?;
        writeln!(
            f,
            "packets  {} expected, {} missing, {} reordered; {} are no such RTP, {} of another stream, {} pieces outside the picture; \
             SO_RXQ_OVFL {}",
            self.packets_expected,
            self.packets_missing,
            self.packets_reordered,
            self.malformed,
            self.foreign,
            self.outside,
            self.rxq_ovfl
        )?;
        writeln!(f, "frames   {} in {:.2} s, {}", self.frames, self.seconds, self.cut)?;
        write!(f, "lines    {}", self.lines)?;
        match (&self.times, &self.times_missing) {
            (Some(times), _) => write!(f, "\n{times}"),
            (None, Some(reason)) => write!(f, "\npacing   unknown: {reason}"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for CutFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packets_a_frame {
            Some(packets) => write!(f, "{packets} packets each ({} with another number)", self.frames_irregular)?,
            None => f.write_str("packets of a frame unknown")?,
        }
        let (min, max, pieces) = (self.datagram_octets_min, self.datagram_octets_max, self.pieces_max);
        write!(
            f,
            ", datagrams of {min} to {max} octets, at most {pieces} pieces of lines in one, {} markers",
            self.markers
        )?;
        match (self.frame_ticks, self.fps_of_ticks) {
            (Some(ticks), Some(rate)) => write!(f, ", {ticks} ticks apart: {rate:.3} a second"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for LineFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counting = match self.line_numbering {
            "in-field" => "counted in the field, as ST 2110-20 and FFmpeg do",
            "in-frame" => "counted in the frame, as GStreamer does",
            "progressive" => "of one field",
            _ => "counted in a way not seen yet",
        };
        write!(
            f,
            "{counting}, up to {}; {} packets of the second field; extended numbers up to {}",
            self.line_max, self.second_field_packets, self.extended_sequence_max
        )
    }
}

impl fmt::Display for AnalysedTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.pacing)?;
        write!(
            f,
            "timing   jitter {:.1} µs by RFC 3550, {:.1} µs from the schedule; frames {:.0} µs apart, p99 {:.0}, at most {:.0}",
            self.jitter_rfc3550_us,
            self.jitter_schedule_us,
            self.frame_interval_p50_us,
            self.frame_interval_p99_us,
            self.frame_interval_max_us
        )
    }
}
