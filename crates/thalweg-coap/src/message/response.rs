//! Responses as handlers write them and applications read them.

use std::ops::Deref;
use std::sync::Arc;

use super::{Block, Code, ETag, OptionNumber};
use crate::proxy::escaped;

/// Payloads up to this size are held in place by [`Body::copy_from`].
const INLINE_MAX_BYTES: usize = 62;

/// The bytes of a response. Short and constant ones cost no allocation, shared ones no copy.
#[derive(Clone, Debug)]
pub struct Body(Bytes);

#[derive(Clone, Debug)]
enum Bytes {
    Constant(&'static [u8]),
    Inline(u8, [u8; INLINE_MAX_BYTES]),
    Owned(Vec<u8>),
    Shared(Arc<[u8]>),
}

impl Body {
    /// No bytes.
    pub const EMPTY: Body = Body(Bytes::Constant(&[]));

    /// A body that lives as long as the program.
    pub const fn constant(bytes: &'static [u8]) -> Body {
        Body(Bytes::Constant(bytes))
    }

    /// A copy; up to 62 bytes without an allocation.
    pub fn copy_from(bytes: &[u8]) -> Body {
        let mut inline = [0; INLINE_MAX_BYTES];
        match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Body(Bytes::Inline(bytes.len() as u8, inline))
            }
            None => Body(Bytes::Owned(bytes.to_vec())),
        }
    }

    /// The body such that clones of it share the bytes.
    pub fn into_shared(self) -> Body {
        match self.0 {
            Bytes::Owned(bytes) => Body(Bytes::Shared(bytes.into())),
            other => Body(other),
        }
    }

    /// The bytes as a vector.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Bytes::Owned(bytes) => bytes,
            other => Body(other).to_vec(),
        }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Constant(bytes) => bytes,
            Bytes::Inline(len, bytes) => &bytes[..usize::from(*len)],
            Bytes::Owned(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        **self == **other
    }
}

impl Eq for Body {}

impl Default for Body {
    fn default() -> Body {
        Body::EMPTY
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body(Bytes::Owned(bytes))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body(Bytes::Owned(text.into_bytes()))
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Body {
        Body(Bytes::Shared(bytes))
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::constant(text.as_bytes())
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Body {
        Body::constant(bytes)
    }
}

/// A response, from a handler or for an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Success or what went wrong.
    pub code: Code,
    /// Content format of the payload.
    pub content_format: Option<u16>,
    /// Seconds for which the response may be used again; absent means 60 (RFC 7252 §5.10.5).
    pub max_age: Option<u32>,
    /// Names the representation.
    pub etag: Option<ETag>,
    /// From a handler: any number accepts a registration, the endpoint counts by itself. To an application: the number
    /// of a notification; absent when the server does not notify.
    pub observe: Option<u32>,
    /// From a handler that accepts a registration: whether the client has to acknowledge each notification (CON) or, but for one a
    /// day, none (NON). Absent lets the endpoint choose: the first one, and the latest one some seconds after it was sent.
    pub is_confirmed: Option<bool>,
    /// From a handler: see [`Response::challenge`].
    pub is_challenge: bool,
    /// To an application that asked for one block: which block this is. The endpoint cuts responses itself.
    pub block: Option<Block>,
    /// Bytes of the whole body where the server said so.
    pub size: Option<u32>,
    /// The body: all blocks of it.
    pub payload: Body,
    /// Any other options, each with its value; see [`Response::with_option`].
    pub options: Vec<(OptionNumber, Vec<u8>)>,
}

impl Response {
    /// A response without payload.
    pub fn new(code: Code) -> Response {
        Response {
            code,
            content_format: None,
            max_age: None,
            etag: None,
            observe: None,
            is_confirmed: None,
            is_challenge: false,
            block: None,
            size: None,
            payload: Body::EMPTY,
            options: Vec::new(),
        }
    }

    /// 2.05 Content with a payload.
    pub fn content(payload: impl Into<Body>, format: u16) -> Response {
        Response { content_format: Some(format), payload: payload.into(), ..Response::new(Code::CONTENT) }
    }

    /// An error with a diagnostic payload for people (RFC 7252 §5.5.2).
    pub fn error(code: Code, diagnosis: impl Into<Body>) -> Response {
        Response { payload: diagnosis.into(), ..Response::new(code) }
    }

    /// 4.01 for a client that may be at another address than its request says: the endpoint adds the Echo value with which it is to
    /// ask again (RFC 9175 §2.3). Where a client has proved its address, this only says that it may not.
    pub fn challenge(diagnosis: impl Into<Body>) -> Response {
        Response { is_challenge: true, ..Response::error(Code::UNAUTHORIZED, diagnosis) }.with_max_age(0)
    }

    /// The path and query of what the request has created, escaped as in a URI (RFC 7252 §5.10.7); `None` where the server names none.
    pub fn location(&self) -> Option<String> {
        let texts = |wanted: OptionNumber| {
            let values = self.options.iter().filter(move |(number, _)| *number == wanted);
            values.map(|(_, value)| escaped(&String::from_utf8_lossy(value)))
        };
        let path: String = texts(OptionNumber::LOCATION_PATH).map(|segment| format!("/{segment}")).collect();
        let query: Vec<String> = texts(OptionNumber::LOCATION_QUERY).collect();
        match (path.is_empty(), query.is_empty()) {
            (true, true) => None,
            (false, true) => Some(path),
            (_, false) => Some(format!("{path}?{}", query.join("&"))),
        }
    }

    /// Says how long the response may be used again.
    pub fn with_max_age(mut self, seconds: u32) -> Response {
        self.max_age = Some(seconds);
        self
    }

    /// Names the representation.
    pub fn with_etag(mut self, etag: ETag) -> Response {
        self.etag = Some(etag);
        self
    }

    /// Accepts the client's registration, if it asks for one.
    pub fn observable(mut self) -> Response {
        self.observe = Some(0);
        self
    }

    /// Accepts the client's registration, if it asks for one, with notifications that it has to acknowledge or not.
    pub fn observable_by(mut self, is_confirmed: bool) -> Response {
        self.is_confirmed = Some(is_confirmed);
        self.observable()
    }

    /// Adds an option that has no field of its own, such as Location-Path.
    pub fn with_option(mut self, number: OptionNumber, value: &[u8]) -> Response {
        let place = self.options.partition_point(|(found, _)| *found <= number);
        self.options.insert(place, (number, value.to_vec()));
        self
    }
}
