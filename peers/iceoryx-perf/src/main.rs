//! Measures Eclipse iceoryx2, which is shared memory by nature, the way `thalweg perf` measures Thalweg.
//!
//! `iceoryx-perf latency --role both --size 64 --cpu 0,1 --json`

mod node;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<node::SharedMemory>(&Program {
        name: "iceoryx-perf",
        waits: &[Wait::Block],
        no_batch: None,
        leaves_host: false,
    })
}
