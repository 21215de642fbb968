//! A participant that asks others for types, by TypeLookup, and one that answers: replies lost, doubled, late, damaged or made up, and
//! requests of strangers. No panic, questions and answers within their bounds; both come to rest, and an honest answer is then believed.
#![no_main]

use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg::discovery::LookupEnd;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::GuidPrefix;
use thalweg_types::idl;
use thalweg_types::type_object::lookup::{LookupAnswer, LookupCall, LookupReply, LookupRequest};
use thalweg_types::type_object::{Described, Equivalence, TypeHash, TypeIdentifier, TypeWithDependencies, describe};

const ASKING: GuidPrefix = GuidPrefix([1; 12]);
const ANSWERING: GuidPrefix = GuidPrefix([2; 12]);
const SILENT: GuidPrefix = GuidPrefix([3; 12]);
/// More than one request names.
const PARTS: usize = 70;
/// Most bytes of objects in an answer.
const ANSWER_BYTES: usize = 1 << 16;
/// Requests that are remembered, to be answered in any order.
const REQUESTS_MAX: usize = 64;

/// A type of many others, and types that contain each other.
fn types() -> &'static [Described; 2] {
    static TYPES: OnceLock<[Described; 2]> = OnceLock::new();
    TYPES.get_or_init(|| {
        let parts: Vec<String> =
            (0..PARTS).map(|number| format!("@final struct P{number} {{ long x{number}; }};")).collect();
        let members: Vec<String> = (0..PARTS).map(|number| format!("P{number} a{number};")).collect();
        let wide = format!("{} @final struct T {{ {} }};", parts.concat(), members.concat());
        let recursive =
            "struct Node; @final struct T { sequence<Node> nodes; }; @final struct Node { @optional T tree; };";
        [wide.as_str(), recursive]
            .map(|text| describe(idl::parse(text).expect("IDL").find("T").expect("T")).expect("described"))
    })
}

/// What TYPE_INFORMATION names of a type.
fn named(of: &TypeWithDependencies) -> Vec<TypeIdentifier> {
    let others = of.dependencies.iter().flat_map(|dependency| dependency.identifier.objects());
    of.of.identifier.objects().into_iter().chain(others).collect()
}

struct World {
    now: Instant,
    asking: LookupEnd,
    answering: LookupEnd,
    parts: Vec<TypeWithDependencies>,
    requests: Vec<LookupRequest>,
}

impl World {
    fn new() -> World {
        let types = types();
        let mut answering = LookupEnd::new(ANSWERING);
        types.iter().for_each(|described| answering.register(described).expect("room"));
        let both =
            |described: &Described| [described.information.minimal.clone(), described.information.complete.clone()];
        let parts = types.iter().flat_map(both).collect();
        World { now: Instant::ZERO, asking: LookupEnd::new(ASKING), answering, parts, requests: Vec::new() }
    }

    fn poll(&mut self) {
        for request in self.asking.poll(self.now) {
            let LookupCall::Types(types) = &request.call else { panic!("types are asked for") };
            assert!((1..=LookupEnd::REQUEST_MAX).contains(&types.len()));
            let payload = request.to_payload().expect("written");
            assert_eq!(LookupRequest::from_payload(&payload).expect("read again"), request);
            if self.requests.len() < REQUESTS_MAX {
                self.requests.push(request);
            }
        }
        assert!(self.asking.open() <= LookupEnd::OPEN_MAX);
    }

    /// The payload of the answer to a request, if it gets one.
    fn reply_to(&self, request: &LookupRequest) -> Option<Vec<u8>> {
        let answer = self.answering.answer(request, ANSWER_BYTES)?;
        if let LookupAnswer::Types(objects, _) = &answer {
            assert!(objects.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= ANSWER_BYTES);
        }
        let reply = LookupReply { identity: request.identity, answer: Some(answer) };
        let payload = reply.to_payload().expect("written");
        assert_eq!(LookupReply::from_payload(&payload).expect("read again"), reply);
        Some(payload)
    }

    fn hear(&mut self, from: GuidPrefix, payload: &[u8]) {
        if let Ok(reply) = LookupReply::from_payload(payload) {
            self.asking.handle_reply(from, reply);
        }
    }

    /// Takes the request `which`, changes so many bytes of its answer, and lets it come.
    fn answer(&mut self, which: u8, changes: &[u8]) {
        if self.requests.is_empty() {
            return;
        }
        let request = self.requests.swap_remove(usize::from(which) % self.requests.len());
        let Some(mut payload) = self.reply_to(&request) else { return };
        for change in changes.chunks_exact(3) {
            let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % payload.len();
            payload[at] ^= change[2];
        }
        self.hear(ANSWERING, &payload);
    }

    /// Lets time pass without answers: each object is asked for so often, of so many participants, and no more.
    fn rest(&mut self) {
        for _ in 0..100 {
            self.poll();
            let _ = self.asking.take_news();
            if self.asking.due() == Instant::NEVER {
                assert_eq!(self.asking.open(), 0);
                return;
            }
            self.now += Duration::from_millis(500);
        }
        panic!("the questions do not come to rest");
    }
}

fuzz_target!(|input: &[u8]| {
    let mut world = World::new();
    let mut rest = input;
    while let [step, which, length, tail @ ..] = rest {
        let (bytes, after) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = after;
        let part = usize::from(*which) % world.parts.len();
        let from = if step & 8 == 0 { ANSWERING } else { SILENT };
        match step & 7 {
            0 => world.asking.want(from, &named(&world.parts[part])),
            1 => world.asking.ask_again(from, &named(&world.parts[part])),
            2 => {
                world.now += Duration::from_millis(10 * u64::from(*which));
                world.poll();
            }
            3 => world.answer(*which, &[]),
            4 => world.answer(*which, bytes),
            5 => world.hear(from, bytes),
            6 => {
                if let Ok(request) = LookupRequest::from_payload(bytes) {
                    let _ = world.reply_to(&request);
                }
            }
            // Objects that nobody has.
            _ => {
                let hashes = bytes.chunks_exact(14).map(|bytes| TypeHash(std::array::from_fn(|at| bytes[at])));
                let unknown: Vec<_> = hashes.map(|hash| TypeIdentifier::Hash(Equivalence::Complete, hash)).collect();
                world.asking.want(from, &unknown);
            }
        }
    }
    world.rest();
    assert!(world.asking.known() <= world.answering.known(), "what has no name is not kept");
    for part in &world.parts {
        world.asking.ask_again(ANSWERING, &named(part));
    }
    world.requests.clear();
    world.poll();
    while !world.requests.is_empty() {
        world.answer(0, &[]);
    }
    assert!(world.parts.iter().all(|part| world.asking.resolve(&part.of.identifier).is_ok()));
});
