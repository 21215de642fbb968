//! Numbers of packets, of the stream and of each path.

use std::ops::Range;

use super::sequence::{Seen, SequenceWindow};
use super::slots::FrameDistance;
use super::{NetworkPath, PacketCounters, PathCounters, Paths, ReceiverConfig, RestartWatch};
use crate::rfc4175::PACKETS_MAX;
use crate::rtp::RtpHeader;

/// A packet of a peer has so many octets of picture at least, for the size of windows; smaller ones shorten them.
const PACKET_OCTETS_USUAL: usize = 1000;
/// Frame times within which the number of packets is reckoned from their usual number.
const FRAMES_FAR_MAX: u64 = 1000;
/// Packets that a frame has at most.
const FRAME_PACKETS_MAX: u64 = 2 * PACKETS_MAX as u64;
/// So many numbers after the newest one, one follows it though more time has passed: packets may be lost and reordered there.
const FOLLOWING_MAX: u16 = 64;

/// The numbers of packets, of the stream and of each path, and how many a frame has.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) window: SequenceWindow,
    paths: Option<Box<[SequenceWindow; 2]>>,
    frame_ticks: i64,
    /// The newest frame that began, with the number of the packet that showed it.
    opening: Option<(i64, u64)>,
    /// Packets of a frame as the last ones show it; 0 before.
    frame_packets: u64,
    /// The most of them that any frame had.
    frame_packets_max: u64,
    /// Whether a number that is held can be reached in its time.
    is_held_in_time: bool,
    restart: RestartWatch,
}

impl Numbers {
    pub(super) fn new(config: &ReceiverConfig) -> Numbers {
        let packets = config.format.frame_octets() / PACKET_OCTETS_USUAL * (config.slots() + 3);
        let paths = (config.paths == Paths::Two).then(|| Box::new([packets; 2].map(SequenceWindow::new)));
        Numbers {
            window: SequenceWindow::new(packets),
            paths,
            frame_ticks: i64::from(config.format.rate().frame_ticks()),
            opening: None,
            frame_packets: 0,
            frame_packets_max: 0,
            is_held_in_time: false,
            restart: RestartWatch::default(),
        }
    }

    /// Notes a packet of the stream, whose frame is `distance` away from the newest one so far; `None` before any frame.
    pub(super) fn insert(
        &mut self,
        path: NetworkPath,
        header: &RtpHeader,
        extended_sequence: u16,
        distance: Option<FrameDistance>,
    ) -> (u64, Seen) {
        let since_newest = match distance {
            Some(FrameDistance::Near(ticks)) => Some(ticks),
            Some(FrameDistance::Far(_)) | None => None,
        };
        let around = self.expected(header.sequence, since_newest);
        let number = self.window.number(header.sequence, extended_sequence, around);
        if self.is_from_behind(path, number, distance) {
            let Some(before) = self.restart.handle_behind(number) else { return (number, Seen::Held) };
            self.begin_at(path, before);
        }
        if !self.is_held_in_time && self.window.is_confirmed_by(number) {
            self.window.begin_beside(number);
            self.opening = None;
        }
        if let Some(paths) = &mut self.paths {
            let path = &mut paths[path as usize];
            // The sender began anew since this path brought something.
            if path.newest() < self.window.oldest() && path.is_confirmed_by(number) {
                path.begin_beside(number);
            }
            path.insert(number);
        }
        let seen = self.window.insert(number);
        if seen == Seen::Held {
            self.is_held_in_time = self.is_in_time(number, since_newest);
        }
        (number, seen)
    }

    /// Notes that the first packet of a frame came.
    pub(super) fn note_opening(&mut self, timestamp: i64, number: u64) {
        let Some((before, first)) = self.opening else {
            self.opening = Some((timestamp, number));
            return;
        };
        let distance = timestamp - before;
        if (distance - self.frame_ticks).abs() <= 2 {
            self.frame_packets = number.saturating_sub(first).min(FRAME_PACKETS_MAX);
            self.frame_packets_max = self.frame_packets_max.max(self.frame_packets);
        }
        if distance > 0 {
            self.opening = Some((timestamp, number));
        }
    }

    /// Of `absent` frame times without a frame, those in which frames were sent and lost, as the numbers between those of
    /// the frames around tell. Late packets are among them, and are not missing.
    pub(super) fn lost_frames(&self, absent: u64, between: Range<u64>) -> u64 {
        let missing = self.window.count_missing(between);
        match self.frame_packets {
            0 if missing == 0 => 0,
            0 => absent,
            packets => (missing.saturating_add(packets / 2) / packets).min(absent),
        }
    }

    /// Forgets when frames began.
    pub(super) fn forget_openings(&mut self) {
        self.opening = None;
    }

    /// Gives up all that is missing.
    pub(super) fn finish(&mut self) {
        self.restart.finish();
        self.window.finish();
        self.paths.iter_mut().flat_map(|paths| paths.iter_mut()).for_each(SequenceWindow::finish);
    }

    /// Gives up what is missing below `end`; what is missing from there on may still come, and nobody waits for it.
    pub(super) fn stop(&mut self, end: u64) {
        self.restart.finish();
        self.window.give_up_below(end);
        self.paths.iter_mut().flat_map(|paths| paths.iter_mut()).for_each(|path| path.give_up_below(end));
    }

    /// Writes the totals into `packets`.
    pub(super) fn total(&self, packets: &mut PacketCounters) {
        let totals = self.window.totals();
        (packets.expected, packets.received, packets.recovered) = (totals.expected, totals.received, totals.recovered);
        (packets.lost, packets.outstanding) = (totals.lost, totals.outstanding);
        (packets.duplicates, packets.stale) = (totals.duplicates, totals.stale);
        packets.implausible = totals.implausible + self.restart.implausible();
        (packets.reordered, packets.reorder_distance_max) = (totals.reordered, totals.reorder_distance_max);
        if let Some(paths) = &self.paths {
            // What one path brings later than the other was not overtaken on its own path.
            let totals = paths.each_ref().map(SequenceWindow::totals);
            packets.reordered = totals.iter().map(|totals| totals.reordered).sum();
            packets.reorder_distance_max = totals.iter().map(|totals| totals.reorder_distance_max).max().unwrap_or(0);
        }
    }

    pub(super) fn path_counters(&self, path: NetworkPath) -> Option<PathCounters> {
        let totals = self.paths.as_ref()?[path as usize].totals();
        Some(PathCounters {
            packets_expected: totals.expected,
            packets_received: totals.received,
            packets_duplicate: totals.duplicates,
            packets_lost: totals.lost,
            packets_reordered: totals.reordered,
        })
    }

    /// Whether a packet is far behind on its path and yet of a later frame, or of a time that does not fit its number: what the network
    /// delays or copies has its old time.
    fn is_from_behind(&self, path: NetworkPath, number: u64, distance: Option<FrameDistance>) -> bool {
        let newest = match &self.paths {
            // What a path brings later than the other is not behind on it.
            Some(paths) => paths[path as usize].newest(),
            None => self.window.newest(),
        };
        let is_of_another_time = match distance {
            // The frame of the one that is held may be the newest by now.
            Some(FrameDistance::Near(ticks)) if self.restart.is_confirmed_by(number) => ticks >= 0,
            // A second field is half a frame time later than its frame.
            Some(FrameDistance::Near(ticks)) => ticks > self.frame_ticks * 3 / 4,
            Some(FrameDistance::Far(ticks)) => !self.fits_time(number, ticks),
            None => false,
        };
        is_of_another_time && RestartWatch::is_behind(number, newest)
    }

    /// Whether a number is where the usual packets of a frame put it, so many ticks from the newest frame; true while they are unknown.
    fn fits_time(&self, number: u64, ticks: i64) -> bool {
        let Some(newest) = self.window.newest().filter(|_| self.frame_packets > 0) else { return true };
        let packets = i128::from(ticks / self.frame_ticks) * i128::from(self.frame_packets);
        let difference = i128::from(number) - i128::from(newest) - packets;
        difference.unsigned_abs() <= 2 * u128::from(self.frame_packets_max) + u128::from(FOLLOWING_MAX)
    }

    /// The sender began anew, and this number of it came before the present one.
    fn begin_at(&mut self, path: NetworkPath, before: u64) {
        self.finish();
        self.opening = None;
        self.window.insert(before);
        if let Some(paths) = &mut self.paths {
            paths[path as usize].insert(before);
        }
    }

    /// The number that a packet of this time should have about: after a long gap 16 bits alone do not tell it. One that follows
    /// the newest one is that of a sender that paused (RFC 3550 §A.1).
    fn expected(&self, sequence: u16, since_newest: Option<i64>) -> Option<u64> {
        let number = self.window.newest()?;
        // The lower half is what packets carry.
        let follows = (1..=FOLLOWING_MAX).contains(&sequence.wrapping_sub(number as u16));
        match u64::try_from(since_newest? / self.frame_ticks) {
            Ok(frames @ 2..=FRAMES_FAR_MAX) if !follows => Some(number + frames * self.frame_packets),
            _ => Some(number),
        }
    }

    /// Whether the sender can have come to a number far ahead in the time since the newest frame: a new beginning elsewhere is no
    /// loss (RFC 3550 §A.1).
    fn is_in_time(&self, number: u64, since_newest: Option<i64>) -> bool {
        let Some((newest, ticks)) = self.window.newest().zip(since_newest) else { return false };
        let frames = u64::try_from(ticks / self.frame_ticks).unwrap_or(0);
        // Frame times in ticks are rounded, and the frames at both ends count as well.
        let frames = frames + frames / 100 + 2;
        let packets = if self.frame_packets_max == 0 { FRAME_PACKETS_MAX } else { self.frame_packets_max };
        number <= newest.saturating_add(frames.saturating_mul(packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

    /// What a sender does for a while.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Meanwhile {
        /// It sends, and all is lost.
        Sends,
        Pauses,
        /// Its numbers begin elsewhere.
        BeginsAnew,
    }

    /// High definition in 4,320 packets a frame, whose numbers have 16 bits (FFmpeg, GStreamer) or 32; nothing comes for so many
    /// frame times. The packets that are counted as lost.
    fn lost(extends: bool, meanwhile: Meanwhile, silence: u64) -> u64 {
        let size = (1920, 1080);
        let format = VideoFormat::new(PixelFormat::Yuv422Bits10, size, FrameRate::NTSC, Scan::Progressive).unwrap();
        let mut numbers = Numbers::new(&ReceiverConfig::new(format));
        let mut newest = None;
        let skipped = match meanwhile {
            Meanwhile::Sends => 4320 * silence,
            Meanwhile::Pauses => 0,
            Meanwhile::BeginsAnew => 2_000_010_000,
        };
        for frame in 0..5 {
            let (time, before) = if frame < 3 { (frame, 0) } else { (frame + silence, skipped) };
            let timestamp = 3003 * i64::try_from(time).unwrap();
            for packet in 4320 * frame..4320 * (frame + 1) {
                let sent = packet + before;
                let header = RtpHeader { sequence: sent as u16, ..RtpHeader::default() };
                let extended = if extends { (sent >> 16) as u16 } else { 0 };
                let distance = newest.map(|newest| FrameDistance::Near(timestamp - newest));
                let (number, _) = numbers.insert(NetworkPath::First, &header, extended, distance);
                if newest != Some(timestamp) {
                    numbers.note_opening(timestamp, number);
                    newest = Some(timestamp);
                }
            }
        }
        numbers.finish();
        let mut packets = PacketCounters::default();
        numbers.total(&mut packets);
        assert_eq!((packets.received, packets.implausible, packets.stale), (5 * 4320, 0, 0));
        assert!(packets.are_consistent());
        packets.lost
    }

    #[test]
    fn an_outage_is_counted_though_sixteen_bits_turn_within_half_a_second() {
        for silence in [1, 7, 8, 15, 16, 30, 300] {
            let expect = silence * 4320;
            assert_eq!(lost(false, Meanwhile::Sends, silence), expect, "{silence} frames, by the time");
            assert_eq!(lost(true, Meanwhile::Sends, silence), expect, "{silence} frames");
        }
    }

    #[test]
    fn a_pause_of_the_sender_loses_nothing() {
        for silence in [1, 7, 8, 15, 16, 30, 300] {
            assert_eq!(lost(false, Meanwhile::Pauses, silence), 0, "{silence} frames, of numbers of 16 bits");
            assert_eq!(lost(true, Meanwhile::Pauses, silence), 0, "{silence} frames");
        }
    }

    #[test]
    fn a_new_beginning_farther_away_than_the_time_allows_loses_nothing() {
        for silence in [1, 30, 300] {
            assert_eq!(lost(true, Meanwhile::BeginsAnew, silence), 0, "{silence} frames");
        }
    }
}
