//! Samples of writers that repeat nothing: each one is handed over when it comes, and skipped ones are lost.

use super::window::{Placed, Window};
use super::{Arrival, LossReason, Reader, Received};
use crate::history::CachedSample;
use crate::time::Instant;
use crate::types::SequenceNumber;

impl Reader {
    pub(super) fn handle_best_effort(
        &mut self,
        now: Instant,
        index: usize,
        arrivals: impl Iterator<Item = Arrival>,
    ) -> bool {
        let mut available = false;
        for arrival in arrivals {
            let writer = &mut self.writers[index];
            match arrival {
                Arrival::Sample(sample) if writer.window.is_empty() => {
                    match writer.accept_best_effort(now, sample.sequence, sample.sequence.next()) {
                        None => self.note_refused(index, sample.sequence),
                        Some(skipped) => {
                            self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
                            available |= self.handover.deliver(now, writer, sample).unwrap_or(false);
                        }
                    }
                }
                Arrival::Sample(sample) => available |= self.queue(now, index, sample, Window::place),
                Arrival::AwaitsKey { sample, hint } => {
                    available |=
                        self.queue(now, index, sample, |window, sample| window.place_awaiting_key(sample, hint));
                }
                Arrival::Unidentified(sequence) => match writer.accept_best_effort(now, sequence, sequence.next()) {
                    None => self.note_refused(index, sequence),
                    Some(skipped) => {
                        self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
                        self.handover.shortfall.lose(LossReason::KeyUnknown, 1);
                    }
                },
                Arrival::Unwanted(sequence) => {
                    let skipped = writer.accept_best_effort(now, sequence, sequence.next()).unwrap_or(0);
                    self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
                }
                Arrival::Irrelevant { start, end } => {
                    let skipped = writer.accept_best_effort(now, start, end).unwrap_or(0);
                    self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
                }
                Arrival::BatchEnd(_) | Arrival::NextDatagram => {}
            }
        }
        available
    }

    /// A best-effort sample is too old, or too new.
    #[cold]
    fn note_refused(&mut self, index: usize, sequence: SequenceNumber) {
        let is_new = self.writers[index].window.is_new(sequence);
        *(if is_new { &mut self.counters.too_far } else { &mut self.counters.duplicates }) += 1;
    }

    /// Queues a best-effort sample behind those that wait for their instance. True when something can be taken now.
    fn queue(
        &mut self,
        now: Instant,
        index: usize,
        sample: Received,
        place: impl FnOnce(&mut Window, CachedSample) -> Placed,
    ) -> bool {
        let start = sample.sequence;
        let Some(skipped) = self.writers[index].accept_best_effort(now, start, start) else {
            self.note_refused(index, start);
            return false;
        };
        self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
        self.hold(now, index, sample, place);
        self.handover.drain(now, &mut self.writers[index]) > 0
    }
}
