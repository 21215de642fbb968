//! Latency and throughput between two processes.

mod arrivals;
mod both;
mod figures;
mod latency;
mod options;
mod throughput;

pub use arrivals::Arrivals;
pub use both::{Figures, both};
pub use figures::{Cost, LatencyFigures, ReaderEnd, ThroughputFigures, WriterEnd};
pub use latency::{ping, pong};
pub use options::{Limit, Measurement, PerfOptions, Reliability};
pub use throughput::{read, write};
