//! The interfaces of a directory: `/rd`, `/rd-lookup/res` and `/rd-lookup/ep`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DirectoryCounts, DirectoryError, ResourceDirectory};
use crate::link_format::{self, WebLink};
use crate::message::{CoapRequest, Code, OptionNumber, Response, content_format};
use crate::resource::Clock;

/// Serves a directory. A clone serves the same one.
#[derive(Clone)]
pub struct DirectoryHandler {
    directory: Arc<Mutex<ResourceDirectory>>,
    clock: Clock,
}

impl DirectoryHandler {
    /// An empty directory whose lifetimes are measured by `clock`.
    pub fn new(clock: Clock) -> DirectoryHandler {
        DirectoryHandler { directory: Arc::default(), clock }
    }

    /// What it holds.
    pub fn counts(&self) -> DirectoryCounts {
        self.directory().counts()
    }

    /// Links to its interfaces for `/.well-known/core` (RFC 9176 §4.3).
    pub fn links(&self) -> Vec<WebLink> {
        let link = |path: &str, kind: &str| WebLink::new(path).with("rt", kind).with("ct", "40");
        vec![link(REGISTRATION, "core.rd"), link(RESOURCES, "core.rd-lookup-res"), link(ENDPOINTS, "core.rd-lookup-ep")]
    }

    /// Whether a request is to one of its interfaces.
    pub fn has(&self, request: &CoapRequest<'_>) -> bool {
        let segments: Vec<&str> = request.path_segments().take(3).collect();
        matches!(segments.as_slice(), ["rd"] | ["rd", _] | ["rd-lookup", "res" | "ep"])
    }

    /// Answers a request to one of its interfaces; `None` for any other path. `source` is the URI of the client, the base
    /// of a registration that names none; without it such a registration is refused.
    pub fn handle(&self, request: &CoapRequest<'_>, source: Option<&str>) -> Option<Response> {
        let segments: Vec<&str> = request.path_segments().take(3).collect();
        Some(match segments.as_slice() {
            ["rd"] => self.register(request, source),
            ["rd", number] => match number.parse() {
                Ok(number) => self.registration(number, request, source),
                Err(_) => Response::error(Code::NOT_FOUND, DirectoryError::Unknown.to_string()),
            },
            ["rd-lookup", kind @ ("res" | "ep")] => self.look_up(kind, request),
            _ => return None,
        })
    }

    fn register(&self, request: &CoapRequest<'_>, source: Option<&str>) -> Response {
        if request.code != Code::POST {
            return Response::error(Code::METHOD_NOT_ALLOWED, "/rd understands POST");
        }
        if request.content_format().is_some_and(|format| format != content_format::LINK_FORMAT) {
            return Response::error(Code::UNSUPPORTED_CONTENT_FORMAT, "links come in link format (40)");
        }
        let now = (self.clock)();
        match self.directory().handle_registration(now, request.queries(), request.payload, source) {
            Ok((number, _)) => Response::new(Code::CREATED)
                .with_option(OptionNumber::LOCATION_PATH, b"rd")
                .with_option(OptionNumber::LOCATION_PATH, number.to_string().as_bytes()),
            Err(error) => refusal(&error),
        }
    }

    fn registration(&self, number: u64, request: &CoapRequest<'_>, source: Option<&str>) -> Response {
        let now = (self.clock)();
        let mut directory = self.directory();
        let done = match request.code {
            Code::POST => {
                directory.handle_update(now, number, request.queries(), source).map(|()| Response::new(Code::CHANGED))
            }
            Code::DELETE => directory.handle_removal(now, number).map(|()| Response::new(Code::DELETED)),
            Code::GET => {
                directory.handle_timeout(now);
                let links = directory.entry(number).map(|entry| link_format::encode(entry.links.iter()));
                let links = links.ok_or(DirectoryError::Unknown);
                links.map(|links| Response::content(links, content_format::LINK_FORMAT))
            }
            _ => return Response::error(Code::METHOD_NOT_ALLOWED, "a registration understands GET, POST and DELETE"),
        };
        done.unwrap_or_else(|error| refusal(&error))
    }

    fn look_up(&self, kind: &str, request: &CoapRequest<'_>) -> Response {
        if request.code != Code::GET {
            return Response::error(Code::METHOD_NOT_ALLOWED, "a lookup understands GET");
        }
        if request.accept().is_some_and(|format| format != content_format::LINK_FORMAT) {
            return Response::error(Code::NOT_ACCEPTABLE, "links are told in link format (40)");
        }
        let mut directory = self.directory();
        directory.handle_timeout((self.clock)());
        let found = match kind {
            "res" => directory.find_resources(request.queries()),
            _ => directory.find_endpoints(request.queries()),
        };
        drop(directory);
        match found {
            Ok(links) => {
                Response::content(link_format::encode(links.iter()), content_format::LINK_FORMAT).with_max_age(0)
            }
            Err(error) => refusal(&error),
        }
    }

    fn directory(&self) -> MutexGuard<'_, ResourceDirectory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refusal(error: &DirectoryError) -> Response {
    match error {
        DirectoryError::Bad(_) | DirectoryError::Long => Response::error(Code::BAD_REQUEST, error.to_string()),
        DirectoryError::Unknown => Response::error(Code::NOT_FOUND, error.to_string()),
        DirectoryError::Full(time) => {
            let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1);
            Response::error(Code::SERVICE_UNAVAILABLE, error.to_string()).with_max_age(seconds)
        }
    }
}

const REGISTRATION: &str = "/rd";
const RESOURCES: &str = "/rd-lookup/res";
const ENDPOINTS: &str = "/rd-lookup/ep";
