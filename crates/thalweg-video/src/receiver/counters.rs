//! What a receiver counts.

/// The counts of one path of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets from the first to the last one that this path showed.
    pub packets_expected: u64,
    /// Packets that came on it, each once.
    pub packets_received: u64,
    /// Packets that came again on it.
    pub packets_duplicate: u64,
    /// Packets that this path did not bring, as far as they are given up.
    pub packets_lost: u64,
    /// Packets that came after later ones.
    pub packets_reordered: u64,
}

/// What became of packets and frames. Packets are counted once each, by their number:
/// received + recovered + lost + outstanding = expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverCounters {
    /// What became of packets.
    pub packets: PacketCounters,
    /// What became of frames.
    pub frames: FrameCounters,
    /// Datagrams that are not taken.
    pub refused: RefusalCounters,
    /// Requests for missing packets.
    pub repair: RequestCounters,
}

/// Packets of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Numbers from the lowest to the highest one that came.
    pub expected: u64,
    /// Numbers that came in the stream first.
    pub received: u64,
    /// Numbers that came first because they were sent again.
    pub recovered: u64,
    /// Numbers that never came and are given up.
    pub lost: u64,
    /// Numbers that are missing and may still come; 0 after [`finish`](super::VideoReceiver::finish), and those of frames that were not
    /// waited for after [`stop`](super::VideoReceiver::stop).
    pub outstanding: u64,
    /// Packets that came again, over a second path, or though they were sent again in vain.
    pub duplicates: u64,
    /// Packets of the stream that came after later ones; of all paths where there are two.
    pub reordered: u64,
    /// By how many numbers at most.
    pub reorder_distance_max: u64,
    /// Packets, counted above, that came when their frame had been presented.
    pub late: u64,
    /// Packets, counted above, whose place was not known yet: before the first field, or in an unknown line numbering.
    pub unplaced: u64,
    /// Packets so old that their number tells nothing any more; not counted above.
    pub stale: u64,
    /// Packets with a number far from all others that nothing confirmed; not counted above.
    pub implausible: u64,
}

impl PacketCounters {
    /// Whether each expected number has exactly one fate: the law of these counts.
    pub fn are_consistent(&self) -> bool {
        self.received + self.recovered + self.lost + self.outstanding == self.expected
    }
}

/// Frames of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// Frames presented as they were sent.
    pub complete: u64,
    /// Frames presented with concealed pixels.
    pub concealed: u64,
    /// Incomplete frames not presented, by [`Concealment::Drop`](super::Concealment::Drop).
    pub dropped: u64,
    /// Incomplete frames before the first one that was presented.
    pub before_start: u64,
    /// Beginnings with an incomplete frame, because ten (or as configured) in a row were incomplete; also counted as
    /// concealed.
    pub started_incomplete: u64,
    /// Frames of which no packet came, though the numbers show that they were sent.
    pub lost: u64,
    /// Frame times for which nothing was sent: the numbers of the packets show no gap.
    pub skipped: u64,
    /// Frames that nobody fetched in time, or that a restart of the sender ended.
    pub discarded: u64,
}

impl FrameCounters {
    /// Frames that the sender sent as far as it can be told, from the first one of which a packet came.
    pub fn expected(&self) -> u64 {
        self.complete + self.concealed + self.dropped + self.before_start + self.lost + self.discarded
    }
}

/// Datagrams that are not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounters {
    /// No RTP, or lengths that do not fit.
    pub malformed: u64,
    /// Another payload type or synchronization source. What is kept until a sender has left counts here until it is taken.
    pub foreign: u64,
    /// Lines, offsets or lengths outside the format.
    pub outside: u64,
}

/// Requests for missing packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounters {
    /// Lists given out.
    pub lists: u64,
    /// Numbers in them, each as often as it was asked for.
    pub requests: u64,
    /// Missing packets that could not come in time any more.
    pub given_up: u64,
    /// Packets that came in the stream of repetitions.
    pub repetitions: u64,
    /// Those of them that were not needed.
    pub needless: u64,
}
