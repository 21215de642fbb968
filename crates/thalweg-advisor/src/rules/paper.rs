//! The settings of the paper of 2006 (Jo, Seok, Lee, Byeon), and what became of each.

use std::fmt::Write;

use serde::Serialize;
use thalweg_host::BusReads;

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
    let mut rows = Vec::from(memory(context));
    rows.extend(queues(context));
    rows.extend(interface(context));
    rows.extend(processors(context));
    rows
}

fn memory(context: &Context<'_>) -> [PaperSetting; 3] {
    let sysctl = |name: &str| context.system.setting(name).map(str::to_owned);
    [
        PaperSetting {
            name: "net.core.rmem_max, wmem_max",
            paper: "128388607",
            today: "SO_RCVBUF by the stream, net.core.rmem_max as its cap".to_owned(),
            here: sysctl("net.core.rmem_max"),
            verdict: format!(
                "the paper's own rule, 1.25 MB · round trip in ms, gives this at 103 ms, and its hosts had one switch \
                 between them; bandwidth · delay is TCP's rule. This stream needs {} B, by its rate and the reader's stall",
                grouped(context.numbers.receive_buffer_ask())
            ),
        },
        PaperSetting {
            name: "net.core.rmem_default, wmem_default",
            paper: "262144",
            today: "left alone".to_owned(),
            here: sysctl("net.core.rmem_default"),
            verdict: "it changes every socket of the host; programs ask for what they need".to_owned(),
        },
        PaperSetting {
            name: "net.core.optmem_max",
            paper: "524288",
            today: "left alone (131072 since Linux 6.8)".to_owned(),
            here: sysctl("net.core.optmem_max"),
            verdict: "it bounds control messages and filters, not data: without effect on this stream".to_owned(),
        },
    ]
}

fn queues(context: &Context<'_>) -> [PaperSetting; 2] {
    let device = context.system.device.as_ref();
    [
        PaperSetting {
            name: "net.core.netdev_max_backlog",
            paper: "300000",
            today: "NAPI polls; the backlog serves loopback, veth pairs and RPS".to_owned(),
            here: context.system.setting("net.core.netdev_max_backlog").map(str::to_owned),
            verdict: format!(
                "at 17,300 packets/s it would hold 17 s of video; softnet_stat counts {} drops here",
                grouped(context.system.counters.get("softnet.dropped"))
            ),
        },
        PaperSetting {
            name: "txqueuelen",
            paper: "9000",
            today: "a queueing discipline of bounded delay (fq, fq_codel), and pacing".to_owned(),
            here: device.and_then(|device| device.queue_packets).map(|packets| packets.to_string()),
            verdict: "9,000 packets of 9,000 B are 65 ms at 10 Gbit/s: two frames of delay for the sake of none lost"
                .to_owned(),
        },
    ]
}

fn interface(context: &Context<'_>) -> [PaperSetting; 3] {
    let device = context.system.device.as_ref();
    let moderation = context.system.nic.as_ref().and_then(|nic| nic.coalescing);
    [
        PaperSetting {
            name: "MTU",
            paper: "9000 (9180 on the switch)",
            today: "GSO and GRO give most of it at 1500; jumbo frames where the whole path has them".to_owned(),
            here: device.and_then(|device| device.mtu_bytes).map(|mtu| mtu.to_string()),
            verdict: format!(
                "a datagram of 8,945 B is charged {} B; 7,226 B (the plan of `video`) is charged less than a fifth above \
                 its bytes, since the kernel's memory comes in powers of two",
                grouped(context.measured.charge_bytes)
            ),
        },
        PaperSetting {
            name: "interrupt coalescing",
            paper: "100–200 µs, static",
            today: "ethtool -C rx-usecs, adaptive-rx off".to_owned(),
            here: moderation.map(|now| {
                format!("rx-usecs {}, adaptive-rx {}", now.rx_usecs, if now.adaptive_rx { "on" } else { "off" })
            }),
            verdict:
                "two to four packet times of 57.8 µs; it is a property of that adapter, and batches of the sender \
                      (GSO) do the same"
                    .to_owned(),
        },
        PaperSetting {
            name: "MMRBC",
            paper: "2048 (PCI-X)",
            today: "MaxReadReq of PCI Express, set by firmware and driver".to_owned(),
            here: device.and_then(|device| device.bus).map(|bus| match bus {
                BusReads::PciX { bytes } => format!("{bytes} (PCI-X)"),
                BusReads::PciExpress { bytes, .. } => format!("{bytes} (PCI Express)"),
            }),
            verdict: "a bus of 8.5 Gbit/s was the paper's limit; a lane or two of today carry more".to_owned(),
        },
    ]
}

fn processors(context: &Context<'_>) -> [PaperSetting; 2] {
    [
        PaperSetting {
            name: "hyper-threading",
            paper: "off",
            today: "sender and receiver on different cores".to_owned(),
            here: context.system.processors.siblings.clone(),
            verdict: "off by default in the paper although on it lowered the load by 3 to 7 %".to_owned(),
        },
        PaperSetting {
            name: "kernel",
            paper: "2.6.11.3 SMP",
            today: "a kernel with recvmmsg, UDP_SEGMENT and UDP_GRO (5.0)".to_owned(),
            here: context.system.setting("kernel.osrelease").map(str::to_owned),
            verdict: "that kernel had no batches: each datagram crossed it alone".to_owned(),
        },
    ]
}
