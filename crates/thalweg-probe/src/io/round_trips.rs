//! Requests and their answers, the one end that measures them and the one that answers.

use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_lab_station::{Latencies, Stop};
use thalweg_transport::clock;
use thalweg_transport::stream::{StreamReceiver, StreamScratch, StreamSocket};

use super::channel::LOOK_PERIOD;
use super::datagrams::filling;
use super::links::DatagramLink;
use super::received::StreamReceived;
use super::sent::StreamSent;
use super::tcp::TcpLink;
use super::workers::Workers;
use crate::account::{DatagramHeader, HEADER_BYTES};
use crate::error::ProbeError;
use crate::order::ProbeOrder;

/// One stream of requests at the end that measures them.
pub(super) struct StreamTrips {
    pub(super) sent: StreamSent,
    /// Round trips after the warm-up.
    pub(super) latencies: Latencies,
    /// Requests without an answer, warm-up included.
    pub(super) lost: u64,
    /// From the end of the warm-up to the last answer.
    pub(super) measured: Duration,
}

/// Starts a thread that asks for each UDP link.
pub(super) fn ask_by_datagrams(
    order: &ProbeOrder,
    links: &[DatagramLink],
    start: Instant,
) -> Result<Workers<StreamTrips>, ProbeError> {
    let asker = |link: &DatagramLink| {
        let receiver = StreamReceiver::new(&[&link.socket]).map_err(ProbeError::system("preparing to receive"))?;
        let filling = filling(order.size_bytes as usize);
        let asker = DatagramAsker { link: link.clone(), receiver, scratch: StreamScratch::default(), filling };
        Ok((asker, start, start + order.duration()))
    };
    let works = links.iter().map(asker).collect::<Result<_, ProbeError>>()?;
    Ok(Workers::start(works, |(asker, start, end), stop| run(asker, start, end, stop)))
}

/// Starts a thread that asks for each connection.
pub(super) fn ask_by_tcp(order: &ProbeOrder, links: &[Arc<TcpLink>], start: Instant) -> Workers<StreamTrips> {
    let size = order.size_bytes as usize;
    let asker = |link: &Arc<TcpLink>| {
        let asker = TcpAsker { link: Arc::clone(link), request: vec![b'?'; size], answer: vec![0; size], calls: 0 };
        (asker, start, start + order.duration())
    };
    Workers::start(links.iter().map(asker).collect(), |(asker, start, end), stop| run(asker, start, end, stop))
}

/// A way to make one round trip.
trait Ask {
    /// Sends request `number` and waits for its answer; whether it came.
    fn ask(&mut self, number: u64, stop: &Stop) -> Result<bool, ProbeError>;

    /// Adds what it knows of its socket; the end of the stream.
    fn finish(self, sent: &mut StreamSent) -> Result<(), ProbeError>;
}

fn run(mut asker: impl Ask, start: Instant, end: Instant, stop: &Stop) -> Result<StreamTrips, ProbeError> {
    let mut trips =
        StreamTrips { sent: StreamSent::new(start), latencies: Latencies::new(), lost: 0, measured: Duration::ZERO };
    let mut begun = start;
    let mut answered = start;
    let mut now = clock::now();
    while now < end {
        if stop.is_requested() {
            return Err(ProbeError::Interrupted);
        }
        let number = trips.sent.offered;
        if number == WARM_UP {
            begun = now;
        }
        let came = asker.ask(number, stop)?;
        let asked = std::mem::replace(&mut now, clock::now());
        trips.sent.offered += 1;
        match came {
            true if number >= WARM_UP => {
                trips.latencies.record(now.since(asked));
                answered = now;
            }
            true => {}
            false => trips.lost += 1,
        }
    }
    trips.measured = answered.since(begun);
    trips.sent.ended = now;
    asker.finish(&mut trips.sent)?;
    Ok(trips)
}

struct DatagramAsker {
    link: DatagramLink,
    receiver: StreamReceiver,
    scratch: StreamScratch,
    filling: Vec<u8>,
}

impl Ask for DatagramAsker {
    fn ask(&mut self, number: u64, stop: &Stop) -> Result<bool, ProbeError> {
        let DatagramAsker { link, receiver, scratch, filling } = self;
        let now = clock::now();
        let header = DatagramHeader { number, token: link.token, sent_us: (now.as_nanos() / 1_000) as u32 };
        let head = header.to_wire();
        let pieces = [&head[..], filling];
        let mut burst = link.socket.burst(scratch, link.peer);
        burst.push(pieces.into_iter().filter(|piece| !piece.is_empty()));
        if burst.send(LOSS_PATIENCE).lost > 0 {
            return Err(ProbeError::Failed(format!(
                "the system refuses to send datagrams of {} B to {}",
                HEADER_BYTES + filling.len(),
                link.peer
            )));
        }
        let deadline = now + LOSS_PATIENCE;
        loop {
            while receiver.is_ready(0) {
                receiver.receive(0).map_err(ProbeError::system("receiving"))?;
                let mut is_answered = false;
                while let Some(arrival) = receiver.next_arrival() {
                    // Anything else is somebody's, or an answer that was given up.
                    is_answered |= arrival.datagrams().any(|datagram| {
                        datagram.len() == HEADER_BYTES + filling.len()
                            && DatagramHeader::from_wire(datagram) == Some(header)
                    });
                }
                if is_answered {
                    return Ok(true);
                }
            }
            if clock::now() >= deadline || stop.is_requested() {
                return Ok(false);
            }
            receiver.wait_until(deadline).map_err(ProbeError::system("waiting for an answer"))?;
        }
    }

    fn finish(self, sent: &mut StreamSent) -> Result<(), ProbeError> {
        let size = HEADER_BYTES + self.filling.len();
        let (out, back) = (self.link.socket.counts(), self.receiver.counts());
        (sent.bytes, sent.calls) = (out.datagrams * size as u64, out.calls + back.calls + back.waits);
        Ok(())
    }
}

struct TcpAsker {
    link: Arc<TcpLink>,
    request: Vec<u8>,
    answer: Vec<u8>,
    calls: u64,
}

impl Ask for TcpAsker {
    fn ask(&mut self, _number: u64, stop: &Stop) -> Result<bool, ProbeError> {
        let (_, writes) = self.link.write_until(&self.request, Instant::NEVER, stop)?;
        let (count, reads) = self.link.read_full(&mut self.answer, stop)?;
        self.calls += writes + reads;
        if count == self.answer.len() { Ok(true) } else { Err(ProbeError::Left) }
    }

    fn finish(self, sent: &mut StreamSent) -> Result<(), ProbeError> {
        (sent.bytes, sent.calls) = (sent.offered * self.request.len() as u64, self.calls);
        self.link.finish_sending()
    }
}

/// Starts a thread that answers for each socket until it is asked to end; whatever does not bear the token, or is not from the
/// client's address, gets no answer.
pub(super) fn answer_datagrams(
    order: &ProbeOrder,
    links: &[DatagramLink],
) -> Result<Workers<StreamReceived>, ProbeError> {
    let work = |link: &DatagramLink| {
        let receiver = StreamReceiver::new(&[&link.socket]).map_err(ProbeError::system("preparing to receive"))?;
        Ok((link.clone(), receiver, order.size_bytes as usize))
    };
    let works = links.iter().map(work).collect::<Result<_, ProbeError>>()?;
    Ok(Workers::start(works, |(link, receiver, size), stop| answer_datagram(&link, receiver, size, stop)))
}

fn answer_datagram(
    link: &DatagramLink,
    mut receiver: StreamReceiver,
    size: usize,
    stop: &Stop,
) -> Result<StreamReceived, ProbeError> {
    let mut scratch = StreamScratch::default();
    let mut received = StreamReceived::default();
    while !stop.is_requested() {
        while receiver.is_ready(0) {
            receiver.receive(0).map_err(ProbeError::system("receiving"))?;
            while let Some(arrival) = receiver.next_arrival() {
                for datagram in arrival.datagrams() {
                    let is_ours = datagram.len() == size
                        && arrival.source.ip() == link.peer.ip()
                        && DatagramHeader::from_wire(datagram).is_some_and(|header| header.token == link.token);
                    if !is_ours {
                        received.counts.foreign += 1;
                        continue;
                    }
                    received.counts.received += 1;
                    received.counts.bytes += size as u64;
                    send_back(&link.socket, &mut scratch, arrival.source, datagram);
                }
                let (first, _) = received.span.unwrap_or((arrival.arrived, arrival.arrived));
                received.span = Some((first, arrival.arrived));
            }
        }
        receiver.wait_until(clock::now() + LOOK_PERIOD).map_err(ProbeError::system("waiting for requests"))?;
    }
    let counts = receiver.counts();
    (received.calls, received.joined_messages) = (counts.calls + counts.waits, counts.joined_messages);
    received.overflow_drops = counts.kernel_drops;
    Ok(received)
}

fn send_back(socket: &StreamSocket, scratch: &mut StreamScratch, to: std::net::SocketAddr, datagram: &[u8]) {
    let mut burst = socket.burst(scratch, to);
    burst.push([datagram]);
    // What does not leave is missed by the end that asks, which counts it.
    burst.send(LOSS_PATIENCE);
}

/// Starts a thread that answers for each connection until the other end has no more.
pub(super) fn answer_tcp(order: &ProbeOrder, links: &[Arc<TcpLink>]) -> Workers<StreamReceived> {
    let work = |link: &Arc<TcpLink>| (Arc::clone(link), vec![0; order.size_bytes as usize]);
    Workers::start(links.iter().map(work).collect(), |(link, mut bytes), stop| {
        let mut received = StreamReceived::default();
        loop {
            let (count, calls) = link.read_full(&mut bytes, stop)?;
            received.calls += calls;
            match count {
                0 => return Ok(received),
                count if count < bytes.len() => return Err(ProbeError::Left),
                _ => {}
            }
            let now = clock::now();
            let (first, _) = received.span.unwrap_or((now, now));
            received.span = Some((first, now));
            received.counts.received += 1;
            received.counts.bytes += bytes.len() as u64;
            link.write_until(&bytes, Instant::NEVER, stop)?;
        }
    })
}

/// Round trips of each stream that are made and not measured: caches, routes and the kernel's windows are cold before.
pub(crate) const WARM_UP: u64 = 100;
/// How long an answer by datagrams may take before it is lost, as in the laboratory's round trips.
const LOSS_PATIENCE: Duration = Duration::from_millis(500);
