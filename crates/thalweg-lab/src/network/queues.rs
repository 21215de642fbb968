//! Links of a limited rate: the kernel's token bucket filter (tbf) with a queue before it.

use thalweg_host::{Namespace, NamespaceError};

use super::MarkedShare;
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

/// Limits what leaves by an interface by classes (HTB): one for what is marked, one for all else, each of which may use what the other
/// leaves.
pub(super) fn limit_in_classes(
    place: &Namespace,
    interface: &str,
    (rate_mbit, marked): (f64, MarkedShare),
    link: &LinkPlan,
) -> Result<(), NamespaceError> {
    let bits = |mbit: f64| (mbit * 1e6).round();
    let (all, own) = (bits(rate_mbit), bits(marked.rate_mbit.min(rate_mbit)));
    let others = (all - own).max(bits(LEAST_MBIT));
    let bucket = |bits: f64| ((bits / 8.0 * BUCKET_S) as u64).max(2 * u64::from(link.mtu_bytes + HEADER_BYTES));
    let class = |parent: &str, name: &str, rate: f64, more: &str| {
        let bucket = bucket(all);
        format!(
            "class add dev {interface} parent {parent} classid {name} htb rate {rate}bit ceil {all}bit burst {bucket} cburst {bucket}{more}"
        )
    };
    let queue = |class: &str, bits: f64| {
        let bytes = (bits / 8.0 * link.queue.as_secs_f64()) as u64;
        format!("qdisc add dev {interface} parent {class} bfifo limit {}", bytes.max(bucket(bits)))
    };
    // The code point is the upper six bits of the octet.
    let mark = u32::from(marked.code_point) << 2;
    let steps = [
        format!("qdisc add dev {interface} root handle 1: htb default 20"),
        class("1:", "1:1", all, ""),
        class("1:1", "1:10", own, " prio 0"),
        class("1:1", "1:20", others, " prio 1"),
        queue("1:10", own),
        queue("1:20", others),
        format!("filter add dev {interface} parent 1: protocol ip prio 1 u32 match ip tos {mark} 0xfc flowid 1:10"),
    ];
    steps.iter().try_for_each(|step| place.tc(step).map(drop))
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
/// A class without any rate would never send.
const LEAST_MBIT: f64 = 1.0;
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
