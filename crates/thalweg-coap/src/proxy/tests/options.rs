//! Options that a proxy does not understand, on its way there and back (RFC 7252 §5.7.1).

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use super::*;
use crate::credentials::Credentials;
use crate::endpoint::{Config, Confirmability};
use crate::identity::Transport;
use crate::interaction::client::Client;
use crate::interaction::handler::{Catalog, Class, ClassId, Function, Terms};
use crate::interaction::routes::Routes;
use crate::interaction::server::{Server, ServerConfig};
use crate::interaction::streams::{StreamClient, StreamsConfig};
use crate::link_format::WebLink;
use crate::message::{CoapMessage, CoapRequest, MessageId, MessageType, MessageWriter, Token};
use crate::oscore::{Context, ContextParameters, Keyring, OneRun, Past};
use crate::resource::ResourceError;
use crate::scheduler::priority::Priorities;
use crate::scheduler::thread_pool::ThreadPoolManager;
use crate::service::CoapRemote;

/// Critical and safe to forward, with a cache key.
const CRITICAL: OptionNumber = OptionNumber(2049);
/// Elective and unsafe.
const UNSAFE: OptionNumber = OptionNumber(2050);
/// Critical and unsafe.
const CRITICAL_UNSAFE: OptionNumber = OptionNumber(2051);
/// Elective and safe to forward.
const ELECTIVE: OptionNumber = OptionNumber(2052);

const PATIENCE: Duration = Duration::from_secs(5);

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// A server of CoAP that says in which requests it got, and answers with the option of the last part of the path.
fn origin() -> SocketAddr {
    let socket = UdpSocket::bind(anywhere()).expect("a socket");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        // Until the test is over.
        while let Ok((len, client)) = socket.recv_from(&mut buffer) {
            let message = CoapMessage::parse(&buffer[..len]).expect("a proxy sends CoAP");
            let number = message.options.values(OptionNumber::URI_PATH).last().expect("a path");
            let number = std::str::from_utf8(number).expect("a text").parse().expect("a number");
            let got: Vec<String> = message.options.filter(|(number, _)| number.0 > 2000).map(shown_option).collect();
            let mut bytes = Vec::new();
            let mut writer =
                MessageWriter::new(&mut bytes, MessageType::Acknowledgement, Code::CONTENT, message.id, &message.token);
            writer.option(OptionNumber(number), b"back");
            writer.payload(got.join(" ").as_bytes());
            socket.send_to(&bytes, client).expect("sent");
        }
    });
    address
}

fn shown_option((number, value): (OptionNumber, &[u8])) -> String {
    format!("{}={}", number.0, value.escape_ascii())
}

/// Asks a server with one datagram; gives code, payload and unknown options of the answer.
fn ask(server: SocketAddr, request: &RequestBuf) -> String {
    let socket = UdpSocket::bind(anywhere()).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    let (mut bytes, view) = (Vec::new(), request.view());
    let token = Token::from_u64(7);
    let mut writer = MessageWriter::new(&mut bytes, MessageType::Confirmable, view.code, MessageId(7), &token);
    writer.options(view.options);
    writer.payload(view.payload);
    socket.send_to(&bytes, server).expect("sent");
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).expect("an answer");
    let answer = CoapMessage::parse(&buffer[..len]).expect("a proxy sends CoAP");
    let others: Vec<String> = answer.options.filter(|(number, _)| number.0 > 2000).map(shown_option).collect();
    format!("{} {} {}", answer.code, String::from_utf8_lossy(answer.payload), others.join(" ")).trim().to_owned()
}

/// What a gateway has: a reverse proxy at `/far` beside resources of its own.
struct Far(ReverseProxy);

impl Catalog for Far {
    fn class(&self) -> Class {
        Class::Pooled(ClassId::BLOCKING)
    }

    fn terms(&self, request: &CoapRequest<'_>) -> Terms {
        Terms { forwards: self.0.covers(request), ..Terms::default() }
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        self.0.handle(request).or_else(|| Some(Response::new(Code::CONTENT)))
    }

    fn links(&self) -> Vec<WebLink> {
        Vec::new()
    }
}

/// A proxy forward to anywhere, reverse for `origin`.
fn proxy(origin: SocketAddr, keyring: Option<Keyring>) -> Server {
    let threads = Arc::new(ThreadPoolManager::new(8, Priorities::default()));
    let remote = CoapRemote::start(Config::default(), &threads).expect("a socket");
    let remote: Arc<dyn Remote> = Arc::new(remote);
    let things = Things::new(LocalStore::new(), Arc::clone(&remote), 100_000, system_clock());
    let relay = Relay::new(things, remote, PATIENCE);
    let forward = ForwardProxy::new(relay.clone(), Destinations::new(["*"]).expect("destinations"));
    let target = RemoteName { thing: origin.to_string(), path: String::new() };
    let own = Function::inline(|_| Response::content("own", content_format::TEXT));
    let routes = Routes::new().add("/own", own).with_proxy(Arc::new(forward));
    let routes = routes.with_catalog(Arc::new(Far(ReverseProxy::new(relay, "far", target))));
    let listeners = vec![(Transport::Tcp, anywhere())];
    let streams = Some(StreamsConfig { listeners, ..StreamsConfig::new(Credentials::default()) });
    let config = ServerConfig { keyring: keyring.map(Arc::new), streams, ..ServerConfig::new(anywhere()) };
    Server::start(&config, routes).expect("a server")
}

#[test]
fn options_that_are_safe_to_forward_go_along_there_and_back() {
    let origin = origin();
    let proxy = proxy(origin, None);
    for (number, expected) in [(CRITICAL, "2.05 2049=x 2049=back"), (ELECTIVE, "2.05 2052=x 2052=back")] {
        for code in [Code::GET, Code::PUT] {
            let forward = proxied(code, &format!("coap://{origin}/{}", number.0)).with_option(number, b"x");
            assert_eq!(ask(proxy.address(), &forward), expected, "{code} forward");
            let reverse = RequestBuf::new(code, &format!("/far/{}", number.0)).with_option(number, b"x");
            assert_eq!(ask(proxy.address(), &reverse), expected, "{code} reverse");
        }
        let plain = proxied(Code::GET, &format!("coap://{origin}/{}?plain", number.0));
        for _ in 0..2 {
            assert_eq!(ask(proxy.address(), &plain), format!("2.05  {}=back", number.0), "kept with its option");
        }
    }
    let conditional = RequestBuf::put("/far/2052", "").with_option(OptionNumber::IF_MATCH, &[7]);
    assert_eq!(ask(proxy.address(), &conditional), "2.05  2052=back", "conditions are those of the other server");
    let own = RequestBuf::get("/own").with_option(CRITICAL, b"x");
    assert_eq!(ask(proxy.address(), &own), "4.02 option 2049 is not understood", "not by itself");
    let own = RequestBuf::get("/other").with_option(CRITICAL, b"x");
    assert_eq!(ask(proxy.address(), &own), "4.02 option 2049 is not understood", "nor beside the path of the proxy");
}

#[test]
fn options_that_are_not_safe_to_forward_go_nowhere() {
    let origin = origin();
    let proxy = proxy(origin, None);
    for number in [UNSAFE, CRITICAL_UNSAFE] {
        for code in [Code::GET, Code::PUT] {
            for request in [proxied(code, &format!("coap://{origin}/2052")), RequestBuf::new(code, "/far/2052")] {
                let said = ask(proxy.address(), &request.with_option(number, b"x"));
                assert!(said.starts_with(&format!("4.02 {number}")), "{code} {said}");
            }
            for request in [
                proxied(code, &format!("coap://{origin}/{}", number.0)),
                RequestBuf::new(code, &format!("/far/{}", number.0)),
            ] {
                let said = ask(proxy.address(), &request);
                assert!(said.starts_with("5.02"), "{code} {number} in the response: {said}");
            }
        }
    }
}

#[test]
fn who_asks_for_itself_refuses_critical_options_of_the_answer_also_out_of_the_store() {
    let origin = origin();
    let threads = Arc::new(ThreadPoolManager::new(8, Priorities::default()));
    let remote: Arc<dyn Remote> = Arc::new(CoapRemote::start(Config::default(), &threads).expect("a socket"));
    let things = Things::new(LocalStore::new(), remote, 100_000, system_clock());
    let name = |number: OptionNumber| RemoteName { thing: origin.to_string(), path: number.0.to_string() };
    assert!(things.relay(&name(CRITICAL), None).is_ok());
    let refused = things.request(&format!("coap://{origin}/{}", CRITICAL.0));
    assert!(matches!(refused, Err(ResourceError::BadAnswer(_))), "{refused:?}");
    assert!(things.request(&format!("coap://{origin}/{}", ELECTIVE.0)).is_ok());
}

#[test]
fn what_other_options_ask_for_is_not_taken_from_the_store() {
    let (relay, origin) = relay();
    let proxy = ForwardProxy::new(relay, Destinations::new(["*"]).expect("destinations"));
    let plain = proxied(Code::GET, "coap://lamp/t");
    for (request, expected) in [
        (plain.clone(), 1),
        (plain.clone(), 1),
        (plain.clone().with_option(CRITICAL, b"x"), 2),
        (plain.clone().with_option(CRITICAL, b"y"), 3),
        (plain, 3),
    ] {
        assert_eq!(shown(&proxy.handle(&request.view())), "2.05 /t ");
        assert_eq!(origin.asked.lock().expect("a lock").len(), expected);
    }
}

fn context(sender: &[u8], recipient: &[u8], secret: u8) -> Arc<Context> {
    let parameters = ContextParameters::new(&[secret; 16], sender, recipient).expect("parameters");
    Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)
}

/// A server that only the holder of secret 7 may ask.
fn protected_origin() -> Server {
    let keyring = Keyring::new([context(b"s", b"c", 7)]).expect("keys");
    let config = ServerConfig { keyring: Some(Arc::new(keyring)), ..ServerConfig::new(anywhere()) };
    let said = |request: &CoapRequest<'_>| match request.code {
        Code::PUT => Response::content(request.payload.len().to_string(), content_format::TEXT),
        _ if request.queries().next().is_some() => Response::content("x".repeat(5000), content_format::TEXT),
        _ => Response::content("secret", content_format::TEXT),
    };
    Server::start(&config, Routes::new().add("/note", Function::inline(said)).protect("/")).expect("a server")
}

#[track_caller]
fn check_protected(keyring: Option<Keyring>) {
    let origin = protected_origin();
    let proxy = proxy(origin.address(), keyring);
    let mut client = Client::open(proxy.address(), Config::default()).expect("a socket");
    client.protect(context(b"c", b"s", 7));
    let large = format!("2.05 {}", "x".repeat(5000));
    for (request, expected) in [
        (RequestBuf::get("/note"), "2.05 secret"),
        (RequestBuf::get("/note"), "2.05 secret"),
        (RequestBuf::get("/note?large"), large.as_str()),
        (RequestBuf::put("/note", vec![b'x'; 1024]), "2.05 1024"),
        (RequestBuf::put("/note", vec![b'x'; 5000]), "2.05 5000"),
    ] {
        let request = request
            .with_option(OptionNumber::PROXY_SCHEME, b"coap")
            .with_option(OptionNumber::URI_HOST, b"127.0.0.1")
            .with_uint(OptionNumber::URI_PORT, origin.address().port().into());
        let response = client.exchange(proxy.address(), request, Confirmability::Confirmable, PATIENCE);
        assert_eq!(shown(&response.expect("an answer")), expected);
    }
}

#[test]
fn a_protected_request_passes_a_forward_proxy_unopened() {
    check_protected(None);
    check_protected(Some(Keyring::new([context(b"p", b"other", 9)]).expect("keys")));
    check_protected(Some(Keyring::new([context(b"s", b"c", 9)]).expect("keys")));
    // Not even under the proxy's own keys: somebody on the way may have written where it goes.
    check_protected(Some(Keyring::new([context(b"s", b"c", 7)]).expect("keys")));
}

#[test]
fn a_forward_proxy_serves_connections_as_well() {
    let origin = origin();
    let proxy = proxy(origin, None);
    let (transport, server) = proxy.stream_addresses()[0];
    let credentials = Credentials::default();
    let mut client = StreamClient::connect(server, "127.0.0.1", transport, &credentials, PATIENCE).expect("connected");
    let mut ask = |request: RequestBuf| client.exchange(request, PATIENCE).expect("an answer");
    for code in [Code::GET, Code::PUT] {
        let request = proxied(code, &format!("coap://{origin}/{}", ELECTIVE.0)).with_option(CRITICAL, b"x");
        let response = ask(request);
        assert_eq!(
            (shown(&response), response.options),
            ("2.05 2049=x".to_owned(), vec![(ELECTIVE, b"back".to_vec())])
        );
    }
    let protected =
        proxied(Code::POST, &format!("coap://{origin}/{}", ELECTIVE.0)).with_option(OptionNumber::OSCORE, &[]);
    assert_eq!(shown(&ask(protected)), "2.05 ", "it is for the other server to open");
    assert!(shown(&ask(proxied(Code::GET, "http://lamp/"))).starts_with("5.05"));
    let own = RequestBuf::get("/own").with_option(OptionNumber::OSCORE, &[]);
    assert!(shown(&ask(own)).starts_with("4.02"), "not by itself");
}
