//! What became of sound, as JSON and as text.

use std::fmt;

use serde::Serialize;
use thalweg_video::audio::AudioFormat;
use thalweg_video::io::{SoundReceiveReport, SoundSendReport};
use thalweg_video::sink::ToneSummary;

use super::figures::micros_or_unknown;
use super::live::micros;

/// What a sender of sound did.
#[derive(Debug, Serialize)]
pub struct SoundSentFigures {
    pub form: String,
    pub packets_sent: u64,
    pub packets_resent: u64,
    /// Late by more than 100 ms, and not sent.
    pub packets_dropped: u64,
    /// Not taken by the system.
    pub packets_lost_here: u64,
    /// What the last report of a receiver said; null without one.
    pub receiver_packets_lost: Option<i32>,
    pub rtt_us: Option<f64>,
}

/// What a receiver of sound got; samples count once for all channels.
#[derive(Debug, Serialize)]
pub struct SoundReceivedFigures {
    pub form: String,
    pub packets_expected: u64,
    pub packets_received: u64,
    /// That came because they were asked for.
    pub packets_recovered: u64,
    pub packets_lost: u64,
    pub packets_requested: u64,
    /// Of other streams, unreadable, or too far from the others.
    pub packets_refused: u64,
    pub frames_played: u64,
    pub frames_concealed: u64,
    pub frames_late: u64,
    pub frames_skipped: u64,
    /// Whether each sample that came was played, skipped or waits: placed = played - concealed + skipped + waiting.
    pub law_holds: bool,
    /// Milliseconds by which sound is played after its picture; null where that is not known.
    pub behind_picture_ms: Option<f64>,
    pub steps: u64,
    pub rtt_us: Option<f64>,
    /// What the check of the tone found; null with another sink.
    pub tone: Option<ToneFigures>,
}

/// What the test tone proves.
#[derive(Debug, Serialize)]
pub struct ToneFigures {
    pub frames_proved: u64,
    pub frames_wrong: u64,
    pub frames_concealed: u64,
    pub holds: bool,
}

impl SoundSentFigures {
    pub fn new(format: AudioFormat, report: &SoundSendReport) -> SoundSentFigures {
        SoundSentFigures {
            form: form(format),
            packets_sent: report.packets,
            packets_resent: report.packets_resent,
            packets_dropped: report.packets_dropped,
            packets_lost_here: report.lost,
            receiver_packets_lost: report.peer.map(|peer| peer.lost),
            rtt_us: report.peer.and_then(|peer| peer.round_trip).map(micros),
        }
    }

    /// Why sound left this host incomplete, if it did.
    pub fn complaint(&self) -> Option<String> {
        let SoundSentFigures { packets_dropped, packets_lost_here, .. } = self;
        (packets_dropped + packets_lost_here > 0).then(|| {
            format!(
                "{packets_dropped} packets of sound were late and dropped here, and the system did not take {packets_lost_here}"
            )
        })
    }
}

impl SoundReceivedFigures {
    pub fn new(format: AudioFormat, report: &SoundReceiveReport, tone: Option<ToneSummary>) -> SoundReceivedFigures {
        let counters = report.counters;
        let stream = report.stream.unwrap_or_default();
        SoundReceivedFigures {
            form: form(format),
            packets_expected: stream.expected,
            packets_received: stream.received,
            packets_recovered: report.packets_recovered,
            packets_lost: stream.expected.saturating_sub(stream.received + report.packets_recovered),
            packets_requested: report.requests.requests,
            packets_refused: counters.packets_foreign + counters.packets_malformed + counters.packets_astray,
            frames_played: counters.frames_played,
            frames_concealed: counters.frames_concealed,
            frames_late: counters.frames_late,
            frames_skipped: counters.frames_skipped,
            law_holds: counters.frames_placed + counters.frames_concealed
                == counters.frames_played + counters.frames_skipped + report.frames_waiting,
            behind_picture_ms: report.behind_picture_millis.map(|millis| (millis * 1000.0).round() / 1000.0),
            steps: report.steps,
            rtt_us: report.round_trip.map(micros),
            tone: tone.map(ToneFigures::from),
        }
    }

    /// What was lost or is wrong, if something is.
    pub fn complaint(&self) -> Option<String> {
        let SoundReceivedFigures { packets_lost, frames_concealed, .. } = self;
        if !self.law_holds {
            return Some("the counts of samples contradict each other".to_owned());
        }
        if self.packets_expected == 0 {
            return Some("no packet of sound came; give --sound-sink off to do without it".to_owned());
        }
        if let Some(tone) = self.tone.as_ref().filter(|tone| !tone.holds) {
            return Some(format!("the sound is not the test tone: {tone}; for other sound give --sound-sink null"));
        }
        (packets_lost + frames_concealed > 0)
            .then(|| format!("{packets_lost} packets of sound were lost, and {frames_concealed} samples concealed"))
    }
}

impl From<ToneSummary> for ToneFigures {
    fn from(summary: ToneSummary) -> ToneFigures {
        ToneFigures {
            frames_proved: summary.proved,
            frames_wrong: summary.wrong,
            frames_concealed: summary.concealed,
            holds: summary.is_proved(),
        }
    }
}

impl fmt::Display for SoundSentFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sound    {}: {} packets sent, {} again, {} dropped late, {} not taken by the system",
            self.form, self.packets_sent, self.packets_resent, self.packets_dropped, self.packets_lost_here
        )?;
        match self.receiver_packets_lost {
            None => Ok(()),
            Some(lost) => write!(f, "; receiver: {lost} lost, RTT {}", micros_or_unknown(self.rtt_us)),
        }
    }
}

impl fmt::Display for SoundReceivedFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sound    {}: {} of {} packets, {} recovered, {} lost; {} samples played, {} concealed, {} late, {} skipped",
            self.form,
            self.packets_received,
            self.packets_expected,
            self.packets_recovered,
            self.packets_lost,
            self.frames_played,
            self.frames_concealed,
            self.frames_late,
            self.frames_skipped
        )?;
        match self.behind_picture_ms {
            Some(millis) => write!(f, "\n         played {millis:+.3} ms after its picture, {} steps", self.steps)?,
            None => f.write_str("\n         not brought together with a picture")?,
        }
        self.tone.as_ref().map_or(Ok(()), |tone| write!(f, "\n         {tone}"))
    }
}

impl fmt::Display for ToneFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToneFigures { frames_proved, frames_wrong, frames_concealed, .. } = self;
        write!(f, "tone: {frames_proved} samples proved, {frames_wrong} wrong, {frames_concealed} in concealed blocks")
    }
}

fn form(format: AudioFormat) -> String {
    let channels = format.channels();
    let ending = if channels == 1 { "" } else { "s" };
    format!(
        "{} of {channels} channel{ending}, {:?} a packet",
        format.encoding().word(),
        format.packet_time().duration()
    )
}

#[cfg(test)]
mod tests {
    use thalweg_video::audio::{AudioCounters, PacketTime};
    use thalweg_video::receiver::RequestCounters;
    use thalweg_video::rtcp::ReceivedStream;
    use thalweg_video::sdp::AudioEncoding;

    use super::*;

    #[test]
    fn what_two_paths_brought_twice_hides_no_loss() {
        let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).expect("a form");
        // The copies of 60 packets came in time, those of 30 late.
        let stream = ReceivedStream { expected: 100, received: 90, ..ReceivedStream::default() };
        let counters = AudioCounters { frames_duplicate: 60 * 48, frames_late: 30 * 48, ..AudioCounters::default() };
        let report = SoundReceiveReport { counters, stream: Some(stream), ..SoundReceiveReport::default() };
        let figures = SoundReceivedFigures::new(format, &report, None);
        assert_eq!((figures.packets_received, figures.packets_lost), (90, 10));
    }

    #[test]
    fn what_came_because_it_was_asked_for_is_not_lost() {
        let format = AudioFormat::new(AudioEncoding::L24, 2, PacketTime::Millisecond).expect("a form");
        let stream = ReceivedStream { expected: 100, received: 90, ..ReceivedStream::default() };
        let requests = RequestCounters { requests: 12, ..RequestCounters::default() };
        let report = SoundReceiveReport { stream: Some(stream), packets_recovered: 10, requests, ..Default::default() };
        let figures = SoundReceivedFigures::new(format, &report, None);
        assert_eq!((figures.packets_recovered, figures.packets_lost, figures.packets_requested), (10, 0, 12));
        assert_eq!(figures.complaint(), None);
    }
}
