//! Links of a limited rate: the kernel's token bucket filter (tbf) with a queue before it.

use thalweg_host::{Namespace, NamespaceError};

use crate::error::LabError;
use crate::scenario::LinkPlan;

/// Limits what leaves by an interface.
pub(super) fn limit(place: &Namespace, interface: &str, rate_mbit: f64, link: &LinkPlan) -> Result<(), NamespaceError> {
    let bits = (rate_mbit * 1e6).round();
    // The kernel's timer needs two milliseconds at the full rate to keep it; a bucket smaller than a frame passes none.
    let burst = ((bits / 8.0 * BUCKET_S) as u64).max(2 * u64::from(link.mtu_bytes + HEADER_BYTES));
    let queue_us = link.queue.as_micros();
    place.tc(&format!("qdisc add dev {interface} root tbf rate {bits}bit burst {burst} latency {queue_us}us")).map(drop)
}

/// Frames that found the queue of an interface full so far.
pub(super) fn dropped(place: &Namespace, interface: &str) -> Result<u64, LabError> {
    let said = place.tc(&format!("-s -j qdisc show dev {interface}"))?;
    parse(&said).ok_or_else(|| LabError::Here(format!("tc tells no drops of {interface}: {said}")))
}

fn parse(said: &str) -> Option<u64> {
    let queues: serde_json::Value = serde_json::from_str(said).ok()?;
    queues.as_array()?.iter().find(|queue| queue["root"] == true)?["drops"].as_u64()
}

const BUCKET_S: f64 = 0.002;
/// Ethernet's.
const HEADER_BYTES: u32 = 14;

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn drops_are_those_of_the_root() {
        let said = r#"[{"kind":"tbf","handle":"8001:","root":true,"refcnt":2,"options":{"rate":125000},"bytes":90,"drops":7,"overlimits":3}]"#;
        assert_eq!(parse(said), Some(7));
        assert_eq!(parse("[]"), None);
    }
}
