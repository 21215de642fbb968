//! Thousands of observers of one server, each at an address of its own on the loopback network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_transport::batch::{Arrived, BATCH_MAX, BatchOptions, BatchScratch, BatchSocket, Departure};
use thalweg_transport::clock;

use super::super::handler::Function;
use super::super::routes::Routes;
use super::super::server::{Server, ServerConfig};
use crate::endpoint::{Config, Confirmability};
use crate::interaction::client::Client;
use crate::message::{
    CoapMessage, Code, HEADER_LEN, MessageId, MessageType, MessageWriter, OptionNumber, RequestBuf, Response, Token,
    content_format, empty_message,
};

/// More than twice as many as a receive buffer of 2 MiB holds acknowledgements of, where the system grants it.
const OBSERVERS: u32 = 12_000;

/// All observers on one socket; each acknowledges what it is told.
struct LoopbackCrowd {
    socket: BatchSocket,
    scratch: BatchScratch,
    server: SocketAddr,
    /// The latest state that each knows.
    known: Vec<u64>,
}

impl LoopbackCrowd {
    fn new(server: SocketAddr) -> LoopbackCrowd {
        let options = BatchOptions { receive_buffer_bytes: 16 << 20, ..BatchOptions::default() };
        let socket = BatchSocket::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), &options).unwrap();
        LoopbackCrowd { socket, scratch: BatchScratch::default(), server, known: vec![0; OBSERVERS as usize] }
    }

    fn register(&mut self, numbers: &[u32]) {
        let datagrams: Vec<(IpAddr, Vec<u8>)> =
            numbers.iter().map(|number| (source(*number), request(*number))).collect();
        let to = self.server;
        let departures = datagrams.iter().map(|(from, bytes)| Departure { to, from: Some(*from), bytes });
        self.socket.send(&mut self.scratch, departures);
    }

    /// Takes what comes, for a while at most.
    fn take(&mut self) {
        if !self.socket.is_ready() {
            self.socket.wait(Some(clock::now() + Duration::from_millis(20))).unwrap();
        }
        self.socket.receive().unwrap();
        let mut acknowledgements: Vec<(Option<IpAddr>, [u8; HEADER_LEN])> = Vec::new();
        while let Some(Arrived { bytes, destination, .. }) = self.socket.next_arrival() {
            let message = CoapMessage::parse(bytes).unwrap();
            if message.message_type == MessageType::Confirmable {
                acknowledgements.push((destination, empty_message(MessageType::Acknowledgement, message.id)));
            }
            let number = message.token.to_u64().unwrap() as usize;
            let state = std::str::from_utf8(message.payload).unwrap().parse().unwrap();
            self.known[number] = self.known[number].max(state);
        }
        let to = self.server;
        let departures = acknowledgements.iter().map(|(from, bytes)| Departure { to, from: *from, bytes });
        self.socket.send(&mut self.scratch, departures);
    }

    fn know(&self, state: u64) -> bool {
        self.known.iter().all(|known| *known == state)
    }
}

fn source(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(Ipv4Addr::new(127, 3, 0, 1).to_bits() + number).into()
}

fn request(number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (id, token) = (MessageId(clock::now().as_nanos() as u16), Token::from_u64(u64::from(number)));
    let mut writer = MessageWriter::new(&mut bytes, MessageType::NonConfirmable, Code::GET, id, &token);
    writer.uint(OptionNumber::OBSERVE, 0);
    writer.option(OptionNumber::URI_PATH, b"state");
    bytes
}

/// A server of one state that its observers have to acknowledge, and all of them registered.
fn observed_server(state: &Arc<AtomicU64>) -> (Server, LoopbackCrowd) {
    let told = Arc::clone(state);
    let answer = move |_: &crate::message::CoapRequest<'_>| {
        let text = told.load(Ordering::SeqCst).to_string();
        Response::content(text, content_format::TEXT).with_max_age(0).observable_by(true)
    };
    let mut config = ServerConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    config.endpoint.limits.peers_max = 3 * OBSERVERS as usize;
    config.endpoint.observe.observers_max = OBSERVERS as usize;
    // A busy machine makes no handler slow: it would run in a pool then.
    config.inline_max = Duration::from_secs(10);
    let server = Server::start(&config, Routes::new().add("/state", Function::inline(answer))).unwrap();
    let mut crowd = LoopbackCrowd::new(server.address());
    let end = clock::now() + PATIENCE;
    while !crowd.know(1) {
        let waiting: Vec<u32> = (0..OBSERVERS).filter(|number| crowd.known[*number as usize] == 0).collect();
        for batch in waiting.chunks(BATCH_MAX) {
            crowd.register(batch);
            crowd.take();
        }
        assert!(clock::now() < end, "it takes too long");
    }
    (server, crowd)
}

/// While thousands of confirmable notifications leave, the acknowledgements of the first ones come. Next to none of them may find the
/// receive buffer full: its observer would hear of the next state with the repetition only, after seconds.
#[test]
fn acknowledgements_are_not_lost_while_a_change_is_told_to_thousands() {
    let state = Arc::new(AtomicU64::new(1));
    let (server, mut crowd) = observed_server(&state);
    let end = clock::now() + PATIENCE;
    let mut before = None;
    for next in 2..6 {
        state.store(next, Ordering::SeqCst);
        server.notifier().change("/state");
        while !crowd.know(next) {
            crowd.take();
            assert!(clock::now() < end, "it takes too long");
        }
        // The kernel tells of registrations that it dropped with the next datagram.
        before.get_or_insert_with(|| server.snapshot().loops[0].kernel_drops);
    }
    let lost = server.snapshot().loops[0].kernel_drops - before.expect("changes were told");
    // A busy machine serves the crowd late, and patience with it ends.
    assert!(lost < u64::from(3 * OBSERVERS) / 10, "{lost} acknowledgements were lost");
}

/// Thousands of observers that have gone are told of each change and of repetitions: whoever asks meanwhile waits for a burst of
/// notifications and what the server waits for their acknowledgements, not for the observers.
#[test]
fn observers_that_have_fallen_silent_do_not_keep_others_from_an_answer() {
    let state = Arc::new(AtomicU64::new(1));
    // Its socket stays open: the host does not tell that nobody listens.
    let (server, _silent) = observed_server(&state);
    let mut client = Client::open(server.address(), Config::default()).unwrap();
    // Registrations that came twice may still fill the receive buffer. Whoever is answered stood behind all of them.
    client.exchange(server.address(), RequestBuf::get("/state"), Confirmability::Confirmable, PATIENCE).unwrap();
    let mut times = Vec::new();
    for next in 2..102 {
        state.store(next, Ordering::SeqCst);
        server.notifier().change("/state");
        let asked = clock::now();
        let request = RequestBuf::get("/state");
        let answer = client.exchange(server.address(), request, Confirmability::Confirmable, PATIENCE).unwrap();
        times.push(clock::now().since(asked));
        assert_eq!((answer.code, &*answer.payload), (Code::CONTENT, next.to_string().as_bytes()));
    }
    times.sort_unstable();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    // Three turns of a server on a busy machine; a lost request would come again after two seconds.
    assert!(median < Duration::from_millis(300) && worst < Duration::from_secs(2), "{median:?}, at worst {worst:?}");
}

/// Longer than either takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
