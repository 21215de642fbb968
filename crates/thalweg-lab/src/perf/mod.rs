//! Latency, throughput and bursts of Thalweg between processes, and the other end of probes of plain UDP and TCP.

mod both;
mod probe;

pub use both::{PerfFigures, both, ping, pong, read, write};
pub use probe::ProbeEnd;
pub(crate) use probe::{ProbeEndOrder, serve};
pub use thalweg_lab_station::{
    BurstPublisher, Limit, Measurement, PerfOptions, RoundTripFigures, ThroughputFigures, echo_bursts, serve_bursts,
    until_input_ends,
};
