//! What a writer knows of one matched reader (`ReaderProxy`, RTPS 2.5 §8.4.7.5).

use std::sync::Arc;
use std::time::Duration;

use super::HEARTBEAT_PERIOD_MAX;
use super::congestion::{Answered, Change, Congestion, DATAGRAM};
use super::echoes::Echoes;
use super::flow::Position;
use super::group_reception::GroupReception;
use super::loss::Loss;
use super::lost::ToldLost;
use super::relapse::Relapse;
use super::repairs::Repairs;
use crate::count::CountFilter;
use crate::qos::ReaderQos;
use crate::round_trip::RoundTrip;
use crate::time::Instant;
use crate::types::{Guid, Locator, SequenceNumber, VendorId};

/// A reader that discovery matched with a writer, with the addresses that reach it.
#[derive(Clone, Debug)]
pub struct MatchedReader {
    /// The reader.
    pub guid: Guid,
    /// Who made its implementation.
    pub vendor: VendorId,
    /// Whether it acknowledges: both sides are RELIABLE.
    pub reliable: bool,
    /// What it requests.
    pub qos: Arc<ReaderQos>,
    /// Where to send to it alone; best first.
    pub unicast: Vec<Locator>,
    /// A group it listens to, if any.
    pub multicast: Option<Locator>,
    /// Whether it runs on this host.
    pub on_this_host: bool,
    /// The largest UDP payload that reaches it in one packet: what the path's MTU leaves.
    pub datagram_bytes: usize,
    /// Whether it understands DATA_BATCH.
    pub batches: bool,
    /// What a HEARTBEAT and its answer are taken to need before the first ones.
    pub round_trip: Duration,
    /// The receive buffer that it announced, in bytes; those of Thalweg and Cyclone DDS do.
    pub receive_buffer_bytes: Option<u32>,
}

/// Directed HEARTBEAT that a reader is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// An answer to its ACKNACK.
    Heartbeat,
    /// First contact: tell it where it starts.
    Greeting,
}

/// When a reader alone was asked for an acknowledgement. Each reader has its own pauses: in a crowd some always make progress
/// while others are busy, and a busy reader must not be asked the more often for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// The last time.
    pub at: Instant,
    /// Until it is asked again; twice as long after each time that it made no progress.
    pub pause: Duration,
    /// The shortest pause.
    pub least: Duration,
    /// How often since it was heard of last, and when first.
    unanswered: u32,
    first: Instant,
    /// How long an answer may take, as far as several questions were under way at a time; until when one of those may come.
    longest: Duration,
    strays_until: Instant,
    /// It was asked several times before its last answer, so nothing tells how long that took.
    ambiguous: bool,
    /// When the question left that its last answer was taken for, where that may have left by itself.
    doubted: Option<Instant>,
}

impl Asking {
    /// It is asked every `least` at first.
    fn every(now: Instant, least: Duration) -> Asking {
        let (longest, strays_until) = (Duration::ZERO, Instant::ZERO);
        let (unanswered, ambiguous, doubted) = (0, false, None);
        Asking { at: now, pause: least, least, unanswered, first: now, longest, strays_until, ambiguous, doubted }
    }

    /// It is asked now.
    pub(super) fn asks(&mut self, now: Instant) {
        if self.unanswered == 0 {
            self.first = now;
        }
        self.at = now;
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// An answer comes at `now`, when so many questions were under way, of which the first and the last left at these times. True when it
    /// is the answer to the only one: those to earlier ones may still come, and would make its own look quick.
    fn note_answer(&mut self, now: Instant, questions: u32, first: Instant, last: Instant) -> bool {
        if questions > 1 {
            self.longest = now.since(first).min(SUPPRESSION_MAX);
        }
        let doubted = self.doubted.take();
        let is_clear = questions == 1 && doubted.is_none() && now > self.strays_until;
        if !is_clear {
            // That to a question which another answer was taken for has taken since then.
            let longest = doubted.map_or(self.longest, |at| now.since(at).min(SUPPRESSION_MAX));
            self.strays_until = self.strays_until.max(last + longest);
        }
        is_clear
    }

    /// It speaks, and if `is_named` it says to what that is the answer.
    pub(super) fn note_told(&mut self, is_named: bool) {
        self.ambiguous = !is_named && (self.ambiguous || self.unanswered > 1);
        (self.unanswered, self.doubted) = (0, None);
    }
}

/// When everybody was asked, the last two times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AllAsked {
    pub last: Option<Instant>,
    before: Option<Instant>,
}

impl AllAsked {
    /// Everybody is asked now.
    pub(super) fn asks(&mut self, now: Instant) {
        (self.before, self.last) = (self.last, Some(now));
    }
}

/// Questions without an answer after which a reader counts as silent: one or two are lost now and then.
const SILENT_AFTER: u32 = 3;

/// Measured round trips are upper bounds: a repair that is lost must not be denied for longer than this.
const SUPPRESSION_MAX: Duration = Duration::from_millis(500);

/// How long an answer to a burst of repairs is waited for, at least, before the next burst.
const REPAIR_PATIENCE_MIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub matched: MatchedReader,
    /// The datagram size that its repairs are cut for: of a sample that it has parts of they change in one direction only.
    pub repair_bytes: usize,
    /// First sample that concerns it; earlier ones are answered by GAP.
    pub start: SequenceNumber,
    /// First sample that had not been sent when it came; those from here to below `start` may have reached it all the same.
    pub met_at: SequenceNumber,
    /// The highest base of its acknowledgements.
    pub base: SequenceNumber,
    /// Last sample sent before it came, or while it stood still. Until it has caught up with that, it does not hold up the
    /// others.
    pub joined: SequenceNumber,
    /// It gets nothing but repairs until it has caught up; what had been sent to all when that began, in kernel memory.
    pub repairs_only: Option<u64>,
    pub acknowledged: Position,
    /// It sent an ACKNACK that only a reader sends which matches us too.
    pub proven: bool,
    /// Last sample that the history dropped while the reader was given up or away, although it was owed to it.
    pub forsaken: SequenceNumber,
    pub active: bool,
    pub asking: Asking,
    pub last_heard: Instant,
    /// Since when it has owed an acknowledgement without any progress, as the heartbeat timer saw it.
    pub behind_since: Option<Instant>,
    pub round_trip: RoundTrip,
    pub owed: Owed,
    pub repairs: Repairs,
    /// How far the writer was heard within a large sample, as it told.
    pub told: Position,
    /// What had been sent when it came, or when what is sent was slowed down for it last: what it lacks of that tells nothing of its
    /// path.
    pub slowed_at: Position,
    /// Its path, unless it runs on this host or does not answer.
    pub congestion: Option<Box<Congestion>>,
    pub group: GroupReception,
    /// What it has told since its path was last judged.
    pub heard: Option<Answered>,
    pub echoes: Echoes,
    /// It has told up to here what it goes without.
    pub forgone: ToldLost,
    /// It has less than it had acknowledged.
    pub relapse: Relapse,
    acknack_counts: CountFilter,
    nack_frag_counts: CountFilter,
}

impl ReaderProxy {
    pub(super) fn new(
        now: Instant,
        matched: MatchedReader,
        start: SequenceNumber,
        joined: SequenceNumber,
        heartbeat_period: Duration,
    ) -> ReaderProxy {
        let owed = if matched.reliable { Owed::Greeting } else { Owed::Nothing };
        let answers_from_afar = matched.reliable && !matched.on_this_host;
        ReaderProxy {
            told: Position::default(),
            slowed_at: Position::default(),
            congestion: answers_from_afar.then(|| Box::new(Congestion::new(now))),
            round_trip: RoundTrip::assuming(matched.round_trip),
            repair_bytes: matched.datagram_bytes,
            matched,
            start,
            met_at: joined.next(),
            base: SequenceNumber::ZERO,
            joined,
            repairs_only: None,
            acknowledged: Position::whole(start.previous()),
            proven: false,
            forsaken: SequenceNumber::ZERO,
            active: true,
            asking: Asking::every(now, heartbeat_period),
            last_heard: now,
            behind_since: None,
            owed,
            repairs: Repairs::default(),
            group: GroupReception::default(),
            heard: None,
            echoes: Echoes::default(),
            forgone: ToldLost::default(),
            relapse: Relapse::default(),
            acknack_counts: CountFilter::default(),
            nack_frag_counts: CountFilter::default(),
        }
    }

    /// True while nothing may tell the reader of samples that concern it, lest it takes them for history that it has missed: Cyclone
    /// DDS skips everything up to the last number of the first HEARTBEAT that it sees, and acknowledges it. Thalweg's readers start
    /// where they are told to.
    pub(super) fn must_prove_itself(&self) -> bool {
        self.matched.reliable && !self.proven && self.matched.vendor.traits().needs_proof_of_match
    }

    /// Counts towards acknowledgement: reliable and not given up for silence.
    pub(super) fn is_awaited(&self) -> bool {
        self.matched.reliable && self.active
    }

    /// Reliable, but silent for so long that nobody waits for it any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.matched.reliable && !self.active
    }

    /// True when it has answered and does not know yet that nothing below `start` concerns it: that had not all left when it was told where
    /// it starts. It may hold parts of it, which nobody repeats.
    pub(super) fn is_to_be_told_again(&self) -> bool {
        self.proven && self.base < self.start && !self.matched.vendor.traits().needs_proof_of_match
    }

    /// It was asked several times in a row and has not answered.
    pub(super) fn is_silent(&self) -> bool {
        self.is_awaited() && self.asking.unanswered >= SILENT_AFTER
    }

    /// Gives the group up when it does not reach the reader. Returns whether it did.
    pub(super) fn judge_group(&mut self) -> bool {
        let may_leave = self.group.brings_nothing() && !self.matched.unicast.is_empty();
        may_leave && self.matched.multicast.take().is_some()
    }

    /// What discovery knows of it has changed. While it may have parts of a sample (`has_all` is false), a Thalweg reader counts in the
    /// smallest fragments that it got. One of another vendor goes by the first: RTPS 2.5 §8.4.14.1 fixes the size, and Fast DDS 3.1.2 refuses
    /// smaller ones or takes them for others (`CacheChange_t::add_fragments`).
    pub(super) fn renew(&mut self, matched: MatchedReader, has_all: bool) {
        let bytes = matched.datagram_bytes;
        self.repair_bytes = match matched.vendor.traits().keeps_fragment_size {
            _ if has_all => bytes,
            false => self.repair_bytes.min(bytes),
            true => self.repair_bytes.max(bytes),
        };
        self.matched = matched;
    }

    /// Another path is taken after `sent`: what was lost on the way to a group says nothing of it.
    pub(super) fn change_path(&mut self, now: Instant, answered: &Answered, sent: Position) {
        let answered = self.repairs_only.map_or(*answered, |sent| answered.of_repairs_since(sent));
        if let Some(path) = self.congestion.as_deref_mut() {
            path.start_anew(now, &answered);
        }
        self.slowed_at = sent;
        self.heard = None;
        self.repairs.forget_lost(now);
    }

    /// True when new samples wait for it: it is awaited and has caught up with what was written before it came.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.is_awaited() && self.repairs_only.is_none() && self.acknowledged.sample >= self.joined
    }

    /// False for a repeated ACKNACK: the network duplicates datagrams.
    pub(super) fn accept_acknack(&mut self, count: u32) -> bool {
        self.acknack_counts.accept(count)
    }

    /// False for a repeated NACK_FRAG.
    pub(super) fn accept_nack_frag(&mut self, count: u32) -> bool {
        self.nack_frag_counts.accept(count)
    }

    /// It answers, without naming the request. Returns what that took, if it is known: it was asked exactly once since its last answer, and
    /// no answer to earlier questions may still come; or the answer reaches what was announced once, at `announced`. One that `asks` for
    /// something may have left by itself, since something was missing; sooner than answers take, it did, and the answer to the question may
    /// come behind it, when the next question has left.
    pub(super) fn take_answer(
        &mut self,
        now: Instant,
        all_asked: &AllAsked,
        announced: Option<Instant>,
        asks: bool,
    ) -> Option<Duration> {
        let since = |asked: Option<Instant>| asked.filter(|asked| *asked > self.last_heard);
        let (last, before) = (since(all_asked.last), since(all_asked.before));
        let questions = self.asking.unanswered + u32::from(last.is_some()) + u32::from(before.is_some());
        let alone = (self.asking.unanswered > 0).then_some((self.asking.first, self.asking.at));
        let first = [alone.map(|(first, _)| first), before, last].into_iter().flatten().min().unwrap_or(now);
        let last = alone.map(|(_, last)| last).max(last).unwrap_or(now);
        let doubted = self.asking.doubted;
        let is_clear = questions > 0 && self.asking.note_answer(now, questions, first, last);
        let taken_for = if questions > 0 { Some(last) } else { doubted };
        let left_by_itself = |at: &Instant| asks && now.since(*at) < self.round_trip.estimate();
        self.asking.doubted = taken_for.filter(left_by_itself);
        let asked = match questions {
            0 => None,
            1 if is_clear && !asks => Some(last),
            _ => announced.filter(|at| !self.repairs.followed(*at)),
        };
        self.asking.ambiguous = asked.is_none() && questions > u32::from(asks || doubted.is_some());
        self.asking.unanswered = 0;
        self.last_heard = now;
        let took = now.since(asked?).min(HEARTBEAT_PERIOD_MAX);
        self.round_trip.measured(took);
        Some(took)
    }

    /// Kernel memory that repairs may fill for it now, of a `burst` at most. Where its path sets no rate, that is what the burst has
    /// left since it was last asked how far it is, however many outboxes that takes.
    pub(super) fn repair_budget(&mut self, now: Instant, burst: u64) -> u64 {
        let resumes = self.repairs.paused_until.take().is_some();
        let path = self.congestion.as_deref_mut();
        let window = path.as_ref().map_or(u64::MAX, |path| path.window());
        if let Some(path) = path.filter(|path| path.is_paced()) {
            return path.credit(now).min(burst).min(window);
        }
        if resumes {
            self.repairs.unasked = 0;
        }
        burst.min(window).saturating_sub(self.repairs.unasked).max(DATAGRAM)
    }

    /// Repairs that fill `spent` left for it, all that may now if `is_spent`: what else it has asked for waits for its path, or for
    /// its answer where nothing is known of that. Returns whether to ask how far it is.
    pub(super) fn note_repaired(&mut self, now: Instant, spent: u64, is_spent: bool) -> bool {
        self.repairs.unasked += spent;
        self.repairs.paused_until = None;
        let answer_at = now + (self.suppression() * 2).max(REPAIR_PATIENCE_MIN);
        let is_done = self.repairs.is_empty();
        let mut path = self.congestion.as_deref_mut();
        if let Some(path) = &mut path {
            path.charge_repair(now, spent);
        }
        let (resume_at, enough) = match path.filter(|path| path.is_paced()) {
            Some(path) => (path.resume_at(now), self.repairs.unasked >= path.window() / 4),
            None => (answer_at, is_spent),
        };
        if is_spent && !is_done {
            self.repairs.paused_until = Some(resume_at);
        }
        is_done || enough
    }

    /// It answers; its path, if it has one to be judged, is judged when all is known that it tells at once. Returns whether it has.
    pub(super) fn hear(&mut self, answered: Answered) -> bool {
        let answered = self.repairs_only.map_or(answered, |sent| answered.of_repairs_since(sent));
        if self.congestion.is_some() {
            self.heard = Some(self.heard.map_or(answered, |before| before.and(&answered)));
        }
        self.congestion.is_some()
    }

    /// It answers, when everything up to `sent` was sent. Returns whether its window or rate changed.
    pub(super) fn adapt_path(&mut self, now: Instant, answered: &Answered, sent: Position) -> bool {
        let assumed = self.suppression();
        let path = self.congestion.as_mut();
        let change = path.map_or(Change::Nothing, |path| path.handle_answer(now, answered, assumed));
        if change == Change::Slower {
            self.slowed_at = sent;
            self.repairs.forget_lost(now);
        }
        change != Change::Nothing
    }

    /// Some of what left for it is lost.
    pub(super) fn note_loss(&mut self, loss: Loss) {
        if let Some(path) = self.congestion.as_mut().filter(|_| loss.cost > 0) {
            path.note_loss(loss);
        }
    }

    /// It has come further: it may be asked as soon as anybody again. A reader that answered after it was asked several times
    /// may be slow, so its pause shrinks by halves until an answer tells how long it takes.
    pub(super) fn note_progress(&mut self) {
        self.behind_since = None;
        self.shorten_pause();
    }

    /// It may be asked sooner again: it has come further, or has told what it lacks.
    pub(super) fn shorten_pause(&mut self) {
        let Asking { pause, least, ambiguous, .. } = self.asking;
        self.asking.pause = if ambiguous { (pause / 2).max(least) } else { least };
    }

    /// How long a repeated request is taken to have crossed its repair.
    pub(super) fn suppression(&self) -> Duration {
        let path = self.congestion.as_ref().map_or(Duration::ZERO, |path| path.round_trip());
        self.round_trip.estimate().max(path * 3 / 2).min(SUPPRESSION_MAX)
    }
}
