//! The resources of ETSI's CoAP plugtests (TD_COAP_CORE, LINK, BLOCK and OBS), for test clients of other middleware:
//!
//! ```sh
//! cargo run -p thalweg-coap --example plugtest -- 127.0.0.1:5683
//! ```
//!
//! It ends with its standard input. A POST of `sesame` to `/obs-reset` restarts the server, which forgets its observers by that.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_coap::interaction::handler::{Class, ClassId, Existence, Function, Handler, Terms};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::{Notifier, Server, ServerConfig};
use thalweg_coap::link_format::WebLink;
use thalweg_coap::message::{CoapRequest, Code, ETag, OptionNumber, Response, content_format};

/// Time between two states of `/obs` and `/obs-non`.
const PERIOD: Duration = Duration::from_secs(5);

/// What a resource has: bytes in a format.
#[derive(Clone, Hash)]
struct Content {
    bytes: Vec<u8>,
    format: u16,
}

impl Content {
    fn text(text: impl Into<Vec<u8>>) -> Content {
        Content { bytes: text.into(), format: content_format::TEXT }
    }

    fn of(request: &CoapRequest<'_>) -> Content {
        Content {
            bytes: request.payload.to_vec(),
            format: request.content_format().unwrap_or(content_format::OCTET_STREAM),
        }
    }

    fn tag(&self) -> ETag {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        ETag::from_u64(hasher.finish())
    }
}

/// A resource that can be read, written and deleted, and whose changes may be observed.
struct Document {
    content: Mutex<Option<Content>>,
    /// Whether it can be observed, and then whether by confirmable notifications.
    is_confirmed: Option<bool>,
    has_changed: AtomicBool,
}

impl Document {
    fn new(content: Option<Content>, is_confirmed: Option<bool>) -> Arc<Document> {
        Arc::new(Document { content: Mutex::new(content), is_confirmed, has_changed: AtomicBool::new(false) })
    }

    fn set(&self, content: Option<Content>) {
        *lock(&self.content) = content;
        self.has_changed.store(true, Ordering::Release);
    }

    fn read(&self, request: &CoapRequest<'_>) -> Response {
        let found = lock(&self.content).clone();
        let Some(content) = found else {
            // That an observable resource was deleted is told once; then it is there again.
            *lock(&self.content) = self.is_confirmed.map(|_| Content::text("again"));
            return Response::new(Code::NOT_FOUND);
        };
        if self.is_confirmed.is_some() && content.format != content_format::TEXT {
            // So is that it changed its format.
            *lock(&self.content) = Some(Content::text("again"));
        }
        let tag = content.tag();
        let response = match request.etags().any(|known| known == tag) {
            true => Response::new(Code::VALID),
            false => Response::content(content.bytes, content.format),
        };
        let response = response.with_etag(tag).with_max_age(PERIOD.as_secs() as u32);
        match self.is_confirmed {
            Some(is_confirmed) => response.observable_by(is_confirmed),
            None => response,
        }
    }
}

impl Handler for Document {
    fn class(&self) -> Class {
        Class::Inline
    }

    fn terms(&self) -> Terms {
        Terms { conditional: true, ..Terms::default() }
    }

    fn existence(&self, _: &CoapRequest<'_>) -> Existence {
        let content = lock(&self.content);
        content.as_ref().map_or(Existence::Absent, |content| Existence::Present(vec![content.tag()]))
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        match request.code {
            Code::GET => self.read(request),
            Code::PUT => {
                let is_new = lock(&self.content).is_none();
                self.set(Some(Content::of(request)));
                Response::new(if is_new { Code::CREATED } else { Code::CHANGED })
            }
            Code::POST => {
                self.set(Some(Content::of(request)));
                let location =
                    |response: Response, part: &str| response.with_option(OptionNumber::LOCATION_PATH, part.as_bytes());
                ["location1", "location2", "location3"].into_iter().fold(Response::new(Code::CREATED), location)
            }
            Code::DELETE => {
                self.set(None);
                Response::new(Code::DELETED)
            }
            _ => Response::new(Code::METHOD_NOT_ALLOWED),
        }
    }
}

/// All that outlives a restart of the server.
struct World {
    documents: BTreeMap<&'static str, Arc<Document>>,
    created: Arc<Mutex<u64>>,
    is_to_restart: Arc<AtomicBool>,
}

impl World {
    fn new() -> World {
        let large = Content::text(block_of_lines());
        let documents = BTreeMap::from([
            ("/test", Document::new(Some(Content::text("a test resource")), None)),
            ("/validate", Document::new(Some(Content::text("a resource that varies")), None)),
            ("/create1", Document::new(None, None)),
            ("/large-update", Document::new(Some(large), None)),
            ("/obs", Document::new(Some(Content::text("0")), Some(true))),
            ("/obs-non", Document::new(Some(Content::text("0")), Some(false))),
        ]);
        World { documents, created: Arc::default(), is_to_restart: Arc::default() }
    }

    fn routes(&self) -> Routes {
        let text = |text: &'static str| Function::inline(move |_| Response::content(text, content_format::TEXT));
        let (created, is_to_restart) = (Arc::clone(&self.created), Arc::clone(&self.is_to_restart));
        let link = |path: &str, kind: &str, interface: &str, size: u32| {
            WebLink::new(path).with("rt", kind).with("if", interface).with("sz", size.to_string())
        };
        let routes = Routes::new()
            .add("/seg1/seg2/seg3", text("three segments"))
            .add("/query", Function::inline(queries))
            .add("/separate", Function::pooled(ClassId::BLOCKING, separate))
            .add("/large", Function::inline(|_| Response::content(block_of_lines(), content_format::TEXT)))
            .add("/large-post", Function::inline(upper_case))
            .add("/large-create", Function::inline(move |request| create(request, &created)))
            .add("/location-query", Function::inline(locate))
            .add("/multi-format", Function::inline(multi_format))
            .add_link(link("/link1", "Type1 Type2", "If1", 18), Arc::new(text("link 1")))
            .add_link(link("/link2", "Type2 Type3", "If2", 18), Arc::new(text("link 2")))
            .add_link(link("/link3", "Type1 Type3", "foo", 18), Arc::new(text("link 3")))
            .add_link(
                WebLink::new("/path").with("ct", content_format::LINK_FORMAT.to_string()),
                Arc::new(Function::inline(|_| {
                    let links = "</path/sub1>,</path/sub2>,</path/sub3>";
                    Response::content(links, content_format::LINK_FORMAT)
                })),
            )
            .add_hidden("/path/sub1", text("sub 1"))
            .add_hidden("/path/sub2", text("sub 2"))
            .add_hidden("/path/sub3", text("sub 3"))
            .add_hidden("/obs-reset", Function::inline(move |request| reset(request, &is_to_restart)));
        self.documents.iter().fold(routes, |routes, (path, document)| {
            let link = WebLink::new(*path);
            let link = if document.is_confirmed.is_some() { link.with_flag("obs") } else { link };
            routes.add_link(link, Arc::clone(document) as Arc<dyn Handler>)
        })
    }

    /// Gives the observable resources their next state.
    fn tick(&self, count: u64) {
        for document in self.documents.values().filter(|document| document.is_confirmed.is_some()) {
            document.set(Some(Content::text(count.to_string())));
        }
    }

    fn notify(&self, notifier: &Notifier) {
        for (path, document) in &self.documents {
            if document.has_changed.swap(false, Ordering::AcqRel) {
                notifier.change(path);
            }
        }
    }
}

fn queries(request: &CoapRequest<'_>) -> Response {
    let queries: Vec<&str> = request.queries().collect();
    Response::content(format!("queries: {}", queries.join(" ")), content_format::TEXT)
}

fn separate(_: &CoapRequest<'_>) -> Response {
    std::thread::sleep(Duration::from_millis(1500));
    Response::content("by a message of its own", content_format::TEXT)
}

fn upper_case(request: &CoapRequest<'_>) -> Response {
    let text = String::from_utf8_lossy(request.payload).to_uppercase();
    Response { code: Code::CHANGED, ..Response::content(text, content_format::TEXT) }
}

fn create(request: &CoapRequest<'_>, created: &Mutex<u64>) -> Response {
    if request.code != Code::POST {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    let mut count = lock(created);
    *count += 1;
    let location = Response::new(Code::CREATED).with_option(OptionNumber::LOCATION_PATH, b"large-create");
    location.with_option(OptionNumber::LOCATION_PATH, count.to_string().as_bytes())
}

fn locate(request: &CoapRequest<'_>) -> Response {
    if request.code != Code::POST {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    let response = Response::new(Code::CREATED).with_option(OptionNumber::LOCATION_QUERY, b"first=1");
    response.with_option(OptionNumber::LOCATION_QUERY, b"second=2")
}

fn multi_format(request: &CoapRequest<'_>) -> Response {
    match request.accept().unwrap_or(content_format::TEXT) {
        content_format::TEXT => Response::content("in words", content_format::TEXT),
        XML => Response::content("<in>marks</in>", XML),
        content_format::JSON => Response::content("{\"in\":\"members\"}", content_format::JSON),
        content_format::CBOR => Response::content(&b"\xa1\x62in\x65bytes"[..], content_format::CBOR),
        _ => Response::new(Code::NOT_ACCEPTABLE),
    }
}

fn reset(request: &CoapRequest<'_>, is_to_restart: &AtomicBool) -> Response {
    if request.code != Code::POST || request.payload != b"sesame" {
        return Response::new(Code::FORBIDDEN);
    }
    is_to_restart.store(true, Ordering::Release);
    Response::new(Code::CHANGED)
}

/// 1280 bytes in lines of 64.
fn block_of_lines() -> String {
    (0..20).map(|line| format!("line {line:02} of 20 {:->49}\n", "")).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `application/xml`
const XML: u16 = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5683".to_owned()).parse()?;
    let world = World::new();
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        ends.store(true, Ordering::Release);
    });
    let (mut count, mut last) = (0, Instant::now());
    let mut config = ServerConfig::new(address);
    while !is_over.load(Ordering::Acquire) {
        let server = Server::start(&config, world.routes())?;
        config.address = server.address();
        println!("serving coap://{}", server.address());
        world.is_to_restart.store(false, Ordering::Release);
        while !is_over.load(Ordering::Acquire) && !world.is_to_restart.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(50));
            if last.elapsed() >= PERIOD {
                (count, last) = (count + 1, Instant::now());
                world.tick(count);
            }
            world.notify(&server.notifier());
        }
        // The answer to whoever wanted it is on its way.
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
