//! The settings of the paper of 2006 (Jo, Seok, Lee, Byeon), and what became of each.

use std::fmt::Write;

use serde::Serialize;

use super::Context;
use crate::figures::grouped;
use crate::stream::StreamProfile;

/// A setting of the paper beside today's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaperSetting {
    /// The paper's name of it.
    pub name: &'static str,
    /// The paper's value.
    pub paper: &'static str,
    /// What does the same today.
    pub today: String,
    /// What this host has.
    pub here: Option<String>,
    /// What the rules of today say about it.
    pub verdict: String,
}

impl PaperSetting {
    pub(crate) fn describe(&self, out: &mut String) {
        let _ = writeln!(out, "\n{} = {}", self.name, self.paper);
        let _ = writeln!(out, "  today     {}", self.today);
        let _ = writeln!(out, "  here      {}", self.here.as_deref().unwrap_or("not shown"));
        let _ = writeln!(out, "  verdict   {}", self.verdict);
    }
}

/// All of them for the profile `paper-2006`, none for others.
pub(crate) fn paper(context: &Context<'_>) -> Vec<PaperSetting> {
    if context.stream.profile != StreamProfile::Paper2006 {
        return Vec::new();
    }
    let sysctl = |name: &str| context.system.setting(name).map(str::to_owned);
    let row = |name, paper, today: &str, here, verdict: String| PaperSetting {
        name,
        paper,
        today: today.to_owned(),
        here,
        verdict,
    };
    let ask = context.numbers.receive_buffer_ask();
    let moderation =
        context.system.nic.as_ref().and_then(|nic| nic.coalescing).map(|now| {
            format!("rx-usecs {}, adaptive-rx {}", now.rx_usecs, if now.adaptive_rx { "on" } else { "off" })
        });
    let bus = context.system.device.as_ref().and_then(|device| device.bus).map(|bus| format!("{bus:?}"));
    vec![
        row("net.core.rmem_max, wmem_max", "128388607", "SO_RCVBUF by the stream, net.core.rmem_max as its cap", sysctl("net.core.rmem_max"),
            format!(
                "the paper's own rule, 1.25 MB · round trip in ms, gives this at 103 ms, and its hosts had one switch between them; \
                 bandwidth · delay is TCP's rule. This stream needs {} B, by its rate and the reader's stall",
                grouped(ask)
            )),
        row("net.core.rmem_default, wmem_default", "262144", "left alone", sysctl("net.core.rmem_default"),
            "it changes every socket of the host; programs ask for what they need".to_owned()),
        row("net.core.optmem_max", "524288", "left alone (131072 since Linux 6.7)", sysctl("net.core.optmem_max"),
            "it bounds control messages and filters, not data: without effect on this stream".to_owned()),
        row("net.core.netdev_max_backlog", "300000", "NAPI polls; the backlog serves loopback, veth pairs and RPS", sysctl("net.core.netdev_max_backlog"),
            format!(
                "at 17,300 packets/s it would hold 17 s of video; softnet_stat counts {} drops here",
                grouped(context.system.counters.get("softnet.dropped"))
            )),
        row("txqueuelen", "9000", "a queueing discipline of bounded delay (fq, fq_codel), and pacing",
            context.system.device.as_ref().and_then(|device| device.queue_packets).map(|packets| packets.to_string()),
            "9,000 packets of 9,000 B are 65 ms at 10 Gbit/s: two frames of delay for the sake of none lost".to_owned()),
        row("MTU", "9000 (9180 on the switch)", "GSO and GRO give most of it at 1500; jumbo frames where the whole path has them",
            context.system.device.as_ref().and_then(|device| device.mtu_bytes).map(|mtu| mtu.to_string()),
            format!(
                "a datagram of 8,945 B is charged {} B; 7,226 B (the plan of `video`) is charged less than a fifth above its bytes, \
                 since the kernel's memory comes in powers of two",
                grouped(context.measured.charge_bytes)
            )),
        row("interrupt coalescing", "100–200 µs, static", "ethtool -C rx-usecs, adaptive-rx off", moderation,
            "two to four packet times of 57.8 µs; it is a property of that adapter, and batches of the sender (GSO) do the same".to_owned()),
        row("MMRBC", "2048 (PCI-X)", "MaxReadReq of PCI Express, set by firmware and driver", bus,
            "a bus of 8.5 Gbit/s was the paper's limit; a lane of today carries more".to_owned()),
        row("hyper-threading", "off", "sender and receiver on different cores", context.system.processors.siblings.clone(),
            "off by default in the paper although on it lowered the load by 3 to 7 %".to_owned()),
        row("kernel", "2.6.11.3 SMP", "a kernel with recvmmsg, UDP_SEGMENT and UDP_GRO (5.0)", sysctl("kernel.osrelease"),
            "what halved the load since is batches, which that kernel did not have".to_owned()),
    ]
}
