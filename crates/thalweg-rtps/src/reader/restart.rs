//! Writers of other vendors that begin anew under their old GUID while nobody has noticed that they were gone: some vendors' GUIDs follow
//! from an address, and their numbers begin at 1 again (Thalweg's are drawn at random). Otherwise nothing of the new one would be heard
//! until it has written as much as the old one.
//!
//! A low last number alone proves nothing: Fast DDS 3.1.2 takes the newest sample out of its history when that ends an instance and all
//! have it. But what goes on in its old life never grows again below what was received, and never counts its HEARTBEATs from below.

use std::time::Duration;

use super::writer_proxy::WriterProxy;
use super::{LossReason, Reader};
use crate::count::is_newer;
use crate::time::Instant;
use crate::types::{SequenceNumber, VendorId};
use crate::wire::Heartbeat;

/// How long a writer is left to say something else before it is asked: longer than a network holds a HEARTBEAT back.
const RELAPSE_PATIENCE: Duration = Duration::from_millis(200);

/// A writer says that it has not got as far as what was received of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relapse {
    /// The number expected when it said so: one that comes under it shows that the writer goes on.
    next: SequenceNumber,
    /// The last number that it named.
    last: SequenceNumber,
    count: u32,
    /// When it was asked.
    asked_at: Option<Instant>,
    /// It has only taken samples out of its history.
    is_settled: bool,
}

impl Relapse {
    /// An answer that asks for a HEARTBEAT leaves.
    pub(super) fn note_asked(&mut self, now: Instant) {
        self.asked_at.get_or_insert(now);
    }

    /// Whether the writer has still to say more.
    pub(super) fn is_open(&self) -> bool {
        !self.is_settled
    }
}

impl WriterProxy {
    /// A HEARTBEAT came. Returns whether it shows that the writer has begun anew; where it may have, the writer is asked in a while.
    pub(super) fn note_relapse(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        let (next, last, count) = (self.window.next(), heartbeat.last, heartbeat.count);
        let is_less = heartbeat.first <= last && last < next.previous();
        // What was skipped or is held beyond the last number is doubted first.
        let is_relapse = is_less && self.window.first_beyond(last).is_none();
        if self.matched.vendor == VendorId::THALWEG || !is_relapse {
            self.doubt.relapse = None;
            return false;
        }
        let before = self.doubt.relapse.filter(|relapse| relapse.next == next);
        let new = Relapse { next, last, count, asked_at: None, is_settled: false };
        match before {
            Some(settled) if settled.is_settled && last <= settled.last => {
                self.doubt.relapse = Some(Relapse { last, ..settled });
                return false;
            }
            Some(open) if open.is_open() && is_newer(count, open.count) => {
                if open.asked_at.is_none_or(|at| now.since(at) < self.repeat_period()) {
                    return false;
                }
                let counts_anew = self.doubt.newest.is_some_and(|newest| !is_newer(count, newest));
                self.doubt.relapse = Some(Relapse { last, is_settled: true, ..open });
                return last > open.last || counts_anew;
            }
            // One that was settled has grown.
            Some(before) => self.doubt.relapse = Some(Relapse { last: before.last.min(last), ..new }),
            None => self.doubt.relapse = Some(new),
        }
        self.question_at(now + RELAPSE_PATIENCE);
        false
    }

    /// A HEARTBEAT that counts for nothing else still shows that the writer goes on: a forged count must not silence it.
    pub(super) fn contradict_relapse(&mut self, heartbeat: &Heartbeat) {
        if heartbeat.last >= self.window.next().previous() {
            self.doubt.relapse = None;
        }
    }

    /// Whether the writer may have begun anew: then it is not to be told that what it writes has been received.
    pub(super) fn may_have_begun_anew(&self) -> bool {
        self.doubt.relapse.is_some_and(|relapse| relapse.is_open() && relapse.next == self.window.next())
    }

    /// Whether late samples, for a best-effort reader, may be those of a writer that has begun anew. A reliable writer may repeat old
    /// ones for other readers, but its HEARTBEATs tell how far it is.
    pub(super) fn may_repeat_numbers(&self) -> bool {
        let says_less = self.doubt.told_last.is_some_and(|last| last < self.window.highest());
        let repeats_nothing = !self.matched.qos.reliability.is_reliable();
        self.matched.vendor != VendorId::THALWEG && (repeats_nothing || says_less)
    }
}

impl Reader {
    /// A writer has begun anew: what waited of its old life is lost.
    pub(super) fn begin_writer_anew(&mut self, index: usize) {
        let writer = &mut self.writers[index];
        let guid = writer.matched.guid;
        let lost = writer.begin_anew(SequenceNumber::FIRST);
        self.handover.shortfall.lose(LossReason::GoneAtWriter, lost);
        if let Some(coherence) = &mut self.handover.coherence {
            coherence.forget(guid);
            self.handover.shortfall.lose(LossReason::SetIncomplete, coherence.take_dropped());
        }
    }
}
