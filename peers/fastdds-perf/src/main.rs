//! Measures eProsima Fast DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `fastdds-perf latency --role both --size 64 --wait listener --cpu 0,1 --json`

mod fastdds;

use peer_protocol::{Program, Wait};

fn main() {
    peer_protocol::run::<fastdds::Participant>(&Program {
        name: "fastdds-perf",
        waits: &[Wait::Listener, Wait::Block],
        no_batch: Some(
            "its writers cannot be told to batch; the asynchronous mode of `tuned` shares datagrams when it is behind",
        ),
        leaves_host: true,
    })
}
