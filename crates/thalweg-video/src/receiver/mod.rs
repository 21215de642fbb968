//! The receiver of a picture: datagrams and the time in, frames and requests for missing packets out.
//!
//! A packet is placed by its time stamp, field, line and offset, in any order and from any path; its number serves to
//! count, to find what is missing and to ask for it. Frames are presented in their order at fixed times after the
//! earliest arrival, complete or concealed, and begin with a complete one, or where ten were not
//! ([`ReceiverConfig::start_frames_max`]) with the next.

mod arrival;
mod assembler;
mod bits;
mod conceal;
mod config;
mod counters;
mod coverage;
mod extended;
mod frame_piece;
mod lines;
mod numbering;
mod numbers;
mod octets;
mod playout;
mod presentation;
mod repair;
mod restart;
mod sample_numbers;
mod sequence;
mod slots;
mod succession;
mod whole;

#[cfg(test)]
mod tests;

use std::time::Duration;

use thalweg_base::time::Instant;

pub use arrival::{NetworkPath, PacketArrival, PicturePlace};
pub use assembler::{AssemblerConfig, FRAMES_FILLING_MAX, FrameAssembler, SliceArrival, SliceHead};
pub use conceal::Concealment;
pub use config::{Paths, ReceiverConfig, ReceiverError, Repair};
pub use counters::{FrameCounters, PacketCounters, PathCounters, ReceiverCounters, RefusalCounters, RequestCounters};
pub use lines::LineSet;
pub use numbering::LineDialect;
pub(crate) use numbering::LineNumbering;
pub use octets::PictureOctets;
pub use presentation::ReceivedPicture;
pub(crate) use repair::Repairs;
pub use repair::{NACK_ITEMS_MAX, NackItem};
pub(crate) use restart::RestartWatch;
pub(crate) use sequence::{PacketTotals, Seen, SequenceWindow};
pub use whole::{FrameArrival, FrameHead, WholeFrames};

use crate::format::Field;
use crate::origin::Source;
use crate::rfc4175::{PIECES_MAX, VideoPayload, pixels_of};
use crate::rtp::{RtpHeader, RtpPacket};
use crate::waiting::WaitingPackets;
use frame_piece::FramePiece;
use numbering::LinePlace;
use numbers::Numbers;
use playout::Playout;
use presentation::Presentation;
use slots::{NumberOrder, Slot, SlotPlace, Slots};

/// Packets of a frame after which its first arrival may make frames due earlier: one alone may be damaged or forged.
const CREDIBLE_PACKETS: u32 = 8;
/// How far a repetition may be beyond the newest packet, in its frame: the last packets of a stream may all be lost but for that.
const BEYOND_NEWEST_MAX: u16 = 64;

/// The receiver of one picture stream.
#[derive(Debug)]
pub struct VideoReceiver {
    config: ReceiverConfig,
    source: Source,
    /// What may be the sender's under another number.
    waiting: WaitingPackets,
    numbers: Numbers,
    numbering: LineNumbering,
    slots: Slots,
    playout: Playout,
    repairs: Option<Repairs>,
    presentation: Presentation,
    is_finished: bool,
    counters: ReceiverCounters,
    /// Numbers expected and received when the source was taken.
    before_source: (u64, u64),
}

/// Pieces, or why there are none.
enum Located {
    Pieces([FramePiece; PIECES_MAX]),
    Unknown,
    Outside,
}

impl VideoReceiver {
    /// A receiver of one stream.
    ///
    /// # Errors
    ///
    /// A number of the configuration is outside its range.
    pub fn new(config: ReceiverConfig) -> Result<VideoReceiver, ReceiverError> {
        config.check()?;
        let repair =
            if config.paths == Paths::Two { config.repair.on_two_paths(config.playout) } else { config.repair };
        let repairs = match repair {
            Repair::Off => None,
            Repair::Nack { reorder_window, .. } => Some(Repairs::new(reorder_window, config.playout)),
        };
        Ok(VideoReceiver {
            source: Source::new(config.ssrc),
            waiting: WaitingPackets::default(),
            numbers: Numbers::new(&config),
            numbering: LineNumbering::new(),
            slots: Slots::new(config.format, config.slots()),
            playout: Playout::new(config.playout),
            repairs,
            presentation: Presentation::new(&config),
            is_finished: false,
            counters: ReceiverCounters::default(),
            before_source: (0, 0),
            config,
        })
    }

    /// What was configured.
    pub fn config(&self) -> &ReceiverConfig {
        &self.config
    }

    /// The source that is listened to.
    pub fn ssrc(&self) -> Option<u32> {
        self.source.current()
    }

    /// The highest number so far, counted on in 32 bits as receiver reports have it (RFC 3550 §6.4.1).
    pub fn highest_sequence(&self) -> Option<u32> {
        self.numbers.window.newest().map(|number| number as u32)
    }

    /// What became of packets and frames.
    pub fn counters(&self) -> ReceiverCounters {
        let mut counters = self.counters;
        self.numbers.total(&mut counters.packets);
        if let Some(repairs) = &self.repairs {
            let made = repairs.counters;
            let repair = &mut counters.repair;
            (repair.lists, repair.requests, repair.given_up) = (made.lists, made.requests, made.given_up);
        }
        counters
    }

    /// Numbers of the current source that were expected, and those of them that came in its stream, sent again or not (RFC
    /// 3550 §6.4.1, A.3).
    pub fn source_packets(&self) -> (u64, u64) {
        let (expected, received) = self.expected_and_received();
        let before = self.before_source;
        (expected.saturating_sub(before.0), received.saturating_sub(before.1))
    }

    fn expected_and_received(&self) -> (u64, u64) {
        let packets = self.counters().packets;
        let has_own_stream = self.config.repair.retransmission().is_some();
        let again = if has_own_stream { 0 } else { packets.recovered };
        (packets.expected, packets.received + again)
    }

    /// The counts of one path; `None` where there is only one.
    pub fn path_counters(&self, path: NetworkPath) -> Option<PathCounters> {
        self.numbers.path_counters(path)
    }

    /// By how many millionths the sender's frame time is longer than it should be by our clock; negative for a shorter
    /// one, `None` in the first 5 s.
    pub fn drift_ppm(&self) -> Option<f64> {
        self.playout.drift_ppm()
    }

    /// After how many seconds the drift amounts to one frame: a display with a clock of its own repeats or drops one
    /// then. Infinite without drift, `None` in the first 5 s.
    pub fn seconds_per_slipped_frame(&self) -> Option<f64> {
        let drift = self.drift_ppm()?.abs() / 1e6;
        Some(self.config.format.frame_time().as_secs_f64() / drift)
    }

    /// The round trip that requests reckon with.
    pub fn round_trip(&self) -> Option<Duration> {
        self.repairs.as_ref().and_then(Repairs::round_trip)
    }

    /// Takes a datagram of the stream, or of its repetitions; RTCP goes elsewhere ([`crate::rtp::is_rtcp`]).
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> PacketArrival {
        self.handle_datagram_from(now, NetworkPath::First, datagram)
    }

    /// Takes a datagram that came on `path`.
    pub fn handle_datagram_from(&mut self, now: Instant, path: NetworkPath, datagram: &[u8]) -> PacketArrival {
        let Ok(packet) = RtpPacket::parse(datagram) else { return self.refuse_malformed() };
        let payload_type = Some(packet.header.payload_type);
        if payload_type == self.config.repair.retransmission() {
            return self.handle_repetition(now, &packet);
        }
        if self.config.payload_type.is_some() && self.config.payload_type != payload_type {
            self.counters.refused.foreign += 1;
            return PacketArrival::Refused;
        }
        let Ok(payload) = VideoPayload::parse(packet.payload) else { return self.refuse_malformed() };
        if !self.admit((now, path), &packet.header, datagram) {
            return PacketArrival::Refused;
        }
        let located = self.locate(&payload);
        if matches!(located, Located::Outside) {
            self.counters.refused.outside += 1;
            return PacketArrival::Refused;
        }
        let seen = self.count(now, path, &packet.header, payload.extended_sequence);
        self.place(now, &packet.header, &payload, &located, seen)
    }

    /// Takes a round trip that reports measured; requests reckon with it.
    pub fn handle_round_trip(&mut self, round_trip: Duration) {
        if let Some(repairs) = &mut self.repairs {
            repairs.handle_round_trip(round_trip);
        }
    }

    /// Ends the stream: what is missing is lost, and every frame is due.
    pub fn finish(&mut self) {
        self.numbers.finish();
        self.is_finished = true;
    }

    /// Ends receiving while the stream goes on. Frames that are complete or whose time has come are given out up to the first other
    /// one; that and those behind it do not count, and what is missing of them stays outstanding.
    pub fn stop(&mut self, now: Instant) {
        let playout = &self.playout;
        let is_due = |slot: &Slot| playout.deadline(slot.timestamp).is_some_and(|deadline| deadline <= now);
        let highest = self.slots.keep_while(|slot| slot.completed.is_some() || is_due(slot));
        let highest = highest.max(self.presentation.highest());
        self.numbers.stop(highest.map_or(0, |highest| highest.saturating_add(1)));
        self.is_finished = true;
    }

    /// Gives out the next frame whose time has come; call again until `None`.
    pub fn poll_frame(&mut self, now: Instant) -> Option<ReceivedPicture> {
        while !self.presentation.has_ready() && self.oldest_deadline().is_some_and(|deadline| deadline <= now) {
            self.close_oldest();
        }
        self.presentation.pop(&mut self.counters.frames)
    }

    /// Gives out missing packets to ask for, at most [`NACK_ITEMS_MAX`] entries; call again until `None`.
    pub fn poll_nack(&mut self, now: Instant) -> Option<&[NackItem]> {
        let playout = &self.playout;
        self.repairs.as_mut()?.poll(now, &mut self.numbers.window, |timestamp| playout.deadline(timestamp))
    }

    /// When [`VideoReceiver::poll_frame`] or [`VideoReceiver::poll_nack`] has something; [`Instant::NEVER`] if nothing
    /// is expected without further datagrams.
    pub fn poll_timeout(&mut self) -> Instant {
        if self.presentation.has_ready() {
            return Instant::ZERO;
        }
        let frame = self.frame_timeout();
        self.repairs.as_mut().map_or(frame, |repairs| repairs.due(&self.numbers.window).min(frame))
    }

    /// When the next frame is due, of those that nothing has hurried; [`Instant::NEVER`] if none has begun.
    pub fn frame_timeout(&self) -> Instant {
        self.oldest_deadline().unwrap_or(Instant::NEVER)
    }
}

// Packets.
impl VideoReceiver {
    fn refuse_malformed(&mut self) -> PacketArrival {
        self.counters.refused.malformed += 1;
        PacketArrival::Refused
    }

    /// Takes a packet that was sent again: its payload begins with the original number (RFC 4588 §4).
    fn handle_repetition(&mut self, now: Instant, packet: &RtpPacket<'_>) -> PacketArrival {
        let original = packet.payload.split_first_chunk();
        let read = original.and_then(|(number, payload)| Some((number, VideoPayload::parse(payload).ok()?)));
        let Some((sequence, payload)) = read else { return self.refuse_malformed() };
        let timestamp = self.slots.extend(packet.header.timestamp);
        let frame = 0..i64::from(self.config.format.rate().frame_ticks());
        let is_of_newest = self.slots.newest().is_some_and(|newest| frame.contains(&(timestamp - newest)));
        let beyond_max = if is_of_newest { BEYOND_NEWEST_MAX } else { 0 };
        let Some(number) = self.numbers.window.number_of_original(u16::from_be_bytes(*sequence), beyond_max) else {
            self.counters.refused.foreign += 1;
            return PacketArrival::Refused;
        };
        let located = self.locate(&payload);
        if matches!(located, Located::Outside) {
            self.counters.refused.outside += 1;
            return PacketArrival::Refused;
        }
        self.counters.repair.repetitions += 1;
        let seen = self.numbers.window.insert_again(number);
        self.counters.repair.needless += u64::from(!matches!(seen, Seen::New(_)));
        if let Some(repairs) = &mut self.repairs {
            repairs.handle_repetition(now, number);
            if let Seen::New(gap) = &seen {
                repairs.handle_gap(now, gap.clone(), timestamp);
            }
        }
        match self.place(now, &packet.header, &payload, &located, (number, seen)) {
            PacketArrival::Placed(_) => PacketArrival::Repaired,
            other => other,
        }
    }

    /// Counts a packet of the stream, and notes what is missing before it.
    fn count(&mut self, now: Instant, path: NetworkPath, header: &RtpHeader, extended: u16) -> (u64, Seen) {
        let timestamp = self.slots.extend(header.timestamp);
        let distance = self.slots.since_newest(now, timestamp);
        let (number, seen) = self.numbers.insert(path, header, extended, distance);
        if let (Seen::New(gap), Some(repairs)) = (&seen, &mut self.repairs) {
            if gap.is_empty() && self.config.repair.retransmission().is_none() {
                self.numbers.window.count_if_asked(number);
            }
            repairs.handle_gap(now, gap.clone(), timestamp);
        }
        (number, seen)
    }

    /// The pieces of a packet within the frame; each is checked before any is placed.
    fn locate(&mut self, payload: &VideoPayload<'_>) -> Located {
        let format = self.config.format;
        let group = format.pixels().group();
        self.numbering.handle_packet(format, payload.pieces().map(|(header, _)| header));
        let mut pieces = [FramePiece::default(); PIECES_MAX];
        for (piece, (header, _)) in pieces.iter_mut().zip(payload.pieces()) {
            let Some(pixels) = pixels_of(&header, format.pixels()) else { return Located::Outside };
            if u32::from(header.offset) + u32::from(pixels) > u32::from(format.width()) {
                return Located::Outside;
            }
            let line = match self.numbering.place(format, &header) {
                LinePlace::Line(line) => line,
                LinePlace::Unknown => return Located::Unknown,
                LinePlace::Outside => return Located::Outside,
            };
            *piece = FramePiece { line, first_group: header.offset / group.pixels, groups: pixels / group.pixels };
        }
        Located::Pieces(pieces)
    }

    fn place(
        &mut self,
        now: Instant,
        header: &RtpHeader,
        payload: &VideoPayload<'_>,
        located: &Located,
        (number, seen): (u64, Seen),
    ) -> PacketArrival {
        if seen == Seen::Duplicate {
            return PacketArrival::Duplicate;
        }
        let is_new = matches!(seen, Seen::New(_));
        let field = payload.pieces().next().map_or(Field::First, |(header, _)| header.field);
        let index = match located {
            Located::Pieces(_) => self.slot_of(now, (header.timestamp, field), (number, is_new)),
            Located::Unknown | Located::Outside => Err(PacketArrival::Unplaced),
        };
        let (pieces, index) = match (located, index) {
            (Located::Pieces(pieces), Ok(index)) => (pieces, index),
            (_, Err(PacketArrival::Late)) => {
                self.counters.packets.late += u64::from(is_new);
                return PacketArrival::Late;
            }
            _ => {
                self.counters.packets.unplaced += u64::from(is_new);
                return PacketArrival::Unplaced;
            }
        };
        let (format, slot) = (self.config.format, self.slots.get_mut(index));
        slot.add(now, payload, &pieces[..payload.piece_count()], format);
        if is_new {
            let (lowest, highest) = slot.numbers.unwrap_or((number, number));
            slot.numbers = Some((lowest.min(number), highest.max(number)));
        }
        if slot.packets == 1 || slot.packets == CREDIBLE_PACKETS || slot.completed == Some(now) {
            let (arrival, timestamp) = (slot.first_arrival, slot.timestamp);
            let is_credible = slot.packets >= CREDIBLE_PACKETS || slot.completed.is_some();
            if is_credible || !self.playout.is_early(arrival, timestamp) {
                self.playout.record(arrival, timestamp);
            }
        }
        let octets_before = slot.octets_before((header.timestamp, field), format) + pieces[0].octets_before(format);
        PacketArrival::Placed(PicturePlace { timestamp: header.timestamp, field, octets_before })
    }

    /// The slot of a frame, opened if it is a new one.
    fn slot_of(
        &mut self,
        now: Instant,
        frame: (u32, Field),
        (number, is_new): (u64, bool),
    ) -> Result<usize, PacketArrival> {
        let is_newest = is_new && self.numbers.window.newest() == Some(number);
        let order = if is_newest { NumberOrder::Newest } else { NumberOrder::Older };
        let mut found = self.slots.find(now, frame, order);
        if found == Ok(SlotPlace::Jump) {
            self.begin_at_another_time();
            found = self.slots.find(now, frame, order);
        }
        let (first, mut place) = match found {
            Ok(SlotPlace::Slot(index)) => return Ok(index),
            Ok(SlotPlace::Late) => return Err(PacketArrival::Late),
            Ok(SlotPlace::Unknown | SlotPlace::Jump) => return Err(PacketArrival::Unplaced),
            Err(new) => new,
        };
        if self.slots.is_full() && !self.slots.drop_doubtful(first) {
            if place == 0 {
                return Err(PacketArrival::Late);
            }
            self.close_oldest();
            place -= 1;
        }
        // A number that is not believed says nothing of how many packets a frame has.
        if is_new {
            self.numbers.note_opening(first, number);
        }
        self.counters.frames.before_start += u64::from(self.slots.take_orphan(first));
        self.slots.open(now, first, place);
        Ok(place)
    }

    /// The sender's clock has jumped: frames and times before it mean nothing any more.
    fn begin_at_another_time(&mut self) {
        self.counters.frames.discarded += self.slots.reset();
        self.playout.reset();
        self.numbers.forget_openings();
        if let Some(repairs) = &mut self.repairs {
            repairs.reset();
        }
        self.presentation.begin_anew();
    }

    fn oldest_deadline(&self) -> Option<Instant> {
        let oldest = self.slots.oldest()?;
        if self.is_finished { Some(Instant::ZERO) } else { self.playout.deadline(oldest.timestamp) }
    }

    /// Takes the oldest frame out of its slot, at its time or because a new one needs the slot.
    fn close_oldest(&mut self) {
        let Some(slot) = self.slots.close_oldest() else { return };
        self.count_absent(&slot);
        let deadline = self.playout.deadline(slot.timestamp).unwrap_or_default();
        self.presentation.push(slot, deadline, &mut self.slots, &mut self.counters.frames);
    }

    /// Counts the frames between the last one and this one of which nothing came.
    fn count_absent(&mut self, slot: &Slot) {
        let Some((timestamp, highest)) = self.presentation.follow(slot) else { return };
        let frame = i64::from(self.config.format.rate().frame_ticks());
        let absent = u64::try_from((slot.timestamp - timestamp + frame / 2) / frame - 1).unwrap_or(0);
        if absent > 0 {
            // Without a number of its own, the newest one of all bounds what is missing before the frame.
            let end = slot.numbers.map(|(lowest, _)| lowest).or(self.numbers.window.newest()).unwrap_or_default();
            let lost = self.numbers.lost_frames(absent, highest.saturating_add(1)..end);
            self.counters.frames.lost += lost;
            self.counters.frames.skipped += absent - lost;
        }
    }
}
