//! Which requests are alike, for this program and for the kernel.

use thalweg_transport::filter::FilterInstruction;

use super::super::counts::FilteredRequests;
use crate::message::{CoapMessage, CoapRequest, Code, Options};

/// Non-confirmable requests with one code and the same options; message ID, token and payload are each one's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    code: u8,
    /// As they are encoded: from the end of the token to the payload marker or the end.
    options: Vec<u8>,
}

impl Shape {
    /// The shape of a non-confirmable request, unless its options are longer than a filter should look at.
    pub(super) fn of(bytes: &[u8]) -> Option<Shape> {
        let message = CoapMessage::parse(bytes).ok()?;
        let options = message.options.as_bytes();
        let shape = Shape { code: message.code.byte(), options: options.to_vec() };
        (options.len() <= OPTIONS_MAX_BYTES && shape.matches(bytes)).then_some(shape)
    }

    /// Its name, for people; `pool` is the one that such requests are for.
    pub(super) fn kind(&self, pool: String) -> FilteredRequests {
        let (code, options) = (Code::from_byte(self.code), Options::new(&self.options));
        let request = CoapRequest { code, options, payload: &[], caller: None };
        FilteredRequests { method: method(code).to_owned(), path: request.path(), pool, count: 0 }
    }

    /// Whether a datagram is such a request; the kernel decides alike.
    pub(super) fn matches(&self, bytes: &[u8]) -> bool {
        let &[first, code, _, _, ref rest @ ..] = bytes else { return false };
        let token_len = usize::from(first & TOKEN_LEN);
        if first & !TOKEN_LEN != NON_CONFIRMABLE || code != self.code || token_len > TOKEN_MAX {
            return false;
        }
        let rest = rest.get(token_len..).and_then(|rest| rest.strip_prefix(&self.options[..]));
        rest.is_some_and(|rest| matches!(rest, [] | [PAYLOAD_MARKER, ..]))
    }

    /// Drops all but `share` of the requests that match; the next shape's instructions follow these.
    fn thin(&self, share: f64, into: &mut Vec<FilterInstruction>) {
        let end = OPTIONS_AT + self.options.len() as u32;
        let mut words: Vec<(usize, u32, u32)> = Vec::new();
        let mut at = 0;
        while let Some(rest) = self.options.get(at..).filter(|rest| !rest.is_empty()) {
            let width = [4, 2, 1].into_iter().find(|width| rest.len() >= *width).unwrap_or(1);
            let value = rest[..width].iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            words.push((width, OPTIONS_AT + at as u32, value));
            at += width;
        }
        let compare = words.len() as u8 * 2;
        // Instructions from here to the next shape.
        let next = |done: u8| COMMON - done + compare;
        into.extend([
            FilterInstruction::length(),
            FilterInstruction::subtract_x(),
            FilterInstruction::if_at_least(end, (0, next(3))),
            // The end of the message, or a payload.
            FilterInstruction::if_equal(end, (2, 0)),
            FilterInstruction::bytes_at_x(1, end),
            FilterInstruction::if_equal(u32::from(PAYLOAD_MARKER), (0, next(6))),
            FilterInstruction::byte(UDP_HEADER + 1),
            FilterInstruction::if_equal(u32::from(self.code), (0, next(8))),
        ]);
        for (number, (width, offset, value)) in words.iter().enumerate() {
            let rest = next(8) - 2 * (number as u8 + 1);
            into.extend([
                FilterInstruction::bytes_at_x(*width, *offset),
                FilterInstruction::if_equal(*value, (0, rest)),
            ]);
        }
        let limit = (share.clamp(0.0, 1.0) * 2.0_f64.powi(32)) as u32;
        into.extend([
            FilterInstruction::random(),
            FilterInstruction::if_at_least(limit, (0, 1)),
            FilterInstruction::drop(),
            FilterInstruction::accept(),
        ]);
    }
}

/// A program that lets a share of the requests of each shape in, and everything else; empty for no shape.
pub(super) fn program<'a>(shapes: impl Iterator<Item = (&'a Shape, f64)>) -> Vec<FilterInstruction> {
    let mut program = vec![
        FilterInstruction::length(),
        FilterInstruction::if_at_least(OPTIONS_AT, (1, 0)),
        FilterInstruction::accept(),
        FilterInstruction::byte(UDP_HEADER),
        FilterInstruction::and(u32::from(TOKEN_LEN)),
        FilterInstruction::if_at_least(TOKEN_MAX as u32 + 1, (0, 1)),
        FilterInstruction::accept(),
        FilterInstruction::to_x(),
        FilterInstruction::byte(UDP_HEADER),
        FilterInstruction::and(u32::from(!TOKEN_LEN)),
        FilterInstruction::if_equal(u32::from(NON_CONFIRMABLE), (1, 0)),
        FilterInstruction::accept(),
    ];
    let head = program.len();
    shapes.for_each(|(shape, share)| shape.thin(share, &mut program));
    if program.len() == head {
        return Vec::new();
    }
    program.push(FilterInstruction::accept());
    program
}

fn method(code: Code) -> &'static str {
    match code {
        Code::GET => "GET",
        Code::POST => "POST",
        Code::PUT => "PUT",
        Code::DELETE => "DELETE",
        Code::FETCH => "FETCH",
        Code::PATCH => "PATCH",
        Code::IPATCH => "iPATCH",
        _ => "another",
    }
}

const UDP_HEADER: u32 = 8;
/// Offset of the options of a message without token.
const OPTIONS_AT: u32 = UDP_HEADER + crate::message::HEADER_LEN as u32;
/// Instructions for a shape but for the comparison of its options.
const COMMON: u8 = 12;
const OPTIONS_MAX_BYTES: usize = 64;
/// First byte of a message: version 1, NON; and the bits of the token's length.
const NON_CONFIRMABLE: u8 = 0x50;
const TOKEN_LEN: u8 = 0x0f;
const TOKEN_MAX: usize = 8;
const PAYLOAD_MARKER: u8 = crate::message::PAYLOAD_MARKER;

#[cfg(test)]
pub(super) mod tests {
    use std::net::UdpSocket;

    use proptest::prelude::*;
    use thalweg_transport::batch::{BatchOptions, BatchSocket};

    use super::*;
    use crate::message::{MessageId, MessageType, MessageWriter, OptionNumber, Token};

    pub const NON: MessageType = MessageType::NonConfirmable;

    pub fn message(message_type: MessageType, path: &str, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let token = Token::new(b"tok").unwrap();
        let mut writer = MessageWriter::new(&mut bytes, message_type, Code::POST, MessageId(7), &token);
        for segment in path.split('/') {
            writer.option(OptionNumber::URI_PATH, segment.as_bytes());
        }
        writer.payload(payload);
        bytes
    }

    /// A socket with a filter, and one that sends to it.
    struct World {
        socket: BatchSocket,
        sender: UdpSocket,
    }

    impl World {
        fn new(address: &str) -> World {
            let socket = BatchSocket::bind(address.parse().unwrap(), &BatchOptions::default()).unwrap();
            let sender = UdpSocket::bind(address).unwrap();
            sender.connect(socket.local_address()).unwrap();
            World { socket, sender }
        }

        /// Whether the kernel lets this datagram in: on the loopback it is queued when `send` returns, or never.
        fn lets_in(&mut self, bytes: &[u8]) -> bool {
            self.sender.send(bytes).unwrap();
            let count = self.socket.receive().unwrap();
            assert!(self.socket.next_arrival().map_or(count == 0, |arrived| arrived.bytes == bytes), "cut off");
            count == 1
        }
    }

    fn shape(path: &str) -> Shape {
        Shape::of(&message(NON, path, b"")).unwrap()
    }

    #[test]
    fn the_kernel_drops_what_differs_only_in_id_token_and_payload() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let mut world = World::new(address);
            let (busy, tired) = (shape("busy"), shape("tired/of/work"));
            world.socket.set_filter(&program([(&busy, 0.0), (&tired, 0.0)].into_iter())).unwrap();
            for path in ["busy", "tired/of/work"] {
                for payload in [&b""[..], b"x", &[0xff; 1500]] {
                    assert!(!world.lets_in(&message(NON, path, payload)), "{path} {payload:?}");
                }
            }
            for path in ["bus", "busyy", "busy/", "busy/busy", "Busy", "tired", "tired/of/word", "of/work", ""] {
                assert!(world.lets_in(&message(NON, path, b"x")), "{path}");
            }
            assert!(world.lets_in(&message(MessageType::Confirmable, "busy", b"")));
            for bytes in
                [&b""[..], b"\x50", b"\x50\x02\0\0", b"\x5f\x02\0\0", b"\x58\x02\0\0tok", b"\x90\x02\0\0\xb4busy"]
            {
                assert!(world.lets_in(bytes), "{bytes:?}");
            }
            assert!(!world.lets_in(b"\x50\x02\x12\x34\xb4busy"), "without token");
            assert!(!world.lets_in(b"\x58\x02\x12\x3412345678\xb4busy"), "with a long one");
            assert!(world.lets_in(b"\x50\x01\x12\x34\xb4busy"), "another method");
            assert!(world.lets_in(b"\x50\x02\x12\x34\xb4busy\x45?us=1"), "more options");
            world.socket.set_filter(&[]).unwrap();
            assert!(world.lets_in(&message(NON, "busy", b"")));
            world.socket.set_filter(&[]).unwrap();
        }
    }

    #[test]
    fn a_share_of_them_passes() {
        let mut world = World::new("127.0.0.1:0");
        let busy = shape("busy");
        world.socket.set_filter(&program([(&busy, 0.25)].into_iter())).unwrap();
        let bytes = message(NON, "busy", b"");
        let passed = (0..4000).filter(|_| world.lets_in(&bytes)).count();
        assert!((850..1150).contains(&passed), "{passed} of 4000");
    }

    #[test]
    fn what_a_filter_cannot_look_at_has_no_shape() {
        assert_eq!(Shape::of(&message(NON, &"x".repeat(OPTIONS_MAX_BYTES), b"")), None);
        assert!(Shape::of(&message(NON, &"x".repeat(OPTIONS_MAX_BYTES - 2), b"")).is_some());
        assert_eq!(Shape::of(&message(MessageType::Confirmable, "x", b"")), None);
        assert_eq!(program([].into_iter()), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 2000 }))]
        /// Random changes of requests: the kernel drops exactly what this program takes for alike.
        #[test]
        fn the_kernel_decides_alike(
            path in "[ab]{0,9}(/[ab]{0,3}){0,3}", payload in proptest::collection::vec(any::<u8>(), 0..4),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2), cut in 0usize..3,
        ) {
            let shapes = [shape("a"), shape(&path)];
            let mut bytes = message(NON, &path, &payload);
            for (index, value) in changes {
                let at = index.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(bytes.len() - cut);
            let mut world = World::new("127.0.0.1:0");
            world.socket.set_filter(&program(shapes.iter().map(|shape| (shape, 0.0)))).unwrap();
            let is_alike = shapes.iter().any(|shape| shape.matches(&bytes));
            prop_assert_eq!(world.lets_in(&bytes), !is_alike);
        }
    }
}
