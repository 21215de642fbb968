//! Measures Eclipse Zenoh the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `zenoh-perf throughput --role both --size 1024 --cpu 0,1 --json`

mod configuration;
mod session;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<session::Peers>(&Program {
        name: "zenoh-perf",
        waits: &[Wait::Listener, Wait::Block],
        // Zenoh batches by itself in every profile: `batch` is `tuned`.
        no_batch: None,
        leaves_host: true,
    })
}
