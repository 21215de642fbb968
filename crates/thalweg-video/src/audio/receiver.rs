//! Making blocks of samples of packets.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::format::{AudioFormat, SAMPLE_RATE_HZ};
use super::numbers::Numbers;
use super::samples;
use super::timeline::{Picture, Timeline};
use super::track::Track;
use crate::jitter::JitterMeter;
use crate::origin::{Origin, Source};
use crate::rtcp::{MediaClock, ReceivedStream, WallClock};
use crate::rtp::{RtpError, RtpPacket};

/// The longest delay: half of what a track holds is in the future.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// Silence of the sender after which playing stops.
const SILENCE: Duration = Duration::from_secs(1);

/// Packets that may be lost where a sender changes its number.
const CONTINUED_PACKETS_MAX: u16 = 1000;

/// A block that could not be played for so long is passed over.
const LATE_MAX: Duration = Duration::from_millis(100);

/// What is played in place of samples that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioConcealment {
    /// Nothing.
    Silence,
    /// The block before, for up to 10 ms; then nothing.
    Repeat,
}

/// What the picture's times are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureSync {
    /// Sound is played with its picture.
    Follow,
    /// Sound keeps its own times, and the difference is told.
    Measure,
}

/// How audio is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioReceiverConfig {
    /// The form of audio. Packets of other times are taken as well.
    pub format: AudioFormat,
    /// RTP payload type; others are counted and dropped.
    pub payload_type: u8,
    /// Time from the earliest arrival to playing, in which late packets find their place. Default 20 ms; at most 2 s.
    pub delay: Duration,
    /// What is played in gaps. Default repetition.
    pub concealment: AudioConcealment,
    /// What the picture's times are used for. Default following.
    pub sync: PictureSync,
}

impl AudioReceiverConfig {
    /// The defaults for a form of audio.
    pub fn new(format: AudioFormat, payload_type: u8) -> AudioReceiverConfig {
        AudioReceiverConfig {
            format,
            payload_type,
            delay: Duration::from_millis(20),
            concealment: AudioConcealment::Repeat,
            sync: PictureSync::Follow,
        }
    }
}

/// Samples to be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioBlock {
    /// Time stamp of its first sample.
    pub timestamp: u32,
    /// When its first sample is to be played.
    pub due: Instant,
    /// Samples of each channel.
    pub frames: usize,
    /// How many of them are concealed.
    pub concealed: u64,
}

/// What a receiver counted; samples count once for all channels.
///
/// Each sample placed is played, waits or was passed over: `frames_placed` = `frames_played` − `frames_concealed` +
/// `frames_skipped` + [`AudioReceiver::frames_waiting`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AudioCounters {
    /// Packets of the stream.
    pub packets: u64,
    /// Packets of other payload types or streams.
    pub packets_foreign: u64,
    /// Packets that could not be read.
    pub packets_malformed: u64,
    /// Packets too far from the others to have a place.
    pub packets_astray: u64,
    /// Samples that found their place.
    pub frames_placed: u64,
    /// Samples that came after they were to be played.
    pub frames_late: u64,
    /// Samples that came again.
    pub frames_duplicate: u64,
    /// Samples played, with concealed ones.
    pub frames_played: u64,
    /// Samples concealed.
    pub frames_concealed: u64,
    /// Samples passed over, because the player was late or the times stepped.
    pub frames_skipped: u64,
    /// Times that the stream began, first or again.
    pub starts: u64,
}

/// Why a datagram is no audio of this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioError {
    /// It is no RTP packet.
    Rtp(RtpError),
    /// Its payload is empty or no whole number of samples of every channel.
    Payload {
        /// Its octets.
        octets: usize,
        /// Octets of one sample of every channel.
        multiple: usize,
    },
}

impl std::fmt::Display for AudioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AudioError::Rtp(error) => write!(f, "the datagram is no RTP packet: {error}"),
            AudioError::Payload { octets, multiple } => {
                write!(f, "{octets} octets of audio are no multiple of the {multiple} of all channels")
            }
        }
    }
}

impl std::error::Error for AudioError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            AudioError::Rtp(error) => Some(error),
            AudioError::Payload { .. } => None,
        }
    }
}

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
    stream: Option<Stream>,
    /// Packets of the streams before it, expected and received.
    before_stream: (u64, u64),
    /// The picture's times and the clock of the audio, as they were set.
    picture: Option<(WallClock, MediaClock)>,
    /// Steps of the times that playing has followed.
    steps_followed: u64,
    counters: AudioCounters,
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
        let timeline = Timeline::new(config.delay);
        let counters = AudioCounters::default();
        let source = Source::new(None);
        AudioReceiver {
            config,
            track,
            timeline,
            source,
            stream: None,
            before_stream: (0, 0),
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
        let (octets, multiple) = (packet.payload.len(), self.config.format.frame_octets());
        if packet.header.payload_type != self.config.payload_type {
            self.counters.packets_foreign += 1;
            return Ok(());
        }
        if octets == 0 || !octets.is_multiple_of(multiple) {
            self.counters.packets_malformed += 1;
            return Err(AudioError::Payload { octets, multiple });
        }
        match self.source.judge(now, packet.header.ssrc) {
            Origin::Own if self.stream.is_some() => {}
            Origin::Successor if self.continues(&packet) => {}
            Origin::Own | Origin::Successor => self.start(now, &packet),
            Origin::Foreign => {
                self.counters.packets_foreign += 1;
                return Ok(());
            }
        }
        self.counters.packets += 1;
        self.handle_packet(now, &packet, octets / multiple);
        Ok(())
    }

    /// The sender with this source has left: another one is taken at once, where it would wait for a second of silence.
    pub fn handle_departure(&mut self, ssrc: u32) {
        if self.source.current() == Some(ssrc) {
            self.source.release();
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
    /// again.
    pub fn received(&self) -> Option<ReceivedStream> {
        self.stream.as_ref().map(|stream| {
            let (totals, before) = (stream.numbers.totals(), stream.before_ssrc);
            ReceivedStream {
                ssrc: stream.ssrc,
                highest_sequence: stream.numbers.highest().wrapping_sub(before.wraps),
                expected: totals.expected.saturating_sub(before.expected),
                received: totals.received.saturating_sub(before.received),
                jitter: stream.jitter.rfc3550_ticks(),
            }
        })
    }

    /// Packets expected and received until now, of all streams and under all numbers.
    pub fn packets(&self) -> (u64, u64) {
        let (expected, received) = self.before_stream;
        let totals = self.stream.as_ref().map(|stream| stream.numbers.totals()).unwrap_or_default();
        (expected + totals.expected, received + totals.received)
    }

    /// Samples of each channel that wait to be played.
    pub fn frames_waiting(&self) -> u64 {
        self.track.waiting()
    }

    /// What was counted.
    pub fn counters(&self) -> AudioCounters {
        self.counters
    }

    /// Whether a packet of another source continues numbers and times of the one before: the same sender, which had to take another
    /// number (RFC 3550 §8.2). Its stream then goes on under that.
    fn continues(&mut self, packet: &RtpPacket<'_>) -> bool {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_playing) else { return false };
        // The lower half is what packets carry.
        let ahead = packet.header.sequence.wrapping_sub(stream.numbers.highest() as u16);
        let last = stream.first_timestamp.wrapping_add(stream.last as u32);
        let continues = (1..=CONTINUED_PACKETS_MAX).contains(&ahead)
            && packet.header.timestamp.wrapping_sub(last) <= SAMPLE_RATE_HZ / 10;
        if continues {
            stream.ssrc = packet.header.ssrc;
            let totals = stream.numbers.totals();
            stream.before_ssrc = Baseline {
                wraps: stream.numbers.highest().wrapping_add(u32::from(ahead)) & 0xffff_0000,
                // Packets lost in between are of neither number.
                expected: totals.expected + u64::from(ahead) - 1,
                received: totals.received,
            };
        }
        continues
    }

    fn start(&mut self, now: Instant, packet: &RtpPacket<'_>) {
        let packets = frames_held(&self.config) / self.config.format.packet_time().frames();
        self.before_stream = self.packets();
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
        (self.timeline, self.steps_followed) = (Timeline::new(self.config.delay), 0);
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
        let last_timestamp = stream.first_timestamp.wrapping_add(stream.last as u32);
        let first = stream.last + i64::from(timestamp.wrapping_sub(last_timestamp) as i32);
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
        stream.numbers.count(sequence, since_newest);
        (stream.last, stream.jump) = (stream.last.max(first), None);
        stream.last_heard = now;
        stream.jitter.handle_packet(now, timestamp, 0);
        self.timeline.handle_arrival(now, first);
        self.timeline.follow(now);
        let samples = samples::read(self.config.format.encoding(), packet.payload);
        let placed = self.track.place(first, samples, frames);
        self.counters.frames_placed += placed.placed as u64;
        self.counters.frames_late += placed.late as u64;
        self.counters.frames_duplicate += placed.duplicate as u64;
    }
}

/// Samples of each channel that a track holds: a second, or twice the delay if that is longer, behind and before the present. A
/// picture may be shown later.
fn frames_held(config: &AudioReceiverConfig) -> usize {
    let reach = Duration::from_secs(1).max(config.delay * 2);
    2 * reach.as_millis() as usize * (SAMPLE_RATE_HZ / 1000) as usize
}
