//! The driver of a receiver of sound: what arrives becomes blocks for a sink, each at its picture's time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::{ReceiveCounts, StreamOptions};

use super::control::{Control, ControlPeer};
use super::options::{Farewell, TOOL, random_words};
use super::pace::hear_before;
use super::receive::open_sockets;
use super::receive_error::ReceiveError;
use super::send::STOP_DELAY;
use super::socket::{ControlPort, MediaArrival, MediaReceiver, MediaSocket, Protocol};
use crate::audio::{AudioCounters, AudioReceiver, AudioReceiverConfig, SAMPLE_RATE_HZ};
use crate::receiver::{NackItem, RequestCounters};
use crate::rtcp::{LocalStreams, NackEntry, ReceivedStream, RtcpConfig, RtcpEvent, WallClock};
use crate::sink::SoundSink;

/// When pictures are shown by the clock of their sender, told by a receiver of pictures to one of sound.
#[derive(Clone, Debug, Default)]
pub struct PictureTimes(Arc<Mutex<Option<PictureTime>>>);

/// A moment of the sender's wall clock, and when its picture is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PictureTime {
    /// The canonical name of the sender: another one has another clock.
    pub cname: String,
    pub shown: WallClock,
}

impl PictureTimes {
    pub(super) fn tell(&self, time: PictureTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(time);
    }

    /// What was told last of the sender with this canonical name, if it is not `known`.
    fn news_of(&self, cname: &str, known: Option<&PictureTime>) -> Option<PictureTime> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.as_ref().filter(|told| told.cname == cname && Some(*told) != known).cloned()
    }
}

/// How sound is received.
#[derive(Clone, Debug)]
pub struct SoundReceiveOptions {
    /// Where RTP is heard: one address, or two for the two paths of ST 2022-7. A multicast address is joined.
    pub bind: Vec<SocketAddr>,
    /// Where RTCP is heard. Default: at the next port.
    pub control: ControlPort,
    /// Whom the group at each address of `bind` is heard from. Default, and where there is nobody: from everybody.
    pub group_sources: Vec<Vec<IpAddr>>,
    /// The interface that groups are joined on, by its index; 0 (default): that of a zone in `bind`, or else the choice of the system.
    pub group_interface: u32,
    /// Of every socket. Default: 1 MiB of receive buffer, half a second of eight channels.
    pub stream: StreamOptions,
    /// Form, delay, concealment and repair.
    pub receiver: AudioReceiverConfig,
    /// The source of our reports; random.
    pub ssrc: u32,
    /// Names and times of reports.
    pub rtcp: RtcpConfig,
    /// What a sender's farewell means, or, of sound without a picture, its silence for the time after which a peer is forgotten: sound
    /// with a picture may pause, and ends with that. Default: the end.
    pub farewell: Farewell,
    /// When the pictures of the same sender are shown; none by default.
    pub picture: Option<PictureTimes>,
}

impl SoundReceiveOptions {
    /// Receives sound at `bind`, with random identities.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(bind: SocketAddr, receiver: AudioReceiverConfig) -> io::Result<SoundReceiveOptions> {
        let [ssrc, ..] = random_words()?;
        Ok(SoundReceiveOptions {
            bind: vec![bind],
            control: ControlPort::Next,
            group_sources: Vec::new(),
            group_interface: 0,
            stream: StreamOptions { receive_buffer_bytes: 1 << 20, ..StreamOptions::default() },
            receiver,
            ssrc,
            rtcp: RtcpConfig { tool: TOOL.to_owned(), ..RtcpConfig::new(format!("{ssrc:08x}@thalweg")) },
            farewell: Farewell::End,
            picture: None,
        })
    }
}

/// What a receiver of sound did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SoundReceiveReport {
    /// Packets and samples.
    pub counters: AudioCounters,
    /// Samples of each channel that came and were not played.
    pub frames_waiting: u64,
    /// The last stream, with the packets of all that came without being sent again; `None` before the first one.
    pub stream: Option<ReceivedStream>,
    /// Packets of all streams that came because they were sent again.
    pub packets_recovered: u64,
    /// Requests for missing packets.
    pub requests: RequestCounters,
    /// What the sockets counted, of all paths.
    pub sockets: ReceiveCounts,
    /// By how many milliseconds sound is played after its picture; `None` until both ends of the comparison are known.
    pub behind_picture_millis: Option<f64>,
    /// How often the times of playing stepped: to meet the picture, or over 40 ms or more.
    pub steps: u64,
    /// There and back, once it is known.
    pub round_trip: Option<Duration>,
}

/// Receives sound and gives it to `sink` until `stop` is set or the sender leaves for good, and plays what is left.
///
/// Blocks are handed over once their time has come. A thread that the processors served late hands over what arrived in time all the
/// same: its sinks are files and checks, and no loudspeakers.
///
/// # Errors
/// The sockets cannot be opened, the sink fails, or the system's timers do.
pub fn run_sound_receiver(
    sink: &mut dyn SoundSink,
    options: &SoundReceiveOptions,
    stop: &AtomicBool,
) -> Result<SoundReceiveReport, ReceiveError> {
    SoundReceiver::open(options)?.run(sink, stop)
}

/// A receiver of sound whose sockets are open.
pub struct SoundReceiver<'options> {
    options: &'options SoundReceiveOptions,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
}

impl<'options> SoundReceiver<'options> {
    /// Opens the sockets, before the picture of this sound begins.
    ///
    /// # Errors
    /// They cannot be opened.
    pub fn open(options: &'options SoundReceiveOptions) -> Result<SoundReceiver<'options>, ReceiveError> {
        let SoundReceiveOptions { bind, stream, control, group_sources, group_interface, .. } = options;
        let paths = open_sockets(bind, *stream, *control, group_sources, *group_interface);
        let paths = paths.map_err(ReceiveError::Socket)?;
        let receiver = MediaReceiver::new(&paths).map_err(ReceiveError::Socket)?;
        Ok(SoundReceiver { options, paths, receiver })
    }

    /// Receives as [`run_sound_receiver`] does.
    ///
    /// # Errors
    /// The sink fails, or the system's timers do.
    pub fn run(self, sink: &mut dyn SoundSink, stop: &AtomicBool) -> Result<SoundReceiveReport, ReceiveError> {
        let SoundReceiver { options, paths, receiver } = self;
        let peers = vec![ControlPeer::Unknown; paths.len()];
        let AudioReceiverConfig { repair, delay, .. } = options.receiver;
        let repair = if paths.len() > 1 { repair.on_two_paths(delay) } else { repair };
        let hearing = SoundReceiving {
            options,
            audio: AudioReceiver::new(AudioReceiverConfig { repair, ..options.receiver }),
            control: Control::new(clock::now(), options.ssrc, options.rtcp.clone(), peers),
            paths,
            receiver,
            told: None,
            round_trip: None,
            heard: Instant::ZERO,
            left: None,
            block: Vec::new(),
        };
        hearing.run(sink, stop)
    }
}

struct SoundReceiving<'options> {
    options: &'options SoundReceiveOptions,
    audio: AudioReceiver,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
    control: Control,
    /// What the sound was last brought together with.
    told: Option<PictureTime>,
    round_trip: Option<Duration>,
    /// When the last packet of the stream came.
    heard: Instant,
    /// The sender that has left, and when packets behind it are no longer those that were on their way.
    left: Option<(u32, Instant)>,
    block: Vec<i32>,
}

impl SoundReceiving<'_> {
    fn run(mut self, sink: &mut dyn SoundSink, stop: &AtomicBool) -> Result<SoundReceiveReport, ReceiveError> {
        loop {
            let now = clock::now();
            if stop.load(Ordering::Relaxed) || now >= self.ends() {
                break;
            }
            let due = self.next_due().min(self.audio.nack_timeout()).min(self.control.poll_timeout());
            let due = due.min(self.ends()).min(now + STOP_DELAY);
            self.receiver.wait_until(due).map_err(ReceiveError::Socket)?;
            // What is queued is heard before its time to be played, though this thread may be late.
            hear_before(clock::now() + STOP_DELAY, || self.hear());
            self.ask(clock::now());
            self.follow_picture();
            self.play(clock::now(), sink)?;
            self.report_due(clock::now());
        }
        hear_before(clock::now() + STOP_DELAY, || self.hear());
        self.play_rest(sink)?;
        sink.finish().map_err(ReceiveError::Sink)?;
        let now = clock::now();
        let received = self.audio.received();
        let local = LocalStreams { received: received.as_slice(), ..LocalStreams::default() };
        self.control.send_bye(now, &self.paths, &local, "receiver ends");
        Ok(self.report())
    }

    /// Takes what arrived; returns whether more may be queued.
    fn hear(&mut self) -> bool {
        let SoundReceiving { receiver, control, audio, options, heard, .. } = self;
        let is_more = receiver.receive(|arrival: MediaArrival<'_>| {
            let (path, message) = (arrival.path, arrival.message);
            for (protocol, datagram) in arrival.datagrams() {
                if protocol == Protocol::Control {
                    let departed = control.handle_datagram(message.arrived, path, message.source, datagram);
                    departed.into_iter().for_each(|ssrc| audio.handle_departure(ssrc));
                    continue;
                }
                let packets = audio.counters().packets;
                // What is no sound is counted.
                let _ = audio.handle_datagram(message.arrived, datagram);
                // Everything else that comes here says nothing of where the sender is.
                if audio.counters().packets > packets {
                    *heard = message.arrived.max(*heard);
                    control.note_source(options.control, audio.received().map(|stream| stream.ssrc), &arrival);
                }
            }
        });
        let current = self.audio.received().map(|stream| stream.ssrc);
        if self.left.is_some_and(|(left, end)| current != Some(left) || self.heard + LINGER / 2 > end) {
            // Another sender goes on, the same under another number, or one that was only silent or whose farewell somebody else said.
            self.left = None;
        }
        while let Some(event) = self.control.poll_event() {
            match event {
                RtcpEvent::RoundTrip { ssrc, round_trip } if current == Some(ssrc) => {
                    self.round_trip = Some(round_trip);
                    self.audio.handle_round_trip(round_trip);
                }
                RtcpEvent::Left { ssrc, .. } if current == Some(ssrc) => {
                    self.left = Some((ssrc, clock::now() + LINGER))
                }
                RtcpEvent::Collision { .. } => _ = self.control.take_new_identity(clock::now(), &self.paths),
                _ => {}
            }
        }
        if self.left.is_none() && self.options.picture.is_none() {
            let silent = current.filter(|ssrc| self.control.is_silent(clock::now(), *ssrc, self.heard));
            self.left = silent.map(|ssrc| (ssrc, clock::now() + LINGER));
        }
        is_more
    }

    /// Asks for what is missing and can still be played.
    fn ask(&mut self, now: Instant) {
        let SoundReceiving { audio, control, paths, .. } = self;
        let Some(ssrc) = audio.received().map(|stream| stream.ssrc) else { return };
        while let Some(items) = audio.poll_nack(now) {
            let entry = |item: &NackItem| NackEntry { first: item.packet, following: item.following };
            control.send_nack(paths, ssrc, items.iter().map(entry));
        }
    }

    /// When receiving ends, as far as it is known.
    fn ends(&self) -> Instant {
        let last = self.left.filter(|_| self.options.farewell == Farewell::End);
        last.map_or(Instant::NEVER, |(_, end)| end)
    }

    /// Brings the sound together with the picture of the same sender.
    fn follow_picture(&mut self) {
        let Some(times) = &self.options.picture else { return };
        let ssrc = self.audio.received().map(|stream| stream.ssrc);
        let Some(peer) = ssrc.and_then(|ssrc| self.control.peer(ssrc)) else { return };
        let (Some(cname), Some(clock)) = (&peer.cname, peer.media_clock(SAMPLE_RATE_HZ)) else { return };
        if let Some(time) = times.news_of(cname, self.told.as_ref()) {
            self.audio.set_picture(time.shown, clock);
            self.told = Some(time);
        }
    }

    /// When the next block is to be played.
    fn next_due(&self) -> Instant {
        let plays = self.left.is_none() || self.audio.frames_waiting() > 0;
        if plays { self.audio.poll_timeout() } else { Instant::NEVER }
    }

    fn play(&mut self, now: Instant, sink: &mut dyn SoundSink) -> Result<(), ReceiveError> {
        // After a farewell nothing is missing behind the last sample.
        while self.next_due() <= now {
            self.play_block(sink)?;
        }
        Ok(())
    }

    /// Plays what waits, though its time has not come.
    fn play_rest(&mut self, sink: &mut dyn SoundSink) -> Result<(), ReceiveError> {
        while self.audio.frames_waiting() > 0 && self.audio.poll_timeout() < Instant::NEVER {
            self.play_block(sink)?;
        }
        Ok(())
    }

    fn play_block(&mut self, sink: &mut dyn SoundSink) -> Result<(), ReceiveError> {
        self.block.clear();
        let due = self.audio.poll_timeout();
        match self.audio.poll_block(due, &mut self.block) {
            Some(block) => sink.take(&block, &self.block).map_err(ReceiveError::Sink),
            None => Ok(()),
        }
    }

    fn report_due(&mut self, now: Instant) {
        if self.control.is_due(now) {
            let received = self.audio.received();
            let local = LocalStreams { received: received.as_slice(), ..LocalStreams::default() };
            self.control.send_report(now, &self.paths, &local);
        }
    }

    fn report(&self) -> SoundReceiveReport {
        let (expected, received) = self.audio.packets();
        SoundReceiveReport {
            counters: self.audio.counters(),
            frames_waiting: self.audio.frames_waiting(),
            stream: self.audio.received().map(|stream| ReceivedStream { expected, received, ..stream }),
            packets_recovered: self.audio.recovered(),
            requests: self.audio.requests(),
            sockets: self.receiver.counts(),
            behind_picture_millis: self.audio.picture_offset_millis(),
            steps: self.audio.steps(),
            round_trip: self.round_trip,
        }
    }
}

/// How long packets may come after their sender's farewell.
const LINGER: Duration = Duration::from_millis(100);
