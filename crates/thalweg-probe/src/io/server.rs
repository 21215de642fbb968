//! The end that takes part in what clients ask for.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use thalweg_lab_station::Stop;
use thalweg_transport::{clock, entropy};

use super::channel::{ControlChannel, is_pause};
use super::links::{self, Links};
use super::meter::UsageMeter;
use super::received::{ReceiveProgress, SecondCutter, StreamReceived};
use super::round_trips;
use super::tcp::TcpDoor;
use super::workers::Workers;
use crate::control::{ControlMessage, EndRole, Ready};
use crate::error::ProbeError;
use crate::order::{ProbeOrder, ProbeProtocol, Shape, StreamDirection};
use crate::reports::{EndReport, ReceivedReport, SentReport};

/// Settings of a [`ProbeServer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeServerOptions {
    /// Where clients find it; port 0 lets the system choose.
    pub bind: SocketAddr,
    /// Ports of the data from this one on, as many as there are streams, for hosts behind a packet filter; 0 lets the system choose.
    pub data_port: u16,
    /// Whether it ends after one measurement.
    pub repeat: Repeat,
}

/// How many measurements a server takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One, done or failed.
    Once,
    /// One after the other until it is stopped.
    Always,
}

/// A server that has its port.
pub struct ProbeServer {
    listener: TcpListener,
    options: ProbeServerOptions,
}

/// What all conversations of a server share.
struct Shared {
    options: ProbeServerOptions,
    stop: Stop,
    /// Whether a measurement is under way: two would measure each other.
    is_measuring: AtomicBool,
    conversations: AtomicUsize,
    measured: AtomicUsize,
    failed: AtomicUsize,
}

impl ProbeServer {
    /// Opens the port.
    ///
    /// # Errors
    /// The address is not of this host, or the port is taken.
    pub fn bind(options: ProbeServerOptions) -> Result<ProbeServer, ProbeError> {
        let open = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(options.bind)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = open().map_err(ProbeError::system("opening the port for clients"))?;
        Ok(ProbeServer { listener, options })
    }

    /// Where clients find it.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Takes part in measurements, one at a time, until `stop` is requested. `note` hears a line for people of each.
    ///
    /// # Errors
    /// The port fails; or, of a server for one measurement, that one does.
    pub fn serve(self, stop: &Stop, note: impl Fn(&str) + Sync) -> Result<(), ProbeError> {
        let shared = Shared {
            options: self.options,
            stop: stop.clone(),
            is_measuring: AtomicBool::new(false),
            conversations: AtomicUsize::new(0),
            measured: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
        };
        std::thread::scope(|scope| {
            while !stop.is_requested() {
                if shared.options.repeat == Repeat::Once && shared.measured.load(Ordering::Acquire) > 0 {
                    return match shared.failed.load(Ordering::Relaxed) {
                        0 => Ok(()),
                        _ => Err(ProbeError::Failed("the measurement did not come to its end".to_owned())),
                    };
                }
                match self.listener.accept() {
                    Ok((stream, peer)) if shared.conversations.load(Ordering::Relaxed) < CONVERSATIONS_MAX => {
                        shared.conversations.fetch_add(1, Ordering::Relaxed);
                        let (shared, note) = (&shared, &note);
                        scope.spawn(move || {
                            converse(stream, peer, shared, note);
                            shared.conversations.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                    // Too many at a time: closed at once.
                    Ok(_) => {}
                    Err(error) if is_pause(error.kind()) => std::thread::sleep(ACCEPT_PERIOD),
                    // The client was gone before it was taken.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => return Err(ProbeError::System { what: "accepting a client", error }),
                }
            }
            Ok(())
        })
    }
}

fn converse(stream: TcpStream, peer: SocketAddr, shared: &Shared, note: &(impl Fn(&str) + Sync)) {
    let Ok(mut channel) = ControlChannel::new(stream, EndRole::Server, &shared.stop) else { return };
    let order = match hear_order(&mut channel) {
        Ok(order) => order,
        Err(error) => {
            channel.give_up(&error);
            return note(&format!("{peer}: {error}"));
        }
    };
    if !begin_measuring(shared) {
        let busy = ProbeError::Failed("another measurement is under way here: try again when it is over".to_owned());
        channel.give_up(&busy);
        return note(&format!("{peer}: refused, since another measurement is under way"));
    }
    let outcome = take_part(&mut channel, &order, shared);
    shared.is_measuring.store(false, Ordering::Release);
    match outcome {
        Ok(()) => note(&format!("{peer}: {}: done", order.summary())),
        Err(error) => {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            channel.give_up(&error);
            note(&format!("{peer}: {}: {error}", order.summary()));
        }
    }
    shared.measured.fetch_add(1, Ordering::Release);
}

/// Claims the host for a measurement; waits for one that is over at its client and not yet here.
fn begin_measuring(shared: &Shared) -> bool {
    let deadline = clock::now() + HANDOVER_MAX;
    while shared.is_measuring.swap(true, Ordering::Acquire) {
        if clock::now() >= deadline {
            return false;
        }
        std::thread::sleep(ACCEPT_PERIOD);
    }
    true
}

fn hear_order(channel: &mut ControlChannel) -> Result<ProbeOrder, ProbeError> {
    match channel.hear()? {
        ControlMessage::Order(order) => Ok(order.checked()?),
        _ => Err(ProbeError::Left),
    }
}

fn take_part(channel: &mut ControlChannel, order: &ProbeOrder, shared: &Shared) -> Result<(), ProbeError> {
    let links = prepare(channel, order, shared)?;
    let meter = UsageMeter::start();
    match order.shape {
        Shape::Stream { direction: StreamDirection::ToServer, .. } => {
            let progress = Arc::new(ReceiveProgress::new(order.streams));
            let workers = links.receive(order, &progress)?;
            channel.say(&ControlMessage::Begun)?;
            let received = watch_receiving(channel, workers, &progress)?;
            report(channel, &links, order, meter, &received)
        }
        Shape::Stream { direction: StreamDirection::ToClient, .. } => {
            channel.say(&ControlMessage::Begun)?;
            let workers = links.send(order);
            while !workers.are_finished() {
                // The client says nothing now but that it gives up.
                channel.hear_until(clock::now() + WATCH_PERIOD)?;
            }
            let mut sent = SentReport::of(&workers.finish()?);
            sent.retransmitted_segments = links.retransmitted_segments();
            channel.say(&ControlMessage::Ended(EndReport { sent: Some(sent), ..meter.finish() }))?;
            channel.hear().map(drop)
        }
        Shape::RoundTrips => {
            let workers = match &links {
                Links::Datagrams(links) => round_trips::answer_datagrams(order, links)?,
                Links::Tcp(links) => round_trips::answer_tcp(order, links),
            };
            channel.say(&ControlMessage::Begun)?;
            channel.hear()?;
            if order.protocol == ProbeProtocol::Udp {
                workers.request_stop();
            }
            // Those of TCP end with their connections, which a client that is gone may have left open.
            while !workers.are_finished() {
                channel.hear_until(clock::now() + WATCH_PERIOD)?;
            }
            let received = workers.finish()?;
            report(channel, &links, order, meter, &received)
        }
    }
}

/// Opens the sockets and agrees with the client on them.
fn prepare(channel: &mut ControlChannel, order: &ProbeOrder, shared: &Shared) -> Result<Links, ProbeError> {
    let (here, there) = channel.addresses()?;
    let token = entropy::seed().map_err(ProbeError::system("drawing a token"))? as u32;
    match order.protocol {
        ProbeProtocol::Udp => {
            let sends = matches!(order.shape, Shape::Stream { direction: StreamDirection::ToClient, .. });
            if sends {
                links::check_path(order, there)?;
            }
            let sockets = links::open_datagram_sockets(order, here, shared.options.data_port)?;
            let ports = sockets.iter().map(|socket| socket.local_address().port()).collect();
            channel.say(&ControlMessage::Ready(Ready { token, ports }))?;
            let ControlMessage::Begin(begin) = channel.hear()? else { return Err(ProbeError::Left) };
            // Of a stream from the client no address is needed; what is compared is the token.
            let mut peers = begin.ports;
            peers.resize(sockets.len(), 0);
            let mut links = links::link_datagrams(sockets, there, &peers, token);
            if sends {
                links::hear_knocks(&mut links)?;
            }
            Ok(Links::Datagrams(links))
        }
        ProbeProtocol::Tcp => {
            let door = TcpDoor::open(order, here, shared.options.data_port, token)?;
            let ports = vec![door.port(); order.streams as usize];
            channel.say(&ControlMessage::Ready(Ready { token, ports }))?;
            channel.hear()?;
            Ok(Links::Tcp(door.accept(order.streams, &shared.stop)?.into_iter().map(Arc::new).collect()))
        }
    }
}

/// Tells the client of each second until it has sent everything, and waits for the rest.
fn watch_receiving(
    channel: &mut ControlChannel,
    workers: Workers<StreamReceived>,
    progress: &ReceiveProgress,
) -> Result<Vec<StreamReceived>, ProbeError> {
    let mut seconds = SecondCutter::new(clock::now());
    let mut is_ended = false;
    loop {
        let now = clock::now();
        if now >= seconds.next() {
            channel.say(&ControlMessage::Second(seconds.cut(now, progress)))?;
        }
        if is_ended && workers.are_finished() {
            return workers.finish();
        }
        let until = seconds.next().min(now + WATCH_PERIOD);
        match channel.hear_until(until)? {
            Some(ControlMessage::Ended(ended)) => {
                is_ended = true;
                progress.tell_offered(ended.sent.map(|sent| sent.offered).unwrap_or_default());
            }
            _ if workers.are_finished() && !is_ended => {
                // One of them failed, or every connection has ended and the client is about to tell so.
                let until = clock::now() + ENDED_PATIENCE;
                match channel.hear_until(until)? {
                    Some(ControlMessage::Ended(_)) => is_ended = true,
                    _ => return workers.finish().and(Err(ProbeError::Left)),
                }
            }
            _ => {}
        }
    }
}

fn report(
    channel: &mut ControlChannel,
    links: &Links,
    order: &ProbeOrder,
    meter: UsageMeter,
    received: &[StreamReceived],
) -> Result<(), ProbeError> {
    let received = Some(ReceivedReport::of(received, links.buffers(order)));
    channel.say(&ControlMessage::Report(EndReport { received, ..meter.finish() }))
}

/// Clients at a time, all but one of which are told that there is another one.
const CONVERSATIONS_MAX: usize = 16;
const ACCEPT_PERIOD: Duration = Duration::from_millis(10);
/// The last steps of a measurement after its client has the figures, on a busy host.
const HANDOVER_MAX: Duration = Duration::from_secs(1);
const WATCH_PERIOD: Duration = Duration::from_millis(50);
/// How long after the last byte of all connections the client may take to say that it has sent everything.
const ENDED_PATIENCE: Duration = Duration::from_secs(10);
