//! A cell: the link, what goes over it, and where its ends run.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::peer::VideoPeer;

/// A part of the preset: figures and tables of the paper, or something that it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HdtvPart {
    /// Figure 2: throughput against MTU, with and without offload.
    Mtu,
    /// Figure 4: several streams at once.
    Streams,
    /// Figure 5: round trips against size and moderation.
    Rtt,
    /// The ladder: untuned, buffers, MTU, moderation.
    Ladder,
    /// Tables 1 and 2, Figures 6 and 7: the picture against moderation.
    Moderation,
    /// One processor, and all.
    Placement,
    /// The picture beside TCP of standard frames on a shaped link.
    Coexistence,
    /// The same picture by other programs.
    Peers,
    /// The same picture by RTP and as topics.
    Topics,
    /// Bounds of Thalweg's own picture.
    Bounds,
}

impl HdtvPart {
    /// All of them in the order of the page, with their names on the command line.
    pub const ALL: [(HdtvPart, &'static str); 10] = [
        (HdtvPart::Mtu, "mtu"),
        (HdtvPart::Streams, "streams"),
        (HdtvPart::Rtt, "rtt"),
        (HdtvPart::Ladder, "ladder"),
        (HdtvPart::Moderation, "moderation"),
        (HdtvPart::Placement, "placement"),
        (HdtvPart::Coexistence, "coexistence"),
        (HdtvPart::Peers, "peers"),
        (HdtvPart::Topics, "topics"),
        (HdtvPart::Bounds, "bounds"),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        HdtvPart::ALL[self as usize].1
    }

    /// The part of this name.
    pub fn named(name: &str) -> Option<HdtvPart> {
        HdtvPart::ALL.into_iter().find(|(_, known)| *known == name).map(|(part, _)| part)
    }
}

/// What joins the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSetting {
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Who cuts what the sender hands over in one message.
    pub segmenting: Segmenting,
    /// When the receiving host looks at what has arrived.
    pub moderation: ReceiveModeration,
    /// Share of frames that the relay loses, 0 to 1.
    pub loss: f64,
    /// A limit on the rate; missing for none.
    pub shape: Option<LinkShape>,
}

impl LinkSetting {
    /// A link of this MTU and nothing else.
    pub fn of_mtu(mtu_bytes: u32) -> LinkSetting {
        let (segmenting, moderation) = (Segmenting::Device, ReceiveModeration::AsItIs);
        LinkSetting { mtu_bytes, segmenting, moderation, loss: 0.0, shape: None }
    }

    /// Whether the lab's relay stands between the hosts.
    pub fn is_relayed(&self) -> bool {
        self.loss > 0.0 || matches!(self.moderation, ReceiveModeration::Gathered(_))
    }
}

/// Who cuts messages of several segments into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segmenting {
    /// Nobody before the other end: the device takes them whole, as a NIC with the offload does.
    Device,
    /// The kernel, before the device, as for a NIC without the offload.
    Kernel,
    /// The program: it hands over and is handed single packets, as in 2006.
    Program,
}

/// When the receiving host looks at what has arrived; numbers are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveModeration {
    /// The device's default.
    AsItIs,
    /// Polling by timer: `gro_flush_timeout` with `napi_defer_hard_irqs`.
    Polling(u32),
    /// The relay hands frames over so far apart; 0 for at once.
    Gathered(u32),
}

impl fmt::Display for ReceiveModeration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReceiveModeration::AsItIs => f.write_str("as it is"),
            ReceiveModeration::Polling(us) => write!(f, "polling timer {us} µs"),
            ReceiveModeration::Gathered(0) => f.write_str("relay, at once"),
            ReceiveModeration::Gathered(us) => write!(f, "gathered for {us} µs"),
        }
    }
}

/// A limit on what leaves the sending host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkShape {
    /// Megabits a second.
    pub rate_mbit: f64,
    /// Whether the picture has a share of its own.
    pub isolation: Isolation,
}

/// Who shares the rate with whom.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// All wait in one queue.
    None,
    /// What is marked with the code point of the picture has so many megabits a second for itself (HTB).
    Classes(f64),
}

/// What goes over the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HdtvTraffic {
    /// Datagrams as fast as they go, by so many streams.
    Udp {
        /// Streams at the same time.
        streams: u32,
    },
    /// Bytes as fast as they go, by so many streams.
    Tcp {
        /// Streams at the same time.
        streams: u32,
    },
    /// Requests of so many bytes and as large answers, one under way.
    RoundTrips {
        /// Payload bytes.
        bytes: u32,
    },
    /// A picture.
    Picture(PictureCase),
    /// Round trips of small datagrams beside a picture, a stream of TCP, or both.
    Shared {
        /// The picture, where there is one.
        picture: Option<PictureCase>,
        /// Whether TCP sends as fast as it may, in frames of 1500 bytes.
        tcp: bool,
    },
}

impl HdtvTraffic {
    /// Whether it is a probe's alone.
    pub(super) fn is_probe(&self) -> bool {
        matches!(self, HdtvTraffic::Udp { .. } | HdtvTraffic::Tcp { .. } | HdtvTraffic::RoundTrips { .. })
    }

    /// Its picture, where it has one.
    pub fn picture(&self) -> Option<PictureCase> {
        match self {
            HdtvTraffic::Picture(case) => Some(*case),
            HdtvTraffic::Shared { picture, .. } => *picture,
            _ => None,
        }
    }
}

/// How a picture travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PictureCase {
    /// The programs at both ends.
    pub ends: PictureEnds,
    /// MTU that its packets fit.
    pub packet_mtu_bytes: u32,
    /// Whether packets are filled as the paper's are (8,945 bytes), instead of equal.
    pub is_filled: bool,
    /// Bytes of receive buffer that are asked for.
    pub buffer_bytes: u32,
    /// What else the machine computes.
    pub beside: OtherWork,
    /// Frames a second.
    #[serde(default)]
    pub rate: PictureRate,
    /// Whether lost packets are asked for and sent again.
    #[serde(default)]
    pub is_repaired: bool,
    /// Packets that leave together.
    #[serde(default)]
    pub batching: PictureBatching,
}

/// How many of Thalweg's packets leave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureBatching {
    /// What ST 2110-21 allows a wide sender, the default of `thalweg video send`.
    #[default]
    Wide,
    /// What one system call takes.
    Lan,
}

impl fmt::Display for PictureBatching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PictureBatching::Wide => "wide",
            PictureBatching::Lan => "lan",
        })
    }
}

impl PictureCase {
    /// Frames that are sent in so many seconds.
    pub(super) fn frames_in(&self, seconds: f64) -> u64 {
        (seconds * self.rate.per_s()).round().max(1.0) as u64
    }
}

/// Frames a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureRate {
    /// 30000/1001, the paper's.
    #[default]
    Once,
    /// 60000/1001.
    Twice,
}

impl PictureRate {
    /// Frames a second.
    pub(super) fn per_s(self) -> f64 {
        self.numerator() / 1_001.0
    }

    fn numerator(self) -> f64 {
        match self {
            PictureRate::Once => 30_000.0,
            PictureRate::Twice => 60_000.0,
        }
    }
}

impl fmt::Display for PictureRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/1001", self.numerator())
    }
}

/// The programs that send and receive a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PictureEnds {
    /// `thalweg video`, by RTP.
    Thalweg,
    /// Thalweg's topics, best effort.
    BestEffortTopic,
    /// Thalweg's topics, reliable.
    ReliableTopic,
    /// Another project's, by RTP.
    Peer(VideoPeer),
}

impl fmt::Display for PictureEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PictureEnds::Thalweg => f.write_str("Thalweg, RTP"),
            PictureEnds::BestEffortTopic => f.write_str("Thalweg, topic, best effort"),
            PictureEnds::ReliableTopic => f.write_str("Thalweg, topic, reliable"),
            PictureEnds::Peer(peer) => write!(f, "{peer}, RTP"),
        }
    }
}

/// What the machine computes beside a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OtherWork {
    /// Nothing.
    None,
    /// A program without an end for each processor, at the same priority.
    EachCpu,
    /// A compiler for each processor, again and again, at the same priority.
    Compiler,
}

impl fmt::Display for OtherWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OtherWork::None => "nothing else",
            OtherWork::EachCpu => "a busy program for each CPU",
            OtherWork::Compiler => "a compiler for each CPU",
        })
    }
}

/// The processors of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPlacement {
    /// All, as the scheduler likes.
    All,
    /// The first one for both ends.
    One,
    /// The first for the sender, the last for the receiver.
    Apart,
}

/// A cell, which is measured several times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HdtvCell {
    /// The part it belongs to.
    pub part: HdtvPart,
    /// What the page calls it.
    pub label: String,
    /// What joins the hosts.
    pub link: LinkSetting,
    /// What goes over it.
    pub traffic: HdtvTraffic,
    /// Where the ends run.
    pub placement: CpuPlacement,
    /// Length of a run.
    pub seconds: f64,
    /// Whether it takes part in a comparison that gets a verdict, for which it has more runs than others.
    pub is_judged: bool,
}

impl HdtvCell {
    /// Whether its runs take minutes.
    pub fn is_long(&self) -> bool {
        self.seconds >= LONG_S
    }

    /// Whether the page sets a bound of Thalweg's own picture beside it, beyond its verdict.
    pub(super) fn is_bounded(&self) -> bool {
        let is_own = |case: PictureCase| match case.ends {
            PictureEnds::Thalweg => !case.is_repaired,
            ends => ends == PictureEnds::ReliableTopic,
        };
        match self.part {
            HdtvPart::Bounds => true,
            HdtvPart::Topics => self.link.loss >= TOPIC_LOSS && self.traffic.picture().is_some_and(is_own),
            _ => false,
        }
    }

    /// Whether it is what a cell of its part gets its verdict against.
    pub(super) fn is_baseline_of(&self, cell: &HdtvCell) -> bool {
        let is_alike = self.part == cell.part && self.placement == cell.placement && self.seconds == cell.seconds;
        match cell.part {
            HdtvPart::Mtu => {
                let link = LinkSetting { mtu_bytes: STANDARD_MTU, ..cell.link };
                is_alike && self.traffic == cell.traffic && self.link == link
            }
            HdtvPart::Peers | HdtvPart::Topics => {
                is_alike
                    && self.link == cell.link
                    && self.traffic.picture().is_some_and(|case| case.ends == PictureEnds::Thalweg && !case.is_repaired)
            }
            _ => false,
        }
    }
}

impl fmt::Display for HdtvCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part.name(), self.label)
    }
}

/// Ethernet's usual MTU.
pub(super) const STANDARD_MTU: u32 = 1_500;
/// Share of the frames lost at which a topic has a bound.
pub(super) const TOPIC_LOSS: f64 = 0.01;
/// Runs from this length on are told apart from the short ones.
const LONG_S: f64 = 60.0;
