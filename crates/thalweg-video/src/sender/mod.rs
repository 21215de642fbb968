//! The sender of a picture: frames and the time in, batches of datagrams out.
//!
//! Packets are spread evenly over the frame time and leave in batches. A sender that comes late sends somewhat faster
//! until it has caught up, never a burst; if it is late by more than a frame, it drops whole frames.

mod batch;
mod batching;
mod history;
mod pace;
mod resend;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use thalweg_base::time::Instant;

pub use batch::{BatchPlace, PacketBatch, PacketParts};
pub use batching::{BATCH_OCTETS_MAX, BATCH_PACKETS_MAX, Batching};
pub use history::FRAMES_KEPT;
pub use resend::{RESEND_QUEUE_MAX, Resend};

use crate::format::{Field, Scan};
use crate::rfc4175::PacketPlan;
use crate::rtp::{HEADER_OCTETS, PAYLOAD_TYPE_MAX};
use batch::Headers;
use batching::Batches;
use history::{SentFrame, SentFrames};
use pace::{FrameClock, Pacer};
use resend::Resends;

/// What a sender of a picture is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// The payload type, 0 to 127; dynamic ones begin at 96 (default).
    pub payload_type: u8,
    /// The synchronization source; random in production (RFC 3550 §8).
    pub ssrc: u32,
    /// The number of the first packet; random in production.
    pub first_sequence: u32,
    /// The time stamp of the first frame; random in production, or the time of a common clock.
    pub first_timestamp: u32,
    /// When the first frame is sent; with the first one that is given if this is `None` (default).
    pub start: Option<Instant>,
    /// The part of a frame time (or field time) in which packets are sent, in thousandths, 100 to 1000. Default 960: the
    /// active lines of high definition, 1080 of 1125 (ST 2110-21).
    pub active_per_mille: u16,
    /// How many packets leave together.
    pub batching: Batching,
    /// How lost packets are sent again.
    pub resend: Resend,
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig {
            payload_type: 96,
            ssrc: 0,
            first_sequence: 0,
            first_timestamp: 0,
            start: None,
            active_per_mille: 960,
            batching: Batching::Wide,
            resend: Resend::Never,
        }
    }
}

/// What a sender has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Frames of which every packet was given out.
    pub frames_sent: u64,
    /// Frames dropped whole because the sender was late by more than a frame.
    pub frames_dropped: u64,
    /// Frame times without a frame because the source was late.
    pub frames_missed: u64,
    /// Packets given out, without repeated ones.
    pub packets_sent: u64,
    /// Octets of RTP payload given out, without repeated ones.
    pub payload_octets_sent: u64,
    /// Packets given out again.
    pub packets_resent: u64,
    /// Octets of RTP payload given out again, their original numbers included.
    pub payload_octets_resent: u64,
    /// Packets asked for that were sent too long ago, or never.
    pub requests_unknown: u64,
    /// Packets asked for before they were last sent again, or beyond [`RESEND_QUEUE_MAX`].
    pub requests_refused: u64,
}

/// What a sender report counts of one stream (RFC 3550 §6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Packets given out.
    pub packets: u64,
    /// Octets of RTP payload given out.
    pub octets: u64,
}

/// The sender of one picture stream.
#[derive(Debug)]
pub struct VideoSender {
    plan: PacketPlan,
    config: SenderConfig,
    batches: Batches,
    clock: FrameClock,
    pacer: Pacer,
    waiting: Option<Waiting>,
    progress: Option<Progress>,
    frames: SentFrames,
    resends: Resends,
    headers: Headers,
    next_sequence: u32,
    counters: SenderCounters,
    /// What was sent under other numbers, and what was sent again.
    before_ssrc: SentCounts,
    before_repetitions: SentCounts,
}

/// A frame that is not begun.
#[derive(Debug)]
struct Waiting {
    /// Its place in the stream, in frames.
    index: u64,
    octets: Arc<[u8]>,
}

/// How far the newest frame has been given out.
#[derive(Clone, Copy, Debug)]
struct Progress {
    index: u64,
    field: Field,
    /// The next batch of the field.
    batch: usize,
}

impl VideoSender {
    /// A sender of frames as `plan` cuts them.
    ///
    /// # Errors
    ///
    /// A number of the configuration is outside its range.
    pub fn new(plan: PacketPlan, config: SenderConfig) -> Result<VideoSender, SenderError> {
        let payload_types = [Some(config.payload_type), config.resend.payload_type()];
        if let Some(found) = payload_types.into_iter().flatten().find(|found| *found > PAYLOAD_TYPE_MAX) {
            return Err(SenderError::PayloadType(found));
        }
        if !(100..=1000).contains(&config.active_per_mille) {
            return Err(SenderError::Active(config.active_per_mille));
        }
        let batches = Batches::cut(&plan, config.batching)?;
        let pacer = Pacer::new(&plan, &batches, config.active_per_mille);
        Ok(VideoSender {
            clock: FrameClock::new(plan.format().rate(), config.start),
            resends: Resends::new(&plan, config.resend),
            frames: SentFrames::new(plan.frame_packets()),
            headers: Headers::default(),
            waiting: None,
            progress: None,
            next_sequence: config.first_sequence,
            counters: SenderCounters::default(),
            before_ssrc: SentCounts::default(),
            before_repetitions: SentCounts::default(),
            batches,
            pacer,
            plan,
            config,
        })
    }

    /// How frames are cut.
    pub fn plan(&self) -> &PacketPlan {
        &self.plan
    }

    /// Whether some packets of a frame were given out and others are still to come.
    pub fn is_within_frame(&self) -> bool {
        self.progress.is_some()
    }

    /// Cuts frames as `plan` does from the next one on; those that were sent can no longer be asked for.
    ///
    /// # Errors
    ///
    /// The batches of the configuration do not fit the plan.
    ///
    /// # Panics
    ///
    /// Within a frame, or with a plan for another format.
    pub fn set_plan(&mut self, plan: PacketPlan) -> Result<(), SenderError> {
        assert!(!self.is_within_frame() && plan.format() == self.plan.format(), "a frame is cut in one way");
        let batches = Batches::cut(&plan, self.config.batching)?;
        self.pacer = Pacer::new(&plan, &batches, self.config.active_per_mille);
        self.frames = SentFrames::new(plan.frame_packets());
        self.resends.replan(&plan);
        (self.batches, self.plan) = (batches, plan);
        Ok(())
    }

    /// What was configured.
    pub fn config(&self) -> &SenderConfig {
        &self.config
    }

    /// Another source takes this one's number: packets have `ssrc` from now on (RFC 3550 §8.2).
    pub fn set_ssrc(&mut self, ssrc: u32) {
        self.config.ssrc = ssrc;
        self.before_ssrc = self.sent_in_stream();
    }

    /// What was sent under the present number, without what has a stream of its own.
    pub fn sent(&self) -> SentCounts {
        let (all, before) = (self.sent_in_stream(), self.before_ssrc);
        SentCounts { packets: all.packets - before.packets, octets: all.octets - before.octets }
    }

    /// What was sent in the stream under all numbers, with what was sent again in it.
    fn sent_in_stream(&self) -> SentCounts {
        let counters = &self.counters;
        let again = match self.config.resend {
            Resend::Same => SentCounts { packets: counters.packets_resent, octets: counters.payload_octets_resent },
            Resend::Never | Resend::Retransmission { .. } => SentCounts::default(),
        };
        SentCounts {
            packets: counters.packets_sent + again.packets,
            octets: counters.payload_octets_sent + again.octets,
        }
    }

    /// Another source takes the number of the repetitions' own stream: they have `ssrc` from now on (RFC 3550 §8.2). Nothing changes
    /// where they have no stream of their own.
    pub fn set_repetitions_ssrc(&mut self, ssrc: u32) {
        if let Resend::Retransmission { ssrc: current, .. } = &mut self.config.resend {
            *current = ssrc;
            self.before_repetitions =
                SentCounts { packets: self.counters.packets_resent, octets: self.counters.payload_octets_resent };
        }
    }

    /// What was sent again, under the present number where that has a stream of its own.
    pub fn repeated(&self) -> SentCounts {
        let SenderCounters { packets_resent, payload_octets_resent, .. } = self.counters;
        let SentCounts { packets, octets } = self.before_repetitions;
        SentCounts { packets: packets_resent - packets, octets: payload_octets_resent - octets }
    }

    /// What was done so far.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Whether [`VideoSender::handle_frame`] would take a frame: none waits to be begun.
    pub fn wants_frame(&self) -> bool {
        self.waiting.is_none()
    }

    /// Whether everything that was given has been sent or dropped, apart from repetitions.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_none() && self.progress.is_none()
    }

    /// When the first packet of the next frame that is given is due; `None` before the first one.
    pub fn next_frame_start(&self) -> Option<Instant> {
        self.clock.next_start()
    }

    /// The time stamp that belongs to `now`, for sender reports; that of the first frame before the stream begins.
    pub fn timestamp_at(&self, now: Instant) -> u32 {
        self.config.first_timestamp.wrapping_add(self.clock.ticks_at(now))
    }

    /// Takes the next frame: its lines from top to bottom. It is not copied; keep the memory alone until this sender
    /// lets go of it, which is when it has sent [`FRAMES_KEPT`] later ones.
    ///
    /// Returns the frame's time stamp. A source that comes late by more than a frame continues at the next whole frame
    /// time; the times between stay empty.
    ///
    /// # Errors
    ///
    /// A frame waits already, or this one has the wrong size.
    pub fn handle_frame(&mut self, now: Instant, octets: Arc<[u8]>) -> Result<u32, FrameRefusal> {
        let expected = self.plan.format().frame_octets();
        if octets.len() != expected {
            return Err(FrameRefusal::Size { found: octets.len(), expected });
        }
        if self.waiting.is_some() {
            return Err(FrameRefusal::Full);
        }
        let (index, missed) = self.clock.take_index(now);
        self.counters.frames_missed += missed;
        self.waiting = Some(Waiting { index, octets });
        Ok(self.timestamp(index, Field::First))
    }

    /// Takes the numbers of packets that a receiver asks for again (RFC 4585 §6.2.1), in a request that came at `arrived`; they are
    /// sent again within the limit of [`Resend`] if their frames are kept. A sender that stood still finds several requests for a
    /// packet: what it has sent again since they came is the answer to them all.
    pub fn handle_nack(&mut self, arrived: Instant, sequences: impl IntoIterator<Item = u16>) {
        // A NACK has 16 bits: the newest packet that ends in them is meant.
        let newest = self.next_sequence.wrapping_sub(1);
        for sequence in sequences {
            let sequence = newest.wrapping_sub(u32::from((newest as u16).wrapping_sub(sequence)));
            self.resends.push(arrived, sequence, &mut self.frames, &mut self.counters);
        }
    }

    /// Gives out a batch that is due; call again until `None`. A frame that is too late is dropped here, so that
    /// [`VideoSender::wants_frame`] may be true afterwards.
    pub fn poll_batch(&mut self, now: Instant) -> Option<PacketBatch<'_>> {
        self.begin_frame(now);
        if let Some(due) = self.resends.due(&self.frames, &mut self.counters)
            && due <= now
        {
            return Some(self.create_resends(now));
        }
        match self.stream_due() {
            Some(due) if due <= now => Some(self.create_batch(now)),
            _ => None,
        }
    }

    /// When [`VideoSender::poll_batch`] gives the next batch; [`Instant::NEVER`] without anything to send.
    pub fn poll_timeout(&mut self) -> Instant {
        let waiting = self.waiting.as_ref().filter(|_| self.progress.is_none());
        let begins = waiting.map(|waiting| self.clock.start(waiting.index));
        let resends = self.resends.due(&self.frames, &mut self.counters);
        [begins, self.stream_due(), resends].into_iter().flatten().min().unwrap_or(Instant::NEVER)
    }

    /// Begins the frame that waits when its time has come and the one before is sent; drops it when it is too late.
    fn begin_frame(&mut self, now: Instant) {
        if self.progress.is_some() {
            return;
        }
        let Some(Waiting { index, octets }) = self.waiting.take_if(|waiting| self.clock.start(waiting.index) <= now)
        else {
            return;
        };
        if now > self.clock.start(index + 1) {
            self.counters.frames_dropped += 1;
            return;
        }
        let timestamps = [Field::First, Field::Second].map(|field| self.timestamp(index, field));
        self.frames.push(SentFrame::new(octets, self.next_sequence, timestamps));
        self.progress = Some(Progress { index, field: Field::First, batch: 0 });
    }

    fn timestamp(&self, index: u64, field: Field) -> u32 {
        let format = self.plan.format();
        // Both segments of a segmented frame show one moment.
        let second = u64::from(field == Field::Second && format.scan() == Scan::Interlaced);
        // The clock wraps: the lower 32 bits count.
        self.config.first_timestamp.wrapping_add(format.rate().ticks_of_halves(2 * index + second) as u32)
    }

    /// When the next batch of the newest frame is due.
    fn stream_due(&self) -> Option<Instant> {
        let Progress { index, field, batch } = self.progress?;
        let start = self.clock.field_start(index, field);
        Some(self.pacer.due(start, self.batches.leaves_with(batch)))
    }

    fn create_batch(&mut self, now: Instant) -> PacketBatch<'_> {
        let progress = self.progress.as_mut().expect("a batch is due");
        let Range { start: first, end } = self.batches.packets(progress.batch);
        let (first, end, field_packets) = (first as usize, end as usize, self.plan.field_packets());
        let field = progress.field;
        let packet = u32::try_from(first + usize::from(field.bit()) * field_packets).expect("at most PACKETS_MAX");
        let place = BatchPlace { frame: progress.index, packet };
        progress.batch += 1;
        if end == field_packets {
            let has_second = field == Field::First && self.plan.format().scan() != Scan::Progressive;
            self.progress = has_second.then_some(Progress { index: progress.index, field: Field::Second, batch: 0 });
            self.counters.frames_sent += u64::from(self.progress.is_none());
        }
        let count = u32::try_from(end - first).expect("a batch is small");
        self.pacer.record(now, count);
        self.next_sequence = self.next_sequence.wrapping_add(count);
        self.counters.packets_sent += u64::from(count);
        let frame = self.frames.newest_mut();
        frame.packets_sent += count;
        self.headers.clear();
        for packet in first..end {
            self.headers.push(&self.plan, &self.config, frame, (field, packet));
        }
        let payload_octets = self.headers.payload_octets();
        self.counters.payload_octets_sent += payload_octets;
        self.resends.note_stream(payload_octets + u64::from(count) * HEADER_OCTETS as u64);
        self.headers.batch(&frame.octets, Some(place))
    }

    fn create_resends(&mut self, now: Instant) -> PacketBatch<'_> {
        self.headers.clear();
        let index = self.resends.take(now, &mut self.frames, &self.plan, |frame, place, resend_sequence| {
            self.headers.push_again(&self.plan, &self.config, frame, place, resend_sequence);
        });
        self.counters.packets_resent += self.headers.count();
        self.counters.payload_octets_resent += self.headers.payload_octets();
        self.headers.batch(&self.frames.get(index).octets, None)
    }
}

/// Why a sender cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderError {
    /// A payload type has more than 7 bits.
    PayloadType(u8),
    /// The active part of a frame time is outside its range.
    Active(u16),
    /// The number of packets of a batch is outside its range.
    Batch(u8),
}

impl fmt::Display for SenderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SenderError::PayloadType(found) => {
                write!(formatter, "payload type {found} is above {PAYLOAD_TYPE_MAX}; give one from 96 to 127")
            }
            SenderError::Active(found) => {
                write!(formatter, "an active part of {found} thousandths of a frame is not between 100 and 1000")
            }
            SenderError::Batch(found) => {
                write!(formatter, "a batch of {found} packets is not between 1 and {BATCH_PACKETS_MAX}")
            }
        }
    }
}

impl std::error::Error for SenderError {}

/// Why a frame is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRefusal {
    /// A frame waits already.
    Full,
    /// It has the wrong size.
    Size {
        /// Octets of the frame.
        found: usize,
        /// Octets of the format.
        expected: usize,
    },
}

impl fmt::Display for FrameRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameRefusal::Full => formatter.write_str("a frame waits to be sent already"),
            FrameRefusal::Size { found, expected } => {
                write!(formatter, "a frame of {found} octets does not have the {expected} octets of the format")
            }
        }
    }
}

impl std::error::Error for FrameRefusal {}
