//! The figures of a run, computed from what its programs told.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thalweg_probe::{ProbeTripFigures, StreamFigures};

use super::cell::{PictureCase, PictureEnds, PictureRate};
use super::end::{EndRecord, ProcessRole};
use super::result::HdtvRun;
use super::run::HdtvRecord;
use crate::statistics::Summary;

/// Processor time of one program, in shares of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndLoad {
    /// The mean over the windows.
    pub mean: f64,
    /// Standard deviation of one-second windows; missing below two of them.
    pub sd: Option<f64>,
    /// Windows of about a second, without the first and the last part of the run.
    pub windows: u64,
}

/// Figures of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamShown {
    /// Payload megabits a second that arrived.
    pub goodput_mbit: f64,
    /// Standard deviation of one-second windows; missing below two whole seconds.
    pub goodput_mbit_sd: Option<f64>,
    /// Share of the datagrams that were lost, 0 to 1; of TCP 0.
    pub lost: f64,
    /// Shares of a processor that both ends used.
    pub cpu: [f64; 2],
}

/// Figures of round trips.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TripsShown {
    /// Mean in microseconds.
    pub mean_us: f64,
    /// Median in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile in microseconds.
    pub p99_us: Option<f64>,
    /// Requests without an answer.
    pub lost: u64,
    /// Share of a processor that the asking end used.
    pub client_cpu: f64,
}

/// Figures of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PictureFigures {
    /// Frames that the sender was to send.
    pub frames_due: u64,
    /// Frames that arrived whole; missing of a program that does not tell which ones are.
    pub frames_complete: Option<u64>,
    /// Frames that were shown, whole or not.
    pub frames_shown: u64,
    /// Frames that came incomplete before the first one that was shown.
    #[serde(default)]
    pub frames_before_start: u64,
    /// Frames that a topic's publisher left out because it came more than a frame time late.
    #[serde(default)]
    pub frames_late: u64,
    /// Frames that it left out because those before were still on their way.
    #[serde(default)]
    pub frames_passed_over: u64,
    /// Share of the packets that were lost, 0 to 1; of a topic that of its samples.
    pub lost: f64,
    /// Mean of the frames a second in windows of a second; missing below one.
    pub fps_mean: Option<f64>,
    /// Their standard deviation; missing below two.
    pub fps_sd: Option<f64>,
    /// Round trip from the receiver's last report, in microseconds.
    pub rtt_us: Option<f64>,
    /// Jitter in the receiver's last report (RFC 3550), in microseconds.
    pub report_jitter_us: Option<f64>,
    /// Deviation from an even schedule, in microseconds.
    pub schedule_jitter_us: Option<f64>,
    /// 99th percentile of the time between frames, in microseconds.
    pub interval_p99_us: Option<f64>,
    /// 99th percentile of a frame's latency in microseconds: by RTP from its first packet to its last one, as a topic from when
    /// its source begins to fill it to when the subscriber has it.
    pub latency_p99_us: Option<f64>,
    /// Messages that found the receive buffer full.
    pub buffer_drops: u64,
    /// Mean time between packets, in microseconds, were they spread evenly.
    pub spacing_us: Option<f64>,
}

impl HdtvRecord {
    /// The run in short.
    ///
    /// # Errors
    /// A figure is missing, or the counts of a program contradict each other; the text says which.
    pub(super) fn figures(&self) -> Result<HdtvRun, String> {
        let said = |role: ProcessRole| self.end(role).and_then(|end| end.said.clone());
        let stream = said(ProcessRole::Stream).map(stream_shown).transpose()?;
        let trips = said(ProcessRole::RoundTrips).map(trips_shown).transpose()?;
        let picture = self.cell.traffic.picture().map(|case| self.picture(case)).transpose()?;
        if stream.is_none() && trips.is_none() && picture.is_none() {
            return Err("no program told figures".to_owned());
        }
        let load = |role: ProcessRole| self.end(role).and_then(|end| EndLoad::of(&end.used));
        let losses = self.layers[1].losses().map(|(name, count)| (name.to_owned(), count)).collect();
        Ok(HdtvRun {
            round: self.round,
            stream,
            trips,
            picture,
            sender_load: load(ProcessRole::PictureSender),
            receiver_load: load(ProcessRole::PictureReceiver),
            losses,
            relayed: self.truth(),
            refused: self.refused.clone(),
            conditions: self.conditions.clone(),
        })
    }

    /// The program of this role.
    pub(super) fn end(&self, role: ProcessRole) -> Option<&EndRecord> {
        self.ends.iter().find(|end| end.role == role)
    }

    fn picture(&self, case: PictureCase) -> Result<PictureFigures, String> {
        let ends = self.end(ProcessRole::PictureSender).zip(self.end(ProcessRole::PictureReceiver));
        let (sender, receiver) = ends.ok_or("an end of the picture is missing")?;
        let due = case.frames_in(self.cell.seconds);
        match case.ends {
            PictureEnds::Thalweg => {
                let both = sender.said.as_ref().zip(receiver.said.as_ref());
                let (sent, received) = both.ok_or("an end of the picture told nothing")?;
                rtp_picture((due, case.rate), sent, received)
            }
            PictureEnds::BestEffortTopic | PictureEnds::ReliableTopic => {
                let both = sender.said.as_ref().zip(receiver.said.as_ref());
                let (sent, received) = both.ok_or("an end of the picture told nothing")?;
                topic_picture(due, sent, received)
            }
            PictureEnds::Peer(_) => Ok(self.peer_picture(due, receiver)),
        }
    }

    /// Another project's program does not tell what it lost: the kernels of both hosts do.
    fn peer_picture(&self, due: u64, receiver: &EndRecord) -> PictureFigures {
        let [sent, came] = [self.layers[0].get("udp.OutDatagrams"), self.layers[1].get("udp.InDatagrams")];
        let frames_shown = receiver.frames.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let lost = if sent > 0 { sent.saturating_sub(came) as f64 / sent as f64 } else { 0.0 };
        let windows = frame_windows(&receiver.frames);
        let summary = Summary::of(&windows);
        PictureFigures {
            frames_due: due,
            // Nothing lost in the network, nothing incomplete.
            frames_complete: (lost == 0.0).then_some(frames_shown),
            frames_shown,
            lost,
            fps_mean: summary.as_ref().map(|one| one.mean),
            fps_sd: summary.filter(|one| one.count > 1).map(|one| one.standard_deviation),
            buffer_drops: self.layers[1].get("udp.RcvbufErrors"),
            ..PictureFigures::default()
        }
    }

    /// Checks the laws of the counts.
    ///
    /// # Errors
    /// Which one does not hold.
    pub(super) fn check(&self) -> Result<(), String> {
        for end in &self.ends {
            let count = |path: &str| end.said.as_ref().and_then(|said| said.pointer(path)).and_then(Value::as_u64);
            let law = |come: [Option<u64>; 2], lost: Option<u64>, all: Option<u64>| match (come, lost, all) {
                ([Some(first), Some(again)], Some(lost), Some(all)) if first + again + lost != all => {
                    let come = if again > 0 {
                        format!("{first} received, {again} recovered")
                    } else {
                        format!("{first} received")
                    };
                    Err(format!("{come} and {lost} lost are not the {all} that were sent"))
                }
                _ => Ok(()),
            };
            law([count("/datagrams/received"), Some(0)], count("/datagrams/lost"), count("/datagrams/offered"))?;
            if count("/law/outstanding") == Some(0) {
                law([count("/law/received"), count("/law/recovered")], count("/law/lost"), count("/law/expected"))?;
            }
        }
        self.truth().map_or(Ok(()), |truth| truth.check())?;
        self.figures().map(drop)
    }
}

fn stream_shown(said: Value) -> Result<StreamShown, String> {
    let figures: StreamFigures = serde_json::from_value(said).map_err(|error| error.to_string())?;
    let share = |cpu: f64, seconds: f64| if seconds > 0.0 { cpu / seconds } else { 0.0 };
    let cpu = [&figures.sender, &figures.receiver].map(|end| share(end.cpu_seconds, end.seconds));
    Ok(StreamShown {
        goodput_mbit: figures.goodput_mbit_per_s,
        goodput_mbit_sd: figures.goodput_mbit_per_s_sd,
        lost: figures.datagrams.map_or(0.0, |datagrams| datagrams.lost_percent / 100.0),
        cpu,
    })
}

fn trips_shown(said: Value) -> Result<TripsShown, String> {
    let figures: ProbeTripFigures = serde_json::from_value(said).map_err(|error| error.to_string())?;
    let client = &figures.client;
    Ok(TripsShown {
        mean_us: figures.mean_us,
        p50_us: figures.p50_us,
        p99_us: figures.p99_us,
        lost: figures.lost,
        client_cpu: if client.seconds > 0.0 { client.cpu_seconds / client.seconds } else { 0.0 },
    })
}

fn rtp_picture((due, rate): (u64, PictureRate), sent: &Value, received: &Value) -> Result<PictureFigures, String> {
    let count =
        |path: &str| received.pointer(path).and_then(Value::as_u64).ok_or(format!("the receiver tells no {path}"));
    let number = |path: &str| received.pointer(path).and_then(Value::as_f64);
    let (expected, lost) = (count("/law/expected")?, count("/law/lost")?);
    let (complete, concealed) = (count("/frames_complete")?, count("/frames_concealed")?);
    let packets = sent.pointer("/packets_sent").and_then(Value::as_f64);
    let frames = sent.pointer("/frames_sent").and_then(Value::as_f64).filter(|frames| *frames > 0.0);
    let spacing = packets.zip(frames).filter(|(packets, _)| *packets > 0.0);
    Ok(PictureFigures {
        frames_due: due,
        frames_complete: Some(complete),
        frames_shown: complete + concealed,
        frames_before_start: received.pointer("/frames_before_start").and_then(Value::as_u64).unwrap_or(0),
        lost: if expected > 0 { lost as f64 / expected as f64 } else { 1.0 },
        fps_mean: number("/fps_mean"),
        fps_sd: number("/fps_sd"),
        rtt_us: sent.pointer("/rtt_us").and_then(Value::as_f64),
        report_jitter_us: sent.pointer("/receiver/jitter_rfc3550_us").and_then(Value::as_f64),
        schedule_jitter_us: number("/jitter_schedule_us"),
        interval_p99_us: number("/frame_interval_p99_us"),
        latency_p99_us: number("/frame_latency_p99_us"),
        buffer_drops: count("/layers/rxq_ovfl")?,
        spacing_us: spacing.map(|(packets, frames)| 1e6 / rate.per_s() * frames / packets),
        ..PictureFigures::default()
    })
}

fn topic_picture(due: u64, sent: &Value, received: &Value) -> Result<PictureFigures, String> {
    let count = |name: &str| received[name].as_u64().ok_or(format!("the subscriber tells no {name}"));
    let (expected, lost) = (count("samples_expected")?, count("samples_lost")?);
    let times = received["shown_at_ns"].as_array().ok_or("the subscriber tells no times")?;
    let times = times.iter().filter_map(Value::as_u64).map(|at| at as f64 / 1e9);
    let shown: Vec<(f64, u64)> = times.zip(1..).collect();
    let summary = Summary::of(&frame_windows(&shown));
    // Older records have none.
    let latencies = received["latency_us"].as_array().map_or(&[][..], Vec::as_slice);
    let mut latencies: Vec<f64> = latencies.iter().filter_map(Value::as_f64).collect();
    latencies.sort_by(f64::total_cmp);
    // Older records do not tell the two apart.
    let late = sent["frames_late"].as_u64();
    let passed_over = late.and_then(|_| sent["frames_passed_over"].as_u64());
    let rank = (latencies.len() as f64 * 0.99).ceil() as usize;
    Ok(PictureFigures {
        frames_due: due,
        frames_complete: Some(count("frames_complete")?),
        frames_shown: shown.len() as u64,
        frames_late: late.unwrap_or(0),
        frames_passed_over: passed_over.unwrap_or(0),
        lost: if expected > 0 { lost as f64 / expected as f64 } else { 1.0 },
        fps_mean: summary.as_ref().map(|one| one.mean),
        fps_sd: summary.filter(|one| one.count > 1).map(|one| one.standard_deviation),
        latency_p99_us: rank.checked_sub(1).map(|index| latencies[index]),
        ..PictureFigures::default()
    })
}

impl EndLoad {
    /// Of samples `(second, processor seconds so far)`: the first window, in which the program starts, and a last short one do not count.
    pub(super) fn of(used: &[(f64, f64)]) -> Option<EndLoad> {
        let windows = used.windows(2).skip(1).filter(|pair| pair[1].0 - pair[0].0 > WINDOW_MIN_S);
        let shares: Vec<f64> = windows.map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)).collect();
        let summary = Summary::of(&shares)?;
        let sd = (summary.count > 1).then_some(summary.standard_deviation);
        Some(EndLoad { mean: summary.mean, sd, windows: summary.count })
    }
}

/// Frames a second in windows of a second, from `(second, frames so far)`: between the first and the last frame, whole windows alone. The
/// frames of one in which its end falls between two reports are shared by time.
pub(super) fn frame_windows(frames: &[(f64, u64)]) -> Vec<f64> {
    let (Some((first, _)), Some((last, _))) = (frames.first(), frames.last()) else { return Vec::new() };
    let at = |second: f64| {
        let next = frames.partition_point(|(at, _)| *at <= second);
        let (from, to) = (frames[next.max(1) - 1], frames[next.min(frames.len() - 1)]);
        let share = if to.0 > from.0 { ((second - from.0) / (to.0 - from.0)).clamp(0.0, 1.0) } else { 0.0 };
        from.1 as f64 + share * (to.1 as f64 - from.1 as f64)
    };
    let windows = (last - first).floor() as u32;
    (0..windows).map(|index| at(first + f64::from(index) + 1.0) - at(first + f64::from(index))).collect()
}

/// A window that is shorter is the rest of a run.
const WINDOW_MIN_S: f64 = 0.5;
