//! The course of a world, as a hash that must be the same in every run of a seed, and as lines for people.

use std::collections::VecDeque;
use std::fmt;

use thalweg_rtps::payload::Payload;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::SequenceNumber;

use crate::dissect::dissect;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Step {
    /// A process sent a datagram.
    Sent {
        /// The destination.
        to: std::net::SocketAddr,
        /// The content.
        bytes: Payload,
    },
    /// A process did not get a datagram.
    Missed {
        /// Why.
        why: Missed,
        /// Bytes of the datagram.
        bytes: usize,
    },
    /// A process handled a datagram.
    Received {
        /// The source.
        from: std::net::SocketAddr,
        /// Bytes of the datagram.
        bytes: usize,
    },
    /// A timer of the participant ran out.
    TimedOut,
    /// The application wrote.
    Wrote {
        /// Which writer of the plan, counted over all topics.
        writer: usize,
        /// Number of the sample, or `None` when the write was refused.
        sequence: Option<SequenceNumber>,
    },
    /// The application took a sample.
    Took {
        /// Which reader of the plan, counted over all topics.
        reader: usize,
        /// Number of the sample within its writer.
        sequence: SequenceNumber,
        /// Whether it has a value.
        valid: bool,
    },
    /// Anything rarer, in words.
    Note(String),
}

/// Why a datagram was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// The network lost it.
    Lost,
    /// Its hosts were separated.
    Separated,
    /// The receive buffer was full.
    BufferFull,
    /// The queue of a lane was full.
    QueueFull,
    /// It was larger than its path carries.
    TooLarge,
    /// Its receiver refuses announcements of its household that all members know.
    Repetition,
}

/// Lines kept to be shown when a law is broken.
const TAIL_MAX: usize = 60;

/// Lines that a trace keeps besides its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The last steps.
    #[default]
    Tail,
    /// Every step.
    Full,
}

/// The course of events of one world.
#[derive(Debug)]
pub struct Trace {
    detail: Detail,
    hash: u64,
    steps: u64,
    kept: VecDeque<(Instant, usize, Step)>,
}

impl Trace {
    /// An empty trace.
    pub fn new(detail: Detail) -> Trace {
        Trace { detail, hash: 0xcbf2_9ce4_8422_2325, steps: 0, kept: VecDeque::new() }
    }

    /// Takes a step of `process` into account.
    pub fn record(&mut self, at: Instant, process: usize, step: Step) {
        self.steps += 1;
        self.mix(at.as_nanos());
        self.mix(process as u64);
        self.mix_step(&step);
        if self.detail == Detail::Tail && self.kept.len() == TAIL_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((at, process, step));
    }

    /// A number that any difference in the course of events changes.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn mix_bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
        }
        for byte in words.remainder() {
            self.mix(u64::from(*byte));
        }
        self.mix(bytes.len() as u64);
    }

    fn mix_step(&mut self, step: &Step) {
        match step {
            Step::Sent { to, bytes } => {
                self.mix(1 + u64::from(to.port()));
                self.mix_bytes(bytes);
            }
            Step::Missed { why, bytes } => {
                self.mix(2 + ((*why as u64) << 8));
                self.mix(*bytes as u64);
            }
            Step::Received { bytes, .. } => {
                self.mix(3);
                self.mix(*bytes as u64);
            }
            Step::TimedOut => self.mix(4),
            Step::Wrote { writer, sequence } => {
                self.mix(5 + ((*writer as u64) << 8));
                self.mix(sequence.map_or(0, |sequence| sequence.0 as u64));
            }
            Step::Took { reader, sequence, valid } => {
                self.mix(6 + ((*reader as u64) << 8));
                self.mix(((sequence.0 as u64) << 1) | u64::from(*valid));
            }
            Step::Note(words) => self.mix_bytes(words.as_bytes()),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.steps - self.kept.len() as u64;
        if left_out > 0 {
            writeln!(f, "… {left_out} earlier steps")?;
        }
        self.kept
            .iter()
            .try_for_each(|(at, process, step)| writeln!(f, "{:>12.6} p{process} {step}", at.as_nanos() as f64 / 1e9))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Sent { to, bytes } => write!(f, "-> {to} {} B: {}", bytes.len(), dissect(bytes)),
            Step::Missed { why, bytes } => {
                let why = match why {
                    Missed::Lost => "lost on the way",
                    Missed::Separated => "cut off",
                    Missed::BufferFull => "receive buffer full",
                    Missed::QueueFull => "queue full",
                    Missed::TooLarge => "too large for its path",
                    Missed::Repetition => "known repetition",
                };
                write!(f, "xx {bytes} B {why}")
            }
            Step::Received { from, bytes } => write!(f, "<- {from} {bytes} B"),
            Step::TimedOut => f.write_str("timer"),
            Step::Wrote { writer, sequence: Some(sequence) } => write!(f, "writer {writer} wrote {sequence}"),
            Step::Wrote { writer, sequence: None } => write!(f, "writer {writer} refused"),
            Step::Took { reader, sequence, valid } => {
                let mark = if *valid { "" } else { " (no value)" };
                write!(f, "reader {reader} took {sequence}{mark}")
            }
            Step::Note(words) => f.write_str(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(steps: &[(u64, usize, Step)], detail: Detail) -> Trace {
        let mut trace = Trace::new(detail);
        for (at, process, step) in steps {
            trace.record(Instant::from_nanos(*at), *process, step.clone());
        }
        trace
    }

    #[test]
    fn any_difference_changes_the_hash() {
        let to = "10.0.0.1:7411".parse().unwrap();
        let sent = |bytes: &[u8]| Step::Sent { to, bytes: Payload::from(bytes) };
        let base = [(1, 0, sent(b"123456789")), (2, 1, Step::TimedOut)];
        let hash = trace(&base, Detail::Tail).hash();
        assert_eq!(trace(&base, Detail::Full).hash(), hash);
        let others = [
            [(1, 0, sent(b"123456788")), (2, 1, Step::TimedOut)],
            [(1, 0, sent(b"123456789")), (3, 1, Step::TimedOut)],
            [(1, 0, sent(b"123456789")), (2, 0, Step::TimedOut)],
            [(2, 1, Step::TimedOut), (1, 0, sent(b"123456789"))],
            [(1, 0, sent(b"123456789")), (2, 1, Step::Wrote { writer: 0, sequence: None })],
        ];
        for (number, other) in others.iter().enumerate() {
            assert_ne!(trace(other, Detail::Tail).hash(), hash, "variant {number}");
        }
    }

    #[test]
    fn the_tail_is_bounded_and_says_what_it_leaves_out() {
        let steps: Vec<_> = (0..100).map(|at| (at * 1_000_000, 0, Step::TimedOut)).collect();
        let shown = trace(&steps, Detail::Tail).to_string();
        assert!(shown.starts_with("… 40 earlier steps\n    0.040000 p0 timer\n"), "{shown}");
        assert_eq!(shown.lines().count(), 61);
        assert_eq!(trace(&steps, Detail::Full).to_string().lines().count(), 100);
    }
}
