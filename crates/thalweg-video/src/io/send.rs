//! The driver of a sender: a source's frames leave by the sockets at their times, and receivers are answered.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::stream::{SendCounts, Sent, StreamOptions, StreamScratch};
use thalweg_transport::{clock, thread};

use super::control::{Control, ControlPeer};
use super::frames::{Prepared, PreparedFrames, prepare};
use super::options::SendOptions;
use super::pace::{Ask, Lateness, Waits, hear_before};
use super::pacing::SentPacing;
use super::send_error::SendError;
use super::socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, Protocol};
use super::windows::{Seconds, Windows};
use crate::conformance::{PacingRefusal, PacingSummary};
use crate::rfc4175::PacketPlan;
use crate::rtcp::{LocalStreams, MediaClock, NtpTime, RtcpEvent, SentStream};
use crate::sender::{FRAMES_KEPT, PacketBatch, SenderConfig, SenderCounters, SentCounts, VideoSender};
use crate::source::FrameSource;

/// What a sender did until a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendReport {
    /// Since its first frame.
    pub elapsed: Duration,
    /// Processor time of the process since then.
    pub cpu: Duration,
    /// Frames and packets.
    pub sender: SenderCounters,
    /// Datagrams that the system did not take, of all paths.
    pub lost: u64,
    /// Calls and datagrams at the sockets, of all paths.
    pub sockets: SendCounts,
    /// How late waits for packets ended.
    pub lateness: Lateness,
    /// Frames in each whole second.
    pub fps: Windows,
    /// What the last report of a receiver said.
    pub peer: Option<PeerReport>,
    /// How often packets became smaller because a path became narrower.
    pub replans: u64,
    /// How evenly packets left, since frames were last cut anew; `None` where it is not measured.
    pub pacing: Option<Result<PacingSummary, PacingRefusal>>,
}

/// What a receiver last said of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerReport {
    /// Its SSRC.
    pub ssrc: u32,
    /// There and back, once it is known.
    pub round_trip: Option<Duration>,
    /// Packets that it lacks; negative when more came than were sent.
    pub lost: i32,
    /// Its estimate of jitter (RFC 3550 §6.4.1).
    pub jitter: Duration,
}

/// One second of a running sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendSecond {
    /// Frames a second in it.
    pub fps: f64,
    /// Processors that the process used in it.
    pub processors: f64,
    /// Everything until its end.
    pub report: SendReport,
}

/// Sends the frames of `source` until it ends, a limit of `options` is reached or `stop` is set; calls `each_second` on the calling
/// thread while threads of its own send and prepare frames. A source that blocks, such as a pipe that nobody fills, delays the return.
///
/// # Errors
/// The sockets cannot be opened, the format does not fit the path, the source fails, or the system's timers do.
pub fn run_sender(
    source: &mut dyn FrameSource,
    options: &SendOptions,
    stop: &AtomicBool,
    mut each_second: impl FnMut(&SendSecond),
) -> Result<SendReport, SendError> {
    let paths = open_sockets(&options.to, &options.from, options.stream, options.control).map_err(SendError::Socket)?;
    let plan = options.plan(source.format())?;
    let sender = VideoSender::new(plan, options.sender).map_err(SendError::Config)?;
    let receiver = MediaReceiver::new(&paths).map_err(SendError::Socket)?;
    let held = FRAMES_KEPT + 2;
    let (preparation, frames) = prepare(source, options.frames_max, held, receiver.waker());
    let (seconds, told) = sync_channel(SECONDS_MAX);
    let mut sending = Sending::new(options, sender, paths, receiver, seconds).map_err(SendError::Socket)?;
    sending.report_early();
    std::thread::scope(|scope| {
        let prepare = std::thread::Builder::new().name("video-source".to_owned());
        let send = std::thread::Builder::new().name("video-send".to_owned());
        prepare.spawn_scoped(scope, || preparation.run()).map_err(SendError::Socket)?;
        let send = send.spawn_scoped(scope, || sending.run(frames, stop)).map_err(SendError::Socket)?;
        // They end with the thread that sends.
        told.into_iter().for_each(|second| each_second(&second));
        send.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Opens the sockets of a sender, one path for each address of `to`.
pub(super) fn open_sockets(
    to: &[SocketAddr],
    from: &[SocketAddr],
    stream: StreamOptions,
    control: ControlPort,
) -> io::Result<Vec<MediaSocket>> {
    let open = |(place, to): (usize, &SocketAddr)| {
        let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let from = from.get(place).copied().unwrap_or(SocketAddr::new(any, 0));
        MediaSocket::bind(from, &MediaOptions { stream, control: local_control(control) })
    };
    to.iter().enumerate().map(open).collect()
}

/// Where RTCP is heard here: a port that the user gave is the peer's.
fn local_control(control: ControlPort) -> ControlPort {
    if control == ControlPort::Multiplexed { control } else { ControlPort::Next }
}

/// The thread that sends.
struct Sending<'options> {
    options: &'options SendOptions,
    sender: VideoSender,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
    control: Control,
    scratch: StreamScratch,
    tally: Tally,
    seconds: SyncSender<SendSecond>,
}

/// What is told of the stream.
struct Tally {
    begun: Instant,
    cpu: Duration,
    lost: u64,
    fps: Windows,
    window: Seconds,
    peer: Option<PeerReport>,
    path: PathWatch,
    pacing: SentPacing,
}

/// What is known of the width of the paths.
#[derive(Default)]
struct PathWatch {
    /// Datagrams that the system had not taken when it was last looked at.
    lost: u64,
    looked_at: Instant,
    /// How frames are to be cut from the next one on.
    narrower: Option<PacketPlan>,
    replans: u64,
}

/// Whether more frames come.
enum Supply {
    Open(PreparedFrames),
    /// None any more; packets are repeated until then.
    Ended(Instant),
}

/// The last packet of the stream, which no later one shows to be missing: it is sent again.
struct Tail {
    pause: Duration,
    due: Instant,
    left: u32,
}

impl Tail {
    fn new(frame_time: Duration) -> Tail {
        Tail { pause: frame_time / (LINGER_FRAMES * TAIL_REPETITIONS), due: Instant::NEVER, left: TAIL_REPETITIONS }
    }

    /// To be called once all frames have left.
    fn repeat(&mut self, now: Instant, sender: &mut VideoSender) {
        let has_begun = self.due != Instant::NEVER;
        if self.left == 0 || (has_begun && now < self.due) {
            return;
        }
        if has_begun {
            sender.repeat_newest(now);
            self.left -= 1;
        }
        self.due = if self.left > 0 { now + self.pause } else { Instant::NEVER };
    }
}

impl<'options> Sending<'options> {
    fn new(
        options: &'options SendOptions,
        sender: VideoSender,
        paths: Vec<MediaSocket>,
        receiver: MediaReceiver,
        seconds: SyncSender<SendSecond>,
    ) -> io::Result<Sending<'options>> {
        let now = clock::now();
        let peers: io::Result<Vec<ControlPeer>> =
            options.to.iter().map(|to| Ok(ControlPeer::Told(options.control.beside(*to)?))).collect();
        let SenderConfig { ssrc, resend, .. } = *sender.config();
        let control = Control::new(now, ssrc, options.rtcp.clone(), peers?).repeating(resend);
        let tally = Tally {
            begun: now,
            cpu: thalweg_host::cpu_time(),
            lost: 0,
            fps: Windows::default(),
            window: Seconds::new(now),
            peer: None,
            path: PathWatch::default(),
            pacing: SentPacing::new(options.measures_pacing, sender.plan()),
        };
        Ok(Sending { options, sender, paths, receiver, control, scratch: StreamScratch::default(), tally, seconds })
    }

    fn run(mut self, frames: PreparedFrames, stop: &AtomicBool) -> Result<SendReport, SendError> {
        thread::set_timer_slack(TIMER_SLACK);
        let end = self.tally.begun + self.options.duration;
        let mut waits = Waits::new(self.tally.begun, self.sender.config().resend);
        let mut supply = Supply::Open(frames);
        let mut tail = Tail::new(self.sender.plan().format().frame_time());
        let mut failure = None;
        loop {
            let now = clock::now();
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if now >= end && matches!(supply, Supply::Open(_)) {
                supply = self.ended(now);
            }
            failure = failure.or(self.take_frame(now, &mut supply));
            if let Supply::Ended(until) = supply
                && self.sender.is_idle()
                && now >= until
            {
                break;
            }
            self.follow_path(now)?;
            self.send_due(now);
            // A frame that left at once made room for the next, of which nobody tells again.
            failure = failure.or(self.take_frame(now, &mut supply));
            if matches!(supply, Supply::Ended(_)) && self.sender.is_idle() {
                tail.repeat(now, &mut self.sender);
            }
            self.report_due(now, &waits);
            let packet = self.sender.poll_timeout();
            let due = packet.min(self.control.poll_timeout()).min(self.tally.window.end()).min(now + STOP_DELAY);
            let due = due.min(tail.due);
            match waits.wait(&mut self.receiver, clock::now(), due, packet).map_err(SendError::Socket)? {
                Ask::Told => hear_before(due, || self.hear(false)),
                Ask::Control => {
                    self.hear(true);
                }
                Ask::Nothing => {}
            }
        }
        let now = clock::now();
        self.tally.pacing.finish();
        let report = self.report(now, waits.lateness());
        self.leave(now);
        failure.map_or(Ok(report), Err)
    }

    /// The state after the last frame: repetitions are asked for until receivers have presented it.
    fn ended(&self, now: Instant) -> Supply {
        Supply::Ended(now + self.sender.plan().format().frame_time() * LINGER_FRAMES)
    }

    /// Takes the next frame when there is room and it is ready. After a failure, which it returns, none follows; what was given before is
    /// still sent.
    fn take_frame(&mut self, now: Instant, supply: &mut Supply) -> Option<SendError> {
        let error = self.try_take_frame(now, supply).err()?;
        *supply = self.ended(now);
        Some(error)
    }

    fn try_take_frame(&mut self, now: Instant, supply: &mut Supply) -> Result<(), SendError> {
        let Supply::Open(frames) = supply else { return Ok(()) };
        if !self.sender.wants_frame() {
            return Ok(());
        }
        match frames.take() {
            None => {}
            Some(Prepared::Frame(frame)) => {
                let is_first = self.sender.next_frame_start().is_none();
                if is_first {
                    self.begin(now);
                }
                self.sender.handle_frame(now, frame).map_err(SendError::Frame)?;
                if is_first && let (Some(start), Some(next)) = (&self.options.start, self.sender.next_frame_start()) {
                    start.tell(next - self.sender.plan().format().frame_time());
                }
            }
            Some(Prepared::End) => *supply = self.ended(now),
            Some(Prepared::Failed(error)) => return Err(SendError::Source(error)),
        }
        Ok(())
    }

    /// Time and figures begin with the first frame.
    fn begin(&mut self, now: Instant) {
        self.tally.begun = now;
        self.tally.cpu = thalweg_host::cpu_time();
        self.tally.window = Seconds::new(now);
    }

    /// Cuts frames into smaller packets once a path has become narrower, unless the user has told the MTU.
    fn follow_path(&mut self, now: Instant) -> Result<(), SendError> {
        let Sending { options, sender, paths, tally, .. } = self;
        let path = &mut tally.path;
        // Each is taken, also behind the first.
        let has_news = paths.iter().filter(|path| path.media().take_path_news()).count() > 0;
        if options.mtu.is_none() && (has_news || tally.lost > path.lost) && now >= path.looked_at + PATH_PAUSE {
            (path.lost, path.looked_at) = (tally.lost, now);
            // Without a route there is nothing to be learned of it.
            let plan = options.plan(sender.plan().format()).ok();
            path.narrower = plan.filter(|plan| plan.datagram_octets_max() < sender.plan().datagram_octets_max());
        }
        if !sender.is_within_frame()
            && let Some(plan) = path.narrower.take()
        {
            sender.set_plan(plan).map_err(SendError::Config)?;
            path.replans += 1;
            tally.pacing.replan(sender.plan());
        }
        Ok(())
    }

    fn send_due(&mut self, now: Instant) {
        let Sending { options, sender, paths, scratch, tally, .. } = self;
        while let Some(batch) = sender.poll_batch(now) {
            tally.pacing.handle_batch(&batch);
            for (path, to) in paths.iter().zip(&options.to) {
                tally.lost += send_batch(path, scratch, *to, &batch).lost as u64;
            }
        }
    }

    /// While the first frame is prepared.
    fn report_early(&mut self) {
        let local = self.streams();
        self.control.send_early_report(clock::now(), &self.paths, &local);
    }

    fn report_due(&mut self, now: Instant, waits: &Waits) {
        if self.control.is_due(now) {
            let local = self.streams();
            self.control.send_report(now, &self.paths, &local);
        }
        if now >= self.tally.window.end() {
            let (fps, processors) = self.tally.window.finish(now, self.sender.counters().frames_sent);
            self.tally.fps.add(fps);
            let report = self.report(now, waits.lateness());
            // Nobody waits for a second that nobody took.
            let _ = self.seconds.try_send(SendSecond { fps, processors, report });
        }
    }

    /// Hears RTCP, and who else has our numbers; returns whether more may be queued.
    fn hear(&mut self, asks: bool) -> bool {
        let Sending { receiver, control, .. } = self;
        let handle = |arrival: MediaArrival<'_>| hear_sender(control, &arrival);
        let is_more = if asks {
            receiver.receive_control(handle);
            false
        } else {
            receiver.receive(handle)
        };
        while let Some(event) = self.control.poll_event() {
            self.handle_event(&event);
        }
        is_more
    }

    fn handle_event(&mut self, event: &RtcpEvent) {
        match event {
            RtcpEvent::Nack { arrived, entries, .. } => {
                self.sender.handle_nack(*arrived, entries.iter().flat_map(|entry| entry.sequence_numbers()));
            }
            RtcpEvent::Report { from, block } => {
                let jitter = Duration::from_nanos(u64::from(block.jitter) * 100_000 / 9);
                let before = self.tally.peer.filter(|peer| peer.ssrc == *from);
                let round_trip = before.and_then(|peer| peer.round_trip);
                self.tally.peer = Some(PeerReport { ssrc: *from, round_trip, lost: block.cumulative_lost, jitter });
            }
            RtcpEvent::RoundTrip { ssrc, round_trip } => {
                let peer = self.tally.peer.get_or_insert(PeerReport { ssrc: *ssrc, ..PeerReport::default() });
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

    /// What reports tell.
    fn streams(&self) -> LocalStreams<'static> {
        // One right after the other: time between the two readings would shift sound against the picture.
        let (now, wall_clock) = (clock::now(), clock::wall_clock());
        let ntp = NtpTime::from_unix(wall_clock.to_unix());
        let clock = MediaClock { ntp, rtp: self.sender.timestamp_at(now), rate_hz: CLOCK_HZ };
        let stream = |SentCounts { packets, octets }| SentStream { packets, octets, clock };
        let repetitions = Some(stream(self.sender.repeated()));
        LocalStreams { sent: Some(stream(self.sender.sent())), repetitions, received: &[] }
    }

    fn report(&self, now: Instant, lateness: Lateness) -> SendReport {
        let sockets = self.paths.iter().map(|path| path.media().counts());
        let mut sockets = sockets.fold(SendCounts::default(), plus);
        // News that came during a wait.
        sockets.asynchronous_errors += self.receiver.counts().asynchronous_errors;
        SendReport {
            elapsed: now.since(self.tally.begun),
            cpu: thalweg_host::cpu_time().saturating_sub(self.tally.cpu),
            sender: self.sender.counters(),
            lost: self.tally.lost,
            sockets,
            lateness,
            fps: self.tally.fps,
            peer: self.tally.peer,
            replans: self.tally.path.replans,
            pacing: self.tally.pacing.summary(),
        }
    }

    fn leave(mut self, now: Instant) {
        let local = self.streams();
        self.control.send_bye(now, &self.paths, &local, "end of stream");
    }
}

/// Gives what came to a sender to its control.
pub(super) fn hear_sender(control: &mut Control, arrival: &MediaArrival<'_>) {
    let MediaArrival { path, message, .. } = *arrival;
    for (protocol, datagram) in arrival.datagrams() {
        match protocol {
            Protocol::Control => _ = control.handle_datagram(message.arrived, path, message.source, datagram),
            Protocol::Media => control.handle_media(message.source, datagram),
        }
    }
}

fn send_batch(path: &MediaSocket, scratch: &mut StreamScratch, to: SocketAddr, batch: &PacketBatch<'_>) -> Sent {
    let mut burst = path.media().burst(scratch, to);
    batch.packets().for_each(|packet| burst.push(packet.slices()));
    burst.send(SEND_PATIENCE)
}

fn plus(left: SendCounts, right: SendCounts) -> SendCounts {
    SendCounts {
        calls: left.calls + right.calls,
        datagrams: left.datagrams + right.datagrams,
        segmented_messages: left.segmented_messages + right.segmented_messages,
        waits: left.waits + right.waits,
        dropped: left.dropped + right.dropped,
        fragmented: left.fragmented + right.fragmented,
        refused: left.refused + right.refused,
        asynchronous_errors: left.asynchronous_errors + right.asynchronous_errors,
        unroutable: left.unroutable + right.unroutable,
    }
}

/// Ticks a second of a picture's time stamps (RFC 4175 §4.1).
pub(super) const CLOCK_HZ: u32 = 90_000;
/// A batch lasts 120 µs at 1080p30 and less at higher rates: Linux's default slack of 50 µs would be half of it.
pub(super) const TIMER_SLACK: Duration = Duration::from_micros(1);
/// The longest time until a stop is seen.
pub(super) const STOP_DELAY: Duration = Duration::from_millis(50);
/// How long packets wait for room: longer than any queue of a working device needs, shorter than half a frame time.
const SEND_PATIENCE: Duration = Duration::from_millis(5);
/// How often it is asked how wide a path is that does not take packets.
const PATH_PAUSE: Duration = Duration::from_millis(50);
/// Frame times after the last frame in which packets are sent again.
const LINGER_FRAMES: u32 = 2;
/// How often the last packet is sent again in that time.
const TAIL_REPETITIONS: u32 = 3;
/// Seconds that wait for who shows them; what is shown late is not worth more.
pub(super) const SECONDS_MAX: usize = 4;
