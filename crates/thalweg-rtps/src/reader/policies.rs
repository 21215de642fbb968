//! What others tell a reader of its writers, and ask it, for the sake of policies about what is handed over.

use std::sync::Arc;

use super::admission::{Admission, Head};
use super::{CoherentSets, GroupArrival, GroupMark, GroupShare, LossReason, Reader, ReaderOutcome};
use crate::history::{CachedSample, DeadlineMissed, SetRefusal};
use crate::qos::ReaderQos;
use crate::time::{EpochOffset, Instant};
use crate::types::Guid;
use crate::wire::Heartbeat;

impl Reader {
    /// Takes note of the wall clock, by which the age of samples of writers with a LIFESPAN is told.
    #[inline]
    pub(crate) fn set_epoch(&mut self, epoch: Option<EpochOffset>) {
        self.handover.epoch = epoch;
        if let Some(admission) = &mut self.handover.admission {
            admission.set_epoch(epoch);
        }
    }

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

    /// What a writer says of the places within its publisher of samples that come next, where the reader's PRESENTATION spans its
    /// subscriber.
    pub(crate) fn note_group_marks(&mut self, writer: Guid, marks: &[GroupMark]) {
        let (Some(group), Some(index)) = (self.handover.group_mut(), self.writers.place(writer)) else { return };
        let proxy = &mut self.writers[index];
        for mark in marks {
            // As its sample will do: without its place that would be handed over as one without publisher.
            proxy.take_back(mark.sequence);
            if proxy.window.is_new(mark.sequence) && proxy.window.reaches(mark.sequence) {
                group.note(writer, *mark);
            }
        }
    }

    /// Whether [`Reader::take_group_arrivals`] has something to give.
    #[inline]
    pub(crate) fn has_group_arrivals(&self) -> bool {
        self.handover.group().is_some_and(|group| group.has_arrived())
    }

    /// The samples to be put in order with those of the subscriber's other readers, in the order of their writers.
    pub(crate) fn take_group_arrivals(&mut self) -> Vec<GroupArrival> {
        self.handover.group_mut().map(|group| group.take()).unwrap_or_default()
    }

    /// Why samples that appear together, here and in other readers, have no room here. Where they can wait for it, each take has the
    /// participant look at the reader from now on, until [`Reader::forget_awaited_room`].
    pub(crate) fn ask_for_room(&mut self, samples: &[&CachedSample]) -> Option<SetRefusal> {
        let (cache, last) = (&self.handover.cache, samples.last()?);
        let refusal = match samples {
            [alone] => {
                let reason = Head::of(alone).refusal(cache, alone.payload.len());
                reason.map(|reason| SetRefusal::Now(reason, alone.instance))
            }
            _ => cache.refusal_of_set(samples.iter().copied()),
        };
        let SetRefusal::Now(reason, instance) = refusal? else { return refusal };
        if let Some(index) = self.writers.place(last.writer) {
            self.handover.reject(&mut self.writers[index], reason, instance, last.sequence);
        }
        self.await_room();
        refusal
    }

    /// Whether so many samples that wait together have no room here yet, by their number alone; then each take has the participant look at
    /// the reader as before.
    pub(crate) fn lacks_places(&mut self, count: usize) -> bool {
        let lacks = count > 1 && !self.handover.cache.has_places_for(count);
        if lacks {
            self.await_room();
        }
        lacks
    }

    fn await_room(&mut self) {
        self.handover.is_stalled = true;
        if let Some(group) = self.handover.group_mut() {
            group.awaits_room = true;
        }
    }

    /// No sample of the subscriber is known to wait for room here.
    pub(crate) fn forget_awaited_room(&mut self) {
        if let Some(group) = self.handover.group_mut() {
            group.awaits_room = false;
        }
    }

    /// Keeps what comes of writers in their windows from now on, or lets it come.
    pub(crate) fn hold_writers(&mut self, now: Instant, writers: &[Guid], is_held: bool) -> ReaderOutcome {
        let Some(group) = self.handover.group_mut() else { return ReaderOutcome::default() };
        writers.iter().for_each(|writer| group.hold(*writer, is_held));
        let data_available = !is_held && self.use_room(now).is_any;
        ReaderOutcome { data_available, keys_due: self.has_keys_due(), ..ReaderOutcome::default() }
    }

    /// Hands over samples whose turn has come.
    pub(crate) fn present(&mut self, now: Instant, share: GroupShare) -> ReaderOutcome {
        self.handover.shortfall.lose(LossReason::SetIncomplete, share.lost);
        for (reason, instance) in share.rejected {
            self.handover.shortfall.reject(reason, instance);
        }
        let mut data_available = false;
        for sample in share.samples {
            let head = Head::of(&sample);
            data_available |= self.handover.present(now, sample);
            if self.writers.place(head.writer).is_none_or(|index| !self.writers[index].is_alive) {
                self.handover.let_go(now, &head);
            }
        }
        ReaderOutcome { data_available, ..ReaderOutcome::default() }
    }

    /// Whether everything has come that a HEARTBEAT of a writer tells of.
    pub(crate) fn has_all_of(&self, writer: Guid, heartbeat: &Heartbeat) -> bool {
        self.writers.place(writer).is_some_and(|index| {
            let proxy = &self.writers[index];
            proxy.announced_by_heartbeat == Some(heartbeat.last) && proxy.window.next() > heartbeat.last
        })
    }

    /// Has an answer to a writer ask where it is, unless something of it is missing: that is on its way, and tells.
    pub(crate) fn question_writer(&mut self, now: Instant, writer: Guid) {
        if let Some(index) = self.writers.place(writer)
            && !self.writers[index].misses_any()
        {
            let due = self.writers[index].question(now);
            self.writers.note_due(due);
        }
    }

    /// The reader gets only some samples of each writer: the end of an instance is news only where it has got one of it.
    pub(crate) fn ignore_unknown_ends(&mut self) {
        let admission = self.handover.admission.take();
        if let Some(coherence) = &mut self.handover.coherence {
            coherence.tolerate_gaps();
        }
        self.handover.admission = Some(admission.unwrap_or_else(Admission::of_everything).without_unknown_ends());
    }

    /// Tells every end of an instance that a matched writer tells from now on, see
    /// [`SampleCache::tell_every_end`](crate::history::SampleCache::tell_every_end).
    pub fn tell_every_end(&mut self) {
        self.handover.cache.tell_every_end();
    }

    /// Lets nothing gather for it, whatever its LATENCY_BUDGET permits; to be called before the driver asks for
    /// [`Participant::latency_budget`](crate::participant::Participant::latency_budget).
    pub fn set_prompt(&mut self) {
        self.is_prompt = true;
    }

    /// Whether [`Reader::set_prompt`] was called.
    pub fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// A matched writer has lost its liveliness: its instances lose it, but it stays matched.
    pub fn writer_not_alive(&mut self, now: Instant, guid: Guid) -> ReaderOutcome {
        if let Some(admission) = &mut self.handover.admission {
            admission.disregard(guid);
        }
        self.note_alive(guid, false);
        ReaderOutcome { data_available: self.handover.lose_writer(now, guid), ..ReaderOutcome::default() }
    }

    /// A matched writer is alive again.
    pub fn writer_alive(&mut self, guid: Guid) {
        if let Some(admission) = &mut self.handover.admission {
            admission.regard(guid);
        }
        self.note_alive(guid, true);
    }

    fn note_alive(&mut self, writer: Guid, is_alive: bool) {
        if let Some(index) = self.writers.place(writer) {
            self.writers[index].is_alive = is_alive;
        }
    }
}
