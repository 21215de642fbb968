//! Requests as handlers and applications see them.

use super::option::{Options, insert_option, write_option};
use super::{Code, ETag, OptionNumber, encode_uint};
use crate::identity::Caller;

/// The Observe option of a request (RFC 7641 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observe {
    /// Tell the client about each change.
    Register,
    /// Tell it no more.
    Deregister,
}

/// A borrowed request, for a handler.
#[derive(Clone, Copy, Debug)]
pub struct CoapRequest<'a> {
    /// The method.
    pub code: Code,
    /// All options in ascending order.
    pub options: Options<'a>,
    /// The body: all blocks of it if it came in blocks.
    pub payload: &'a [u8],
    /// The client, where the request came from one.
    pub caller: Option<&'a Caller>,
}

impl<'a> CoapRequest<'a> {
    /// The segments of the path, without slashes and escapes.
    pub fn path_segments(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        texts(self.options, OptionNumber::URI_PATH)
    }

    /// The path from the root: `/a/b`; `/` when there is none. Segments with a slash in them look like two.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.path_segments() {
            path.push('/');
            path.push_str(segment);
        }
        if path.is_empty() { "/".to_owned() } else { path }
    }

    /// The segments of the path as they are on the wire, for comparisons.
    pub(crate) fn path_bytes(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.options.values(OptionNumber::URI_PATH)
    }

    /// Whether the path is this one, with or without the leading slash. Allocates nothing.
    pub fn is_path(&self, path: &str) -> bool {
        let mut rest = path.strip_prefix('/').unwrap_or(path).as_bytes();
        let mut is_first = true;
        for segment in self.path_bytes() {
            let separator: &[u8] = if is_first { b"" } else { b"/" };
            let after = rest.strip_prefix(separator).and_then(|rest| rest.strip_prefix(segment));
            // A slash within a segment divides nothing.
            let Some(after) = after.filter(|_| !segment.contains(&b'/')) else { return false };
            is_first = false;
            rest = after;
        }
        // No segment at all is the root; an empty one is something else.
        rest.is_empty() && is_first == matches!(path, "" | "/")
    }

    /// The arguments of the query: `name=value` or `name`.
    pub fn queries(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        texts(self.options, OptionNumber::URI_QUERY)
    }

    /// The value of the first argument `name=value`; empty for a bare `name`.
    pub fn query(&self, name: &str) -> Option<&'a str> {
        self.queries().find_map(|argument| match argument.split_once('=') {
            Some((found, value)) => (found == name).then_some(value),
            None => (argument == name).then_some(""),
        })
    }

    /// The host that the client addressed, where it said so. In a request under OSCORE it may have been changed on the way.
    pub fn host(&self) -> Option<&'a str> {
        texts(self.options, OptionNumber::URI_HOST).next()
    }

    /// The content format that the client wants.
    pub fn accept(&self) -> Option<u16> {
        self.options.uint(OptionNumber::ACCEPT).and_then(|number| u16::try_from(number).ok())
    }

    /// The content format of the payload.
    pub fn content_format(&self) -> Option<u16> {
        self.options.uint(OptionNumber::CONTENT_FORMAT).and_then(|number| u16::try_from(number).ok())
    }

    /// The client's Observe option.
    pub fn observe(&self) -> Option<Observe> {
        match self.options.uint(OptionNumber::OBSERVE)? {
            0 => Some(Observe::Register),
            1 => Some(Observe::Deregister),
            _ => None,
        }
    }

    /// The representations that the client has: answer 2.03 Valid if the right one is among them.
    pub fn etags(&self) -> impl Iterator<Item = ETag> + use<'a> {
        self.options.values(OptionNumber::ETAG).filter_map(ETag::new)
    }

    /// The representations one of which the resource must have; an empty value stands for any.
    pub fn if_match(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.options.values(OptionNumber::IF_MATCH)
    }

    /// Whether the resource must not exist yet.
    pub fn is_if_none_match(&self) -> bool {
        self.options.value(OptionNumber::IF_NONE_MATCH).is_some()
    }

    /// Whether the request names another server (RFC 7252 §5.10.2).
    pub fn is_for_proxy(&self) -> bool {
        let names = [OptionNumber::PROXY_URI, OptionNumber::PROXY_SCHEME];
        self.options.into_iter().any(|(number, _)| names.contains(&number))
    }

    /// The same request of `caller`.
    pub fn of<'c>(self, caller: &'c Caller) -> CoapRequest<'c>
    where
        'a: 'c,
    {
        CoapRequest { caller: Some(caller), ..self }
    }

    /// A copy that owns its bytes.
    pub fn to_owned(&self) -> RequestBuf {
        let (options, payload) = (self.options.as_bytes().to_vec(), self.payload.to_vec());
        RequestBuf { code: self.code, options, payload, ..RequestBuf::default() }
    }
}

/// The values of one option as texts. Received ones were checked for UTF-8 when they came in.
fn texts<'a>(options: Options<'a>, number: OptionNumber) -> impl Iterator<Item = &'a str> {
    options.values(number).map(|value| std::str::from_utf8(value).unwrap_or_default())
}

/// A request that owns its bytes: an endpoint gives it to its driver, and an application builds it.
///
/// ```
/// use thalweg_coap::message::{RequestBuf, content_format};
/// let request = RequestBuf::put("/lamp?room=2", "on").with_content_format(content_format::TEXT);
/// assert!(request.view().is_path("lamp"));
/// assert_eq!(request.view().query("room"), Some("2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBuf {
    code: Code,
    options: Vec<u8>,
    payload: Vec<u8>,
    is_forwarded: bool,
    /// Why it cannot be sent.
    fault: Option<TargetFault>,
}

/// Why a target is no path and query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetFault {
    Fragment,
    BadEscape,
    BadPart,
}

impl RequestBuf {
    /// A request for the path and query in `target`, such as `/a/b?c=d`; escapes like `%20` are decoded. One whose target is
    /// no path and query is refused when it is sent; [`RequestBuf::fault`] says why.
    pub fn new(code: Code, target: &str) -> RequestBuf {
        let fault = target.contains('#').then_some(TargetFault::Fragment);
        let mut request = RequestBuf { code, fault, ..RequestBuf::default() };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = path.split('/').filter(|_| !path.is_empty());
        segments.for_each(|segment| request.insert_part(OptionNumber::URI_PATH, segment));
        let arguments = query.split('&').filter(|_| !query.is_empty());
        arguments.for_each(|argument| request.insert_part(OptionNumber::URI_QUERY, argument));
        request
    }

    /// Why the request cannot be sent: its target has a fragment, an escape that is none, or a part that is too long or no text.
    pub fn fault(&self) -> Option<&'static str> {
        Some(match self.fault? {
            TargetFault::Fragment => "its URI has a fragment (#); write %23 for a # in a path or query",
            TargetFault::BadEscape => "a % in its path or query begins no escape; write %25 for a %",
            TargetFault::BadPart => {
                "a part of its path or query is longer than 255 bytes, its escapes are no UTF-8, or a segment of its path is . or .."
            }
        })
    }

    /// GET
    pub fn get(target: &str) -> RequestBuf {
        RequestBuf::new(Code::GET, target)
    }

    /// PUT with a payload.
    pub fn put(target: &str, payload: impl Into<Vec<u8>>) -> RequestBuf {
        RequestBuf::new(Code::PUT, target).with_payload(payload)
    }

    /// POST with a payload.
    pub fn post(target: &str, payload: impl Into<Vec<u8>>) -> RequestBuf {
        RequestBuf::new(Code::POST, target).with_payload(payload)
    }

    /// DELETE
    pub fn delete(target: &str) -> RequestBuf {
        RequestBuf::new(Code::DELETE, target)
    }

    /// Replaces the payload.
    pub fn with_payload(mut self, payload: impl Into<Vec<u8>>) -> RequestBuf {
        self.payload = payload.into();
        self
    }

    /// Adds an option.
    pub fn with_option(mut self, number: OptionNumber, value: &[u8]) -> RequestBuf {
        self.insert(number, value);
        self
    }

    /// Adds an option whose value is a number.
    pub fn with_uint(self, number: OptionNumber, value: u32) -> RequestBuf {
        self.with_option(number, encode_uint(value, &mut [0; 4]))
    }

    /// Sets the content format of the payload.
    pub fn with_content_format(self, format: u16) -> RequestBuf {
        self.with_uint(OptionNumber::CONTENT_FORMAT, u32::from(format))
    }

    /// Sets the accepted content format of the response.
    pub fn with_accept(self, format: u16) -> RequestBuf {
        self.with_uint(OptionNumber::ACCEPT, u32::from(format))
    }

    /// Registers for changes of the resource, or takes that back.
    pub fn with_observe(self, observe: Observe) -> RequestBuf {
        self.with_uint(OptionNumber::OBSERVE, u32::from(observe == Observe::Deregister))
    }

    /// Says that the response is for somebody else: options of it that are not understood are passed on, also critical ones, and
    /// those of them that are not safe to forward end the request with an error (RFC 7252 §5.7.1).
    #[must_use]
    pub fn forwarded(self) -> RequestBuf {
        RequestBuf { is_forwarded: true, ..self }
    }

    /// Whether the response is for somebody else.
    pub fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    /// The method.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The request as handlers see it.
    pub fn view(&self) -> CoapRequest<'_> {
        CoapRequest { code: self.code, options: Options::new(&self.options), payload: &self.payload, caller: None }
    }

    /// Refills this request with a received one and keeps the buffers, so that nothing is allocated in steady state.
    pub(crate) fn refill(&mut self, code: Code, options: Options<'_>, payload: &[u8]) {
        self.code = code;
        (self.is_forwarded, self.fault) = (false, None);
        self.options.clear();
        self.options.extend_from_slice(options.as_bytes());
        self.payload.clear();
        self.payload.extend_from_slice(payload);
    }

    /// Replaces the body by one that came in blocks.
    pub(crate) fn set_payload(&mut self, payload: Vec<u8>) {
        self.payload = payload;
    }

    /// Sets an option in the place of all of its number.
    pub(crate) fn replace_option(&mut self, number: OptionNumber, value: &[u8]) {
        let mut options = Vec::with_capacity(self.options.len() + value.len());
        let mut last = OptionNumber(0);
        for (found, kept) in Options::new(&self.options).filter(|(found, _)| *found != number) {
            write_option(&mut options, last, found, kept);
            last = found;
        }
        insert_option(&mut options, number, value);
        self.options = options;
    }

    /// Bytes that the request holds.
    pub(crate) fn capacity(&self) -> usize {
        self.options.capacity() + self.payload.capacity()
    }

    /// Adds a part of the target as it is written.
    fn insert_part(&mut self, number: OptionNumber, part: &str) {
        match unescape(part) {
            Ok(value) if number.accepts(&value) => self.insert(number, &value),
            Ok(_) => self.fault = Some(TargetFault::BadPart),
            Err(BadEscape) => self.fault = Some(TargetFault::BadEscape),
        }
    }

    fn insert(&mut self, number: OptionNumber, value: &[u8]) {
        insert_option(&mut self.options, number, value);
    }
}

impl Default for RequestBuf {
    fn default() -> RequestBuf {
        RequestBuf { code: Code::EMPTY, options: Vec::new(), payload: Vec::new(), is_forwarded: false, fault: None }
    }
}

/// A `%` without two hexadecimal digits.
pub(crate) struct BadEscape;

/// Replaces `%hh` by the byte it stands for (RFC 3986 §2.1).
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, BadEscape> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        (rest, _) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let (high, low) = hex_digit(*high).zip(hex_digit(*low)).ok_or(BadEscape)?;
                (tail, bytes.push(high << 4 | low))
            }
            (b'%', _) => return Err(BadEscape),
            _ => (tail, bytes.push(*first)),
        };
    }
    Ok(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
