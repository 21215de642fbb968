//! Publisher and subscriber in processes of their own: this test binary starts itself for each.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use thalweg::DomainParticipant;
use thalweg_host::ProcessUsage;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat, parse_size};
use thalweg_video::source::{Filled, FrameSource, SourceError};
use thalweg_video::topics::{
    PublicationRun, PublisherConfig, SampleUnit, Spread, SubscriberConfig, TopicPicture, TopicReliability,
    VideoPublisher, VideoSubscriber, run_publisher,
};

use crate::fixture::*;

const ROLE: &str = "THALWEG_TEST_ROLE";
const RESULT: &str = "THALWEG_TEST_RESULT";

/// What both processes are told.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub domain: u32,
    pub size: (u16, u16),
    /// Frames a second.
    pub rate: u32,
    pub unit: SampleUnit,
    pub reliability: TopicReliability,
    pub spread: Spread,
    pub frames: u64,
    pub on_loopback: bool,
}

impl Task {
    pub fn format(&self) -> VideoFormat {
        let rate = FrameRate::new(self.rate, 1).unwrap();
        VideoFormat::new(PixelFormat::Yuv422Bits10, self.size, rate, Scan::Progressive).unwrap()
    }

    fn to_words(self) -> String {
        let Task { domain, size: (width, height), rate, frames, .. } = self;
        let lines = match self.unit {
            SampleUnit::Frame => 0,
            SampleUnit::Slice(lines) => lines,
        };
        let percent = match self.spread {
            Spread::AtOnce => 0,
            Spread::Over(percent) => percent,
        };
        let network = if self.on_loopback { "loopback" } else { "any" };
        format!("{domain} {width}x{height} {rate} {lines} {} {percent} {frames} {network}", self.reliability)
    }

    fn from_words(words: &str) -> Task {
        let words: Vec<&str> = words.split(' ').collect();
        let [domain, size, rate, lines, reliability, percent, frames, network] = words[..] else { panic!("{words:?}") };
        Task {
            domain: domain.parse().unwrap(),
            size: parse_size(size).unwrap(),
            rate: rate.parse().unwrap(),
            unit: if lines == "0" { SampleUnit::Frame } else { SampleUnit::Slice(lines.parse().unwrap()) },
            reliability: if reliability == "reliable" {
                TopicReliability::Reliable
            } else {
                TopicReliability::BestEffort
            },
            spread: if percent == "0" { Spread::AtOnce } else { Spread::Over(percent.parse().unwrap()) },
            frames: frames.parse().unwrap(),
            on_loopback: network == "loopback",
        }
    }

    fn participant(&self) -> DomainParticipant {
        let builder = DomainParticipant::builder(self.domain);
        if self.on_loopback { builder.loopback_only() } else { builder }.create().unwrap()
    }
}

/// What a process found.
#[derive(Clone, Debug, Default)]
pub struct Findings(String);

impl Findings {
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        let found = self.0.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no {name} in {:?}", self.0)).parse().unwrap()
    }
}

/// A process of this binary; ended when dropped.
pub struct Other {
    child: Child,
    result: PathBuf,
}

impl Other {
    /// Starts it by `wrap`, which may put it into a namespace.
    pub fn start(role: &str, task: Task, wrap: impl FnOnce(&std::path::Path) -> Command) -> Other {
        let name = format!("thalweg-topics-{}-{role}-{}", std::process::id(), task.domain);
        let result = std::env::temp_dir().join(name);
        let child = wrap(&std::env::current_exe().unwrap())
            .args(["--exact", "processes::other_side", "--nocapture"])
            .env(ROLE, format!("{role} {}", task.to_words()))
            .env(RESULT, &result)
            .stdout(Stdio::null())
            .spawn();
        Other { child: child.unwrap(), result }
    }

    /// What it found, once it has ended.
    #[track_caller]
    pub fn finish(mut self) -> Findings {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the other side failed");
        let text = std::fs::read_to_string(&self.result).unwrap();
        Findings(text)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = std::fs::remove_file(&self.result);
    }
}

/// What a started process does; without a role, in the test run itself, nothing.
#[test]
fn other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, words) = role.split_once(' ').unwrap();
    let result = match role {
        "publish" => publish(Task::from_words(words)),
        "subscribe" => subscribe(Task::from_words(words)),
        "relay" => crate::network::relay(),
        other => panic!("no such role: {other}"),
    };
    std::fs::write(std::env::var_os(RESULT).unwrap(), result).unwrap();
}

/// Frames that bear their number in the first eight octets.
struct Numbered {
    format: VideoFormat,
    next: u64,
}

impl FrameSource for Numbered {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        number_and_fill(frame, self.next);
        self.next += 1;
        Ok(Filled::Frame)
    }
}

fn number_and_fill(octets: &mut [u8], frame: u64) {
    fill(octets, frame);
    octets[..8].copy_from_slice(&frame.to_le_bytes());
}

fn publish(task: Task) -> String {
    let format = task.format();
    let Task { unit, reliability, spread, frames, .. } = task;
    let participant = task.participant();
    // Long, so that no frame is late on a loaded machine.
    let lifespan = 8 * format.frame_time();
    let config = PublisherConfig { unit, reliability, spread, lifespan, ..PublisherConfig::new(STREAM, format) };
    let mut publisher = VideoPublisher::new(&participant, config).unwrap();
    publisher.wait_for_subscribers(1, PATIENCE).unwrap();
    let before = ProcessUsage::read();
    let options = PublicationRun { frames: Some(frames), ..PublicationRun::default() };
    let passed_over = run_publisher(&mut publisher, &mut Numbered { format, next: 0 }, options).unwrap();
    if reliability == TopicReliability::Reliable {
        publisher.wait_for_acknowledgments(PATIENCE).unwrap();
    } else {
        std::thread::sleep(Duration::from_millis(200));
    }
    let cpu = ProcessUsage::read().since(&before).cpu_seconds();
    // The last frames leave before the writer does.
    format!("passed_over={passed_over} sent={} cpu={cpu}", publisher.counters().frames_sent)
}

/// Takes pictures until none has come for a while; each must be what its publisher sent.
fn subscribe(task: Task) -> String {
    let format = task.format();
    let config = SubscriberConfig { expected: Some(format), ..SubscriberConfig::new(STREAM) };
    let mut subscriber = VideoSubscriber::open(&task.participant(), config, PATIENCE).unwrap();
    let (mut expect, mut last, mut wrong) = (vec![0; format.frame_octets()], None, 0);
    let (mut patience, mut begun) = (PATIENCE, None);
    let before = ProcessUsage::read();
    while let Some(TopicPicture { picture, .. }) = subscriber.next_picture(patience).unwrap() {
        begun.get_or_insert_with(Instant::now);
        patience = Duration::from_secs(1);
        let number = u64::from_le_bytes(*picture.octets.first_chunk().unwrap());
        number_and_fill(&mut expect, number);
        let is_as_sent = *picture.octets == expect[..] && last < Some(number);
        wrong += u32::from(picture.is_complete() && !is_as_sent);
        last = Some(number).filter(|_| picture.is_complete()).or(last);
    }
    let cpu = ProcessUsage::read().since(&before).cpu_seconds();
    let counters = subscriber.counters();
    let frames = counters.received.frames;
    format!(
        "complete={} concealed={} lost={} discarded={} expected={} wrong={wrong} damaged={} late={} cpu={cpu}",
        frames.complete,
        frames.concealed,
        frames.lost,
        frames.discarded,
        frames.expected(),
        counters.damaged,
        counters.received.packets.late,
    )
}

/// All frames of a stream of two seconds arrive in another process.
#[track_caller]
fn check(unit: SampleUnit, reliability: TopicReliability) {
    let task = Task {
        domain: domain(),
        size: (640, 360),
        rate: 10,
        unit,
        reliability,
        spread: Spread::default(),
        frames: 20,
        on_loopback: true,
    };
    let subscriber = Other::start("subscribe", task, |program| Command::new(program));
    let publisher = Other::start("publish", task, |program| Command::new(program));
    let (sent, got) = (publisher.finish(), subscriber.finish());
    assert_eq!((got.number("wrong"), got.number("damaged")), (0.0, 0.0), "{got:?}");
    assert_eq!(got.number("complete"), sent.number("sent"), "{sent:?} {got:?}");
}

#[test]
fn frames_go_to_another_process() {
    check(SampleUnit::Frame, TopicReliability::Reliable);
}

#[test]
fn slices_go_to_another_process() {
    check(SampleUnit::Slice(24), TopicReliability::Reliable);
}
