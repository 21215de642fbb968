//! RTPS reader, best-effort and reliable (RTPS 2.5 §8.4.10, §8.4.12): order, duplicates, reassembly, acknowledgement.

mod access;
mod admission;
#[cfg(test)]
mod admission_tests;
mod arrival;
mod batches;
mod best_effort;
mod budget;
mod coherence;
#[cfg(test)]
mod coherence_tests;
mod departed;
#[cfg(test)]
mod departed_tests;
mod doubt;
#[cfg(test)]
mod doubt_tests;
mod explanation;
mod footprint;
mod forgone;
#[cfg(test)]
mod fragment_tests;
mod group_inbox;
mod handover;
mod histories;
mod hold;
mod identify;
#[cfg(test)]
mod lifespan_tests;
mod number_ring;
mod outcome;
mod policies;
mod reassembly;
#[cfg(test)]
mod reassembly_tests;
mod respond;
mod restart;
#[cfg(test)]
mod restart_tests;
mod retreat;
#[cfg(test)]
mod separation_tests;
mod shortfall;
#[cfg(test)]
mod shortfall_tests;
mod skips;
mod standing;
#[cfg(test)]
mod tests;
mod window;
#[cfg(test)]
mod window_tests;
mod writer_proxy;
mod writer_set;
#[cfg(test)]
mod writer_set_tests;

use std::sync::Arc;
use std::time::Duration;

pub use arrival::{Arrival, BatchRange, FragmentedSample, Received, WholeSample};
pub use budget::ReassemblyBudget;
pub use coherence::CoherentSets;
pub use explanation::ReaderExplanation;
pub use footprint::ReaderFootprint;
pub(crate) use group_inbox::GroupShare;
pub use group_inbox::{GroupArrival, GroupMark};
pub use identify::{Identified, KeyRequest};
pub use outcome::{ReaderCounters, ReaderOutcome, TakeOutcome};
pub use shortfall::{LossReason, Losses, Rejections, StatusNews};
pub use writer_proxy::MatchedWriter;

use crate::history::SampleCache;
use crate::payload::PayloadPool;
use crate::qos::{Durability, ReaderQos};
use crate::round_trip::RoundTrip;
use crate::shared::{Rank, Ranked};
use crate::time::Instant;
use crate::trace::{self, Mark, Passage};
use crate::types::{Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::{DataFrag, Gap};
use admission::Admission;
use coherence::Coherence;
use departed::Departed;
use handover::Handover;
use histories::Histories;
use reassembly::Assembled;
use window::Window;
use writer_proxy::WriterProxy;
use writer_set::WriterSet;

/// Memory that a reader's recycled buffers may keep in each size class.
const POOL_BYTES: usize = 16 << 20;

/// A reader's state machine. The I/O thread hands it submessages and timeouts; application threads take samples.
#[derive(Debug)]
pub struct Reader {
    guid: Guid,
    qos: Arc<ReaderQos>,
    writers: WriterSet,
    departed: Departed,
    histories: Histories,
    /// How long the latest requests took, to whichever writers.
    round_trip: RoundTrip,
    handover: Handover,
    pool: PayloadPool,
    budget: ReassemblyBudget,
    /// A take made room for samples that had waited; the application has not been told of them.
    refilled: bool,
    /// Its samples are handed over as they arrive, whatever its LATENCY_BUDGET permits.
    is_prompt: bool,
    armed: Option<Instant>,
    counters: ReaderCounters,
}

impl Ranked for Reader {
    const RANK: Rank = Rank::Endpoint;
}

impl Reader {
    /// A reader without writers.
    pub fn new(guid: Guid, qos: Arc<ReaderQos>, keyed: Keyed, budget: ReassemblyBudget) -> Reader {
        let mut cache = SampleCache::new(qos.history, qos.resource_limits, keyed);
        if guid.entity.is_builtin() {
            cache = cache.without_keys();
        }
        cache = cache.purging(qos.lifecycle);
        if qos.presentation.groups_instances() {
            cache = cache.grouped_by_instance();
        }
        let admission = Admission::new(&qos);
        let coherence = Coherence::new(&qos);
        Reader {
            guid,
            qos,
            writers: WriterSet::new(),
            departed: Departed::default(),
            histories: Histories::default(),
            round_trip: RoundTrip::assuming(Duration::ZERO),
            handover: Handover::new(guid, cache, admission, coherence),
            pool: PayloadPool::new(POOL_BYTES),
            budget,
            refilled: false,
            is_prompt: false,
            armed: None,
            counters: ReaderCounters::default(),
        }
    }

    /// The first ACKNACK and NACK_FRAG to each writer matched from now on have this count.
    pub(crate) fn begin_counts_at(&mut self, first: u32) {
        self.departed.begin_counts_at(first);
    }

    /// Whether it requests samples written before it matched.
    fn wants_history(&self) -> bool {
        self.qos.durability != Durability::Volatile
    }

    /// This reader's GUID.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// Whether its topic has a key.
    pub fn keyed(&self) -> Keyed {
        self.handover.cache.keyed()
    }

    /// Numbers that tell what this reader did.
    pub fn counters(&self) -> ReaderCounters {
        let (lost, rejected) = (self.handover.shortfall.losses().total(), self.handover.shortfall.rejections().total);
        let Handover { received, expired, .. } = self.handover;
        let withheld = self.handover.admission.as_ref().map_or(0, |admission| admission.withheld());
        ReaderCounters { received, lost, rejected, expired, withheld, ..self.counters }
    }

    /// Forgets an instance whose samples were taken, whatever its writers say next of it.
    pub(crate) fn forget_instance(&mut self, instance: KeyHash) {
        self.handover.cache.forget_instance(instance);
    }

    /// The samples that wait to be taken.
    pub fn cache(&self) -> &SampleCache {
        &self.handover.cache
    }

    /// GUIDs of the matched writers.
    pub fn matched_writers(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.writers.iter().map(|writer| writer.matched.guid)
    }

    /// Does what is due at `now` besides answers: samples expire, or have waited for their time, and others take their room.
    pub fn handle_timeout(&mut self, now: Instant) -> ReaderOutcome {
        let mut data_available = self.handover.expire(|| now) && self.handover.is_stalled && self.use_room(now).is_any;
        let mut deadline_missed = false;
        if let Some(due) = self.handover.check_admission(now) {
            // What has waited for its time has left room to wait.
            let is_refilled = self.handover.is_stalled && self.move_writers_on(now);
            data_available |= due.data_available || is_refilled;
            deadline_missed = due.deadline_missed;
        }
        let (answer_due, keys_due) = (self.is_due(now), self.has_keys_due());
        ReaderOutcome { data_available, answer_due, keys_due, deadline_missed, begun_anew: false }
    }

    /// True once after a take was followed by samples that had waited for room: news for the application.
    pub(crate) fn take_refilled(&mut self) -> bool {
        std::mem::take(&mut self.refilled) && !self.handover.cache.is_empty()
    }

    /// Matches a writer (or replaces what is known of it). One that was matched before and comes back, as after a lease that
    /// ended too early, continues where this reader was: nothing is handed over twice, what was written meanwhile and is still
    /// held arrives, and what is gone counts as lost. The last 256 writers are remembered.
    pub fn match_writer(&mut self, now: Instant, mut matched: MatchedWriter) {
        matched.reliable &= self.qos.reliability.is_reliable();
        if let Some(admission) = &mut self.handover.admission {
            admission.match_writer(&matched);
        }
        match self.writers.place(matched.guid) {
            Some(index) => self.writers[index].matched = matched,
            None => {
                let crowd = self.round_trip.estimate();
                let budget = self.budget.clone();
                let left_off = self.departed.recall(matched.guid);
                let left_off = left_off.or_else(|| self.recall_history(matched.history?, matched.guid));
                let counts = self.departed.counts();
                let mut proxy = WriterProxy::new(now, matched, self.wants_history(), budget, counts, crowd);
                if let Some(left_off) = left_off {
                    proxy.resume(left_off);
                }
                self.writers.insert(proxy);
            }
        }
    }

    /// What a writer that was unmatched since the policies do not fit any more writes until they do again is not for a reader that wants
    /// no history.
    pub(crate) fn forgo_meanwhile(&mut self, writer: Guid) {
        if !self.wants_history() {
            self.departed.forgo_meanwhile(writer);
        }
    }

    /// Takes what neighbouring datagrams say of one writer into account; unknown writers are ignored.
    pub fn handle_arrivals(
        &mut self,
        now: Instant,
        writer: Guid,
        arrivals: impl Iterator<Item = Arrival>,
    ) -> ReaderOutcome {
        let Some(index) = self.writers.place(writer) else { return ReaderOutcome::default() };
        let data_available = if self.writers[index].matched.reliable {
            self.handle_reliable(now, index, arrivals)
        } else {
            self.handle_best_effort(now, index, arrivals)
        };
        self.outcome(now, index, data_available)
    }

    /// The changes by an input that concerned one writer.
    fn outcome(&self, now: Instant, index: usize, data_available: bool) -> ReaderOutcome {
        let keys_due = self.writers[index].awaits_key();
        ReaderOutcome { data_available, answer_due: self.is_due(now), keys_due, ..ReaderOutcome::default() }
    }

    fn handle_reliable(&mut self, now: Instant, index: usize, arrivals: impl Iterator<Item = Arrival>) -> bool {
        let (mut available, mut gap) = (false, false);
        for arrival in arrivals {
            let writer = &mut self.writers[index];
            match arrival {
                Arrival::Sample(sample) => {
                    writer.heard(sample.sequence);
                    if writer.window.is_empty() && sample.sequence == writer.window.next() {
                        // The rule, at full speed; everything else is the exception.
                        match self.handover.deliver(now, writer, sample) {
                            Ok(new) => {
                                available |= new;
                                writer.window.advance();
                                if writer.is_asked() {
                                    self.note_repaired(now, index);
                                }
                            }
                            Err(sample) => {
                                available |= std::mem::take(&mut self.handover.has_ended_set);
                                self.handover.is_stalled = true;
                                self.hold(now, index, sample, Window::place);
                                self.note_repaired(now, index);
                            }
                        }
                    } else {
                        let placed = self.place(now, index, sample, Window::place);
                        available |= placed.delivered;
                        gap |= placed.leaves_gap;
                    }
                }
                Arrival::AwaitsKey { sample, hint } => {
                    writer.heard(sample.sequence);
                    let awaiting = |window: &mut Window, sample| window.place_awaiting_key(sample, hint);
                    let placed = self.place(now, index, sample, awaiting);
                    available |= placed.delivered;
                    gap |= placed.leaves_gap;
                }
                Arrival::Unwanted(sequence) => {
                    let passed = self.pass_over(now, index, sequence);
                    available |= passed.delivered;
                    gap |= passed.leaves_gap;
                }
                Arrival::Irrelevant { start, end } => available |= self.skip(now, index, start, end),
                Arrival::Unidentified(sequence) => available |= self.give_up(now, index, sequence),
                Arrival::BatchEnd(range) => writer.batch_arrived(range),
                Arrival::NextDatagram => self.note_gap(now, index, std::mem::take(&mut gap)),
            }
        }
        self.note_gap(now, index, gap);
        self.writers[index].forget_settled_parts();
        available
    }

    /// A datagram has ended. The gap that it left, if `gap`, is to be asked for.
    fn note_gap(&mut self, now: Instant, index: usize, gap: bool) {
        if gap && let Some(due) = self.writers[index].gap_seen(now) {
            self.writers.note_due(due);
        }
    }

    /// The first missing sample has come, or the news that it will not.
    fn note_repaired(&mut self, now: Instant, index: usize) {
        if let Some(took) = self.writers[index].repaired(now) {
            self.round_trip.measured(took);
        }
    }

    /// The numbers from `start` to below `end` will never come. True when the application can take something new.
    fn skip(&mut self, now: Instant, index: usize, start: SequenceNumber, end: SequenceNumber) -> bool {
        let writer = &mut self.writers[index];
        let (end, next) = (writer.believed_end(end), writer.window.next());
        writer.heard(SequenceNumber::ZERO);
        writer.window.mark_irrelevant(start, end);
        let delivered = self.handover.drain(now, &mut self.writers[index]);
        if self.writers[index].window.next() > next {
            self.note_repaired(now, index);
        }
        delivered > 0
    }

    /// A sample came that cannot be handed over: its instance cannot be told. True when the application can take something new.
    fn give_up(&mut self, now: Instant, index: usize, sequence: SequenceNumber) -> bool {
        let window = &self.writers[index].window;
        if !window.is_new(sequence) {
            self.counters.duplicates += 1;
        } else if !window.reaches(sequence) {
            self.counters.too_far += 1;
        } else {
            self.writers[index].heard(sequence);
            self.handover.shortfall.lose(LossReason::KeyUnknown, 1);
            return self.pass_over(now, index, sequence).delivered;
        }
        false
    }

    /// Takes fragments into account. Returns the sample once it is whole: the caller adds its instance and hands it to
    /// [`Reader::handle_arrivals`]. `head` describes the sample, without content, as it is told beside the fragments; what the first one
    /// tells counts. `bytes` are those of the fragments.
    pub fn handle_data_frag(
        &mut self,
        now: Instant,
        writer: Guid,
        fragments: &DataFrag<'_>,
        bytes: &[u8],
        head: FragmentedSample,
    ) -> (Option<WholeSample>, ReaderOutcome) {
        let nothing = (None, ReaderOutcome::default());
        let Some(index) = self.writers.place(writer) else { return nothing };
        let writer = &mut self.writers[index];
        if writer.matched.reliable {
            writer.take_back(fragments.sequence);
        }
        if !writer.wants_fragments(fragments.sequence) && !writer.retreat_to_fragment(now, fragments.sequence) {
            self.counters.duplicates += 1;
            return nothing;
        }
        if writer.matched.reliable && !writer.window.reaches(fragments.sequence) {
            return (None, self.doubt(now, index));
        }
        if !writer.matched.reliable && !writer.believes_number(fragments.sequence) {
            self.counters.too_far += 1;
            return nothing;
        }
        match writer.reassembly.insert(now, fragments, bytes, head, &mut self.pool) {
            Assembled::Complete(whole) => {
                let (writer, reader, sequence) = (writer.matched.guid, self.guid, whole.sample.sequence);
                trace::pass(|| Mark::Reassembled(Passage { writer, reader, sequence }));
                return (Some(whole), ReaderOutcome::default());
            }
            Assembled::Refused => self.counters.fragments_refused += 1,
            Assembled::Unfinished if writer.matched.reliable => {
                writer.heard(fragments.sequence);
                writer.fragment_seen(now, fragments);
                if let Some(due) = writer.requests.due {
                    self.writers.note_due(due);
                }
            }
            Assembled::Unfinished => {
                let (incomplete, skipped) = writer.forget_stale_fragments(now);
                self.handover.shortfall.lose(LossReason::NeverArrived, skipped);
                self.handover.shortfall.lose(LossReason::Incomplete, incomplete);
            }
        }
        (None, ReaderOutcome { answer_due: self.is_due(now), ..ReaderOutcome::default() })
    }

    /// Takes a GAP into account: numbers that will never come.
    pub fn handle_gap(&mut self, now: Instant, writer: Guid, gap: &Gap) -> ReaderOutcome {
        let Some(index) = self.writers.place(writer) else { return ReaderOutcome::default() };
        let wants_history = self.wants_history();
        let proxy = &mut self.writers[index];
        if !proxy.matched.reliable {
            return ReaderOutcome::default();
        }
        if proxy.is_passed_over(gap) && !(wants_history && proxy.matched.keeps_history()) {
            if let Some(doubted) = self.doubt_passing_over(now, index, gap) {
                return doubted;
            }
            let lost = self.writers[index].window.lose_below(gap.list.base());
            self.handover.shortfall.lose(LossReason::GoneAtWriter, lost);
        }
        let proxy = &mut self.writers[index];
        let end = proxy.believed_end(gap.list.base());
        let (is_believed, next) = (end == gap.list.base(), proxy.window.next());
        proxy.heard(SequenceNumber::ZERO);
        proxy.window.mark_irrelevant(gap.start, end);
        for sequence in gap.list.iter().take_while(|_| is_believed) {
            proxy.window.mark_irrelevant(sequence, sequence.next());
        }
        self.counters.doubted += u64::from(!is_believed);
        let delivered = self.handover.drain(now, &mut self.writers[index]);
        // Others come by themselves, among the samples of an instance that was overwritten.
        if self.writers[index].window.next() > next {
            self.note_repaired(now, index);
        }
        self.outcome(now, index, delivered > 0)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.writers.next_due() <= now
    }

    /// When [`Reader::poll_transmit`] will have something to send, or [`Reader::handle_timeout`] something to do.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrived = if self.has_group_arrivals() { Instant::ZERO } else { Instant::NEVER };
        let due = self.writers.next_due().min(self.handover.next_due()).min(arrived);
        (due != Instant::NEVER).then_some(due)
    }

    /// The next timeout if it is earlier than the last one told; remembers it as told.
    pub(crate) fn newly_armed(&mut self) -> Option<Instant> {
        let next = self.poll_timeout()?;
        let earlier = self.armed.is_none_or(|armed| next < armed);
        earlier.then(|| {
            self.armed = Some(next);
            next
        })
    }

    /// The participant's timer ran out: whatever comes next must be told anew.
    pub(crate) fn disarm(&mut self) {
        self.armed = None;
    }
}

/// The shortest time after which a request is repeated; two round trips where that is longer.
const REPEAT_MIN: Duration = Duration::from_millis(5);
/// The longest time between repeated requests while nothing comes.
const REPEAT_MAX: Duration = Duration::from_millis(500);
