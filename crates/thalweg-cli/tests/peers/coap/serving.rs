//! Thalweg's server with the resources of the tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use thalweg_coap::credentials::{Credentials, OwnCertificate, PresharedKey};
use thalweg_coap::dtls::SessionLimits;
use thalweg_coap::identity::Transport;
use thalweg_coap::interaction::handler::{Catalog, Class, ClassId, Function};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Notifier, SecureConfig, Server, ServerConfig};
use thalweg_coap::interaction::streams::StreamsConfig;
use thalweg_coap::link_format::WebLink;
use thalweg_coap::message::{CoapRequest, Code, Response, content_format};

use super::body;
use crate::program::PATIENCE;

/// A server on a port of loopback.
pub struct Serving {
    server: Server,
    state: Arc<State>,
}

/// `/note`, `/settings` and `/body`.
struct State {
    note: Mutex<Vec<u8>>,
    settings: Mutex<BTreeMap<String, String>>,
    body: Vec<u8>,
    observers: AtomicUsize,
    notifier: OnceLock<Notifier>,
}

impl Serving {
    #[track_caller]
    pub fn start() -> Serving {
        let state = Arc::new(State {
            note: Mutex::default(),
            settings: Mutex::default(),
            body: body(),
            observers: AtomicUsize::new(0),
            notifier: OnceLock::new(),
        });
        let hello = Function::inline(|_| text("hello world"));
        let slow = Function::pooled(ClassId::BLOCKING, |request: &CoapRequest<'_>| {
            let milliseconds = request.query("ms").and_then(|ms| ms.parse().ok()).unwrap_or_default();
            std::thread::sleep(Duration::from_millis(milliseconds));
            text("waited")
        });
        let routes = Routes::new().add_link(WebLink::new("/hello").with("rt", "lamp"), Arc::new(hello));
        let routes = routes.add("/slow", slow).with_catalog(Arc::clone(&state) as Arc<dyn Catalog>);
        let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into());
        let secure =
            SecureConfig { address: config.address, credentials: credentials(), limits: SessionLimits::default() };
        config.secure = Some(secure);
        let listeners = Transport::ALL.into_iter().filter(|transport| transport.is_reliable());
        let listeners = listeners.map(|transport| (transport, config.address)).collect();
        config.streams = Some(StreamsConfig { listeners, ..StreamsConfig::new(credentials()) });
        let server = Server::start(&config, routes).expect("started");
        assert!(state.notifier.set(server.notifier()).is_ok());
        Serving { server, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.address())
    }

    /// The URI of a path over `transport`.
    pub fn uri_over(&self, transport: Transport, path: &str) -> String {
        let of_stream = self.server.stream_addresses().iter().find(|(one, _)| *one == transport);
        let address = match transport {
            Transport::Udp => Some(self.address()),
            Transport::Dtls => self.server.secure_address(),
            _ => of_stream.map(|(_, address)| *address),
        };
        format!("{transport}://{}{path}", address.expect("it is served"))
    }

    /// What `/note` has.
    pub fn note(&self) -> String {
        String::from_utf8_lossy(&self.state.note.lock().expect("no panic")).into_owned()
    }

    /// Changes `/note`.
    pub fn change_note(&self, text: &str) {
        self.state.change(|note| *note = text.as_bytes().to_vec());
    }

    /// Waits until so many clients observe `/note`.
    #[track_caller]
    pub fn wait_for_observers(&self, count: usize) {
        let start = Instant::now();
        while self.state.observers.load(Ordering::Relaxed) != count {
            assert!(start.elapsed() < PATIENCE, "not {count} observers");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The keys and certificates of the tests' server.
pub fn credentials() -> Credentials {
    let certificate = OwnCertificate::load(&certificate("server.pem"), &certificate("server-key.pem"));
    let key = PresharedKey { identity: IDENTITY.into(), key: KEY.as_bytes().to_vec().into() };
    let keys = [key].into_iter().collect();
    Credentials { keys, certificate: Some(certificate.expect("read")), trust: None }
}

/// A file with a certificate or a key of the tests.
pub fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-coap/testdata").join(name)
}

/// The identity and the key of the tests' clients.
pub const IDENTITY: &str = "device-1";
pub const KEY: &str = "secret";

impl State {
    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        change(&mut self.note.lock().expect("no panic"));
        self.notifier.get().expect("it is set first").change("/note");
    }

    fn handle_note(&self, request: &CoapRequest<'_>) -> Response {
        match request.code {
            Code::GET => {
                let note = self.note.lock().expect("no panic").clone();
                return Response::content(note, content_format::TEXT).with_max_age(60).observable();
            }
            Code::PUT => self.change(|note| *note = request.payload.to_vec()),
            Code::POST => self.change(|note| note.extend_from_slice(request.payload)),
            Code::DELETE => {
                self.change(Vec::clear);
                return Response::new(Code::DELETED);
            }
            _ => return Response::new(Code::METHOD_NOT_ALLOWED),
        }
        Response::new(Code::CHANGED)
    }

    fn handle_body(&self, request: &CoapRequest<'_>) -> Response {
        match request.code {
            Code::GET => Response::content(self.body.clone(), content_format::OCTET_STREAM),
            Code::PUT if request.payload == self.body => Response::new(Code::CHANGED),
            Code::PUT => Response::new(Code::BAD_REQUEST),
            _ => Response::new(Code::METHOD_NOT_ALLOWED),
        }
    }

    fn handle_settings(&self, request: &CoapRequest<'_>) -> Response {
        let payload = String::from_utf8_lossy(request.payload).into_owned();
        let mut settings = self.settings.lock().expect("no panic");
        match (request.code, payload.split_once('=')) {
            (Code::FETCH, _) => match settings.get(&payload) {
                Some(value) => Response::content(value.clone(), content_format::TEXT),
                None => Response::new(Code::NOT_FOUND),
            },
            (Code::IPATCH, Some((name, value))) => {
                settings.insert(name.to_owned(), value.to_owned());
                Response::new(Code::CHANGED)
            }
            _ => Response::new(Code::BAD_REQUEST),
        }
    }
}

impl Catalog for State {
    fn class(&self) -> Class {
        Class::Pooled(ClassId::BLOCKING)
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        match request.path().as_str() {
            "/note" => Some(self.handle_note(request)),
            "/body" => Some(self.handle_body(request)),
            "/settings" => Some(self.handle_settings(request)),
            _ => None,
        }
    }

    fn links(&self) -> Vec<WebLink> {
        vec![WebLink::new("/note").with_flag("obs"), WebLink::new("/body"), WebLink::new("/settings")]
    }

    fn handle_observers(&self, _home: usize, path: &str, count: usize) {
        assert_eq!(path, "/note");
        self.observers.store(count, Ordering::Relaxed);
    }
}

fn text(content: &'static str) -> Response {
    Response::content(content, content_format::TEXT)
}
