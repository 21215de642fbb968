//! Measures Eclipse Zenoh the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `zenoh-perf throughput --role both --size 1024 --cpu 0,1 --json`

mod configuration;
mod session;

fn main() {
    peer_protocol::run::<session::Peers>()
}
