//! The way of a request to another thing and back.

use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::uri::resource_of;
use super::{Destinations, ProxyUri};
use crate::interaction::handler::{Class, ClassId, Handler};
use crate::message::{CoapRequest, Code, OptionNumber, RequestBuf, Response};
use crate::resource::{RemoteName, ResourceError};
use crate::service::{Remote, Things, with_host};

/// Asks other things for clients. Cheap to clone.
#[derive(Clone)]
pub struct Relay {
    things: Things,
    remote: Arc<dyn Remote>,
    patience: Duration,
    /// The name of this proxy where a request passed too many.
    identifier: Arc<str>,
}

impl Relay {
    /// Answers come from the network store of `things` while they are fresh, else by `remote`, for which a request waits no
    /// longer than `patience`. It goes by a name that is drawn by lot, such as `thalweg-4f5a09be`.
    pub fn new(things: Things, remote: Arc<dyn Remote>, patience: Duration) -> Relay {
        let things = things.with_patience(patience);
        let lot = RandomState::new().hash_one(()) >> 32;
        Relay { things, remote, patience, identifier: format!("thalweg-{lot:08x}").into() }
    }

    /// The same by another name, which the answer 5.08 tells (RFC 8768 §4). Spaces in it become hyphens.
    #[must_use]
    pub fn with_identifier(self, identifier: &str) -> Relay {
        Relay { identifier: identifier.replace(' ', "-").into(), ..self }
    }

    /// Answers a request with what the resource `name` answers. Options that are not understood go along, there and back, if
    /// they are safe to forward; else they are refused (RFC 7252 §5.7.1).
    fn pass(&self, name: &RemoteName, request: &CoapRequest<'_>) -> Response {
        let mut foreign = request.options.not_understood();
        if let Some((number, _)) = foreign.find(|(number, _)| number.is_unsafe()) {
            return Response::error(Code::BAD_OPTION, format!("{number} is not understood and not safe to forward"));
        }
        let hops = match hops_left(request) {
            Some(0) => return Response::error(Code::HOP_LIMIT_REACHED, self.identifier.to_string()),
            Some(hops) => hops,
            None => return Response::error(Code::BAD_REQUEST, "Hop-Limit is a number from 1 to 255"),
        };
        let answer = match request.code {
            Code::GET if !is_conditional(request) => self.get(name, request, hops),
            _ => self.send(name, request, hops),
        };
        match answer {
            Ok(response) if response.code == Code::HOP_LIMIT_REACHED => {
                self.hop_limit_reached(&String::from_utf8_lossy(&response.payload))
            }
            Ok(response) => response,
            Err(ResourceError::HopLimitReached(proxies)) => self.hop_limit_reached(&proxies),
            Err(ResourceError::Answered(response, _)) => between_neighbours_removed(Response::clone(&response)),
            Err(error) => error.response(),
        }
    }

    /// Tells of the proxies that a request passed, and of this one (RFC 8768 §4). One that is among them already must not tell
    /// so.
    fn hop_limit_reached(&self, proxies: &str) -> Response {
        if proxies.split(' ').any(|proxy| proxy == &*self.identifier) {
            return Response::error(
                Code::BAD_GATEWAY,
                format!("the request goes round in a loop of proxies: {proxies}"),
            );
        }
        let said = match self.identifier.len() + 1 + proxies.len() > IDENTIFIERS_MAX_BYTES {
            true => proxies.to_owned(),
            false => format!("{} {proxies}", self.identifier).trim_end().to_owned(),
        };
        Response::error(Code::HOP_LIMIT_REACHED, said)
    }

    fn get(&self, name: &RemoteName, request: &CoapRequest<'_>, hops: u8) -> Result<Response, ResourceError> {
        let (representation, etag) = self.things.relay_within(name, request.accept(), hops)?;
        let max_age = u32::try_from(representation.max_age.as_secs()).unwrap_or(u32::MAX);
        let is_known = etag.is_some_and(|etag| request.etags().any(|known| known == etag));
        let options = representation.options.clone();
        let response = if is_known { Response::new(Code::VALID) } else { representation.into_response() };
        let response = Response { options, ..response.with_max_age(max_age) };
        Ok(etag.into_iter().fold(response, Response::with_etag))
    }

    /// Sends the request as it is, and forgets what is known of the resource unless it was read only.
    fn send(&self, name: &RemoteName, request: &CoapRequest<'_>, hops: u8) -> Result<Response, ResourceError> {
        let onward = RequestBuf::new(request.code, &format!("/{}", name.path)).with_payload(request.payload);
        let mut onward = with_host(name, onward);
        for number in PASSED_ON {
            for value in request.options.values(number) {
                onward = onward.with_option(number, value);
            }
        }
        for (number, value) in foreign(request) {
            onward = onward.with_option(number, value);
        }
        let onward = onward.with_option(OptionNumber::HOP_LIMIT, &[hops]).forwarded();
        let (sender, answer) = mpsc::sync_channel(1);
        let forget = (!request.code.is_safe()).then(|| self.things.forgetter(name));
        let completion = move |outcome| {
            // After the patience was over, the old state may have been asked for and kept.
            if let Some(forget) = forget {
                forget();
            }
            // The receiver is gone when it took too long.
            let _ = sender.send(outcome);
        };
        self.remote.request(&name.thing, onward, Box::new(completion));
        let outcome = answer.recv_timeout(self.patience);
        if !request.code.is_safe() {
            self.things.forget(name);
        }
        let late = || Err(ResourceError::NoAnswer(format!("{} gave no answer about /{}", name.thing, name.path)));
        outcome.unwrap_or_else(|_| late()).map(between_neighbours_removed)
    }
}

/// A response as it goes on: blocks with their sizes, and registrations, are between neighbours.
fn between_neighbours_removed(response: Response) -> Response {
    Response { block: None, observe: None, size: None, ..response }
}

/// Whether the answer depends on more than the resource and its format.
fn is_conditional(request: &CoapRequest<'_>) -> bool {
    let is_conditional = request.if_match().next().is_some() || request.is_if_none_match();
    is_conditional || !request.payload.is_empty() || foreign(request).next().is_some()
}

/// Options that are not understood, and that no other place passes on.
fn foreign<'a>(request: &CoapRequest<'a>) -> impl Iterator<Item = (OptionNumber, &'a [u8])> + use<'a> {
    let is_ours = |number: OptionNumber| PASSED_ON.contains(&number) || number == OptionNumber::HOP_LIMIT;
    request.options.not_understood().filter(move |(number, _)| !is_ours(*number))
}

/// The Hop-Limit with which a request goes on; `None` for one that must be rejected (RFC 8768 §3).
fn hops_left(request: &CoapRequest<'_>) -> Option<u8> {
    match request.options.value(OptionNumber::HOP_LIMIT) {
        None => Some(HOPS - 1),
        Some([hops]) => hops.checked_sub(1),
        Some(_) => None,
    }
}

/// Answers requests that name another server, for a [`Routes::with_proxy`](crate::interaction::routes::Routes::with_proxy).
pub struct ForwardProxy {
    relay: Relay,
    destinations: RwLock<Destinations>,
}

impl ForwardProxy {
    /// Goes to these destinations only.
    pub fn new(relay: Relay, destinations: Destinations) -> ForwardProxy {
        ForwardProxy { relay, destinations: RwLock::new(destinations) }
    }

    /// Goes to other destinations from now on.
    pub fn set_destinations(&self, destinations: Destinations) {
        *self.destinations.write().unwrap_or_else(std::sync::PoisonError::into_inner) = destinations;
    }
}

impl Handler for ForwardProxy {
    fn class(&self) -> Class {
        Class::Pooled(ClassId::BLOCKING)
    }

    fn handle(&self, request: &CoapRequest<'_>) -> Response {
        let uri = match ProxyUri::of(request) {
            Ok(Some(uri)) => uri,
            Ok(None) => return Response::new(Code::PROXYING_NOT_SUPPORTED),
            Err(error) => return Response::error(Code::BAD_OPTION, error.to_string()),
        };
        if uri.scheme != "coap" {
            let reason = format!("this proxy asks by coap, not by {}", uri.scheme);
            return Response::error(Code::PROXYING_NOT_SUPPORTED, reason);
        }
        let allowed = self.destinations.read().unwrap_or_else(std::sync::PoisonError::into_inner).allow(&uri);
        if !allowed {
            return Response::error(Code::FORBIDDEN, format!("this proxy does not go to {}", uri.host));
        }
        let name = uri.name();
        if self.relay.remote.is_protected(&name.thing) {
            // The keys are those of this proxy, and not of whoever asks it.
            return Response::error(Code::FORBIDDEN, format!("this proxy does not lend its keys for {}", uri.host));
        }
        self.relay.pass(&name, request)
    }
}

/// Answers requests below a path by asking another thing.
pub struct ReverseProxy {
    relay: Relay,
    /// Segments of the path.
    root: Vec<String>,
    /// The thing, and the path there without slashes at its ends.
    target: RemoteName,
    /// The segments of that path.
    target_path: Vec<Vec<u8>>,
}

impl ReverseProxy {
    /// Requests for `root` and below, such as `boiler`, go to `target` and below.
    pub fn new(relay: Relay, root: &str, target: RemoteName) -> ReverseProxy {
        let root = root.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        let target = RemoteName { path: target.path.trim_matches('/').to_owned(), ..target };
        let at_target = RequestBuf::get(&format!("/{}", target.path));
        let target_path = at_target.view().path_bytes().map(<[u8]>::to_vec).collect();
        ReverseProxy { relay, root, target, target_path }
    }

    /// Whether a request is for its path or below.
    pub fn covers(&self, request: &CoapRequest<'_>) -> bool {
        let mut segments = request.path_segments();
        self.root.iter().all(|expected| segments.next() == Some(expected))
    }

    /// Answers a request below its path; `None` for another.
    pub fn handle(&self, request: &CoapRequest<'_>) -> Option<Response> {
        if !self.covers(request) {
            return None;
        }
        let rest = resource_of(request, self.root.len());
        let joint = if self.target.path.is_empty() || rest.is_empty() || rest.starts_with('?') { "" } else { "/" };
        let path = format!("{}{joint}{rest}", self.target.path);
        let response = self.relay.pass(&RemoteName { thing: self.target.thing.clone(), path }, request);
        Some(self.with_own_location(response))
    }

    /// The response with the location that the resource has here; without one where it is none of those that this proxy stands
    /// for (RFC 7252 §5.10.7).
    fn with_own_location(&self, response: Response) -> Response {
        let (location, options): (Vec<_>, Vec<_>) =
            response.options.into_iter().partition(|(number, _)| LOCATION.contains(number));
        let response = Response { options, ..response };
        let of = |wanted: OptionNumber| {
            location.iter().filter(move |(number, _)| *number == wanted).map(|(_, value)| value.as_slice())
        };
        let path: Vec<&[u8]> = of(OptionNumber::LOCATION_PATH).collect();
        let is_below = path.len() >= self.target_path.len() && path.iter().zip(&self.target_path).all(|(a, b)| *a == b);
        let has_dots = path.iter().any(|segment| matches!(*segment, b"." | b".."));
        // A query alone is one of the path that was asked for.
        let path: Vec<&[u8]> = match path.is_empty() {
            true => Vec::new(),
            false if !is_below || has_dots => return response,
            false => {
                self.root.iter().map(String::as_bytes).chain(path[self.target_path.len()..].iter().copied()).collect()
            }
        };
        let add = |response: Response, segment: &[u8]| response.with_option(OptionNumber::LOCATION_PATH, segment);
        let response = path.into_iter().fold(response, add);
        of(OptionNumber::LOCATION_QUERY)
            .fold(response, |response, argument| response.with_option(OptionNumber::LOCATION_QUERY, argument))
    }

    /// The path, without the slash in front.
    pub fn root(&self) -> String {
        self.root.join("/")
    }
}

/// Options that a request takes along; others that are understood are between neighbours.
const PASSED_ON: [OptionNumber; 5] = [
    OptionNumber::IF_MATCH,
    OptionNumber::ETAG,
    OptionNumber::IF_NONE_MATCH,
    OptionNumber::CONTENT_FORMAT,
    OptionNumber::ACCEPT,
];
/// The options that together are the location of what was created (RFC 7252 §5.10.7).
const LOCATION: [OptionNumber; 2] = [OptionNumber::LOCATION_PATH, OptionNumber::LOCATION_QUERY];
/// Of a request that has none (RFC 8768 §3).
const HOPS: u8 = 16;
/// Bytes of the names of proxies in an answer, so that it stays one message (RFC 8768 §4).
const IDENTIFIERS_MAX_BYTES: usize = 1024;
