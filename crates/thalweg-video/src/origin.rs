//! The sender that is listened to.

use std::time::Duration;

use thalweg_base::time::Instant;

/// After this silence another sender is taken: a restarted one has another source, and two at once would mix.
const SILENCE: Duration = Duration::from_secs(1);
/// So long after the last packet before a farewell packets of its sender are those that were on their way, on the second path perhaps:
/// they do not hold its place.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);
/// Packets within a second that show a stream. A source that sends fewer may be a forged packet now and then: it gives way to
/// another one that sends as many in a row.
const STREAM_PACKETS: u32 = 16;

/// Which synchronization source is taken.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    wanted: Option<u32>,
    current: Option<u32>,
    last_arrival: Instant,
    /// When the last packet came before the farewell of the current source.
    left: Option<Instant>,
    /// When the second began in which packets of the current source are counted, and their number.
    second: (Instant, u32),
    is_stream: bool,
    /// Another source, and the packets that it sent in a row.
    rival: (u32, u32),
}

/// Whether a packet is of the sender that is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is.
    Own,
    /// It is of a sender that takes the place of a silent one, or of one that is no stream: begin anew.
    Successor,
    /// It is not.
    Foreign,
}

impl Source {
    pub(crate) fn new(wanted: Option<u32>) -> Source {
        Source {
            wanted,
            current: wanted,
            last_arrival: Instant::ZERO,
            left: None,
            second: (Instant::ZERO, 0),
            is_stream: false,
            rival: (0, 0),
        }
    }

    pub(crate) fn current(&self) -> Option<u32> {
        self.current
    }

    /// Whether another source may ever take the place of the current one.
    pub(crate) fn is_replaceable(&self) -> bool {
        self.wanted.is_none()
    }

    /// The current source has left: another one may take its place at once.
    pub(crate) fn release(&mut self) {
        self.left = self.left.or(Some(self.last_arrival));
        (self.last_arrival, self.is_stream) = (Instant::ZERO, false);
    }

    pub(crate) fn judge(&mut self, now: Instant, ssrc: u32) -> Origin {
        let is_own = self.current.is_none_or(|current| current == ssrc);
        if !is_own && (self.wanted.is_some() || !self.gives_way(now, ssrc)) {
            return Origin::Foreign;
        }
        if self.current.replace(ssrc) != Some(ssrc) {
            (self.second, self.is_stream) = ((now, self.rival_packets(ssrc).saturating_sub(1)), false);
            self.left = None;
        }
        self.note_packet(now);
        if is_own { Origin::Own } else { Origin::Successor }
    }

    /// Counts a packet of another source; tells whether that one takes the place of the current one.
    fn gives_way(&mut self, now: Instant, ssrc: u32) -> bool {
        self.rival = (ssrc, self.rival_packets(ssrc).saturating_add(1));
        now.since(self.last_arrival) >= SILENCE || (!self.is_stream && self.rival.1 >= STREAM_PACKETS)
    }

    fn rival_packets(&self, ssrc: u32) -> u32 {
        if self.rival.0 == ssrc { self.rival.1 } else { 0 }
    }

    fn note_packet(&mut self, now: Instant) {
        self.rival = (0, 0);
        if self.left.is_none_or(|left| now.since(left) >= ON_THEIR_WAY) {
            (self.last_arrival, self.left) = (now, None);
        }
        let (start, packets) = self.second;
        if now.since(start) >= SILENCE {
            self.is_stream = packets >= STREAM_PACKETS;
            self.second = (now, 0);
        }
        self.second.1 = self.second.1.saturating_add(1);
        self.is_stream |= self.second.1 >= STREAM_PACKETS;
    }
}
