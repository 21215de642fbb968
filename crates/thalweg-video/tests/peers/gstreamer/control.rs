//! Reports and repetitions between us and GStreamer's sessions.

use std::path::Path;
use std::time::Duration;

use thalweg_video::format::{PixelFormat, Scan, VideoFormat};
use thalweg_video::io::{ControlPort, SendOptions, run_sender};
use thalweg_video::receiver::Repair;
use thalweg_video::sender::Resend;
use thalweg_video::source::PictureSource;

use super::{caps, launch, launch_with_log};
use crate::network::{dropped, file_fills, ports, wait_for_listener};
use crate::pictures::{Pictures, file, format, read_raw};
use crate::relay::{Route, drop_one_in, keep};
use crate::stream::{Receiver, local, receive_options, send, send_options};

fn small(rate: u32) -> VideoFormat {
    format(PixelFormat::Yuv422Bits10, (160, 90), rate, Scan::Progressive)
}

/// Sends from a known port, so that reports find the way back.
fn answered_options(own: u16, to: u16, frames: u32) -> SendOptions {
    let mut options = send_options(to, frames);
    options.from = vec![local(own)];
    options.rtcp.interval = REPORTS;
    options
}

#[test]
fn round_trips_to_gstreamer_are_those_of_the_network() {
    let format = small(20);
    let (own, relay, peer) = (ports(), ports(), ports());
    let routes = [
        Route::start(relay, peer, DELAY, keep()),
        Route::start(relay + 1, peer + 1, DELAY, keep()),
        Route::start(relay + 2, own + 1, DELAY, keep()),
    ];
    let pipeline = launch(&format!(
        "rtpbin name=bin rtpsession0::rtcp-min-interval=200000000 \
         udpsrc address=127.0.0.1 port={peer} caps={} ! bin.recv_rtp_sink_0 bin. ! rtpvrawdepay ! fakesink sync=false \
         udpsrc address=127.0.0.1 port={} ! bin.recv_rtcp_sink_0 \
         bin.send_rtcp_src_0 ! udpsink host=127.0.0.1 port={} sync=false async=false",
        caps(&format, peer),
        peer + 1,
        relay + 2,
    ));
    wait_for_listener(peer);
    wait_for_listener(peer + 1);
    let options = answered_options(own, relay, 120);
    let mut round_trips = Vec::new();
    let mut source = PictureSource::new(format).expect("the picture is wide enough");
    let stop = std::sync::atomic::AtomicBool::new(false);
    run_sender(&mut source, &options, &stop, |second| {
        round_trips.extend(second.report.peer.and_then(|peer| peer.round_trip))
    })
    .expect("a sender");
    pipeline.kill();
    check_round_trips(round_trips, &routes[1..]);
}

#[test]
fn round_trips_that_gstreamer_measures_to_us_are_those_of_the_network() {
    const FRAMES: u32 = 30;
    let format = small(10);
    let (own, relay, peer) = (ports(), ports(), ports());
    let mut options = receive_options(format, own, FRAMES);
    options.rtcp.interval = REPORTS;
    options.control_to = vec![local(relay + 1)];
    let pictures = Pictures::new(format, FRAMES);
    let input = pictures.write_raw(&format!("reported-{own}.raw"));
    let routes = [Route::start(relay, own + 1, DELAY, keep()), Route::start(relay + 1, peer + 1, DELAY, keep())];
    let receiver = Receiver::start(options);
    let words = format!(
        "rtpsession name=session rtcp-min-interval=200000000 bandwidth=10000000 {} ! session.send_rtp_sink \
         session.send_rtp_src ! udpsink host=127.0.0.1 port={own} \
         session.send_rtcp_src ! udpsink host=127.0.0.1 port={relay} sync=false async=false \
         udpsrc address=127.0.0.1 port={} ! session.recv_rtcp_sink",
        source(&input, &format),
        peer + 1,
    );
    let pipeline = launch_with_log(&words, "rtpsource:5");
    receiver.finish().check(&pictures, FRAMES);
    let said = pipeline.interrupt().lines;
    let reports = said.iter().filter(|line| line.contains("got RB packet"));
    assert!(reports.into_iter().all(|line| line.contains("FL  0, PL 0,")), "losses that there were not");
    check_round_trips(said.iter().filter_map(|line| logged_round_trip(line)).collect(), &routes);
}

/// A time that GStreamer logs as seconds and their fraction, 16 bits each in hexadecimal; zero where it has none.
fn logged_round_trip(line: &str) -> Option<Duration> {
    let (seconds, fraction) = line.split_once("round trip ")?.1.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let time = Duration::from_secs_f64(f64::from(number(seconds)? << 16 | number(fraction)?) / 65_536.0);
    Some(time).filter(|time| !time.is_zero())
}

/// Compares the least of them with what the routes there and back took.
#[track_caller]
fn check_round_trips(round_trips: Vec<Duration>, routes: &[Route]) {
    let least = *round_trips.iter().min().expect("a report that answers one");
    let delay = routes.iter().map(Route::least_delay).sum::<Duration>();
    // A busy machine makes single ones longer, never shorter.
    let range = delay - RESOLUTION..=delay + Duration::from_millis(1);
    assert!(range.contains(&least), "{least:?} of {round_trips:?} is not in {range:?}");
    assert!(delay >= 2 * DELAY);
}

/// A file of test pictures as packets.
fn source(input: &Path, format: &VideoFormat) -> String {
    format!(
        "filesrc location={} ! rawvideoparse format=uyvp width={} height={} framerate={}/1 ! rtpvrawpay mtu=1472",
        input.display(),
        format.width(),
        format.height(),
        format.rate().numerator(),
    )
}

/// The part of GStreamer that has the session of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Session {
    /// `rtpsession`, and what else it takes beside it.
    Alone,
    /// `rtpbin`, in whose session 0 everything is. Repetitions are made before it and taken out of their stream before it: `gst-launch-1.0`
    /// cannot answer a bin that asks for their elements.
    InBin,
}

impl Session {
    fn element(self) -> &'static str {
        match self {
            Session::Alone => "rtpsession",
            Session::InBin => "rtpbin",
        }
    }

    /// The end of the names of its pads.
    fn number(self) -> &'static str {
        match self {
            Session::Alone => "",
            Session::InBin => "_0",
        }
    }
}

#[test]
fn gstreamer_sends_again_what_we_ask_for() {
    check_asked(Session::Alone);
}

#[test]
fn a_bin_of_gstreamer_sends_again_what_we_ask_for() {
    check_asked(Session::InBin);
}

#[track_caller]
fn check_asked(session: Session) {
    const FRAMES: u32 = 20;
    let format = small(10);
    let (own, relay, peer) = (ports(), ports(), ports());
    let mut options = receive_options(format, own, FRAMES);
    options.rtcp.interval = REPORTS;
    options.control_to = vec![local(peer + 1)];
    options.receiver.repair = Repair::by_retransmission(97);
    let pictures = Pictures::new(format, FRAMES);
    // GStreamer ends with its file, and answers no request after it.
    let input = Pictures::new(format, FRAMES + 1).write_raw(&format!("repeated-{own}.raw"));
    let receiver = Receiver::start(options);
    let route = Route::start(relay, own, Duration::ZERO, drop_one_in(16, 0));
    let (element, number) = (session.element(), session.number());
    let pipeline = launch(&format!(
        "{element} name=session rtp-profile=avpf {} ! \
         rtprtxsend payload-type-map=application/x-rtp-pt-map,96=(uint)97 max-size-packets=4000 ! session.send_rtp_sink{number} \
         session.send_rtp_src{number} ! udpsink host=127.0.0.1 port={relay} \
         session.send_rtcp_src{number} ! udpsink host=127.0.0.1 port={} sync=false async=false \
         udpsrc address=127.0.0.1 port={} ! session.recv_rtcp_sink{number}",
        source(&input, &format),
        own + 1,
        peer + 1,
    ));
    let received = receiver.finish();
    pipeline.kill();
    let packets = received.report.receiver.packets;
    assert_eq!(received.concealed, 0, "{:?}", received.report.receiver);
    // Of the frame after the last one some are still asked for. On a busy machine the kernel drops some at the sockets, repetitions too.
    let missing = route.dropped()..=route.dropped() + dropped(relay) + received.report.sockets.kernel_drops;
    assert!(missing.contains(&(packets.recovered + packets.lost + packets.outstanding)), "{packets:?} {missing:?}");
    assert!(packets.recovered > 20);
    received.check(&pictures, FRAMES);
}

#[test]
fn we_send_again_what_gstreamer_asks_for() {
    check_answered(Session::Alone);
}

#[test]
fn we_send_again_what_a_bin_of_gstreamer_asks_for() {
    check_answered(Session::InBin);
}

/// From the packets of our stream and its repetitions to those of the picture, in their order.
fn ordering(session: Session, arrivals: &str) -> String {
    let map = "rtprtxreceive payload-type-map=application/x-rtp-pt-map,96=(uint)97";
    match session {
        Session::Alone => format!(
            "rtpsession name=session rtp-profile=avpf rtcp-min-interval=10000000 bandwidth=10000000 \
             {arrivals} ! session.recv_rtp_sink session.recv_rtp_src ! {map} ! \
             rtpssrcdemux ! rtpjitterbuffer latency=500 do-retransmission=true"
        ),
        Session::InBin => format!(
            "rtpbin name=session rtp-profile=avpf latency=500 do-retransmission=true \
             rtpsession0::rtcp-min-interval=10000000 rtpsession0::bandwidth=10000000 \
             {arrivals} ! {map} ssrc-map=application/x-rtp-ssrc-map,{SSRC}=(uint){AGAIN_SSRC} ! session.recv_rtp_sink_0 session."
        ),
    }
}

#[track_caller]
fn check_answered(session: Session) {
    const FRAMES: u32 = 16;
    // We keep three frames, which must be longer than a busy GStreamer takes to ask.
    let format = small(5);
    let (own, relay, peer) = (ports(), ports(), ports());
    let pictures = Pictures::new(format, FRAMES);
    let output = file(&format!("repaired-{peer}.raw"));
    let route = Route::start(relay, peer, Duration::ZERO, drop_one_in(31, 60));
    let mut options = answered_options(own, relay, FRAMES);
    options.mtu = Some(1500);
    options.control = ControlPort::At(peer + 1);
    options.sender.ssrc = SSRC;
    options.sender.resend = Resend::Retransmission { payload_type: 97, ssrc: AGAIN_SSRC, first_sequence: 65_530 };
    let arrivals = format!("udpsrc address=127.0.0.1 port={peer} buffer-size=16777216 caps={}", caps(&format, peer));
    let number = session.number();
    let pipeline = launch(&format!(
        "{} ! rtpvrawdepay ! filesink location={} buffer-mode=unbuffered sync=false \
         udpsrc address=127.0.0.1 port={} ! session.recv_rtcp_sink{number} \
         session.send_rtcp_src{number} ! udpsink host=127.0.0.1 port={} sync=false async=false",
        ordering(session, &arrivals),
        output.display(),
        peer + 1,
        own + 1,
    ));
    wait_for_listener(peer);
    wait_for_listener(peer + 1);
    let report = send(format, &options);
    let octets = report.sender.frames_sent * format.frame_octets() as u64;
    let is_whole = file_fills(&output, octets, Duration::from_secs(10));
    println!("{:?} dropped {}", report.sender, route.dropped());
    pipeline.kill();
    assert!(is_whole, "GStreamer wrote too little");
    pictures.check(&read_raw(&output, format), report.sender.frames_sent);
    assert!(route.dropped() > 9 && report.sender.packets_resent >= route.dropped(), "{:?}", report.sender);
}

/// Of our stream.
const SSRC: u32 = 0x0c0f_fee0;
/// Of its repetitions.
const AGAIN_SSRC: u32 = 0x0bad_cafe;
/// Of the network in each direction.
const DELAY: Duration = Duration::from_millis(20);
/// How often our ends report: often, since only some of the reports are answered.
const REPORTS: Duration = Duration::from_millis(100);
/// Of round trips computed from the 32 middle bits of NTP times.
const RESOLUTION: Duration = Duration::from_micros(31);
