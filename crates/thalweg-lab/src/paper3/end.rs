//! A program of a run: heard, and its processor time sampled.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_host::{HostFiles, Task, TaskStat, monotonic_nanos};

use crate::error::LabError;
use crate::process::{HeardLine, Stop, Supervised, WorkerMessage};

/// What a program does in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessRole {
    /// Sends the picture.
    PictureSender,
    /// Receives it.
    PictureReceiver,
    /// Sends a stream to a probe and tells of both ends.
    Stream,
    /// Asks a probe and tells of both ends.
    RoundTrips,
}

/// How a program tells its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speech {
    /// One object of JSON when it ends.
    Object,
    /// As a worker of the lab.
    Worker,
    /// A line for each frame that holds this word, from GStreamer's sink.
    FrameLines(&'static str),
    /// `frame=N` now and then, from FFmpeg.
    FrameCounts,
}

/// A program under observation; dropping it ends it.
pub(super) struct RunningEnd {
    role: ProcessRole,
    speech: Speech,
    process: Supervised,
    heard: Vec<HeardLine>,
    answer: Option<serde_json::Value>,
    /// Processor time by the host's clock.
    used: Vec<(u64, Duration)>,
    is_ready: bool,
    /// How it ended.
    fault: Option<LabError>,
}

/// What is known of a program when the run is over; times are seconds since the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EndRecord {
    pub(super) role: ProcessRole,
    /// Its figures as it told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<serde_json::Value>,
    /// Frames that it had shown at a time, where it tells them as it goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frames: Vec<(f64, u64)>,
    /// Seconds of processor time that it had used at a time.
    pub(super) used: Vec<(f64, f64)>,
}

impl RunningEnd {
    /// Observes a program that was started.
    pub(super) fn new(role: ProcessRole, speech: Speech, process: Supervised) -> RunningEnd {
        let (heard, used, is_ready) = (Vec::new(), Vec::new(), speech != Speech::Worker);
        RunningEnd { role, speech, process, heard, answer: None, used, is_ready, fault: None }
    }

    /// The system's number of the process.
    pub(super) fn id(&self) -> u32 {
        // It always has one, as a child of this process.
        self.process.id().unwrap_or_default()
    }

    /// Whether nothing more is to be heard of it.
    pub(super) fn is_over(&self) -> bool {
        self.fault.is_some() || self.answer.is_some()
    }

    /// Whether it ends by itself when the sender does, which other projects' receivers do not.
    pub(super) fn notices_the_end(&self) -> bool {
        matches!(self.speech, Speech::Object | Speech::Worker)
    }

    /// Takes what it says and, once a second, its processor time.
    pub(super) fn look(&mut self, files: &HostFiles) {
        let now = monotonic_nanos();
        if !self.is_over() && self.used.last().is_none_or(|(at, _)| now - at >= SAMPLE_NS) {
            self.sample(files, now);
        }
        if self.speech == Speech::Worker {
            match self.process.try_hear() {
                Ok(Some(WorkerMessage::Done(answer))) => {
                    self.sample(files, now);
                    self.answer = Some(answer);
                }
                Ok(Some(_)) => self.is_ready = true,
                Ok(None) => {}
                Err(error) => self.end(error),
            }
            return;
        }
        while let Some(line) = self.process.try_line() {
            self.heard.push(line);
        }
        if self.fault.is_none()
            && let Err(error) = self.process.check_alive()
        {
            self.end(error);
        }
    }

    fn sample(&mut self, files: &HostFiles, now: u64) {
        self.used.extend(TaskStat::read(files, Task::Process(self.id())).map(|stat| (now, stat.cpu())));
    }

    fn end(&mut self, error: LabError) {
        if self.fault.is_none() && self.answer.is_none() {
            self.fault = Some(error);
        }
    }

    /// Waits until `fits` holds of it.
    ///
    /// # Errors
    /// It ended, took longer than `patience`, or `stop` was requested.
    pub(super) fn wait(
        &mut self,
        files: &HostFiles,
        patience: Duration,
        stop: &Stop,
        fits: impl Fn(&RunningEnd) -> bool,
    ) -> Result<(), LabError> {
        let deadline = Instant::now() + patience;
        loop {
            self.look(files);
            if fits(self) {
                return Ok(());
            }
            if stop.is_requested() {
                return Err(LabError::Interrupted);
            }
            if let Some(error) = self.fault.take() {
                return Err(error);
            }
            if Instant::now() > deadline {
                let (process, last_words) = (self.process.name().to_owned(), self.process.remarks().join(" / "));
                return Err(LabError::Silent { process, patience, last_words });
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Whether a worker has said that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// What is known of it now, by seconds since `origin_ns`; ends it.
    ///
    /// # Errors
    /// It ended without its figures.
    pub(super) fn finish(mut self, origin_ns: u64) -> Result<EndRecord, LabError> {
        let since = |at: u64| (i128::from(at) - i128::from(origin_ns)) as f64 / 1e9;
        let (mut said, mut frames) = (self.answer.take(), Vec::new());
        match self.speech {
            Speech::Worker if said.is_none() => return Err(self.failure()),
            Speech::Worker => {}
            Speech::Object => {
                let text: String = self.heard.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
                match serde_json::from_str(&text) {
                    Ok(object) => said = Some(object),
                    Err(_) => return Err(self.failure()),
                }
            }
            Speech::FrameLines(word) => {
                let shown = self.heard.iter().filter(|line| line.text.contains(word));
                frames = shown.zip(1..).map(|(line, count)| (since(line.at_ns), count)).collect();
            }
            Speech::FrameCounts => {
                let count = |line: &HeardLine| {
                    let count = line.text.strip_prefix("frame=")?.trim().parse().ok()?;
                    Some((since(line.at_ns), count))
                };
                frames = self.heard.iter().filter_map(count).collect();
            }
        }
        let used = self.used.iter().map(|(at, used)| (since(*at), used.as_secs_f64())).collect();
        Ok(EndRecord { role: self.role, said, frames, used })
    }

    /// Why it has no figures.
    fn failure(&mut self) -> LabError {
        let (process, text) = (self.process.name().to_owned(), self.heard.iter().map(|line| line.text.as_str()));
        let reason = format!("it told no figures: {}", text.take(5).collect::<Vec<_>>().join(" / "));
        self.fault.take().unwrap_or(LabError::Failed { process, reason })
    }
}

/// Windows of processor time are as long.
const SAMPLE_NS: u64 = 1_000_000_000;
/// How often programs are looked at.
pub(super) const LOOK_PERIOD: Duration = Duration::from_millis(10);
