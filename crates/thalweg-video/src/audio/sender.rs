//! Making packets of samples.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::format::{AudioFormat, SAMPLE_RATE_HZ};
use super::resend::SoundResends;
use super::samples;
use crate::rtcp::{MediaClock, SentStream, WallClock};
use crate::rtp::{HEADER_OCTETS, RtpHeader};
use crate::sender::Resend;

/// The most samples of each channel that wait to be sent: a second.
const PENDING_FRAMES_MAX: usize = SAMPLE_RATE_HZ as usize;

/// A packet that could not be sent for so long is dropped: the receiver has played silence by then.
const LATE_MAX: Duration = Duration::from_millis(100);

/// Names and numbers of a stream, all random for safety (RFC 3550 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioSenderConfig {
    /// The form of audio.
    pub format: AudioFormat,
    /// RTP payload type, 96 to 127.
    pub payload_type: u8,
    /// The stream.
    pub ssrc: u32,
    /// Sequence number of the first packet.
    pub sequence: u16,
    /// Time stamp of the first sample; 48 kHz.
    pub timestamp: u32,
    /// How lost packets are sent again, as long as they are kept: [`SOUND_KEPT`](super::SOUND_KEPT).
    pub resend: Resend,
}

/// Takes samples and gives a packet each time that one is full and due.
#[derive(Clone, Debug)]
pub struct AudioSender {
    config: AudioSenderConfig,
    start: Instant,
    pending: VecDeque<i32>,
    /// Samples of each channel that were sent or dropped.
    frames_done: u64,
    packets: u64,
    /// Packets of the stream, with those sent again in it, that were sent under other numbers.
    packets_before: u64,
    packets_dropped: u64,
    resends: SoundResends,
}

impl AudioSender {
    /// A sender whose first sample is taken at `start`.
    pub fn new(start: Instant, config: AudioSenderConfig) -> AudioSender {
        AudioSender {
            config,
            start,
            pending: VecDeque::new(),
            frames_done: 0,
            packets: 0,
            packets_before: 0,
            packets_dropped: 0,
            resends: SoundResends::new(config.resend, config.format.packet_time()),
        }
    }

    /// Takes samples of 24 bits, the channels in turn; returns how many it took. It takes whole sets of channels, and no more than
    /// a second waits.
    ///
    /// When a source paused for longer than 100 ms, the time stamps pass over the pause.
    pub fn handle_samples(&mut self, now: Instant, samples: &[i32]) -> usize {
        let channels = self.config.format.channels();
        let behind = now.since(self.start + frames_to_time(self.frames_done));
        if self.pending.is_empty() && behind > LATE_MAX {
            // The first of these samples was taken before now.
            let taken = frames_to_time((samples.len() / channels) as u64);
            self.frames_done += time_to_frames(behind.saturating_sub(taken));
        }
        let room = PENDING_FRAMES_MAX * channels - self.pending.len();
        let taken = samples.len().min(room) / channels * channels;
        self.pending.extend(&samples[..taken]);
        taken
    }

    /// No samples follow: silence fills the packet that the last ones do not.
    pub fn handle_end(&mut self) {
        let packet = self.config.format.packet_time().frames() * self.config.format.channels();
        self.pending.resize(self.pending.len().next_multiple_of(packet), 0);
    }

    /// Appends the next packet to `out`; returns whether one is due: its last sample must have been taken.
    pub fn poll_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let format = self.config.format;
        let frames = format.packet_time().frames();
        while now >= self.poll_timeout() {
            let is_late = now > self.poll_timeout() + LATE_MAX;
            let samples = self.pending.drain(..frames * format.channels());
            if is_late {
                drop(samples);
                self.packets_dropped += 1;
                self.frames_done += frames as u64;
                continue;
            }
            // Dropped packets leave a gap, so that the receiver counts them.
            let number = self.packets + self.packets_dropped;
            let header = RtpHeader {
                marker: false,
                payload_type: self.config.payload_type,
                sequence: self.config.sequence.wrapping_add(number as u16),
                timestamp: self.config.timestamp.wrapping_add(self.frames_done as u32),
                ssrc: self.config.ssrc,
            };
            let start = out.len() + HEADER_OCTETS;
            out.extend(header.to_octets());
            samples::write(format.encoding(), samples, out);
            self.resends.note_sent(number, header.timestamp, &out[start..]);
            self.packets += 1;
            self.frames_done += frames as u64;
            return true;
        }
        false
    }

    /// Takes the numbers of packets that a receiver asks for again (RFC 4585 §6.2.1); those that are kept are given out by
    /// [`AudioSender::poll_repetition`].
    pub fn handle_nack(&mut self, sequences: impl IntoIterator<Item = u16>) {
        for sequence in sequences {
            self.resends.push(sequence, self.config.sequence);
        }
    }

    /// Appends a packet that was asked for again to `out`; returns whether there is one. Repetitions add at most a tenth to the stream:
    /// others wait until it has sent more.
    pub fn poll_repetition(&mut self, out: &mut Vec<u8>) -> bool {
        self.resends.poll(&self.config, out)
    }

    /// When the next packet is due; [`Instant::NEVER`] until its samples are there.
    pub fn poll_timeout(&self) -> Instant {
        let format = self.config.format;
        let frames = format.packet_time().frames();
        if self.pending.len() < frames * format.channels() {
            return Instant::NEVER;
        }
        self.start + frames_to_time(self.frames_done + frames as u64)
    }

    /// When the samples that wait will all have been sent.
    pub fn pending_until(&self) -> Instant {
        let pending = self.pending.len() / self.config.format.channels();
        self.start + frames_to_time(self.frames_done + pending as u64)
    }

    /// Another source takes this one's number: packets have `ssrc` from now on (RFC 3550 §8.2).
    pub fn set_ssrc(&mut self, ssrc: u32) {
        self.config.ssrc = ssrc;
        self.packets_before = self.packets_in_stream();
    }

    /// Another source takes the number of the repetitions' own stream: they have `ssrc` from now on (RFC 3550 §8.2). Nothing changes
    /// where they have no stream of their own.
    pub fn set_repetitions_ssrc(&mut self, ssrc: u32) {
        if let Resend::Retransmission { ssrc: current, .. } = &mut self.config.resend {
            *current = ssrc;
            self.resends.begin_number();
        }
    }

    /// Packets sent, without repetitions.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets sent again.
    pub fn packets_resent(&self) -> u64 {
        self.resends.repeated()
    }

    /// What was sent under the present number, for a sender report (RFC 3550 §6.4.1).
    pub fn sent(&self, wall_clock: &WallClock) -> SentStream {
        self.stream_of(wall_clock, self.packets_in_stream() - self.packets_before, 0)
    }

    /// What was sent again under the present number of repetitions; of use where they have a stream of their own.
    pub fn repeated(&self, wall_clock: &WallClock) -> SentStream {
        self.stream_of(wall_clock, self.resends.repeated_now(), self.config.resend.added_octets())
    }

    /// Packets sent in the stream under all numbers, with those sent again in it.
    fn packets_in_stream(&self) -> u64 {
        let again = match self.config.resend {
            Resend::Same => self.resends.repeated(),
            Resend::Never | Resend::Retransmission { .. } => 0,
        };
        self.packets + again
    }

    /// So many packets, each with octets that the samples have not.
    fn stream_of(&self, wall_clock: &WallClock, packets: u64, added: usize) -> SentStream {
        let payload = self.config.format.datagram_octets() - HEADER_OCTETS + added;
        SentStream {
            packets,
            octets: packets * payload as u64,
            clock: MediaClock { ntp: wall_clock.ntp(self.start), rtp: self.config.timestamp, rate_hz: SAMPLE_RATE_HZ },
        }
    }

    /// Packets dropped because they were more than 100 ms late.
    pub fn packets_dropped(&self) -> u64 {
        self.packets_dropped
    }
}

fn frames_to_time(frames: u64) -> Duration {
    // A sample takes 62,500/3 ns.
    Duration::from_nanos((u128::from(frames) * 62_500 / 3) as u64)
}

fn time_to_frames(time: Duration) -> u64 {
    (time.as_nanos() * 3 / 62_500) as u64
}
