//! High definition between two hosts of our own, network namespaces joined by a link of two virtual devices.
//!
//! These tests need root, so cargo leaves them out: `cargo xtask test video` runs them. Each end is a process of its own: this
//! program again, as [`role`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use thalweg_host::Namespace;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::io::{ReceiveOptions, SendOptions, run_receiver, run_sender};
use thalweg_video::receiver::ReceiverConfig;
use thalweg_video::sink::VerifySink;
use thalweg_video::source::PictureSource;

/// What tells the program its role: the words of a [`Run`].
const ROLE: &str = "THALWEG_VIDEO_ROLE";

/// A stream between two hosts.
#[derive(Clone, Copy)]
struct Run {
    mtu: u32,
    frames: u64,
    /// Frames a second, as a numerator over 1001.
    rate: u32,
    address: &'static str,
}

impl Run {
    fn words(&self, role: &str) -> String {
        format!("{role} {} {} {}", self.address, self.frames, self.rate)
    }
}

/// One end of a stream, if this process is one.
#[test]
fn role() {
    let Ok(words) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = words.split(' ').collect();
    let [role, address, frames, rate] = words[..] else { panic!("{words:?}") };
    let rate = FrameRate::new(rate.parse().unwrap(), 1001).unwrap();
    let format = VideoFormat::new(PixelFormat::Yuv422Bits10, (1920, 1080), rate, Scan::Progressive).unwrap();
    let address = address.parse().unwrap();
    match role {
        "send" => send(address, format, frames.parse().unwrap()),
        _ => receive(address, format),
    }
}

fn send(to: SocketAddr, format: VideoFormat, frames: u64) {
    let mut options = SendOptions::new(to).unwrap();
    options.frames_max = frames;
    options.stream.multicast_interface = to.ip().is_multicast().then_some(LINK);
    let mut source = PictureSource::new(format).unwrap();
    let report = run_sender(&mut source, &options, &AtomicBool::new(false), |_| ()).unwrap();
    let sender = report.sender;
    tell("frames_sent", sender.frames_sent as f64);
    tell("frames_dropped", sender.frames_dropped as f64);
    tell("packets_sent", sender.packets_sent as f64);
    tell("lost", report.lost as f64);
    tell("replans", report.replans as f64);
    tell("cpu_seconds", report.cpu.as_secs_f64());
    tell("seconds", report.elapsed.as_secs_f64());
    tell("calls", report.sockets.calls as f64);
    tell("late_mean_us", report.lateness.mean().as_secs_f64() * 1e6);
    tell("late_max_us", report.lateness.max.as_secs_f64() * 1e6);
    tell("rtt_us", report.peer.and_then(|peer| peer.round_trip).unwrap_or_default().as_secs_f64() * 1e6);
}

fn receive(bind: SocketAddr, format: VideoFormat) {
    // The processors of this host may serve others for some frame times.
    let config = ReceiverConfig { playout: 8 * format.frame_time(), ..ReceiverConfig::new(format) };
    let mut options = ReceiveOptions::new(bind, config).unwrap();
    options.duration = Duration::from_secs(120);
    options.group_interface = LINK;
    let mut sink = VerifySink::new(format).unwrap();
    let report = run_receiver(&mut sink, &options, &AtomicBool::new(false), |_| ()).unwrap();
    let (packets, frames, summary) = (report.receiver.packets, report.receiver.frames, sink.summary());
    assert!(packets.are_consistent(), "{packets:?}");
    assert!(summary.is_proved(), "{summary:?}");
    tell("frames_complete", frames.complete as f64);
    tell("frames_concealed", frames.concealed as f64);
    tell("frames_checked", summary.frames as f64);
    tell("sink_missed", report.sink_missed as f64);
    tell("packets_received", packets.received as f64);
    tell("packets_lost", packets.lost as f64);
    tell("kernel_drops", report.sockets.kernel_drops as f64);
    tell("cpu_seconds", report.cpu.as_secs_f64());
    tell("datagrams_a_call", report.sockets.datagrams as f64 / report.sockets.calls as f64);
    tell("latency_p99_ms", report.times.latency.p99.as_secs_f64() * 1e3);
    tell("interval_p99_ms", report.times.intervals.p99.as_secs_f64() * 1e3);
    tell("jitter_rfc3550_us", report.times.jitter_rfc3550.as_secs_f64() * 1e6);
    tell("jitter_schedule_us", report.times.jitter_schedule.as_secs_f64() * 1e6);
    tell("rtt_us", report.times.round_trip.unwrap_or_default().as_secs_f64() * 1e6);
    report.layers.losses().for_each(|(name, count)| tell(name, count as f64));
}

fn tell(name: &str, figure: f64) {
    println!("figure {name} {figure}");
}

/// Two hosts with one link, and a stream over it; returns the figures of sender and receiver.
fn stream(run: Run) -> [BTreeMap<String, f64>; 2] {
    stream_with(run, |_| ())
}

/// The same, while something happens to the hosts.
fn stream_with(run: Run, happens: impl FnOnce(&[Namespace; 2])) -> [BTreeMap<String, f64>; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let hosts = ["send", "receive"].map(|role| Namespace::new(&format!("video{number}-{role}")).unwrap());
    let names = hosts.each_ref().map(Namespace::name);
    // The first device of a host after loopback has the index 2.
    ip(&[
        "link", "add", "eth0", "netns", names[0], "index", "2", "type", "veth", "peer", "name", "eth0", "netns",
        names[1], "index", "2",
    ]);
    for (host, end) in hosts.iter().zip(1..) {
        host.ip(&format!("address add 10.77.0.{end}/24 dev eth0")).unwrap();
        host.ip(&format!("address add fd77::{end}/64 dev eth0 nodad")).unwrap();
        host.link(&format!("set eth0 mtu {} up", run.mtu)).unwrap();
    }
    hosts.iter().for_each(wait_for_addresses);
    let mut receiver = start(&hosts[1], &run.words("receive"));
    std::thread::sleep(Duration::from_millis(300));
    let sender = start(&hosts[0], &run.words("send"));
    happens(&hosts);
    let sender = sender.wait_with_output().unwrap();
    let sent = figures(&sender.stdout);
    if !sender.status.success() {
        let _ = receiver.kill();
    }
    let received = receiver.wait_with_output().unwrap();
    assert!(sender.status.success() && received.status.success(), "an end failed, see above");
    let figures = [sent, figures(&received.stdout)];
    println!("{:?}\n{:?}", figures[0], figures[1]);
    figures
}

/// An address of IPv6 is of use once nobody else has claimed it for a second, the one of the link included.
fn wait_for_addresses(host: &Namespace) {
    for _ in 0..100 {
        let listing = host.command("ip").args(["-6", "address", "show", "tentative"]).output().unwrap();
        if listing.stdout.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{} has no address of IPv6", host.name());
}

fn start(host: &Namespace, words: &str) -> Child {
    let mut command = host.command(std::env::current_exe().unwrap());
    command.args(["role", "--exact", "--nocapture"]).env(ROLE, words).stdout(Stdio::piped()).spawn().unwrap()
}

fn ip(words: &[&str]) {
    assert!(Command::new("ip").args(words).status().unwrap().success(), "{words:?}");
}

fn figures(output: &[u8]) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(output);
    let figure = |line: &str| {
        // The harness writes in front of the first line.
        let (_, figure) = line.split_once("figure ")?;
        let (name, number) = figure.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(figure).collect()
}

#[track_caller]
fn check_lossless(run: Run) -> [BTreeMap<String, f64>; 2] {
    let [sent, received] = stream(run);
    let frames = sent["frames_sent"];
    assert!(frames + sent["frames_dropped"] == run.frames as f64 && frames > 0.0);
    assert_eq!((received["packets_received"], received["packets_lost"]), (sent["packets_sent"], 0.0));
    assert_eq!(received["frames_complete"] + received["frames_concealed"], frames);
    assert!(received["frames_complete"] >= 0.9 * frames);
    assert_eq!(received["frames_checked"] + received["sink_missed"], frames);
    assert!(sent["rtt_us"] > 0.0 && received["rtt_us"] > 0.0);
    [sent, received]
}

#[test]
fn nothing_is_lost_at_an_mtu_of_1500() {
    let run = Run { mtu: 1500, frames: 60, rate: 30_000, address: "10.77.0.2:5004" };
    let [sent, received] = check_lossless(run);
    assert!(sent["packets_sent"] == sent["frames_sent"] * 4320.0, "packets of 1200 octets");
    assert!(sent["calls"] * 8.0 < sent["packets_sent"] && received["datagrams_a_call"] > 4.0, "batches stay together");
}

#[test]
fn nothing_is_lost_at_an_mtu_of_9000_over_ipv6() {
    let run = Run { mtu: 9000, frames: 60, rate: 30_000, address: "[fd77::2]:5004" };
    let [sent, _] = check_lossless(run);
    assert!(sent["packets_sent"] == sent["frames_sent"] * 720.0, "packets of 7200 octets");
}

#[test]
fn packets_become_smaller_where_the_path_becomes_narrower() {
    let run = Run { mtu: 1500, frames: 120, rate: 30_000, address: "10.77.0.2:5004" };
    let [sent, received] = stream_with(run, |hosts| {
        std::thread::sleep(Duration::from_secs(2));
        hosts.iter().for_each(|host| host.link("set eth0 mtu 1100").unwrap());
    });
    assert_eq!(sent["replans"], 1.0, "{sent:?}");
    // The frame in which it happened, and those that the processors were too busy for.
    assert!(received["frames_complete"] >= 0.9 * sent["frames_sent"] - 2.0, "{received:?}");
    assert!(sent["packets_sent"] > sent["frames_sent"] * 4320.0, "more packets than before");
}

#[test]
fn a_group_of_ipv6_is_heard() {
    let run = Run { mtu: 9000, frames: 30, rate: 30_000, address: "[ff15::77:5]:5004" };
    let [sent, received] = stream(run);
    assert_eq!((received["packets_received"], received["packets_lost"]), (sent["packets_sent"], 0.0));
}

/// The index of the link at both hosts.
const LINK: u32 = 2;
