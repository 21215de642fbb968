//! What others tell a reader of its writers, and ask it, for the sake of policies about what is handed over.

use std::sync::Arc;

use super::admission::Admission;
use super::{CoherentSets, Reader, ReaderOutcome};
use crate::history::{CachedSample, DeadlineMissed};
use crate::qos::ReaderQos;
use crate::time::Instant;
use crate::types::Guid;

impl Reader {
    /// Changes the policies that may change; see [`ReaderQos::check_change`], which holds. A DEADLINE or TIME_BASED_FILTER that there
    /// was none of before counts for instances from their next sample on.
    pub(crate) fn set_qos(&mut self, now: Instant, qos: Arc<ReaderQos>) {
        match &mut self.handover.admission {
            Some(admission) => admission.set_timing(now, &qos),
            None => self.handover.admission = Admission::new(&qos),
        }
        self.qos = qos;
    }

    /// Its policies now.
    pub(crate) fn qos(&self) -> &ReaderQos {
        &self.qos
    }

    /// Takes a sample that the participant itself makes.
    pub(crate) fn handle_known(&mut self, now: Instant, sample: CachedSample) -> ReaderOutcome {
        ReaderOutcome { data_available: self.handover.present(now, sample), ..ReaderOutcome::default() }
    }

    /// REQUESTED_DEADLINE_MISSED.
    pub fn deadline_missed(&self) -> DeadlineMissed {
        self.handover.admission.as_ref().map(|admission| admission.deadline_missed()).unwrap_or_default()
    }

    /// Whether it presents coherent sets as wholes.
    pub fn wants_coherent_sets(&self) -> CoherentSets {
        if self.handover.coherence.is_some() { CoherentSets::Wanted } else { CoherentSets::Ignored }
    }

    /// The reader gets only some samples of each writer: the end of an instance is news only where it has got one of it.
    pub(crate) fn ignore_unknown_ends(&mut self) {
        let admission = self.handover.admission.take();
        if let Some(coherence) = &mut self.handover.coherence {
            coherence.tolerate_gaps();
        }
        self.handover.admission = Some(admission.unwrap_or_else(Admission::of_everything).without_unknown_ends());
    }

    /// A matched writer has lost its liveliness: its instances lose it, but it stays matched.
    pub fn writer_not_alive(&mut self, now: Instant, guid: Guid) -> ReaderOutcome {
        if let Some(admission) = &mut self.handover.admission {
            admission.disregard(guid);
        }
        ReaderOutcome { data_available: self.handover.lose_writer(now, guid), ..ReaderOutcome::default() }
    }

    /// A matched writer is alive again.
    pub fn writer_alive(&mut self, guid: Guid) {
        if let Some(admission) = &mut self.handover.admission {
            admission.regard(guid);
        }
    }
}
