//! The path of a sample from a serialized payload to the socket, on the caller's thread.

use std::cell::Cell;
use std::sync::Arc;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::payload::{Payload, PayloadPool};
use thalweg_rtps::shared::debug_assert_none_held;
use thalweg_rtps::time::{Instant, Timestamp};
use thalweg_rtps::types::{KeyHash, SampleIdentity, SequenceNumber};
use thalweg_rtps::writer::{NewChange, WriteRefused, Writer, Written};
use thalweg_transport::clock;
use thalweg_transport::udp::Origin;

use super::WriterCell;
use super::blocking;
use crate::Error;
use crate::runtime::RuntimeState;
use crate::scratch;
use crate::sync::Lock;
use crate::trace;

/// A change before it has its number.
#[derive(Clone)]
pub(super) struct Outgoing {
    pub(super) kind: ChangeKind,
    pub(super) instance: KeyHash,
    /// `None` for now.
    pub(super) timestamp: Option<Timestamp>,
    pub(super) payload: Payload,
    /// The sample that it is related to.
    pub(super) related: Option<SampleIdentity>,
}

/// Bytes of recycled buffers that a thread keeps in each size class: twice the samples under way in a window of 8 MiB.
const POOL_BYTES: usize = 16 << 20;

/// Samples expected to be larger than this are never collected.
const SMALL_MAX_BYTES: usize = 2_048;

thread_local! {
    /// Each is taken while in use, so that a type's `Encode` may itself write samples.
    static POOL: Cell<Option<PayloadPool>> = const { Cell::new(None) };
    static OUTBOX: Cell<Option<Box<Outbox>>> = const { Cell::new(None) };
    static SERIALIZED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lets `fill` serialize into a recycled buffer of this thread.
pub(super) fn serialize<E>(bytes_hint: usize, fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Payload, E> {
    let mut pool = scratch::take(&POOL).unwrap_or_else(|| PayloadPool::new(POOL_BYTES));
    let payload = pool.fill(bytes_hint, fill);
    scratch::keep(&POOL, Some(pool));
    payload
}

/// A buffer of this thread of exactly so many bytes, of unspecified content and without other owners; see [`recycle`].
pub(super) fn take_buffer(bytes: usize) -> Arc<Vec<u8>> {
    let mut pool = scratch::take(&POOL).unwrap_or_else(|| PayloadPool::new(POOL_BYTES));
    let buffer = pool.take_sized(bytes);
    scratch::keep(&POOL, Some(pool));
    buffer
}

/// Lets this thread use a buffer again once nobody refers to it.
pub(super) fn recycle(buffer: &Arc<Vec<u8>>) {
    let mut pool = scratch::take(&POOL).unwrap_or_else(|| PayloadPool::new(POOL_BYTES));
    pool.remember(buffer);
    scratch::keep(&POOL, Some(pool));
}

/// Adds the change to the history and sends it. If another thread is sending for this writer, that thread sends it with its next
/// datagrams. Waits for room as RELIABILITY allows.
pub(super) fn write(state: &RuntimeState, cell: &WriterCell, outgoing: Outgoing) -> Result<SequenceNumber, Error> {
    match attempt(state, cell, true, outgoing.clone()) {
        Ok(written) => Ok(written.sequence),
        Err(refused) => blocking::write_when_room(state, cell, outgoing, refused),
    }
}

/// As [`write`] for a sample that `fill` serializes. While the writer collects samples, it is serialized into a buffer of this
/// thread and copied to the place that it is sent from; otherwise it stays in the buffer that it was serialized into.
pub(super) fn write_filled<E>(
    state: &RuntimeState,
    cell: &WriterCell,
    instance: KeyHash,
    timestamp: Option<Timestamp>,
    bytes_hint: usize,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<Result<SequenceNumber, Error>, E> {
    if !cell.collects() || bytes_hint > SMALL_MAX_BYTES {
        let payload = serialize(bytes_hint, fill)?;
        trace::serialized();
        return Ok(write(
            state,
            cell,
            Outgoing { kind: ChangeKind::Write, instance, timestamp, payload, related: None },
        ));
    }
    let mut serialized = scratch::take(&SERIALIZED);
    serialized.clear();
    let filled = fill(&mut serialized);
    trace::serialized();
    let written = filled.map(|()| write_serialized(state, cell, instance, timestamp, &serialized));
    scratch::keep(&SERIALIZED, serialized);
    written
}

/// As [`write`] for bytes that are copied to the place that they are sent from.
pub(super) fn write_serialized(
    state: &RuntimeState,
    cell: &WriterCell,
    instance: KeyHash,
    timestamp: Option<Timestamp>,
    serialized: &[u8],
) -> Result<SequenceNumber, Error> {
    let written = transmit(state, cell, true, |writer, now| {
        let stamp = timestamp.unwrap_or_else(|| cell.stamp(state, now));
        let written = writer.write_small(now, instance, stamp, serialized);
        if let Some(Ok(written)) = &written {
            trace::stored(cell.guid(), written.sequence);
        }
        let arm = written.as_ref().and_then(arm_of);
        (written, arm)
    });
    if let Some(Ok(written)) = written {
        return Ok(written.sequence);
    }
    // The sample is not small, or there is no room for it: the ordinary write can wait.
    let payload = copied(serialized);
    write(state, cell, Outgoing { kind: ChangeKind::Write, instance, timestamp, payload, related: None })
}

/// A recycled copy of `bytes`.
pub(super) fn copied(bytes: &[u8]) -> Payload {
    let copy = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
        buffer.extend_from_slice(bytes);
        Ok(())
    };
    match serialize(bytes.len(), copy) {
        Ok(payload) => payload,
        Err(never) => match never {},
    }
}

/// Tries once to add a change to the history, then sends due messages: without room, a request for acknowledgements. `follows` as
/// for [`transmit`].
pub(super) fn attempt(
    state: &RuntimeState,
    cell: &WriterCell,
    follows: bool,
    outgoing: Outgoing,
) -> Result<Written, WriteRefused> {
    transmit(state, cell, follows, |writer, now| {
        let written = add(writer, now, outgoing, || cell.stamp(state, now));
        if let Ok(written) = &written {
            trace::stored(cell.guid(), written.sequence);
        }
        let arm = arm_of(&written);
        (written, arm)
    })
}

fn arm_of(written: &Result<Written, WriteRefused>) -> Option<Instant> {
    match written {
        Ok(written) => written.arm,
        Err(refused) => refused.arm,
    }
}

/// Adds a change to the history; one without a timestamp gets that of `stamp`.
fn add(
    writer: &mut Writer,
    now: Instant,
    outgoing: Outgoing,
    stamp: impl FnOnce() -> Timestamp,
) -> Result<Written, WriteRefused> {
    let Outgoing { kind, instance, timestamp, payload, related } = outgoing;
    let timestamp = Some(timestamp.unwrap_or_else(stamp));
    writer.write_related(now, NewChange { kind, instance, timestamp, payload }, related.as_ref())
}

/// Adds changes to the history until one finds no room, which is returned, then sends due messages.
pub(super) fn write_all(
    state: &RuntimeState,
    cell: &WriterCell,
    changes: &mut std::vec::IntoIter<Outgoing>,
) -> Option<Outgoing> {
    transmit(state, cell, true, |writer, now| {
        // Each is earlier than the one before.
        let mut arm = None;
        for outgoing in changes.by_ref() {
            match add(writer, now, outgoing.clone(), || cell.stamp(state, now)) {
                Ok(written) => {
                    trace::stored(cell.guid(), written.sequence);
                    arm = written.arm.or(arm);
                }
                Err(refused) => return (Some(outgoing), refused.arm.or(arm)),
            }
        }
        (None, arm)
    })
}

/// Lets `change` change the writer, then sends due messages unless another thread is doing so. The I/O thread is to look at the writer
/// at the time that `change` returns beside its result. With `follows`, readers on this host that are far behind get a moment to
/// follow first.
pub(super) fn transmit<R>(
    state: &RuntimeState,
    cell: &WriterCell,
    follows: bool,
    change: impl FnOnce(&mut Writer, Instant) -> (R, Option<Instant>),
) -> R {
    let mut writer = cell.writer.lock();
    if follows && writer.await_readers() {
        writer = blocking::let_readers_follow(cell, writer);
    }
    let now = clock::now();
    let (result, arm) = change(&mut writer, now);
    cell.note_collecting(writer.collects());
    let entity = cell.guid().entity;
    if !writer.wants_to_send(now) {
        drop(writer);
        cell.wake_store();
        state.rearm(entity, arm);
        return result;
    }
    // A DEADLINE or lease may end while this thread is in the call that sends; all else that is due waits for it.
    let (arms_first, arm) = (writer.has_promises(), Cell::new(arm));
    trace::token_granted();
    let mut outbox = scratch::take(&OUTBOX).unwrap_or_default();
    let sent = send_in_turn(&cell.writer, writer, now, &mut outbox, |outbox| {
        debug_assert_none_held();
        if arms_first {
            state.rearm(entity, arm.take());
        }
        trace::sending(|| state.sender.send_as(Origin::User, cell.traffic_class(), outbox));
        clock::now()
    });
    cell.wake_store();
    state.rearm(entity, sent.pause);
    state.rearm(entity, arm.take());
    if sent.made_room {
        cell.notify_waiters();
    }
    outbox.clear();
    scratch::keep(&OUTBOX, Some(outbox));
    result
}

/// The remaining work after a thread has sent for a writer.
pub(crate) struct Sent {
    /// Whether threads that wait for room are to be woken.
    pub(crate) made_room: bool,
    /// When the I/O thread is to send what may not be sent yet.
    pub(crate) pause: Option<Instant>,
}

/// Sends due messages, and those that other threads add meanwhile. If another thread is sending, that thread sends them. `send`
/// returns the time at its end.
pub(crate) fn send_in_turn<L: Lock<State = Writer>>(
    lock: &L,
    mut writer: L::Guard<'_>,
    now: Instant,
    outbox: &mut Outbox,
    send: impl Fn(&Outbox) -> Instant,
) -> Sent {
    let mut sending = writer.start_sending(now, outbox);
    let mut sent = Sent { made_room: writer.poll_space(), pause: writer.pause_to_arm() };
    drop(writer);
    let mut start = now;
    while sending {
        let datagrams = outbox.len();
        let end = send(outbox);
        outbox.clear();
        let mut writer = lock.lock();
        sending = writer.continue_sending(start, end, datagrams, outbox);
        sent.made_room |= writer.poll_space();
        // The new deadline is earlier than the one reported before.
        sent.pause = writer.pause_to_arm().or(sent.pause);
        drop(writer);
        start = end;
    }
    sent
}
