//! Responses that the client may use again (RFC 7252 §5.6).

use std::hash::{Hash, Hasher};
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
    target: u64,
    response: Response,
    fresh_until: Instant,
}

/// Lifetime of a response.
pub fn max_age(response: &Response) -> Duration {
    Duration::from_secs(u64::from(response.max_age.unwrap_or(MAX_AGE)))
}

/// Names a response that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// The same for requests that may share a response.
    request: u64,
    /// The same for all requests to a resource, whatever they accept.
    target: u64,
}

impl CacheKey {
    /// Whether it names a response of this resource.
    pub fn is_of(&self, target: u64) -> bool {
        self.target == target
    }
}

/// The key of a request to a peer; `None` for one whose response is not kept.
pub fn key(secret: &EndpointSecret, table: &TableState, peer: Peer, request: &RequestBuf) -> Option<CacheKey> {
    let (is_forwarded, request) = (request.is_forwarded(), request.view());
    let asked = Asked::read(request.code, request.options, table, false).ok()?;
    // What is critical and not understood is not kept, OSCORE least of all.
    let is_plain =
        asked.unread.is_none() && asked.observe.is_none() && asked.block2.is_none() && asked.no_response.is_none();
    // A client that names its own ETags expects the server's own answer.
    let names_etags = request.etags().next().is_some();
    let may_share = request.code.is_safe() && is_plain && !names_etags && !peer.is_multicast();
    may_share.then(|| {
        // Options of the response may pass for one of them that would be an error for the other.
        let whole = secret.hash((peer, asked.representation, request.payload, is_forwarded));
        CacheKey { request: whole, target: target(secret, peer, &request) }
    })
}

/// The resource of a request.
pub fn target(secret: &EndpointSecret, peer: Peer, request: &CoapRequest<'_>) -> u64 {
    let names = [OptionNumber::URI_HOST, OptionNumber::URI_PORT, OptionNumber::URI_PATH, OptionNumber::URI_QUERY];
    let mut hasher = secret.hasher();
    peer.hash(&mut hasher);
    request.options.filter(|(number, _)| names.contains(number)).for_each(|(number, value)| {
        (number, value).hash(&mut hasher);
    });
    hasher.finish()
}

impl Cache {
    pub fn new(bytes_max: usize) -> Cache {
        Cache { entries: BoundedMap::new(bytes_max), is_on: bytes_max > 0 }
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// A fresh response, with its remaining lifetime.
    pub fn fresh(&self, now: Instant, key: CacheKey) -> Option<Response> {
        let cached = self.entries.get(now, key.request).filter(|cached| now < cached.fresh_until)?;
        let left = cached.fresh_until.since(now).as_secs() as u32;
        Some(Response { max_age: Some(left), ..cached.response.clone() })
    }

    /// The name of a response that is kept but not fresh: the server may confirm it.
    pub fn etag(&self, now: Instant, key: CacheKey) -> Option<ETag> {
        self.entries.get(now, key.request).and_then(|cached| cached.response.etag)
    }

    /// The response that the server confirms by 2.03 Valid, whose options take the place of its own (RFC 7252 §5.9.1.3); `None` when
    /// it is not kept any more.
    pub fn confirm(&mut self, now: Instant, key: CacheKey, valid: &Response) -> Option<Response> {
        let mut confirmed = self.entries.get(now, key.request)?.response.clone();
        if valid.etag.is_some_and(|etag| confirmed.etag != Some(etag)) {
            return None;
        }
        confirmed.max_age = valid.max_age;
        confirmed.options.retain(|(number, _)| valid.options.iter().all(|(new, _)| new != number));
        confirmed.options.extend(valid.options.iter().cloned());
        confirmed.options.sort_by_key(|(number, _)| *number);
        Some(self.insert(now, key, confirmed))
    }

    /// Keeps a response.
    pub fn keep(&mut self, now: Instant, key: CacheKey, response: Response) -> Response {
        let is_kept = response.code == Code::CONTENT && (response.etag.is_some() || !max_age(&response).is_zero());
        if is_kept { self.insert(now, key, response) } else { response }
    }

    /// Drops kept responses of a resource that was changed, in whatever format.
    pub fn invalidate(&mut self, target: u64) {
        self.entries.remove_if(|cached| cached.target == target);
    }

    fn insert(&mut self, now: Instant, key: CacheKey, mut response: Response) -> Response {
        response.payload = std::mem::take(&mut response.payload).into_shared();
        let fresh_until = now + max_age(&response);
        // One with an ETag is worth more than its age: the server may confirm it.
        let ends = if response.etag.is_some() { Instant::NEVER } else { fresh_until };
        let options: usize = response.options.iter().map(|(_, value)| value.len() + 32).sum();
        let bytes = response.payload.len() + options + size_of::<Cached>();
        self.entries.insert(
            key.request,
            Cached { target: key.target, response: response.clone(), fresh_until },
            bytes,
            ends,
        );
        response
    }
}
