//! Losses as reports tell them, from the counts of a receiver.

/// What this end received of one stream until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedStream {
    /// The stream.
    pub ssrc: u32,
    /// Highest sequence number, with the number of wraps in the upper half.
    pub highest_sequence: u32,
    /// Packets that the sequence numbers promise, from the first to the highest; wide, since 32 bits pass in nine hours of HD
    /// video.
    pub expected: u64,
    /// Packets that came, with late ones. Of two paths each counts once; duplicates may count, as RFC 3550 A.3 does.
    pub received: u64,
    /// Estimate of jitter in ticks of the stream's time stamp (RFC 3550 A.8).
    pub jitter: u32,
}

impl ReceivedStream {
    /// Packets lost since the start; negative when duplicates outnumber losses. Saturates at 24 bits.
    pub(super) fn cumulative_lost(&self) -> i32 {
        let lost = i128::from(self.expected) - i128::from(self.received);
        lost.clamp(-(1 << 23), (1 << 23) - 1) as i32
    }
}

/// What the report before said, so that the next one tells the share lost since then.
#[derive(Clone, Debug, Default)]
pub(super) struct LossHistory {
    /// As many as streams in the last report.
    before: Vec<ReceivedStream>,
}

impl LossHistory {
    /// Packets lost since the report before as a share of those expected, in 1/256; zero when duplicates outnumber losses
    /// (RFC 3550 A.3).
    pub(super) fn fraction_lost(&self, stream: &ReceivedStream) -> u8 {
        let before = self.before.iter().find(|before| before.ssrc == stream.ssrc);
        let expected = stream.expected.saturating_sub(before.map_or(0, |before| before.expected));
        let received = stream.received.saturating_sub(before.map_or(0, |before| before.received));
        if expected == 0 || received >= expected {
            return 0;
        }
        // All lost would be 256/256, which the octet does not hold.
        (u128::from(expected - received) * 256 / u128::from(expected)).min(255) as u8
    }

    /// Remembers what a report says.
    pub(super) fn record(&mut self, streams: &[ReceivedStream]) {
        self.before.clear();
        self.before.extend_from_slice(streams);
    }
}
