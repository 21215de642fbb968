//! The ClientHello of DTLS, as far as it is needed before a handshake takes memory (RFC 6347 §4.2).

/// A ClientHello that came whole in the first record of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// The sequence number of its record: the answer has the same (RFC 6347 §4.2.1).
    pub record_sequence: [u8; 6],
    /// The client's random bytes.
    pub random: &'a [u8],
    /// The cookie that it returns; empty in its first message.
    pub cookie: &'a [u8],
    /// Identifiers of cipher suites, two bytes each.
    pub suites: &'a [u8],
    /// Whether DTLS 1.3 is among its versions (RFC 9147 §5.3).
    pub offers_dtls13: bool,
    /// The body of the message up to the cookie's length, and after the cookie.
    before_cookie: &'a [u8],
    after_cookie: &'a [u8],
}

impl<'a> ClientHello<'a> {
    /// Reads a datagram; `None` for anything but a whole ClientHello of epoch 0. One in fragments is none: it would have to
    /// be kept for an address that may be forged.
    pub fn parse(datagram: &'a [u8]) -> Option<ClientHello<'a>> {
        let mut record = Reader(datagram);
        if record.take(1)? != [HANDSHAKE] {
            return None;
        }
        record.take(2)?; // Every version stands there in the wild.
        if record.take(2)? != [0, 0] {
            return None;
        }
        let record_sequence = record.take(6)?.try_into().ok()?;
        let mut message = Reader(record.vector(2)?);
        if message.take(1)? != [CLIENT_HELLO] {
            return None;
        }
        let length = message.number(3)?;
        message.take(2)?;
        let (offset, fragment) = (message.number(3)?, message.number(3)?);
        if offset != 0 || fragment != length {
            return None;
        }
        let body = message.take(length)?;
        let mut rest = Reader(body);
        rest.take(2)?;
        let random = rest.take(32)?;
        rest.vector(1)?;
        let before_cookie = &body[..body.len() - rest.0.len()];
        let cookie = rest.vector(1)?;
        let after_cookie = rest.0;
        let suites = rest.vector(2)?;
        rest.vector(1)?;
        let offers_dtls13 = rest.0.is_empty() || !suites.len().is_multiple_of(2);
        let offers_dtls13 = !offers_dtls13 && lists_dtls13(rest.vector(2)?)?;
        suites.len().is_multiple_of(2).then_some(ClientHello {
            record_sequence,
            random,
            cookie,
            suites,
            offers_dtls13,
            before_cookie,
            after_cookie,
        })
    }

    /// The cipher suites that it offers, in the client's order.
    pub fn offered(&self) -> impl Iterator<Item = u16> {
        self.suites.chunks_exact(2).map(|suite| u16::from_be_bytes([suite[0], suite[1]]))
    }

    /// Appends the message that the client sent first: the same without a cookie, as the first of its handshake.
    pub fn write_without_cookie(&self, out: &mut Vec<u8>) {
        let length = self.before_cookie.len() + 1 + self.after_cookie.len();
        out.extend_from_slice(&[HANDSHAKE, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&((length + HANDSHAKE_HEADER) as u16).to_be_bytes());
        write_handshake_header(out, CLIENT_HELLO, length);
        out.extend_from_slice(self.before_cookie);
        out.push(0);
        out.extend_from_slice(self.after_cookie);
    }
}

/// Whether supported_versions has DTLS 1.3.
fn lists_dtls13(extensions: &[u8]) -> Option<bool> {
    let mut extensions = Reader(extensions);
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let mut content = Reader(extensions.vector(2)?);
        if kind == SUPPORTED_VERSIONS {
            return Some(content.vector(1)?.chunks_exact(2).any(|version| version == DTLS13));
        }
    }
    Some(false)
}

/// Appends the datagram that asks the sender of `hello` to send it again with `cookie`: shorter than what it answers.
pub fn write_verify_request(out: &mut Vec<u8>, hello: &ClientHello<'_>, cookie: &[u8; 32]) {
    let length = 2 + 1 + cookie.len();
    // Of version 1.0 whatever is negotiated later (RFC 6347 §4.2.1).
    out.extend_from_slice(&[HANDSHAKE, 0xfe, 0xff, 0, 0]);
    out.extend_from_slice(&hello.record_sequence);
    out.extend_from_slice(&((length + HANDSHAKE_HEADER) as u16).to_be_bytes());
    write_handshake_header(out, HELLO_VERIFY_REQUEST, length);
    out.extend_from_slice(&[0xfe, 0xff, cookie.len() as u8]);
    out.extend_from_slice(cookie);
}

/// Appends a fatal alert without protection.
pub fn write_alert(out: &mut Vec<u8>, description: u8) {
    // The number of its record is above those of the handshake that it ends.
    out.extend_from_slice(&[ALERT, 0xfe, 0xfd, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, FATAL, description]);
}

fn write_handshake_header(out: &mut Vec<u8>, kind: u8, length: usize) {
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    out.extend_from_slice(&[kind, high, middle, low, 0, 0, 0, 0, 0, high, middle, low]);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Bytes after a length of `length_bytes` bytes.
    fn vector(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self.number(length_bytes)?;
        self.take(length)
    }
}

/// Content types (RFC 5246 §6.2.1).
pub const ALERT: u8 = 21;
pub const HANDSHAKE: u8 = 22;
pub const APPLICATION_DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const HELLO_VERIFY_REQUEST: u8 = 3;
const HANDSHAKE_HEADER: usize = 12;
const FATAL: u8 = 2;
const SUPPORTED_VERSIONS: usize = 43;
const DTLS13: [u8; 2] = [0xfe, 0xfc];
