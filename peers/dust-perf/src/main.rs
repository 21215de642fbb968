//! Measures Dust DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `dust-perf latency --role both --size 64 --cpu 0,1 --json`

mod participant;

fn main() {
    peer_protocol::run::<participant::Participant>()
}
