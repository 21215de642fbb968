//! The way of samples from a reader's writers into its cache, and the counts of those that have no use or no room there.

use super::admission::{Admission, Head, Verdict};
use super::coherence::Coherence;
use super::group_inbox::GroupInbox;
use super::shortfall::Shortfall;
use super::standing::Waiting;
use super::writer_proxy::WriterProxy;
use super::{LossReason, MatchedWriter, ReaderOutcome, Received};
use crate::history::{CachedSample, Insert, RejectReason, SampleCache, SetRefusal};
use crate::time::{EpochOffset, INFINITE, Instant};
use crate::trace::{self, Mark, Passage};
use crate::types::{Guid, KeyHash, SequenceNumber};

/// The next sample of a writer has to wait for room in the cache.
struct Waits {
    /// A set before it has appeared.
    has_ended: bool,
}

/// The cache of one reader, and the counts of samples that did not get there.
#[derive(Debug)]
pub(super) struct Handover {
    reader: Guid,
    pub cache: SampleCache,
    pub admission: Option<Box<Admission>>,
    pub coherence: Option<Box<Coherence>>,
    /// Some writer's next sample, or one that came too early before, waits for room.
    pub is_stalled: bool,
    /// A set has appeared before a sample that waits for room.
    pub has_ended_set: bool,
    /// The wall clock, where it is known.
    pub epoch: Option<EpochOffset>,
    pub shortfall: Shortfall,
    /// Samples handed to the cache.
    pub received: u64,
    /// Samples that went because their writer's LIFESPAN was over, or the time that READER_DATA_LIFECYCLE gives their instance.
    pub expired: u64,
}

impl Handover {
    pub(super) fn new(
        reader: Guid,
        cache: SampleCache,
        admission: Option<Box<Admission>>,
        coherence: Option<Box<Coherence>>,
    ) -> Handover {
        let shortfall = Shortfall::default();
        Handover {
            reader,
            cache,
            admission,
            coherence,
            is_stalled: false,
            has_ended_set: false,
            epoch: None,
            shortfall,
            received: 0,
            expired: 0,
        }
    }

    /// When samples expire or an instance is due, at the earliest.
    #[inline]
    pub(super) fn next_due(&self) -> Instant {
        let admission = self.admission.as_ref().map_or(Instant::NEVER, |admission| admission.next_due());
        self.cache.next_expiry().min(admission)
    }

    /// The instances of a writer lose it. True when there is something to take that there was not before.
    pub(super) fn lose_writer(&mut self, now: Instant, writer: Guid) -> bool {
        let has_news = self.cache.writer_lost(writer, now);
        if let Some(admission) = &mut self.admission {
            admission.forget_ended(&self.cache);
        }
        has_news
    }

    /// The writer of a sample that was handed over late had left before: its instance loses it at once.
    pub(super) fn let_go(&mut self, now: Instant, head: &Head) {
        match &mut self.admission {
            Some(admission) => admission.let_go(now, head, &mut self.cache),
            None => self.cache.instance_left(head.instance, head.writer, now),
        }
    }

    /// Notes missed deadlines, and hands over what came too early and whose time has come; `None` when nothing was due.
    pub(super) fn check_admission(&mut self, now: Instant) -> Option<ReaderOutcome> {
        let admission = self.admission.as_mut().filter(|admission| admission.next_due() <= now)?;
        let deadline_missed = admission.check_deadlines(now);
        let mut data_available = false;
        while let Some(Waiting { sample, has_left, is_silent }) = admission.poll_waiting(now) {
            let head = Head::of(&sample);
            if sample.expires <= now {
                self.expired += 1;
            } else if let Some(reason) = head.refusal(&self.cache, sample.payload.len()) {
                self.shortfall.reject(reason, head.instance);
                admission.keep_overdue(now, Waiting { sample, has_left, is_silent });
                self.is_stalled = true;
            } else {
                self.received += 1;
                insert(&mut self.cache, self.reader, sample);
                admission.note_admitted(now, &head, &self.cache);
                if has_left || is_silent {
                    admission.let_go(now, &head, &mut self.cache);
                }
                data_available = true;
            }
        }
        Some(ReaderOutcome { data_available, deadline_missed, ..ReaderOutcome::default() })
    }

    /// Why a sample that is judged so finds no room: in the cache, or among those that wait for their time.
    #[inline]
    fn refusal(&self, verdict: Verdict, head: &Head, payload_bytes: usize) -> Option<RejectReason> {
        let (instance, bytes_max) = (head.instance, self.cache.bytes_max());
        match (verdict, &self.admission) {
            (Verdict::Admit(kind), _) => Head { kind, ..*head }.refusal(&self.cache, payload_bytes),
            (Verdict::Wait, Some(admission)) if admission.lacks_room_to_wait(instance, payload_bytes, bytes_max) => {
                Some(RejectReason::Memory)
            }
            _ => None,
        }
    }

    /// Hands over what came too early and met a full cache when its time had come, as far as there is room now; true when something had.
    pub(super) fn present_overdue(&mut self, now: Instant) -> bool {
        let Some(admission) = &mut self.admission else { return false };
        let (mut place, mut has_delivered) = (None, false);
        while let Some((next, sample)) = admission.overdue_after(place) {
            place = Some(next);
            let (head, is_over) = (Head::of(sample), sample.expires <= now);
            if !is_over && let Some(reason) = head.refusal(&self.cache, sample.payload.len()) {
                self.is_stalled = true;
                if reason == RejectReason::SamplesPerInstance {
                    // Another instance may have room.
                    continue;
                }
                break;
            }
            let Some(Waiting { sample, has_left, is_silent }) = admission.take_overdue(next) else { continue };
            if is_over {
                self.expired += 1;
                continue;
            }
            self.received += 1;
            insert(&mut self.cache, self.reader, sample);
            admission.note_admitted(now, &head, &self.cache);
            if has_left || is_silent {
                admission.let_go(now, &head, &mut self.cache);
            }
            has_delivered = true;
        }
        has_delivered
    }

    /// What is to become of a sample.
    #[inline]
    fn judge(&self, now: Instant, head: &Head) -> Verdict {
        match &self.admission {
            Some(admission) => admission.judge(now, head, &self.cache),
            None => Verdict::Admit(head.kind),
        }
    }

    /// Whether samples of the subscriber wait for room here.
    pub(super) fn awaits_room(&self) -> bool {
        self.group().is_some_and(|group| group.awaits_room)
    }

    /// Where the reader's PRESENTATION spans its subscriber: what goes to where that puts samples together.
    pub(super) fn group(&self) -> Option<&GroupInbox> {
        self.coherence.as_ref()?.group.as_ref()
    }

    pub(super) fn group_mut(&mut self) -> Option<&mut GroupInbox> {
        self.coherence.as_mut()?.group.as_mut()
    }

    /// Lets samples go whose time is over; true when there were any.
    #[inline]
    pub(super) fn expire(&mut self, clock: impl Fn() -> Instant) -> bool {
        if self.cache.next_expiry() == Instant::NEVER {
            return false;
        }
        let before = (self.cache.len(), self.cache.instances());
        self.expired += self.cache.expire(clock());
        let has_freed = before != (self.cache.len(), self.cache.instances());
        if has_freed && let Some(admission) = &mut self.admission {
            admission.forget_ended(&self.cache);
        }
        has_freed
    }

    /// The writer no longer has `count` samples that did not arrive: where its samples have a LIFESPAN, their time was over.
    pub(super) fn lose_at_writer(&mut self, writer: &MatchedWriter, count: u64) {
        match writer.qos.timing.lifespan {
            INFINITE => self.shortfall.lose(LossReason::GoneAtWriter, count),
            _ => self.expired += count,
        }
    }

    /// Hands a sample to the cache. Returns whether the application can take something new, or the sample when there is no
    /// room for it.
    #[inline(always)]
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        writer: &mut WriterProxy,
        sample: Received,
    ) -> Result<bool, Received> {
        let expires = writer.expiry(now, &sample, self.epoch);
        if expires <= now {
            self.expired += 1;
            return Ok(false);
        }
        if self.coherence.is_some() {
            return self.deliver_coherent(now, writer, sample, expires);
        }
        if self.admission.is_some() {
            return self.deliver_admitted(now, writer, sample, expires);
        }
        let from = writer.matched.guid;
        if let Some(reason) = self.cache.refusal(sample.instance, sample.kind, from, sample.content.len()) {
            self.reject(writer, reason, sample.instance, sample.sequence);
            return Err(sample);
        }
        self.received += 1;
        Ok(insert(&mut self.cache, self.reader, sample.into_cached(from, now, expires)) != Insert::Ignored)
    }

    /// As [`Handover::deliver`] where coherent sets are presented as wholes.
    #[inline(never)]
    fn deliver_coherent(
        &mut self,
        now: Instant,
        writer: &mut WriterProxy,
        sample: Received,
        expires: Instant,
    ) -> Result<bool, Received> {
        let from = writer.matched.guid;
        let head = Head { writer: from, instance: sample.instance, kind: sample.kind, timestamp: sample.timestamp };
        let (said, bytes) = ((sample.coherent_set, sample.sequence), sample.content.len());
        match self.end_set(now, writer, &head, said, bytes) {
            Ok(has_ended) => Ok(has_ended | self.collect(now, sample.into_cached(from, now, expires))),
            Err(Waits { has_ended }) => {
                self.has_ended_set |= has_ended;
                Err(sample)
            }
        }
    }

    /// Hands over the set that ends where the next sample of a writer comes, which says so of sets and has this number; true when there
    /// is something new to take. That sample is to wait if the set has no room as a whole, or it has none itself.
    fn end_set(
        &mut self,
        now: Instant,
        writer: &mut WriterProxy,
        head: &Head,
        (set, sequence): (SequenceNumber, SequenceNumber),
        payload_bytes: usize,
    ) -> Result<bool, Waits> {
        let Some(coherence) = &mut self.coherence else { return Ok(false) };
        if coherence.holds(head.writer) {
            return Err(Waits { has_ended: false });
        }
        let refusal = self.cache.refusal_of_set(coherence.ending(head.writer, set, sequence).iter());
        if let Some(SetRefusal::Now(reason, instance)) = refusal
            && writer.matched.reliable
        {
            self.reject(writer, reason, instance, sequence);
            return Err(Waits { has_ended: false });
        }
        let mut has_ended = false;
        for sample in coherence.end(head.writer, set, sequence) {
            match refusal {
                None => has_ended |= self.present(now, sample),
                Some(SetRefusal::Now(reason, _) | SetRefusal::Ever(reason)) => {
                    self.shortfall.reject(reason, sample.instance);
                }
            }
        }
        let is_alone =
            self.coherence.as_ref().is_some_and(|coherence| coherence.presents_alone(head.writer, sequence, set));
        if writer.matched.reliable
            && is_alone
            && let Some(reason) = self.refusal(self.judge(now, head), head, payload_bytes)
        {
            self.reject(writer, reason, head.instance, sequence);
            return Err(Waits { has_ended });
        }
        Ok(has_ended)
    }

    /// Takes a sample into account that may be part of a coherent set: sets are handed over when they are complete. True when the
    /// application can take something new.
    fn collect(&mut self, now: Instant, sample: CachedSample) -> bool {
        let Some(coherence) = &mut self.coherence else { return false };
        let ready = coherence.handle(sample, self.cache.bytes_max());
        self.shortfall.lose(LossReason::SetIncomplete, coherence.take_dropped());
        let mut delivered = false;
        for sample in ready {
            delivered |= self.present(now, sample);
        }
        delivered
    }

    /// Hands a sample over that is to be seen together with others: one that finds no room is rejected, since it cannot wait.
    pub(super) fn present(&mut self, now: Instant, sample: CachedSample) -> bool {
        if sample.expires <= now {
            self.expired += 1;
            return false;
        }
        let head = Head::of(&sample);
        let verdict = self.judge(now, &head);
        if let Some(reason) = self.refusal(verdict, &head, sample.payload.len()) {
            self.shortfall.reject(reason, sample.instance);
            return false;
        }
        let Verdict::Admit(kind) = verdict else {
            if let Some(admission) = &mut self.admission {
                admission.withhold(sample, verdict, &mut self.cache);
            }
            return false;
        };
        self.received += 1;
        let inserted = insert(&mut self.cache, self.reader, CachedSample { change: kind, ..sample });
        if let Some(admission) = &mut self.admission {
            admission.note_admitted(now, &Head { kind, ..head }, &self.cache);
        }
        inserted != Insert::Ignored
    }

    /// As [`Handover::deliver`], as far as the reader's policies admit the sample.
    #[inline(never)]
    fn deliver_admitted(
        &mut self,
        now: Instant,
        writer: &mut WriterProxy,
        sample: Received,
        expires: Instant,
    ) -> Result<bool, Received> {
        let Received { instance, kind, timestamp, sequence, .. } = sample;
        let from = writer.matched.guid;
        let head = Head { writer: from, instance, kind, timestamp };
        let verdict = self.judge(now, &head);
        if let Some(reason) = self.refusal(verdict, &head, sample.content.len()) {
            self.reject(writer, reason, instance, sequence);
            return Err(sample);
        }
        let Some(admission) = &mut self.admission else { return Ok(false) };
        let Verdict::Admit(kind) = verdict else {
            admission.withhold(sample.into_cached(from, now, expires), verdict, &mut self.cache);
            return Ok(false);
        };
        self.received += 1;
        let inserted =
            insert(&mut self.cache, self.reader, Received { kind, ..sample }.into_cached(from, now, expires));
        admission.note_admitted(now, &Head { kind, ..head }, &self.cache);
        Ok(inserted != Insert::Ignored)
    }

    /// Hands samples that are in order to the cache until one is missing or has no room; returns how many.
    pub(super) fn drain(&mut self, now: Instant, writer: &mut WriterProxy) -> usize {
        let reliable = writer.matched.reliable;
        let mut delivered = 0;
        while let Some(sample) = writer.window.ready() {
            if self.coherence.is_some() {
                let (head, said) = (Head::of(sample), (sample.coherent_set, sample.sequence));
                let bytes = sample.payload.len();
                match self.end_set(now, writer, &head, said, bytes) {
                    Ok(has_ended) => delivered += usize::from(has_ended),
                    Err(Waits { has_ended }) => {
                        delivered += usize::from(has_ended);
                        self.is_stalled = true;
                        break;
                    }
                }
                let Some(sample) = writer.window.take_ready() else { break };
                delivered += usize::from(self.collect(now, sample));
                continue;
            }
            if sample.expires <= now {
                writer.window.take_ready();
                self.expired += 1;
                continue;
            }
            let head = Head::of(sample);
            let verdict = self.judge(now, &head);
            if let Some(reason) = self.refusal(verdict, &head, sample.payload.len()) {
                let (instance, sequence) = (sample.instance, sample.sequence);
                self.reject(writer, reason, instance, sequence);
                if !reliable {
                    writer.window.take_ready();
                    continue;
                }
                self.is_stalled = true;
                break;
            }
            let Some(sample) = writer.window.take_ready() else { break };
            let Verdict::Admit(kind) = verdict else {
                if let Some(admission) = &mut self.admission {
                    admission.withhold(sample, verdict, &mut self.cache);
                }
                continue;
            };
            self.received += 1;
            delivered += 1;
            insert(&mut self.cache, self.reader, CachedSample { change: kind, ..sample });
            if let Some(admission) = &mut self.admission {
                admission.note_admitted(now, &Head { kind, ..head }, &self.cache);
            }
        }
        // What waited for room, or waits for its time now, is no sign of life.
        if !writer.is_alive {
            if let Some(admission) = &mut self.admission {
                admission.disregard(writer.matched.guid);
            }
            if delivered > 0 && writer.window.ready().is_none() {
                self.lose_writer(now, writer.matched.guid);
            }
        }
        writer.forget_settled_parts();
        writer.batches.advanced(writer.window.next());
        delivered
    }

    /// The cache has no room for a sample. It counts once, however often it is offered again.
    pub(super) fn reject(
        &mut self,
        writer: &mut WriterProxy,
        reason: RejectReason,
        instance: KeyHash,
        sequence: SequenceNumber,
    ) {
        let counted = &mut writer.rejected_up_to;
        if sequence > *counted {
            *counted = sequence;
            self.shortfall.reject(reason, instance);
        }
    }
}

/// Hands the next sample to the cache of `reader`.
#[inline]
fn insert(cache: &mut SampleCache, reader: Guid, sample: CachedSample) -> Insert {
    if trace::is_on() { insert_traced(cache, reader, sample) } else { cache.insert(sample) }
}

#[cold]
fn insert_traced(cache: &mut SampleCache, reader: Guid, sample: CachedSample) -> Insert {
    let passage = Passage { writer: sample.writer, reader, sequence: sample.sequence };
    trace::pass(|| Mark::Ordered(passage));
    let inserted = cache.insert(sample);
    trace::pass(|| Mark::Cached(passage));
    inserted
}
