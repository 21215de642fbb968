//! Which parts of a message are encrypted, and which stay readable (RFC 8613 §4).

use super::Refusal;
use crate::message::{
    CoapMessage, CoapRequest, Code, MessageError, OptionNumber, Options, PAYLOAD_MARKER, encode_uint, write_option,
};

/// The protection class of an option. There are no options of class I: only authenticated ones (RFC 8613 §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// E: encrypted.
    Inner,
    /// U: readable and changeable on the way.
    Outer,
    /// Inside for the peer and outside for proxies: the peer ignores the latter, changed or removed (RFC 8613 Appendix D.5.2).
    Both,
}

/// Options that are not listed are encrypted, known or not (RFC 8613 §4.1); Hop-Limit is for proxies (RFC 8768 §3).
fn class(number: OptionNumber) -> Class {
    match number {
        OptionNumber::OBSERVE => Class::Both,
        OptionNumber::URI_HOST
        | OptionNumber::URI_PORT
        | OptionNumber::OSCORE
        | OptionNumber::HOP_LIMIT
        | OptionNumber::PROXY_URI
        | OptionNumber::PROXY_SCHEME => Class::Outer,
        _ => Class::Inner,
    }
}

/// The plaintext of a message: code, encrypted options, payload (RFC 8613 §5.3). A response says that it is a notification,
/// but not which: the Partial IV does (§4.1.3.5.2).
pub(super) fn plaintext(code: Code, options: Options<'_>, payload: &[u8]) -> Vec<u8> {
    let mut plaintext = vec![code.byte()];
    let mut last = OptionNumber(0);
    for (number, value) in options.filter(|(number, _)| class(*number) != Class::Outer) {
        let is_notification = number == OptionNumber::OBSERVE && code.is_response();
        write_option(&mut plaintext, last, number, if is_notification { &[] } else { value });
        last = number;
    }
    if !payload.is_empty() {
        plaintext.push(PAYLOAD_MARKER);
        plaintext.extend_from_slice(payload);
    }
    plaintext
}

/// The options that stay readable, with the OSCORE option among them.
pub(super) fn outer_options<'a>(options: Options<'a>, oscore: &'a [u8]) -> Vec<(OptionNumber, &'a [u8])> {
    let mut outer: Vec<_> = options.filter(|(number, _)| class(*number) != Class::Inner).collect();
    let place = outer.partition_point(|(number, _)| *number < OptionNumber::OSCORE);
    outer.insert(place, (OptionNumber::OSCORE, oscore));
    outer
}

/// Checks the readable options of a protected message: those that a proxy must not add without being understood, and
/// blocks of the protected message itself, which are not put together here (RFC 8613 §4.1.3.4.2).
pub(super) fn check_outer(options: Options<'_>) -> Result<(), Refusal> {
    let mut last = OptionNumber(0);
    for (number, value) in options {
        let is_repeated = number == last && !number.is_repeatable();
        last = number;
        if matches!(number, OptionNumber::BLOCK1 | OptionNumber::BLOCK2) {
            return Err(Refusal::OuterBlocks);
        }
        if number.is_critical() && (is_repeated || !number.accepts(value)) {
            return Err(Refusal::BadOption(number));
        }
    }
    Ok(())
}

/// The readable options that count beside the encrypted ones. Whoever touched the message last wrote them, so they say at most
/// under which host and port this end was asked and how often the request may go on, and nothing that the sender said inside.
/// Proxy-Uri and Proxy-Scheme count inside alone: no one else decides where what was opened goes (RFC 8613 §4.1.3.2).
fn counting<'a>(inner: Options<'a>, outer: Options<'a>) -> impl Iterator<Item = (OptionNumber, &'a [u8])> {
    const SERVER: [OptionNumber; 4] =
        [OptionNumber::URI_HOST, OptionNumber::URI_PORT, OptionNumber::PROXY_URI, OptionNumber::PROXY_SCHEME];
    let names_server = SERVER.iter().any(|number| inner.value(*number).is_some());
    let limits_hops = inner.value(OptionNumber::HOP_LIMIT).is_some();
    outer.filter(move |(number, _)| match *number {
        OptionNumber::URI_HOST | OptionNumber::URI_PORT => !names_server,
        OptionNumber::HOP_LIMIT => !limits_hops,
        _ => false,
    })
}

/// A message whose protection was taken off.
#[derive(Debug)]
pub struct Opened {
    code: Code,
    /// The encrypted options, and the readable ones that count.
    options: Vec<u8>,
    plaintext: Vec<u8>,
    payload: usize,
}

impl Opened {
    /// Reads the plaintext of a message with the readable options `outer`, few of which count.
    pub(super) fn read(plaintext: Vec<u8>, outer: Options<'_>) -> Result<Opened, Refusal> {
        let malformed = |_: MessageError| Refusal::Malformed;
        let (&code, rest) = plaintext.split_first().ok_or(Refusal::Malformed)?;
        let (inner, len) = Options::check(rest, 1).map_err(malformed)?;
        let payload = match rest.get(len + 1..) {
            Some([]) => return Err(Refusal::Malformed),
            Some(_) => 1 + len + 1,
            None => plaintext.len(),
        };
        // Nested protection is not defined (RFC 8613 §4.1.3.7).
        if inner.value(OptionNumber::OSCORE).is_some() {
            return Err(Refusal::Malformed);
        }
        let mut all: Vec<_> = inner.chain(counting(inner, outer)).collect();
        all.sort_by_key(|(number, _)| *number);
        let mut options = Vec::with_capacity(len);
        let mut last = OptionNumber(0);
        for (number, value) in all {
            write_option(&mut options, last, number, value);
            last = number;
        }
        Ok(Opened { code: Code::from_byte(code), options, plaintext, payload })
    }

    /// Method, options and payload.
    pub fn view(&self) -> CoapRequest<'_> {
        CoapRequest {
            code: self.code,
            options: Options::new(&self.options),
            payload: &self.plaintext[self.payload..],
            caller: None,
        }
    }

    /// The message before its protection; `outer` is the received message.
    pub fn in_place_of(&self, outer: &CoapMessage<'_>) -> CoapMessage<'_> {
        let view = self.view();
        let CoapMessage { message_type, id, token, .. } = *outer;
        CoapMessage { message_type, code: view.code, id, token, options: view.options, payload: view.payload }
    }

    /// Gives a notification the number that the endpoint tells its order by.
    pub(super) fn set_count(&mut self, count: u32) {
        let options = std::mem::take(&mut self.options);
        let mut buffer = [0; 4];
        let count = encode_uint(count, &mut buffer);
        let mut last = OptionNumber(0);
        for (number, value) in Options::new(&options) {
            let value = if number == OptionNumber::OBSERVE { count } else { value };
            write_option(&mut self.options, last, number, value);
            last = number;
        }
    }
}
