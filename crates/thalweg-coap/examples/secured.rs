//! Sessions, protected requests and rules: handlers see who asks, and each path says who may.
//!
//! `cargo run -p thalweg-coap --example secured`

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thalweg_coap::credentials::{Credentials, PresharedKey};
use thalweg_coap::dtls::SessionLimits;
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::{AccessRule, AccessRules, Transport};
use thalweg_coap::interaction::handler::Function;
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{SecureConfig, Server, ServerConfig};
use thalweg_coap::interaction::streams::StreamsConfig;
use thalweg_coap::message::{CoapRequest, RequestBuf, Response, content_format};
use thalweg_coap::oscore::{Context, ContextParameters, Keyring, OneRun, ParameterError, Past};

/// Keys that lie in files in earnest; see `PresharedKeys::load` and `oscore::file`.
const SECRET: [u8; 16] = [7; 16];

fn key(identity: &str) -> PresharedKey {
    PresharedKey { identity: identity.into(), key: format!("the key of {identity}").into_bytes().into() }
}

fn credentials(identities: &[&str]) -> Credentials {
    Credentials { keys: identities.iter().map(|identity| key(identity)).collect(), ..Credentials::default() }
}

/// One end of a context of OSCORE. Its numbers are used in this run only, so the secret has to be another one in the next.
fn context(own: &[u8], other: &[u8]) -> Result<Arc<Context>, ParameterError> {
    let parameters = ContextParameters::new(&SECRET, own, other)?;
    Ok(Context::new(&parameters, 0, Box::new(OneRun), Past::Unused))
}

/// Says who asks, as far as that is proved.
fn greet(request: &CoapRequest<'_>) -> Response {
    let session = request.caller.and_then(|caller| caller.session.as_ref());
    let is_protected = request.caller.is_some_and(|caller| caller.oscore.is_some());
    let who = match session {
        Some(identity) => identity.to_string(),
        None if is_protected => "a client with keys".to_owned(),
        None => "a stranger".to_owned(),
    };
    Response::content(format!("hello, {who}"), content_format::TEXT)
}

fn start() -> Result<Server, Box<dyn Error>> {
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = ServerConfig::new(any_port);
    let credentials = credentials(&["porter", "guest"]);
    config.secure = Some(SecureConfig { address: any_port, credentials, limits: SessionLimits::default() });
    config.keyring = Some(Arc::new(Keyring::new([context(b"server", b"client")?])?));
    let streams = StreamsConfig::new(Credentials::default());
    config.streams = Some(StreamsConfig { listeners: vec![(Transport::Tcp, any_port)], ..streams });
    let rules = ["/door any psk:porter", "/diary any oscore:636c69656e74"];
    let rules: Vec<AccessRule> = rules.into_iter().map(str::parse).collect::<Result<_, _>>()?;
    let routes = ["/hello", "/door", "/diary"].into_iter();
    let routes = routes.fold(Routes::new(), |routes, path| routes.add(path, Function::inline(greet)));
    Ok(Server::start(&config, routes.with_access(AccessRules::new(rules)))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = start()?;
    let secure = server.secure_address().ok_or("it serves coaps")?;
    let (tcp, tcp_address) = server.stream_addresses()[0];
    let mut protected = Requester::open(Transport::Udp, server.address(), "localhost", &credentials(&[]), PATIENCE)?;
    assert!(protected.protect(context(b"client", b"server")?), "datagrams carry protected requests");
    let clients = [
        ("over TCP", Requester::open(tcp, tcp_address, "localhost", &credentials(&[]), PATIENCE)?),
        ("porter", Requester::open(Transport::Dtls, secure, "localhost", &credentials(&["porter"]), PATIENCE)?),
        ("guest", Requester::open(Transport::Dtls, secure, "localhost", &credentials(&["guest"]), PATIENCE)?),
        ("by OSCORE", protected),
    ];
    for (name, mut client) in clients {
        for path in ["/hello", "/door", "/diary"] {
            let answer = client.exchange(RequestBuf::get(path), Confirmability::Confirmable, PATIENCE)?;
            println!("{name} {path}: {:?} {}", answer.code, String::from_utf8_lossy(&answer.payload));
        }
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(10);
