//! A CoAP responder without state: the reference for the generator, because it counts its requests and answers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use thalweg_coap::message::{CoapMessage, Code, MessageType, MessageWriter, OptionNumber};
use thalweg_transport::batch::{BatchOptions, BatchScratch, BatchSocket, Departure, Waker};

use crate::error::LabError;
use crate::host::pin_to_cpu;

/// Answers on a port of its own until it is told to end.
pub struct Responder {
    address: SocketAddr,
    waker: Waker,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<ResponderCounts>>,
}

/// Counts of a responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounts {
    /// Requests that arrived.
    pub received: u64,
    /// Datagrams that are no CoAP messages.
    pub malformed: u64,
    /// Datagrams that left.
    pub sent: u64,
}

/// The datagrams that go back to the client whose request is looked at.
#[derive(Default)]
pub struct Replies {
    to: Option<SocketAddr>,
    bytes: Vec<u8>,
    ends: Vec<(SocketAddr, usize)>,
}

impl Replies {
    /// Adds a datagram that `write` appends to a buffer.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.extend(self.to.map(|to| (to, self.bytes.len())));
    }

    fn departures(&self) -> impl Iterator<Item = Departure<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&(to, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            Departure { to, from: None, bytes }
        })
    }
}

impl Responder {
    /// Listens on a free port of 127.0.0.1, on logical CPU `cpu` if one is named; `answer` is called for each message.
    ///
    /// # Errors
    /// When there is no socket or thread to be had.
    pub fn start(
        cpu: Option<usize>,
        answer: impl FnMut(&CoapMessage<'_>, &mut Replies) + Send + 'static,
    ) -> Result<Responder, LabError> {
        let failed = |error: io::Error| LabError::Here(format!("the responder on 127.0.0.1 did not start: {error}"));
        let options = BatchOptions { datagram_bytes: DATAGRAM_BYTES, ..BatchOptions::default() };
        let mut socket = BatchSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), &options).map_err(failed)?;
        let (address, waker, is_over) = (socket.local_address(), socket.waker(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&is_over);
        let work = move || {
            cpu.map_or(Ok(()), pin_to_cpu)?;
            respond(&mut socket, &seen, answer)
        };
        let thread = std::thread::Builder::new().name("responder".to_owned()).spawn(work).map_err(failed)?;
        Ok(Responder { address, waker, is_over, thread })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it; returns its counts.
    ///
    /// # Errors
    /// When it could not go on before.
    pub fn finish(self) -> Result<ResponderCounts, LabError> {
        self.is_over.store(true, Ordering::SeqCst);
        self.waker.wake();
        let ended = self.thread.join().map_err(|_| LabError::Here("the responder panicked".to_owned()))?;
        ended.map_err(|error| LabError::Here(format!("the responder at {} ended: {error}", self.address)))
    }
}

fn respond(
    socket: &mut BatchSocket,
    is_over: &AtomicBool,
    mut answer: impl FnMut(&CoapMessage<'_>, &mut Replies),
) -> io::Result<ResponderCounts> {
    let mut counts = ResponderCounts::default();
    let (mut scratch, mut replies) = (BatchScratch::default(), Replies::default());
    loop {
        // Checked first: requests sent before the end are read after this.
        let is_ending = is_over.load(Ordering::SeqCst);
        socket.receive()?;
        while let Some(arrived) = socket.next_arrival() {
            let Ok(message) = CoapMessage::parse(arrived.bytes) else {
                counts.malformed += 1;
                continue;
            };
            counts.received += u64::from(message.code.is_request());
            replies.to = Some(arrived.source);
            answer(&message, &mut replies);
        }
        counts.sent += socket.send(&mut scratch, replies.departures()).datagrams as u64;
        replies.bytes.clear();
        replies.ends.clear();
        if !socket.is_ready() {
            if is_ending {
                return Ok(counts);
            }
            socket.wait(None)?;
        }
    }
}

/// Answers a request by 2.05 with this payload, piggybacked when it is confirmable.
pub fn write_content(request: &CoapMessage<'_>, payload: &[u8], out: &mut Vec<u8>) {
    let message_type = match request.message_type {
        MessageType::Confirmable => MessageType::Acknowledgement,
        _ => MessageType::NonConfirmable,
    };
    let mut writer = MessageWriter::new(out, message_type, Code::CONTENT, request.id, &request.token);
    writer.uint(OptionNumber::CONTENT_FORMAT, 0);
    writer.payload(payload);
}

const DATAGRAM_BYTES: usize = 2048;
