//! Measures plain UDP sockets the way `thalweg perf` measures Thalweg: the floor below every middleware.
//!
//! `raw-perf throughput --role both --size 1024 --cpu 0,1 --profile batch --json`

mod datagram;
mod reader;
mod sockets;
mod system;
mod writer;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<sockets::Sockets>(&Program {
        name: "raw-perf",
        waits: &[Wait::Block, Wait::Listener, Wait::Busy],
        no_batch: None,
        leaves_host: true,
    })
}
