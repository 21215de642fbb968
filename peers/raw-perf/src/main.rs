//! Measures plain UDP sockets the way `thalweg perf` measures Thalweg: the floor below every middleware.
//!
//! `raw-perf throughput --role both --size 1024 --cpu 0,1 --profile batch --json`

mod datagram;
mod reader;
mod sockets;
mod system;
mod writer;

fn main() {
    peer_protocol::run::<sockets::Sockets>()
}
