//! The plan: the paper's cells, the contenders, the numbers of runs.

use std::path::PathBuf;
use std::time::Duration;

use super::search::{Grid, TunedParameter};
use crate::length::Length;

/// The peers that take part: all that speak a protocol.
pub const PEERS: [&str; 7] = ["cyclone", "fastdds", "rustdds", "dust", "hdds", "zenoh", "iceoryx2"];

/// The extent of the measurement, and its contenders.
#[derive(Clone, Debug)]
pub struct Paper1Plan {
    /// Runs of each cell.
    pub runs: u64,
    /// Whether the searches are short and the transfers of Table 4 a tenth of the paper's.
    pub length: Length,
    /// Factor on numbers of samples and bytes, above 0 and at most 1; smaller ones are for tests of the preset itself.
    pub scale: f64,
    /// Peers that take part.
    pub peers: Vec<String>,
    /// Folder of their programs; `None` looks below the `target` folder.
    pub peer_folder: Option<PathBuf>,
    /// Seed of the order of turns.
    pub seed: u64,
    /// Which tables of the paper are made: 2, 3, 4.
    pub tables: Vec<u8>,
    /// Tokens a period of each cell of Table 4; `None` is without limit.
    pub tokens: Vec<Option<u32>>,
    /// The link of Table 4.
    pub link: LinkKind,
}

/// Name of a cell of Table 4 without limit in `--tokens`.
pub const UNLIMITED: &str = "unlimited";

/// The link of Table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// 1 Gbit/s between two network namespaces; needs root.
    Tbf,
    /// Loopback without a limit.
    Loopback,
}

/// Runs, samples a run and payload bytes.
pub(super) type Burst = (u64, u64);

impl Paper1Plan {
    /// All cells of the paper, with all peers.
    pub fn full(seed: u64) -> Paper1Plan {
        Paper1Plan {
            runs: 20,
            length: Length::Full,
            scale: 1.0,
            peers: PEERS.map(str::to_owned).to_vec(),
            peer_folder: None,
            seed,
            tables: vec![2, 3, 4],
            tokens: [None, Some(HALF_LINK_TOKENS)].into_iter().chain([30, 20, 10, 5, 1].map(Some)).collect(),
            link: LinkKind::Tbf,
        }
    }

    /// Five runs of each cell and short searches.
    pub fn quick(seed: u64) -> Paper1Plan {
        Paper1Plan { runs: 5, length: Length::Quick, ..Paper1Plan::full(seed) }
    }

    pub(super) fn is_quick(&self) -> bool {
        self.length == Length::Quick
    }

    pub(super) fn has_table(&self, table: u8) -> bool {
        self.tables.contains(&table)
    }

    /// A count of the paper, scaled.
    fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.scale).round() as u64).max(1)
    }

    /// The bursts of Table 2.
    pub(super) fn high_frequency(&self) -> Vec<Burst> {
        let sizes = [256, 512, 1 << 10];
        let counts = [3_000, 10_000].map(|n| self.scaled(n));
        counts.into_iter().flat_map(|n| sizes.map(|size| (n, size))).collect()
    }

    /// The segments of Table 3.
    pub(super) fn large(&self) -> Vec<Burst> {
        let sizes = [5 << 20, 1 << 20, 512 << 10, 256 << 10, 1 << 10, 512];
        sizes.map(|size| ((self.scaled(LARGE_BYTES / size)), size)).to_vec()
    }

    /// Runs between two turns of a contender: with fewer the pauses between them would count, with more a disturbance would hit one
    /// contender alone.
    pub(super) fn runs_in_turn(&self) -> u64 {
        (self.runs / 5).max(1)
    }

    /// Turns of a contender in a cell.
    pub(super) fn rounds(&self) -> u64 {
        self.runs.div_ceil(self.runs_in_turn())
    }

    /// Samples of 32 KiB in a transfer of Table 4.
    pub(super) fn transfer_samples(&self) -> u64 {
        let whole = TRANSFER_BYTES / SEGMENT_BYTES;
        self.scaled(if self.is_quick() { whole / 10 } else { whole })
    }

    /// After so long no further transfer of a cell of Table 4 begins.
    pub(super) fn transfers_time(&self) -> Duration {
        let seconds = if self.is_quick() { 8.0 } else { 240.0 };
        Duration::from_secs_f64(seconds * self.scale.sqrt())
    }

    /// The pause before each transfer: all pauses together make the 1,000 samples at 100 Hz that a 99th percentile needs, where there
    /// are as many transfers as there should be.
    pub(super) fn transfer_pause(&self) -> Duration {
        let all = if self.is_quick() { 3.0 } else { 12.0 } * self.scale.sqrt();
        Duration::from_secs_f64(all / (self.runs + 1) as f64)
    }

    /// Candidates for receive buffers.
    pub(super) fn receive_buffers(&self) -> Grid {
        // The first is the default.
        let values =
            if self.is_quick() { vec![8 << 20, 2 << 20] } else { vec![8 << 20, 1 << 20, 2 << 20, 4 << 20, 16 << 20] };
        Grid { parameter: TunedParameter::ReceiveBufferBytes, values, is_continuous: false }
    }

    /// Candidates for coalescing and batching.
    pub(super) fn limits(&self, with_samples: bool) -> Vec<Grid> {
        let bytes =
            if self.is_quick() { vec![60_000, 8_000, 24_000] } else { vec![60_000, 4_000, 8_000, 16_000, 32_000] };
        let delays = if self.is_quick() { vec![1_000, 100] } else { vec![1_000, 50, 200, 5_000] };
        let mut out = vec![Grid { parameter: TunedParameter::MaxBytes, values: bytes, is_continuous: true }];
        if with_samples {
            let values = if self.is_quick() { vec![0, 64] } else { vec![0, 16, 64, 256] };
            out.push(Grid { parameter: TunedParameter::MaxSamples, values, is_continuous: false });
        }
        out.push(Grid { parameter: TunedParameter::FlushDelayUs, values: delays, is_continuous: true });
        out
    }

    /// Candidates for wrapping by the application.
    pub(super) fn wraps(&self) -> Vec<Grid> {
        let values =
            if self.is_quick() { vec![60_000, 16_000] } else { vec![60_000, 4_000, 8_000, 16_000, 32_000, 120_000] };
        vec![Grid { parameter: TunedParameter::WrapBytes, values, is_continuous: true }]
    }

    /// Candidates for pacing segments.
    pub(super) fn pauses(&self) -> Vec<Grid> {
        let values = if self.is_quick() { vec![0, 100] } else { vec![0, 20, 50, 100, 250] };
        vec![Grid { parameter: TunedParameter::PauseUs, values, is_continuous: false }]
    }

    /// The bursts whose geometric mean a search for high-frequency data makes small.
    pub(super) fn search_bursts(&self) -> Vec<Burst> {
        let n = self.scaled(3_000);
        if self.is_quick() { vec![(n, 512)] } else { vec![(n, 256), (n, 1 << 10)] }
    }

    /// The burst that a search for segments makes short.
    pub(super) fn segment_search_burst(&self) -> Burst {
        let size = 256 << 10;
        (self.scaled(LARGE_BYTES / size), size)
    }

    /// Rounds of a trial, and runs of each round.
    pub(super) fn trial(&self) -> (u64, u64) {
        if self.is_quick() { (2, 2) } else { (3, 3) }
    }
}

/// 491 Mbit/s of 1 Gbit/s; the paper has no such cell.
const HALF_LINK_TOKENS: u32 = 75;
/// The paper's 5 MB, in binary units so that every segment size divides it.
const LARGE_BYTES: u64 = 5 << 20;
const TRANSFER_BYTES: u64 = 100 << 20;
/// The segments of Table 4.
pub(super) const SEGMENT_BYTES: u64 = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_plan_has_the_papers_cells() {
        let plan = Paper1Plan::full(1);
        assert_eq!(plan.high_frequency().len(), 6);
        assert_eq!(plan.high_frequency()[5], (10_000, 1_024));
        let counts: Vec<u64> = plan.large().iter().map(|(n, _)| *n).collect();
        assert_eq!(counts, [1, 5, 10, 20, 5_120, 10_240], "as in Table 3");
        assert_eq!((plan.runs, plan.runs_in_turn(), plan.transfer_samples()), (20, 4, 3_200));
        let quiet = plan.transfer_pause() * (plan.runs as u32 + 1);
        assert!(quiet >= Duration::from_secs(10), "a 99th percentile of the quiet topic needs 1,000 samples");
    }

    #[test]
    fn a_scaled_plan_is_small_and_never_empty() {
        let plan = Paper1Plan { scale: 0.001, ..Paper1Plan::quick(1) };
        let largest = plan.high_frequency().into_iter().chain(plan.large()).map(|(n, _)| n).max();
        assert_eq!(largest, Some(10));
        assert!(plan.large().iter().all(|(n, _)| *n >= 1));
    }
}
