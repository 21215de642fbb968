//! Figures in the text format of OpenMetrics 1.0: of participants, and of anybody else who has some.
#![forbid(unsafe_code)]

mod connection;
mod exposition;
mod participant;
mod server;

pub use exposition::{LabelledValue, counters, gauges, to_open_metrics};
pub use participant::participant_metrics;
pub use prometheus_client::encoding::DescriptorEncoder;
pub use prometheus_client::encoding::NoLabelSet;
pub use prometheus_client::metrics::MetricType;
pub use server::MetricsServer;

#[cfg(test)]
mod tests;
