//! Claims that a reader does not believe at once: those of numbers that nobody had announced.
//!
//! An attacker that knows GUIDs can forge a writer's messages, but it does not hear the reader's questions and cannot keep the writer
//! from answering. So a claim that would cost something is a question first, and counts when an answer confirms it. A reader gives up
//! what it believed when the writer itself keeps saying something else.

use std::time::Duration;

use super::batches::Batches;
use super::restart::Relapse;
use super::window::NUMBERS_MAX;
use super::writer_proxy::{GREETING_PATIENCE, WriterProxy};
use super::{Reader, ReaderOutcome};
use crate::count::is_newer;
use crate::time::Instant;
use crate::types::{SequenceNumber, VendorId};
use crate::wire::{Gap, Heartbeat};

/// Something that was claimed, and whether the writer was asked since.
#[derive(Clone, Copy, Debug)]
struct Claim<T> {
    what: T,
    asked: bool,
}

impl<T> Claim<T> {
    fn new(what: T) -> Claim<T> {
        Claim { what, asked: false }
    }
}

/// What is doubted of one writer.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// A HEARTBEAT whose first number lies beyond all that was known.
    jump: Option<Claim<(SequenceNumber, SequenceNumber, u32)>>,
    /// A HEARTBEAT says that the writer has not got as far as what was skipped or is held.
    beyond: Option<Beyond>,
    /// The writer may have begun anew.
    pub(super) relapse: Option<Relapse>,
    /// The newest count of a HEARTBEAT since the reader was taken back last.
    pub(super) newest: Option<u32>,
    /// The first number that the last HEARTBEAT named, and the highest that any did since the reader was taken back.
    first: SequenceNumber,
    gone_below: SequenceNumber,
    /// A GAP from the first number up to this one, which is how a writer tells a reader that it had lost where to start.
    passed_over: Option<Claim<SequenceNumber>>,
    /// A number far ahead that came to a best-effort reader.
    far: Option<SequenceNumber>,
    /// Best-effort samples in a row that came too late for what was skipped.
    late: Option<Late>,
    /// The last number that a HEARTBEAT named to a best-effort reader.
    pub(super) told_last: Option<SequenceNumber>,
    /// The first answer from then on asks for a HEARTBEAT.
    question_due: Option<Instant>,
    /// When to ask for one because the writer has only asked who is there.
    greeting_due: Option<Instant>,
    questioned_at: Option<Instant>,
    /// The highest number announced when the reader answered last: a claim does not vouch for the next one in the same datagram.
    vouched: SequenceNumber,
}

/// A HEARTBEAT that says less than what came before.
#[derive(Clone, Copy, Debug)]
struct Beyond {
    /// The first number that was skipped or is held although it says that the writer has not got so far.
    number: SequenceNumber,
    count: u32,
    /// When the writer was asked about it for the first time.
    asked_at: Option<Instant>,
}

/// Samples that came one after the other, while none came that is newer than all before.
#[derive(Clone, Copy, Debug)]
struct Late {
    since: Instant,
    count: u32,
    last: SequenceNumber,
}

/// How soon a reader asks again whether something is true, at most; two round trips where that is sooner.
const QUESTION_PAUSE: Duration = Duration::from_millis(5);

/// When a question that nothing has settled is asked again.
pub(super) const QUESTION_REPEAT: Duration = Duration::from_millis(500);

/// How long HEARTBEATs must contradict what a newer one has said: longer than a network holds a datagram back.
const OVERTAKEN_FOR: Duration = Duration::from_millis(200);

/// Numbers that a writer may use up while a GAP and what announces them are under way: several seconds at two million a second.
const AHEAD_MAX: i64 = 1 << 24;

/// Best-effort samples that were skipped must come in such a row before they are believed, and for such a time: longer than a network
/// holds a datagram back.
const LATE_MIN: u32 = 3;
const LATE_FOR: Duration = Duration::from_secs(2);

/// What an answer is to ask besides what is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Questions {
    /// A HEARTBEAT is wanted.
    pub asks_back: bool,
    /// The writer may have lost everything up to a number of which nobody had heard.
    pub of_jump: bool,
}

impl Doubt {
    /// An answer leaves at `now`, when numbers up to `announced` are known. The questions of claims that nothing has settled are asked
    /// again: the answer to the last may be lost, and a writer that takes the reader for complete says nothing by itself.
    pub(super) fn note_answer(&mut self, now: Instant, announced: SequenceNumber) -> Questions {
        let of_jump = self.jump.is_some_and(|claim| !claim.asked);
        let is_unanswered = self.is_open() && self.questioned_at.is_some_and(|at| now.since(at) >= QUESTION_REPEAT);
        let is_greeting_due = self.greeting_due.take_if(|due| *due <= now).is_some();
        let is_question_due = self.question_due.take_if(|due| *due <= now).is_some();
        let asks_back = is_question_due || is_unanswered || is_greeting_due;
        self.vouched = announced;
        self.jump.iter_mut().for_each(|claim| claim.asked = true);
        self.beyond.iter_mut().for_each(|claim| _ = claim.asked_at.get_or_insert(now));
        self.relapse.iter_mut().for_each(|relapse| relapse.note_asked(now));
        self.passed_over.iter_mut().for_each(|claim| claim.asked = true);
        if asks_back {
            self.questioned_at = Some(now);
        }
        Questions { asks_back, of_jump }
    }

    /// The writer has only asked who is there. Returns when to ask it for its greeting: a writer that was deceived about what is here
    /// does not greet.
    pub(super) fn await_greeting(&mut self, now: Instant) -> Instant {
        *self.greeting_due.get_or_insert(now + GREETING_PATIENCE)
    }

    /// When a question is to leave that answers before did not ask.
    pub(super) fn question_due(&self) -> Option<Instant> {
        self.question_due
    }

    /// Whether the writer has still to confirm or to contradict something.
    pub(super) fn is_open(&self) -> bool {
        let may_be_new = self.relapse.is_some_and(|relapse| relapse.is_open());
        self.jump.is_some() || self.beyond.is_some() || self.passed_over.is_some() || may_be_new
    }

    /// A HEARTBEAT from `first` on is believed.
    pub(super) fn note_told(&mut self, first: SequenceNumber) {
        self.jump = None;
        self.first = first;
        self.gone_below = self.gone_below.max(first);
    }

    /// Whether a writer that holds what it has from `first` on says that it has what another HEARTBEAT said was gone.
    fn is_denied(&self, first: SequenceNumber) -> bool {
        first < self.gone_below
    }
}

impl WriterProxy {
    /// The highest number known to exist: what has come, and so much of what was claimed before the last answer as is kept track of.
    fn known(&self) -> SequenceNumber {
        let come = self.window.highest();
        self.doubt.vouched.min(self.announced).clamp(come, come + NUMBERS_MAX)
    }

    /// True until a HEARTBEAT has told where the writer is; a writer that comes back may be anywhere.
    pub(super) fn is_first_contact(&self) -> bool {
        self.announced_by_heartbeat.is_none() || !self.contacted || !self.is_greeted()
    }

    /// Whether a first HEARTBEAT from `first` on says of all samples that are here that they are gone. They would be delivered before
    /// those that it may be lying about.
    fn is_overtaken(&self, first: SequenceNumber) -> bool {
        let come = self.window.highest();
        self.matched.vendor == VendorId::THALWEG && come >= self.window.next() && first > come.next()
    }

    /// A HEARTBEAT is to tell where the writer is, no more often than it can.
    pub(super) fn question(&mut self, now: Instant) -> Instant {
        let pause = self.repeat_period().min(QUESTION_PAUSE);
        self.question_at(self.doubt.questioned_at.map_or(now, |at| now.max(at + pause)))
    }

    /// A HEARTBEAT is to tell where the writer is, from `at` on unless it is asked sooner. Returns when it is asked.
    pub(super) fn question_at(&mut self, at: Instant) -> Instant {
        let at = self.doubt.question_due.map_or(at, |due| due.min(at));
        self.doubt.question_due = Some(at);
        self.answer_at(at);
        at
    }

    /// Whether a HEARTBEAT may be believed: it says that samples are gone of which nobody had heard only if the writer has
    /// confirmed that when it was asked.
    pub(super) fn believes(&mut self, heartbeat: &Heartbeat) -> bool {
        let (first, last, count) = (heartbeat.first, heartbeat.last, heartbeat.count);
        if self.is_first_contact() && !self.is_overtaken(first) || first <= self.known().next() {
            self.doubt.jump = None;
            // Even a HEARTBEAT that is taken for a repeated one says that a GAP beyond its end was a lie.
            self.doubt.passed_over = self.doubt.passed_over.filter(|claim| claim.what <= last.next());
            return true;
        }
        if self.matched.vendor != VendorId::THALWEG {
            // Others may take their time for a HEARTBEAT, but answer a request for what is gone by a GAP.
            self.heard(last);
        }
        let repeats = |claim: &Claim<(SequenceNumber, SequenceNumber, u32)>| {
            first >= claim.what.0 && last >= claim.what.1 && count != claim.what.2
        };
        match self.doubt.jump.filter(repeats) {
            Some(claim) => claim.asked,
            None => {
                self.doubt.jump = Some(Claim::new((first, last, count)));
                false
            }
        }
    }

    /// A HEARTBEAT tells the writer's last number: everything announced beyond that is forgotten. When the writer is asked and says
    /// the same again, numbers skipped beyond that are expected again and samples held beyond that go; so are those that another
    /// HEARTBEAT said were gone and this one has. Returns when to ask.
    pub(super) fn anchor(&mut self, now: Instant, heartbeat: &Heartbeat) -> Option<Instant> {
        let (first, last) = (heartbeat.first, heartbeat.last);
        // Whether others' writers name the same first number to all readers is not known.
        let is_denied = self.matched.vendor == VendorId::THALWEG && self.doubt.is_denied(first);
        let skipped = self.window.first_beyond(last).or(is_denied.then_some(first));
        let beyond = skipped.or_else(|| self.reassembly.first_beyond(last, now));
        let claim = self.doubt.beyond.filter(|claim| last < claim.number || is_denied);
        let mut ask_at = None;
        match (beyond, claim) {
            (None, _) => self.doubt.beyond = None,
            (Some(_), Some(claim)) if self.is_answer(now, heartbeat, &claim) => {
                self.doubt.beyond = None;
                self.doubt.newest = None;
                self.doubt.gone_below = first;
                self.reassembly.forget_beyond(last, now);
                if skipped.is_some() {
                    self.retreat(first, last);
                }
            }
            (Some(_), Some(claim)) if is_newer(heartbeat.count, claim.count) => ask_at = Some(self.question(now)),
            (Some(number), _) => {
                self.doubt.beyond = Some(Beyond { number, count: heartbeat.count, asked_at: None });
                ask_at = Some(self.question(now));
            }
        }
        if self.doubt.newest.is_none_or(|newest| is_newer(heartbeat.count, newest)) {
            self.doubt.newest = Some(heartbeat.count);
        }
        self.announced = last.max(self.window.highest()).max(self.reassembly.highest());
        ask_at
    }

    /// Whether a HEARTBEAT answers the question that another one has raised. One that samples or other HEARTBEATs have overtaken on the
    /// way does not: it has a lower count, or comes sooner than what is late on a network.
    fn is_answer(&self, now: Instant, heartbeat: &Heartbeat, claim: &Beyond) -> bool {
        // The newest may be forged: then the writer's own are older for ever.
        let is_newest = self.doubt.newest.is_none_or(|newest| is_newer(heartbeat.count, newest));
        let patience = self.repeat_period().max(if is_newest { Duration::ZERO } else { OVERTAKEN_FOR });
        let is_later = claim.asked_at.is_some_and(|at| now.since(at) >= patience);
        is_later && is_newer(heartbeat.count, claim.count)
    }

    /// The first number that is not acknowledged. Numbers skipped beyond those that a HEARTBEAT has named may rest on a lie, and so may
    /// what the same lie has skipped of those that the writer has. A writer that may have begun anew is told of nothing.
    pub(super) fn acknowledged(&self) -> SequenceNumber {
        if self.may_have_begun_anew() {
            return self.window.next().min(self.doubt.first);
        }
        let (next, told) = (self.window.next(), self.announced_by_heartbeat.unwrap_or(SequenceNumber::ZERO));
        let is_doubtful = self.window.acknowledged_by(told) < next || self.doubt.is_denied(self.doubt.first);
        if is_doubtful { self.window.acknowledged_by(told.min(self.doubt.first.previous())) } else { next }
    }

    fn retreat(&mut self, first: SequenceNumber, last: SequenceNumber) {
        if self.window.retreat(first, last) {
            self.batches = Batches::unknown();
            self.forgone.settled = self.forgone.settled.min(self.window.next().previous());
            if self.skipped_history {
                self.window.mark_irrelevant(SequenceNumber::FIRST, last.next());
            }
        }
    }

    /// A sample or a part of one has come, whatever was skipped.
    pub(super) fn take_back(&mut self, sequence: SequenceNumber) {
        if sequence < self.window.next() {
            self.window.take_back(sequence, self.announced_by_heartbeat.unwrap_or(SequenceNumber::ZERO));
        }
    }

    /// A HEARTBEAT up to `last` came. Returns up to where a GAP that was doubted is right.
    pub(super) fn passed_over_until(&mut self, last: SequenceNumber) -> Option<SequenceNumber> {
        let claim = self.doubt.passed_over.filter(|claim| claim.asked && claim.what <= last.next())?;
        self.doubt.passed_over = None;
        Some(claim.what)
    }

    /// How much of a GAP up to below `end` counts: all of it, unless it goes far beyond what is known. The rest is told again when it
    /// is known. Nothing of it counts where no writer can have got so far.
    pub(super) fn believed_end(&self, end: SequenceNumber) -> SequenceNumber {
        let known = self.doubt.vouched.min(self.announced).max(self.window.highest()).next();
        let ahead = end - known;
        if ahead <= NUMBERS_MAX || self.is_first_contact() {
            end
        } else if ahead <= AHEAD_MAX {
            known
        } else {
            SequenceNumber::ZERO
        }
    }

    /// Whether to count what a GAP passes over as lost at once; otherwise a HEARTBEAT has to confirm it.
    fn believes_passing_over(&mut self, gap: &Gap) -> bool {
        let end = gap.list.base();
        if self.is_first_contact() || end <= self.known().next() {
            return true;
        }
        if self.doubt.passed_over.is_none_or(|claim| claim.what != end) {
            self.doubt.passed_over = Some(Claim::new(end));
        }
        false
    }

    /// Whether a best-effort reader takes note of a number: one far ahead only if another one has come there before.
    #[cold]
    pub(super) fn believes_number(&mut self, sequence: SequenceNumber) -> bool {
        if !self.has_started() || self.window.reaches(sequence) {
            return true;
        }
        let follows = |far: SequenceNumber| (1..NUMBERS_MAX).contains(&(sequence - far));
        let believed = self.doubt.far.is_some_and(follows);
        if !believed {
            self.doubt.far = Some(sequence);
        }
        believed
    }

    /// A best-effort sample is older than the last one. Returns whether it is to be taken all the same: so many that were skipped
    /// have come one after the other that the skip was a lie, or so many at all that another vendor's writer has begun anew.
    pub(super) fn retreat_if_misled(&mut self, now: Instant, sequence: SequenceNumber) -> bool {
        let is_anew = self.may_repeat_numbers();
        if !is_anew && !self.window.skips.contains(sequence) {
            return false;
        }
        let late = self.doubt.late.get_or_insert(Late { since: now, count: 0, last: SequenceNumber::ZERO });
        if sequence > late.last {
            (late.count, late.last) = (late.count + 1, sequence);
        }
        let misled = late.count >= LATE_MIN && now.since(late.since) >= LATE_FOR;
        if misled {
            self.doubt.late = None;
            if is_anew {
                self.begin_anew(sequence);
            } else {
                self.window.retreat(sequence, sequence.previous());
            }
        }
        misled
    }

    /// As [`WriterProxy::retreat_if_misled`] for a fragment; false at a reliable reader.
    #[cold]
    pub(super) fn retreat_to_fragment(&mut self, now: Instant, sequence: SequenceNumber) -> bool {
        !self.matched.reliable && self.retreat_if_misled(now, sequence)
    }

    /// A best-effort sample is newer than the last one.
    pub(super) fn note_newer(&mut self) {
        if self.doubt.late.is_some() {
            self.doubt.late = None;
        }
    }
}

impl Reader {
    /// A claim is not believed: asks the writer instead.
    pub(super) fn doubt(&mut self, now: Instant, index: usize) -> ReaderOutcome {
        self.counters.doubted += 1;
        let due = self.writers[index].question(now);
        self.writers.note_due(due);
        self.outcome(now, index, false)
    }

    /// As [`Reader::doubt`] where a GAP passes over what nobody had announced; `None` when it is believed.
    pub(super) fn doubt_passing_over(&mut self, now: Instant, index: usize, gap: &Gap) -> Option<ReaderOutcome> {
        (!self.writers[index].believes_passing_over(gap)).then(|| self.doubt(now, index))
    }
}
