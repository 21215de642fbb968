//! A server and a bare socket. Handlers wait for the test where order matters.

mod crowd;
mod waiting;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_transport::clock;

use super::client::{Client, ClientError};
use super::counts::LoopCounts;
use super::handler::{ClassId, Function};
use super::rate_limit::PeerRate;
use super::routes::Routes;
use super::server::{ClassConfig, KernelFilter, SecureConfig, Server, ServerConfig};
use crate::credentials::{Credentials, PresharedKey};
use crate::dtls::{ClientSession, ClockOrigin, SessionLimits};
use crate::endpoint::{Config, Confirmability, EndpointEvent, RequestError};
use crate::message::{
    CoapMessage, CoapRequest, Code, MessageId, MessageType, MessageWriter, OptionNumber, RequestBuf, Response, Token,
    content_format,
};
use crate::scheduler::admission::Patience;
use crate::scheduler::controller::ControlLaw;
use crate::statistics::{Figures, to_open_metrics};

struct World {
    server: Server,
    socket: UdpSocket,
    /// Says that the handler of `/gate` began.
    began: Receiver<()>,
    /// Lets it go on.
    go_on: Sender<()>,
    next_id: u16,
}

/// What came back: code, message ID, Max-Age, payload.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    code: Code,
    token: Token,
    max_age: Option<u32>,
    text: String,
}

fn world(change: impl FnOnce(&mut ServerConfig)) -> World {
    let mut config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    change(&mut config);
    let ((begin, began), (go_on, wait)) = (channel(), channel());
    let gate = Mutex::new((begin, wait));
    let calls = AtomicU32::new(0);
    let routes = Routes::new()
        .add("/inline", Function::inline(thread))
        .add("/pooled", Function::pooled(ClassId::BLOCKING, thread))
        .add("/device", Function::pooled(ClassId::DEVICE, thread))
        .add(
            "/gate",
            Function::pooled(ClassId::BLOCKING, move |_| {
                let (begin, wait): &(Sender<()>, Receiver<()>) = &gate.lock().unwrap();
                begin.send(()).unwrap();
                let _ = wait.recv_timeout(Duration::from_secs(20));
                Response::new(Code::CONTENT)
            }),
        )
        .add("/count", Function::inline(move |_| text(format!("call {}", calls.fetch_add(1, Ordering::Relaxed) + 1))))
        .add(
            "/tired",
            Function::inline(|_| {
                std::thread::sleep(Duration::from_millis(1));
                text("yawn")
            }),
        );
    let server = Server::start(&config, routes).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.connect(server.address()).unwrap();
    World { server, socket, began, go_on, next_id: 0 }
}

fn text(text: impl Into<crate::message::Body>) -> Response {
    Response::content(text, content_format::TEXT)
}

fn thread(_: &CoapRequest<'_>) -> Response {
    text(std::thread::current().name().unwrap_or_default().to_owned())
}

impl World {
    /// Sends a request whose token is its message ID.
    fn send(&mut self, message_type: MessageType, code: Code, path: &str) -> u16 {
        self.next_id += 1;
        self.send_as(self.next_id, message_type, code, path);
        self.next_id
    }

    fn send_as(&self, id: u16, message_type: MessageType, code: Code, path: &str) {
        self.socket.send(&request(id, message_type, code, path)).unwrap();
    }

    fn receive(&self) -> Answer {
        loop {
            let mut buffer = [0; 1500];
            let count = self.socket.recv(&mut buffer).expect("an answer");
            let message = CoapMessage::parse(&buffer[..count]).unwrap();
            if message.code == Code::EMPTY {
                continue; // An acknowledgement of its own: the machine is slow.
            }
            return Answer {
                code: message.code,
                token: message.token,
                max_age: message.options.uint(OptionNumber::MAX_AGE),
                text: String::from_utf8_lossy(message.payload).into_owned(),
            };
        }
    }

    /// What the loop did, once it says so: it counts what it has sent.
    fn counts(&self, is_told: impl Fn(&LoopCounts) -> bool) -> LoopCounts {
        loop {
            let counts = self.server.snapshot().loops[0];
            if is_told(&counts) {
                return counts;
            }
            std::thread::yield_now();
        }
    }

    /// Sends some twenty thousand non-confirmable requests a second for `/gate`.
    fn flood(&self) -> Flooding {
        let (socket, is_over) = (self.socket.try_clone().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_over_there = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for id in (0x8000..=u16::MAX).cycle().take_while(|_| !is_over_there.load(Ordering::Relaxed)) {
                socket.send(&request(id, NON, Code::GET, "gate")).unwrap();
                if id % 20 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        Flooding { is_over, thread: Some(thread) }
    }

    fn ask(&mut self, message_type: MessageType, code: Code, path: &str) -> Answer {
        let id = self.send(message_type, code, path);
        let answer = self.receive();
        assert_eq!(answer.token, token(id));
        answer
    }
}

fn request(id: u16, message_type: MessageType, code: Code, path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::new(&mut bytes, message_type, code, MessageId(id), &token(id));
    writer.option(OptionNumber::URI_PATH, path.as_bytes());
    writer.payload(&[]);
    bytes
}

fn token(id: u16) -> Token {
    Token::new(&id.to_be_bytes()).unwrap()
}

const CON: MessageType = MessageType::Confirmable;
const NON: MessageType = MessageType::NonConfirmable;

#[test]
fn handlers_run_where_they_say() {
    let mut world = world(|_| ());
    assert_eq!(world.ask(NON, Code::GET, "inline").text, "receiver-0");
    assert_eq!(world.ask(CON, Code::GET, "pooled").text, "blocking-0");
    assert_eq!(world.ask(NON, Code::GET, "device").text, "device-0");
    assert_eq!(world.ask(CON, Code::GET, "nothing").code, Code::NOT_FOUND);
    let counts = world.counts(|counts| counts.sent == 4);
    assert_eq!((counts.received, counts.inline, counts.pooled), (4, 2, 2));
}

#[test]
fn a_class_without_a_pool_runs_on_the_receiver() {
    let mut world = world(|config| config.classes = vec![ClassConfig::new("blocking", ControlLaw::Inline)]);
    assert_eq!(world.ask(NON, Code::GET, "pooled").text, "receiver-0");
    assert_eq!(world.ask(NON, Code::GET, "device").text, "receiver-0", "a class beyond the last is the last");
}

#[test]
fn while_a_handler_blocks_others_are_answered() {
    let mut world = world(|_| ());
    let gate = world.send(NON, Code::GET, "gate");
    world.began.recv().unwrap();
    for path in ["inline", "device"] {
        assert_eq!(world.ask(NON, Code::GET, path).code, Code::CONTENT);
    }
    world.go_on.send(()).unwrap();
    assert_eq!(world.receive().token, token(gate));
}

#[test]
fn a_full_pool_drops_non_confirmable_requests_and_tells_the_others_when_to_come_back() {
    let mut world = world(|config| {
        let patience = Patience { length_max: 2, ..Patience::default() };
        config.classes[0] = ClassConfig { patience, ..ClassConfig::new("blocking", ControlLaw::Fixed(1)) };
    });
    let first = world.send(NON, Code::GET, "gate");
    world.began.recv().unwrap();
    let dropped = world.send(NON, Code::GET, "gate");
    let second = world.send(CON, Code::GET, "gate");
    // Full. One more that counts on losses is lost; one that does not takes the place of the oldest that does.
    world.send(NON, Code::GET, "gate");
    let third = world.send(CON, Code::GET, "gate");
    let refused = world.ask(CON, Code::GET, "gate");
    assert_eq!((refused.code, refused.max_age), (Code::SERVICE_UNAVAILABLE, Some(1)));
    for _ in 0..3 {
        world.go_on.send(()).unwrap();
    }
    let mut answered = [world.receive(), world.receive(), world.receive()].map(|answer| answer.token);
    answered.sort_unstable_by_key(|answered| *answered != token(first));
    assert_eq!(answered[0], token(first));
    assert!(!answered.contains(&token(dropped)));
    assert!(answered.contains(&token(second)) && answered.contains(&token(third)), "{answered:?}");
    let counts = world.counts(|counts| counts.sent >= 4);
    assert_eq!((counts.unavailable, counts.dropped), (1, 2));
}

/// Most of a flood that a pool cannot serve ends in the kernel; what is confirmable, and what others serve, does not.
#[test]
fn an_overload_is_dropped_in_the_kernel_and_nothing_else_is() {
    let mut world = world(one_thread_and_two_places);
    let first = world.send(NON, Code::GET, "gate");
    world.began.recv().unwrap();
    let flood = world.flood();
    world.counts(|counts| counts.filtered > 500);
    for _ in 0..50 {
        assert_eq!(world.ask(NON, Code::GET, "inline").code, Code::CONTENT);
        assert_eq!(world.ask(NON, Code::GET, "device").code, Code::CONTENT);
    }
    let waiting = [world.send(CON, Code::GET, "gate"), world.send(CON, Code::GET, "gate")];
    assert_eq!(world.ask(CON, Code::GET, "gate").code, Code::SERVICE_UNAVAILABLE);
    drop(flood);
    for id in [first, waiting[0], waiting[1]] {
        world.go_on.send(()).unwrap();
        assert_eq!(world.receive().token, token(id));
    }
    // The flood is over, and so is the filter after a silence: every request finds its way again.
    std::thread::sleep(Duration::from_millis(200));
    for _ in 0..50 {
        world.go_on.send(()).unwrap();
        assert_eq!(world.ask(NON, Code::GET, "gate").code, Code::CONTENT);
    }
    let (told, counts) = (world.server.snapshot().filtered, world.server.snapshot().loops[0]);
    let [kind] = told.as_slice() else { panic!("one kind was dropped, not {told:?}") };
    assert_eq!((kind.method.as_str(), kind.path.as_str(), kind.pool.as_str()), ("GET", "/gate", "blocking"));
    assert_eq!(kind.count, counts.filtered);
    let figures = Figures { server: world.server.snapshot(), ..Figures::default() };
    let line = "thalweg_coap_filtered_requests_total{method=\"GET\",path=\"/gate\",pool=\"blocking\"} ";
    let exposition = to_open_metrics(&figures);
    assert!(exposition.contains(&format!("{line}{}", kind.count)), "{exposition}");
}

/// Without the filter the same flood comes as far as the loop.
#[test]
fn a_server_without_the_filter_drops_nothing_in_the_kernel() {
    let mut world = world(|config| {
        one_thread_and_two_places(config);
        config.kernel_filter = KernelFilter::Off;
    });
    world.send(NON, Code::GET, "gate");
    world.began.recv().unwrap();
    let flood = world.flood();
    let counts = world.counts(|counts| counts.dropped > 5000);
    drop(flood);
    assert_eq!((counts.filtered, world.server.snapshot().filtered), (0, Vec::new()));
    world.go_on.send(()).unwrap();
}

fn one_thread_and_two_places(config: &mut ServerConfig) {
    let patience = Patience { length_max: 2, ..Patience::default() };
    config.classes[0] = ClassConfig { patience, ..ClassConfig::new("blocking", ControlLaw::Fixed(1)) };
}

/// Requests without end, until it is dropped.
struct Flooding {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Flooding {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking(), "the flood went on to the end");
    }
}

#[test]
fn a_request_that_comes_twice_is_handled_once() {
    let mut world = world(|_| ());
    for _ in 0..2 {
        world.send_as(7, CON, Code::POST, "count");
        assert_eq!(world.receive().text, "call 1");
    }
    assert_eq!(world.ask(CON, Code::POST, "count").text, "call 2");
}

#[test]
fn an_inline_handler_that_blocks_is_moved_to_the_pool() {
    let mut world = world(|_| ());
    while world.server.snapshot().demoted.is_empty() {
        world.ask(NON, Code::GET, "tired");
    }
    world.ask(NON, Code::GET, "tired");
    assert_eq!(world.counts(|counts| counts.pooled > 0).demoted, 1);
    assert_eq!(world.server.snapshot().demoted, ["/tired"]);
}

#[test]
fn a_host_that_asks_too_often_is_told_so() {
    let rate = PeerRate { requests_per_second: 1, burst: 2 };
    let mut world = world(|config| config.peer_rate = Some(rate));
    let answers: Vec<Answer> = (0..10).map(|_| world.ask(NON, Code::GET, "inline")).collect();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.code == Code::TOO_MANY_REQUESTS).collect();
    assert!((1..=8).contains(&refused.len()), "{answers:?}");
    assert!(refused.iter().all(|answer| answer.max_age == Some(1)));
}

#[test]
fn observers_are_told_by_a_notifier() {
    let mut config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    config.loops = 2;
    let state = Arc::new(AtomicU32::new(1));
    let seen = Arc::clone(&state);
    let handler = Function::inline(move |_| text(seen.load(Ordering::SeqCst).to_string()).observable());
    let server = Server::start(&config, Routes::new().add("/state", handler)).unwrap();
    let mut client = Client::open(server.address(), Config::default()).unwrap();
    let request = RequestBuf::get("/state").with_observe(crate::message::Observe::Register);
    let registration = client.send(server.address(), request, Confirmability::Confirmable).unwrap();
    for expect in ["1", "2", "3"] {
        let event = client.next(Duration::from_secs(20)).unwrap();
        let Some(EndpointEvent::Response { request, response, .. }) = event else { panic!("{event:?}") };
        assert_eq!((request, &*response.payload), (registration, expect.as_bytes()));
        state.fetch_add(1, Ordering::SeqCst);
        server.notifier().change("/state");
    }
}

#[test]
fn an_observer_is_told_of_more_changes_than_it_may_ask_for() {
    let mut config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    config.peer_rate = Some(PeerRate { requests_per_second: 1, burst: 1 });
    let state = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&state);
    let handler = Function::inline(move |_| text(seen.load(Ordering::SeqCst).to_string()).observable());
    let server = Server::start(&config, Routes::new().add("/state", handler)).unwrap();
    let mut client = Client::open(server.address(), Config::default()).unwrap();
    let request = RequestBuf::get("/state").with_observe(crate::message::Observe::Register);
    client.send(server.address(), request, Confirmability::Confirmable).unwrap();
    for expect in 0..10 {
        let event = client.next(Duration::from_secs(20)).unwrap();
        let Some(EndpointEvent::Response { response, .. }) = event else { panic!("{event:?}") };
        assert_eq!((response.code, &*response.payload), (Code::CONTENT, expect.to_string().as_bytes()));
        state.fetch_add(1, Ordering::SeqCst);
        server.notifier().change("/state");
    }
}

#[test]
fn a_datagram_that_is_too_long_is_told_so() {
    let world = world(|_| ());
    let mut bytes = request(7, CON, Code::POST, "count");
    bytes.push(0xff);
    bytes.resize(3000, b'x');
    world.socket.send(&bytes).unwrap();
    let answer = world.receive();
    assert_eq!((answer.code, answer.token), (Code::REQUEST_ENTITY_TOO_LARGE, token(7)));
    assert_eq!(world.counts(|counts| counts.sent == 1).truncated, 1);
}

#[test]
fn a_message_that_is_too_long_is_told_so_in_a_session_as_well() {
    let key = PresharedKey { identity: b"a".to_vec(), key: b"secret".to_vec().into() };
    let credentials = Credentials { keys: [key].into_iter().collect(), ..Credentials::default() };
    let world = world(|config| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let secure = SecureConfig { address, credentials: credentials.clone(), limits: SessionLimits::default() };
        config.secure = Some(secure);
    });
    let server = world.server.secure_address().unwrap();
    world.socket.connect(server).unwrap();
    let now = clock::now();
    let mut session = ClientSession::connect(&credentials, "server", ClockOrigin::at(now), now).unwrap();
    for bytes in [2048, 2049, 9000] {
        let mut long = request(7 + bytes as u16, CON, Code::PUT, "inline");
        long.push(0xff);
        long.resize(bytes, b'x');
        session.send(clock::now(), &long);
        let answer = loop {
            for datagram in session.take_outgoing() {
                world.socket.send(&datagram).unwrap();
            }
            if let Some(plain) = session.take_plain().pop() {
                break plain;
            }
            let mut buffer = [0; 20_000];
            let count = world.socket.recv(&mut buffer).expect("an answer");
            session.handle_datagram(clock::now(), &buffer[..count]);
        };
        let answer = CoapMessage::parse(&answer).unwrap();
        let expect = if bytes <= 2048 { Code::CONTENT } else { Code::REQUEST_ENTITY_TOO_LARGE };
        assert_eq!((answer.code, answer.id), (expect, MessageId(7 + bytes as u16)), "{bytes} bytes");
    }
}

#[test]
fn a_client_is_told_at_once_that_nobody_listens() {
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut client = Client::open(gone, Config::default()).unwrap();
    for delivery in [Confirmability::Confirmable, Confirmability::NonConfirmable] {
        let error = client.exchange(gone, RequestBuf::get("/a"), delivery, Duration::from_secs(60)).unwrap_err();
        assert!(matches!(error, ClientError::Request(RequestError::Unreachable)), "{error}");
    }
    client.ping(gone).unwrap();
    let event = client.next(Duration::from_secs(60)).unwrap();
    assert!(matches!(event, Some(EndpointEvent::Failed { error: RequestError::Unreachable, .. })), "{event:?}");
}

#[test]
fn an_address_that_is_taken_is_told_with_what_to_do() {
    let world = world(|_| ());
    let error = Server::start(&ServerConfig::new(world.server.address()), Routes::new()).err().unwrap().to_string();
    assert!(error.contains(&world.server.address().to_string()) && error.contains("another server"), "{error}");
}

#[test]
fn a_peer_of_two_addresses_of_a_server_is_two_peers() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let count = move |_: &CoapRequest<'_>| text(format!("call {}", counted.fetch_add(1, Ordering::Relaxed) + 1));
    let slow = |_: &CoapRequest<'_>| {
        std::thread::sleep(Duration::from_millis(300));
        text("slow")
    };
    let routes = Routes::new().add("/count", Function::inline(count));
    let routes = routes.add("/slow", Function::pooled(ClassId::BLOCKING, slow));
    let config = ServerConfig::new(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let server = Server::start(&config, routes).unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = |last: u8| SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), server.address().port()));
    let receive = || {
        let mut buffer = [0; 2048];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        let message = CoapMessage::parse(&buffer[..len]).unwrap();
        (from, message.token, String::from_utf8(message.payload.to_vec()).unwrap())
    };
    let mut second = request(7, CON, Code::POST, "count");
    let ends_of_token = 4 + token(7).len();
    second[4..ends_of_token].iter_mut().for_each(|byte| *byte ^= 1);
    socket.send_to(&request(7, CON, Code::POST, "count"), to(1)).unwrap();
    assert_eq!(receive(), (to(1), token(7), "call 1".to_owned()));
    socket.send_to(&second, to(2)).unwrap();
    let (from, _, text) = receive();
    assert_eq!((from, text.as_str()), (to(2), "call 2"), "it is another exchange");
    // What comes late comes from where it was asked for.
    socket.send_to(&request(8, NON, Code::GET, "slow"), to(1)).unwrap();
    socket.send_to(&request(9, CON, Code::POST, "count"), to(2)).unwrap();
    assert_eq!(receive(), (to(2), token(9), "call 3".to_owned()));
    assert_eq!(receive(), (to(1), token(8), "slow".to_owned()));
}
