//! The ClientHello of DTLS, as far as it is needed before a handshake takes memory (RFC 6347 §4.2, RFC 9147 §5).

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
    /// The cookie of DTLS 1.3 that it returns (RFC 8446 §4.2.2); `None` in its first message.
    pub retry_cookie: Option<&'a [u8]>,
    /// The length of its padding (RFC 7685).
    pub padding: Option<u16>,
    /// The body of the message up to the cookie's length, and after the cookie.
    before_cookie: &'a [u8],
    after_cookie: &'a [u8],
    /// The body up to the length of the extensions, and these.
    head: &'a [u8],
    extensions: &'a [u8],
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
        let head = &body[..body.len() - rest.0.len()];
        let extensions: &'a [u8] = if rest.0.is_empty() { &[] } else { rest.vector(2)? };
        let mut hello = ClientHello {
            record_sequence,
            random,
            cookie,
            suites,
            offers_dtls13: false,
            retry_cookie: None,
            padding: None,
            before_cookie,
            after_cookie,
            head,
            extensions,
        };
        hello.read_extensions()?;
        suites.len().is_multiple_of(2).then_some(hello)
    }

    /// Reads what is needed of the extensions; `None` when they are no extensions.
    fn read_extensions(&mut self) -> Option<()> {
        let mut read = 0;
        for Extension { kind, whole, content } in each_extension(self.extensions) {
            read += whole.len();
            match kind {
                SUPPORTED_VERSIONS => {
                    let versions = Reader(content).vector(1)?;
                    self.offers_dtls13 = versions.chunks_exact(2).any(|version| version == DTLS13);
                }
                COOKIE => self.retry_cookie = Some(Reader(content).vector(2).unwrap_or_default()),
                PADDING => self.padding = u16::try_from(content.len()).ok(),
                _ => {}
            }
        }
        (read == self.extensions.len()).then_some(())
    }

    /// The cipher suites that it offers, in the client's order.
    pub fn offered(&self) -> impl Iterator<Item = u16> {
        self.suites.chunks_exact(2).map(|suite| u16::from_be_bytes([suite[0], suite[1]]))
    }

    /// Appends the message that a client of DTLS 1.2 sent first: the same without a cookie, as the first of its handshake.
    pub fn write_without_cookie(&self, out: &mut Vec<u8>) {
        write_client_hello(out, &[self.before_cookie, &[0][..], self.after_cookie]);
    }

    /// The same of a client of DTLS 1.3 that was asked for a cookie alone; `padding` is how much its first message had.
    pub fn write_without_retry(&self, padding: Option<u16>, out: &mut Vec<u8>) {
        let mut extensions = Vec::with_capacity(self.extensions.len() + padding.map_or(0, usize::from));
        let mut owed = padding;
        for Extension { kind, whole, .. } in each_extension(self.extensions) {
            match kind {
                COOKIE => {}
                PADDING => write_padding(&mut extensions, owed.take()),
                _ => extensions.extend_from_slice(whole),
            }
        }
        // Beside the cookie it had no room; it is written last.
        write_padding(&mut extensions, owed);
        let length = (extensions.len() as u16).to_be_bytes();
        write_client_hello(out, &[self.head, &length[..], &extensions[..]]);
    }

    /// The parts that a client of DTLS 1.3 must not change when it is asked for a cookie alone (RFC 8446 §4.1.2).
    pub fn constant_parts(&self) -> impl Iterator<Item = &'a [u8]> {
        let constant = each_extension(self.extensions).filter(|one| !matches!(one.kind, COOKIE | PADDING));
        std::iter::once(self.head).chain(constant.map(|one| one.whole))
    }
}

/// One extension of a message.
#[derive(Clone, Copy, Debug)]
struct Extension<'a> {
    kind: usize,
    /// With its kind and length.
    whole: &'a [u8],
    content: &'a [u8],
}

/// The extensions one by one, up to what is none.
fn each_extension(mut rest: &[u8]) -> impl Iterator<Item = Extension<'_>> {
    std::iter::from_fn(move || {
        let mut reader = Reader(rest);
        let kind = reader.number(2)?;
        let content = reader.vector(2)?;
        let (whole, after) = rest.split_at(rest.len() - reader.0.len());
        rest = after;
        Some(Extension { kind, whole, content })
    })
}

fn write_padding(out: &mut Vec<u8>, padding: Option<u16>) {
    let Some(padding) = padding else { return };
    out.extend_from_slice(&(PADDING as u16).to_be_bytes());
    out.extend_from_slice(&padding.to_be_bytes());
    out.resize(out.len() + usize::from(padding), 0);
}

/// Appends a ClientHello of these parts as the first message of a handshake.
fn write_client_hello(out: &mut Vec<u8>, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&[HANDSHAKE, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&((length + HANDSHAKE_HEADER) as u16).to_be_bytes());
    write_handshake_header(out, CLIENT_HELLO, length);
    parts.iter().for_each(|part| out.extend_from_slice(part));
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
const PADDING: usize = 21;
const SUPPORTED_VERSIONS: usize = 43;
const COOKIE: usize = 44;
const DTLS13: [u8; 2] = [0xfe, 0xfc];
