//! Families of figures with labels.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// Labels and the value.
pub type LabelledValue<'a, V> = (Vec<(&'a str, &'a str)>, V);

/// Everything that `encode` writes as one exposition; its names begin with `prefix` and an underscore.
pub fn to_open_metrics(
    prefix: &str,
    encode: impl Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
) -> String {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Exposition(Box::new(encode))));
    let mut exposition = String::new();
    // A text takes whatever is written.
    let _ = text::encode(&mut exposition, &registry);
    exposition
}

/// Writes figures.
type Encode = dyn Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync;

struct Exposition(Box<Encode>);

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exposition")
    }
}

impl Collector for Exposition {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        (self.0)(&mut encoder)
    }
}

/// A family of counts that only grow.
///
/// # Errors
/// When the text takes no more.
pub fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    lines: &[LabelledValue<'_, u64>],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in lines {
        metric.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(value, None)?;
    }
    Ok(())
}

/// A family of values that go up and down.
///
/// # Errors
/// As [`counters`].
pub fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    lines: &[LabelledValue<'_, f64>],
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in lines {
        metric.encode_family(labels)?.encode_gauge(value)?;
    }
    Ok(())
}
