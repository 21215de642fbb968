//! The thread that is all clients.

use std::io;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::message::{CoapMessage, Code, MessageId, MessageType, empty_message};
use thalweg_transport::batch::cut_sends;

use super::crowd::Crowd;
use super::ledger::{Found, Ledger, State};
use super::meter::Meter;
use super::plan::{ArrivalProcess, LoadPlan};
use super::repeats::Repeats;
use super::request::Template;
use super::result::{LoadResult, SCHEMA};
use super::schedule::Schedule;
use super::sockets::Sockets;
use super::tally::Tally;
use crate::error::LabError;
use crate::host::monotonic_nanos;
use thalweg_base::rng::Rng;

/// Carries a plan out; takes its time and the drain, which ends when every request is answered or lost.
///
/// # Errors
/// When the plan is impossible, when sockets cannot be had, or when `is_stopped` became true.
pub fn run(plan: &LoadPlan, is_stopped: &AtomicBool) -> Result<LoadResult, LabError> {
    Generator::new(plan)?.run(is_stopped)
}

/// All clients of a plan, with their sockets.
pub(crate) struct Generator<'plan> {
    plan: &'plan LoadPlan,
    template: Template,
    burst: Burst,
    clients: Vec<Client>,
    watch: Watch,
    schedule: Option<Schedule>,
    crowd: Option<Crowd>,
    ledger: Ledger,
    repeats: Option<Repeats>,
    tally: Tally,
    meter: Meter,
    /// Token of the first request; a run's tokens are not those of another.
    first_token: u64,
    /// Clients of a closed loop whose requests the system refused, and when they try again.
    refused: (Vec<u32>, u64),
    /// The next clients on the schedule.
    turn: u32,
    /// When the run began, by the host's clock.
    began: u64,
}

/// Requests that leave together.
struct Burst {
    bytes: Vec<u8>,
    requests_max: u32,
}

/// Tells which sockets have something to read.
struct Watch {
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
}

struct Client {
    socket: UdpSocket,
    next_id: u16,
    sent: u32,
    /// Requests that wait for their answers.
    open: u32,
    /// Requests of a closed loop that are to be sent.
    owed: u32,
    /// Those that the system refused, as they were to leave together: when they were due first, and their number.
    refused: Vec<(u64, u32)>,
}

impl<'plan> Generator<'plan> {
    /// # Errors
    /// The plan is impossible, or sockets cannot be had.
    pub(crate) fn new(plan: &'plan LoadPlan) -> Result<Generator<'plan>, LabError> {
        plan.check()?;
        let mut sockets = Sockets::new(plan.target, plan.sockets())?;
        let mut random = Rng::new(monotonic_nanos());
        let refused = |error: rustix::io::Errno| LabError::Here(format!("sockets cannot be watched: {error}"));
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused)?;
        let mut template = Template::new(&plan.request)?;
        let bytes = template.datagram(0, 0).len() as u16;
        let mut clients = Vec::with_capacity(plan.clients as usize);
        let mut requests_max = if plan.target.ip().is_loopback() { BURST_MAX } else { 1 };
        for client in 0..plan.clients {
            let socket = sockets.open()?;
            // Elsewhere a network device may have to cut, and not every one can.
            if requests_max > 1 && cut_sends(&socket, bytes).is_err() {
                requests_max = 1;
            }
            let data = epoll::EventData::new_u64(u64::from(client));
            epoll::add(&epoll, &socket, data, epoll::EventFlags::IN).map_err(refused)?;
            clients.push(Client {
                socket,
                next_id: random.next_u64() as u16,
                sent: 0,
                open: 0,
                owed: 0,
                refused: Vec::new(),
            });
        }
        Ok(Generator {
            template,
            burst: Burst { bytes: Vec::new(), requests_max },
            clients,
            watch: Watch { epoll, ready: Vec::with_capacity(READY_MAX) },
            schedule: Schedule::of(plan),
            crowd: plan.flood.map(|flood| Crowd::new(&flood, plan)).transpose()?,
            ledger: Ledger::new(plan.time_limit.as_nanos() as u64),
            repeats: (plan.request.delivery == Confirmability::Confirmable).then(|| Repeats::new(random.next_u64())),
            tally: Tally::new(plan),
            meter: Meter::new(plan.server_process),
            first_token: random.next_u64(),
            refused: (Vec::new(), 0),
            turn: 0,
            began: monotonic_nanos(),
            plan,
        })
    }

    /// Nanoseconds since the run began.
    fn now(&self) -> u64 {
        monotonic_nanos() - self.began
    }

    /// Makes the load.
    ///
    /// # Errors
    /// A port cannot be had, or `is_stopped` became true.
    pub(crate) fn run(mut self, is_stopped: &AtomicBool) -> Result<LoadResult, LabError> {
        self.began = monotonic_nanos();
        if let ArrivalProcess::Closed(outstanding) = self.plan.arrival {
            for client in 0..self.plan.clients {
                self.clients[client as usize].owed = outstanding;
                self.send_owed(client);
            }
        }
        loop {
            let now = self.now();
            self.meter.handle_turn(now, &self.tally);
            if is_stopped.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            self.retry(now);
            let has_sent = self.send_due(now)?;
            let has_expired = self.expire(now);
            let has_received = self.receive()?;
            if has_sent || has_expired || has_received {
                self.meter.note_work();
            } else if now >= self.tally.end() && self.ledger.is_settled() {
                return Ok(self.result());
            }
        }
    }

    /// Sends the scheduled requests, a few at a time so that answers are read in between.
    fn send_due(&mut self, now: u64) -> Result<bool, LabError> {
        let mut has_sent = match &mut self.crowd {
            Some(crowd) => crowd.send_due(now, &mut self.tally.counts)?,
            None => false,
        };
        for _ in 0..SENDS_PER_TURN {
            let now = self.now();
            let Some(due) = self.schedule.as_mut().and_then(|schedule| schedule.take(now)) else { break };
            let client = self.turn;
            self.turn = (self.turn + 1) % self.plan.clients;
            self.send(client, due, now, 1);
            has_sent = true;
        }
        Ok(has_sent)
    }

    /// Sends the requests of a closed loop whose turn has come.
    fn send_owed(&mut self, client: u32) {
        let now = self.now();
        let place = &mut self.clients[client as usize];
        let mut owed = std::mem::take(&mut place.owed);
        let refused = std::mem::take(&mut place.refused);
        if now >= self.tally.end() {
            return;
        }
        refused.into_iter().for_each(|(due, count)| self.send(client, due, now, count));
        while owed > 0 {
            let count = owed.min(self.burst.requests_max);
            self.send(client, now, now, count);
            owed -= count;
        }
    }

    /// Sends again what the system refused some time ago.
    fn retry(&mut self, now: u64) {
        if !self.refused.0.is_empty() && now >= self.refused.1 {
            let clients = std::mem::take(&mut self.refused.0);
            clients.into_iter().for_each(|client| self.send_owed(client));
        }
    }

    /// Sends so many requests of one client at once.
    fn send(&mut self, client: u32, due: u64, now: u64, count: u32) {
        let first = self.ledger.next();
        let place = &mut self.clients[client as usize];
        let first_id = place.next_id;
        self.burst.bytes.clear();
        for (number, offset) in (first..).zip(0..count as u16) {
            let token = self.first_token.wrapping_add(number);
            self.burst.bytes.extend_from_slice(self.template.datagram(first_id.wrapping_add(offset), token));
        }
        let is_taken = send(&place.socket, &self.burst.bytes);
        for (number, offset) in (first..).zip(0..count as u16) {
            if !is_taken && self.schedule.is_none() {
                self.tally.handle_refusal(due);
                continue;
            }
            self.tally.handle_request(due, now, is_taken);
            if !is_taken {
                continue;
            }
            let id = first_id.wrapping_add(offset);
            self.ledger.open(due, client, id);
            if let Some(repeats) = &mut self.repeats {
                repeats.handle_sent(now, number, client, id);
            }
        }
        if is_taken {
            place.next_id = first_id.wrapping_add(count as u16);
            place.sent += count;
            place.open += count;
        } else if self.schedule.is_none() {
            place.refused.push((due, count));
            if !self.refused.0.contains(&client) {
                self.refused.0.push(client);
            }
            self.refused.1 = now + RETRY_NANOS;
        }
    }

    /// Gives up requests that have waited too long, and repeats unanswered ones.
    fn expire(&mut self, now: u64) -> bool {
        let mut has_expired = false;
        while let Some(lost) = self.ledger.expire(now) {
            has_expired = true;
            if let Some(repeats) = &mut self.repeats {
                repeats.take(lost.client, lost.id);
            }
            self.tally.handle_lost(lost.due);
            self.settle(lost.client);
            self.send_owed(lost.client);
        }
        while let Some(number) = self.repeats.as_mut().and_then(|repeats| repeats.fire(now)) {
            let Some(entry) = self.ledger.get_mut(number).filter(|entry| entry.state == State::Open) else { continue };
            let datagram = self.template.datagram(entry.id, self.first_token.wrapping_add(number));
            let is_taken = send(&self.clients[entry.client as usize].socket, datagram);
            self.tally.counts.repeated += u64::from(is_taken);
            has_expired = true;
        }
        has_expired
    }

    /// A request of this client is over; in a closed loop the next one is owed.
    fn settle(&mut self, client: u32) {
        let place = &mut self.clients[client as usize];
        place.open = place.open.saturating_sub(1);
        place.owed += u32::from(self.schedule.is_none());
    }

    fn receive(&mut self) -> Result<bool, LabError> {
        self.watch.ready.clear();
        match epoll::wait(&self.watch.epoll, spare_capacity(&mut self.watch.ready), Some(&AT_ONCE)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LabError::Here(format!("sockets cannot be watched: {error}"))),
        }
        let mut bytes = [0; DATAGRAM_BYTES];
        for index in 0..self.watch.ready.len() {
            let client = self.watch.ready[index].data.u64() as u32;
            // A socket with more answers than its client waits for is reported again.
            for _ in 0..self.clients[client as usize].open.max(1) {
                match self.clients[client as usize].socket.recv(&mut bytes) {
                    Ok(len) => self.handle_datagram(client, &bytes[..len]),
                    // No more datagrams, or an ICMP error about an earlier one.
                    Err(_) => break,
                }
            }
            self.send_owed(client);
        }
        Ok(!self.watch.ready.is_empty())
    }

    fn handle_datagram(&mut self, client: u32, bytes: &[u8]) {
        let Ok(message) = CoapMessage::parse(bytes) else {
            self.tally.counts.unexpected += 1;
            return;
        };
        if message.code == Code::EMPTY {
            return self.handle_empty(client, &message);
        }
        if message.message_type == MessageType::Confirmable {
            let sign = empty_message(MessageType::Acknowledgement, message.id);
            send(&self.clients[client as usize].socket, &sign);
        }
        let number = message.token.to_u64().map(|token| token.wrapping_sub(self.first_token));
        let Some(number) = number.filter(|number| *number < self.ledger.next()) else {
            self.tally.counts.unexpected += 1;
            return;
        };
        match self.ledger.answer(number, client) {
            Found::Nothing => self.tally.counts.unexpected += 1,
            Found::Again => self.tally.counts.duplicates += 1,
            Found::Late(entry) => self.tally.handle_late(entry.due),
            Found::First(entry) => {
                if let Some(repeats) = &mut self.repeats {
                    repeats.take(client, entry.id);
                }
                let verdict = self.template.judge(entry.id, &message);
                self.tally.handle_answer(entry.due, self.now(), message.code, verdict);
                self.settle(client);
            }
        }
    }

    /// An acknowledgement that promises an answer, or a Reset; each says by message ID what it is about.
    fn handle_empty(&mut self, client: u32, message: &CoapMessage<'_>) {
        let MessageId(id) = message.id;
        let number = self.repeats.as_mut().and_then(|repeats| repeats.take(client, id));
        match (number, message.message_type) {
            (Some(number), MessageType::Acknowledgement) => {
                if let Some(entry) = self.ledger.get_mut(number).filter(|entry| entry.state == State::Open) {
                    entry.state = State::Acknowledged;
                }
            }
            (Some(number), MessageType::Reset) => {
                if let Found::First(entry) = self.ledger.answer(number, client) {
                    self.tally.handle_reset(entry.due);
                    self.settle(client);
                }
            }
            _ => self.tally.counts.unexpected += 1,
        }
    }

    fn result(&self) -> LoadResult {
        let counts = self.tally.counts();
        let answers = counts.right_answers();
        let seconds = self.plan.counted().as_secs_f64();
        let slips = self.schedule.as_ref().map(|_| self.tally.slips());
        let reused = self.clients.iter().any(|client| client.sent > u32::from(u16::MAX));
        LoadResult {
            schema: SCHEMA.to_owned(),
            plan: self.plan.clone(),
            seconds,
            offered_per_s: counts.offered as f64 / seconds,
            served_per_s: answers as f64 / seconds,
            latency: self.tally.response_times(),
            windows: self.tally.windows(),
            generator: self.meter.generator(seconds, slips, reused),
            generator_capacity: None,
            server: self.meter.server(answers),
            counts,
        }
    }
}

/// Sends a datagram; false when the system does not take it.
pub(super) fn send(socket: &UdpSocket, datagram: &[u8]) -> bool {
    match socket.send(datagram) {
        Ok(_) => true,
        // This is about an earlier datagram; the new one was not looked at.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(datagram).is_ok(),
        Err(_) => false,
    }
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// Sockets that one look tells of.
const READY_MAX: usize = 256;
/// Requests that leave by one system call; the kernel cuts them into datagrams.
const BURST_MAX: u32 = 32;
/// How long a closed loop waits after a refusal.
const RETRY_NANOS: u64 = 1_000_000;
/// Some 100 µs of sending.
const SENDS_PER_TURN: usize = 32;
const DATAGRAM_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use thalweg_coap::message::{MessageWriter, Token};

    use super::*;

    /// What a bit-flipped or shortened answer to the only request is taken for.
    fn count(answer: impl Fn(Vec<u8>) -> Vec<u8>) -> (u64, u64) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = LoadPlan { warm_up: std::time::Duration::ZERO, ..LoadPlan::new(server.local_addr().unwrap()) };
        let mut generator = Generator::new(&plan).unwrap();
        generator.clients[0].owed = 1;
        generator.send_owed(0);
        let mut bytes = Vec::new();
        let token = Token::from_u64(generator.first_token);
        let mut writer =
            MessageWriter::new(&mut bytes, MessageType::NonConfirmable, Code::CONTENT, MessageId(1), &token);
        writer.uint(thalweg_coap::message::OptionNumber::CONTENT_FORMAT, 0);
        writer.payload(b"hello world");
        generator.handle_datagram(0, &answer(bytes));
        let counts = generator.tally.counts();
        assert!(counts.served + counts.rejected + counts.wrong <= 1);
        (counts.served, counts.rejected + counts.wrong + counts.unexpected + counts.duplicates)
    }

    fn closed_loop(server: &UdpSocket, requests: u32) -> LoadPlan {
        LoadPlan {
            warm_up: std::time::Duration::ZERO,
            arrival: ArrivalProcess::Closed(requests),
            ..LoadPlan::new(server.local_addr().unwrap())
        }
    }

    #[test]
    fn a_refused_request_of_a_closed_loop_is_owed_again() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let plan = closed_loop(&server, 1);
        let mut generator = Generator::new(&plan).unwrap();
        // A socket without a peer takes nothing.
        let connected = std::mem::replace(&mut generator.clients[0].socket, UdpSocket::bind("127.0.0.1:0").unwrap());
        generator.clients[0].owed = 1;
        generator.send_owed(0);
        assert_eq!((generator.tally.counts().unsent, generator.clients[0].refused.len()), (1, 1));
        generator.clients[0].socket = connected;
        let now = generator.now();
        generator.retry(now.saturating_sub(RETRY_NANOS));
        assert_eq!(generator.tally.counts().sent, 0, "not at once");
        generator.retry(now + RETRY_NANOS);
        assert_eq!((generator.tally.counts().sent, generator.clients[0].refused.len()), (1, 0));
        assert!(server.recv(&mut [0; 64]).is_ok());
    }

    #[test]
    fn a_request_that_is_refused_several_times_is_offered_once_and_waits_from_its_first_due_time_on() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = closed_loop(&server, 40);
        let mut generator = Generator::new(&plan).unwrap();
        let connected = std::mem::replace(&mut generator.clients[0].socket, UdpSocket::bind("127.0.0.1:0").unwrap());
        generator.clients[0].owed = 40;
        let before = generator.now();
        generator.send_owed(0);
        let after = generator.now();
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(2));
            generator.retry(generator.now());
        }
        let counts = generator.tally.counts();
        assert_eq!((counts.offered, counts.unsent, counts.sent), (0, 160, 0));
        generator.clients[0].socket = connected;
        generator.clients[0].owed += 1;
        std::thread::sleep(std::time::Duration::from_millis(2));
        let later = generator.now();
        generator.retry(later);
        let counts = generator.tally.counts();
        assert_eq!((counts.offered, counts.unsent, counts.sent, generator.clients[0].refused.len()), (41, 160, 41, 0));
        let dues: Vec<u64> = (0..41).filter_map(|number| Some(generator.ledger.get_mut(number)?.due)).collect();
        assert!(dues[..40].iter().all(|due| (before..=after).contains(due)) && dues[40] >= later, "{dues:?}");
    }

    #[test]
    fn an_answer_with_a_flipped_bit_or_cut_off_is_not_served() {
        assert_eq!(count(|bytes| bytes), (1, 0));
        for bit in 0..25 * 8 {
            let (served, other) = count(|mut bytes| {
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            });
            // The message ID of an answer that comes by itself is the server's choice; so are CON and NON, and options.
            let is_free = (16..32).contains(&bit) || bit == 4 || (96..104).contains(&bit);
            assert!(other == 1 && served == 0 || is_free, "bit {bit}: {served} served");
        }
        for len in 0..24 {
            assert_eq!(count(|bytes| bytes[..len].to_vec()), (0, 1), "{len} bytes");
        }
    }
}
