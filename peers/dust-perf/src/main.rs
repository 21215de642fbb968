//! Measures Dust DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `dust-perf latency --role both --size 64 --cpu 0,1 --json`
//!
//! `dust-perf shapes` takes the options of the OMG's interoperability suite.

mod participant;
mod shapes;

use peer_protocol::{Program, Wait};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("shapes") {
        shapes::run(std::env::args().skip(2));
    }
    peer_protocol::run::<participant::Participant>(&Program {
        name: "dust-perf",
        waits: &[Wait::Block],
        no_batch: Some("it has no batching"),
        leaves_host: true,
    })
}
