//! Latency and throughput between two processes.

mod arrivals;
mod figures;

pub use arrivals::Arrivals;
pub use figures::{Cost, LatencyFigures, ReaderEnd, ThroughputFigures, WriterEnd};
