//! What passes the wire, octet by octet: datagrams that no well-behaved client sends, and what the dissector makes of ours.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::serving::Serving;
use super::{capture, check_packets};
use crate::program::PATIENCE;
use thalweg_coap::message::{
    Block, CoapMessage, Code, MessageId, MessageType, MessageWriter, OptionNumber, RequestBuf, Token, content_format,
};

/// A socket that sends what it is told.
struct Raw {
    socket: UdpSocket,
}

impl Raw {
    fn to(server: SocketAddr) -> Raw {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(server).expect("connected");
        socket.set_read_timeout(Some(PATIENCE)).expect("set");
        Raw { socket }
    }

    fn send(&self, bytes: &[u8]) {
        self.socket.send(bytes).expect("sent");
    }

    #[track_caller]
    fn receive(&self) -> Vec<u8> {
        let mut buffer = [0; 2048];
        let len = self.socket.recv(&mut buffer).expect("an answer");
        buffer[..len].to_vec()
    }

    #[track_caller]
    fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        self.send(bytes);
        self.receive()
    }
}

/// A request with these options and this payload.
fn request(
    message_type: MessageType,
    code: Code,
    id: u16,
    options: &[(OptionNumber, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let token = Token::from_u64(0x0102_0304_0506_0708);
    let mut writer = MessageWriter::new(&mut bytes, message_type, code, MessageId(id), &token);
    options.iter().for_each(|(number, value)| {
        writer.option(*number, value);
    });
    writer.payload(payload);
    bytes
}

const NOTE: (OptionNumber, &[u8]) = (OptionNumber::URI_PATH, b"note");

#[test]
fn a_change_that_arrives_twice_runs_once() {
    let serving = Serving::start();
    let capture = capture("duplicates", serving.address());
    let raw = Raw::to(serving.address());
    let post = request(MessageType::Confirmable, Code::POST, 7, &[NOTE], b"a");
    let first = raw.exchange(&post);
    assert_eq!(CoapMessage::parse(&first).expect("CoAP").code, Code::CHANGED);
    assert_eq!(raw.exchange(&post), first, "the same answer again");
    let quiet = (OptionNumber::NO_RESPONSE, &[26][..]);
    let post = request(MessageType::NonConfirmable, Code::POST, 8, &[NOTE, quiet], b"b");
    raw.send(&post);
    raw.send(&post);
    let next = raw.exchange(&request(MessageType::Confirmable, Code::POST, 9, &[NOTE], b"c"));
    assert_eq!(CoapMessage::parse(&next).expect("CoAP").id, MessageId(9), "nothing answered the quiet ones");
    // The quiet ones went to the pool as well, and may be late.
    let start = std::time::Instant::now();
    while serving.note().len() < 3 && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut letters: Vec<char> = serving.note().chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ['a', 'b', 'c']);
    check_packets(&capture.stop(), 8);
}

#[test]
fn a_ping_and_what_makes_no_sense_are_rejected_and_a_non_is_dropped() {
    let serving = Serving::start();
    let raw = Raw::to(serving.address());
    assert_eq!(raw.exchange(&[0x40, 0, 0x12, 0x34]), [0x70, 0, 0x12, 0x34], "a ping");
    assert_eq!(raw.exchange(&[0x40, 1, 0, 5, 0xff]), [0x70, 0, 0, 5], "a payload marker without payload");
    raw.send(&[0x50, 1, 0, 6, 0xff]);
    raw.send(&request(MessageType::NonConfirmable, Code::GET, 7, &[NOTE, (OptionNumber(65_001), b"x")], b""));
    assert_eq!(raw.exchange(&[0x40, 0, 0, 8]), [0x70, 0, 0, 8], "nothing came for the two before");
}

/// The dissector reads the options that were written, of requests and of responses.
#[test]
fn the_dissector_reads_what_was_written() {
    let serving = Serving::start();
    let capture = capture("options", serving.address());
    let asked = RequestBuf::get("/hello?room=2&size=large")
        .with_option(OptionNumber::URI_HOST, b"example")
        .with_option(OptionNumber::ETAG, &[1, 2, 3]);
    let mut client = super::asking::Asking::open(serving.address());
    assert_eq!(client.ask(asked).code, Code::CONTENT);
    let block = Block { number: 3, more: false, exponent: 2 };
    let response = client.ask(
        RequestBuf::get("/body")
            .with_accept(content_format::OCTET_STREAM)
            .with_uint(OptionNumber::BLOCK2, block.to_uint()),
    );
    assert_eq!((response.block, response.payload.len()), (Some(Block { more: true, ..block }), 64));
    let packets = capture.stop();
    check_packets(&packets, 4);
    let fields = [
        "coap.type",
        "coap.code",
        "coap.opt.uri_host",
        "coap.opt.uri_path",
        "coap.opt.uri_query",
        "coap.opt.etag",
        "coap.opt.block_number",
        "coap.opt.block_mflag",
        "coap.opt.block_size",
        "coap.opt.accept",
        "coap.opt.ctype",
        "coap.payload_length",
    ];
    let rows = packets.rows("coap", &fields);
    let text = |row: &Vec<String>| row.iter().map(|value| value.replace(' ', "")).collect::<Vec<_>>().join(" ");
    assert_eq!(text(&rows[0]), "0 1 example hello room=2|size=large 010203      ");
    assert_eq!(text(&rows[1]), "2 69         text/plain;charset=utf-8 11");
    assert_eq!(text(&rows[2]), "0 1  body   3 0 2 application/octet-stream  ");
    let etag = response.etag.map(|etag| etag.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let etag = etag.unwrap_or_default();
    assert_eq!(text(&rows[3]), format!("2 69    {etag} 3 1 2  application/octet-stream "));
    let ids = packets.rows("coap", &["coap.mid", "coap.token"]);
    assert!(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2], "{ids:?}");
}
