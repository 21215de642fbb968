//! The receiving end of a stream of topics.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use thalweg::types::Instant;
use thalweg::{DataReader, DataWriter, DomainParticipant, Sample, SubscriberQos, clock};
use thalweg_transport::entropy;

use super::deadline::DeadlineMeter;
use super::qos::{self, SampleUnit, TopicReliability};
use super::wire::{FrameWords, SliceWords};
use super::{
    FormatWords, TopicError, TopicPicture, VideoFrame, VideoSlice, VideoStreamDescription, VideoStreamStatistics,
    description,
};
use crate::format::VideoFormat;
use crate::receiver::{
    AssemblerConfig, Concealment, FrameArrival, FrameAssembler, FrameHead, LineSet, PictureOctets, ReceivedPicture,
    ReceiverCounters, SliceHead, WholeFrames,
};

/// Frames whose capture times are remembered: those that fill, and those that wait to be fetched.
const TIMES_MAX: usize = 8;

/// What a subscriber is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriberConfig {
    /// The number of the stream.
    pub stream: u32,
    /// The format that is expected; `None` (default) takes any.
    pub expected: Option<VideoFormat>,
    /// Whether lost fragments are asked for again; `None` (default) does so where the publisher offers it.
    pub reliability: Option<TopicReliability>,
    /// What becomes of frames that lack slices.
    pub concealment: Concealment,
    /// How many incomplete frames are passed over at the beginning. Default 10.
    pub start_frames_max: u16,
}

impl SubscriberConfig {
    /// The defaults for a stream.
    pub fn new(stream: u32) -> SubscriberConfig {
        SubscriberConfig {
            stream,
            expected: None,
            reliability: None,
            concealment: Concealment::default(),
            start_frames_max: 10,
        }
    }
}

/// What a subscriber has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicCounters {
    /// In the words of an RTP receiver: packets are samples.
    pub received: ReceiverCounters,
    /// Samples with a wrong checksum; they are not used, and their numbers count as lost.
    pub damaged: u64,
    /// Samples of another format than the stream is described with.
    pub other_format: u64,
    /// Frame times without a frame: DEADLINE.
    pub deadlines_missed: u64,
}

/// Takes a stream of pictures from topics.
#[derive(Debug)]
pub struct VideoSubscriber {
    config: SubscriberConfig,
    description: VideoStreamDescription,
    format: VideoFormat,
    input: Input,
    descriptions: DataReader<VideoStreamDescription>,
    statistics: DataWriter<VideoStreamStatistics>,
    reporter: u32,
    /// Time stamps of recent frames, and when these were taken.
    times: VecDeque<(u32, u64)>,
    deadline: DeadlineMeter,
    counters: TopicCounters,
}

#[derive(Debug)]
enum Input {
    Frames(DataReader<VideoFrame>, Box<WholeFrames>),
    Slices(DataReader<VideoSlice>, Box<FrameAssembler>),
}

impl VideoSubscriber {
    /// Subscribes to a stream, as soon as it is described.
    ///
    /// # Errors
    /// Nobody describes the stream within `patience`; it has another format than the expected one, or is not offered
    /// RELIABLE though that is asked for; or the middleware refuses.
    pub fn open(
        participant: &DomainParticipant,
        config: SubscriberConfig,
        patience: Duration,
    ) -> Result<VideoSubscriber, TopicError> {
        let descriptions = description::create_reader(participant)?;
        let description = description::wait_in(&descriptions, config.stream, patience)?;
        let format = check_format(&description, config.expected)?;
        let offered = if description.is_reliable { TopicReliability::Reliable } else { TopicReliability::BestEffort };
        let reliability = config.reliability.unwrap_or(offered);
        if reliability == TopicReliability::Reliable && offered == TopicReliability::BestEffort {
            return Err(TopicError::NotReliable { stream: config.stream });
        }
        let topic = participant.create_topic(qos::STATISTICS);
        let statistics = participant.create_writer(&topic, qos::kept_writer())?;
        Ok(VideoSubscriber {
            input: create_input(participant, &config, &description, format, reliability)?,
            descriptions,
            statistics,
            reporter: u32::from_ne_bytes(entropy::bytes().map_err(TopicError::Entropy)?),
            times: VecDeque::with_capacity(TIMES_MAX),
            deadline: DeadlineMeter::new(format.frame_time()),
            counters: TopicCounters::default(),
            config,
            description,
            format,
        })
    }

    /// The format of the stream.
    pub fn format(&self) -> VideoFormat {
        self.format
    }

    /// The stream as its publisher describes it.
    pub fn description(&self) -> &VideoStreamDescription {
        &self.description
    }

    /// What was received so far.
    pub fn counters(&self) -> TopicCounters {
        let mut received = match &self.input {
            Input::Frames(_, frames) => frames.counters(),
            Input::Slices(_, assembler) => assembler.counters(),
        };
        received.refused.malformed += self.counters.received.refused.malformed;
        received.refused.foreign += self.counters.received.refused.foreign;
        TopicCounters { received, deadlines_missed: self.deadline.missed(clock::now()), ..self.counters }
    }

    /// By how many millionths the sender's frame time is longer than it should be by our clock; `None` in the first 5 s.
    pub fn drift_ppm(&self) -> Option<f64> {
        match &self.input {
            Input::Frames(_, frames) => frames.drift_ppm(),
            Input::Slices(_, assembler) => assembler.drift_ppm(),
        }
    }

    /// The next frame, waited for up to `timeout`; `None` when there is none by then.
    ///
    /// # Errors
    /// The stream goes on with another format: open it anew.
    pub fn next_picture(&mut self, timeout: Duration) -> Result<Option<TopicPicture>, TopicError> {
        let deadline = clock::now() + timeout;
        loop {
            if let Some(picture) = self.take_picture()? {
                return Ok(Some(picture));
            }
            let now = clock::now();
            if now >= deadline {
                return Ok(None);
            }
            match &self.input {
                Input::Frames(reader, _) => reader.wait(deadline.since(now)),
                Input::Slices(reader, assembler) => reader.wait(deadline.min(assembler.poll_timeout()).since(now)),
            };
        }
    }

    /// As [`VideoSubscriber::next_picture`], without waiting.
    ///
    /// # Errors
    /// As [`VideoSubscriber::next_picture`].
    pub fn take_picture(&mut self) -> Result<Option<TopicPicture>, TopicError> {
        loop {
            if let Some(picture) = self.poll_assembled() {
                return Ok(Some(picture));
            }
            let foreign_before = self.counters.other_format;
            let picture = match &self.input {
                Input::Frames(reader, _) => match reader.take_one() {
                    Some(sample) => self.handle_frame(&sample),
                    None => return Ok(None),
                },
                Input::Slices(reader, _) => match reader.take_one() {
                    Some(sample) => {
                        self.handle_slice(&sample);
                        None
                    }
                    None => return Ok(self.poll_assembled()),
                },
            };
            if picture.is_some() {
                return Ok(picture);
            }
            if self.counters.other_format > foreign_before {
                self.check_description()?;
            }
        }
    }

    /// Ends the stream: frames that lack slices are due.
    pub fn finish(&mut self) {
        if let Input::Slices(_, assembler) = &mut self.input {
            assembler.finish();
        }
    }

    /// Publishes what it has counted; `seconds` and `cpu_seconds` as in [`VideoStreamStatistics`].
    ///
    /// # Errors
    /// The middleware refuses.
    pub fn publish_statistics(&self, seconds: f64, cpu_seconds: f64) -> Result<(), TopicError> {
        let TopicCounters { received, damaged, other_format, deadlines_missed } = self.counters();
        let mut statistics = VideoStreamStatistics::of_receiver(self.config.stream, self.reporter, &received);
        statistics.samples.refused += damaged + other_format;
        self.statistics.write(&VideoStreamStatistics { seconds, cpu_seconds, deadlines_missed, ..statistics })?;
        Ok(())
    }
}

// Samples.
impl VideoSubscriber {
    fn handle_frame(&mut self, sample: &Sample<VideoFrame>) -> Option<TopicPicture> {
        if !sample.is_valid() {
            return None; // The publisher is gone.
        }
        let Some((words, range)) = FrameWords::parse(sample.bytes()) else {
            self.counters.received.refused.malformed += 1;
            return None;
        };
        let octets = &sample.bytes()[range.clone()];
        if !self.admit(&words, octets) {
            return None;
        }
        let Input::Frames(_, frames) = &mut self.input else { return None };
        let now = sample.info().received;
        let head = FrameHead { source: words.source, frame: words.frame, timestamp: words.timestamp };
        let arrival = frames.handle_frame(now, &head, octets.len());
        if matches!(arrival, FrameArrival::Present { .. } | FrameArrival::Late) {
            self.deadline.handle_frame(now);
        }
        let FrameArrival::Present { deadline } = arrival else { return None };
        Some(picture_of(sample, &words, range, (now, deadline)))
    }

    fn handle_slice(&mut self, sample: &Sample<VideoSlice>) {
        if !sample.is_valid() {
            return;
        }
        let Some((words, range)) = SliceWords::parse(sample.bytes()) else {
            self.counters.received.refused.malformed += 1;
            return;
        };
        let octets = &sample.bytes()[range];
        let lines = usize::from(words.lines) * self.format.line_octets();
        if octets.len() != lines {
            self.counters.received.refused.malformed += 1;
            return;
        }
        if !self.admit(&words.frame, octets) {
            return;
        }
        let now = sample.info().received;
        self.note_time(now, &words.frame);
        let Input::Slices(_, assembler) = &mut self.input else { return };
        let head = SliceHead {
            source: words.frame.source,
            number: words.number,
            frame: words.frame.frame,
            timestamp: words.frame.timestamp,
            field: words.field.field(),
            first_line: words.first_line,
            is_last: words.is_last,
        };
        assembler.handle_slice(now, &head, octets);
    }

    /// Whether a sample is of this stream and undamaged; counts those that are not.
    fn admit(&mut self, words: &FrameWords, octets: &[u8]) -> bool {
        if words.stream != self.config.stream {
            self.counters.received.refused.foreign += 1;
            return false;
        }
        if words.format != FormatWords::from(self.format) {
            self.counters.other_format += 1;
            return false;
        }
        let is_damaged = words.checksum.is_some_and(|checksum| checksum != crc32c::crc32c(octets));
        self.counters.damaged += u64::from(is_damaged);
        !is_damaged
    }

    /// Remembers when a frame was taken, at its first slice.
    fn note_time(&mut self, now: Instant, words: &FrameWords) {
        if self.times.iter().any(|(timestamp, _)| *timestamp == words.timestamp) {
            return;
        }
        if self.times.len() == TIMES_MAX {
            self.times.pop_front();
        }
        self.times.push_back((words.timestamp, words.captured));
        self.deadline.handle_frame(now);
    }

    fn poll_assembled(&mut self) -> Option<TopicPicture> {
        let Input::Slices(_, assembler) = &mut self.input else { return None };
        let picture = assembler.poll_frame(clock::now())?;
        let captured = self.times.iter().find(|(timestamp, _)| *timestamp == picture.timestamp);
        let captured = captured.map(|(_, nanos)| Duration::from_nanos(*nanos));
        Some(TopicPicture { picture, captured })
    }

    /// Takes newer descriptions of the stream.
    fn check_description(&mut self) -> Result<(), TopicError> {
        while let Some(sample) = self.descriptions.take_one() {
            let Ok(description) = sample.data() else { continue };
            if description.stream != self.config.stream {
                continue;
            }
            self.description = description;
            check_format(&self.description, Some(self.format))?;
        }
        Ok(())
    }
}

/// The format of a stream, which must be the expected one.
fn check_format(
    description: &VideoStreamDescription,
    expected: Option<VideoFormat>,
) -> Result<VideoFormat, TopicError> {
    let offered = description.video_format()?;
    match expected {
        Some(expected) if expected != offered => {
            Err(TopicError::OtherFormat { stream: description.stream, offered, expected })
        }
        _ => Ok(offered),
    }
}

fn create_input(
    participant: &DomainParticipant,
    config: &SubscriberConfig,
    description: &VideoStreamDescription,
    format: VideoFormat,
    reliability: TopicReliability,
) -> Result<Input, TopicError> {
    let SubscriberConfig { stream, concealment, start_frames_max, .. } = *config;
    let patience = Duration::from_nanos(description.lifespan_nanos);
    let kept = qos::frames_kept(format, patience)?;
    let assembler = AssemblerConfig { format, concealment, patience, start_frames_max };
    let subscriber =
        participant.create_subscriber(SubscriberQos { partition: qos::partition(stream), ..SubscriberQos::default() });
    let unit = match description.slice_lines {
        0 => SampleUnit::Frame,
        lines => SampleUnit::Slice(lines),
    };
    unit.check(format)?;
    let qos = qos::reader(format, unit, kept, reliability);
    Ok(match unit {
        SampleUnit::Frame => {
            let reader = subscriber.create_reader(&participant.create_topic(qos::FRAMES), qos)?;
            Input::Frames(reader, Box::new(WholeFrames::new(assembler)?))
        }
        SampleUnit::Slice(_) => {
            let reader = subscriber.create_reader(&participant.create_topic(qos::SLICES), qos)?;
            Input::Slices(reader, Box::new(FrameAssembler::new(assembler)?))
        }
    })
}

/// A frame whose octets stay in their sample.
fn picture_of(
    sample: &Sample<VideoFrame>,
    words: &FrameWords,
    range: Range<usize>,
    (now, deadline): (Instant, Instant),
) -> TopicPicture {
    let picture = ReceivedPicture {
        octets: PictureOctets::of_sample(sample.payload(), range),
        timestamp: words.timestamp,
        concealed_lines: LineSet::default(),
        concealed_groups: 0,
        first_arrival: now,
        completed: Some(now),
        deadline,
    };
    TopicPicture { picture, captured: Some(Duration::from_nanos(words.captured)) }
}
