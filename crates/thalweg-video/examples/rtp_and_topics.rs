//! The same picture by RTP and as a topic: what each costs, in one form.
//!
//! ```text
//! rtp_and_topics recv rtp    0.0.0.0:5004      1920x1080 30000/1001 10   # ten seconds at most, then
//! rtp_and_topics send rtp    10.77.0.2:5004    1920x1080 30000/1001 10   # on the other host
//! rtp_and_topics recv topics reliable          1920x1080 30000/1001 10
//! rtp_and_topics send topics reliable,slice=24 1920x1080 30000/1001 10
//! ```
//!
//! Words of `topics`, with commas between: `reliable` or `best-effort`, `slice=LINES`, `at-once` or `spread=PERCENT`,
//! `no-checksum`. Each end prints one object of JSON.

use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use thalweg::DomainParticipant;
use thalweg_host::ProcessUsage;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat, parse_size};
use thalweg_video::io::{ReceiveOptions, SendOptions, run_receiver, run_sender};
use thalweg_video::picture::TestPicture;
use thalweg_video::receiver::{ReceiverConfig, ReceiverCounters};
use thalweg_video::sink::NullSink;
use thalweg_video::source::{Filled, FrameSource, SourceError};
use thalweg_video::topics::{
    Checksum, PublicationRun, PublisherConfig, SampleUnit, Spread, SubscriberConfig, SubscriptionRun, TopicReliability,
    VideoPublisher, VideoSubscriber, run_publisher, run_subscriber,
};

/// Pictures that take turns: they are drawn once, so that both ways pay for a copy of a frame and no more.
const PICTURES: usize = 4;
const STREAM: u32 = 1;
/// How long the ends wait for each other.
const PATIENCE: Duration = Duration::from_secs(20);

struct Turns {
    format: VideoFormat,
    pictures: Vec<Vec<u8>>,
    next: usize,
}

impl Turns {
    fn new(format: VideoFormat) -> Result<Turns, Box<dyn Error>> {
        let draw = TestPicture::new(format)?;
        let picture = |number: usize| {
            let mut octets = vec![0; format.frame_octets()];
            draw.draw(u32::try_from(number).unwrap_or(0), &mut octets);
            octets
        };
        Ok(Turns { format, pictures: (0..PICTURES).map(picture).collect(), next: 0 })
    }
}

impl FrameSource for Turns {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        frame.copy_from_slice(&self.pictures[self.next % PICTURES]);
        self.next += 1;
        Ok(Filled::Frame)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [end, way, how, size, rate, seconds] = words[..] else {
        return Err("give: send|recv rtp|topics ADDRESS|WORDS WIDTHxHEIGHT RATE SECONDS".into());
    };
    let format = VideoFormat::new(PixelFormat::Yuv422Bits10, parse_size(size)?, rate.parse()?, Scan::Progressive)?;
    let frames = format.rate().frames_in(Duration::from_secs(seconds.parse()?));
    match (end, way) {
        ("send", "rtp") => send_rtp(how, format, frames),
        ("recv", "rtp") => receive_rtp(how, format, frames),
        ("send", "topics") => send_topics(how, format, frames),
        ("recv", "topics") => receive_topics(format),
        _ => Err(format!("{end} {way}: there are send and recv, rtp and topics").into()),
    }
}

fn send_rtp(to: &str, format: VideoFormat, frames: u64) -> Result<(), Box<dyn Error>> {
    let options = SendOptions { frames_max: frames, ..SendOptions::new(to.parse()?)? };
    let mut source = Turns::new(format)?;
    let cost = Cost::begin();
    let report = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ())?;
    cost.print("send", &format!("\"frames_sent\": {}", report.sender.frames_sent));
    Ok(())
}

fn receive_rtp(bind: &str, format: VideoFormat, frames: u64) -> Result<(), Box<dyn Error>> {
    let patience = format.rate().time_of(frames) + PATIENCE;
    let options =
        ReceiveOptions { duration: patience, ..ReceiveOptions::new(bind.parse()?, ReceiverConfig::new(format))? };
    let cost = Cost::begin();
    let report = run_receiver(&mut NullSink, &options, &AtomicBool::new(false), |_| ())?;
    cost.print("recv", &counted(&report.receiver));
    Ok(())
}

fn send_topics(how: &str, format: VideoFormat, frames: u64) -> Result<(), Box<dyn Error>> {
    let mut config = PublisherConfig::new(STREAM, format);
    for word in how.split(',') {
        match word.split_once('=') {
            None if word == "reliable" => config.reliability = TopicReliability::Reliable,
            None if word == "best-effort" => config.reliability = TopicReliability::BestEffort,
            None if word == "at-once" => config.spread = Spread::AtOnce,
            None if word == "no-checksum" => config.checksum = Checksum::Off,
            Some(("slice", lines)) => config.unit = SampleUnit::Slice(lines.parse()?),
            Some(("spread", percent)) => config.spread = Spread::Over(percent.parse()?),
            _ => return Err(format!("{word} is no word of topics").into()),
        }
    }
    let participant = DomainParticipant::new(0)?;
    let mut publisher = VideoPublisher::new(&participant, config)?;
    publisher.wait_for_subscribers(1, PATIENCE)?;
    let mut source = Turns::new(format)?;
    let cost = Cost::begin();
    let options = PublicationRun { frames: Some(frames), ..PublicationRun::default() };
    let late = run_publisher(&mut publisher, &mut source, options)?;
    if publisher.config().reliability == TopicReliability::Reliable {
        publisher.wait_for_acknowledgments(PATIENCE)?;
    } else {
        // The last frame is spread over its time, and nobody tells when it has left.
        std::thread::sleep(2 * format.frame_time());
    }
    let (counters, writer) = (publisher.counters(), publisher.writer_counters());
    let passed_over = late + counters.frames_passed_over;
    cost.print(
        "send",
        &format!(
            "\"frames_sent\": {}, \"frames_passed_over\": {passed_over}, \"datagrams\": {}, \"repaired\": {}",
            counters.frames_sent, writer.datagrams, writer.repaired
        ),
    );
    Ok(())
}

/// Takes pictures until none has come for two seconds.
fn receive_topics(format: VideoFormat) -> Result<(), Box<dyn Error>> {
    let participant = DomainParticipant::new(0)?;
    let config = SubscriberConfig { expected: Some(format), ..SubscriberConfig::new(STREAM) };
    let mut subscriber = VideoSubscriber::open(&participant, config, PATIENCE)?;
    let cost = Cost::begin();
    run_subscriber(&mut subscriber, &mut NullSink, SubscriptionRun::default())?;
    let counters = subscriber.counters();
    cost.print("recv", &format!("{}, \"damaged\": {}", counted(&counters.received), counters.damaged));
    Ok(())
}

/// The words that both ways share.
fn counted(counters: &ReceiverCounters) -> String {
    let (frames, packets) = (counters.frames, counters.packets);
    format!(
        "\"frames_expected\": {}, \"frames_complete\": {}, \"frames_concealed\": {}, \"frames_lost\": {}, \
         \"packets_expected\": {}, \"packets_received\": {}, \"packets_lost\": {}, \"packets_late\": {}",
        frames.expected(),
        frames.complete,
        frames.concealed,
        frames.lost,
        packets.expected,
        packets.received,
        packets.lost,
        packets.late
    )
}

/// What an end takes from the host.
struct Cost {
    begun: Instant,
    before: ProcessUsage,
}

impl Cost {
    fn begin() -> Cost {
        Cost { begun: Instant::now(), before: ProcessUsage::read() }
    }

    fn print(&self, end: &str, counted: &str) {
        let used = ProcessUsage::read().since(&self.before);
        let (cpu, seconds) = (used.cpu_seconds(), self.begun.elapsed().as_secs_f64());
        println!("{{\"end\": \"{end}\", {counted}, \"cpu_seconds\": {cpu:.3}, \"seconds\": {seconds:.1}}}");
    }
}
