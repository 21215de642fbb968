//! Measures RustDDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `rustdds-perf latency --role both --size 64 --cpu 0,1 --json`

mod participant;
mod sample;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<participant::Participant>(&Program {
        name: "rustdds-perf",
        waits: &[Wait::Block],
        no_batch: Some("its writers do not batch on demand"),
        leaves_host: true,
    })
}
