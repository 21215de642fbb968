//! What a reader knows of one matched writer (`WriterProxy`, RTPS 2.5 §8.4.10.4).

use std::sync::Arc;
use std::time::Duration;

use super::arrival::{BatchRange, Received};
use super::batches::Batches;
use super::budget::ReassemblyBudget;
use super::departed::LeftOff;
use super::doubt::{Doubt, QUESTION_REPEAT};
use super::forgone::Forgone;
use super::reassembly::Reassembly;
use super::window::{NUMBERS_MAX, Window};
use super::{REPEAT_MAX, REPEAT_MIN};
use crate::count::{CountFilter, is_newer};
use crate::history::ChangeKind;
use crate::qos::{Durability, WriterQos};
use crate::round_trip::RoundTrip;
use crate::time::{EpochOffset, INFINITE, Instant};
use crate::types::{Guid, HistoryIdentity, Locator, SequenceNumber, VendorId};
use crate::wire::{AskedBy, DataFrag, Gap, Heartbeat, SequenceSet};

/// A writer that discovery matched with a reader, with the addresses that reach it.
#[derive(Clone, Debug)]
pub struct MatchedWriter {
    /// The writer.
    pub guid: Guid,
    /// Who made its implementation.
    pub vendor: VendorId,
    /// Whether it repeats what we miss: both sides are RELIABLE.
    pub reliable: bool,
    /// What it offers.
    pub qos: Arc<WriterQos>,
    /// The history that it goes on with, if that may have had another writer before.
    pub history: Option<HistoryIdentity>,
    /// Whether it tells a reader that it has found where to start, and repeats that until it is answered: nobody has to ask.
    pub greets: bool,
    /// The lowest number that it uses: a HEARTBEAT of lower ones only asks whether anybody is there. [`SequenceNumber::FIRST`] for
    /// all but Thalweg's writers of endpoint discovery.
    pub numbers_from: SequenceNumber,
    /// What a request and its answer are taken to need before the first ones.
    pub round_trip: Duration,
    /// Where to answer to; best first.
    pub unicast: Vec<Locator>,
}

impl MatchedWriter {
    /// Whether it keeps samples for late joiners.
    pub(super) fn keeps_history(&self) -> bool {
        self.qos.durability != Durability::Volatile
    }
}

/// Unfinished samples kept of a best-effort writer.
const BEST_EFFORT_UNFINISHED_MAX: usize = 4;

/// A gap this old in datagrams is a loss, not a reordering.
const REORDER_DATAGRAMS: u32 = 3;

/// How long a gap may be a reordering, at least; an eighth of the round trip where that is longer.
const REORDER_MIN: Duration = Duration::from_micros(200);

#[derive(Debug)]
pub(super) struct WriterProxy {
    pub matched: MatchedWriter,
    /// It has not lost its liveliness.
    pub is_alive: bool,
    pub window: Window,
    pub batches: Batches,
    pub reassembly: Reassembly,
    pub requests: Requests,
    pub forgone: Forgone,
    pub doubt: Doubt,
    /// Highest number known to exist.
    pub announced: SequenceNumber,
    /// Highest number that a HEARTBEAT named: all of it was sent.
    pub announced_by_heartbeat: Option<SequenceNumber>,
    pub heartbeat_counts: CountFilter,
    /// The request that was heard last and not named in an answer yet, and when.
    pub asked_by: Option<(AskedBy, Instant)>,
    pub heartbeat_frag_counts: CountFilter,
    /// Fragments of this sample up to this number are known to have been sent.
    pub announced_fragments: Option<(SequenceNumber, u32)>,
    /// The first HEARTBEAT decides where we start: history that a volatile reader does not want is skipped.
    pub skip_history: bool,
    /// History was skipped.
    pub skipped_history: bool,
    pub contacted: bool,
    started: bool,
    /// Where this reader was when the writer was matched before, until it tells what it has.
    resumed_at: Option<SequenceNumber>,
    /// Its first sample was missing and asked for.
    asked_for_first: bool,
    /// The last sample that counts as rejected.
    pub rejected_up_to: SequenceNumber,
}

/// The counts of the ACKNACKs and NACK_FRAGs sent so far, by which a writer tells new ones from repeated ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCounts {
    pub acknack: u32,
    pub nack_frag: u32,
}

impl RequestCounts {
    /// The later of each.
    pub(super) fn max(self, other: RequestCounts) -> RequestCounts {
        let later = |one, other| if is_newer(other, one) { other } else { one };
        RequestCounts { acknack: later(self.acknack, other.acknack), nack_frag: later(self.nack_frag, other.nack_frag) }
    }
}

/// When to answer or to ask again.
#[derive(Debug)]
pub(super) struct Requests {
    pub due: Option<Instant>,
    pub counts: RequestCounts,
    /// How long requests take that were made once. When one was made several times nothing tells which of them was answered.
    round_trip: RoundTrip,
    /// The same of all writers: in a crowd everybody is slow.
    pub crowd: Duration,
    repeat: Duration,
    asked: Option<Asked>,
    since_gap: u32,
}

/// A request that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    last: Instant,
    /// It was made before, for the same reason.
    again: bool,
    /// The first number that was missing.
    next: SequenceNumber,
    /// Highest number known to exist.
    announced: SequenceNumber,
}

impl WriterProxy {
    pub(super) fn new(
        now: Instant,
        matched: MatchedWriter,
        wants_history: bool,
        budget: ReassemblyBudget,
        counts: RequestCounts,
        crowd: Duration,
    ) -> WriterProxy {
        // Thalweg's writers declare a GAP over what a volatile reader does not want, others may repeat it on request.
        let (is_builtin, holder) = (matched.guid.entity.is_builtin(), matched.guid.prefix);
        let window = if is_builtin { Window::of_builtin } else { Window::new }(SequenceNumber::FIRST);
        let skip_history = !wants_history && matched.keeps_history() && matched.vendor != VendorId::THALWEG;
        WriterProxy {
            requests: Requests {
                due: matched.reliable.then_some(if matched.greets { now + GREETING_PATIENCE } else { now }),
                counts,
                round_trip: RoundTrip::assuming(matched.round_trip),
                crowd,
                repeat: FIRST_CONTACT_REPEAT,
                asked: None,
                since_gap: 0,
            },
            matched,
            is_alive: true,
            window,
            batches: Batches::new(),
            reassembly: Reassembly::new(budget, holder),
            announced: SequenceNumber::ZERO,
            announced_by_heartbeat: None,
            heartbeat_counts: CountFilter::default(),
            asked_by: None,
            heartbeat_frag_counts: CountFilter::default(),
            announced_fragments: None,
            doubt: Doubt::default(),
            forgone: Forgone::default(),
            skip_history,
            skipped_history: false,
            contacted: false,
            started: false,
            resumed_at: None,
            asked_for_first: false,
            rejected_up_to: SequenceNumber::ZERO,
        }
    }

    /// When a sample that came at `now` expires: `now` where its life is over. A source time in the future means that the clocks
    /// disagree; life then begins when the sample arrives, as it does without a source time (DDS 1.4 §2.2.3.16).
    #[inline]
    pub(super) fn expiry(&self, now: Instant, sample: &Received, epoch: Option<EpochOffset>) -> Instant {
        let lifespan = self.matched.qos.timing.lifespan;
        if lifespan == INFINITE || sample.kind != ChangeKind::Write {
            return Instant::NEVER;
        }
        let age = sample.timestamp.zip(epoch).map_or(Duration::ZERO, |(timestamp, epoch)| epoch.age(now, timestamp));
        now + lifespan.saturating_sub(age)
    }

    /// Where to go on if the writer leaves and comes back. Discovery's writers tell everything anew, since everything of theirs
    /// is forgotten.
    pub(super) fn place_to_resume(&self) -> Option<LeftOff> {
        if !self.matched.reliable {
            return self.place_beyond_stragglers();
        }
        // Where nothing has arrived, only claims tell where this reader is, and nobody could contradict them any more.
        let has_arrived = !self.window.skips.cover(SequenceNumber::FIRST, self.window.next());
        let is_met = self.contacted || self.resumed_at.is_some();
        let is_known = is_met && has_arrived && !self.matched.guid.entity.is_builtin();
        let told = self.announced_by_heartbeat.unwrap_or(SequenceNumber::ZERO);
        let (next, skips) = self.window.without_doubtful_end(told);
        let left_off = match skips.start_of_beyond(told).is_some() {
            true => LeftOff { next, told, skips, forgoes_meanwhile: false },
            false => LeftOff::at(next),
        };
        is_known.then_some(left_off).filter(|left_off| left_off.next > SequenceNumber::FIRST)
    }

    /// A best-effort writer repeats nothing, but what it sent long ago may still arrive. One of another vendor may be a new one under an old
    /// GUID, and begin at its first number.
    fn place_beyond_stragglers(&self) -> Option<LeftOff> {
        let (told, is_thalweg) = (self.window.highest(), self.matched.vendor == VendorId::THALWEG);
        let is_met = self.started || self.resumed_at.is_some();
        (is_met && is_thalweg).then(|| LeftOff::at(told.next()))
    }

    /// The writer was matched before.
    pub(super) fn resume(&mut self, left_off: LeftOff) {
        self.window = Window::new(left_off.next);
        self.announced = left_off.next.previous();
        self.resumed_at = Some(left_off.next);
        if !left_off.forgoes_meanwhile {
            self.window.skips = left_off.skips;
            self.announced_by_heartbeat = Some(left_off.told);
            self.skip_history = false;
        }
    }

    /// A writer of another vendor that came back under its old GUID and has written less than was received of it is a new one:
    /// some vendors' GUIDs follow from a process id. So is one whose history has fewer numbers than were received of it: its store
    /// was put back. It begins at its first number.
    pub(super) fn notice_restart(&mut self, heartbeat: &Heartbeat) {
        if heartbeat.last < heartbeat.first {
            return; // An empty history tells nothing.
        }
        let Some(next) = self.resumed_at.take() else { return };
        let may_start_anew = self.matched.vendor != VendorId::THALWEG || self.matched.history.is_some();
        if may_start_anew && heartbeat.last < next.previous() {
            self.begin_anew(SequenceNumber::FIRST);
        }
    }

    /// The writer begins anew at `first`: what came before was another one's. Returns how many numbers waited, or were missing before
    /// those that did.
    pub(super) fn begin_anew(&mut self, first: SequenceNumber) -> u64 {
        let (waited, _) = self.window.load();
        let window = if self.matched.guid.entity.is_builtin() { Window::of_builtin } else { Window::new };
        self.window = window(first);
        self.batches = Batches::new();
        self.reassembly.retain(|_| false);
        (self.doubt, self.forgone) = (Doubt::default(), Forgone::default());
        (self.announced, self.announced_by_heartbeat, self.announced_fragments) = (first.previous(), None, None);
        self.heartbeat_frag_counts = CountFilter::default();
        (self.skipped_history, self.asked_for_first, self.rejected_up_to) = (false, false, SequenceNumber::ZERO);
        self.requests.asked = None;
        waited as u64
    }

    /// A GAP from the very first number is how Thalweg's writers tell a reader that is new to them where to start. True when it
    /// passes over what this reader, which is not new, still expected: the writer had lost it. Repairs begin at what was asked
    /// for, so one may only look like that if the first number itself was.
    pub(super) fn is_passed_over(&self, gap: &Gap) -> bool {
        let next = self.window.next();
        let is_greeting = gap.start == SequenceNumber::FIRST && !self.asked_for_first;
        is_greeting && next > SequenceNumber::FIRST && gap.list.base() > next && self.announced_by_heartbeat.is_some()
    }

    /// The next sample is here but for its key.
    pub(super) fn awaits_key(&self) -> bool {
        self.window.awaits_key()
    }

    /// The next sample is here, or will never come, or something is kept that numbers which have gone by have left behind.
    pub(super) fn moves_on(&self) -> bool {
        let next = self.window.next();
        let left_behind = self.reassembly.sequence(0).is_some_and(|first| first < next) || self.batches.lag(next);
        self.window.moves_on() || left_behind
    }

    /// Something came from the writer, which proves that it knows us or at least reaches us.
    pub(super) fn heard(&mut self, sequence: SequenceNumber) {
        self.contacted = true;
        if sequence > self.announced && self.window.reaches(sequence) {
            self.announced = sequence;
        }
    }

    /// Whether a best-effort sample came before.
    pub(super) fn has_started(&self) -> bool {
        self.started
    }

    /// The numbers from `start` to below `end` have come. Returns how many samples were skipped before them, or `None` when
    /// they are repeated or older ones, or so far ahead that another one has to follow first. With `end` as `start` only what is before them is skipped.
    pub(super) fn accept_best_effort(
        &mut self,
        now: Instant,
        start: SequenceNumber,
        end: SequenceNumber,
    ) -> Option<u64> {
        let mut next = self.window.highest().next();
        if start < next {
            if !self.retreat_if_misled(now, start) {
                return None;
            }
            next = start;
        } else if end - next > NUMBERS_MAX && !self.believes_number(end.previous()) {
            return None;
        }
        self.note_newer();
        let skipped = if self.started { (start - next).unsigned_abs() } else { 0 };
        self.started = true;
        self.window.pass(start, end);
        self.reassembly.retain(|sequence| sequence >= end);
        Some(skipped)
    }

    /// All samples of a batch were handled. The batch is remembered only if all of them could be kept.
    pub(super) fn batch_arrived(&mut self, range: BatchRange) {
        if self.window.has_all(range.first, range.last) {
            self.batches.arrived(range, self.window.next());
        }
    }

    pub(super) fn wants_fragments(&self, sequence: SequenceNumber) -> bool {
        self.window.is_new(sequence)
    }

    /// Unfinished best-effort samples beyond the newest few are lost; what still comes of them is late. Returns how many those are, and
    /// how many others were skipped before the last of them.
    pub(super) fn forget_stale_fragments(&mut self, now: Instant) -> (u64, u64) {
        let Some((count, last)) = self.reassembly.keep_newest(BEST_EFFORT_UNFINISHED_MAX) else { return (0, 0) };
        let skipped = self.accept_best_effort(now, last.next(), last.next()).unwrap_or(count);
        (count, skipped.saturating_sub(count))
    }

    /// A sample arrived that is not the next one. Returns when to ask for what is missing.
    pub(super) fn gap_seen(&mut self, now: Instant) -> Option<Instant> {
        self.requests.since_gap += 1;
        let delay = if self.requests.since_gap >= REORDER_DATAGRAMS {
            Duration::ZERO
        } else {
            REORDER_MIN.max(self.requests.round_trip.estimate() / 8)
        };
        self.ask_after(now, delay)
    }

    /// Fragments arrived: asks for those that should have arrived before.
    pub(super) fn fragment_seen(&mut self, now: Instant, fragments: &DataFrag<'_>) {
        if let Some(asked) = self.requests.asked
            && self.requests.due.is_some_and(|due| due > now)
        {
            // The repair is coming; what it leaves out is asked for when it pauses.
            let pause_ends = now + self.requests.repeat.max(self.repeat_period());
            self.requests.due = Some(pause_ends.min(asked.last + REPEAT_MAX).max(now));
            self.keep_question();
        }
        let first_missing = self.reassembly.first_missing(fragments.sequence);
        let is_gap = first_missing.is_some_and(|first| first < fragments.first_fragment);
        if is_gap || self.window.next() < fragments.sequence {
            self.gap_seen(now);
        }
    }

    /// Schedules a request unless one is scheduled or on its way already.
    fn ask_after(&mut self, now: Instant, delay: Duration) -> Option<Instant> {
        let due = now + delay;
        let on_its_way = self.requests.asked.is_some();
        if on_its_way || self.requests.due.is_some_and(|scheduled| scheduled <= due) {
            return None;
        }
        self.requests.due = Some(due);
        Some(due)
    }

    /// An answer is due at `at`, whatever is on its way.
    pub(super) fn answer_at(&mut self, at: Instant) {
        self.requests.due = Some(self.requests.due.map_or(at, |due| due.min(at)));
    }

    /// A question that is to leave is not forgotten.
    fn keep_question(&mut self) {
        if let Some(due) = self.doubt.question_due() {
            self.answer_at(due);
        }
    }

    /// The application has made room for what waited for it: the writer is to know. While something is missing, that was asked
    /// for and is on its way, or will be asked for: an answer at once would ask for it again with every take. Returns when the
    /// answer is due.
    pub(super) fn answer_after_take(&mut self, now: Instant) -> Instant {
        let due = if self.misses_any() { now + self.repeat_period() } else { now };
        self.answer_at(due);
        due
    }

    /// The missing sample or fragment (or the news that it will not come) has arrived. Returns what the request for it took, if
    /// that is known: it was made once.
    pub(super) fn repaired(&mut self, now: Instant) -> Option<Duration> {
        let asked = self.requests.asked.take();
        let took = asked.filter(|asked| !asked.again).map(|asked| now.since(asked.last));
        if let Some(took) = took {
            self.requests.round_trip.measured(took);
        }
        self.requests.since_gap = 0;
        // A slow writer is not asked as often as before only because nothing tells how slow it is.
        let slow = asked.is_some_and(|asked| asked.again);
        self.requests.repeat = if slow { self.requests.repeat / 2 } else { Duration::ZERO }.max(self.repeat_period());
        let misses = self.misses_any();
        if !misses {
            // Nothing is left to ask for. What is due already answers a question: the writer's window may stay closed until it comes.
            self.requests.due = self.requests.due.filter(|due| *due <= now);
            self.keep_question();
        } else {
            // Others that are missing may still be on their way with the same repair.
            self.answer_at(now + self.repeat_period());
        }
        took
    }

    pub(super) fn misses_any(&self) -> bool {
        self.window.misses_any(self.announced) || !self.reassembly.is_empty()
    }

    fn round_trip(&self) -> Duration {
        self.requests.round_trip.estimate().max(self.requests.crowd)
    }

    pub(super) fn repeat_period(&self) -> Duration {
        REPEAT_MIN.max(self.round_trip() * 2).min(FIRST_CONTACT_REPEAT_MAX)
    }

    /// A request was not answered yet.
    pub(super) fn is_asked(&self) -> bool {
        self.requests.asked.is_some()
    }

    /// True when all that is missing was asked for so lately that the answer cannot be here yet.
    pub(super) fn has_just_asked(&self, now: Instant) -> bool {
        self.reassembly.is_empty()
            && self.requests.asked.is_some_and(|asked| {
                let same = asked.next == self.window.next() && asked.announced == self.announced;
                same && now.since(asked.last) < self.round_trip()
            })
    }

    /// What an answer could name of all that is known to be missing was asked for, by number or in batches.
    pub(super) fn note_asked_for(&mut self, by_number: bool) {
        let furthest = if by_number { self.window.next() + (SequenceSet::NUMBERS_MAX - 1) } else { self.announced };
        self.forgone.settled = self.forgone.settled.max(self.announced.min(furthest));
    }

    /// A request left at `now`; the next one is due when it stays without effect.
    pub(super) fn asked(&mut self, now: Instant, still_missing: bool) {
        let waits_for_contact = !self.contacted;
        if still_missing || waits_for_contact {
            let (next, announced) = (self.window.next(), self.announced);
            self.asked_for_first |= still_missing && next == SequenceNumber::FIRST;
            let again = self.requests.asked.is_some();
            self.requests.asked = still_missing.then_some(Asked { last: now, again, next, announced });
            self.requests.due = Some(now + self.requests.repeat.max(self.repeat_period()));
            let longest =
                if waits_for_contact { FIRST_CONTACT_REPEAT_MAX } else { REPEAT_MAX.max(self.repeat_period()) };
            self.requests.repeat = (self.requests.repeat * 2).min(longest);
        } else {
            self.requests.asked = None;
            self.requests.due = None;
            self.requests.repeat = self.repeat_period();
            if self.doubt.is_open() {
                self.requests.due = Some(now + QUESTION_REPEAT);
            } else if !self.is_greeted() {
                self.requests.due = Some(self.doubt.await_greeting(now));
            }
        }
        self.keep_question();
    }

    /// Whether it has told of its own numbers.
    pub(super) fn is_greeted(&self) -> bool {
        let told = self.announced_by_heartbeat.unwrap_or(SequenceNumber::ZERO).max(self.window.next().previous());
        told.next() >= self.matched.numbers_from
    }
}

/// How soon a writer that has not answered our first ACKNACK gets another one.
const FIRST_CONTACT_REPEAT: Duration = Duration::from_millis(50);
/// How long a writer that greets is left to do so.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_secs(3);
/// And how rarely in the end, when it does not want to know us.
const FIRST_CONTACT_REPEAT_MAX: Duration = Duration::from_secs(3);
