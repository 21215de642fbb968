//! Two CoAP endpoints that talk while the fuzzer loses, repeats and writes datagrams: messages, blocks and observation.
//! They never panic, come to rest, and hold no more than they may.

#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_coap::endpoint::{
    CoapOutbox, Config, Confirmability, Endpoint, EndpointEvent, EndpointLimits, ExchangeId, ObserveConfig, Peer, Times,
};
use thalweg_coap::message::{
    Block, Code, ETag, MessageId, MessageType, MessageWriter, Observe, OptionNumber, RequestBuf, Response, Token,
};
use thalweg_rtps::time::Instant;

const TRANSFER_BYTES_MAX: usize = 20_000;
const ANSWER_BYTES_MAX: usize = 4000;
const PEERS_MAX: usize = 8;
const REQUESTS_MAX: usize = 16;
const EXCHANGES_MAX: usize = 8;
const OBSERVERS_MAX: usize = 8;
/// Bytes of the largest body that is uploaded, and of the answer to it.
const UPLOAD_BYTES_MAX: usize = 8 * 0xff;
const DOWNLOAD_BYTES_MAX: usize = 2 * UPLOAD_BYTES_MAX + 300;
/// The smallest block that may be agreed on, in bytes (RFC 7959, section 2.2).
const BLOCK_BYTES_MIN: usize = 16;
/// More datagrams than this for one step would be an endless conversation: each block of each request there and back,
/// and once more where a repeated or changed answer makes the client begin again.
const DATAGRAMS_MAX: usize = 2 * 2 * REQUESTS_MAX * (UPLOAD_BYTES_MAX + DOWNLOAD_BYTES_MAX).div_ceil(BLOCK_BYTES_MIN);

struct World {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    outbox: CoapOutbox,
    /// Datagrams under way, with their direction.
    network: Vec<(bool, Vec<u8>)>,
    /// Requests that are answered later, and since when.
    slow: Vec<(Instant, ExchangeId, Response)>,
    requests: Vec<thalweg_coap::endpoint::RequestId>,
    version: u8,
    is_slow: bool,
}

fn peer(port: u16) -> Peer {
    Peer::from(([127, 0, 0, 1], port))
}

impl World {
    fn new() -> World {
        let limits = EndpointLimits {
            peers_max: PEERS_MAX,
            duplicates_max: 4,
            answer_bytes_max: ANSWER_BYTES_MAX,
            exchanges_max: EXCHANGES_MAX,
            exchanges_per_peer_max: 6,
            requests_max: REQUESTS_MAX,
            body_bytes_max: 6000,
            transfer_bytes_max: TRANSFER_BYTES_MAX,
            cache_bytes_max: 2000,
            handler_bytes_max: 20_000,
        };
        let observe = ObserveConfig { observers_max: OBSERVERS_MAX, ..ObserveConfig::default() };
        let config = Config { limits, observe, nstart: 3, block_exponent: 2, ..Config::default() };
        World {
            client: Endpoint::new(config.clone(), [1, 2]),
            server: Endpoint::new(config, [3, 4]),
            now: Instant::from_nanos(1 << 40),
            outbox: CoapOutbox::default(),
            network: Vec::new(),
            slow: Vec::new(),
            requests: Vec::new(),
            version: 0,
            is_slow: false,
        }
    }

    /// Collects what both have to say, and answers requests.
    fn settle(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let EndpointEvent::Request { exchange, request, .. } = event {
                let response = self.answer(&request);
                self.server.recycle(request);
                if self.is_slow {
                    self.slow.push((self.now, exchange, response));
                } else {
                    self.server.respond(self.now, exchange, response).expect("it is not answered yet");
                }
            }
        }
        while let Some(event) = self.client.poll_event() {
            if let EndpointEvent::Response { response, .. } = event {
                // A body is never put together from two states.
                assert!(response.payload.windows(2).all(|pair| pair[0] == pair[1]) || response.code != Code::CONTENT);
            }
        }
        for is_to_server in [true, false] {
            let endpoint = if is_to_server { &mut self.client } else { &mut self.server };
            endpoint.poll_transmit(&mut self.outbox);
            self.network.extend(self.outbox.iter().map(|datagram| (is_to_server, datagram.bytes.to_vec())));
        }
        let overflow = self.network.len().saturating_sub(100);
        self.network.drain(..overflow);
        for endpoint in [&self.client, &self.server] {
            let counters = endpoint.counters();
            assert!(counters.peers <= PEERS_MAX && counters.answer_bytes <= ANSWER_BYTES_MAX);
            // Uploads, served bodies and fetched ones have the budget each.
            assert!(counters.transfer_bytes <= 3 * TRANSFER_BYTES_MAX + 6000);
            assert!(counters.exchanges <= EXCHANGES_MAX + OBSERVERS_MAX && counters.requests <= REQUESTS_MAX);
        }
    }

    fn answer(&self, request: &RequestBuf) -> Response {
        let len = request.view().payload.len() * 2 + usize::from(self.version % 4) * 100;
        let response =
            Response::content(vec![self.version; len], 42).with_etag(ETag::from_u64(u64::from(self.version)));
        match self.version % 8 {
            7 => Response::new(Code::NOT_FOUND),
            _ => response.observable().with_max_age(u32::from(self.version)),
        }
    }

    /// An exchange lives as long as its lifetime says, and at most a quarter longer.
    fn answer_slow_requests(&mut self) {
        let lifetime = Times::default().exchange_lifetime;
        let resolution = Duration::from_secs(1);
        for (asked_at, exchange, response) in std::mem::take(&mut self.slow) {
            let age = self.now.since(asked_at);
            match self.server.respond(self.now, exchange, response) {
                Ok(()) => assert!(age < lifetime * 5 / 4 + resolution, "answered after {age:?}"),
                Err(gone) => assert!(age > lifetime - resolution, "{gone} after {age:?}"),
            }
        }
    }

    fn deliver(&mut self, which: usize, is_kept: bool) {
        if self.network.is_empty() {
            return;
        }
        let which = which % self.network.len();
        let (is_to_server, bytes) = if is_kept { self.network[which].clone() } else { self.network.remove(which) };
        if is_to_server {
            self.server.handle_datagram(self.now, peer(1), &bytes);
        } else {
            self.client.handle_datagram(self.now, peer(2), &bytes);
        }
    }

    fn ask(&mut self, kind: u8, argument: u8) {
        let body = vec![argument; usize::from(argument) * (UPLOAD_BYTES_MAX / 0xff)];
        let request = match kind % 6 {
            0 => RequestBuf::get("/a"),
            1 => RequestBuf::get("/a").with_observe(Observe::Register),
            2 => RequestBuf::put("/a", body),
            3 => RequestBuf::new(Code::FETCH, "/a").with_payload(body).with_observe(Observe::Register),
            4 => RequestBuf::get("/a").with_uint(OptionNumber::BLOCK2, u32::from(argument)),
            _ => RequestBuf::post("/b", body).with_uint(OptionNumber::NO_RESPONSE, u32::from(argument & 0x1a)),
        };
        let delivery = if argument & 1 == 0 { Confirmability::Confirmable } else { Confirmability::NonConfirmable };
        self.requests.extend(self.client.request(self.now, peer(2), request, delivery));
    }

    /// A well-formed message of anybody: raw bytes seldom get that far.
    fn strange(&mut self, port: u16, numbers: [u8; 5], payload: &[u8]) {
        let [kind, code, id, option, value] = numbers;
        let types =
            [MessageType::Confirmable, MessageType::NonConfirmable, MessageType::Acknowledgement, MessageType::Reset];
        let mut out = Vec::new();
        let message_type = types[usize::from(kind & 3)];
        let token = Token::new(&[kind >> 4]).expect("a short token");
        let mut writer =
            MessageWriter::new(&mut out, message_type, Code::from_byte(code), MessageId(u16::from(id)), &token);
        if option & 1 != 0 {
            writer.uint(OptionNumber::OBSERVE, u32::from(option >> 4));
        }
        writer.option(OptionNumber::URI_PATH, b"a");
        let block = Block { number: u32::from(value >> 4), more: value & 8 != 0, exponent: value & 3 };
        if option & 2 != 0 {
            writer.uint(OptionNumber::BLOCK2, block.to_uint());
        }
        if option & 4 != 0 {
            writer.uint(OptionNumber::BLOCK1, block.to_uint());
        }
        writer.payload(payload);
        if option & 8 != 0 {
            self.server.handle_multicast(self.now, peer(port), &out);
        } else {
            self.server.handle_datagram(self.now, peer(port), &out);
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let mut world = World::new();
    let mut rest = script;
    while let [step, argument, tail @ ..] = rest {
        rest = tail;
        match step % 12 {
            0..=2 => world.ask(step >> 4, *argument),
            3 | 4 => world.deliver(usize::from(*argument), step & 0x10 != 0),
            5 => {
                let mut carried = 0;
                while !world.network.is_empty() {
                    world.deliver(0, false);
                    world.settle();
                    carried += 1;
                    assert!(carried < DATAGRAMS_MAX, "the endpoints do not come to rest");
                }
            }
            6 => {
                world.now += Duration::from_millis(1 << (argument % 18));
                world.server.handle_timeout(world.now);
                world.client.handle_timeout(world.now);
            }
            7 => {
                world.version = *argument;
                world.server.notify(world.now, "/a");
            }
            8 => {
                world.is_slow = argument & 1 != 0;
                world.answer_slow_requests();
            }
            9 => {
                if let Some(id) = world.requests.get(usize::from(*argument)) {
                    world.client.cancel(world.now, *id);
                }
            }
            10 => {
                let Some((numbers, tail)) = rest.split_first_chunk::<5>() else { break };
                let len = usize::from(step >> 4) * 16;
                let (payload, tail) = tail.split_at(len.min(tail.len()));
                rest = tail;
                world.strange(100 + u16::from(*argument), *numbers, payload);
            }
            _ => {
                let (datagram, tail) = rest.split_at(usize::from(*argument).min(rest.len()));
                rest = tail;
                world.server.handle_datagram(world.now, peer(u16::from(step >> 4)), datagram);
                world.client.handle_datagram(world.now, peer(2), datagram);
            }
        }
        world.settle();
    }
});
