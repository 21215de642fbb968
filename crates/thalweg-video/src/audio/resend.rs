//! Packets of sound that are sent again because a receiver asked for them.

use std::collections::VecDeque;
use std::time::Duration;

use super::format::PacketTime;
use super::sender::AudioSenderConfig;
use crate::rtp::RtpHeader;
use crate::sender::Resend;

/// How long a packet of sound can be asked for: longer than receivers wait that play it with its picture, which is shown some frame
/// times after it came. Half a second of eight channels takes 576 KB.
pub const SOUND_KEPT: Duration = Duration::from_millis(500);
/// What a repetition costs in packets of the stream: repetitions add at most a tenth, as those of pictures.
const REPETITION_COST: u32 = 10;
/// Repetitions that may be saved up, and follow each other at once: as many as those of pictures.
const SAVED_MAX: u32 = 32;

/// A packet that was sent.
#[derive(Clone, Debug, Default)]
struct SentPacket {
    /// Its place in the stream, among those that were sent and dropped.
    number: u64,
    timestamp: u32,
    payload: Vec<u8>,
    /// Whether it waits to be sent again.
    is_pending: bool,
}

/// The newest packets, and those of them that are to be sent again.
#[derive(Clone, Debug)]
pub(super) struct SoundResends {
    /// In the order of their numbers.
    sent: VecDeque<SentPacket>,
    /// None where nothing is sent again.
    kept_max: usize,
    /// Numbers of those that wait, at most as many as are kept.
    queue: VecDeque<u64>,
    next_sequence: u16,
    /// What repetitions may still cost: each packet of the stream earns one.
    earned: u32,
    repeated: u64,
    /// Those of them that were sent under other numbers.
    repeated_before: u64,
}

impl SoundResends {
    pub(super) fn new(resend: Resend, packet_time: PacketTime) -> SoundResends {
        let kept = SOUND_KEPT.as_micros() / packet_time.duration().as_micros();
        let (kept_max, next_sequence) = match resend {
            Resend::Never => (0, 0),
            Resend::Same => (kept, 0),
            Resend::Retransmission { first_sequence, .. } => (kept, first_sequence),
        };
        SoundResends {
            sent: VecDeque::new(),
            kept_max: usize::try_from(kept_max).expect("at most 4,000 packets"),
            queue: VecDeque::new(),
            next_sequence,
            earned: SAVED_MAX * REPETITION_COST,
            repeated: 0,
            repeated_before: 0,
        }
    }

    /// Keeps a packet that was sent, and lets go of the oldest.
    pub(super) fn note_sent(&mut self, number: u64, timestamp: u32, payload: &[u8]) {
        if self.kept_max == 0 {
            return;
        }
        self.earned = (self.earned + 1).min(SAVED_MAX * REPETITION_COST);
        let oldest = if self.sent.len() == self.kept_max { self.sent.pop_front() } else { None };
        // Its memory is used again.
        let mut packet = oldest.unwrap_or_default();
        (packet.number, packet.timestamp, packet.is_pending) = (number, timestamp, false);
        packet.payload.clear();
        packet.payload.extend_from_slice(payload);
        self.sent.push_back(packet);
    }

    /// Takes a request for the newest packet whose number ends in these 16 bits, if it is kept; `first` is the stream's first one.
    pub(super) fn push(&mut self, sequence: u16, first: u16) {
        let Some(newest) = self.sent.back().map(|packet| packet.number) else { return };
        let back = first.wrapping_add(newest as u16).wrapping_sub(sequence);
        let Some(number) = newest.checked_sub(back.into()) else { return };
        let Ok(place) = self.place_of(number) else { return };
        if !std::mem::replace(&mut self.sent[place].is_pending, true) {
            self.queue.push_back(number);
        }
    }

    /// Appends the next packet that is to be sent again to `out`; returns whether there is one and the stream has earned it.
    pub(super) fn poll(&mut self, config: &AudioSenderConfig, out: &mut Vec<u8>) -> bool {
        let Some(place) = self.take_next() else { return false };
        let packet = &self.sent[place];
        let AudioSenderConfig { payload_type, ssrc, .. } = *config;
        let (sequence, timestamp) = (config.sequence.wrapping_add(packet.number as u16), packet.timestamp);
        let original = RtpHeader { marker: false, payload_type, sequence, timestamp, ssrc };
        match config.resend {
            Resend::Retransmission { payload_type, ssrc, .. } => {
                let header = RtpHeader { payload_type, sequence: self.next_sequence, ssrc, ..original };
                self.next_sequence = self.next_sequence.wrapping_add(1);
                out.extend(header.to_octets());
                out.extend(sequence.to_be_bytes());
            }
            Resend::Same | Resend::Never => out.extend(original.to_octets()),
        }
        out.extend_from_slice(&packet.payload);
        self.repeated += 1;
        true
    }

    /// Packets sent again.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Those of them under the present number.
    pub(super) fn repeated_now(&self) -> u64 {
        self.repeated - self.repeated_before
    }

    /// Another number is that of repetitions from now on.
    pub(super) fn begin_number(&mut self) {
        self.repeated_before = self.repeated;
    }

    /// Takes the next one off the queue that is still kept.
    fn take_next(&mut self) -> Option<usize> {
        while self.earned >= REPETITION_COST {
            let number = self.queue.pop_front()?;
            if let Ok(place) = self.place_of(number) {
                self.sent[place].is_pending = false;
                self.earned -= REPETITION_COST;
                return Some(place);
            }
        }
        None
    }

    fn place_of(&self, number: u64) -> Result<usize, usize> {
        self.sent.binary_search_by_key(&number, |packet| packet.number)
    }
}
