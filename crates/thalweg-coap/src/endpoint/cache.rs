//! Responses that the client may use again (RFC 7252 §5.6).

use std::time::Duration;

use thalweg_base::time::Instant;

use super::Peer;
use super::asked::Asked;
use super::bounded::BoundedMap;
use super::secret::{EndpointSecret, TableState};
use crate::message::{CoapRequest, Code, ETag, OptionNumber, RequestBuf, Response};

/// Max-Age of a response that does not say it, in seconds.
const MAX_AGE: u32 = 60;

/// Responses by request.
#[derive(Debug)]
pub struct Cache {
    entries: BoundedMap<Cached>,
    is_on: bool,
}

#[derive(Debug)]
struct Cached {
    response: Response,
    fresh_until: Instant,
}

/// Lifetime of a response.
pub fn max_age(response: &Response) -> Duration {
    Duration::from_secs(u64::from(response.max_age.unwrap_or(MAX_AGE)))
}

/// The same for requests to a peer that may share a response; `None` for one whose response is not kept.
pub fn key(secret: &EndpointSecret, table: &TableState, peer: Peer, request: &CoapRequest<'_>) -> Option<u64> {
    let asked = Asked::read(request.code, request.options, table).ok()?;
    let is_plain = asked.observe.is_none() && asked.block2.is_none() && asked.no_response.is_none();
    // A client that names its own ETags expects the server's own answer.
    let names_etags = request.etags().next().is_some();
    let may_share = request.code.is_safe() && is_plain && !names_etags && !peer.is_multicast();
    may_share.then(|| secret.hash((peer, asked.representation, request.payload)))
}

/// The key under which the resource that a request changes would be kept.
pub fn key_of_target(
    secret: &EndpointSecret,
    table: &TableState,
    peer: Peer,
    request: &CoapRequest<'_>,
) -> Option<u64> {
    let names = [OptionNumber::URI_HOST, OptionNumber::URI_PORT, OptionNumber::URI_PATH, OptionNumber::URI_QUERY];
    let target = request.options.filter(|(number, _)| names.contains(number));
    let get = target.fold(RequestBuf::get(""), |get, (number, value)| get.with_option(number, value));
    key(secret, table, peer, &get.view())
}

impl Cache {
    pub fn new(bytes_max: usize) -> Cache {
        Cache { entries: BoundedMap::new(bytes_max), is_on: bytes_max > 0 }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// A fresh response, with its remaining lifetime.
    pub fn fresh(&self, now: Instant, key: u64) -> Option<Response> {
        let cached = self.entries.get(now, key).filter(|cached| now < cached.fresh_until)?;
        let left = cached.fresh_until.since(now).as_secs() as u32;
        Some(Response { max_age: Some(left), ..cached.response.clone() })
    }

    /// The name of a response that is kept but not fresh: the server may confirm it.
    pub fn etag(&self, now: Instant, key: u64) -> Option<ETag> {
        self.entries.get(now, key).and_then(|cached| cached.response.etag)
    }

    /// Keeps a response, or, for 2.03 Valid, gives the one that the server confirmed.
    pub fn update(&mut self, now: Instant, key: u64, response: Response) -> Response {
        if response.code == Code::VALID {
            let Some(mut cached) = self.entries.take(now, key) else { return response };
            cached.response.max_age = response.max_age;
            cached.response.etag = response.etag.or(cached.response.etag);
            return self.insert(now, key, cached.response);
        }
        let is_kept = response.code == Code::CONTENT && (response.etag.is_some() || !max_age(&response).is_zero());
        if is_kept { self.insert(now, key, response) } else { response }
    }

    /// Drops kept responses: the resource was changed.
    pub fn invalidate(&mut self, now: Instant, key: u64) {
        self.entries.take(now, key);
    }

    fn insert(&mut self, now: Instant, key: u64, mut response: Response) -> Response {
        response.payload = std::mem::take(&mut response.payload).into_shared();
        let fresh_until = now + max_age(&response);
        // One with an ETag is worth more than its age: the server may confirm it.
        let ends = if response.etag.is_some() { Instant::NEVER } else { fresh_until };
        let options: usize = response.options.iter().map(|(_, value)| value.len() + 32).sum();
        let bytes = response.payload.len() + options + size_of::<Cached>();
        self.entries.insert(key, Cached { response: response.clone(), fresh_until }, bytes, ends);
        response
    }
}
