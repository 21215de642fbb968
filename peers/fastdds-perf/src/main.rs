//! Measures eProsima Fast DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `fastdds-perf latency --role both --size 64 --wait listener --cpu 0,1 --json`
//!
//! `fastdds-perf types` says how Fast DDS tells others of the types that its standard input describes, and `fastdds-perf topic` writes or
//! reads a topic of one of them. `fastdds-perf shapes` takes the options of the OMG's interoperability suite.

mod fastdds;
mod shapes;
mod types;

use peer_protocol::{Program, Wait};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("types") => types::run(),
        Some("topic") => types::run_topic(std::env::args().skip(2)),
        Some("shapes") => shapes::run(std::env::args().skip(2)),
        _ => {}
    }
    peer_protocol::run::<fastdds::Participant>(&Program {
        name: "fastdds-perf",
        waits: &[Wait::Listener, Wait::Block],
        no_batch: Some(
            "its writers cannot be told to batch; the asynchronous mode of `tuned` shares datagrams when it is behind",
        ),
        leaves_host: true,
    })
}
