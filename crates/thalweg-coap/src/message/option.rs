//! Options: their numbers, the properties of numbers, their values and their encoding (RFC 7252 §3.1, §5.4).

use std::fmt;

use super::wire::{MessageError, PAYLOAD_MARKER};

/// The meaning of an option. The number itself says how a receiver that does not know it behaves (RFC 7252 §5.4.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OptionNumber(pub u16);

/// The definition of an option: longest and shortest value in bytes, whether it may occur more than once, whether
/// it is text.
#[derive(Clone, Copy)]
struct Definition {
    number: OptionNumber,
    name: &'static str,
    lengths: (u16, u16),
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    One,
    Many,
    OneText,
    ManyTexts,
}

const fn define(number: OptionNumber, name: &'static str, lengths: (u16, u16), form: Form) -> Definition {
    Definition { number, name, lengths, form }
}

/// The options that this crate knows, by number.
const DEFINITIONS: [Definition; 24] = [
    define(OptionNumber::IF_MATCH, "If-Match", (0, 8), Form::Many),
    define(OptionNumber::URI_HOST, "Uri-Host", (1, 255), Form::OneText),
    define(OptionNumber::ETAG, "ETag", (1, 8), Form::Many),
    define(OptionNumber::IF_NONE_MATCH, "If-None-Match", (0, 0), Form::One),
    define(OptionNumber::OBSERVE, "Observe", (0, 3), Form::One),
    define(OptionNumber::URI_PORT, "Uri-Port", (0, 2), Form::One),
    define(OptionNumber::LOCATION_PATH, "Location-Path", (0, 255), Form::ManyTexts),
    define(OptionNumber::OSCORE, "OSCORE", (0, 255), Form::One),
    define(OptionNumber::URI_PATH, "Uri-Path", (0, 255), Form::ManyTexts),
    define(OptionNumber::CONTENT_FORMAT, "Content-Format", (0, 2), Form::One),
    define(OptionNumber::MAX_AGE, "Max-Age", (0, 4), Form::One),
    define(OptionNumber::URI_QUERY, "Uri-Query", (0, 255), Form::ManyTexts),
    define(OptionNumber::HOP_LIMIT, "Hop-Limit", (1, 1), Form::One),
    define(OptionNumber::ACCEPT, "Accept", (0, 2), Form::One),
    define(OptionNumber::LOCATION_QUERY, "Location-Query", (0, 255), Form::ManyTexts),
    define(OptionNumber::BLOCK2, "Block2", (0, 3), Form::One),
    define(OptionNumber::BLOCK1, "Block1", (0, 3), Form::One),
    define(OptionNumber::SIZE2, "Size2", (0, 4), Form::One),
    define(OptionNumber::PROXY_URI, "Proxy-Uri", (1, 1034), Form::OneText),
    define(OptionNumber::PROXY_SCHEME, "Proxy-Scheme", (1, 255), Form::OneText),
    define(OptionNumber::SIZE1, "Size1", (0, 4), Form::One),
    define(OptionNumber::ECHO, "Echo", (1, 40), Form::One),
    define(OptionNumber::NO_RESPONSE, "No-Response", (0, 1), Form::One),
    define(OptionNumber::REQUEST_TAG, "Request-Tag", (0, 8), Form::Many),
];

/// Where the definition of each low number stands; behind the end for numbers without one. Every request asks several times.
const PLACES: [u8; 64] = {
    let mut places = [u8::MAX; 64];
    let mut index = 0;
    while index < DEFINITIONS.len() {
        let number = DEFINITIONS[index].number.0 as usize;
        if number < places.len() {
            places[number] = index as u8;
        }
        index += 1;
    }
    places
};

impl OptionNumber {
    /// If-Match: go on only if the resource has one of these ETags.
    pub const IF_MATCH: OptionNumber = OptionNumber(1);
    /// Uri-Host
    pub const URI_HOST: OptionNumber = OptionNumber(3);
    /// ETag
    pub const ETAG: OptionNumber = OptionNumber(4);
    /// If-None-Match: go on only if there is no such resource.
    pub const IF_NONE_MATCH: OptionNumber = OptionNumber(5);
    /// Observe (RFC 7641)
    pub const OBSERVE: OptionNumber = OptionNumber(6);
    /// Uri-Port
    pub const URI_PORT: OptionNumber = OptionNumber(7);
    /// Location-Path
    pub const LOCATION_PATH: OptionNumber = OptionNumber(8);
    /// OSCORE (RFC 8613)
    pub const OSCORE: OptionNumber = OptionNumber(9);
    /// Uri-Path: one segment.
    pub const URI_PATH: OptionNumber = OptionNumber(11);
    /// Content-Format
    pub const CONTENT_FORMAT: OptionNumber = OptionNumber(12);
    /// Max-Age, in seconds.
    pub const MAX_AGE: OptionNumber = OptionNumber(14);
    /// Uri-Query: one argument.
    pub const URI_QUERY: OptionNumber = OptionNumber(15);
    /// Hop-Limit (RFC 8768)
    pub const HOP_LIMIT: OptionNumber = OptionNumber(16);
    /// Accept: the content format that the client wants.
    pub const ACCEPT: OptionNumber = OptionNumber(17);
    /// Location-Query
    pub const LOCATION_QUERY: OptionNumber = OptionNumber(20);
    /// Block2: a block of the response (RFC 7959)
    pub const BLOCK2: OptionNumber = OptionNumber(23);
    /// Block1: a block of the request (RFC 7959)
    pub const BLOCK1: OptionNumber = OptionNumber(27);
    /// Size2: bytes of the whole response (RFC 7959)
    pub const SIZE2: OptionNumber = OptionNumber(28);
    /// Proxy-Uri
    pub const PROXY_URI: OptionNumber = OptionNumber(35);
    /// Proxy-Scheme
    pub const PROXY_SCHEME: OptionNumber = OptionNumber(39);
    /// Size1: bytes of the whole request (RFC 7959)
    pub const SIZE1: OptionNumber = OptionNumber(60);
    /// Echo: proves that the client can be reached (RFC 9175 §2)
    pub const ECHO: OptionNumber = OptionNumber(252);
    /// No-Response: classes of responses that the client does not want (RFC 7967)
    pub const NO_RESPONSE: OptionNumber = OptionNumber(258);
    /// Request-Tag: tells block-wise requests of one client apart (RFC 9175 §3)
    pub const REQUEST_TAG: OptionNumber = OptionNumber(292);

    /// Whether a receiver that does not understand the option must refuse the message.
    pub const fn is_critical(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether a proxy that does not understand the option must not forward it.
    pub const fn is_unsafe(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether requests that differ in this option only may share a cached response.
    pub const fn is_no_cache_key(self) -> bool {
        self.0 & 0x1e == 0x1c
    }

    /// Whether the option may occur more than once. False for options that this crate does not know.
    pub fn is_repeatable(self) -> bool {
        self.definition().is_some_and(|known| matches!(known.form, Form::Many | Form::ManyTexts))
    }

    /// Whether this crate knows the option and `value` has a length and form that is defined for it. A value that has
    /// not makes the option one that is not understood (RFC 7252 §5.4.3).
    pub fn accepts(self, value: &[u8]) -> bool {
        let Some(known) = self.definition() else { return false };
        let fits = (usize::from(known.lengths.0)..=usize::from(known.lengths.1)).contains(&value.len());
        // Who makes a URI of them would leave the path that rules were about (§5.10.1).
        let is_step = self == OptionNumber::URI_PATH && matches!(value, b"." | b"..");
        fits && !is_step && (matches!(known.form, Form::One | Form::Many) || std::str::from_utf8(value).is_ok())
    }

    /// The option of this name, in whatever case, such as `If-Match`.
    pub fn by_name(name: &str) -> Option<OptionNumber> {
        DEFINITIONS.iter().find(|known| known.name.eq_ignore_ascii_case(name)).map(|known| known.number)
    }

    /// The names of the options that this crate knows, by number.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DEFINITIONS.iter().map(|known| known.name)
    }

    /// Whether its values are numbers ([`encode_uint`]).
    pub const fn is_number(self) -> bool {
        use OptionNumber as Number;
        matches!(
            self,
            Number::OBSERVE
                | Number::URI_PORT
                | Number::CONTENT_FORMAT
                | Number::MAX_AGE
                | Number::HOP_LIMIT
                | Number::ACCEPT
                | Number::BLOCK2
                | Number::BLOCK1
                | Number::SIZE2
                | Number::SIZE1
                | Number::NO_RESPONSE
        )
    }

    /// Whether this crate knows the option.
    pub fn is_known(self) -> bool {
        self.definition().is_some()
    }

    #[inline]
    fn definition(self) -> Option<&'static Definition> {
        let index = match PLACES.get(usize::from(self.0)) {
            Some(place) => usize::from(*place),
            None => DEFINITIONS.iter().rposition(|known| known.number == self)?,
        };
        DEFINITIONS.get(index)
    }
}

impl fmt::Debug for OptionNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.definition() {
            Some(known) => formatter.write_str(known.name),
            None => write!(formatter, "option {}", self.0),
        }
    }
}

impl fmt::Display for OptionNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Content formats that are used here by name; any other number is as good.
pub mod content_format {
    /// `text/plain; charset=utf-8`
    pub const TEXT: u16 = 0;
    /// `application/link-format` (RFC 6690)
    pub const LINK_FORMAT: u16 = 40;
    /// `application/octet-stream`
    pub const OCTET_STREAM: u16 = 42;
    /// `application/json`
    pub const JSON: u16 = 50;
    /// `application/cbor`
    pub const CBOR: u16 = 60;
    /// `application/senml+json` (RFC 8428 §12.3)
    pub const SENML_JSON: u16 = 110;
    /// `application/senml+cbor` (RFC 8428 §12.3)
    pub const SENML_CBOR: u16 = 112;
}

/// One block of a body: the value of Block1 and Block2 (RFC 7959 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Which block, from 0; below 2²⁰.
    pub number: u32,
    /// Whether blocks follow.
    pub more: bool,
    /// The size exponent: blocks have 2^(exponent + 4) bytes. At most 6.
    pub exponent: u8,
}

impl Block {
    /// The largest exponent: blocks of 1024 bytes.
    pub const EXPONENT_MAX: u8 = 6;
    /// One more than the largest block number.
    pub const NUMBER_END: u32 = 1 << 20;

    /// Reads an option's value; `None` for the reserved exponent 7 and for more than three bytes.
    pub fn parse(value: &[u8]) -> Option<Block> {
        let bits = parse_uint(value).filter(|bits| *bits < 1 << 24)?;
        let exponent = bits as u8 & 7;
        let block = Block { number: bits >> 4, more: bits & 8 != 0, exponent };
        (exponent <= Block::EXPONENT_MAX).then_some(block)
    }

    /// The option's value as a number, for [`encode_uint`].
    pub const fn to_uint(self) -> u32 {
        self.number << 4 | (self.more as u32) << 3 | self.exponent as u32
    }

    /// Bytes of a full block: 16 to 1024.
    pub const fn size(self) -> usize {
        16 << self.exponent
    }

    /// Offset of the block in the body.
    pub const fn offset(self) -> usize {
        self.number as usize * self.size()
    }
}

/// Reads an option's value as an unsigned number; `None` for more than four bytes (RFC 7252 §3.2).
pub fn parse_uint(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The shortest encoding of a number, in `buffer`.
pub fn encode_uint(number: u32, buffer: &mut [u8; 4]) -> &[u8] {
    *buffer = number.to_be_bytes();
    &buffer[number.leading_zeros() as usize / 8..]
}

/// Most options of a message, chosen by Thalweg: handling looks through them again and again, and a message over TCP has room for tens of
/// thousands.
pub const OPTIONS_MAX: usize = 512;

/// Bytes of a body under OSCORE that goes on in one message if it came in one: a block of 1024 with its protection and options,
/// in a packet that fits any link of IPv6. Most ends do not put protected bodies together of outer blocks.
pub(crate) const PROTECTED_BYTES_MAX: usize = 1232;

/// Iterates over options; made of bytes that were checked, or that this crate wrote.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    number: u16,
}

impl<'a> Options<'a> {
    /// Options that were checked before.
    pub(crate) fn new(bytes: &'a [u8]) -> Options<'a> {
        Options { bytes, number: 0 }
    }

    /// Checks options up to the payload marker or the end; gives them and where they end.
    pub(crate) fn check(bytes: &'a [u8], offset: usize) -> Result<(Options<'a>, usize), MessageError> {
        let mut position = 0;
        let mut number: u16 = 0;
        let mut left = OPTIONS_MAX;
        while let Some(first) = bytes.get(position).filter(|first| **first != PAYLOAD_MARKER) {
            let at = offset + position;
            left = left.checked_sub(1).ok_or(MessageError { offset: at, expected: "no more than 512 options" })?;
            let (delta, len, header) = header(*first, &bytes[position + 1..]).map_err(|what| what.at(at))?;
            number =
                number.checked_add(delta).ok_or(MessageError { offset: at, expected: "option number below 65536" })?;
            position += header;
            if bytes.len() - position < len {
                return Err(MessageError { offset: at, expected: "option value within the message" });
            }
            position += len;
        }
        Ok((Options::new(&bytes[..position]), position))
    }

    /// The encoded options that the iteration has not passed yet.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The values of one option, in order.
    pub fn values(self, number: OptionNumber) -> impl Iterator<Item = &'a [u8]> {
        self.take_while(move |(found, _)| *found <= number).filter(move |(found, _)| *found == number).map(|(_, v)| v)
    }

    /// Those that are not understood here: unknown, of a wrong form, or too often (RFC 7252 §5.4.1, §5.4.3, §5.4.5). OSCORE
    /// is one of them, since who understands it takes it off first.
    pub(crate) fn not_understood(self) -> impl Iterator<Item = (OptionNumber, &'a [u8])> {
        let mut last = OptionNumber(0);
        self.filter(move |(number, value)| {
            let is_repeated = *number == last && !number.is_repeatable();
            last = *number;
            is_repeated || !number.accepts(value) || *number == OptionNumber::OSCORE
        })
    }

    /// The first value of one option.
    pub fn value(self, number: OptionNumber) -> Option<&'a [u8]> {
        self.values(number).next()
    }

    /// The first value of one option as a number.
    pub fn uint(self, number: OptionNumber) -> Option<u32> {
        self.value(number).and_then(parse_uint)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = (OptionNumber, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (first, rest) = self.bytes.split_first()?;
        let (delta, len) = (first >> 4, first & 15);
        // Nearly all options are short and close to the one before.
        let (delta, len, rest) = if delta < EXTENDED && len < EXTENDED {
            (u16::from(delta), usize::from(len), rest)
        } else {
            let (delta, len, header) = header(*first, rest).ok()?;
            (delta, len, self.bytes.get(header..)?)
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.bytes = rest;
        self.number = self.number.wrapping_add(delta);
        Some((OptionNumber(self.number), value))
    }
}

/// The fault of an option's header; the caller adds the place.
struct Expected(&'static str);

impl Expected {
    fn at(self, offset: usize) -> MessageError {
        MessageError { offset, expected: self.0 }
    }
}

/// Delta, length of the value and length of the header of an option that begins with `first`.
#[inline]
fn header(first: u8, rest: &[u8]) -> Result<(u16, usize, usize), Expected> {
    let (delta, len) = (first >> 4, first & 15);
    if delta < EXTENDED && len < EXTENDED {
        return Ok((u16::from(delta), usize::from(len), 1));
    }
    let (delta, more) = extended(first >> 4, rest)?;
    let (len, more_len) = extended(first & 15, &rest[more..])?;
    Ok((delta, usize::from(len), 1 + more + more_len))
}

/// Nibbles from here on have an extension, or are no option.
const EXTENDED: u8 = 13;

/// A nibble with its extension, and how many bytes that takes.
#[inline]
fn extended(nibble: u8, rest: &[u8]) -> Result<(u16, usize), Expected> {
    match (nibble, rest) {
        (0..=12, _) => Ok((u16::from(nibble), 0)),
        (13, [byte, ..]) => Ok((u16::from(*byte) + 13, 1)),
        (14, [high, low, ..]) => {
            let number = u16::from_be_bytes([*high, *low]).checked_add(269);
            number.map(|number| (number, 2)).ok_or(Expected("option delta or length below 65536"))
        }
        (15, _) => Err(Expected("option delta or length other than 15")),
        _ => Err(Expected("complete option header")),
    }
}

/// Appends one option that follows an option with the number `last` (0 for the first).
///
/// # Panics
/// When `number` is below `last`, or the value is longer than 65,804 bytes: no option allows that.
#[inline]
pub fn write_option(out: &mut Vec<u8>, last: OptionNumber, number: OptionNumber, value: &[u8]) {
    let delta = number.0.checked_sub(last.0).expect("options are written in ascending order");
    let len = u16::try_from(value.len()).expect("options are short");
    write_header(out, delta, len);
    out.extend_from_slice(value);
}

fn write_header(out: &mut Vec<u8>, delta: u16, len: u16) {
    out.push(nibble(delta) << 4 | nibble(len));
    write_extension(out, delta);
    write_extension(out, len);
}

fn nibble(number: u16) -> u8 {
    match number {
        0..=12 => number as u8,
        13..=268 => 13,
        _ => 14,
    }
}

fn write_extension(out: &mut Vec<u8>, number: u16) {
    match number {
        0..=12 => {}
        13..=268 => out.push((number - 13) as u8),
        _ => out.extend_from_slice(&(number - 269).to_be_bytes()),
    }
}

/// Adds an option to encoded options at the place of its number, behind others of the same number.
pub fn insert_option(encoded: &mut Vec<u8>, number: OptionNumber, value: &[u8]) {
    let mut before = Options::new(encoded);
    let mut last = OptionNumber(0);
    let mut rest = before;
    while let Some((found, _)) = before.next().filter(|(found, _)| *found <= number) {
        last = found;
        rest = before;
    }
    let position = encoded.len() - rest.as_bytes().len();
    let mut tail = Vec::new();
    if let Some((next, value)) = rest.next() {
        // Deltas count from the option before, so only the header of the first follower changes.
        write_option(&mut tail, number, next, value);
        tail.extend_from_slice(rest.as_bytes());
    }
    encoded.truncate(position);
    write_option(encoded, last, number, value);
    encoded.extend_from_slice(&tail);
}
