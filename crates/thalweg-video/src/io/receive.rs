//! The driver of a receiver: what arrives becomes frames for a sink, and the sender hears reports and requests.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_host::{HostFiles, Layers};
use thalweg_transport::stream::{PortSharing, ReceiveCounts, StreamOptions};
use thalweg_transport::{clock, thread};

use super::arrivals::Arrivals;
use super::control::{Control, ControlPeer};
use super::options::{Farewell, ReceiveOptions};
use super::receive_error::ReceiveError;
use super::send::{CLOCK_HZ, SECONDS_MAX, STOP_DELAY, TIMER_SLACK};
use super::socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, interface_of};
use super::sound_receive::PictureTime;
use super::windows::{Seconds, Windows};
use crate::jitter::IntervalFigures;
use crate::receiver::{NackItem, PathCounters, Paths, ReceivedPicture, ReceiverConfig, ReceiverCounters};
use crate::rtcp::{LocalStreams, NackEntry, ReceivedStream, RtcpEvent, WallClock};
use crate::sink::{FrameSink, SinkError};

/// What a receiver did until a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceiveReport {
    /// Since the first packet; zero before it.
    pub elapsed: Duration,
    /// Processor time of the process since then.
    pub cpu: Duration,
    /// Packets and frames.
    pub receiver: ReceiverCounters,
    /// Packets by path, where there are two.
    pub paths: Vec<PathCounters>,
    /// What the sockets counted, of all paths. The kernel counts a joined message that found no room once.
    pub sockets: ReceiveCounts,
    /// Bytes of receive buffer that the kernel granted each path.
    pub receive_buffer_bytes: Vec<usize>,
    /// Counters of the network layers of this host that grew meanwhile, other programs' traffic included.
    pub layers: Layers,
    /// Frames presented in each whole second.
    pub fps: Windows,
    /// Frames that the sink was too slow for.
    pub sink_missed: u64,
    /// Times of arrival and presentation.
    pub times: ReceiveTimes,
}

/// Times of arrival and presentation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiveTimes {
    /// From the first packet of the stream to the first picture that was presented; `None` before it.
    pub first_picture: Option<Duration>,
    /// From a frame's first packet to its last one, of complete frames.
    pub latency: IntervalFigures,
    /// Between frames that became complete.
    pub intervals: IntervalFigures,
    /// How long after its time a frame was presented at most.
    pub late_max: Duration,
    /// The estimate of RFC 3550: the spacing of packets rather than jitter (see [`crate::jitter`]).
    pub jitter_rfc3550: Duration,
    /// The estimate of deviations from the schedule of packets within the frame.
    pub jitter_schedule: Duration,
    /// There and back, once it is known.
    pub round_trip: Option<Duration>,
    /// The drift of the sender's clock in millionths; `None` in the first 5 s.
    pub drift_ppm: Option<f64>,
}

/// One second of a running receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiveSecond {
    /// Frames presented in it.
    pub fps: f64,
    /// Processors that the process used in it.
    pub processors: f64,
    /// Everything until its end.
    pub report: ReceiveReport,
}

/// Receives frames and gives them to `sink` until the sender leaves or falls silent, a limit of `options` is reached or `stop` is set;
/// calls `each_second` on the calling thread while threads of its own receive and feed the sink.
///
/// # Errors
/// The sockets cannot be opened, a number of the configuration is outside its range, the sink fails, or the system's timers do.
pub fn run_receiver(
    sink: &mut dyn FrameSink,
    options: &ReceiveOptions,
    stop: &AtomicBool,
    mut each_second: impl FnMut(&ReceiveSecond),
) -> Result<ReceiveReport, ReceiveError> {
    let paths = open_paths(options).map_err(ReceiveError::Socket)?;
    let receiver = MediaReceiver::new(&paths).map_err(ReceiveError::Socket)?;
    let (seconds, told) = sync_channel(SECONDS_MAX);
    let (pictures, shown) = sync_channel(PICTURES_MAX);
    let receiving = Receiving::new(options, paths, receiver, pictures, seconds)?;
    let sink_failed = Arc::clone(&receiving.sink_failed);
    std::thread::scope(|scope| {
        let feed = std::thread::Builder::new().name("video-sink".to_owned());
        let receive = std::thread::Builder::new().name("video-receive".to_owned());
        let feeding = move || feed_sink(sink, &shown, &sink_failed);
        let feed = feed.spawn_scoped(scope, feeding).map_err(ReceiveError::Socket)?;
        let receive = receive.spawn_scoped(scope, || receiving.run(stop)).map_err(ReceiveError::Socket)?;
        // They end with the thread that receives.
        told.into_iter().for_each(|second| each_second(&second));
        let report = receive.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        feed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(ReceiveError::Sink)?;
        Ok(report)
    })
}

/// Gives pictures to the sink until none follows; the first failure is told and the rest let go.
fn feed_sink(
    sink: &mut dyn FrameSink,
    pictures: &Receiver<ReceivedPicture>,
    failed: &AtomicBool,
) -> Result<(), SinkError> {
    for picture in pictures {
        if let Err(error) = sink.take(&picture) {
            failed.store(true, Ordering::Relaxed);
            return Err(error);
        }
    }
    sink.finish()
}

pub(super) fn open_paths(options: &ReceiveOptions) -> io::Result<Vec<MediaSocket>> {
    let ReceiveOptions { bind, stream, control, group_sources, group_interface, .. } = options;
    open_sockets(bind, *stream, *control, group_sources, *group_interface)
}

/// Opens the sockets of a receiver, one path for each address of `bind`, and joins those that are groups.
pub(super) fn open_sockets(
    bind: &[SocketAddr],
    mut stream: StreamOptions,
    control: ControlPort,
    group_sources: &[Vec<IpAddr>],
    group_interface: u32,
) -> io::Result<Vec<MediaSocket>> {
    let mut open = |(place, bind): (usize, &SocketAddr)| {
        if bind.ip().is_multicast() {
            stream.sharing = PortSharing::Shared;
        }
        let socket = MediaSocket::bind(*bind, &MediaOptions { stream, control })?;
        if bind.ip().is_multicast() {
            let sources = group_sources.get(place).map_or(&[][..], Vec::as_slice);
            socket.join(bind.ip(), sources, interface_of(*bind, group_interface))?;
        }
        Ok(socket)
    };
    bind.iter().enumerate().map(&mut open).collect()
}

/// The thread that receives.
struct Receiving<'options> {
    options: &'options ReceiveOptions,
    arrivals: Arrivals,
    paths: Vec<MediaSocket>,
    receiver: MediaReceiver,
    /// How long arrivals are gathered: as `options` say, and no longer than the receive buffers allow.
    gathering: Duration,
    /// When what is being read was begun with, or requests were last thought of meanwhile.
    reading_since: Instant,
    /// When it was last decided which sockets to read: frames that were due then may be shown, others wait for what came since.
    heard_at: Instant,
    control: Control,
    /// To the sink.
    pictures: SyncSender<ReceivedPicture>,
    sink_failed: Arc<AtomicBool>,
    tally: Tally,
    seconds: SyncSender<ReceiveSecond>,
}

/// What is told of the stream.
struct Tally {
    begun: Option<Instant>,
    cpu: Duration,
    layers: Layers,
    fps: Windows,
    window: Seconds,
    presented: u64,
    first_picture: Option<Duration>,
    sink_missed: u64,
    late_max: Duration,
    round_trip: Option<Duration>,
    /// When the last packet of the stream came.
    heard: Instant,
    /// When receiving ends in any case.
    ends: Instant,
    /// The sender that has left; what still waits is presented until then.
    left: Option<(u32, Instant)>,
}

/// How the next arrivals are awaited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The system tells of them.
    Wait,
    /// They are read after a while: a stream flows.
    Gather,
    /// Some are there.
    Go,
}

impl<'options> Receiving<'options> {
    fn new(
        options: &'options ReceiveOptions,
        paths: Vec<MediaSocket>,
        receiver: MediaReceiver,
        pictures: SyncSender<ReceivedPicture>,
        seconds: SyncSender<ReceiveSecond>,
    ) -> Result<Receiving<'options>, ReceiveError> {
        let now = clock::now();
        let number = if paths.len() > 1 { Paths::Two } else { Paths::One };
        let config = ReceiverConfig { paths: number, ..options.receiver };
        let arrivals = Arrivals::new(config).map_err(ReceiveError::Config)?;
        let told = |path: usize| options.control_to.get(path).copied();
        let peers = (0..paths.len()).map(|path| told(path).map_or(ControlPeer::Unknown, ControlPeer::Told)).collect();
        let control = Control::new(now, options.ssrc, options.rtcp.clone(), peers);
        let tally = Tally {
            begun: None,
            cpu: thalweg_host::cpu_time(),
            layers: Layers::read(&HostFiles::here()),
            fps: Windows::default(),
            window: Seconds::new(now),
            presented: 0,
            first_picture: None,
            sink_missed: 0,
            late_max: Duration::ZERO,
            round_trip: None,
            heard: now,
            ends: now + options.duration,
            left: None,
        };
        let sink_failed = Arc::default();
        let smallest = paths.iter().map(|path| path.media().receive_buffer_bytes()).min().unwrap_or_default();
        let gathering = options.gathering_within(smallest);
        Ok(Receiving {
            options,
            arrivals,
            paths,
            receiver,
            gathering,
            reading_since: now,
            heard_at: now,
            control,
            pictures,
            sink_failed,
            tally,
            seconds,
        })
    }

    fn run(mut self, stop: &AtomicBool) -> Result<ReceiveReport, ReceiveError> {
        thread::set_timer_slack(TIMER_SLACK);
        let mut turn = Turn::Wait;
        loop {
            let is_stopped = stop.load(Ordering::Relaxed) || self.sink_failed.load(Ordering::Relaxed);
            let now = clock::now();
            if is_stopped || now >= self.ends() || self.tally.presented >= self.options.frames_max {
                break;
            }
            let due = self.arrivals.poll_timeout().min(self.control.poll_timeout());
            let due = due.min(self.tally.window.end()).min(self.ends()).min(now + STOP_DELAY);
            match turn {
                Turn::Wait => self.receiver.wait_until(due).map(drop).map_err(ReceiveError::Socket)?,
                Turn::Gather => clock::sleep_until(due.min(now + self.gathering)),
                Turn::Go => {}
            }
            if turn != Turn::Go {
                self.reading_since = clock::now();
            }
            turn = self.hear(turn);
            self.present();
            self.ask(clock::now(), turn);
            self.report_due(clock::now());
        }
        Ok(self.finish())
    }

    /// Takes what arrived, in a bounded amount; returns what to do next.
    fn hear(&mut self, turn: Turn) -> Turn {
        self.heard_at = clock::now();
        let Receiving { arrivals, receiver, control, options, tally, heard_at, .. } = self;
        let is_frame_due = arrivals.frame_timeout() <= *heard_at;
        let mut has_come = false;
        let handle = |arrival: MediaArrival<'_>| {
            has_come = true;
            if arrivals
                .handle_message(&arrival, |path, from, at, datagram| control.handle_datagram(at, path, from, datagram))
            {
                begin(tally, &arrival);
                tally.heard = tally.heard.max(arrival.message.arrived);
                control.note_source(options.control, arrivals.ssrc(), &arrival);
            }
        };
        let is_more = match turn {
            // A wait may end without news of what came before the time of a frame. No more is read at once than one batch, in which newer
            // frames do not take the places of those that are due.
            _ if is_frame_due => receiver.receive_untold(1, handle),
            Turn::Gather => receiver.receive_untold(GATHERED_BATCHES_MAX, handle),
            Turn::Wait | Turn::Go => receiver.receive(handle),
        };
        self.note_sender();
        while let Some(event) = self.control.poll_event() {
            self.handle_event(&event);
        }
        self.note_silence();
        match (is_more, has_come) {
            (true, _) => Turn::Go,
            (false, true) if !self.gathering.is_zero() => Turn::Gather,
            (false, _) => Turn::Wait,
        }
    }

    fn handle_event(&mut self, event: &RtcpEvent) {
        match event {
            // Another receiver of the group is at another distance.
            RtcpEvent::RoundTrip { ssrc, round_trip } if self.arrivals.ssrc() == Some(*ssrc) => {
                self.tally.round_trip = Some(*round_trip);
                self.arrivals.handle_round_trip(*round_trip);
            }
            RtcpEvent::Left { ssrc, .. } if self.arrivals.ssrc() == Some(*ssrc) => self.handle_departure(*ssrc),
            RtcpEvent::Collision { .. } => _ = self.control.take_new_identity(clock::now(), &self.paths),
            _ => {}
        }
    }

    fn handle_departure(&mut self, ssrc: u32) {
        if self.options.farewell == Farewell::End {
            // Packets that were sent before it may still be on their way, and frames wait for their times.
            let last = clock::now() + self.options.receiver.playout + self.options.receiver.format.frame_time();
            self.tally.left = Some((ssrc, last));
        }
    }

    /// A sender that says nothing more has left.
    fn note_silence(&mut self) {
        let silent = self.arrivals.ssrc().filter(|ssrc| self.control.is_silent(clock::now(), *ssrc, self.tally.heard));
        if let Some(ssrc) = silent.filter(|_| self.tally.left.is_none()) {
            self.handle_departure(ssrc);
        }
    }

    /// A sender that goes on under another number, or another one, has taken the place of the one that left. One whose packets come when
    /// those that were on their way are gone has not left: somebody else said its farewell.
    fn note_sender(&mut self) {
        let frame_time = self.options.receiver.format.frame_time();
        let goes_on = |last: Instant| self.tally.heard + frame_time > last;
        if self.tally.left.is_some_and(|(left, last)| self.arrivals.ssrc() != Some(left) || goes_on(last)) {
            self.tally.left = None;
        }
    }

    /// When receiving ends, as far as it is known.
    fn ends(&self) -> Instant {
        self.tally.left.map_or(self.tally.ends, |(_, last)| last.min(self.tally.ends))
    }

    /// Gives frames whose time has come to the sink. What came before that time and is still queued belongs to them: an end that stood
    /// still reads it first.
    fn present(&mut self) {
        let now = clock::now();
        let unread = self.receiver.unread_paths().map(|path| self.arrivals.read_until(path));
        let read_until = unread.fold(self.heard_at, Instant::min);
        while let Some(picture) = self.arrivals.poll_frame(read_until) {
            self.tally.late_max = self.tally.late_max.max(now.since(picture.deadline));
            self.give(picture);
        }
    }

    /// Asks for what is missing, after all that is queued was read where that does not take long: it may be there.
    fn ask(&mut self, now: Instant, turn: Turn) {
        let Receiving { arrivals, control, paths, reading_since, .. } = self;
        if turn == Turn::Go && now < *reading_since + ASK_DELAY {
            return;
        }
        *reading_since = now;
        let Some(ssrc) = arrivals.ssrc() else { return };
        arrivals.poll_nacks(now, |items| {
            let entry = |item: &NackItem| NackEntry { first: item.packet, following: item.following };
            control.send_nack(paths, ssrc, items.iter().map(entry));
        });
    }

    fn give(&mut self, picture: ReceivedPicture) {
        self.tell_times(&picture);
        count_presented(&mut self.tally);
        // A sink that is slow loses frames; one that is gone has failed.
        let is_missed = matches!(self.pictures.try_send(picture), Err(TrySendError::Full(_)));
        self.tally.sink_missed += u64::from(is_missed);
    }

    /// Tells the sound when this picture is shown, by the clock of the sender.
    fn tell_times(&self, picture: &ReceivedPicture) {
        let Some(times) = &self.options.picture else { return };
        let Some(peer) = self.arrivals.ssrc().and_then(|ssrc| self.control.peer(ssrc)) else { return };
        if let (Some(cname), Some(clock)) = (&peer.cname, peer.media_clock(CLOCK_HZ)) {
            let shown = WallClock::new(picture.deadline, clock.ntp_of(picture.timestamp));
            times.tell(PictureTime { cname: cname.clone(), shown });
        }
    }

    fn report_due(&mut self, now: Instant) {
        if self.control.is_due(now) {
            let received = self.received();
            let local = LocalStreams { received: received.as_slice(), ..LocalStreams::default() };
            self.control.send_report(now, &self.paths, &local);
        }
        if now >= self.tally.window.end() {
            let (fps, processors) = self.tally.window.finish(now, self.tally.presented);
            if self.tally.presented > 0 {
                self.tally.fps.add(fps);
            }
            let report = self.report(now);
            // Nobody waits for a second that nobody took.
            let _ = self.seconds.try_send(ReceiveSecond { fps, processors, report });
        }
    }

    fn received(&self) -> Option<ReceivedStream> {
        self.arrivals.received()
    }

    fn report(&self, now: Instant) -> ReceiveReport {
        let Tally { begun, cpu, layers, fps, first_picture, sink_missed, .. } = &self.tally;
        let Tally { late_max, round_trip, .. } = self.tally;
        ReceiveReport {
            elapsed: begun.map_or(Duration::ZERO, |begun| now.since(begun)),
            cpu: thalweg_host::cpu_time().saturating_sub(*cpu),
            receiver: self.arrivals.counters(),
            paths: self.arrivals.path_counters(),
            sockets: self.receiver.counts(),
            receive_buffer_bytes: self.paths.iter().map(|path| path.media().receive_buffer_bytes()).collect(),
            layers: Layers::read(&HostFiles::here()).since(layers),
            fps: *fps,
            sink_missed: *sink_missed,
            times: ReceiveTimes { first_picture: *first_picture, late_max, round_trip, ..self.arrivals.times() },
        }
    }

    /// Presents what is left, reports and leaves.
    fn finish(mut self) -> ReceiveReport {
        let now = clock::now();
        let received = self.received();
        if self.tally.left.is_some_and(|(_, last)| now >= last) {
            self.arrivals.finish();
        } else {
            // The stream goes on: a frame that is on its way is no loss.
            self.arrivals.stop(now);
        }
        while self.tally.presented < self.options.frames_max
            && let Some(picture) = self.arrivals.poll_frame(now)
        {
            count_presented(&mut self.tally);
            // The sink has all the time that it needs; a failed one takes nothing.
            let _ = self.pictures.send(picture);
        }
        let report = self.report(now);
        let local = LocalStreams { received: received.as_slice(), ..LocalStreams::default() };
        self.control.send_bye(now, &self.paths, &local, "receiver ends");
        report
    }
}

/// Time and figures begin with the first packet.
fn begin(tally: &mut Tally, arrival: &MediaArrival<'_>) {
    if tally.begun.is_none() {
        let now = clock::now();
        tally.begun = Some(arrival.message.arrived);
        tally.cpu = thalweg_host::cpu_time();
        tally.window = Seconds::new(now);
    }
}

/// Counts a picture that is presented.
fn count_presented(tally: &mut Tally) {
    tally.presented += 1;
    if tally.presented == 1 {
        let now = clock::now();
        tally.first_picture = tally.begun.map(|begun| now.since(begun));
        // Windows begin with what is shown: the first would otherwise lack the delay until then.
        tally.window = Seconds::counting(now, 1);
    }
}

/// Batches of messages that a socket gives at once of what was gathered.
const GATHERED_BATCHES_MAX: usize = 8;
/// How long requests wait at most while what came is read.
const ASK_DELAY: Duration = Duration::from_millis(2);
/// Pictures that wait for the sink.
const PICTURES_MAX: usize = 2;
