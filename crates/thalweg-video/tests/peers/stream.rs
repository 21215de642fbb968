//! Our ends of a stream.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_video::format::VideoFormat;
use thalweg_video::io::{ReceiveOptions, ReceiveReport, SendOptions, SendReport, run_receiver, run_sender};
use thalweg_video::receiver::{ReceivedPicture, ReceiverConfig};
use thalweg_video::sdp::{MediaDescription, SessionDescription, StreamDescription, StreamPath, VideoDescription};
use thalweg_video::sink::{FrameSink, SinkError};
use thalweg_video::source::PictureSource;

use crate::pictures::Pictures;

/// A port of this host.
pub fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The description of a picture stream to a port of this host.
pub fn description(format: &VideoFormat, port: u16) -> SessionDescription {
    description_of(MediaDescription::Video(VideoDescription::from_format(format)), 96, port)
}

/// The description of a stream to a port of this host.
pub fn description_of(media: MediaDescription, payload_type: u8, port: u16) -> SessionDescription {
    let stream = StreamDescription {
        media,
        payload_type,
        paths: vec![StreamPath::new(local(port))],
        accepts_nack: false,
        retransmission: None,
        reference_clocks: Vec::new(),
        media_clock: None,
    };
    SessionDescription {
        name: "test".to_owned(),
        id: 1,
        version: 1,
        origin: "127.0.0.1".to_owned(),
        streams: vec![stream],
    }
}

/// Sends test pictures to the end.
#[track_caller]
pub fn send(format: VideoFormat, options: &SendOptions) -> SendReport {
    let mut source = PictureSource::new(format).expect("the picture is wide enough");
    let report = run_sender(&mut source, options, &AtomicBool::new(false), |_| ()).expect("a sender");
    assert_eq!(report.lost, 0, "the system took everything");
    report
}

/// Options that send `frames` frames to a port of this host.
pub fn send_options(port: u16, frames: u32) -> SendOptions {
    let options = SendOptions::new(local(port)).expect("random numbers");
    SendOptions { frames_max: frames.into(), ..options }
}

/// Options that receive `frames` frames at a port of this host. The processors may serve others for some frame times.
pub fn receive_options(format: VideoFormat, port: u16, frames: u32) -> ReceiveOptions {
    let config = ReceiverConfig { playout: 8 * format.frame_time(), ..ReceiverConfig::new(format) };
    let options = ReceiveOptions::new(local(port), config).expect("random numbers");
    ReceiveOptions { frames_max: frames.into(), duration: RECEIVE_MAX, ..options }
}

impl Received {
    /// Fails unless these are all the pictures that were expected, but for those that a busy machine had no time to keep.
    #[track_caller]
    pub fn check(&self, pictures: &Pictures, expected: u32) {
        assert!(self.report.sink_missed < u64::from(expected) / 2, "the machine is too busy");
        pictures.check(&self.frames, u64::from(expected) - self.report.sink_missed);
    }
}

/// A receiver on a thread of its own.
pub struct Receiver(JoinHandle<Received>);

/// What came.
pub struct Received {
    pub report: ReceiveReport,
    pub frames: Vec<Vec<u8>>,
    /// Frames of `frames` in which something was concealed.
    pub concealed: usize,
}

impl Receiver {
    pub fn start(options: ReceiveOptions) -> Receiver {
        let port = options.bind[0].port();
        let thread = std::thread::spawn(move || {
            let mut taken = Taken::default();
            let report = run_receiver(&mut taken, &options, &AtomicBool::new(false), |_| ()).expect("a receiver");
            assert!(report.receiver.packets.are_consistent(), "{:?}", report.receiver.packets);
            Received { report, frames: taken.frames, concealed: taken.concealed }
        });
        crate::network::wait_for_listener(port);
        Receiver(thread)
    }

    /// Waits for the last frame.
    #[track_caller]
    pub fn finish(self) -> Received {
        self.0.join().expect("the receiver ends")
    }
}

/// Keeps every frame.
#[derive(Default)]
struct Taken {
    frames: Vec<Vec<u8>>,
    concealed: usize,
}

impl FrameSink for Taken {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        self.frames.push(picture.octets.to_vec());
        self.concealed += usize::from(!picture.is_complete());
        Ok(())
    }
}

/// The longest time that a test receives.
const RECEIVE_MAX: Duration = Duration::from_secs(30);
