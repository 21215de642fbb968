//! Samples whose instance only the driver can tell: their key is computed outside the reader, without its lock.

use super::window::Arrived;
use super::writer_proxy::WriterProxy;
use super::{LossReason, Reader, ReaderOutcome};
use crate::history::PayloadKind;
use crate::payload::Payload;
use crate::time::Instant;
use crate::types::{Guid, KeyHash, SequenceNumber};

/// A sample whose key is to be computed.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// Its writer.
    pub writer: Guid,
    /// Its number within its writer.
    pub sequence: SequenceNumber,
    /// Serialized sample or key with its encapsulation header.
    pub content: Payload,
    /// The kind of the content.
    pub content_kind: PayloadKind,
}

/// The answer to a [`KeyRequest`].
#[derive(Clone, Copy, Debug)]
pub struct Identified {
    /// The sample's writer.
    pub writer: Guid,
    /// The sample's number within its writer.
    pub sequence: SequenceNumber,
    /// Its instance; `None` when its key cannot be computed, so that the hint of the wire has to do.
    pub instance: Option<KeyHash>,
}

impl Reader {
    /// True when [`Reader::poll_keys`] has something to ask.
    pub fn has_keys_due(&self) -> bool {
        self.writers.any_awaits_key()
    }

    /// Appends the samples whose key is to be computed next, in the order of each writer and at most `max` of each. They are
    /// asked for again until [`Reader::handle_keys`] has the answer: one driver at a time.
    ///
    /// Samples that wait for their key are not acknowledged and not asked for again; nothing of their writer overtakes them.
    /// Their number is bounded like that of samples which wait for a missing one.
    pub fn poll_keys(&self, max: usize, into: &mut Vec<KeyRequest>) {
        for writer in self.writers.holding() {
            into.extend(writer.window.awaiting_keys(max).map(|sample| KeyRequest {
                writer: sample.writer,
                sequence: sample.sequence,
                content: sample.payload.clone(),
                content_kind: sample.payload_kind,
            }));
        }
    }

    /// Takes keys into account and delivers what waited for them. The instant, if there is one, is for
    /// `Participant::rearm`: a writer waits for the acknowledgement, or a status has changed.
    pub fn handle_keys(
        &mut self,
        now: Instant,
        answers: impl Iterator<Item = Identified>,
    ) -> (ReaderOutcome, Option<Instant>) {
        let mut has_lost = false;
        let rejected = self.rejections().total;
        for Identified { writer, sequence, instance } in answers {
            let Some(index) = self.writers.place(writer) else { continue };
            if !self.writers[index].window.identify(sequence, instance) {
                self.handover.shortfall.lose(LossReason::KeyUnknown, 1);
                has_lost = true;
            }
        }
        let mut data_available = false;
        self.writers.move_on(|writer| {
            let before = writer.window.next();
            data_available |= self.handover.drain(now, writer) > 0;
            // A HEARTBEAT that asked for them meanwhile was answered without them.
            let is_owed = writer.announced_by_heartbeat.is_some_and(|announced| announced >= before);
            (is_owed && writer.window.next() > before).then(|| {
                writer.answer_at(now);
                now
            })
        });
        let (answer_due, keys_due) = (self.is_due(now), self.has_keys_due());
        let outcome = ReaderOutcome { data_available, answer_due, keys_due, ..ReaderOutcome::default() };
        let has_news = has_lost || self.rejections().total > rejected;
        (outcome, self.newly_armed().map(|at| if has_news { at.min(now) } else { at }).or(has_news.then_some(now)))
    }

    /// Nobody asks for the keys of a writer's samples any more: those that the wire tells have to do. A best-effort sample without one is
    /// lost, a reliable one may come again and stays where it is, with what is behind it. True when the application can take something new.
    pub(super) fn identify_by_hints(&mut self, now: Instant, writer: &mut WriterProxy) -> bool {
        let is_reliable = writer.matched.reliable;
        let waiting = writer.window.arrived.iter().filter_map(|(sequence, arrived)| match arrived {
            Arrived::AwaitsKey(_, hint) => Some((*sequence, hint.is_some())),
            _ => None,
        });
        let waiting = waiting.take_while(|(_, has_hint)| *has_hint || !is_reliable);
        let waiting: Vec<SequenceNumber> = waiting.map(|(sequence, _)| sequence).collect();
        if waiting.is_empty() {
            return false;
        }
        let unknown = waiting.iter().filter(|sequence| !writer.window.identify(**sequence, None)).count();
        self.handover.shortfall.lose(LossReason::KeyUnknown, unknown as u64);
        self.handover.drain(now, writer) > 0
    }
}
