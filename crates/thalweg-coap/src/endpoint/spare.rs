//! Buffers that are used again.

use crate::message::RequestBuf;

/// Number of buffers kept of a kind: a batch of datagrams with some to spare.
const KEPT_MAX: usize = 1024;

/// Larger buffers are given back to the allocator: many of them would hold much memory.
const CAPACITY_MAX: usize = 4096;

/// Buffers that wait for their next use.
#[derive(Debug, Default)]
pub struct Spare {
    requests: Vec<RequestBuf>,
    bytes: Vec<Vec<u8>>,
}

impl Spare {
    #[inline]
    pub fn request(&mut self) -> RequestBuf {
        self.requests.pop().unwrap_or_default()
    }

    #[inline]
    pub fn put_request(&mut self, request: RequestBuf) {
        if self.requests.len() < KEPT_MAX && request.capacity() <= CAPACITY_MAX {
            self.requests.push(request);
        }
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        self.bytes.pop().unwrap_or_default()
    }

    pub fn put_bytes(&mut self, mut bytes: Vec<u8>) {
        if self.bytes.len() < KEPT_MAX && bytes.capacity() <= CAPACITY_MAX {
            bytes.clear();
            self.bytes.push(bytes);
        }
    }
}
