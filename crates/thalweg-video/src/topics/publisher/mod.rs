//! The sending end of a stream of topics.

mod config;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use thalweg::counters::WriterCounters;
use thalweg::explain::WriterExplanation;
use thalweg::types::{KeyHash, Timestamp};
use thalweg::{
    DataWriter, DomainParticipant, FlowController, Payload, PublisherQos, TopicType, WriterOptions, cdr, clock,
};
use thalweg_base::payload::PayloadPool;
use thalweg_transport::entropy;

use self::payload::{CHUNK_OCTETS, fill, frame_line};
use super::deadline::DeadlineMeter;
use super::qos::{self, Checksum, SampleUnit};
use super::wire::{
    FRAME_CHECKSUM_AT, FRAME_HEAD_BYTES, FrameWords, SLICE_CHECKSUM_AT, SLICE_HEAD_BYTES, SliceField, SliceWords,
};
use super::{
    FrameStatistics, SampleStatistics, StatisticsRole, TopicError, VideoFrame, VideoSlice, VideoStreamDescription,
    VideoStreamStatistics, description,
};
use crate::format::{Field, Scan};
pub use config::{FrameTime, Published, PublisherConfig, PublisherCounters};

/// Buffers of frames beside those of the history: one that is on its way though newer ones took its place, and one that fills.
const FRAMES_SPARE: u32 = 2;

/// Memory of a frame that is written without a copy: fill it and give it to [`VideoPublisher::publish`]. It is lost when
/// it is dropped.
#[derive(Debug)]
pub struct FrameLoan {
    buffer: Arc<Vec<u8>>,
}

impl FrameLoan {
    /// The octets of the frame, of unspecified content at first.
    pub fn octets_mut(&mut self) -> &mut [u8] {
        let buffer = Arc::get_mut(&mut self.buffer).expect("a loan is alone until it is published");
        &mut buffer[FRAME_HEAD_BYTES..]
    }
}

/// Writes a stream of pictures to topics.
///
/// [`VideoPublisher::write_frame`] takes whole frames in either unit. [`VideoPublisher::lend_frame`] saves the copy of a
/// whole frame; [`VideoPublisher::write_slice`] sends lines before the rest of their frame is there.
#[derive(Debug)]
pub struct VideoPublisher {
    config: PublisherConfig,
    source: u32,
    output: Output,
    /// Behind the writers, which are dropped first.
    _controller: Option<Controller>,
    descriptions: DataWriter<VideoStreamDescription>,
    statistics: DataWriter<VideoStreamStatistics>,
    pool: PayloadPool,
    /// The head of a lent frame; keeps its memory.
    head: Vec<u8>,
    instance: KeyHash,
    /// Samples on their way at most when a frame begins.
    held_max: usize,
    next: Next,
    deadline: DeadlineMeter,
    counters: PublisherCounters,
}

/// What is written next.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    /// The number of the frame, or of the one that slices are written of.
    frame: u64,
    /// The number of the slice.
    slice: u64,
    /// The field and line that a slice is due for, within a frame.
    due: Option<(Field, u16)>,
}

#[derive(Debug)]
enum Output {
    Frames(DataWriter<VideoFrame>),
    Slices(DataWriter<VideoSlice>, u16),
}

/// A flow controller that goes with its publisher.
#[derive(Debug)]
struct Controller(FlowController);

impl Drop for Controller {
    fn drop(&mut self) {
        // It is refused only while writers use it, and they are gone; the participant may be gone as well.
        let _ = self.0.delete();
    }
}

impl VideoPublisher {
    /// Announces a stream to the domain of `participant`.
    ///
    /// # Errors
    /// The format does not fit the unit, a text is too long, or the middleware refuses.
    pub fn new(participant: &DomainParticipant, config: PublisherConfig) -> Result<VideoPublisher, TopicError> {
        config.unit.check(config.format)?;
        let kept = qos::frames_kept(config.format, config.lifespan)?;
        let frame_bytes = (config.format.frame_octets() + FRAME_HEAD_BYTES).next_power_of_two();
        let buffered = (kept + FRAMES_SPARE) as usize * frame_bytes;
        let source = u32::from_ne_bytes(entropy::bytes().map_err(TopicError::Entropy)?);
        let description = description::describe(&config, source)?;
        let name = format!("video {} {source:08x}", config.stream);
        let controller = match config.spread.settings(config.format) {
            Some(settings) => Some(Controller(participant.create_flow_controller(&name, settings)?)),
            None => None,
        };
        let output = create_output(participant, &config, (kept, buffered), controller.as_ref().map(|_| name.as_str()))?;
        let topic = participant.create_topic(qos::DESCRIPTIONS);
        let descriptions = participant.create_writer(&topic, qos::kept_writer())?;
        let topic = participant.create_topic(qos::STATISTICS);
        let statistics = participant.create_writer(&topic, qos::kept_writer())?;
        descriptions.write(&description)?;
        Ok(VideoPublisher {
            source,
            output,
            _controller: controller,
            descriptions,
            statistics,
            pool: PayloadPool::new(buffered),
            head: Vec::with_capacity(FRAME_HEAD_BYTES),
            instance: instance_of(&VideoFrame { stream: config.stream, ..VideoFrame::default() }),
            held_max: (kept as usize - 1) * config.unit.samples(config.format) as usize - 1,
            next: Next::default(),
            deadline: DeadlineMeter::new(config.format.frame_time()),
            counters: PublisherCounters::default(),
            config,
        })
    }

    /// What was configured.
    pub fn config(&self) -> &PublisherConfig {
        &self.config
    }

    /// The number that its samples bear, drawn at the start.
    pub fn source(&self) -> u32 {
        self.source
    }

    /// What was written so far.
    pub fn counters(&self) -> PublisherCounters {
        PublisherCounters { deadlines_missed: self.deadline.missed(clock::now()), ..self.counters }
    }

    /// What the middleware's writer counts: datagrams, repairs, frames that were overwritten before every subscriber had them.
    pub fn writer_counters(&self) -> WriterCounters {
        match &self.output {
            Output::Frames(writer) => writer.counters(),
            Output::Slices(writer, _) => writer.counters(),
        }
    }

    /// How the middleware's writer sends, and the state of the paths to its subscribers.
    pub fn explain(&self) -> WriterExplanation {
        match &self.output {
            Output::Frames(writer) => writer.explain(),
            Output::Slices(writer, _) => writer.explain(),
        }
    }

    /// Whether so many frames are on their way that another one would only delay them: all that the history holds but one.
    /// [`VideoPublisher::write_frame`] passes a frame over then. A link that is too slow so carries fewer frames, and
    /// not parts of all.
    /// Asks for acknowledgements before it says so, and waits for them for an eighth of a frame time at most.
    pub fn is_behind(&self) -> bool {
        let patience = self.config.format.frame_time() / 8;
        match &self.output {
            Output::Frames(writer) => is_behind(writer, self.held_max, patience),
            Output::Slices(writer, _) => is_behind(writer, self.held_max, patience),
        }
    }

    /// Waits until so many subscribers are there.
    ///
    /// # Errors
    /// There are fewer after `timeout`.
    pub fn wait_for_subscribers(&self, count: usize, timeout: Duration) -> Result<(), TopicError> {
        match &self.output {
            Output::Frames(writer) => writer.wait_for_matched(count, timeout)?,
            Output::Slices(writer, _) => writer.wait_for_matched(count, timeout)?,
        }
        Ok(())
    }

    /// Waits until every RELIABLE subscriber has everything that was written.
    ///
    /// # Errors
    /// Some of it is owed after `timeout`.
    pub fn wait_for_acknowledgments(&self, timeout: Duration) -> Result<(), TopicError> {
        match &self.output {
            Output::Frames(writer) => writer.wait_for_acknowledgments(timeout)?,
            Output::Slices(writer, _) => writer.wait_for_acknowledgments(timeout)?,
        }
        Ok(())
    }

    /// Writes a frame, as one sample or in slices. `octets` are copied once.
    ///
    /// # Errors
    /// They are not a frame, or the middleware refuses.
    pub fn write_frame(&mut self, time: FrameTime, octets: &[u8]) -> Result<Published, TopicError> {
        let format = self.config.format;
        if octets.len() != format.frame_octets() {
            return Err(TopicError::Octets { got: octets.len(), expected: format.frame_octets() });
        }
        if self.is_behind() {
            return Ok(self.pass_over());
        }
        match self.output {
            Output::Frames(_) => {
                let payload = self.frame_payload(time, octets);
                self.send_frame(time, &payload)
            }
            Output::Slices(_, lines) => {
                let fields: &[Field] = match format.scan() {
                    Scan::Progressive => &[Field::First],
                    Scan::Interlaced | Scan::SegmentedFrame => &[Field::First, Field::Second],
                };
                self.abandon_frame();
                for field in fields {
                    for first in (0..format.field_height()).step_by(lines.into()) {
                        self.send_slice(time, *field, first, |line| frame_line(format, octets, *field, line))?;
                    }
                }
                Ok(Published::Frame(self.next.frame - 1))
            }
        }
    }

    /// Lends the memory of the next frame.
    ///
    /// # Errors
    /// The publisher writes slices.
    pub fn lend_frame(&mut self) -> Result<FrameLoan, TopicError> {
        match self.output {
            Output::Frames(_) => {
                let buffer = self.pool.take_sized(FRAME_HEAD_BYTES + self.config.format.frame_octets());
                Ok(FrameLoan { buffer })
            }
            Output::Slices(..) => Err(TopicError::OtherUnit),
        }
    }

    /// Writes a lent frame. Nothing is copied.
    ///
    /// # Errors
    /// The middleware refuses, or the loan is of a publisher with another format.
    pub fn publish(&mut self, time: FrameTime, mut loan: FrameLoan) -> Result<Published, TopicError> {
        let octets = loan.buffer.len() - FRAME_HEAD_BYTES;
        let expected = self.config.format.frame_octets();
        if octets != expected {
            return Err(TopicError::Octets { got: octets, expected });
        }
        if self.is_behind() {
            self.pool.remember(&loan.buffer);
            return Ok(self.pass_over());
        }
        let checksum = self.sums().then(|| crc32c::crc32c(loan.octets_mut()));
        self.head.clear();
        self.words(time, checksum).append_head(octets, &mut self.head);
        let buffer = Arc::get_mut(&mut loan.buffer).expect("a loan is alone until it is published");
        buffer[..FRAME_HEAD_BYTES].copy_from_slice(&self.head);
        let payload = Payload::new(Arc::clone(&loan.buffer));
        self.pool.remember(&loan.buffer);
        drop(loan);
        self.send_frame(time, &payload)
    }

    /// Writes the next slice of a frame: whole lines from `first_line` of `field`. The slice that begins with the first
    /// line begins a frame; slices follow each other, each of as many lines as the unit has, fewer only at the end of a
    /// field. Slices are never passed over: [`VideoPublisher::is_behind`] tells before a frame whether it would be late.
    ///
    /// # Errors
    /// The slice is not the one that is due, has other lines, or the middleware refuses.
    pub fn write_slice(
        &mut self,
        time: FrameTime,
        field: Field,
        first_line: u16,
        octets: &[u8],
    ) -> Result<(), TopicError> {
        let Output::Slices(_, lines) = self.output else { return Err(TopicError::OtherUnit) };
        let format = self.config.format;
        if (field, first_line) == (Field::First, 0) {
            self.abandon_frame();
        }
        let (due_field, due_line) = self.next.due.unwrap_or((Field::First, 0));
        if (field, first_line) != (due_field, due_line) {
            return Err(TopicError::SliceOrder { line: first_line, expected: due_line });
        }
        let expected = usize::from(lines.min(format.field_height() - first_line)) * format.line_octets();
        if octets.len() != expected {
            return Err(TopicError::Octets { got: octets.len(), expected });
        }
        self.send_slice(time, field, first_line, |line| {
            let start = usize::from(line - first_line) * format.line_octets();
            &octets[start..start + format.line_octets()]
        })
    }

    /// Publishes what it has counted; `seconds` and `cpu_seconds` as in [`VideoStreamStatistics`].
    ///
    /// # Errors
    /// The middleware refuses.
    pub fn publish_statistics(&self, seconds: f64, cpu_seconds: f64) -> Result<(), TopicError> {
        let PublisherCounters { frames_sent, frames_passed_over, samples_sent, deadlines_missed, .. } = self.counters();
        self.statistics.write(&VideoStreamStatistics {
            stream: self.config.stream,
            reporter: self.source,
            role: StatisticsRole::Sender,
            seconds,
            cpu_seconds,
            deadlines_missed,
            frames: FrameStatistics {
                expected: frames_sent + frames_passed_over,
                complete: frames_sent,
                discarded: frames_passed_over,
                ..FrameStatistics::default()
            },
            samples: SampleStatistics { expected: samples_sent, received: samples_sent, ..SampleStatistics::default() },
        })?;
        Ok(())
    }

    /// Describes the stream anew, with another session description: it is sent by RTP from now on, or no longer.
    ///
    /// # Errors
    /// The text is too long, or the middleware refuses.
    pub fn set_session_description(&mut self, sdp: Option<String>) -> Result<(), TopicError> {
        let config = PublisherConfig { sdp, ..self.config.clone() };
        self.descriptions.write(&description::describe(&config, self.source)?)?;
        self.config = config;
        Ok(())
    }
}

// Samples.
impl VideoPublisher {
    fn sums(&self) -> bool {
        self.config.checksum == Checksum::Crc32c
    }

    fn words(&self, time: FrameTime, checksum: Option<u32>) -> FrameWords {
        FrameWords {
            stream: self.config.stream,
            source: self.source,
            frame: self.next.frame,
            captured: time.nanos(),
            timestamp: time.timestamp,
            checksum,
            format: self.config.format.into(),
        }
    }

    fn frame_payload(&mut self, time: FrameTime, octets: &[u8]) -> Payload {
        let words = self.words(time, self.sums().then_some(0));
        let bytes = FRAME_HEAD_BYTES + octets.len();
        let head = |buffer: &mut Vec<u8>| words.append_head(octets.len(), buffer);
        let checksum_at = self.sums().then_some(FRAME_CHECKSUM_AT);
        fill(&mut self.pool, bytes, checksum_at, head, octets.chunks(CHUNK_OCTETS))
    }

    fn send_frame(&mut self, time: FrameTime, payload: &Payload) -> Result<Published, TopicError> {
        let Output::Frames(writer) = &self.output else { return Err(TopicError::OtherUnit) };
        self.deadline.handle_frame(clock::now());
        writer.write_payload(payload, Some(self.instance), Some(Timestamp::from_unix(time.captured)))?;
        self.counters.samples_sent += 1;
        self.counters.octets_sent += self.config.format.frame_octets() as u64;
        Ok(Published::Frame(self.end_frame()))
    }

    /// Sends the lines of a slice from `first_line` of a field, which `line` gives.
    fn send_slice<'a>(
        &mut self,
        time: FrameTime,
        field: Field,
        first_line: u16,
        line: impl Fn(u16) -> &'a [u8],
    ) -> Result<(), TopicError> {
        let Output::Slices(_, lines) = self.output else { return Err(TopicError::OtherUnit) };
        let format = self.config.format;
        let end = (first_line + lines).min(format.field_height());
        let words = SliceWords {
            frame: self.words(time, self.sums().then_some(0)),
            number: self.next.slice,
            field: match (format.scan(), field) {
                (Scan::Progressive, _) => SliceField::Frame,
                (_, Field::First) => SliceField::First,
                (_, Field::Second) => SliceField::Second,
            },
            is_last: end == format.field_height(),
            first_line,
            lines: end - first_line,
        };
        let octets = usize::from(words.lines) * format.line_octets();
        let checksum_at = self.sums().then_some(SLICE_CHECKSUM_AT);
        let head = |buffer: &mut Vec<u8>| words.append_head(octets, buffer);
        let lines = (first_line..end).map(line);
        let payload = fill(&mut self.pool, SLICE_HEAD_BYTES + octets, checksum_at, head, lines);
        if (field, first_line) == (Field::First, 0) {
            self.deadline.handle_frame(clock::now());
        }
        let Output::Slices(writer, _) = &self.output else { return Err(TopicError::OtherUnit) };
        writer.write_payload(&payload, Some(self.instance), Some(Timestamp::from_unix(time.captured)))?;
        self.next.slice += 1;
        self.counters.samples_sent += 1;
        self.counters.octets_sent += octets as u64;
        self.next.due = Some(match (words.is_last, field) {
            (false, _) => (field, end),
            (true, Field::First) => (Field::Second, 0),
            (true, Field::Second) => (Field::First, 0),
        });
        if words.is_last && (format.scan() == Scan::Progressive || field == Field::Second) {
            self.end_frame();
        }
        Ok(())
    }

    fn pass_over(&mut self) -> Published {
        self.counters.frames_passed_over += 1;
        Published::PassedOver
    }

    /// A frame that is not complete ends: its number is taken.
    fn abandon_frame(&mut self) {
        if self.next.due.take().is_some() {
            self.next.frame += 1;
            self.counters.frames_broken += 1;
        }
    }

    fn end_frame(&mut self) -> u64 {
        self.next.due = None;
        self.counters.frames_sent += 1;
        self.next.frame += 1;
        self.next.frame - 1
    }
}

fn create_output(
    participant: &DomainParticipant,
    config: &PublisherConfig,
    (kept, buffered): (u32, usize),
    controller: Option<&str>,
) -> Result<Output, TopicError> {
    let PublisherConfig { stream, format, unit, reliability, .. } = config;
    let publisher =
        participant.create_publisher(PublisherQos { partition: qos::partition(*stream), ..PublisherQos::default() });
    let qos = qos::writer(*format, *unit, kept, *reliability, controller);
    let default = WriterOptions::default();
    let history_bytes_max = default.history_bytes_max.max(buffered);
    let options = WriterOptions { history_bytes_max, ..default };
    Ok(match unit {
        SampleUnit::Frame => {
            Output::Frames(publisher.create_writer_with(&participant.create_topic(qos::FRAMES), qos, options)?)
        }
        SampleUnit::Slice(lines) => {
            let writer = publisher.create_writer_with(&participant.create_topic(qos::SLICES), qos, options)?;
            Output::Slices(writer, *lines)
        }
    })
}

/// The instance of a sample; all types with the one key member have the same.
fn instance_of<T: TopicType>(sample: &T) -> KeyHash {
    KeyHash(cdr::key_hash(sample).expect("a number is always a key"))
}

/// Whether a writer holds more samples than `held_max` although readers were asked what they have.
fn is_behind<T>(writer: &DataWriter<T>, held_max: usize, patience: Duration) -> bool {
    if writer.held() <= held_max {
        return false;
    }
    // Acknowledgements come with the next samples otherwise. A timeout means that some are owed, as the history tells.
    let _ = writer.wait_for_acknowledgments(patience);
    writer.held() > held_max
}
