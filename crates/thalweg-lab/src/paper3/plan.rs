//! The plan: the paper's cells and further ones, numbers and lengths of runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cell::{
    CpuPlacement, HdtvCell, HdtvPart, HdtvTraffic, Isolation, LinkSetting, LinkShape, OtherWork, PictureBatching,
    PictureCase, PictureEnds, PictureRate, ReceiveModeration, STANDARD_MTU, Segmenting, TOPIC_LOSS,
};
use super::peer::VideoPeer;
use super::site::HdtvSite;
use crate::length::Length;
use crate::preset::{PresetPlan, PresetTerms};

/// The extent of the measurement, and its contenders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper3Plan {
    /// How many and how long cells are.
    pub form: Length,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Runs of each cell that gets a verdict or has a bound; other pictures have three at most, other probes two, those of minutes one.
    pub runs: u32,
    /// Factor on lengths of runs and on lines of the picture, above 0 and at most 1; smaller ones are for tests of the preset itself.
    pub scale: f64,
    /// Parts that are made.
    pub parts: Vec<HdtvPart>,
    /// Peers that take part.
    pub peers: Vec<VideoPeer>,
    /// What the machine has.
    pub site: HdtvSite,
}

impl Paper3Plan {
    /// All cells of a form, with all peers.
    pub fn new(form: Length, seed: u64, site: HdtvSite) -> Paper3Plan {
        Paper3Plan {
            form,
            seed,
            runs: if form == Length::Quick { 1 } else { 9 },
            scale: 1.0,
            parts: HdtvPart::ALL.map(|(part, _)| part).to_vec(),
            peers: VideoPeer::ALL.to_vec(),
            site,
        }
    }

    fn is_quick(&self) -> bool {
        self.form == Length::Quick
    }

    fn of_form<T>(&self, quick: T, usual: T) -> T {
        if self.is_quick() { quick } else { usual }
    }

    /// Lines of the picture.
    pub(super) fn lines(&self) -> u16 {
        // Two fields of whole lines, and enough lines for the packets to be those of high definition.
        let lines = (f64::from(PICTURE.1) * self.scale / 2.0).round() as u16 * 2;
        lines.max(LINES_MIN)
    }

    /// Pixels of the picture in a line, and lines.
    pub(super) fn size(&self) -> (u16, u16) {
        (PICTURE.0, self.lines())
    }

    /// Octets of the picture in a frame: ten bits, 4:2:2.
    pub(super) fn frame_octets(&self) -> u64 {
        u64::from(PICTURE.0) * u64::from(self.lines()) * 5 / 2
    }

    /// Megabits of the picture a second.
    pub(super) fn picture_mbit(&self) -> f64 {
        self.frame_octets() as f64 * 8e-6 * PictureRate::Once.per_s()
    }

    fn cells_of(&self, part: HdtvPart) -> Vec<HdtvCell> {
        match part {
            HdtvPart::Mtu => self.mtu_cells(),
            HdtvPart::Streams => self.stream_cells(),
            HdtvPart::Rtt => self.trip_cells(),
            HdtvPart::Ladder => self.ladder_cells(),
            HdtvPart::Moderation => self.moderation_cells(),
            HdtvPart::Placement => self.placement_cells(),
            HdtvPart::Coexistence => self.shared_cells(),
            HdtvPart::Peers => self.peer_cells(),
            HdtvPart::Topics => self.topic_cells(),
            HdtvPart::Bounds => self.bound_cells(),
        }
    }

    fn cell(&self, part: HdtvPart, label: String, link: LinkSetting, traffic: HdtvTraffic) -> HdtvCell {
        let (placement, is_judged) = (CpuPlacement::All, false);
        HdtvCell { part, label, link, traffic, placement, seconds: self.seconds(3.0, 10.0), is_judged }
    }

    /// The length of a run, scaled.
    fn seconds(&self, quick: f64, usual: f64) -> f64 {
        (self.of_form(quick, usual) * self.scale).max(SHORTEST_S)
    }

    /// The streams of a probe have a processor at each end where there are two.
    fn probing(&self, part: HdtvPart, label: String, link: LinkSetting, traffic: HdtvTraffic) -> HdtvCell {
        let placement = if self.site.cpus > 1 { CpuPlacement::Apart } else { CpuPlacement::All };
        HdtvCell { placement, seconds: self.seconds(2.0, 10.0), ..self.cell(part, label, link, traffic) }
    }

    fn mtu_cells(&self) -> Vec<HdtvCell> {
        let mtus: &[u32] =
            self.of_form(&[STANDARD_MTU, JUMBO_MTU], &[STANDARD_MTU, 3_000, 6_000, 8_000, 8_160, JUMBO_MTU, 9_180]);
        let kinds = [
            ("UDP, offload", Segmenting::Device, HdtvTraffic::Udp { streams: 1 }),
            ("UDP, cut by the kernel", Segmenting::Kernel, HdtvTraffic::Udp { streams: 1 }),
            ("UDP, packet by packet", Segmenting::Program, HdtvTraffic::Udp { streams: 1 }),
            ("TCP, offload", Segmenting::Device, HdtvTraffic::Tcp { streams: 1 }),
            ("TCP, cut by the kernel", Segmenting::Kernel, HdtvTraffic::Tcp { streams: 1 }),
        ];
        let mut out = Vec::new();
        for (name, segmenting, traffic) in kinds {
            // What the kernel cuts is of interest beside the other two, at the ends.
            let is_wanted = |mtu: &&u32| segmenting != Segmenting::Kernel || ENDS.contains(mtu);
            for mtu in mtus.iter().filter(is_wanted) {
                let link = LinkSetting { segmenting, ..LinkSetting::of_mtu(*mtu) };
                out.push(self.probing(HdtvPart::Mtu, format!("{name}, MTU {mtu}"), link, traffic));
            }
        }
        out
    }

    fn stream_cells(&self) -> Vec<HdtvCell> {
        let most = u32::try_from(4 * self.site.cpus).unwrap_or(8).clamp(4, 32);
        let counts = [1, 2, 4, 8, 16, 32].into_iter().filter(|count| *count <= self.of_form(2, most));
        let link = LinkSetting::of_mtu(JUMBO_MTU);
        let cells = |streams: u32| {
            let of = |name: &str, traffic| HdtvCell {
                placement: CpuPlacement::All,
                ..self.probing(HdtvPart::Streams, format!("{name}, {streams} streams"), link, traffic)
            };
            [of("UDP", HdtvTraffic::Udp { streams }), of("TCP", HdtvTraffic::Tcp { streams })]
        };
        counts.flat_map(cells).collect()
    }

    fn trip_cells(&self) -> Vec<HdtvCell> {
        let sizes: &[u32] = self.of_form(&[64, 5_120], &[64, 1_024, 3_072, 5_120, 7_168, 8_192]);
        let moderations = [
            ReceiveModeration::AsItIs,
            ReceiveModeration::Polling(100),
            ReceiveModeration::Gathered(0),
            ReceiveModeration::Gathered(50),
            ReceiveModeration::Gathered(100),
        ];
        let mut out = Vec::new();
        for moderation in moderations {
            let link = LinkSetting { moderation, ..LinkSetting::of_mtu(JUMBO_MTU) };
            for bytes in sizes {
                let label = format!("{moderation}, {bytes} B");
                let cell = self.probing(HdtvPart::Rtt, label, link, HdtvTraffic::RoundTrips { bytes: *bytes });
                out.push(HdtvCell { seconds: self.seconds(1.0, 3.0), ..cell });
            }
        }
        out
    }

    /// The paper's steps one by one, alone and beside programs that compute, and the first one for five minutes. The further ones take as
    /// long among the cells of the moderation.
    fn ladder_cells(&self) -> Vec<HdtvCell> {
        let untuned = PictureCase { buffer_bytes: DEBIAN_BUFFER, ..self.paper_picture(STANDARD_MTU) };
        let jumbo = LinkSetting::of_mtu(JUMBO_MTU);
        let moderated = LinkSetting { moderation: ReceiveModeration::Gathered(100), ..jumbo };
        let steps = [
            ("untuned", LinkSetting::of_mtu(STANDARD_MTU), untuned),
            ("+ buffer", LinkSetting::of_mtu(STANDARD_MTU), self.paper_picture(STANDARD_MTU)),
            ("+ MTU 9000", jumbo, self.paper_picture(JUMBO_MTU)),
            ("+ moderation 100 µs", moderated, self.paper_picture(JUMBO_MTU)),
        ];
        let mut out = Vec::new();
        for (beside, what) in [(OtherWork::None, "alone"), (OtherWork::EachCpu, "beside a busy program for each CPU")] {
            for (name, link, case) in steps {
                let traffic = HdtvTraffic::Picture(PictureCase { beside, ..case });
                out.push(self.cell(HdtvPart::Ladder, format!("{name}, {what}"), link, traffic));
            }
        }
        if !self.is_quick() {
            let (name, link, case) = steps[0];
            let cell = self.cell(HdtvPart::Ladder, format!("{name}, five minutes"), link, HdtvTraffic::Picture(case));
            out.push(HdtvCell { seconds: self.seconds(FIVE_MINUTES, FIVE_MINUTES), ..cell });
        }
        out
    }

    fn moderation_cells(&self) -> Vec<HdtvCell> {
        let ends = [PAPER_TIMERS[1], PAPER_TIMERS[4]];
        let timers: &[u32] = self.of_form(&ends, &PAPER_TIMERS);
        let all = [ReceiveModeration::AsItIs, ReceiveModeration::Gathered(0)]
            .into_iter()
            .chain(timers.iter().map(|us| ReceiveModeration::Gathered(*us)))
            .chain(ends.map(ReceiveModeration::Polling));
        let of = |moderation: ReceiveModeration, what: &str| {
            let link = LinkSetting { moderation, ..LinkSetting::of_mtu(JUMBO_MTU) };
            let traffic = HdtvTraffic::Picture(self.paper_picture(JUMBO_MTU));
            self.cell(HdtvPart::Moderation, format!("{moderation}{what}"), link, traffic)
        };
        let mut out: Vec<HdtvCell> = all.map(|moderation| of(moderation, "")).collect();
        if !self.is_quick() {
            let long = PAPER_TIMERS.map(ReceiveModeration::Gathered);
            for moderation in [ReceiveModeration::AsItIs].into_iter().chain(long) {
                let cell = of(moderation, ", five minutes");
                out.push(HdtvCell { seconds: self.seconds(FIVE_MINUTES, FIVE_MINUTES), ..cell });
            }
        }
        out
    }

    fn placement_cells(&self) -> Vec<HdtvCell> {
        let mut out = Vec::new();
        for mtu in ENDS {
            for (placement, name) in [(CpuPlacement::One, "one CPU"), (CpuPlacement::All, "all CPUs")] {
                let traffic = HdtvTraffic::Picture(self.our_picture(mtu));
                let cell =
                    self.cell(HdtvPart::Placement, format!("{name}, MTU {mtu}"), LinkSetting::of_mtu(mtu), traffic);
                out.push(HdtvCell { placement, ..cell });
            }
        }
        out
    }

    /// A link of a third more than the picture, whose class has a tenth more.
    fn shared_cells(&self) -> Vec<HdtvCell> {
        let rate_mbit = (self.picture_mbit() * 1.3).ceil();
        let classes = Isolation::Classes((self.picture_mbit() * 1.1).ceil());
        let of = |name: String, isolation, picture, tcp| {
            let link =
                LinkSetting { shape: Some(LinkShape { rate_mbit, isolation }), ..LinkSetting::of_mtu(JUMBO_MTU) };
            self.cell(HdtvPart::Coexistence, name, link, HdtvTraffic::Shared { picture, tcp })
        };
        let mut out = vec![of("TCP alone".to_owned(), Isolation::None, None, true)];
        for mtu in ENDS {
            let picture = Some(self.our_picture(mtu));
            out.push(of(format!("picture in packets of {mtu} alone"), Isolation::None, picture, false));
            out.push(of(format!("picture in packets of {mtu} and TCP, one queue"), Isolation::None, picture, true));
            out.push(of(format!("picture in packets of {mtu} and TCP, classes"), classes, picture, true));
        }
        out
    }

    fn peer_cells(&self) -> Vec<HdtvCell> {
        let all: Vec<PictureEnds> =
            [PictureEnds::Thalweg].into_iter().chain(self.peers.iter().copied().map(PictureEnds::Peer)).collect();
        let of_mtu = |mtu: u32| {
            let cell = move |ends: &PictureEnds| {
                let traffic = HdtvTraffic::Picture(PictureCase { ends: *ends, ..self.our_picture(mtu) });
                let cell = self.cell(HdtvPart::Peers, format!("{ends}, MTU {mtu}"), LinkSetting::of_mtu(mtu), traffic);
                HdtvCell { seconds: self.seconds(3.0, 8.0), ..cell }
            };
            all.iter().map(cell).collect::<Vec<HdtvCell>>()
        };
        ENDS.into_iter().flat_map(of_mtu).collect()
    }

    fn topic_cells(&self) -> Vec<HdtvCell> {
        let [plain, lossy] = [0.0, TOPIC_LOSS].map(|loss| ENDS.map(|mtu| (mtu, loss)));
        let usual = [plain[0], lossy[0], plain[1], (JUMBO_MTU, 0.001), lossy[1]];
        let mut out = Vec::new();
        for (mtu, loss) in self.of_form(&[plain[0], lossy[1]][..], &usual) {
            let lost = if *loss > 0.0 { format!(", {} % of the frames lost", loss * 100.0) } else { String::new() };
            let mut add = |how: &str, case: PictureCase| {
                let link = LinkSetting { loss: *loss, ..LinkSetting::of_mtu(*mtu) };
                let label = format!("{}{how}, MTU {mtu}{lost}", case.ends);
                let cell = self.cell(HdtvPart::Topics, label, link, HdtvTraffic::Picture(case));
                out.push(HdtvCell { seconds: self.seconds(3.0, 6.0), ..cell });
            };
            let ours = self.our_picture(*mtu);
            add("", ours);
            // A best-effort topic loses a frame with any of its packets, as MTU 9000 shows.
            if *mtu > STANDARD_MTU || *loss == 0.0 {
                add("", PictureCase { ends: PictureEnds::BestEffortTopic, ..ours });
            }
            add("", PictureCase { ends: PictureEnds::ReliableTopic, ..ours });
            if *loss == TOPIC_LOSS {
                let case = PictureCase { is_repaired: true, batching: PictureBatching::Lan, ..ours };
                add(", repaired, batching lan", case);
            }
        }
        out
    }

    /// What the other parts do not measure of Thalweg's own picture.
    fn bound_cells(&self) -> Vec<HdtvCell> {
        let of = |label: &str, link: LinkSetting, case: PictureCase| {
            self.cell(HdtvPart::Bounds, label.to_owned(), link, HdtvTraffic::Picture(case))
        };
        let (standard, jumbo) = (LinkSetting::of_mtu(STANDARD_MTU), LinkSetting::of_mtu(JUMBO_MTU));
        let once = PictureCase { batching: PictureBatching::Lan, ..self.our_picture(STANDARD_MTU) };
        let twice = PictureCase { rate: PictureRate::Twice, ..once };
        let repaired = PictureCase { is_repaired: true, ..self.our_picture(JUMBO_MTU) };
        let repaired = of("5 % of the frames lost, repaired, MTU 9000", LinkSetting { loss: 0.05, ..jumbo }, repaired);
        let mut out = vec![
            of("batching lan, MTU 1500", standard, once),
            of("batching lan, MTU 9000", jumbo, PictureCase { packet_mtu_bytes: JUMBO_MTU, ..once }),
            of("59.94 Hz, batching lan, MTU 1500", standard, twice),
            // A thousandth of the frames of ten seconds is less than one; more than twice as many do not fit.
            HdtvCell { seconds: self.seconds(3.0, 20.0), ..repaired },
        ];
        if !self.is_quick() {
            let beside = if self.site.compiler.is_some() { OtherWork::Compiler } else { OtherWork::EachCpu };
            let case = PictureCase { beside, ..self.our_picture(STANDARD_MTU) };
            let cell = of(&format!("MTU 1500 beside {beside}, five minutes"), standard, case);
            out.push(HdtvCell { seconds: self.seconds(FIVE_MINUTES, FIVE_MINUTES), ..cell });
        }
        out
    }

    /// A picture in equal packets, received with the buffer that the program asks for.
    fn our_picture(&self, packet_mtu_bytes: u32) -> PictureCase {
        PictureCase {
            ends: PictureEnds::Thalweg,
            packet_mtu_bytes,
            is_filled: false,
            buffer_bytes: LARGE_BUFFER,
            beside: OtherWork::None,
            rate: PictureRate::Once,
            is_repaired: false,
            batching: PictureBatching::Wide,
        }
    }

    /// The same in filled packets, as the paper's.
    fn paper_picture(&self, packet_mtu_bytes: u32) -> PictureCase {
        PictureCase { is_filled: true, ..self.our_picture(packet_mtu_bytes) }
    }

    /// Whether a cell takes part in a comparison that gets a verdict: the ends of Figure 2, other programs, and topics without loss.
    fn is_judged(&self, cell: &HdtvCell, all: &[HdtvCell]) -> bool {
        let is_meant = match cell.part {
            HdtvPart::Mtu => ENDS.contains(&cell.link.mtu_bytes) && cell.link.segmenting != Segmenting::Kernel,
            HdtvPart::Peers => !self.peers.is_empty(),
            HdtvPart::Topics => cell.link.loss == 0.0,
            _ => false,
        };
        is_meant && !self.is_quick() && all.iter().any(|one| one.is_baseline_of(cell))
    }
}

impl PresetPlan for Paper3Plan {
    type Cell = HdtvCell;
    type Part = HdtvPart;
    type Peer = VideoPeer;

    const NAME: &'static str = "paper3";
    const RESULT_SCHEMA: &'static str = "thalweg.paper3/2";

    fn terms(&self) -> PresetTerms {
        let budget = Some(if self.is_quick() { QUICK_BUDGET } else { USUAL_BUDGET });
        PresetTerms { seed: self.seed, runs: self.runs, scale: self.scale, is_quick: self.is_quick(), budget }
    }

    fn fault(&self) -> Option<&'static str> {
        if !(self.scale > 0.0 && self.scale <= 1.0 && self.runs > 0) {
            return Some("scale has to be above 0 and at most 1, runs at least 1");
        }
        if self.form == Length::Full {
            return Some("form has to be quick or usual");
        }
        (self.parts == [HdtvPart::Peers] && self.peers.is_empty())
            .then_some("the part peers compares with other programs, and none takes part")
    }

    fn with_seed(self, seed: u64) -> Paper3Plan {
        Paper3Plan { seed, ..self }
    }

    fn peers(&self) -> &[VideoPeer] {
        &self.peers
    }

    fn with_peers(self, peers: Vec<VideoPeer>) -> Paper3Plan {
        Paper3Plan { peers, ..self }
    }

    /// All cells, in the order of the page.
    fn cells(&self) -> Vec<HdtvCell> {
        let cells: Vec<HdtvCell> = self.parts.iter().flat_map(|part| self.cells_of(*part)).collect();
        cells.iter().map(|cell| HdtvCell { is_judged: self.is_judged(cell, &cells), ..cell.clone() }).collect()
    }

    /// How many runs a cell has.
    fn runs_of(&self, cell: &HdtvCell) -> u32 {
        match cell {
            _ if cell.is_long() => 1,
            _ if cell.is_judged || cell.is_bounded() => self.runs,
            _ if cell.traffic.is_probe() => self.runs.min(PROBE_RUNS),
            _ => self.runs.min(UNJUDGED_RUNS),
        }
    }

    /// How long a run takes, with its hosts and programs.
    fn seconds_of(&self, cell: &HdtvCell) -> f64 {
        let around = match cell.traffic {
            traffic if traffic.is_probe() => PROBE_AROUND_S,
            HdtvTraffic::Picture(PictureCase {
                ends: PictureEnds::BestEffortTopic | PictureEnds::ReliableTopic,
                ..
            }) => TOPIC_AROUND_S,
            _ => PICTURE_AROUND_S,
        };
        cell.seconds + around
    }

    fn part_of(cell: &HdtvCell) -> HdtvPart {
        cell.part
    }

    fn left_out(&self) -> Vec<String> {
        let has = |part: HdtvPart| self.parts.contains(&part);
        let mut out = Vec::new();
        if !self.site.has_namespaces {
            out.push(
                "everything: hosts need root, which alone may make network namespaces; run this with sudo".to_owned(),
            );
        }
        if has(HdtvPart::Mtu) {
            out.push(
                "Figure 3 (MMRBC): hosts of one machine have no PCI-X; `thalweg advisor advise --profile paper-2006` shows a NIC's reads"
                    .to_owned(),
            );
        }
        if has(HdtvPart::Moderation) || has(HdtvPart::Rtt) {
            let nics = match self.site.nics.as_slice() {
                [] => "this machine has no NIC".to_owned(),
                nics => format!("the NICs {} are left alone, since no second host is joined to them", nics.join(", ")),
            };
            out.push(format!(
                "`ethtool -C rx-usecs`: a veth has no interrupts, and {nics}; its place take the polling timer and a relay that gathers frames"
            ));
        }
        if has(HdtvPart::Peers) {
            out.push(
                "UltraGrid, the paper's program: Debian has no package of it, and no other RTP program reads its payload".to_owned(),
            );
        }
        if has(HdtvPart::Bounds) && !self.is_quick() && self.site.compiler.is_none() {
            out.push("a compiler beside the picture: there is no `cc` here; busy programs take its place".to_owned());
        }
        if has(HdtvPart::Placement) && self.site.cpus < 2 {
            out.push("all CPUs beside one: this machine has one".to_owned());
        }
        out
    }

    /// The command that repeats the plan, its order of runs included.
    fn command(&self) -> String {
        let usual = Paper3Plan::new(self.form, self.seed, self.site.clone());
        let list = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(",") };
        let parts = list(self.parts.iter().map(|part| part.name()).collect());
        let peers = list(self.peers.iter().map(|peer| peer.name()).collect());
        let changed = [
            (self.parts != usual.parts, format!(" --parts {parts}")),
            (self.peers != usual.peers, format!(" --peers {peers}")),
            (self.runs != usual.runs, format!(" --runs {}", self.runs)),
            (self.scale != usual.scale, format!(" --scale {}", self.scale)),
        ];
        let words = changed.into_iter().filter_map(|(is_changed, words)| is_changed.then_some(words));
        format!("thalweg lab run paper3{} --seed {}{}", self.form.option(), self.seed, words.collect::<String>())
    }
}

/// Pixels of a line and lines of the paper's picture.
const PICTURE: (u16, u16) = (1920, 1080);
/// A picture of fewer lines has no room for what the test picture tells.
const LINES_MIN: u16 = 36;
pub(super) const JUMBO_MTU: u32 = 9_000;
/// The MTUs that the paper compares first.
const ENDS: [u32; 2] = [STANDARD_MTU, JUMBO_MTU];
/// The paper's static timers in microseconds.
pub(super) const PAPER_TIMERS: [u32; 5] = [50, 100, 200, 400, 800];
/// What a program gets that asks for nothing: half of Linux's `net.core.rmem_default`, which the kernel doubles.
pub(super) const DEBIAN_BUFFER: u32 = 106_496;
/// What `thalweg video recv` asks for.
const LARGE_BUFFER: u32 = 32 << 20;
const FIVE_MINUTES: f64 = 300.0;
/// Runs of a cell without a verdict.
const UNJUDGED_RUNS: u32 = 3;
/// The same of a probe alone: no single run of it denies that nothing is lost.
const PROBE_RUNS: u32 = 2;
/// Making hosts and starting programs: 0.15 s on two processors.
const PROBE_AROUND_S: f64 = 0.4;
/// The playout delay and the last reports as well: 0.3 s, and 1.1 s beside probes.
const PICTURE_AROUND_S: f64 = 1.0;
/// A subscriber waits for two seconds for another frame.
const TOPIC_AROUND_S: f64 = 2.5;
/// No part of a run is shorter, however small the scale: windows of a second need two of them.
const SHORTEST_S: f64 = 0.5;
const QUICK_BUDGET: Duration = Duration::from_secs(570);
/// Three minutes of the two hours are left for the last run and the page.
const USUAL_BUDGET: Duration = Duration::from_secs(117 * 60);
