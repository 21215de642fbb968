//! The way of a sample from a serialized payload to the socket, on the caller's thread.

use std::cell::Cell;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::payload::{Payload, PayloadPool};
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{KeyHash, SequenceNumber};
use thalweg_rtps::writer::{NewChange, WriteRefused, Writer, Written};
use thalweg_transport::clock;
use thalweg_transport::udp::Origin;

use super::WriterCell;
use super::blocking;
use crate::Error;
use crate::runtime::RuntimeState;

/// A change before it has its number.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) kind: ChangeKind,
    pub(super) instance: KeyHash,
    /// `None`: now.
    pub(super) timestamp: Option<Timestamp>,
    pub(super) payload: Payload,
}

/// Bytes that a thread's recycled buffers may keep in each size class: what a writer of samples of one size has under way
/// in an 8 MiB window, twice.
const POOL_BYTES: usize = 16 << 20;

thread_local! {
    /// Taken while in use, so that a type's `Encode` may itself write samples.
    static POOL: Cell<Option<PayloadPool>> = const { Cell::new(None) };
    static OUTBOX: Cell<Option<Box<Outbox>>> = const { Cell::new(None) };
}

/// Lets `fill` serialize into a recycled buffer of this thread.
pub(super) fn serialize<E>(bytes_hint: usize, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Payload, E> {
    let mut pool = POOL.take().unwrap_or_else(|| PayloadPool::new(POOL_BYTES));
    let payload = pool.fill(bytes_hint, fill);
    POOL.set(Some(pool));
    payload
}

/// Adds the change to the history and sends it, unless another thread is sending for this writer: then it leaves with that
/// thread's next datagrams. Waits for room as RELIABILITY allows.
pub(super) fn write(state: &RuntimeState, cell: &WriterCell, outgoing: Outgoing) -> Result<SequenceNumber, Error> {
    let now = clock::now();
    match attempt(state, cell, now, outgoing.clone()) {
        Ok(written) => Ok(written.sequence),
        Err(refused) => blocking::write_when_room(state, cell, outgoing, refused),
    }
}

/// One try: history, then what is due to be sent, also when there was no room (a request for acknowledgement).
pub(super) fn attempt(
    state: &RuntimeState,
    cell: &WriterCell,
    now: Instant,
    outgoing: Outgoing,
) -> Result<Written, WriteRefused> {
    let timestamp = outgoing.timestamp.unwrap_or_else(|| state.timestamp(now));
    let change = NewChange {
        kind: outgoing.kind,
        instance: outgoing.instance,
        timestamp: Some(timestamp),
        payload: outgoing.payload,
    };
    let mut outcome = None;
    transmit(state, cell, now, |writer| outcome = Some(writer.write(now, change)));
    let result = outcome.expect("the closure has run");
    let arm = match &result {
        Ok(written) => written.arm,
        Err(refused) => refused.arm,
    };
    state.rearm(cell.guid().entity, arm);
    result
}

/// Lets `change` change the writer, then sends what is due unless another thread is doing so.
pub(super) fn transmit(state: &RuntimeState, cell: &WriterCell, now: Instant, change: impl FnOnce(&mut Writer)) {
    let mut outbox = OUTBOX.take().unwrap_or_default();
    let mut sending = {
        let mut writer = cell.writer.lock();
        change(&mut writer);
        writer.start_sending(now, &mut outbox)
    };
    while sending {
        state.sender.send_as(Origin::User, cell.traffic_class(), &outbox);
        outbox.clear();
        sending = cell.writer.lock().continue_sending(now, &mut outbox);
    }
    outbox.clear();
    OUTBOX.set(Some(outbox));
}
