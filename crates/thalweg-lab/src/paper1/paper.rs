//! The paper's figures.

use crate::benchmark::{BenchmarkCell, Deed, PaperFigures};
use crate::figures::rounded;

/// Beside the bursts of Tables 2 and 3.
pub(super) const BURSTS: PaperFigures =
    PaperFigures { header: &["paper: mean", "paper: min", "paper: max", "paper: std dev"], of: of_burst };
/// Beside the transfers of Table 4.
pub(super) const TRANSFERS: PaperFigures =
    PaperFigures { header: &["paper: mean", "paper: of the link", "paper: bytes that these make"], of: of_transfer };

/// Mean, least, most and standard deviation of a cell in milliseconds, where the paper has it.
pub(super) fn burst(contender: &str, deed: Deed) -> Option<[f64; 4]> {
    let (samples, bytes) = deed.load();
    let table = match contender {
        "coalescing" => &COALESCING[..],
        "batching" => &BATCHING[..],
        "auto" | "auto, paced" => &SEGMENTS[..],
        _ => return None,
    };
    table.iter().find(|(n, size, _)| (*n, *size) == (samples, bytes)).map(|(.., figures)| *figures)
}

fn of_burst(cell: &BenchmarkCell) -> Option<Vec<String>> {
    burst(&cell.contender, cell.deed).map(|figures| figures.map(rounded).to_vec())
}

/// Mean in milliseconds and per cent of 1 Gbit/s with so many tokens.
pub(super) fn transfer(tokens: &str) -> Option<(f64, f64)> {
    BACKGROUND.iter().find(|(name, ..)| *name == tokens).map(|(_, ms, usage)| (*ms, *usage))
}

fn of_transfer(cell: &BenchmarkCell) -> Option<Vec<String>> {
    let (samples, bytes) = cell.deed.load();
    // Shorter transfers have no figure of the paper beside them.
    let (ms, usage) = transfer(&cell.contender).filter(|_| samples * bytes >= TRANSFER_BYTES)?;
    let megabytes = ms / 1e3 * usage / 100.0 * 1e9 / 8.0 / 1e6;
    Some(vec![rounded(ms), format!("{usage} %"), format!("{megabytes:.1} MB")])
}

type Row = (u64, u64, [f64; 4]);

/// Table 2: samples, bytes; mean, least, most, standard deviation.
pub(super) const COALESCING: [Row; 6] = [
    (3_000, 256, [106.3, 94.0, 120.0, 6.99]),
    (3_000, 512, [159.75, 143.0, 188.0, 13.65]),
    (3_000, 1_024, [274.3, 254.0, 340.0, 17.71]),
    (10_000, 256, [257.25, 224.0, 288.0, 19.52]),
    (10_000, 512, [437.05, 396.0, 481.0, 27.45]),
    (10_000, 1_024, [787.38, 721.0, 872.0, 38.91]),
];
pub(super) const BATCHING: [Row; 6] = [
    (3_000, 256, [61.85, 58.0, 66.0, 2.54]),
    (3_000, 512, [98.8, 94.0, 105.0, 3.54]),
    (3_000, 1_024, [174.8, 164.0, 185.0, 7.02]),
    (10_000, 256, [146.8, 140.0, 156.0, 4.97]),
    (10_000, 512, [226.6, 211.0, 245.0, 11.83]),
    (10_000, 1_024, [468.3, 440.0, 490.0, 17.47]),
];
/// Table 3.
pub(super) const SEGMENTS: [Row; 6] = [
    (1, 5 << 20, [57.93, 55.0, 62.0, 2.11]),
    (5, 1 << 20, [51.93, 51.0, 56.0, 1.29]),
    (10, 512 << 10, [53.87, 52.0, 58.0, 1.5]),
    (20, 256 << 10, [58.8, 57.0, 66.0, 2.23]),
    (5_120, 1_024, [155.73, 150.0, 173.0, 5.26]),
    (10_240, 512, [217.2, 199.0, 245.0, 12.63]),
];
/// Table 4: tokens in a period, mean in milliseconds, per cent of 1 Gbit/s.
pub(super) const BACKGROUND: [(&str, f64, f64); 6] = [
    ("unlimited", 5_918.4, 12.0),
    ("tokens-30", 5_916.2, 12.0),
    ("tokens-20", 6_004.5, 10.0),
    ("tokens-10", 12_107.1, 6.0),
    ("tokens-5", 23_564.0, 3.5),
    ("tokens-1", 116_765.3, 0.4),
];
/// 100 MB.
pub(super) const TRANSFER_BYTES: u64 = 100_000_000;
