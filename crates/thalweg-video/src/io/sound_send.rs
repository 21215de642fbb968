//! The driver of a sender of sound: a source's samples leave by the sockets at their times.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::{IcmpNews, StreamOptions, StreamScratch};

use super::control::{Control, ControlPeer, wall_clock};
use super::options::{PathRoom, TOOL, random_words};
use super::pace::hear_before;
use super::send::{PeerReport, STOP_DELAY, hear_sender, open_sockets};
use super::send_error::SendError;
use super::socket::{ControlPort, MediaReceiver, MediaSocket};
use crate::audio::{AudioFormat, AudioSender, AudioSenderConfig, SAMPLE_RATE_HZ};
use crate::rtcp::{LocalStreams, RtcpConfig, RtcpEvent};
use crate::sender::Resend;
use crate::source::SoundSource;

/// When the first frame of a picture begins, told by its sender to that of its sound.
#[derive(Clone, Debug, Default)]
pub struct StreamStart(Arc<OnceLock<Instant>>);

impl StreamStart {
    pub(super) fn tell(&self, start: Instant) {
        // A stream begins once.
        let _ = self.0.set(start);
    }

    fn get(&self) -> Option<Instant> {
        self.0.get().copied()
    }
}

/// How sound is sent.
#[derive(Clone, Debug)]
pub struct SoundSendOptions {
    /// Where RTP goes: one address, or two for the two paths of ST 2022-7.
    pub to: Vec<SocketAddr>,
    /// Where RTCP goes and is heard. Default: the next port.
    pub control: ControlPort,
    /// Of every socket. Default: as [`SendOptions`](super::SendOptions) has.
    pub stream: StreamOptions,
    /// The MTU in bytes that packets fit. Default `None`: that of the narrowest path.
    pub mtu: Option<u32>,
    /// Form, numbers and repetition.
    pub sender: AudioSenderConfig,
    /// Names and times of reports. Sound with a picture has the picture's canonical name.
    pub rtcp: RtcpConfig,
    /// When the picture begins, with which the first sample is sent; at once by default.
    pub start: Option<StreamStart>,
}

impl SoundSendOptions {
    /// Sends sound to `to` with random identities.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(to: SocketAddr, format: AudioFormat, payload_type: u8) -> io::Result<SoundSendOptions> {
        let [ssrc, sequence, timestamp] = random_words()?;
        let stream = StreamOptions { receive_buffer_bytes: 1 << 20, icmp: IcmpNews::Heard, ..StreamOptions::default() };
        Ok(SoundSendOptions {
            to: vec![to],
            control: ControlPort::Next,
            stream,
            mtu: None,
            sender: AudioSenderConfig {
                format,
                payload_type,
                ssrc,
                // They have 16 bits.
                sequence: sequence as u16,
                timestamp,
                resend: Resend::Never,
            },
            rtcp: RtcpConfig { tool: TOOL.to_owned(), ..RtcpConfig::new(format!("{ssrc:08x}@thalweg")) },
            start: None,
        })
    }

    /// Octets of the largest datagram: a packet, or its repetition.
    pub fn datagram_octets(&self) -> usize {
        self.sender.format.datagram_octets() + self.sender.resend.added_octets()
    }

    /// What the narrowest path carries now.
    ///
    /// # Errors
    /// No route leads there, and no MTU is told.
    pub fn room(&self) -> io::Result<PathRoom> {
        PathRoom::of(&self.to, self.mtu, &self.stream)
    }
}

/// What a sender of sound did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoundSendReport {
    /// Packets, of each path the same, without repetitions.
    pub packets: u64,
    /// Packets sent again.
    pub packets_resent: u64,
    /// Packets that were not sent because they were late by more than 100 ms.
    pub packets_dropped: u64,
    /// Datagrams that the system did not take, of all paths.
    pub lost: u64,
    /// What the last report of a receiver said.
    pub peer: Option<PeerReport>,
}

/// Sends the samples of `source` until it ends or `stop` is set.
///
/// # Errors
/// The sockets cannot be opened, the source has other channels than the form or fails, or the system's timers do.
pub fn run_sound_sender(
    source: &mut dyn SoundSource,
    options: &SoundSendOptions,
    stop: &AtomicBool,
) -> Result<SoundSendReport, SendError> {
    SoundSender::open(options)?.run(source, stop)
}

/// A sender of sound whose sockets are open.
pub struct SoundSender<'options> {
    options: &'options SoundSendOptions,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
}

impl<'options> SoundSender<'options> {
    /// Opens the sockets, before the picture of this sound begins.
    ///
    /// # Errors
    /// They cannot be opened, no route leads to the receivers, or packets do not fit the path.
    pub fn open(options: &'options SoundSendOptions) -> Result<SoundSender<'options>, SendError> {
        let (octets, room) = (options.datagram_octets(), options.room().map_err(SendError::Socket)?);
        if octets > room.payload {
            return Err(SendError::Oversize { octets, room });
        }
        let paths = open_sockets(&options.to, &[], options.stream, options.control).map_err(SendError::Socket)?;
        let receiver = MediaReceiver::new(&paths).map_err(SendError::Socket)?;
        Ok(SoundSender { options, paths, receiver })
    }

    /// Sends the samples of `source` until it ends or `stop` is set.
    ///
    /// # Errors
    /// The source has other channels than the form or fails, or the system's timers do.
    pub fn run(self, source: &mut dyn SoundSource, stop: &AtomicBool) -> Result<SoundSendReport, SendError> {
        let SoundSender { options, paths, receiver } = self;
        let format = options.sender.format;
        if usize::from(source.channels()) != format.channels() {
            return Err(SendError::Channels { source: source.channels(), format: format.channels() });
        }
        let Some(start) = wait_for_start(options.start.as_ref(), stop) else { return Ok(SoundSendReport::default()) };
        let peers: io::Result<Vec<ControlPeer>> =
            options.to.iter().map(|to| Ok(ControlPeer::Told(options.control.beside(*to)?))).collect();
        let AudioSenderConfig { ssrc, resend, .. } = options.sender;
        let control = Control::new(clock::now(), ssrc, options.rtcp.clone(), peers.map_err(SendError::Socket)?);
        let sending = SoundSending {
            options,
            sender: AudioSender::new(start, options.sender),
            paths,
            receiver,
            control: control.repeating(resend),
            scratch: StreamScratch::default(),
            samples: Vec::new(),
            datagram: Vec::new(),
            report: SoundSendReport::default(),
        };
        sending.run(source, stop)
    }
}

/// When the stream begins; `None` when it is to stop before.
fn wait_for_start(start: Option<&StreamStart>, stop: &AtomicBool) -> Option<Instant> {
    let Some(start) = start else { return Some(clock::now()) };
    while start.get().is_none() && !stop.load(Ordering::Relaxed) {
        clock::sleep_until(clock::now() + START_LOOK);
    }
    start.get()
}

struct SoundSending<'options> {
    options: &'options SoundSendOptions,
    sender: AudioSender,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
    control: Control,
    scratch: StreamScratch,
    samples: Vec<i32>,
    /// The packet that is sent; its memory is used again.
    datagram: Vec<u8>,
    report: SoundSendReport,
}

impl SoundSending<'_> {
    fn run(mut self, source: &mut dyn SoundSource, stop: &AtomicBool) -> Result<SoundSendReport, SendError> {
        let mut has_more = true;
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            if has_more {
                has_more = self.fill(now, source)?;
            }
            self.send_due(now);
            let due = self.sender.poll_timeout();
            if !has_more && due == Instant::NEVER {
                break;
            }
            self.report_due(now);
            let due = due.min(self.control.poll_timeout()).min(now + STOP_DELAY);
            self.receiver.wait_until(due).map_err(SendError::Socket)?;
            hear_before(due, || self.hear());
        }
        let now = clock::now();
        let local = self.streams();
        self.report.packets = self.sender.packets();
        self.report.packets_resent = self.sender.packets_resent();
        self.report.packets_dropped = self.sender.packets_dropped();
        self.control.send_bye(now, &self.paths, &local, "end of stream");
        Ok(self.report)
    }

    /// Prepares samples a little ahead of their time; returns whether the source has more.
    fn fill(&mut self, now: Instant, source: &mut dyn SoundSource) -> Result<bool, SendError> {
        while self.sender.pending_until() < now + AHEAD {
            self.samples.clear();
            if source.fill(FILL_FRAMES, &mut self.samples).map_err(SendError::Source)? == 0 {
                self.sender.handle_end();
                return Ok(false);
            }
            self.sender.handle_samples(now, &self.samples);
        }
        Ok(true)
    }

    fn send_due(&mut self, now: Instant) {
        let SoundSending { options, sender, paths, scratch, datagram, report, .. } = self;
        datagram.clear();
        while sender.poll_packet(now, datagram) || sender.poll_repetition(datagram) {
            for (path, to) in paths.iter().zip(&options.to) {
                let mut burst = path.media().burst(scratch, *to);
                burst.push([&datagram[..]]);
                report.lost += burst.send(SEND_PATIENCE).lost as u64;
            }
            datagram.clear();
        }
    }

    fn report_due(&mut self, now: Instant) {
        if self.control.is_due(now) {
            let local = self.streams();
            self.control.send_report(now, &self.paths, &local);
        }
    }

    /// What reports tell.
    fn streams(&self) -> LocalStreams<'static> {
        // One right after the other: time between the two readings would shift sound against the picture.
        let wall_clock = wall_clock(clock::now());
        let (sent, repetitions) = (self.sender.sent(&wall_clock), self.sender.repeated(&wall_clock));
        LocalStreams { sent: Some(sent), repetitions: Some(repetitions), received: &[] }
    }

    /// Hears RTCP, and who else has our numbers; returns whether more may be queued.
    fn hear(&mut self) -> bool {
        let SoundSending { receiver, control, .. } = self;
        let is_more = receiver.receive(|arrival| hear_sender(control, &arrival));
        while let Some(event) = self.control.poll_event() {
            self.handle_event(&event);
        }
        is_more
    }

    fn handle_event(&mut self, event: &RtcpEvent) {
        match event {
            RtcpEvent::Nack { entries, .. } => {
                self.sender.handle_nack(entries.iter().flat_map(|entry| entry.sequence_numbers()));
            }
            RtcpEvent::Report { from, block } => {
                let jitter = Duration::from_nanos(u64::from(block.jitter) * 1_000_000_000 / u64::from(SAMPLE_RATE_HZ));
                let round_trip = self.report.peer.filter(|peer| peer.ssrc == *from).and_then(|peer| peer.round_trip);
                self.report.peer = Some(PeerReport { ssrc: *from, round_trip, lost: block.cumulative_lost, jitter });
            }
            RtcpEvent::RoundTrip { ssrc, round_trip } => {
                let peer = self.report.peer.get_or_insert(PeerReport { ssrc: *ssrc, ..PeerReport::default() });
                peer.round_trip = Some(*round_trip);
            }
            RtcpEvent::Collision { .. } => {
                if let Some(ssrc) = self.control.take_new_identity(clock::now(), &self.paths) {
                    self.sender.set_ssrc(ssrc);
                }
            }
            RtcpEvent::RepetitionsCollision { .. } => {
                if let Some(ssrc) = self.control.take_new_repetitions(clock::now(), &self.paths) {
                    self.sender.set_repetitions_ssrc(ssrc);
                }
            }
            _ => {}
        }
    }
}

/// How often it is looked whether the picture has begun; what is late by so much is sent at once.
const START_LOOK: Duration = Duration::from_millis(2);
/// Samples are prepared for so long: a disk answers within it.
const AHEAD: Duration = Duration::from_millis(200);
/// Samples of each channel that the source is asked for at a time: 20 ms.
const FILL_FRAMES: usize = 960;
/// How long a packet waits for room.
const SEND_PATIENCE: Duration = Duration::from_micros(500);
