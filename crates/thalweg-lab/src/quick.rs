//! `lab quick`: three kinds of data between two processes on this host, as a benchmark of a minute.

use crate::benchmark::{Benchmark, ContenderPlan, WorkPlan, WorkTask};
use crate::station::Sending;

/// The benchmark with so many bursts of each kind, ten in each run, and phases of `phase_s` seconds without and with transfers.
pub fn quick(seed: u64, bursts: u32, phase_s: f64) -> Benchmark {
    let work = |name: &str, about: &str, task| WorkPlan {
        name: name.to_owned(),
        about: about.to_owned(),
        contenders: vec![THALWEG.to_owned()],
        place: Default::default(),
        task,
        expectations: Vec::new(),
    };
    let each = bursts.clamp(1, BURSTS_IN_RUN);
    let small = vec![(3_000, 256), (3_000, 1 << 10), (10_000, 256), (10_000, 1 << 10)];
    let large = vec![(1, 5 << 20), (5, 1 << 20), (20, 256 << 10)];
    let works = vec![
        work(
            "High-frequency data",
            "One process writes many small samples as fast as the reader acknowledges them; after the last one the other process writes one \
             echo sample. The time of a burst goes from the first write to the echo (T2 − T1).",
            WorkTask::Bursts { of: small, each, lasting_s: 0.0 },
        ),
        work(
            "Large data",
            "The same measurement with a few large samples. Thalweg splits each into fragments and joins them again; the rows below the first \
             let the application split the same bytes into several samples.",
            WorkTask::Bursts { of: large, each, lasting_s: 0.0 },
        ),
        work(
            "Background data",
            "One process sends a small sample 100 times a second to another; in some phases the same two processes also move 100 MiB in \
             samples of 32 KiB, again and again, as fast as they can. The latency of the small topic shows the effect.",
            WorkTask::Beside { transfer: (3_200, 32 << 10), quiet_s: phase_s, loaded_s: phase_s },
        ),
    ];
    let contenders = vec![ContenderPlan::ours(THALWEG, Sending::default())];
    Benchmark::new("quick", (seed, bursts.div_ceil(BURSTS_IN_RUN)), contenders, works)
}

/// 1.2 s at 100 Hz leave more than 100 samples in each phase, which a 90th percentile needs, and 1,000 in all runs for a 99th.
pub const PHASE_S: f64 = 1.2;
const BURSTS_IN_RUN: u32 = 10;
const THALWEG: &str = "Thalweg";
