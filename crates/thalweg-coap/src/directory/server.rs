//! The interfaces of a directory: `/rd`, `/rd-lookup/res` and `/rd-lookup/ep`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{DirectoryCounts, DirectoryError, RegistrationLocation, ResourceDirectory};
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
        let segments: Vec<&str> = request.path_segments().take(4).collect();
        matches!(segments.as_slice(), ["rd"] | ["rd", _] | ["rd", _, _] | ["rd-lookup", "res" | "ep"])
    }

    /// Answers a request to one of its interfaces; `None` for any other path. The address of the request's caller is the base
    /// of a registration that names none.
    pub fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        let segments: Vec<&str> = request.path_segments().take(4).collect();
        Some(match segments.as_slice() {
            ["rd"] => self.register(request),
            ["rd", number] => self.registration(number, None, request),
            ["rd", number, key] => self.registration(number, Some(*key), request),
            ["rd-lookup", kind @ ("res" | "ep")] => self.look_up(kind, request),
            _ => return None,
        })
    }

    fn register(&self, request: &CoapRequest<'_>) -> Response {
        if request.code != Code::POST {
            return Response::error(Code::METHOD_NOT_ALLOWED, "/rd understands POST");
        }
        if request.content_format().is_some_and(|format| format != content_format::LINK_FORMAT) {
            return Response::error(Code::UNSUPPORTED_CONTENT_FORMAT, "links come in link format (40)");
        }
        let now = (self.clock)();
        match self.directory().handle_registration(now, request.caller, request.queries(), request.payload) {
            Ok((location, _)) => created(location),
            Err(error) => refusal(&error),
        }
    }

    /// Anybody may read a registration; it is changed where its registrant was told, by the key.
    fn registration(&self, number: &str, key: Option<&str>, request: &CoapRequest<'_>) -> Response {
        let (now, caller) = ((self.clock)(), request.caller);
        let mut directory = self.directory();
        directory.handle_timeout(now);
        let found = number.parse::<u64>().ok().and_then(|number| directory.location(number));
        let Some(location) = found.filter(|found| key.is_none_or(|key| key == found.key())) else {
            return refusal(&DirectoryError::Unknown);
        };
        let done = match (request.code, key) {
            (Code::GET, _) => {
                let entry = directory.entry(location).ok_or(DirectoryError::Unknown);
                let links = entry.map(|entry| link_format::encode(entry.links.iter()));
                links.map(|links| Response::content(links, content_format::LINK_FORMAT))
            }
            (Code::POST | Code::DELETE, None) => Err(DirectoryError::Forbidden),
            (Code::POST, _) if !request.payload.is_empty() => {
                Err(DirectoryError::Bad("an update has no payload; register anew for other links".to_owned()))
            }
            (Code::POST, _) => {
                let updated = directory.handle_update(now, caller, location, request.queries());
                updated.map(|()| Response::new(Code::CHANGED))
            }
            (Code::DELETE, _) => directory.handle_removal(now, caller, location).map(|()| Response::new(Code::DELETED)),
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
            "res" => directory.find_resources(request.caller, request.queries()),
            _ => directory.find_endpoints(request.caller, request.queries()),
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

fn created(location: RegistrationLocation) -> Response {
    let segments = ["rd".to_owned(), location.number(), location.key()];
    let add =
        |response: Response, segment: &String| response.with_option(OptionNumber::LOCATION_PATH, segment.as_bytes());
    segments.iter().fold(Response::new(Code::CREATED), add)
}

fn refusal(error: &DirectoryError) -> Response {
    match error {
        DirectoryError::Bad(_) | DirectoryError::Long => Response::error(Code::BAD_REQUEST, error.to_string()),
        DirectoryError::Unauthorized => Response::error(Code::UNAUTHORIZED, error.to_string()),
        DirectoryError::Unproved => Response::challenge(error.to_string()),
        DirectoryError::Forbidden => Response::error(Code::FORBIDDEN, error.to_string()),
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
