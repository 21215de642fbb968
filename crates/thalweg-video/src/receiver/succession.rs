//! The sender that is listened to, and the one that takes its place: the same under another number, or another one.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::{LineNumbering, NetworkPath, VideoReceiver};
use crate::origin::Origin;
use crate::rtp::RtpHeader;

/// Packets that may be lost where a sender changes its number.
const CONTINUED_PACKETS_MAX: u16 = 1000;
/// How much later than the packets behind it a farewell may be read, at the least: RTCP on a port of its own has a turn each 16 ms.
const WAITING_TIME: Duration = Duration::from_millis(25);
/// Octets that packets may take beyond those of that time: for their headers.
const WAITING_OCTETS_MIN: usize = 1 << 20;

impl VideoReceiver {
    /// The sender with this source has left: another one is taken at once, where it would wait for a second of silence. What came of one
    /// that goes on where the stream ended is taken now.
    pub fn handle_departure(&mut self, ssrc: u32) {
        if self.source.current() != Some(ssrc) {
            return;
        }
        self.source.release();
        let waiting = std::mem::take(&mut self.waiting);
        for (arrived, path, datagram) in waiting.of_likeliest() {
            self.counters.refused.foreign -= 1;
            self.handle_datagram_from(arrived, path, datagram);
        }
    }

    /// Decides whether a packet is of the sender that is listened to, or of one that takes its place. Others are counted, and kept where
    /// they may be of the same sender.
    pub(super) fn admit(&mut self, (now, path): (Instant, NetworkPath), header: &RtpHeader, datagram: &[u8]) -> bool {
        match self.source.judge(now, header.ssrc) {
            Origin::Own => self.waiting.handle_own(header.sequence),
            Origin::Successor => {
                self.waiting.clear();
                if !self.continues(header) {
                    self.begin_anew();
                }
                self.before_source = self.expected_and_received();
            }
            Origin::Foreign => {
                self.counters.refused.foreign += 1;
                let may_wait = self.source.is_replaceable();
                if may_wait && (self.waiting.is_waiting(header.ssrc) || self.continues(header)) {
                    let octets = self.config.format.octets_per_second() * WAITING_TIME.as_secs_f64();
                    let octets_max = octets as usize + WAITING_OCTETS_MIN;
                    self.waiting.push((header.ssrc, header.sequence), (now, path), datagram, octets_max);
                }
                return false;
            }
        }
        true
    }

    /// Whether a packet of another source continues numbers and times of the one before: the same sender, which had to take another
    /// number (RFC 3550 §8.2).
    fn continues(&self, header: &RtpHeader) -> bool {
        let (Some(number), Some(timestamp)) = (self.numbers.window.newest(), self.slots.newest()) else { return false };
        // The lower halves are what packets carry.
        let ahead = header.sequence.wrapping_sub(number as u16);
        let later = header.timestamp.wrapping_sub(timestamp as u32);
        (1..=CONTINUED_PACKETS_MAX).contains(&ahead) && later <= 2 * self.config.format.rate().frame_ticks()
    }

    /// Another sender takes the place of the one before.
    fn begin_anew(&mut self) {
        self.numbers.finish();
        self.numbering = LineNumbering::new();
        self.presentation.forget_pictures();
        self.begin_at_another_time();
    }
}
