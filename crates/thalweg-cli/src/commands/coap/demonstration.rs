//! The resources of `thalweg coap serve`: one of each kind that a server has.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg_coap::interaction::handler::{Class, ClassId, Existence, Function, Handler, Terms};
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::interaction::server::Notifier;
use thalweg_coap::link_format::WebLink;
use thalweg_coap::message::{CoapRequest, Code, ETag, Response, content_format};

/// A text that can be read, written and observed.
#[derive(Default)]
pub struct TextNote {
    text: Mutex<Vec<u8>>,
    notifier: Mutex<Option<Notifier>>,
}

impl TextNote {
    /// Tells observers by `notifier` from now on.
    pub fn tell(&self, notifier: Notifier) {
        *self.notifier.lock().unwrap_or_else(PoisonError::into_inner) = Some(notifier);
    }
}

/// The note as a handler.
struct NoteHandler(Arc<TextNote>);

impl Handler for NoteHandler {
    fn class(&self) -> Class {
        Class::Inline
    }

    fn terms(&self) -> Terms {
        Terms {
            produces: &[content_format::TEXT],
            consumes: &[content_format::TEXT],
            conditional: true,
            for_groups: false,
            forwards: false,
        }
    }

    fn existence(&self, _request: &CoapRequest<'_>) -> Existence {
        let text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        Existence::Present(vec![tag_of(&text)])
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        let mut text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = match request.code {
            Code::GET => return read(&text, request),
            Code::PUT => {
                *text = request.payload.to_vec();
                Code::CHANGED
            }
            Code::POST if text.len() + request.payload.len() > NOTE_BYTES_MAX => {
                return Response::error(Code::REQUEST_ENTITY_TOO_LARGE, "the note is full; begin anew with PUT");
            }
            Code::POST => {
                text.extend_from_slice(request.payload);
                Code::CHANGED
            }
            Code::DELETE => {
                text.clear();
                Code::DELETED
            }
            _ => return Response::new(Code::METHOD_NOT_ALLOWED),
        };
        drop(text);
        if let Some(notifier) = &*self.0.notifier.lock().unwrap_or_else(PoisonError::into_inner) {
            notifier.change(NOTE);
        }
        Response::new(changed)
    }
}

/// The note, unless the client has it already.
fn read(text: &[u8], request: &CoapRequest<'_>) -> Response {
    let tag = tag_of(text);
    let response = match request.etags().any(|known| known == tag) {
        true => Response::new(Code::VALID),
        false => Response::content(text.to_vec(), content_format::TEXT),
    };
    response.with_etag(tag).with_max_age(1).observable()
}

/// A tag that differs when the text does.
fn tag_of(text: &[u8]) -> ETag {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    ETag::from_u64(hasher.finish())
}

/// All of them.
pub fn routes(note: &Arc<TextNote>) -> Routes {
    let greeting = Function::inline(get_only(|_| Response::content("hello world", content_format::TEXT)));
    let greeting = greeting.with_terms(Terms { for_groups: true, ..Terms::default() });
    let slow = Function::pooled(ClassId::BLOCKING, get_only(slow));
    let busy = Function::pooled(ClassId::BLOCKING, get_only(busy));
    let text = || content_format::TEXT.to_string();
    Routes::new()
        .add_link(WebLink::new("/request").with("title", "a greeting").with("ct", text()), Arc::new(greeting))
        .add_link(WebLink::new(NOTE).with("ct", text()).with_flag("obs"), Arc::new(NoteHandler(Arc::clone(note))))
        .add_link(WebLink::new("/slow").with("title", "waits ?ms=N in the handler pool"), Arc::new(slow))
        .add_link(WebLink::new("/busy").with("title", "computes for ?us=N in the handler pool"), Arc::new(busy))
}

/// Answers other methods with 4.05.
fn get_only(
    answer: impl Fn(&CoapRequest<'_>) -> Response + Send + Sync,
) -> impl Fn(&CoapRequest<'_>) -> Response + Send + Sync {
    move |request| if request.code == Code::GET { answer(request) } else { Response::new(Code::METHOD_NOT_ALLOWED) }
}

/// Blocks like a device that answers late.
fn slow(request: &CoapRequest<'_>) -> Response {
    with_argument(request, "ms", SLOW_MAX_MS, |ms| {
        std::thread::sleep(Duration::from_millis(ms));
        format!("waited {ms} ms")
    })
}

/// Needs a processor for all of its time.
fn busy(request: &CoapRequest<'_>) -> Response {
    with_argument(request, "us", BUSY_MAX_US, |us| {
        let (start, time) = (Instant::now(), Duration::from_micros(us));
        while start.elapsed() < time {
            std::hint::spin_loop();
        }
        format!("computed for {us} us")
    })
}

/// Does something with the number in `?name=N`, 0 without it; 4.00 when there is another text, or more than `max`.
fn with_argument(request: &CoapRequest<'_>, name: &str, max: u64, act: impl FnOnce(u64) -> String) -> Response {
    let number = request.query(name).map_or(Ok(0), str::parse);
    match number.ok().filter(|number| *number <= max) {
        Some(number) => Response::content(act(number), content_format::TEXT).with_max_age(0),
        None => {
            Response::error(Code::BAD_REQUEST, format!("{name} is a whole number up to {max}, such as ?{name}=100"))
        }
    }
}

const NOTE: &str = "/note";
/// As much as a PUT can bring.
const NOTE_BYTES_MAX: usize = 2 << 20;
const SLOW_MAX_MS: u64 = 60_000;
const BUSY_MAX_US: u64 = 1_000_000;
