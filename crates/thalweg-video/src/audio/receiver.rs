//! Making blocks of samples of packets.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::config::{AudioReceiverConfig, PictureSync};
use super::counters::{AudioBlock, AudioCounters, AudioError};
use super::format::SAMPLE_RATE_HZ;
use super::numbers::Numbers;
use super::repair::{SoundPlace, SoundRepairs};
use super::samples;
use super::timeline::{Picture, Timeline};
use super::track::Track;
use crate::jitter::JitterMeter;
use crate::origin::{Origin, Source};
use crate::receiver::{NackItem, NetworkPath, RequestCounters, Seen};
use crate::rtcp::{MediaClock, ReceivedStream, WallClock};
use crate::rtp::{RtpHeader, RtpPacket};
use crate::waiting::WaitingPackets;

/// The longest delay: pictures wait no longer, eight frame times of a second. A track of 8 channels then takes 49 MB.
const DELAY_MAX: Duration = Duration::from_secs(8);

/// Silence of the sender after which playing stops.
const SILENCE: Duration = Duration::from_secs(1);

/// Packets that may be lost where a sender changes its number.
const CONTINUED_PACKETS_MAX: u16 = 1000;

/// Octets of packets that may be the sender's under another number: 50 ms and more of eight channels in packets of a millisecond.
const WAITING_OCTETS_MAX: usize = 1 << 17;

/// A block that could not be played for so long is passed over.
const LATE_MAX: Duration = Duration::from_millis(100);

/// The state machine of one stream of audio.
///
/// The driver gives datagrams to [`AudioReceiver::handle_datagram`] and calls [`AudioReceiver::poll_block`] at
/// [`AudioReceiver::poll_timeout`], or as early as its device wants samples in hand.
#[derive(Clone, Debug)]
pub struct AudioReceiver {
    config: AudioReceiverConfig,
    track: Track,
    timeline: Timeline,
    source: Source,
    /// What may be the sender's under another number.
    waiting: WaitingPackets,
    stream: Option<Stream>,
    /// Packets of the streams before it.
    before_stream: PacketSums,
    repairs: SoundRepairs,
    /// The picture's times and the clock of the audio, as they were set.
    picture: Option<(WallClock, MediaClock)>,
    /// Steps of the times that playing has followed.
    steps_followed: u64,
    counters: AudioCounters,
}

/// Packets of some streams.
#[derive(Clone, Copy, Debug, Default)]
struct PacketSums {
    expected: u64,
    received: u64,
    recovered: u64,
}

/// The stream that is received.
#[derive(Clone, Debug)]
struct Stream {
    first_timestamp: u32,
    /// The last sample that a packet began with.
    last: i64,
    last_heard: Instant,
    /// Where the next packet would begin if the stream had jumped.
    jump: Option<u32>,
    is_playing: bool,
    ssrc: u32,
    before_ssrc: Baseline,
    numbers: Numbers,
    jitter: JitterMeter,
}

/// What a stream counted under other numbers of its sender; reports do not tell it (RFC 3550 §8.2: a new source).
#[derive(Clone, Copy, Debug, Default)]
struct Baseline {
    /// Wraps of the sequence number, in the upper half.
    wraps: u32,
    expected: u64,
    received: u64,
}

impl AudioReceiver {
    /// A receiver that waits for the first packet.
    pub fn new(mut config: AudioReceiverConfig) -> AudioReceiver {
        config.delay = config.delay.min(DELAY_MAX);
        let track = Track::new(config.format.channels(), frames_held(&config));
        let timeline = Timeline::new(config.delay, reach(&config));
        let counters = AudioCounters::default();
        let source = Source::new(None);
        AudioReceiver {
            repairs: SoundRepairs::new(config.repair, reach(&config)),
            config,
            track,
            timeline,
            source,
            waiting: WaitingPackets::default(),
            stream: None,
            before_stream: PacketSums::default(),
            picture: None,
            steps_followed: 0,
            counters,
        }
    }

    /// Takes in a datagram; nothing is copied but samples that are new.
    ///
    /// The first stream is received until it is silent for a second, or sends fewer than 16 packets a second while another one
    /// sends 16 in a row. A stream whose time stamps jump begins anew with the second
    /// packet behind the jump.
    ///
    /// # Errors
    /// It is no RTP, or no whole number of samples.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Result<(), AudioError> {
        let packet = RtpPacket::parse(datagram).map_err(AudioError::Rtp);
        let packet = packet.inspect_err(|_| self.counters.packets_malformed += 1)?;
        let payload_type = packet.header.payload_type;
        if payload_type != self.config.payload_type {
            if self.config.repair.retransmission() == Some(payload_type) {
                return self.handle_repetition(now, &packet);
            }
            self.counters.packets_foreign += 1;
            return Ok(());
        }
        let frames = self.frames_in(packet.payload)?;
        match self.source.judge(now, packet.header.ssrc) {
            Origin::Own if self.stream.is_some() => self.waiting.handle_own(packet.header.sequence),
            Origin::Successor if self.is_continued_by(&packet.header) => self.go_on_under(&packet.header),
            Origin::Own | Origin::Successor => self.start(now, &packet),
            Origin::Foreign => {
                self.counters.packets_foreign += 1;
                let RtpHeader { ssrc, sequence, .. } = packet.header;
                if self.waiting.is_waiting(ssrc) || self.is_continued_by(&packet.header) {
                    let arrival = (now, NetworkPath::First);
                    self.waiting.push((ssrc, sequence), arrival, datagram, WAITING_OCTETS_MAX);
                }
                return Ok(());
            }
        }
        self.counters.packets += 1;
        self.handle_packet(now, &packet, frames);
        Ok(())
    }

    /// Takes a round trip that reports measured; requests reckon with it.
    pub fn handle_round_trip(&mut self, round_trip: Duration) {
        self.repairs.handle_round_trip(round_trip);
    }

    /// The sender with this source has left: another one is taken at once, where it would wait for a second of silence. What came of one
    /// that goes on where the stream ended is taken now.
    pub fn handle_departure(&mut self, ssrc: u32) {
        if self.source.current() != Some(ssrc) {
            return;
        }
        self.source.release();
        let waiting = std::mem::take(&mut self.waiting);
        for (arrived, _, datagram) in waiting.of_likeliest() {
            self.counters.packets_foreign -= 1;
            // What is no sound does not wait.
            let _ = self.handle_datagram(arrived, datagram);
        }
    }

    /// Appends the next block to `out`, the channels in turn, with 24 bits a sample; none before it is due.
    ///
    /// When the player is more than 100 ms late, what should have been played is passed over.
    pub fn poll_block(&mut self, now: Instant, out: &mut Vec<i32>) -> Option<AudioBlock> {
        let first = self.track.next();
        self.timeline.follow(now);
        let stream = self.stream.as_mut().filter(|stream| stream.is_playing)?;
        if now >= stream.last_heard + SILENCE.max(self.config.delay) && stream.last < first {
            stream.is_playing = false;
            return None;
        }
        let has_stepped = std::mem::replace(&mut self.steps_followed, self.timeline.steps()) != self.timeline.steps();
        let late_max = if has_stepped { Duration::ZERO } else { LATE_MAX };
        if now >= self.timeline.due(first) + late_max {
            let present = self.timeline.sample_at(now).unwrap_or(first);
            self.counters.frames_skipped += self.track.skip(present.saturating_sub(first));
        }
        let first = self.track.next();
        let due = self.timeline.due(first);
        if now < due {
            return None;
        }
        let frames = self.config.format.packet_time().frames();
        let concealed = self.track.play(frames, self.config.concealment, out);
        self.counters.frames_played += frames as u64;
        self.counters.frames_concealed += concealed;
        let timestamp = stream.first_timestamp.wrapping_add(first as u32);
        Some(AudioBlock { timestamp, due, frames, concealed })
    }

    /// Gives out missing packets to ask for, at most [`NACK_ITEMS_MAX`](crate::receiver::NACK_ITEMS_MAX) entries; call again until
    /// `None`.
    pub fn poll_nack(&mut self, now: Instant) -> Option<&[NackItem]> {
        let (stream, timeline) = (self.stream.as_mut()?, &self.timeline);
        self.repairs.poll(now, &mut stream.numbers, |first| timeline.due(first))
    }

    /// When [`AudioReceiver::poll_nack`] has something; [`Instant::NEVER`] without anything missing.
    pub fn nack_timeout(&mut self) -> Instant {
        self.stream.as_ref().map_or(Instant::NEVER, |stream| self.repairs.due(&stream.numbers))
    }

    /// When the next block is due; [`Instant::NEVER`] while no stream plays.
    pub fn poll_timeout(&self) -> Instant {
        match &self.stream {
            Some(stream) if stream.is_playing => self.timeline.due(self.track.next()),
            _ => Instant::NEVER,
        }
    }

    /// Sets when pictures are shown, and how the time stamps of this audio map to the same wall clock of the sender.
    ///
    /// `presentation` pairs the time at which a frame is shown with the wall-clock time of its time stamp, by
    /// [`MediaClock::ntp_of`] of the video's sender report; `clock` is the one of the audio's sender report. Both must be of one
    /// sender, that is of one canonical name.
    pub fn set_picture(&mut self, presentation: WallClock, clock: MediaClock) {
        self.picture = Some((presentation, clock));
        self.apply_picture();
    }

    /// Milliseconds by which sound is played after its picture; negative when before it. None until both are known.
    pub fn picture_offset_millis(&self) -> Option<f64> {
        self.timeline.behind_picture().map(|nanos| nanos as f64 / 1e6)
    }

    /// How often the times of playing stepped since the stream began: to meet the picture, or over 40 ms or more. Smaller
    /// differences are followed at 500 ppm.
    pub fn steps(&self) -> u64 {
        self.timeline.steps()
    }

    /// What was received under the sender's present number, for a receiver report: each packet once, though a second path brings it
    /// again. What came again in a stream of its own counts as lost (RFC 4588 §5).
    pub fn received(&self) -> Option<ReceivedStream> {
        self.stream.as_ref().map(|stream| {
            let (totals, before) = (stream.numbers.totals(), stream.before_ssrc);
            let has_own_stream = self.config.repair.retransmission().is_some();
            let again = if has_own_stream { 0 } else { totals.recovered };
            ReceivedStream {
                ssrc: stream.ssrc,
                highest_sequence: stream.numbers.highest().wrapping_sub(before.wraps),
                expected: totals.expected.saturating_sub(before.expected),
                received: (totals.received + again).saturating_sub(before.received),
                jitter: stream.jitter.rfc3550_ticks(),
            }
        })
    }

    /// Packets expected, and received without being sent again, until now, of all streams and under all numbers.
    pub fn packets(&self) -> (u64, u64) {
        let PacketSums { expected, received, .. } = self.sums();
        (expected, received)
    }

    /// Packets that came because they were sent again, of all streams.
    pub fn recovered(&self) -> u64 {
        self.sums().recovered
    }

    /// Requests for missing packets.
    pub fn requests(&self) -> RequestCounters {
        self.repairs.counters()
    }

    /// Samples of each channel that wait to be played.
    pub fn frames_waiting(&self) -> u64 {
        self.track.waiting()
    }

    /// What was counted.
    pub fn counters(&self) -> AudioCounters {
        self.counters
    }

    fn sums(&self) -> PacketSums {
        let totals = self.stream.as_ref().map(|stream| stream.numbers.totals()).unwrap_or_default();
        PacketSums {
            expected: self.before_stream.expected + totals.expected,
            received: self.before_stream.received + totals.received,
            recovered: self.before_stream.recovered + totals.recovered,
        }
    }

    /// Samples of each channel in a payload.
    fn frames_in(&mut self, payload: &[u8]) -> Result<usize, AudioError> {
        let (octets, multiple) = (payload.len(), self.config.format.frame_octets());
        if octets == 0 || !octets.is_multiple_of(multiple) {
            self.counters.packets_malformed += 1;
            return Err(AudioError::Payload { octets, multiple });
        }
        Ok(octets / multiple)
    }

    /// Takes a packet that was sent again: its payload begins with the original number (RFC 4588 §4). It tells nothing of arrival times,
    /// and nothing of packets after the newest one.
    fn handle_repetition(&mut self, now: Instant, packet: &RtpPacket<'_>) -> Result<(), AudioError> {
        let (original, payload) = packet.payload.split_at_checked(2).unwrap_or((&[], &[]));
        let frames = self.frames_in(payload)?;
        let sequence = original.iter().fold(0, |number, octet| number << 8 | u16::from(*octet));
        let found = self.stream.as_mut().and_then(|stream| {
            let first = stream.sample_of(packet.header.timestamp);
            let number = stream.numbers.number_of_original(sequence).filter(|_| first <= stream.last)?;
            self.track.fits(first, frames).then(|| (number, first, stream.numbers.count_again(number)))
        });
        let Some((number, first, seen)) = found else {
            self.counters.packets_astray += 1;
            return Ok(());
        };
        self.repairs.handle_repetition(now, number, &seen);
        if matches!(seen, Seen::New(_)) {
            self.place(first, payload, frames);
        }
        Ok(())
    }

    /// Whether a packet of another source continues numbers and times of the one before: the same sender, which had to take another
    /// number (RFC 3550 §8.2).
    fn is_continued_by(&self, header: &RtpHeader) -> bool {
        let Some(stream) = self.stream.as_ref().filter(|stream| stream.is_playing) else { return false };
        let last = stream.first_timestamp.wrapping_add(stream.last as u32);
        (1..=CONTINUED_PACKETS_MAX).contains(&stream.numbers.ahead(header.sequence))
            && header.timestamp.wrapping_sub(last) <= SAMPLE_RATE_HZ / 10
    }

    /// The stream goes on under the source of this packet.
    fn go_on_under(&mut self, header: &RtpHeader) {
        self.waiting.clear();
        let has_own_stream = self.config.repair.retransmission().is_some();
        let Some(stream) = &mut self.stream else { return };
        let (totals, ahead) = (stream.numbers.totals(), stream.numbers.ahead(header.sequence));
        let again = if has_own_stream { 0 } else { totals.recovered };
        stream.ssrc = header.ssrc;
        stream.before_ssrc = Baseline {
            wraps: stream.numbers.highest().wrapping_add(u32::from(ahead)) & 0xffff_0000,
            // Packets lost in between are of neither number.
            expected: totals.expected + u64::from(ahead) - 1,
            received: totals.received + again,
        };
    }

    fn start(&mut self, now: Instant, packet: &RtpPacket<'_>) {
        self.waiting.clear();
        let packets = frames_held(&self.config) / self.config.format.packet_time().frames();
        self.before_stream = self.sums();
        self.stream = Some(Stream {
            first_timestamp: packet.header.timestamp,
            last: 0,
            last_heard: now,
            jump: None,
            is_playing: true,
            ssrc: packet.header.ssrc,
            before_ssrc: Baseline::default(),
            numbers: Numbers::new(packets),
            jitter: JitterMeter::new(SAMPLE_RATE_HZ, 0.0),
        });
        self.begin(0);
    }

    /// Begins to play at a sample, with times of its own.
    fn begin(&mut self, sample: i64) {
        self.counters.frames_skipped += self.track.restart(sample);
        (self.timeline, self.steps_followed) = (Timeline::new(self.config.delay, reach(&self.config)), 0);
        self.repairs.reset();
        self.apply_picture();
        self.counters.starts += 1;
    }

    fn apply_picture(&mut self) {
        let follows = self.config.sync == PictureSync::Follow;
        let picture = self.picture.zip(self.stream.as_ref()).map(|((presentation, clock), stream)| {
            let timestamp = stream.first_timestamp.wrapping_add(stream.last as u32);
            Picture::new(presentation.instant(clock.ntp_of(timestamp)), stream.last, follows)
        });
        self.timeline.set_picture(picture);
    }

    fn handle_packet(&mut self, now: Instant, packet: &RtpPacket<'_>, frames: usize) {
        let Some(stream) = &mut self.stream else { return };
        let (sequence, timestamp) = (packet.header.sequence, packet.header.timestamp);
        let first = stream.sample_of(timestamp);
        let since_newest = (first - stream.last) / frames as i64;
        let is_idle = !stream.is_playing;
        if is_idle || !self.track.fits(first, frames) {
            let is_confirmed = is_idle || stream.jump == Some(timestamp);
            stream.jump = Some(timestamp.wrapping_add(frames as u32));
            let goes_on = stream.numbers.go_on(sequence, since_newest);
            if !is_confirmed {
                if goes_on {
                    stream.numbers.count(sequence, since_newest);
                }
                self.counters.packets_astray += 1;
                return;
            }
            if !goes_on {
                stream.numbers.restart();
            }
            (stream.is_playing, stream.last) = (true, first);
            stream.jitter = JitterMeter::new(SAMPLE_RATE_HZ, 0.0);
            self.begin(first);
        }
        let Some(stream) = &mut self.stream else { return };
        let (number, seen) = stream.numbers.count(sequence, since_newest);
        // A packet has less than 2¹⁶ octets.
        let place = SoundPlace { number, first, frames: frames as i64 };
        self.repairs.handle_packet(now, &seen, place, self.track.next(), &mut stream.numbers);
        (stream.last, stream.jump) = (stream.last.max(first), None);
        stream.last_heard = now;
        // A second path brings each packet again, later by what the paths differ.
        if matches!(seen, Seen::New(_)) {
            stream.jitter.handle_packet(now, timestamp, 0);
        }
        self.timeline.handle_arrival(now, first);
        self.timeline.follow(now);
        self.place(first, packet.payload, frames);
    }

    /// Puts the samples of a payload in their places.
    fn place(&mut self, first: i64, payload: &[u8], frames: usize) {
        let samples = samples::read(self.config.format.encoding(), payload);
        let placed = self.track.place(first, samples, frames);
        self.counters.frames_placed += placed.placed as u64;
        self.counters.frames_late += placed.late as u64;
        self.counters.frames_duplicate += placed.duplicate as u64;
    }
}

impl Stream {
    /// The sample that a time stamp means: the closest to the last one.
    fn sample_of(&self, timestamp: u32) -> i64 {
        let last = self.first_timestamp.wrapping_add(self.last as u32);
        self.last + i64::from(timestamp.wrapping_sub(last) as i32)
    }
}

/// How far before the present samples may wait: a second, or twice the delay if that is longer. A picture may be shown later.
fn reach(config: &AudioReceiverConfig) -> Duration {
    Duration::from_secs(1).max(config.delay * 2)
}

/// Samples of each channel that a track holds, behind and before the present.
fn frames_held(config: &AudioReceiverConfig) -> usize {
    2 * reach(config).as_millis() as usize * (SAMPLE_RATE_HZ / 1000) as usize
}
