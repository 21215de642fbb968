//! Bodies in blocks to an end that keeps none of them.

use super::*;
use crate::message::{encode_uint, parse_uint, write_option};

/// PUT of a body of `len` bytes to an end with these capabilities that answers each message by 2.04, as one does that uses each
/// by itself: number and bytes of the blocks that leave, and what the client tells.
fn put_one_by_one(capabilities: &[u8], len: usize) -> (Vec<(u32, usize)>, Vec<EndpointEvent>) {
    let mut client = ReliableEndpoint::new(ReliableLimits::default(), [1, 2]);
    let end = client.open(at(0), caller(), Framing::Stream);
    let hear = |client: &mut ReliableEndpoint, code: Code, token: Token, options: &[u8]| {
        let mut bytes = Vec::new();
        let message = ReliableMessage { code, token, options: Options::new(options), payload: &[] };
        FrameWriter::default().message(&mut bytes, Framing::Stream, &message);
        client.handle_bytes(at(0), end, &bytes);
    };
    hear(&mut client, signal::CSM, Token::EMPTY, capabilities);
    client.request(end, RequestBuf::put("/body", pattern(len))).unwrap();
    let mut blocks = Vec::new();
    loop {
        client.begin_turn(at(0));
        let bytes = client.outgoing(end).to_vec();
        if bytes.is_empty() {
            return (blocks, std::iter::from_fn(|| client.poll_event()).collect());
        }
        client.handle_sent(at(0), end, bytes.len());
        let mut rest = &bytes[..];
        while let Ok(Some(count)) = message_len(rest) {
            let message = ReliableMessage::parse(&rest[..count], Framing::Stream).unwrap();
            rest = &rest[count..];
            let Some(value) = message.options.value(OptionNumber::BLOCK1) else { continue };
            let bits = parse_uint(value).unwrap();
            blocks.push((bits >> 4, message.payload.len()));
            let mut options = Vec::new();
            // The same block without the bit of those that follow.
            write_option(&mut options, OptionNumber(0), OptionNumber::BLOCK1, encode_uint(bits & !8, &mut [0; 4]));
            hear(&mut client, Code::CHANGED, message.token, &options);
        }
    }
}

/// RFC 7959 §2.3.
#[test]
fn a_body_whose_blocks_are_used_one_by_one_is_sent_to_its_end() {
    let joined = signal::write_capabilities(4096);
    let plain = put_one_by_one(&[], 2500);
    let joined = put_one_by_one(&joined, 7000);
    assert_eq!(plain.0, [(0, 1024), (1, 1024), (2, 452)]);
    assert_eq!(joined.0, [(0, 3072), (3, 3072), (6, 856)]);
    for (_, events) in [plain, joined] {
        let [EndpointEvent::Response { response, .. }] = &events[..] else { panic!("one answer: {events:?}") };
        assert_eq!(response.code, Code::CHANGED);
    }
}

#[test]
fn no_block_of_a_body_is_larger_than_the_other_end_takes() {
    let (blocks, events) = put_one_by_one(&signal::write_capabilities(512), 600);
    assert_eq!(blocks, [(0, 256), (1, 256), (2, 88)]);
    let [EndpointEvent::Response { response, .. }] = &events[..] else { panic!("one answer: {events:?}") };
    assert_eq!(response.code, Code::CHANGED);
}
