//! One run: two hosts, their programs, and what these told.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thalweg_host::{Namespace, monotonic_nanos};

use super::cell::{
    CpuPlacement, HdtvCell, HdtvTraffic, Isolation, LinkShape, PictureCase, PictureEnds, ReceiveModeration, Segmenting,
};
use super::commands::{self, PictureWay};
use super::end::{EndRecord, LOOK_PERIOD, ProcessRole, RunningEnd, Speech};
use super::load::OtherPrograms;
use super::moderation;
use super::peer::VideoPeer;
use super::plan::Paper3Plan;
use super::topics::TopicOrder;
use crate::error::LabError;
use crate::host::{Conditions, ConditionsWatch, HostFiles, Layers};
use crate::network::{HostPair, Hosts, MarkedShare, Relay, RelayedStream, pair_addresses};
use crate::perf::ProbeEnd;
use crate::process::{Launcher, Stop, Supervised, tie_to_input};
use crate::scenario::{Impairment, LinkPlan, Switch};
use crate::worker::Order;

/// Settings of runs.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Paper3Plan,
    pub(super) launcher: &'a Launcher,
    pub(super) stop: &'a Stop,
    /// A frame as it lies in packets.
    pub(super) frame: &'a Path,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HdtvRecord {
    pub(super) cell: HdtvCell,
    pub(super) round: u32,
    /// When it began, on the host's monotonic clock.
    pub(super) origin_ns: u64,
    pub(super) ends: Vec<EndRecord>,
    /// Counters of the sending and of the receiving host, both from zero.
    pub(super) layers: [Layers; 2],
    /// Counters of the relay, where there is one.
    #[serde(default)]
    pub(super) relay: Layers,
    /// Settings that were refused.
    pub(super) refused: Vec<String>,
    pub(super) conditions: Conditions,
}

/// Makes one run of `cell`; `chance` decides what the relay loses.
///
/// # Errors
/// The hosts could not be made, a program failed, with its reason; or the user asked to stop.
pub(super) fn make(cell: &HdtvCell, round: u32, chance: u64, stage: &Stage<'_>) -> Result<HdtvRecord, LabError> {
    let watch = ConditionsWatch::start(HostFiles::here());
    let mut hosts = RunHosts::new(cell, chance, stage)?;
    let origin_ns = monotonic_nanos();
    let performance = Performance { cell, stage, hosts: &hosts, files: HostFiles::here(), origin_ns };
    let (ends, layers) = performance.play()?;
    let relay = hosts.relay_counters()?;
    let refused = std::mem::take(&mut hosts.refused);
    drop(hosts);
    Ok(HdtvRecord { cell: cell.clone(), round, origin_ns, ends, layers, relay, refused, conditions: watch.finish() })
}

/// The two hosts of a run.
struct RunHosts {
    /// A process at each, so that its counters can be read when all others are gone.
    residents: [Supervised; 2],
    joined: Joined,
    refused: Vec<String>,
}

enum Joined {
    Directly(HostPair),
    /// The relay ends before its hosts.
    Relayed {
        relay: Option<Box<Relay>>,
        hosts: Hosts,
    },
}

impl Joined {
    fn host(&self, index: usize) -> Result<&Namespace, LabError> {
        match self {
            Joined::Directly(pair) => Ok(pair.host(index)),
            Joined::Relayed { hosts, .. } => {
                hosts.host(index).ok_or_else(|| LabError::Here(format!("there is no host {index}")))
            }
        }
    }
}

impl RunHosts {
    fn new(cell: &HdtvCell, chance: u64, stage: &Stage<'_>) -> Result<RunHosts, LabError> {
        let link = cell.link;
        let joined = if link.is_relayed() {
            let coalesce = match link.moderation {
                ReceiveModeration::Gathered(us) => Duration::from_micros(us.into()),
                _ => Duration::ZERO,
            };
            let impairment = Impairment { loss: link.loss, coalesce, ..Impairment::default() };
            let plan = LinkPlan { mtu_bytes: link.mtu_bytes, switch: Switch::Relay(impairment), ..LinkPlan::default() };
            let hosts = Hosts::new(2, &plan)?;
            let mut relay = hosts.relay_of_stream(stage.launcher, chance, stream_of(cell))?;
            relay.as_mut().map_or(Ok(()), Relay::begin)?;
            Joined::Relayed { relay: relay.map(Box::new), hosts }
        } else {
            let pair = HostPair::new(link.mtu_bytes)?;
            if link.segmenting != Segmenting::Device {
                pair.cut_before_the_link()?;
            }
            if let Some(shape) = link.shape {
                limit(&pair, shape, link.mtu_bytes)?;
            }
            Joined::Directly(pair)
        };
        // It ends with its input, and so with this process.
        let resident = |index: usize| Supervised::spawn(joined.host(index)?.command("cat"), &[], "resident of a host");
        let residents = [resident(0)?, resident(1)?];
        let mut refused = Vec::new();
        for index in 0..2 {
            let launcher = stage.launcher.within_namespace(joined.host(index)?.name());
            refused.extend(moderation::set(&launcher, Hosts::INTERFACE, link.moderation, stage.stop)?);
        }
        refused.sort();
        refused.dedup();
        Ok(RunHosts { residents, joined, refused })
    }

    /// What the relay counted so far; nothing without one.
    fn relay_counters(&mut self) -> Result<Layers, LabError> {
        match &mut self.joined {
            Joined::Relayed { relay: Some(relay), .. } => relay.counters(),
            Joined::Relayed { .. } | Joined::Directly(_) => Ok(Layers::default()),
        }
    }

    /// The program on a host: 0 sends, 1 receives.
    fn launcher(&self, stage: &Stage<'_>, index: usize) -> Result<Launcher, LabError> {
        Ok(stage.launcher.within_namespace(self.joined.host(index)?.name()))
    }

    fn layers(&self, files: &HostFiles) -> [Layers; 2] {
        // A resident has a number, as a child of this process.
        self.residents.each_ref().map(|one| Layers::read_of(files, one.id().unwrap_or_default()))
    }
}

/// The packets of a picture by our RTP, which the relay counts.
fn stream_of(cell: &HdtvCell) -> Option<RelayedStream> {
    let is_own = cell.traffic.picture().is_some_and(|case| case.ends == PictureEnds::Thalweg);
    is_own.then_some(RelayedStream { port: commands::PORT, payload_type: commands::PAYLOAD_TYPE })
}

fn limit(pair: &HostPair, shape: LinkShape, mtu_bytes: u32) -> Result<(), LabError> {
    let plan = LinkPlan { mtu_bytes, queue: QUEUE, ..LinkPlan::default() };
    match shape.isolation {
        Isolation::None => pair.limit(shape.rate_mbit, &plan),
        Isolation::Classes(rate_mbit) => {
            let marked = MarkedShare { code_point: commands::CODE_POINT, rate_mbit };
            pair.limit_in_classes(shape.rate_mbit, marked, &plan)
        }
    }
}

/// A run under way.
struct Performance<'a> {
    cell: &'a HdtvCell,
    stage: &'a Stage<'a>,
    hosts: &'a RunHosts,
    files: HostFiles,
    origin_ns: u64,
}

type Played = (Vec<EndRecord>, [Layers; 2]);

impl Performance<'_> {
    fn play(&self) -> Result<Played, LabError> {
        match self.cell.traffic {
            HdtvTraffic::Udp { .. } | HdtvTraffic::Tcp { .. } | HdtvTraffic::RoundTrips { .. } => self.play_probe(),
            HdtvTraffic::Picture(case) => self.play_picture(case),
            HdtvTraffic::Shared { picture, tcp } => self.play_shared(picture, tcp),
        }
    }

    fn stop(&self) -> &Stop {
        self.stage.stop
    }

    /// The processors of the sender, 0, or of the receiver, 1; none for all.
    fn cpus(&self, index: usize) -> Vec<usize> {
        match self.cell.placement {
            CpuPlacement::All => Vec::new(),
            CpuPlacement::One => vec![0],
            CpuPlacement::Apart => vec![if index == 0 { 0 } else { self.stage.plan.site.cpus.max(1) - 1 }],
        }
    }

    fn to(&self) -> IpAddr {
        pair_addresses()[1].into()
    }

    /// This program with these words at an end.
    fn start(&self, index: usize, role: ProcessRole, words: Vec<String>) -> Result<RunningEnd, LabError> {
        let launcher = self.hosts.launcher(self.stage, index)?.with_words(words);
        let process = Supervised::spawn(launcher.command(), &self.cpus(index), name_of(role))?;
        Ok(RunningEnd::new(role, Speech::Object, process))
    }

    /// Another program.
    fn start_other(
        &self,
        index: usize,
        (role, speech): (ProcessRole, Speech),
        program: &str,
        words: &[String],
    ) -> Result<RunningEnd, LabError> {
        let mut command = self.hosts.joined.host(index)?.command("/bin/sh");
        tie_to_input(&mut command, program, words);
        let process = Supervised::spawn(command, &self.cpus(index), name_of(role))?;
        Ok(RunningEnd::new(role, speech, process))
    }

    fn start_server(&self) -> Result<ProbeEnd, LabError> {
        let launcher = self.hosts.launcher(self.stage, 1)?;
        ProbeEnd::start(&launcher, SocketAddr::new(self.to(), 0), self.cpus(1).first().copied(), self.stop())
    }

    fn play_probe(&self) -> Result<Played, LabError> {
        let server = self.start_server()?;
        let setting = (self.cell.link.mtu_bytes, self.cell.link.segmenting);
        let words = commands::probe(self.cell.traffic, server.address(), setting, self.cell.seconds);
        let role = if matches!(self.cell.traffic, HdtvTraffic::RoundTrips { .. }) {
            ProcessRole::RoundTrips
        } else {
            ProcessRole::Stream
        };
        let client = self.start(0, role, words)?;
        self.play_to_the_end(vec![client], Vec::new())
    }

    fn play_picture(&self, case: PictureCase) -> Result<Played, LabError> {
        let _others = OtherPrograms::start(case.beside, self.stage.plan.site.cpus)?;
        let folder = TemporaryFolder::new()?;
        let (sender, receiver) = self.start_picture(case, None, &folder)?;
        self.play_to_the_end(vec![sender], vec![receiver])
    }

    fn play_shared(&self, picture: Option<PictureCase>, tcp: bool) -> Result<Played, LabError> {
        let (streams, trips) = (self.start_server()?, self.start_server()?);
        let seconds = self.cell.seconds;
        let mut leaving = Vec::new();
        if tcp {
            // It is under way before the picture begins, and afterwards.
            let words = commands::standard_tcp(streams.address(), seconds + 1.0);
            leaving.push(self.start(0, ProcessRole::Stream, words)?);
        }
        let small = HdtvTraffic::RoundTrips { bytes: SMALL };
        let setting = (self.cell.link.mtu_bytes, Segmenting::Device);
        let words = commands::probe(small, trips.address(), setting, seconds);
        leaving.push(self.start(0, ProcessRole::RoundTrips, words)?);
        let folder = TemporaryFolder::new()?;
        let mut receivers = Vec::new();
        if let Some(case) = picture {
            let (sender, receiver) = self.start_picture(case, Some(commands::CODE_POINT), &folder)?;
            leaving.push(sender);
            receivers.push(receiver);
        }
        self.play_to_the_end(leaving, receivers)
    }

    /// Both ends of a picture: the receiver listens before the sender begins.
    fn start_picture(
        &self,
        case: PictureCase,
        code_point: Option<u8>,
        folder: &TemporaryFolder,
    ) -> Result<(RunningEnd, RunningEnd), LabError> {
        let (plan, seconds) = (self.stage.plan, self.cell.seconds);
        let way = PictureWay { plan, case, to: pair_addresses()[1], seconds, frame: self.stage.frame };
        let (send, receive) = (ProcessRole::PictureSender, ProcessRole::PictureReceiver);
        match case.ends {
            PictureEnds::Thalweg => {
                let receiver = self.listening(self.start(1, receive, way.thalweg_receiver())?)?;
                Ok((self.start(0, send, way.thalweg_sender(code_point))?, receiver))
            }
            PictureEnds::Peer(VideoPeer::Gstreamer) => {
                let how = (receive, Speech::FrameLines(CHAIN));
                let receiver = self.start_other(1, how, GSTREAMER, &way.gstreamer_receiver())?;
                let receiver = self.listening(receiver)?;
                let how = (send, Speech::FrameCounts);
                Ok((self.start_other(0, how, GSTREAMER, &way.gstreamer_sender())?, receiver))
            }
            PictureEnds::Peer(VideoPeer::Ffmpeg) => {
                let description = folder.0.join("picture.sdp");
                std::fs::write(&description, way.description()).map_err(LabError::here)?;
                let how = (receive, Speech::FrameCounts);
                let receiver = self.start_other(1, how, FFMPEG, &way.ffmpeg_receiver(&description))?;
                let receiver = self.listening(receiver)?;
                let how = (send, Speech::FrameCounts);
                Ok((self.start_other(0, how, FFMPEG, &way.ffmpeg_sender())?, receiver))
            }
            PictureEnds::BestEffortTopic | PictureEnds::ReliableTopic => self.start_topic(&way),
        }
    }

    fn start_topic(&self, way: &PictureWay<'_>) -> Result<(RunningEnd, RunningEnd), LabError> {
        let order = TopicOrder {
            size: self.stage.plan.size(),
            is_reliable: way.case.ends == PictureEnds::ReliableTopic,
            frame: way.frame.to_owned(),
            frames: way.frames(),
        };
        let start = |index: usize, role, order: &Order| {
            let launcher = self.hosts.launcher(self.stage, index)?;
            let mut process = Supervised::spawn(launcher.command(), &self.cpus(index), name_of(role))?;
            process.send(order)?;
            Ok::<_, LabError>(RunningEnd::new(role, Speech::Worker, process))
        };
        let receiver = start(1, ProcessRole::PictureReceiver, &Order::PictureSubscriber(order.clone()))?;
        let mut sender = start(0, ProcessRole::PictureSender, &Order::PicturePublisher(order))?;
        sender.wait(&self.files, START_PATIENCE, self.stop(), RunningEnd::is_ready)?;
        Ok((sender, receiver))
    }

    /// The same end when it listens at the picture's port.
    fn listening(&self, mut end: RunningEnd) -> Result<RunningEnd, LabError> {
        let is_bound = |end: &RunningEnd| self.files.has_udp_port(end.id(), commands::PORT);
        end.wait(&self.files, START_PATIENCE, self.stop(), is_bound)?;
        Ok(end)
    }

    /// Observes all programs until those that end by themselves have, and lets the others take what is still under way.
    fn play_to_the_end(&self, mut leaving: Vec<RunningEnd>, mut staying: Vec<RunningEnd>) -> Result<Played, LabError> {
        let deadline = Instant::now() + Duration::from_secs_f64(self.cell.seconds) + END_PATIENCE;
        let mut ended: Option<Instant> = None;
        loop {
            leaving.iter_mut().chain(&mut staying).for_each(|end| end.look(&self.files));
            let now = Instant::now();
            if ended.is_none() && leaving.iter().all(RunningEnd::is_over) {
                ended = Some(now);
            }
            let is_done = |end: &RunningEnd, since: Duration| {
                end.is_over() || since > if end.notices_the_end() { LAST_PATIENCE } else { SETTLING }
            };
            if ended.is_some_and(|at| staying.iter().all(|end| is_done(end, now - at))) {
                break;
            }
            if self.stop().is_requested() {
                return Err(LabError::Interrupted);
            }
            if now > deadline {
                break;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        let layers = self.hosts.layers(&self.files);
        let ends = leaving.into_iter().chain(staying).map(|end| end.finish(self.origin_ns));
        Ok((ends.collect::<Result<_, _>>()?, layers))
    }
}

fn name_of(role: ProcessRole) -> &'static str {
    match role {
        ProcessRole::PictureSender => "sender of the picture",
        ProcessRole::PictureReceiver => "receiver of the picture",
        ProcessRole::Stream => "probe of throughput",
        ProcessRole::RoundTrips => "probe of round trips",
    }
}

/// A folder for what programs read; removed when dropped.
pub(super) struct TemporaryFolder(pub(super) PathBuf);

impl TemporaryFolder {
    /// Makes it.
    pub(super) fn new() -> Result<TemporaryFolder, LabError> {
        let name = format!("thalweg-paper3-{}-{}", std::process::id(), monotonic_nanos());
        let path = std::env::temp_dir().join(name);
        let failed = |error| LabError::Here(format!("{} cannot be made: {error}", path.display()));
        std::fs::create_dir(&path).map_err(failed)?;
        Ok(TemporaryFolder(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A program that was ended may write for a moment more. What cannot be removed then is left to the system's own tidying.
        for _ in 0..REMOVALS_MAX {
            if std::fs::remove_dir_all(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }
}

/// How often a folder is tried to be removed.
const REMOVALS_MAX: u32 = 20;
const GSTREAMER: &str = "gst-launch-1.0";
const FFMPEG: &str = "ffmpeg";
/// What GStreamer's fakesink says of each buffer.
const CHAIN: &str = "chain ";
/// Payload bytes of the round trips beside a picture.
const SMALL: u32 = 64;
/// How long frames may wait on a shaped link: a frame time of the picture, as buffers of switches of 10 Gbit/s hold at its rate.
const QUEUE: Duration = Duration::from_millis(33);
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How much longer than asked programs may take.
const END_PATIENCE: Duration = Duration::from_secs(30);
/// What is under way when the sender has ended comes within this time.
const SETTLING: Duration = Duration::from_millis(600);
/// A receiver that notices the end says its figures within this time: a topic waits for two seconds for another frame, and for 20 s
/// from its start on for a first one, where none comes whole.
const LAST_PATIENCE: Duration = Duration::from_secs(22);
