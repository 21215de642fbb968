//! Bodies in blocks, on the client's side: the request's upwards, then the response's downwards (RFC 7959).

use std::ops::Range;

use super::RequestError;
use crate::message::{
    Block, Code, ETag, OptionNumber, Options, PROTECTED_BYTES_MAX, RequestBuf, Response, encode_uint, insert_option,
    write_option,
};

/// Times that a body is begun anew because it changed under way, or because the server lost its blocks.
pub(super) const RESTARTS_MAX: u8 = 3;

/// Progress of a request between its first and its last block.
#[derive(Debug)]
pub struct BlockTransfer {
    /// Size exponent of the blocks that are sent.
    exponent: u8,
    /// Bytes of a body that goes out whole.
    whole_max: usize,
    /// Bytes of the request's body that the server has.
    sent: usize,
    /// Tells this body from others to the same resource (RFC 9175 §3.5.1).
    tag: u64,
    /// Whether a response may be asked for anew from its first block: the request changes nothing and goes out in one message.
    is_repeatable: bool,
    /// The first block of the response without its payload.
    head: Option<Response>,
    received: Vec<u8>,
    /// The number that the first block bore as a notification, if it had to be fetched anew.
    observe: Option<u32>,
    /// The block of the response to ask for.
    wanted: Option<Block>,
    restarts: u8,
}

/// The step after a response.
#[derive(Debug)]
pub enum TransferStep {
    /// The next block goes out.
    Next,
    /// This is the whole response.
    Done(Response),
    Failed(RequestError),
}

impl BlockTransfer {
    pub fn new(exponent: u8, tag: u64, request: &RequestBuf) -> BlockTransfer {
        let exponent = exponent.min(Block::EXPONENT_MAX);
        let is_opaque = request.view().options.value(OptionNumber::OSCORE).is_some();
        let whole_max = if is_opaque { PROTECTED_BYTES_MAX } else { 16 << exponent };
        let is_repeatable = request.code().is_safe() && request.view().payload.len() <= whole_max;
        let (head, received, observe, wanted) = (None, Vec::new(), None, None);
        BlockTransfer { exponent, whole_max, sent: 0, tag, is_repeatable, head, received, observe, wanted, restarts: 0 }
    }

    /// Whether the request's first message is still to be sent or answered.
    pub fn is_first(&self) -> bool {
        self.sent == 0 && self.wanted.is_none()
    }

    /// Bytes of the response held so far.
    pub fn received_bytes(&self) -> usize {
        self.received.len()
    }

    /// Begins anew, for the next state of an observed resource or a repeated request.
    pub fn reset(&mut self) {
        self.sent = 0;
        self.head = None;
        self.received = Vec::new();
        self.observe = None;
        self.wanted = None;
    }

    /// Options and payload of the next message.
    pub fn compose(&self, request: &RequestBuf, etag: Option<ETag>) -> (Vec<u8>, Range<usize>) {
        let view = request.view();
        let len = view.payload.len();
        let is_uploading = self.is_uploading(len);
        if let Some(block) = self.wanted {
            // Only the first message registers for notifications (RFC 7959 §2.6).
            let mut options = for_further_block(view.options);
            insert_uint(&mut options, OptionNumber::BLOCK2, block.to_uint());
            if is_uploading {
                insert_option(&mut options, OptionNumber::REQUEST_TAG, &self.tag.to_be_bytes());
            }
            let repeats_payload = view.code == Code::FETCH && !is_uploading;
            return (options, 0..if repeats_payload { len } else { 0 });
        }
        let mut options = view.options.as_bytes().to_vec();
        if let Some(etag) = etag {
            insert_option(&mut options, OptionNumber::ETAG, &etag);
        }
        if !is_uploading {
            return (options, 0..len);
        }
        let size = 16 << self.exponent;
        let end = len.min(self.sent + size);
        let block = Block { number: (self.sent / size) as u32, more: end < len, exponent: self.exponent };
        insert_uint(&mut options, OptionNumber::BLOCK1, block.to_uint());
        if self.sent == 0 {
            insert_uint(&mut options, OptionNumber::SIZE1, u32::try_from(len).unwrap_or(u32::MAX));
        }
        insert_option(&mut options, OptionNumber::REQUEST_TAG, &self.tag.to_be_bytes());
        (options, self.sent..end)
    }

    /// Takes the response to the last message; `len` is that of the request's body.
    pub fn accept(&mut self, response: Response, block1: Option<Block>, len: usize, body_max: usize) -> TransferStep {
        if self.wanted.is_none()
            && self.is_uploading(len)
            && let Some(step) = self.accept_upload(response.code, block1, len)
        {
            return step;
        }
        match response.block {
            Some(block) => self.accept_block(response, block, body_max),
            None => TransferStep::Done(response),
        }
    }

    fn is_uploading(&self, len: usize) -> bool {
        len > self.whole_max || self.sent > 0
    }

    /// The server's answer to a block of the request; `None` for the response to the whole request.
    fn accept_upload(&mut self, code: Code, block1: Option<Block>, len: usize) -> Option<TransferStep> {
        let size = 16 << self.exponent;
        let expected = Block { number: (self.sent / size) as u32, more: true, exponent: self.exponent };
        let is_followed = self.sent + size < len && block1.is_some_and(|block| block.number == expected.number);
        // The server used this block by itself; it waits for those that follow all the same (RFC 7959 §2.3).
        let is_used_alone = code.is_success() && block1.is_some_and(|block| !block.more);
        match (code, block1) {
            (_, Some(block)) if is_followed && (code == Code::CONTINUE || is_used_alone) => {
                self.sent += size;
                self.exponent = self.exponent.min(block.exponent);
                Some(TransferStep::Next)
            }
            (Code::CONTINUE, _) => Some(TransferStep::Failed(RequestError::BlockMismatch { expected })),
            // The server wants smaller blocks, or did not keep earlier ones (RFC 7959 §2.9).
            (Code::REQUEST_ENTITY_TOO_LARGE, Some(block)) if block.exponent < self.exponent => {
                self.exponent = block.exponent;
                self.restart()
            }
            (Code::REQUEST_ENTITY_INCOMPLETE, _) => self.restart(),
            _ => None,
        }
    }

    fn restart(&mut self) -> Option<TransferStep> {
        self.restarts += 1;
        self.sent = 0;
        (self.restarts <= RESTARTS_MAX).then_some(TransferStep::Next)
    }

    fn accept_block(&mut self, mut response: Response, block: Block, body_max: usize) -> TransferStep {
        if self.wanted.is_none() && block.number == 0 && !block.more {
            response.block = None;
            return TransferStep::Done(response);
        }
        let head = self.head.get_or_insert_with(|| Response { payload: Default::default(), ..response.clone() });
        if head.etag != response.etag || head.code != response.code {
            return self.start_over(block.exponent);
        }
        let is_whole = !block.more || response.payload.len() == block.size();
        if block.offset() != self.received.len() || !is_whole {
            let number = (self.received.len() / block.size()) as u32;
            return TransferStep::Failed(RequestError::BlockMismatch { expected: Block { number, ..block } });
        }
        if self.received.len() + response.payload.len() > body_max {
            return TransferStep::Failed(RequestError::BodyTooLarge);
        }
        self.received.extend_from_slice(&response.payload);
        if block.more {
            self.wanted = Some(Block { number: block.number + 1, more: false, exponent: block.exponent });
            return TransferStep::Next;
        }
        let mut whole = self.head.take().unwrap_or(response);
        whole.observe = whole.observe.or(self.observe.take());
        whole.block = None;
        whole.payload = std::mem::take(&mut self.received).into();
        self.wanted = None;
        // The next notification is another body.
        self.restarts = 0;
        TransferStep::Done(whole)
    }

    /// The representation changed under way: its blocks do not belong together (RFC 7959 §2.4). The registration that the first one
    /// confirmed goes on. To ask for the first block anew would run a request that changes something again, without its body.
    fn start_over(&mut self, exponent: u8) -> TransferStep {
        self.restarts += 1;
        self.received.clear();
        if !self.is_repeatable {
            return TransferStep::Failed(RequestError::BodyChanged);
        }
        self.observe = self.head.take().and_then(|head| head.observe).or(self.observe);
        self.wanted = Some(Block { number: 0, more: false, exponent });
        if self.restarts > RESTARTS_MAX { TransferStep::Failed(RequestError::BodyChanged) } else { TransferStep::Next }
    }
}

/// The options of a request for a further block, but for the block itself.
pub(super) fn for_further_block(options: Options<'_>) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut last = OptionNumber(0);
    let is_of_first = |number: OptionNumber| number == OptionNumber::OBSERVE || number == OptionNumber::BLOCK2;
    for (number, value) in options.filter(|(number, _)| !is_of_first(*number)) {
        write_option(&mut kept, last, number, value);
        last = number;
    }
    kept
}

pub(super) fn insert_uint(options: &mut Vec<u8>, number: OptionNumber, value: u32) {
    insert_option(options, number, encode_uint(value, &mut [0; 4]));
}
