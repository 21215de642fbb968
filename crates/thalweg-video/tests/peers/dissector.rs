//! What we put on the wire, as Wireshark's dissector reads it: pictures, sound, reports, requests and announcements.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use thalweg_testing::program::Program;
use thalweg_transport::clock;
use thalweg_video::audio::PacketTime;
use thalweg_video::format::{PixelFormat, Scan};
use thalweg_video::io::ControlPort;
use thalweg_video::receiver::Repair;
use thalweg_video::sap::{SAP_PORT, SapAnnouncer, SapConfig};
use thalweg_video::sdp::{PackingMode, Retransmission, SessionDescription, StudioParameters};
use thalweg_video::sender::Resend;

use crate::network::ports;
use crate::pictures::{Pictures, file, format};
use crate::relay::{Route, drop_one_in};
use crate::sound;
use crate::stream::{Receiver, description, local, receive_options, send, send_options};

/// Datagrams to some ports of this host, seen on the loopback interface.
struct Capture {
    program: Program,
    file: PathBuf,
}

impl Capture {
    #[track_caller]
    fn start(ports: &[u16]) -> Capture {
        let file = file(&format!("capture-{}.pcapng", ports[0]));
        let filter: Vec<String> = ports.iter().map(|port| format!("dst port {port}")).collect();
        let mut command = Command::new("dumpcap");
        command
            .args(["-i", "lo", "-B", "64", "-q", "-f", &format!("udp and ({})", filter.join(" or ")), "-w"])
            .arg(&file);
        let mut program = Program::start("dumpcap", &command);
        program.expect_text("Capturing on");
        // It says so shortly before it listens.
        std::thread::sleep(Duration::from_millis(700));
        Capture { program, file }
    }

    fn stop(self) -> Packets {
        // What was sent last may not have been read yet.
        std::thread::sleep(Duration::from_millis(500));
        self.program.interrupt();
        Packets { file: self.file, control: None }
    }
}

/// What was captured.
struct Packets {
    file: PathBuf,
    /// A port of RTCP that no description tells.
    control: Option<u16>,
}

impl Packets {
    /// What the dissector prints with these words.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> String {
        let tshark = std::env::var("THALWEG_TSHARK").expect("no dissector: run `cargo xtask test video`");
        let mut command = Command::new(tshark);
        command.arg("-r").arg(&self.file);
        if let Some(port) = self.control {
            command.args(["-d", &format!("udp.port=={port},rtcp")]);
        }
        let output = command.args(words).output().expect("the dissector runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The values of a field in the packets that fit a display filter; those of one packet are joined by `|`.
    #[track_caller]
    fn select(&self, filter: &str, field: &str) -> Vec<String> {
        let text = self.ask(&["-Y", filter, "-T", "fields", "-E", "aggregator=|", "-e", field]);
        text.lines().map(str::to_owned).collect()
    }

    /// Fails when a packet is malformed or anything in it is an error to the dissector.
    #[track_caller]
    fn check_well_formed(&self) {
        let wrong = self.ask(&["-Y", "_ws.malformed || _ws.expert.severity == error"]);
        assert!(wrong.is_empty(), "{}", wrong.lines().take(10).collect::<Vec<_>>().join("\n"));
    }

    /// The kinds of RTCP packets that were seen.
    fn control_kinds(&self) -> BTreeSet<String> {
        let lines = self.select("rtcp.pt", "rtcp.pt");
        lines.iter().flat_map(|line| line.split('|')).map(str::to_owned).collect()
    }
}

/// Announces a session from a port and takes it back.
fn announce(session: &SessionDescription, from: u16) {
    let socket = UdpSocket::bind(local(from)).expect("the port is free");
    let config = SapConfig::new(Ipv4Addr::LOCALHOST.into());
    let mut announcer = SapAnnouncer::new(clock::now(), config, session.to_text(), 1);
    let mut datagram = Vec::new();
    assert!(announcer.poll_announcement(clock::now(), 0, &mut datagram));
    // Nobody listens: the dissector alone has to.
    let _ = socket.send_to(&datagram, local(SAP_PORT));
    datagram.clear();
    announcer.create_deletion(&mut datagram);
    let _ = socket.send_to(&datagram, local(SAP_PORT));
}

/// The descriptions that were announced from a port.
fn announced(from: u16) -> String {
    format!("sdp && sap.flags.t == 0 && udp.srcport == {from}")
}

#[test]
fn a_repaired_picture_is_well_formed_and_known_by_its_announcement() {
    const FRAMES: u32 = 8;
    let format = format(PixelFormat::Yuv422Bits10, (160, 90), 10, Scan::Interlaced);
    let (own, relay, peer) = (ports(), ports(), ports());
    let capture = Capture::start(&[peer, peer + 1, own + 1, SAP_PORT]);
    let mut session = description(&format, peer);
    session.streams[0].accepts_nack = true;
    session.streams[0].retransmission =
        Some(Retransmission { payload_type: 97, kept_for: Some(Duration::from_millis(200)) });
    announce(&session, own + 3);
    let mut options = receive_options(format, peer, FRAMES);
    options.rtcp.interval = REPORTS;
    options.control_to = vec![local(own + 1)];
    options.receiver.repair = Repair::by_retransmission(97);
    let receiver = Receiver::start(options);
    // The kernel cuts what leaves in one message before the relay has it: the packets are seen on the way from there.
    let route = Route::start(relay, peer, Duration::ZERO, drop_one_in(17, 0));
    let mut options = send_options(relay, FRAMES);
    options.from = vec![local(own)];
    options.control = ControlPort::At(peer + 1);
    options.mtu = Some(1500);
    options.rtcp.interval = REPORTS;
    options.sender.resend = Resend::Retransmission { payload_type: 97, ssrc: 0x0bad_cafe, first_sequence: 65_530 };
    let report = send(format, &options);
    let received = receiver.finish();
    received.check(&Pictures::new(format, FRAMES), FRAMES);
    let mut packets = capture.stop();
    packets.control = Some(own + 1);
    packets.check_well_formed();
    let others = packets.select(&format!("udp.dstport == {peer} && !rtp"), "frame.number");
    assert!(others.is_empty(), "not known as RTP: {others:?}");
    let others = packets.select(&format!("udp.dstport in {{{}, {}}} && !rtcp", peer + 1, own + 1), "frame.number");
    assert!(others.is_empty(), "not known as RTCP: {others:?}");
    let kept = (report.sender.packets_sent - route.dropped()) as usize;
    assert_eq!(packets.select("rtp.p_type == 96", "rtp.seq").len(), kept);
    assert_eq!(packets.select("rtp.p_type == 97", "rtp.seq").len() as u64, report.sender.packets_resent);
    assert_eq!(packets.select("rtp.p_type == 96 && rtp.marker == 1", "rtp.seq").len() as u32, 2 * FRAMES);
    let kinds: Vec<String> = packets.control_kinds().into_iter().collect();
    assert_eq!(kinds, ["200", "201", "202", "203", "205", "207"], "reports, description, BYE, NACK and XR");
    assert_eq!(packets.select(&format!("sap && udp.srcport == {}", own + 3), "sap.flags.t"), ["0", "1"]);
    assert_eq!(packets.select(&announced(own + 3), "sdp.media.port"), [peer.to_string()]);
}

#[test]
fn sound_and_the_description_of_a_studio_are_well_formed() {
    let port = ports();
    let audio = sound::format(2, PacketTime::EighthMillisecond);
    let picture = format(PixelFormat::Yuv422Bits10, (1920, 1080), 25, Scan::SegmentedFrame);
    let mut session = sound::description(audio, port);
    let mut streams = description(&picture, port + 2).streams;
    if let thalweg_video::sdp::MediaDescription::Video(video) = &mut streams[0].media {
        video.studio = Some(StudioParameters::new(PackingMode::General));
    }
    session.streams.append(&mut streams);
    let capture = Capture::start(&[port, SAP_PORT]);
    announce(&session, port + 1);
    let listener = UdpSocket::bind(local(port)).expect("the port is free");
    sound::send(audio, &sound::samples(2), port);
    drop(listener);
    let packets = capture.stop();
    packets.check_well_formed();
    assert_eq!(packets.select("rtp.p_type == 97", "rtp.seq").len(), sound::FRAMES / 6);
    assert_eq!(packets.select(&announced(port + 1), "sdp.media.port"), [format!("{port}|{}", port + 2)]);
    let table = packets.ask(&["-q", "-z", "rtp,streams"]);
    let row = table.lines().find(|line| line.contains("0x00005041")).expect("the stream is known");
    assert!(row.contains(" 0 (0.0%)"), "lost packets: {row}");
}

/// How often the ends report.
const REPORTS: Duration = Duration::from_millis(100);
