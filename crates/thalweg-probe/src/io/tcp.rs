//! Streams of bytes over TCP connections, out and in.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use thalweg_base::time::Instant;
use thalweg_lab_station::Stop;
use thalweg_transport::clock;

use super::channel::{LOOK_PERIOD, is_pause};
use super::links::port_of;
use super::received::{ReceiveProgress, StreamReceived};
use super::sent::StreamSent;
use super::workers::Workers;
use crate::account::SendSchedule;
use crate::error::ProbeError;
use crate::order::ProbeOrder;

/// The connection of a stream; reads and writes look for a stop now and then.
pub(super) struct TcpLink(TcpStream);

impl TcpLink {
    fn new(stream: TcpStream) -> std::io::Result<TcpLink> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_PERIOD))?;
        stream.set_write_timeout(Some(LOOK_PERIOD))?;
        Ok(TcpLink(stream))
    }

    /// Reads until `bytes` is full or the other end has no more; returns how many came, and the calls made.
    pub(super) fn read_full(&self, bytes: &mut [u8], stop: &Stop) -> Result<(usize, u64), ProbeError> {
        let (mut filled, mut calls) = (0, 0);
        while filled < bytes.len() {
            calls += 1;
            match self.read_some(&mut bytes[filled..], stop)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok((filled, calls))
    }

    /// What one call that finds something brings; 0 at the end.
    fn read_some(&self, bytes: &mut [u8], stop: &Stop) -> Result<usize, ProbeError> {
        loop {
            match (&self.0).read(bytes) {
                Err(error) if is_pause(error.kind()) => {
                    if stop.is_requested() {
                        return Err(ProbeError::Interrupted);
                    }
                }
                other => return other.map_err(told("receiving by TCP")),
            }
        }
    }

    /// Writes until all is written or `until` has come; returns how many bytes the kernel took, and the calls made.
    pub(super) fn write_until(&self, bytes: &[u8], until: Instant, stop: &Stop) -> Result<(usize, u64), ProbeError> {
        let (mut written, mut calls) = (0, 0);
        while written < bytes.len() {
            calls += 1;
            match (&self.0).write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(error) if is_pause(error.kind()) => {}
                Err(error) => return Err(told("sending by TCP")(error)),
            }
            if stop.is_requested() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= until {
                break;
            }
        }
        Ok((written, calls))
    }

    pub(super) fn retransmitted_segments(&self) -> Option<u64> {
        thalweg_transport::tcp::retransmitted_segments(&self.0).ok().map(u64::from)
    }

    /// Bytes of receive buffer that the kernel grants now, without its own doubling.
    pub(super) fn receive_buffer_bytes(&self) -> u64 {
        SockRef::from(&self.0).recv_buffer_size().unwrap_or(0) as u64 / 2
    }

    /// The end of what this end sends.
    pub(super) fn finish_sending(&self) -> Result<(), ProbeError> {
        self.0.shutdown(Shutdown::Write).map_err(ProbeError::system("ending a TCP stream"))
    }
}

fn told(what: &'static str) -> impl FnOnce(std::io::Error) -> ProbeError {
    move |error| match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => ProbeError::Left,
        _ => ProbeError::System { what, error },
    }
}

/// Where a server waits for the connections of one measurement.
pub(super) struct TcpDoor {
    socket: Socket,
    token: u32,
}

impl TcpDoor {
    /// Opens it on the address `here`; one port serves all streams.
    pub(super) fn open(order: &ProbeOrder, here: SocketAddr, port: u16, token: u32) -> Result<TcpDoor, ProbeError> {
        let mut address = here;
        address.set_port(port_of(port, 0));
        let open = || {
            let socket = new_socket(order, here)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(ATTEMPTS_MAX as i32)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(ProbeError::system("opening a TCP port"))?;
        Ok(TcpDoor { socket, token })
    }

    pub(super) fn port(&self) -> u16 {
        self.socket.local_addr().ok().and_then(|address| address.as_socket()).map_or(0, |address| address.port())
    }

    /// The connections of all streams; strangers who knock here are turned away.
    pub(super) fn accept(&self, streams: u32, stop: &Stop) -> Result<Vec<TcpLink>, ProbeError> {
        let mut links: Vec<Option<TcpLink>> = (0..streams).map(|_| None).collect();
        let deadline = clock::now() + ACCEPT_PATIENCE;
        let mut attempts = 0;
        while links.iter().any(Option::is_none) {
            match self.socket.accept() {
                Ok((socket, _)) => {
                    attempts += 1;
                    if let Some((stream, link)) = self.admit(socket.into())
                        && let Some(place) = links.get_mut(stream)
                    {
                        *place = Some(link);
                        continue;
                    }
                }
                Err(error) if is_pause(error.kind()) => std::thread::sleep(ACCEPT_PERIOD),
                Err(error) => return Err(ProbeError::System { what: "accepting a TCP connection", error }),
            }
            if stop.is_requested() {
                return Err(ProbeError::Interrupted);
            }
            if attempts >= ATTEMPTS_MAX || clock::now() >= deadline {
                return Err(ProbeError::Failed("not all TCP connections of the streams came".to_owned()));
            }
        }
        Ok(links.into_iter().flatten().collect())
    }

    /// The number of the stream that a connection says it is of; `None` of a stranger's.
    fn admit(&self, stream: TcpStream) -> Option<(usize, TcpLink)> {
        let mut word = [0; KNOCK_BYTES];
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(KNOCK_PATIENCE)).ok()?;
        (&stream).read_exact(&mut word).ok()?;
        let (token, number) = word.split_at(4);
        let is_ours = token == self.token.to_le_bytes();
        let number = u32::from_le_bytes(number.try_into().ok()?);
        is_ours.then_some(())?;
        Some((number as usize, TcpLink::new(stream).ok()?))
    }
}

/// Connects each stream to the server's door.
pub(super) fn connect(order: &ProbeOrder, door: SocketAddr, token: u32) -> Result<Vec<TcpLink>, ProbeError> {
    let connect_one = |number: u32| {
        let socket = new_socket(order, door)?;
        socket.connect_timeout(&door.into(), ACCEPT_PATIENCE)?;
        let mut stream = TcpStream::from(socket);
        stream.write_all(&[token.to_le_bytes(), number.to_le_bytes()].concat())?;
        TcpLink::new(stream)
    };
    let links = (0..order.streams).map(connect_one).collect::<Result<_, _>>();
    links.map_err(ProbeError::system("connecting a TCP stream"))
}

/// A socket whose buffer and segments are those of the order; both have to be set before it is connected.
fn new_socket(order: &ProbeOrder, there: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(there), Type::STREAM, None)?;
    if let Some(bytes) = order.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    if let Some(mtu) = order.segment_mtu_bytes {
        // Heads of TCP (20) and of IPv4 (20) or IPv6 (40), as RFC 9293 §3.7.1 counts.
        socket.set_tcp_mss(mtu.saturating_sub(if there.is_ipv4() { 40 } else { 60 }))?;
    }
    Ok(socket)
}

/// Starts a thread that sends for each link.
pub(super) fn send(order: &ProbeOrder, links: &[Arc<TcpLink>], start: Instant) -> Workers<StreamSent> {
    let course = |(number, link): (usize, &Arc<TcpLink>)| SendCourse {
        link: Arc::clone(link),
        size_bytes: order.size_bytes as usize,
        schedule: SendSchedule::of(order, number as u32, start),
        start,
        end: start + order.duration(),
    };
    Workers::start(links.iter().enumerate().map(course).collect(), send_stream)
}

struct SendCourse {
    link: Arc<TcpLink>,
    size_bytes: usize,
    schedule: Option<SendSchedule>,
    start: Instant,
    end: Instant,
}

fn send_stream(course: SendCourse, stop: &Stop) -> Result<StreamSent, ProbeError> {
    let bytes: Vec<u8> = (0..course.size_bytes).map(|at| at as u8).collect();
    let mut sent = StreamSent::new(course.start);
    // An open loop offers all that its time has, even where TCP takes it later; a closed one ends with its time.
    let until = if course.schedule.is_some() { course.end + LATE_MAX } else { course.end };
    loop {
        let now = clock::now();
        match &course.schedule {
            Some(schedule) if sent.offered >= schedule.count() => break,
            Some(schedule) if now < schedule.due(sent.offered) => {
                if stop.is_requested() {
                    return Err(ProbeError::Interrupted);
                }
                clock::sleep_until(schedule.due(sent.offered).min(now + LOOK_PERIOD));
                continue;
            }
            Some(schedule) => sent.behind_max = sent.behind_max.max(now.since(schedule.due(sent.offered))),
            None => {}
        }
        if now >= until {
            break;
        }
        let (written, calls) = course.link.write_until(&bytes, until, stop)?;
        sent.offered += 1;
        sent.bytes += written as u64;
        sent.calls += calls;
    }
    course.link.finish_sending()?;
    sent.ended = clock::now();
    Ok(sent)
}

/// Starts a thread that receives for each link until the other end has no more.
pub(super) fn receive(links: &[Arc<TcpLink>], progress: &Arc<ReceiveProgress>) -> Workers<StreamReceived> {
    let course = |(stream, link): (usize, &Arc<TcpLink>)| (Arc::clone(link), stream, Arc::clone(progress));
    Workers::start(links.iter().enumerate().map(course).collect(), receive_stream)
}

fn receive_stream(
    (link, stream, progress): (Arc<TcpLink>, usize, Arc<ReceiveProgress>),
    stop: &Stop,
) -> Result<StreamReceived, ProbeError> {
    let mut bytes = vec![0; READ_BYTES];
    let mut received = StreamReceived::default();
    loop {
        let count = link.read_some(&mut bytes, stop)?;
        received.calls += 1;
        let now = clock::now();
        let (first, _) = received.span.unwrap_or((now, now));
        received.span = Some((first, now));
        if count == 0 {
            return Ok(received);
        }
        received.counts.bytes += count as u64;
        progress.note(stream, &received.counts);
        if stop.is_requested() {
            return Err(ProbeError::Interrupted);
        }
    }
}

/// Bytes that one call reads at most: the size that iperf3 reads by.
const READ_BYTES: usize = 128 << 10;
/// In front of a connection's bytes: the token of the measurement and the number of the stream.
const KNOCK_BYTES: usize = 8;
const KNOCK_PATIENCE: Duration = Duration::from_secs(1);
const ACCEPT_PATIENCE: Duration = Duration::from_secs(5);
const ACCEPT_PERIOD: Duration = Duration::from_millis(2);
/// Connections that a door looks at. Chosen here: those of the most streams, and as many strangers.
const ATTEMPTS_MAX: usize = 128;
/// How long after its time an open loop may still send what TCP was slow to take.
const LATE_MAX: Duration = Duration::from_secs(10);
