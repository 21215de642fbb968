//! Load over DTLS and TCP: a closed loop of a few clients, each with a session or a connection of its own.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_base::time::Instant;
use thalweg_coap::credentials::Credentials;
use thalweg_coap::dtls::{ClientSession, ClockOrigin, SessionState};
use thalweg_coap::endpoint::reliable::{FrameWriter, Framing, ReliableMessage, message_len};
use thalweg_coap::identity::Transport;
use thalweg_coap::message::{CoapMessage, Code, RequestBuf, Token};
use thalweg_transport::clock;

use super::plan::RequestPlan;
use super::request::{Template, Verdict};
use crate::agent::socket_to;
use crate::error::LabError;
use crate::statistics::Latencies;
use crate::statistics::endless::option;

/// What is asked, by whom and for how long.
#[derive(Clone, Debug)]
pub struct SessionLoadPlan {
    /// DTLS or TCP.
    pub transport: Transport,
    /// The server.
    pub target: SocketAddr,
    /// The name that the server's certificate has.
    pub host: String,
    /// The credentials of each client.
    pub credentials: Credentials,
    /// The request.
    pub request: RequestPlan,
    /// Clients, each with a session or connection of its own.
    pub clients: u32,
    /// Requests of a client that wait for answers.
    pub outstanding: u32,
    /// Time that counts.
    pub duration: Duration,
    /// Time before it.
    pub warm_up: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionLoadResult {
    /// `thalweg.coap-session-load/1`.
    pub schema: String,
    /// The scheme of the transport.
    pub transport: String,
    /// Clients.
    pub clients: u32,
    /// Requests of a client that waited for answers.
    pub outstanding: u32,
    /// Time that counted.
    pub seconds: f64,
    /// Answers 2.05 with the expected payload.
    pub served: u64,
    /// Other answers.
    pub wrong: u64,
    /// Requests without an answer within a second, sent again.
    pub lost: u64,
    /// Served in a second.
    pub served_per_s: f64,
    /// Half of the requests had an answer within this time in microseconds; null below three requests, `never` where fewer had one.
    #[serde(default, with = "option")]
    pub p50_us: Option<f64>,
    /// 99 % of the requests had one within this time; null below 1,000 requests.
    #[serde(default, with = "option")]
    pub p99_us: Option<f64>,
}

/// Makes the load.
///
/// # Errors
/// When the transport is another one, the server cannot be reached, or a session or connection ends.
pub fn run_sessions(plan: &SessionLoadPlan, is_stopped: &AtomicBool) -> Result<SessionLoadResult, LabError> {
    let failed = |error: io::Error| LabError::Here(format!("the load over {} failed: {error}", plan.transport));
    let mut clients = Vec::new();
    for _ in 0..plan.clients.max(1) {
        clients.push(SessionClient::open(plan)?);
    }
    let mut tally = SessionTally::new();
    let begin = clock::now() + plan.warm_up;
    let end = begin + plan.duration;
    let mut now = clock::now();
    while now < end && !is_stopped.load(Ordering::Relaxed) {
        for client in &mut clients {
            client.turn(now, begin, &mut tally).map_err(failed)?;
        }
        now = clock::now();
    }
    let seconds = now.since(begin).as_secs_f64();
    Ok(SessionLoadResult {
        schema: "thalweg.coap-session-load/1".to_owned(),
        transport: plan.transport.to_string(),
        clients: plan.clients,
        outstanding: plan.outstanding,
        seconds,
        served: tally.served,
        wrong: tally.wrong,
        lost: tally.lost,
        served_per_s: if seconds > 0.0 { tally.served as f64 / seconds } else { 0.0 },
        p50_us: tally.quantile(0.5),
        p99_us: tally.quantile(0.99),
    })
}

struct SessionTally {
    served: u64,
    wrong: u64,
    lost: u64,
    times: Latencies,
}

impl SessionTally {
    fn new() -> SessionTally {
        SessionTally { served: 0, wrong: 0, lost: 0, times: Latencies::new() }
    }

    /// A quantile of all requests, those without an answer infinitely late.
    fn quantile(&self, q: f64) -> Option<f64> {
        self.times.quantile_of(q, self.times.count() + self.lost)
    }
}

/// One client.
struct SessionClient {
    link: Link,
    slots: Vec<Slot>,
    /// Slots whose requests are to be sent.
    owed: Vec<u32>,
    template: Template,
    request: RequestBuf,
    next_id: u16,
    looked_at: Instant,
}

/// A request that waits for its answer; its token has the slot's number and how often it was used.
#[derive(Clone, Copy)]
struct Slot {
    uses: u32,
    id: u16,
    sent_at: Instant,
}

enum Link {
    Dtls { socket: UdpSocket, session: Box<ClientSession> },
    Tcp { socket: TcpStream, inbound: Vec<u8>, outbound: Vec<u8>, writer: FrameWriter },
}

impl SessionClient {
    fn open(plan: &SessionLoadPlan) -> Result<SessionClient, LabError> {
        let failed = |error: io::Error| LabError::Here(format!("{} cannot be reached: {error}", plan.target));
        let link = match plan.transport {
            Transport::Dtls => open_session(plan)?,
            Transport::Tcp => open_connection(plan.target).map_err(failed)?,
            other => return Err(LabError::Here(format!("no load over {other}; use coap, coaps or coap+tcp"))),
        };
        let outstanding = plan.outstanding.max(1);
        let slot = Slot { uses: 0, id: 0, sent_at: Instant::ZERO };
        Ok(SessionClient {
            link,
            slots: vec![slot; outstanding as usize],
            owed: (0..outstanding).collect(),
            template: Template::new(&plan.request)?,
            request: RequestBuf::get(&plan.request.resource),
            next_id: 0,
            looked_at: clock::now(),
        })
    }

    /// Sends what is owed, and takes what has come.
    fn turn(&mut self, now: Instant, begin: Instant, tally: &mut SessionTally) -> io::Result<()> {
        self.send(now)?;
        self.receive(begin, tally)?;
        if now.since(self.looked_at) >= LOST_AFTER / 4 {
            self.looked_at = now;
            for (number, slot) in self.slots.iter_mut().enumerate() {
                if slot.sent_at != Instant::ZERO && now.since(slot.sent_at) > LOST_AFTER {
                    tally.lost += u64::from(now >= begin);
                    slot.sent_at = Instant::ZERO;
                    self.owed.push(number as u32);
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Instant) -> io::Result<()> {
        for number in self.owed.drain(..) {
            let slot = &mut self.slots[number as usize];
            self.next_id = self.next_id.wrapping_add(1);
            *slot = Slot { uses: slot.uses.wrapping_add(1), id: self.next_id, sent_at: now };
            let token = u64::from(number) << 32 | u64::from(slot.uses);
            match &mut self.link {
                Link::Dtls { session, .. } => session.send(now, self.template.datagram(slot.id, token)),
                Link::Tcp { outbound, writer, .. } => {
                    let view = self.request.view();
                    let token = Token::from_u64(token);
                    let message = ReliableMessage { code: Code::GET, token, options: view.options, payload: &[] };
                    writer.message(outbound, Framing::Stream, &message);
                }
            }
        }
        match &mut self.link {
            Link::Dtls { socket, session } => {
                for datagram in session.take_outgoing() {
                    // A full buffer loses it, as the network may.
                    let _ = socket.send(&datagram);
                }
            }
            Link::Tcp { socket, outbound, .. } if !outbound.is_empty() => match socket.write(outbound) {
                Ok(count) => drop(outbound.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            },
            Link::Tcp { .. } => {}
        }
        Ok(())
    }

    fn receive(&mut self, begin: Instant, tally: &mut SessionTally) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let mut arrived: Vec<Vec<u8>> = Vec::new();
        match &mut self.link {
            Link::Dtls { socket, session } => {
                let now = clock::now();
                for _ in 0..BATCH_MAX {
                    match socket.recv(&mut buffer) {
                        Ok(count) => session.handle_datagram(now, &buffer[..count]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
                if *session.state() != SessionState::Established {
                    return Err(io::Error::other("the session ended"));
                }
                arrived = session.take_plain();
            }
            Link::Tcp { socket, inbound, .. } => {
                match socket.read(&mut buffer) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(count) => inbound.extend_from_slice(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
                let mut start = 0;
                while let Some(len) = message_len(&inbound[start..]).map_err(io::Error::other)? {
                    let Some(bytes) = inbound.get(start..start + len) else { break };
                    arrived.push(bytes.to_vec());
                    start += len;
                }
                inbound.drain(..start);
            }
        }
        let now = clock::now();
        let is_stream = matches!(self.link, Link::Tcp { .. });
        for bytes in &arrived {
            let message = match is_stream {
                true => ReliableMessage::parse(bytes, Framing::Stream).map(|message| message.as_datagram()),
                false => CoapMessage::parse(bytes),
            };
            self.judge(now, &message.map_err(io::Error::other)?, now >= begin, tally);
        }
        Ok(())
    }

    fn judge(&mut self, now: Instant, message: &CoapMessage<'_>, counts: bool, tally: &mut SessionTally) {
        if !message.code.is_response() {
            return; // A signal.
        }
        let Some(token) = message.token.to_u64() else { return };
        let number = (token >> 32) as u32;
        let Some(slot) = self.slots.get_mut(number as usize).filter(|slot| slot.uses == token as u32) else { return };
        if slot.sent_at == Instant::ZERO {
            return; // It counted as lost.
        }
        if counts {
            let is_right = self.template.judge(slot.id, message) == Verdict::Right;
            tally.served += u64::from(is_right);
            tally.wrong += u64::from(!is_right);
            tally.times.record(now.since(slot.sent_at));
        }
        slot.sent_at = Instant::ZERO;
        self.owed.push(number);
    }
}

fn open_connection(target: SocketAddr) -> io::Result<Link> {
    let socket = TcpStream::connect(target)?;
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    // An empty CSM.
    let outbound = vec![0x00, 0xe1];
    Ok(Link::Tcp { socket, inbound: Vec::new(), outbound, writer: FrameWriter::default() })
}

fn open_session(plan: &SessionLoadPlan) -> Result<Link, LabError> {
    let failed = |error: io::Error| LabError::Here(format!("{} cannot be reached: {error}", plan.target));
    let socket = socket_to(plan.target).map_err(failed)?;
    socket.set_read_timeout(Some(Duration::from_millis(50))).map_err(failed)?;
    let (begin, refused) = (clock::now(), |error: &dyn std::fmt::Display| LabError::Here(error.to_string()));
    let session = ClientSession::connect(&plan.credentials, &plan.host, ClockOrigin::at(begin), begin);
    let mut session = session.map_err(|error| refused(&error))?;
    let mut buffer = [0; 2048];
    while *session.state() == SessionState::Handshake {
        for datagram in session.take_outgoing() {
            socket.send(&datagram).map_err(failed)?;
        }
        if let Ok(count) = socket.recv(&mut buffer) {
            session.handle_datagram(clock::now(), &buffer[..count]);
        }
        session.handle_timeout(clock::now());
    }
    match session.state() {
        SessionState::Established => {}
        SessionState::Failed(error) => return Err(refused(error)),
        other => return Err(refused(&format_args!("no session: {other:?}"))),
    }
    socket.set_nonblocking(true).map_err(failed)?;
    Ok(Link::Dtls { socket, session: Box::new(session) })
}

/// A request without an answer is sent again after this time.
const LOST_AFTER: Duration = Duration::from_secs(1);
/// Datagrams of one client in a row.
const BATCH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_is_no_answer_within_no_time() {
        let mut tally = SessionTally::new();
        assert_eq!((tally.quantile(0.5), tally.quantile(0.99)), (None, None));
        tally.lost = 3;
        assert_eq!(tally.quantile(0.5), Some(f64::INFINITY));
        (0..3).for_each(|_| tally.times.record(Duration::from_micros(20)));
        assert_eq!(tally.quantile(0.5), Some(20.0));
    }
}
