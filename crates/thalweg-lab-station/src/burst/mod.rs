//! Bursts: the time from the first of n writes to the echo of a reader that has received all of them. `peers/README.md` shows what
//! travels.

mod collect;
mod content;
mod publish;

pub use collect::{echo_bursts, echo_on};
pub use publish::{BurstAnswer, BurstPublisher, BurstReady, BurstRequest, serve_bursts, until_input_ends};

use crate::channel::SampleChannel;

/// What a sample's number says: the run in the high 32 bits, in the low the index or one of the two below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BurstNumber {
    run: u32,
    index: u32,
}

/// Index of the sample that announces a run; its octets are an [`Announcement`](content::Announcement). Echoed with the same number.
/// Run 0 only asks whether the subscriber is there.
const ANNOUNCEMENT: u32 = u32::MAX;

/// Index of the sample that asks how many of a run arrived; the echo's octets are the answer, `u32` little-endian.
const ENQUIRY: u32 = u32::MAX - 1;

/// Index of the echo that ends a run; its octets are empty, or say what was wrong.
const COMPLETE: u32 = 0;

impl BurstNumber {
    fn new(run: u32, index: u32) -> BurstNumber {
        BurstNumber { run, index }
    }

    fn from_wire(number: u64) -> BurstNumber {
        BurstNumber { run: (number >> 32) as u32, index: number as u32 }
    }

    fn on_wire(self) -> u64 {
        u64::from(self.run) << 32 | u64::from(self.index)
    }

    /// What the first and the last octet of the sample carry.
    fn check_byte(self) -> u8 {
        self.index as u8
    }
}

/// The topic of the samples of the runs, and of those that ask.
pub const SAMPLES: &str = "thalweg_burst";
/// The topic of the answers.
pub const ECHOES: &str = "thalweg_burst_echo";

fn samples() -> SampleChannel {
    SampleChannel { is_measured: true, ..SampleChannel::reliable(SAMPLES) }
}

fn echoes() -> SampleChannel {
    SampleChannel::reliable(ECHOES)
}

#[cfg(test)]
mod tests {
    use super::BurstNumber;

    #[test]
    fn a_number_carries_run_and_index() {
        let number = BurstNumber::new(7, 0x0102_03ff);
        assert_eq!(number.on_wire(), 0x0000_0007_0102_03ff);
        assert_eq!(BurstNumber::from_wire(number.on_wire()), number);
        assert_eq!(number.check_byte(), 0xff);
    }
}
