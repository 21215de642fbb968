//! Measures Eclipse iceoryx2, which is shared memory by nature, the way `thalweg perf` measures Thalweg.
//!
//! `iceoryx-perf latency --role both --size 64 --cpu 0,1 --json`

mod node;

fn main() {
    peer_protocol::run::<node::SharedMemory>()
}
