//! What Thalweg's client does with servers of other middleware.

use std::net::SocketAddr;
use std::process::Command;

use thalweg_coap::endpoint::{Config, Confirmability, EndpointEvent, RequestError, RequestId};
use thalweg_coap::interaction::client::{Client, ClientError};
use thalweg_coap::message::{Code, Observe, OptionNumber, RequestBuf, Response, content_format};

use super::{body, capture, check_packets};
use crate::program::{PATIENCE, Program};

/// A client of one server.
pub struct Asking {
    client: Client,
    server: SocketAddr,
}

impl Asking {
    #[track_caller]
    pub fn open(server: SocketAddr) -> Asking {
        let client = Client::open(server, Config::default()).expect("a socket");
        Asking { client, server }
    }

    #[track_caller]
    pub fn ask(&mut self, request: RequestBuf) -> Response {
        self.deliver(request, Confirmability::Confirmable)
    }

    #[track_caller]
    pub fn deliver(&mut self, request: RequestBuf, delivery: Confirmability) -> Response {
        let target = request.view().path();
        let answer = self.client.exchange(self.server, request, delivery, PATIENCE);
        answer.unwrap_or_else(|error| panic!("{target}: {error}"))
    }

    /// Fails unless the server answers with this code and text.
    #[track_caller]
    pub fn check(&mut self, request: RequestBuf, code: Code, text: &str) {
        let (target, response) = (request.view().path(), self.ask(request));
        assert_eq!((response.code, &*String::from_utf8_lossy(&response.payload)), (code, text), "{target}");
    }

    /// Fails unless the server answers with this code, whatever it says for people.
    #[track_caller]
    pub fn check_code(&mut self, request: RequestBuf, code: Code) {
        let (target, response) = (request.view().path(), self.ask(request));
        assert_eq!(response.code, code, "{target}");
    }

    /// Registers; gives the state at that time.
    #[track_caller]
    pub fn observe(&mut self, path: &str) -> (RequestId, String) {
        let request = RequestBuf::get(path).with_observe(Observe::Register);
        let id = self.client.send(self.server, request, Confirmability::Confirmable).expect("sent");
        (id, self.next_state(id))
    }

    #[track_caller]
    pub fn next_state(&mut self, id: RequestId) -> String {
        match self.client.next(PATIENCE).expect("the socket works") {
            Some(EndpointEvent::Response { request, response, .. }) if request == id => {
                assert!(response.code == Code::CONTENT && response.observe.is_some(), "{response:?}");
                String::from_utf8_lossy(&response.payload).into_owned()
            }
            other => panic!("a notification should come: {other:?}"),
        }
    }

    /// Observes what another client puts: each state before the next one, so that none may be left out.
    #[track_caller]
    pub fn check_observation(&mut self, path: &str) {
        let mut writer = Asking::open(self.server);
        writer.check_code(RequestBuf::put(path, "zero"), Code::CHANGED);
        let (id, state) = self.observe(path);
        assert_eq!(state, "zero");
        for text in ["one", "two", "three"] {
            writer.check_code(RequestBuf::put(path, text), Code::CHANGED);
            assert_eq!(self.next_state(id), text);
        }
        self.client.cancel(id);
        // What was on its way is rejected, one by one: a capture shows two rejections that leave together as one packet.
        for text in ["unseen", "unseen as well"] {
            writer.check_code(RequestBuf::put(path, text), Code::CHANGED);
            let event = self.client.next(std::time::Duration::from_millis(300)).expect("the socket works");
            assert_eq!(event, None);
        }
    }

    /// Fails unless the server rejects a ping.
    #[track_caller]
    pub fn check_ping(&mut self) {
        let id = self.client.ping(self.server).expect("sent");
        match self.client.next(PATIENCE).expect("the socket works") {
            Some(EndpointEvent::Pong { request, .. }) => assert_eq!(request, id),
            other => panic!("a RST should come: {other:?}"),
        }
    }

    /// Why a request has no answer.
    #[track_caller]
    pub fn failure(&mut self, request: RequestBuf) -> RequestError {
        match self.client.exchange(self.server, request, Confirmability::Confirmable, PATIENCE) {
            Err(ClientError::Request(error)) => error,
            other => panic!("a failure should come: {other:?}"),
        }
    }
}

/// A GET with an option that nobody defined.
pub fn unknown_option(path: &str, number: u16) -> RequestBuf {
    RequestBuf::get(path).with_option(OptionNumber(number), b"x")
}

/// How far a server keeps to the standard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// As far as is asked here.
    Standard,
    /// node-coap 1.5.0 says nothing to an empty message (RFC 7252 §4.3) and joins blocks by their token (RFC 7959 §2.2 has it
    /// otherwise), which is a new one for each block here (RFC 9175 §4.2).
    NodeCoap,
}

/// Changes and reads `/settings` by the commands of the program.
#[track_caller]
fn check_commands(server: SocketAddr) {
    let uri = format!("coap://{server}/settings");
    let said = |words: [&str; 2]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command.args(["coap", words[0], &uri, words[1]]);
        Program::start("thalweg coap", &command).finish().well().lines
    };
    let changed = said(["ipatch", "size=large"]);
    assert!(changed.iter().any(|line| line.contains("2.04")), "{changed:?}");
    assert_eq!(said(["fetch", "size"]), ["large"]);
}

/// Everything, with a server that has the resources of `peers/README.md` and answers critical options that it does not know
/// with this code.
#[track_caller]
pub fn check(name: &str, server: SocketAddr, critical: Code, conduct: Conduct) {
    let capture = capture(&format!("{name}-server"), server);
    let mut asking = Asking::open(server);
    asking.check(RequestBuf::get("/hello"), Code::CONTENT, "hello world");
    let answer = asking.deliver(RequestBuf::get("/hello?non"), Confirmability::NonConfirmable);
    assert_eq!(&*answer.payload, b"hello world");
    asking.check(RequestBuf::get("/slow?ms=1500"), Code::CONTENT, "waited");
    asking.check(RequestBuf::get("/.well-known/core?rt=lamp"), Code::CONTENT, "</hello>;rt=\"lamp\"");
    asking.check_code(RequestBuf::get("/missing"), Code::NOT_FOUND);
    asking.check_code(unknown_option("/hello", 65_001), critical);
    asking.check_code(unknown_option("/hello", 65_000), Code::CONTENT);
    asking.check_code(RequestBuf::put("/note", "start"), Code::CHANGED);
    asking.check_code(RequestBuf::post("/note", "ed"), Code::CHANGED);
    asking.check(RequestBuf::get("/note"), Code::CONTENT, "started");
    asking.check_code(RequestBuf::new(Code::IPATCH, "/settings").with_payload("color=red"), Code::CHANGED);
    let color = RequestBuf::new(Code::FETCH, "/settings").with_payload("color");
    asking.check(color.with_content_format(content_format::TEXT), Code::CONTENT, "red");
    check_commands(server);
    asking.check_observation("/note");
    asking.check_code(RequestBuf::delete("/note"), Code::DELETED);
    asking.check(RequestBuf::get("/note"), Code::CONTENT, "");
    if conduct == Conduct::Standard {
        asking.check_ping();
        asking.check_code(RequestBuf::put("/body", body()), Code::CHANGED);
    }
    let got = asking.ask(RequestBuf::get("/body"));
    assert!(*got.payload == body()[..], "{} bytes", got.payload.len());
    // A mebibyte takes 1,024 blocks and as many answers.
    let bodies = if conduct == Conduct::Standard { 2 } else { 1 };
    check_packets(&capture.stop(), bodies * 2 * 1024);
}
