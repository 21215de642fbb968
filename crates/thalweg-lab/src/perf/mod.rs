//! Latency, throughput and bursts between processes.

mod both;
mod burst;
mod conversation;
mod figures;
mod latency;
mod options;
mod throughput;

pub use both::{Figures, both};
pub use burst::{BurstOptions, burst, echo_bursts};
pub use figures::{Cost, Rates, ReaderEnd, RoundTripFigures, SampleCosts, ThroughputFigures, WriterEnd};
pub use latency::{ping, pong};
pub use options::{Limit, Measurement, PerfOptions};
pub use thalweg_lab_station::ArrivalBitmap;
pub use throughput::{read, write};
