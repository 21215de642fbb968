//! Measures Eclipse Cyclone DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `cyclone-perf latency --role both --size 64 --wait listener --cpu 0,1 --json`

mod configuration;
mod cyclone;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<cyclone::Participant>(&Program {
        name: "cyclone-perf",
        waits: &[Wait::Listener, Wait::Block],
        no_batch: None,
        leaves_host: true,
    })
}
