//! What the relay knows of a picture's packets, beside what the receiver counted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::OtherWork;
use super::end::ProcessRole;
use super::run::HdtvRecord;
use crate::network::Hosts;

/// Counts of the packets of a picture by RTP over the relay: those of its payload type to its port. Repetitions, reports and address
/// resolution are none of them, and segments of a joined message are one each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayTruth {
    /// Packets that the sender sent, each once.
    pub sent: u64,
    /// Those of them that came to the relay.
    pub seen: u64,
    /// Those of them that the relay lost by chance.
    pub dropped: u64,
    /// Those of them that it lost between the first and the last one that passed: who loses the first ones knows nothing of them, and of the
    /// last ones only what repetitions tell.
    pub gaps: u64,
    /// Whether what gets lost is repeated, the last packet unasked: then the receiver may know of losses behind the last one that passed.
    #[serde(default)]
    pub is_repaired: bool,
    /// Packets that the receiver got before any repair, by its own count.
    pub received: u64,
    /// Numbers that the receiver missed at first by its own count, recovered or not.
    pub missing: u64,
    /// What got lost in other places, as far as the kernel tells: before the relay, behind it, and at a full receive buffer. While there is
    /// some, the relay does not know what the receiver was to get.
    pub elsewhere: u64,
}

impl RelayTruth {
    /// Whether the relay alone lost something, so that it knows what came.
    pub(super) fn is_known(&self) -> bool {
        self.elsewhere == 0
    }

    /// Packets that the relay let pass.
    pub(super) fn passed(&self) -> u64 {
        self.seen.saturating_sub(self.dropped)
    }

    /// Checks the laws: received = seen − dropped, and missing = gaps, or up to all that was dropped with repetitions, where nothing got lost
    /// in other places; and never more than the relay let pass.
    ///
    /// # Errors
    /// Which one does not hold.
    pub(super) fn check(&self) -> Result<(), String> {
        let RelayTruth { sent, seen, dropped, gaps, received, missing, .. } = *self;
        let passed = self.passed();
        if seen > sent {
            return Err(format!("the relay saw {seen} packets of {sent} that were sent"));
        }
        if received > passed || self.is_known() && received < passed {
            return Err(format!("the receiver counts {received} packets of {passed} that the relay let pass"));
        }
        let missing_max = if self.is_repaired { dropped } else { gaps };
        if self.is_known() && !(gaps..=missing_max).contains(&missing) {
            return Err(format!("the receiver missed {missing} packets of {gaps} that the relay lost in between"));
        }
        Ok(())
    }
}

impl HdtvRecord {
    /// What the relay knows of the picture; `None` where there is no relay, the picture does not travel by our RTP, or other programs
    /// compute: a receiver that they keep from its processor may end before it has read all.
    pub(super) fn truth(&self) -> Option<RelayTruth> {
        let relay = |name: &str| self.relay.get(&format!("relay.host0-host1.{name}"));
        let case = self.cell.traffic.picture().filter(|case| case.beside == OtherWork::None)?;
        let seen = Some(relay("stream_seen")).filter(|seen| *seen > 0)?;
        let said = |role: ProcessRole| self.end(role)?.said.as_ref();
        let (sender, receiver) = said(ProcessRole::PictureSender).zip(said(ProcessRole::PictureReceiver))?;
        let count = |said: &Value, path: &str| said.pointer(path).and_then(Value::as_u64);
        let law = |name: &str| count(receiver, &format!("/law/{name}"));
        let device = |name: &str| self.layers[1].get(&format!("device.{}.{name}", Hosts::INTERFACE));
        let sent = count(sender, "/packets_sent")?;
        // A kernel that does not count what came tells nothing of this step.
        let behind = Some(device("rx_packets")).filter(|came| *came > 0);
        // Older records count packets only, each of which was a message.
        let left = Some(relay("messages")).filter(|left| *left > 0).unwrap_or(relay("forwarded"));
        let behind = behind.map_or(0, |came| left.saturating_sub(came));
        let full = count(receiver, "/layers/rxq_ovfl")?.max(self.layers[1].get("udp.RcvbufErrors"));
        Some(RelayTruth {
            sent,
            seen,
            dropped: relay("stream_dropped"),
            gaps: relay("stream_gaps"),
            is_repaired: case.is_repaired,
            received: law("received")?,
            missing: law("recovered")? + law("lost")? + law("outstanding")?,
            elsewhere: sent.saturating_sub(seen) + relay("refused") + behind.max(device("rx_drop")) + full,
        })
    }
}
