//! Calls of a data writer that wait for room, acknowledgements or readers.

use std::time::Duration;

use thalweg_rtps::qos::{History, Reliability};
use thalweg_rtps::shared::Held;
use thalweg_rtps::types::{KeyHash, SequenceNumber};
use thalweg_rtps::writer::{WriteRefused, Writer};

use super::WriterCell;
use super::sending::{Outgoing, attempt, transmit};
use crate::runtime::{Deadline, RuntimeState, Waiters, on_io_thread};
use crate::sync::Lock;
use crate::{Error, ErrorKind};

/// Repeats a refused write whenever there may be room, until max_blocking_time has passed.
pub(super) fn write_when_room(
    state: &RuntimeState,
    cell: &WriterCell,
    outgoing: Outgoing,
    mut refused: WriteRefused,
) -> Result<SequenceNumber, Error> {
    if let Some(error) = store_failure(cell, &refused) {
        return Err(error);
    }
    if on_io_thread() {
        return Err(inline_error(cell, &refused));
    }
    let deadline = Deadline::after(cell.max_blocking_time());
    while !deadline.has_passed() {
        wait_for_room(&cell.waiters, &cell.writer, &outgoing.instance, outgoing.payload.len(), deadline);
        match attempt(state, cell, false, outgoing.clone()) {
            Ok(written) => return Ok(written.sequence),
            Err(again) => refused = again,
        }
        if let Some(error) = store_failure(cell, &refused) {
            return Err(error);
        }
    }
    Err(timeout_error(cell, &refused))
}

/// Why a refused write need not wait: the store cannot be written.
pub(super) fn store_failure(cell: &WriterCell, refused: &WriteRefused) -> Option<Error> {
    refused.awaits_store.then(|| cell.store_failure("write")).flatten()
}

/// Waits until there may be room for a sample of this size, unless there is room already.
pub(crate) fn wait_for_room<L: Lock<State = Writer>>(
    waiters: &Waiters,
    lock: &L,
    instance: &KeyHash,
    payload_bytes: usize,
    deadline: Deadline,
) {
    let mut writer = lock.lock();
    if !writer.ask_for_room(instance, payload_bytes) {
        drop(waiters.wait(lock, writer, deadline));
    }
}

/// Longest wait of a write for readers on this host that are far behind, although the history has room.
const FOLLOW_MAX: Duration = Duration::from_millis(5);

/// Releases the lock until the readers have followed, or have shown that they are slow.
pub(super) fn let_readers_follow<'a>(cell: &'a WriterCell, mut writer: Held<'a, Writer>) -> Held<'a, Writer> {
    if on_io_thread() {
        return writer;
    }
    let deadline = Deadline::after(FOLLOW_MAX.min(cell.max_blocking_time()));
    while writer.await_readers() {
        if deadline.has_passed() {
            writer.stop_awaiting_readers();
            break;
        }
        writer = cell.waiters.wait(&cell.writer, writer, deadline);
    }
    writer
}

/// Waits until every reader has acknowledged all samples written so far, and requests acknowledgements at once.
pub(super) fn wait_for_acknowledgments(
    state: &RuntimeState,
    cell: &WriterCell,
    timeout: Duration,
) -> Result<(), Error> {
    let deadline = Deadline::after(timeout);
    let last = request_acknowledgements(state, cell);
    let mut writer = cell.writer.lock();
    loop {
        if let Some(outcome) = acknowledgement_outcome(cell, &mut writer, last) {
            return outcome;
        }
        if deadline.has_passed() || on_io_thread() {
            let (behind, matched) = (writer.readers_below(last), writer.matched_readers().len());
            let (cause, advice) = match behind {
                0 => ("the store has not kept up".to_owned(), "wait longer, or use a faster disk"),
                _ => (
                    format!("{behind} of {matched} readers owe an acknowledgement"),
                    "wait longer, or look with `thalweg ls` which reader does not answer",
                ),
            };
            let cause = format!("timed out after {timeout:?}: {cause}");
            return Err(Error::new(ErrorKind::Timeout, "wait_for_acknowledgments", cause)
                .on_topic(&cell.topic.name)
                .advise(advice));
        }
        writer = cell.waiters.wait(&cell.writer, writer, deadline);
    }
}

/// Sends what waits for company, and asks every reader for an acknowledgement. Returns the number of the last sample.
pub(super) fn request_acknowledgements(state: &RuntimeState, cell: &WriterCell) -> SequenceNumber {
    // The participant's timer repeats the request while acknowledgements are owed.
    transmit(state, cell, false, |writer, now| {
        writer.flush();
        writer.request_acknowledgement(now);
        (writer.last(), Some(now))
    })
}

/// Whether every reader has acknowledged the samples up to `last`, and the store of a PERSISTENT writer holds them; `None` while that may
/// still come, which is told then.
pub(super) fn acknowledgement_outcome(
    cell: &WriterCell,
    writer: &mut Writer,
    last: SequenceNumber,
) -> Option<Result<(), Error>> {
    let forsaken = cell.take_given_up(writer.counters().readers_given_up);
    let (behind, given_up) = (writer.readers_below(last), writer.readers_given_up());
    if forsaken > 0 || behind > 0 && behind <= given_up {
        return Some(Err(given_up_error(cell, forsaken.max(given_up as u64))));
    }
    if behind > 0 {
        writer.await_acknowledgement(last);
    }
    if !writer.is_stored_up_to(last) {
        return cell.store_failure("wait_for_acknowledgments").map(Err);
    }
    (behind == 0).then_some(Ok(()))
}

fn given_up_error(cell: &WriterCell, readers: u64) -> Error {
    let cause = format!(
        "failed: {readers} {} no progress for {:?} and may lack samples that were written",
        if readers == 1 { "reader has made" } else { "readers have made" },
        cell.qos().reader_patience
    );
    Error::new(ErrorKind::Error, "wait_for_acknowledgments", cause)
        .on_topic(&cell.topic.name)
        .advise("raise reader_patience, or look with `thalweg why` which reader does not acknowledge")
}

/// Waits until at least `count` readers are matched.
pub(super) fn wait_for_matched(cell: &WriterCell, count: usize, timeout: Duration) -> Result<(), Error> {
    let deadline = Deadline::after(timeout);
    let mut writer = cell.writer.lock();
    while writer.matched_readers().len() < count {
        if deadline.has_passed() || on_io_thread() {
            let cause =
                format!("timed out after {timeout:?}: {} of {count} readers matched", writer.matched_readers().len());
            let advice = "start the readers, or see the incompatible QoS status and `thalweg doctor`";
            return Err(Error::new(ErrorKind::Timeout, "wait_for_matched", cause)
                .on_topic(&cell.topic.name)
                .advise(advice));
        }
        writer = cell.waiters.wait(&cell.writer, writer, deadline);
    }
    Ok(())
}

fn timeout_error(cell: &WriterCell, refused: &WriteRefused) -> Error {
    let cause = format!("timed out after {:?}: {}", cell.max_blocking_time(), owing(refused));
    Error::new(ErrorKind::Timeout, "write", cause).on_topic(&cell.topic.name).advise(advice(cell))
}

fn inline_error(cell: &WriterCell, refused: &WriteRefused) -> Error {
    let cause = format!(
        "found no room in a listener that runs inline on the I/O thread, where it cannot wait for the acknowledgements \
         that this thread itself receives: {}",
        owing(refused)
    );
    Error::new(ErrorKind::Timeout, "write", cause)
        .on_topic(&cell.topic.name)
        .advise("use Delivery::Thread for listeners that write, or raise the history's limits")
}

fn owing(refused: &WriteRefused) -> String {
    let WriteRefused { readers_behind, readers, held, .. } = refused;
    if refused.awaits_store {
        return "the store has not kept up".to_owned();
    }
    if *readers_behind == 0 {
        return format!("the history is full with {held} samples");
    }
    format!("{readers_behind} of {readers} readers owe an acknowledgement, the history holds {held} samples")
}

fn advice(cell: &WriterCell) -> &'static str {
    let qos = cell.qos();
    match (qos.reliability, qos.history) {
        (Reliability::BestEffort, _) => "raise resource_limits",
        (Reliability::Reliable { .. }, History::KeepAll) => "raise max_blocking_time or resource_limits.max_samples",
        (Reliability::Reliable { .. }, History::KeepLast(_)) => "raise max_blocking_time or resource_limits",
    }
}
