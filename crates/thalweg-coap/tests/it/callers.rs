//! Who asks, as handlers see it and rules decide about it, over loopback.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use thalweg_coap::credentials::{Credentials, OwnCertificate, PresharedKey, Trust};
use thalweg_coap::dtls::SessionLimits;
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::identity::{AccessRules, Transport};
use thalweg_coap::interaction::handler::{ClassId, Function};
use thalweg_coap::interaction::requester::Requester;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{SecureConfig, Server, ServerConfig};
use thalweg_coap::interaction::streams::StreamsConfig;
use thalweg_coap::message::{CoapRequest, RequestBuf, Response, content_format};
use thalweg_coap::oscore::{Context, ContextParameters, Keyring, OneRun, Past};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the handler sees of its client: transport, address, session and OSCORE ID, a line each.
fn describe(request: &CoapRequest<'_>) -> Response {
    let Some(caller) = request.caller else { return Response::content("nobody", content_format::TEXT) };
    let session = caller.session.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    let id = caller.oscore.as_ref().map_or_else(|| "-".to_owned(), |one| format!("{:02x?}", one.recipient_id()));
    let said = format!("{}\n{}\n{session}\n{id}", caller.transport, caller.address);
    Response::content(said, content_format::TEXT)
}

fn keys(identities: &[&str]) -> Credentials {
    let key = |identity: &&str| PresharedKey {
        identity: identity.as_bytes().to_vec(),
        key: format!("the key of {identity}").into_bytes().into(),
    };
    Credentials { keys: identities.iter().map(key).collect(), ..Credentials::default() }
}

fn certified(name: &str) -> Credentials {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let own = OwnCertificate::load(&folder.join(format!("{name}.pem")), &folder.join(format!("{name}-key.pem")));
    let trust = Trust::load(&folder.join("authority.pem")).expect("an authority");
    Credentials { certificate: Some(own.expect("a certificate")), trust: Some(trust), ..Credentials::default() }
}

/// An end of a context; each pair has a secret of its own.
fn context(secret: u8, sender: &[u8], recipient: &[u8]) -> Arc<Context> {
    let parameters = ContextParameters::new(&[secret; 16], sender, recipient).expect("they are sound");
    Context::new(&parameters, 0, Box::new(OneRun), Past::Unused)
}

/// Two servers with the same routes: plain, DTLS by keys, TCP and TLS, and DTLS by certificates. OSCORE clients are `c` and `d`.
struct Servers {
    keyed: Server,
    certified: Server,
}

impl Servers {
    fn start(routes: impl Fn() -> Routes) -> Servers {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = |credentials: Credentials| {
            let mut config = ServerConfig::new(any_port);
            config.secure = Some(SecureConfig { address: any_port, credentials, limits: SessionLimits::default() });
            config
        };
        let mut keyed = config(keys(&["porter", "guest"]));
        let contexts = [context(7, b"s", b"c"), context(8, b"s", b"d")];
        keyed.keyring = Some(Arc::new(Keyring::new(contexts).expect("they differ")));
        keyed.streams = Some(StreamsConfig {
            listeners: vec![(Transport::Tcp, any_port), (Transport::Tls, any_port)],
            ..StreamsConfig::new(certified("server"))
        });
        Servers {
            keyed: Server::start(&keyed, routes()).expect("started"),
            certified: Server::start(&config(certified("server")), routes()).expect("started"),
        }
    }

    /// A client over a transport of the first server.
    #[track_caller]
    fn client(&self, transport: Transport, credentials: &Credentials) -> Requester {
        let of_streams = || self.keyed.stream_addresses().iter().find(|(one, _)| *one == transport).map(|one| one.1);
        let address = match transport {
            Transport::Udp => Some(self.keyed.address()),
            Transport::Dtls => self.keyed.secure_address(),
            _ => of_streams(),
        };
        open(transport, address.expect("it listens there"), credentials)
    }

    /// A client of the second server, with a certificate.
    #[track_caller]
    fn certified_client(&self) -> Requester {
        open(Transport::Dtls, self.certified.secure_address().expect("it listens there"), &certified("client"))
    }

    /// A client under OSCORE.
    #[track_caller]
    fn protected_client(&self, transport: Transport, credentials: &Credentials, context: Arc<Context>) -> Requester {
        let mut client = self.client(transport, credentials);
        assert!(client.protect(context), "it can carry protected requests");
        client
    }
}

#[track_caller]
fn open(transport: Transport, server: SocketAddr, credentials: &Credentials) -> Requester {
    Requester::open(transport, server, "server", credentials, PATIENCE).expect("a client")
}

#[track_caller]
fn get(client: &mut Requester, path: &str) -> Response {
    client.exchange(RequestBuf::get(path), Confirmability::Confirmable, PATIENCE).expect("an answer")
}

/// Fails unless handlers on both kinds of threads see this transport, one of these sessions, and this OSCORE ID.
#[track_caller]
fn check_seen(client: &mut Requester, transport: Transport, sessions: &[&str], id: &str) {
    let inline = get(client, "/inline").payload;
    let pooled = get(client, "/pooled").payload;
    let said = String::from_utf8_lossy(&inline);
    assert_eq!(said, String::from_utf8_lossy(&pooled));
    let lines: Vec<&str> = said.lines().collect();
    let [scheme, address, session, seen_id] = lines[..] else { panic!("{said}") };
    let address: SocketAddr = address.parse().expect("an address");
    assert_eq!((scheme, seen_id), (transport.scheme(), id), "{said}");
    assert!(address.ip().is_loopback() && address.port() != 0, "{said}");
    assert!(sessions.contains(&session), "{said}");
}

#[test]
fn handlers_see_where_a_request_comes_from_and_what_its_client_has_proved() {
    let servers = Servers::start(|| {
        let routes = Routes::new().add("/inline", Function::inline(describe));
        routes.add("/pooled", Function::pooled(ClassId::BLOCKING, describe))
    });
    let nothing = Credentials::default();
    for transport in [Transport::Udp, Transport::Tcp] {
        check_seen(&mut servers.client(transport, &nothing), transport, &["-"], "-");
    }
    let subject = ["subject:CN=client,O=Works", "subject:O=Works,CN=client"];
    check_seen(&mut servers.client(Transport::Tls, &certified("client")), Transport::Tls, &subject, "-");
    check_seen(&mut servers.certified_client(), Transport::Dtls, &subject, "-");
    // Two clients at once, each under its own name.
    let mut sessions = ["porter", "guest"].map(|name| (name, servers.client(Transport::Dtls, &keys(&[name]))));
    for _ in 0..2 {
        for (name, client) in &mut sessions {
            check_seen(client, Transport::Dtls, &[&*format!("psk:{name}")], "-");
        }
    }
    for (secret, id, seen) in [(7, b"c", "[63]"), (8, b"d", "[64]")] {
        let mut client = servers.protected_client(Transport::Udp, &nothing, context(secret, id, b"s"));
        check_seen(&mut client, Transport::Udp, &["-"], seen);
    }
}

#[test]
fn handlers_see_the_session_and_the_context_of_a_protected_request_in_a_session() {
    let servers = Servers::start(|| {
        let routes = Routes::new().add("/inline", Function::inline(describe));
        routes.add("/pooled", Function::pooled(ClassId::BLOCKING, describe))
    });
    let mut client = servers.protected_client(Transport::Dtls, &keys(&["porter"]), context(7, b"c", b"s"));
    check_seen(&mut client, Transport::Dtls, &["psk:porter"], "[63]");
}

#[test]
fn handlers_see_the_port_that_a_datagram_came_from() {
    let routes = Routes::new().add("/inline", Function::inline(describe));
    let server = Server::start(&ServerConfig::new(([127, 0, 0, 1], 0).into()), routes).expect("started");
    for _ in 0..2 {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(server.address()).expect("connected");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        // NON GET, Uri-Path inline, and a query of 60 letters: an unproved address gets three times what it sent.
        let request = [&b"\x51\x01\x00\x01\x07\xb6inline\x4d\x2f"[..], &[b'q'; 60]].concat();
        socket.send(&request).expect("sent");
        let mut answer = [0; 256];
        let count = socket.recv(&mut answer).expect("an answer");
        let own = socket.local_addr().expect("it is bound");
        let said = String::from_utf8_lossy(&answer[..count]);
        assert!(said.ends_with(&format!("coap\n{own}\n-\n-")), "{said}");
    }
}

#[test]
fn rules_for_keys_subjects_and_contexts_let_their_clients_in_and_nobody_else() {
    let rules = || {
        let texts =
            ["/key any psk:porter", "/subject any subject:client", "/other any subject:server", "/id any oscore:63"];
        AccessRules::new(texts.map(|text| text.parse().expect("a rule")))
    };
    let servers = Servers::start(|| {
        let paths = ["/key", "/subject", "/other", "/id"];
        let routes = paths.into_iter().fold(Routes::new(), |routes, path| routes.add(path, Function::inline(describe)));
        routes.with_access(rules())
    });
    let check = |client: &mut Requester, who: &str, expect: [&str; 4]| {
        for (path, expect) in ["/key", "/subject", "/other", "/id"].into_iter().zip(expect) {
            assert_eq!(get(client, path).code.to_string(), expect, "{who} at {path}");
        }
    };
    let nothing = Credentials::default();
    let stranger = ["4.01"; 4];
    check(&mut servers.client(Transport::Udp, &nothing), "a stranger", stranger);
    check(&mut servers.client(Transport::Tcp, &nothing), "a stranger over TCP", stranger);
    let (porter, guest) = (["2.05", "4.03", "4.03", "4.03"], ["4.03"; 4]);
    check(&mut servers.client(Transport::Dtls, &keys(&["porter"])), "porter", porter);
    check(&mut servers.client(Transport::Dtls, &keys(&["guest"])), "guest", guest);
    let subject = ["4.03", "2.05", "4.03", "4.03"];
    check(&mut servers.certified_client(), "a certificate over DTLS", subject);
    check(&mut servers.client(Transport::Tls, &certified("client")), "a certificate over TLS", subject);
    let mut known = servers.protected_client(Transport::Udp, &nothing, context(7, b"c", b"s"));
    check(&mut known, "the client c", ["4.03", "4.03", "4.03", "2.05"]);
    let mut other = servers.protected_client(Transport::Udp, &nothing, context(8, b"d", b"s"));
    check(&mut other, "the client d", guest);
}
