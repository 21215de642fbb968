//! Latency, throughput and bursts of Thalweg between processes.

mod both;

pub use both::{PerfFigures, both, ping, pong, read, write};
pub use thalweg_lab_station::{
    BurstPublisher, Limit, Measurement, PerfOptions, RoundTripFigures, ThroughputFigures, echo_bursts, serve_bursts,
    until_input_ends,
};
