//! Responses on the wire, whole or as a block.

use std::ops::Range;

use crate::message::{Block, MessageId, MessageType, MessageWriter, OptionNumber, Response, Token};

/// The encoded form of a response.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub message_type: MessageType,
    pub id: MessageId,
    pub token: Token,
}

/// The part of a response that one message carries.
#[derive(Clone, Debug)]
pub struct ResponsePart {
    /// The number of a notification.
    pub observe: Option<u32>,
    /// Which block of the request this answers.
    pub block1: Option<Block>,
    /// Which block of the body this is; absent for the whole body.
    pub block2: Option<Block>,
    /// The Echo value, which proves the client's address when it comes back. Such a message is kept small and has no Size2.
    pub echo: Option<[u8; 8]>,
    pub range: Range<usize>,
}

/// The client asked for a block that lies behind the body's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

/// The block of a body for a client that asked for `asked`; `None` for the whole body (RFC 7959 §2.4).
pub fn cut(len: usize, asked: Option<Block>, exponent: u8) -> Result<Option<(Block, Range<usize>)>, OutOfRange> {
    let wanted = asked.unwrap_or(Block { number: 0, more: false, exponent });
    let exponent = exponent.min(wanted.exponent);
    let size = 16 << exponent;
    if asked.is_none() && len <= size {
        return Ok(None);
    }
    let start = wanted.offset();
    if start >= len && start > 0 {
        return Err(OutOfRange);
    }
    let end = len.min(start + size);
    let number = u32::try_from(start / size).ok().filter(|number| *number < Block::NUMBER_END).ok_or(OutOfRange)?;
    Ok(Some((Block { number, more: end < len, exponent }, start..end)))
}

/// Appends a response. Options without a field of their own are merged in at the places of their numbers.
pub fn write_response(out: &mut Vec<u8>, head: &Head, response: &Response, part: &ResponsePart) {
    let mut writer = MessageWriter::new(out, head.message_type, response.code, head.id, &head.token);
    let mut others = response.options.iter().peekable();
    let mut others_before = |writer: &mut MessageWriter<'_>, end: OptionNumber| {
        while let Some((number, value)) = others.next_if(|(number, _)| *number < end) {
            writer.option(*number, value);
        }
    };
    if let Some(etag) = &response.etag {
        others_before(&mut writer, OptionNumber::ETAG);
        writer.option(OptionNumber::ETAG, etag);
    }
    let is_first = part.echo.is_none() && part.block2.is_some_and(|block| block.number == 0 && block.more);
    let numbers = [
        (OptionNumber::OBSERVE, part.observe),
        (OptionNumber::CONTENT_FORMAT, response.content_format.map(u32::from)),
        (OptionNumber::MAX_AGE, response.max_age),
        (OptionNumber::BLOCK2, part.block2.map(Block::to_uint)),
        (OptionNumber::BLOCK1, part.block1.map(Block::to_uint)),
        (OptionNumber::SIZE2, is_first.then(|| u32::try_from(response.payload.len()).unwrap_or(u32::MAX))),
        (OptionNumber::SIZE1, response.size),
    ];
    for (number, value) in numbers {
        if let Some(value) = value {
            others_before(&mut writer, number);
            writer.uint(number, value);
        }
    }
    if let Some(echo) = &part.echo {
        others_before(&mut writer, OptionNumber::ECHO);
        writer.option(OptionNumber::ECHO, echo);
    }
    others_before(&mut writer, OptionNumber(u16::MAX));
    writer.payload(&response.payload[part.range.clone()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(len: usize, asked: Option<(u32, u8)>, expected: Option<(u32, bool, u8, Range<usize>)>) {
        let asked = asked.map(|(number, exponent)| Block { number, more: false, exponent });
        let found = cut(len, asked, 4).unwrap();
        assert_eq!(found.map(|(block, range)| (block.number, block.more, block.exponent, range)), expected);
    }

    #[test]
    fn bodies_are_cut_as_the_client_asks_and_never_larger_than_the_server_wants() {
        check(256, None, None);
        check(257, None, Some((0, true, 4, 0..256)));
        check(257, Some((1, 4)), Some((1, false, 4, 256..257)));
        check(10, Some((0, 6)), Some((0, false, 4, 0..10)));
        check(0, Some((0, 6)), Some((0, false, 4, 0..0)));
        check(5000, Some((1, 6)), Some((4, true, 4, 1024..1280)));
        check(5000, Some((3, 0)), Some((3, true, 0, 48..64)));
        assert_eq!(cut(64, Some(Block { number: 4, more: false, exponent: 0 }), 6), Err(OutOfRange));
        let last = Block { number: Block::NUMBER_END - 1, more: false, exponent: 6 };
        assert_eq!(cut(usize::MAX, Some(last), 0), Err(OutOfRange), "smaller blocks cannot be numbered");
    }
}
