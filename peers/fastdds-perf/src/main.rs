//! Measures eProsima Fast DDS the way `thalweg perf` measures Thalweg: the same options, the same figures.
//!
//! `fastdds-perf latency --role both --size 64 --wait listener --cpu 0,1 --json`

mod fastdds;

fn main() {
    peer_protocol::run::<fastdds::Participant>()
}
