//! Measures Dust DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `dust-perf latency --role both --size 64 --cpu 0,1 --json`

mod participant;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<participant::Participant>(&Program {
        name: "dust-perf",
        waits: &[Wait::Block],
        no_batch: Some("it has no batching"),
        leaves_host: true,
    })
}
