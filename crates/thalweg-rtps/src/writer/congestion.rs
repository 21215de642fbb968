//! How fast a reader on another host is sent to: what its path carries, found out from its answers.
//!
//! As long as nothing speaks against it, a window opens to twice its size with each round of answers, up to what the reader's
//! socket holds, and nothing is paced. Loss, or answers that take longer and longer, show that a link on the path is full. From then
//! on what leaves for the reader, first transmissions and repairs alike, leaves at a rate that keeps about one datagram of this
//! sender in the queue in front of the link: more slows it down, by what has gathered since the last round, and what has gathered
//! is given time to leave; less speeds it up, the less the closer it is. As each sender aims at the same few datagrams, all who
//! share a link come to share it equally, and others who use it wait for few. Loss shortens bursts first, and then slows down.
//!
//! All amounts are kernel memory at the receiver, as the send window counts them.

use std::time::Duration;

use super::judged::Judged;
use super::lateness::{fade, foreign};
use super::loss::{Loss, RunsLately};
use super::observed::{Observed, exceeds};
use super::pace::{Pace, RATE_RANGE, amount, rate_of};
use super::path::Path;
use crate::time::Instant;

/// What is known of the path to one reader.
#[derive(Debug)]
pub(super) struct Congestion {
    phase: Phase,
    path: Path,
    round: Round,
    judged: Judged,
    background: Background,
    runs: RunsLately,
}

/// What sending less does not change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Background {
    /// The path's own loss in thousandths.
    pub loss: u64,
    /// What answers take longer because processors are busy, or because others keep a queue full.
    pub delay: Duration,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is known to limit it but a window that opens with each round.
    Open {
        window: u64,
        /// Rounds in a row that lost most of what was sent.
        drowned: u32,
        /// A good part of a window that is as open as it can be was answered soon since answers were late.
        carried: bool,
    },
    Paced(Box<Pace>),
}

/// What happened since the last decision.
#[derive(Debug, Default)]
struct Round {
    began: Instant,
    /// What had been sent, and what of it acknowledged, when it began.
    sent_before: u64,
    acknowledged_before: u64,
    acknowledged: u64,
    lost: Loss,
    /// Of how much it was known when it began whether it arrived.
    judged_before: u64,
    /// When the round before began, and what was sent in it.
    last_began: Instant,
    last_sent: u64,
    /// The round is over when so much has arrived, or is known to be lost.
    goal: Option<u64>,
    /// Answers about less than that tell of the time before the rate changed.
    settled_from: u64,
    /// What the quickest answer took, and the latest.
    quickest: Option<Duration>,
    latest: Duration,
    /// Answers in a row that took longer than the one before.
    rises: u32,
}

/// What an answer tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// What was sent to all readers so far.
    pub sent: u64,
    /// Since when something has been on its way, and what had been sent before.
    pub busy_since: (Instant, u64),
    /// What had been sent, at least, of what has arrived.
    pub reached: Option<u64>,
    /// What the answer took, if that is known.
    pub took: Option<Duration>,
    /// What a repair took, at most, until the reader told that it has it: it tells that no sooner than it is asked.
    pub repaired: Option<Duration>,
    /// What the reader's socket leaves of the send window.
    pub window: u64,
}

impl Answered {
    /// Both together; `later` came later.
    pub(super) fn and(&self, later: &Answered) -> Answered {
        let (took, repaired) = (later.took.or(self.took), later.repaired.or(self.repaired));
        Answered { reached: self.reached.max(later.reached), took, repaired, ..*later }
    }

    /// What it tells of a reader that gets nothing but repairs since so much had been sent to all.
    pub(super) fn of_repairs_since(self, sent: u64) -> Answered {
        let reached = self.reached.map(|reached| reached.min(sent));
        Answered { sent, busy_since: (Instant::ZERO, 0), reached, took: None, ..self }
    }
}

/// What an answer changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// Less is sent: news of what was lost before does not count again.
    Slower,
    /// More may be sent, or something else changed.
    Other,
}

/// Kernel memory of a datagram that fills an Ethernet frame.
pub(super) const DATAGRAM: u64 = 2_560;
/// The first window: 94 KB in Ethernet frames, more than samples may wait for company with, 0.75 ms of a gigabit link.
const WINDOW_START: u64 = 64 * DATAGRAM;
/// No window opens further.
const WINDOW_MAX: u64 = 64 << 20;
/// A round has at least so many datagrams, so that its loss is more than chance.
const ROUND_MIN: u64 = 16;
/// For how long answers must be late before what is sent slows down for it.
const LATE_MIN: Duration = Duration::from_millis(8);
/// Answers in a row, each later than the one before, that show a queue.
const RISES_MIN: u32 = 2;
/// What a round may take beyond four round trips until what it waits for has arrived.
const ROUND_SPARE: Duration = Duration::from_millis(20);
/// Loss in thousandths that is nobody's fault.
pub(super) const LOSS_MIN: u64 = 20;
/// And at which a burst has met a link that carries far less.
pub(super) const LOSS_MOST: u64 = 400;
/// Loss of its own in thousandths with which a path counts as lossy.
const LOSSY_MIN: u64 = 100;
/// Most loss that a path is believed to have of its own, in thousandths.
pub(super) const BACKGROUND_MAX: u64 = 350;
/// Rounds in a row that lose as much, after which a link counts as full however little was sent.
const DROWNED_MAX: u32 = 3;
/// Losses that a path of its own loss would have, in the round that tries it.
const DOUBTED_LOSSES: u64 = 8;
/// What a lost request for an acknowledgement costs, twice: it must not stop what is paced anyway.
const ANSWER_LOST: Duration = Duration::from_millis(45);
/// So often nothing is sent for about a round trip, and for no longer than this.
const EMPTY_PERIOD: Duration = Duration::from_secs(2);
pub(super) const EMPTY_MAX: Duration = Duration::from_millis(20);
/// While what leaves is paced, the reader is asked so often, but not before so much has left.
const ASK_PERIOD: Duration = Duration::from_millis(1);
const ASK_MIN: u64 = 4 * DATAGRAM;

impl Congestion {
    /// Nothing is known of the path.
    pub(super) fn new(now: Instant) -> Congestion {
        Congestion {
            phase: Phase::Open { window: WINDOW_START, drowned: 0, carried: false },
            path: Path::new(now),
            round: Round { began: now, ..Round::default() },
            judged: Judged::new(now),
            background: Background::default(),
            runs: RunsLately::default(),
        }
    }

    /// What follows takes another path, of which nothing is known.
    pub(super) fn start_anew(&mut self, now: Instant, answer: &Answered) {
        self.count_from(now, answer);
        let round = std::mem::take(&mut self.round);
        *self = Congestion { round, judged: self.judged, ..Congestion::new(now) };
    }

    /// What was sent to all until now tells nothing of the path: only what follows counts.
    pub(super) fn count_from(&mut self, now: Instant, answer: &Answered) {
        let acknowledged = self.round.acknowledged.max(answer.reached.unwrap_or(0));
        self.judged.forget(answer.sent);
        self.round = Round {
            began: now,
            sent_before: answer.sent + self.judged.repaired,
            acknowledged_before: acknowledged,
            acknowledged,
            judged_before: self.judged.amount(acknowledged),
            settled_from: answer.sent,
            ..Round::default()
        };
    }

    /// What may be on its way.
    pub(super) fn window(&self) -> u64 {
        match &self.phase {
            Phase::Open { window, .. } => *window,
            Phase::Paced(pace) => {
                let time = self.path.base() * 2 + ANSWER_LOST + pace.bursts.length * 2;
                // Repairs that are lost keep open what followed them long ago.
                let repeats = 1_000 + 7 * self.background.loss;
                4 * DATAGRAM + amount(pace.rate, time) * repeats / 1_000
            }
        }
    }

    /// After how much the reader is asked how far it is, at the latest.
    pub(super) fn interval(&self) -> u64 {
        match &self.phase {
            Phase::Open { .. } => u64::MAX,
            Phase::Paced(pace) => amount(pace.rate, ASK_PERIOD.max(self.path.base() / 8)).max(ASK_MIN),
        }
    }

    /// True when much is lost however little is sent: that is no queue.
    pub(super) fn is_lossy(&self) -> bool {
        self.background.loss >= LOSSY_MIN
    }

    /// True when what leaves leaves at a rate.
    pub(super) fn is_paced(&self) -> bool {
        matches!(self.phase, Phase::Paced(_))
    }

    /// What may leave now; the datagram that exceeds it may leave as well.
    pub(super) fn credit(&mut self, now: Instant) -> u64 {
        match &mut self.phase {
            Phase::Open { .. } => u64::MAX,
            Phase::Paced(pace) => pace.refill(now),
        }
    }

    /// When a whole burst may leave.
    pub(super) fn resume_at(&mut self, now: Instant) -> Instant {
        let Phase::Paced(pace) = &mut self.phase else { return now };
        pace.refill(now);
        pace.waited = true;
        pace.full_at(now)
    }

    /// So much left for all readers.
    pub(super) fn charge(&mut self, cost: u64) {
        if let Phase::Paced(pace) = &mut self.phase {
            pace.credit -= i64::try_from(cost).unwrap_or(i64::MAX);
        }
    }

    /// So much left for this reader alone.
    pub(super) fn charge_repair(&mut self, now: Instant, cost: u64) {
        self.judged.repair(now, cost);
        self.charge(cost);
    }

    /// This is found to be lost.
    pub(super) fn note_loss(&mut self, loss: Loss) {
        self.round.lost = self.round.lost.and(loss);
    }

    /// What leaves leaves at this rate from now on.
    #[cfg(test)]
    pub(super) fn pace_at(&mut self, now: Instant, rate: u64) {
        self.phase = Phase::Paced(Box::new(Pace::new(now, rate, Duration::ZERO, 0)));
    }

    #[cfg(test)]
    pub(super) fn lost(&self) -> u64 {
        self.round.lost.cost
    }

    /// True when what is sent waited for the rate, which then is why nothing was on its way for a while.
    fn has_waited(&self) -> bool {
        matches!(&self.phase, Phase::Paced(pace) if pace.waited)
    }

    /// What a round has at least: enough that chance does not acquit a path of its own loss.
    fn round_min(&self) -> u64 {
        let doubted = matches!(&self.phase, Phase::Paced(pace) if pace.doubted.is_some());
        let unit = unit_of(self.round.lost);
        if doubted { DOUBTED_LOSSES * 1_000 * unit / self.background.loss.max(LOSS_MIN) } else { ROUND_MIN * unit }
    }

    /// True when as much as a whole window was lost: where nothing gets through, waiting for answers only adds to it.
    fn has_drowned(&self) -> bool {
        matches!(&self.phase, Phase::Open { window, .. } if self.round.lost.cost >= *window)
    }

    /// True when more of what is `known` was lost than a path loses by itself.
    fn has_lost_much(&self, known: u64) -> bool {
        let Loss { cost, datagram, .. } = self.round.lost;
        exceeds(cost * 1_000 / known.max(1), known, datagram, self.background.loss)
    }

    fn is_beyond_target(&self, delay: Option<Duration>) -> bool {
        let Phase::Paced(pace) = &self.phase else { return false };
        delay.is_some_and(|delay| delay > pace.target(self.path.base()) + self.background.delay)
    }

    /// What answers take at present.
    pub(super) fn round_trip(&self) -> Duration {
        self.path.smoothed
    }

    /// The reader answers. Returns what that changed. What answers take is `assumed` until it is known.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: &Answered, assumed: Duration) -> Change {
        let reached = answer.reached.unwrap_or(0);
        if let Some(took) = answer.took {
            self.path.note(now, took);
        } else if let Some(repaired) = answer.repaired.filter(|_| !self.is_lossy()) {
            self.path.note_repair(repaired);
        }
        self.round.acknowledged = self.round.acknowledged.max(reached);
        // Where all that is sent is sent again, nothing new arrives.
        let settles = now.since(self.round.began) < self.path.smoothed * 2 + ROUND_SPARE;
        if settles && self.round.acknowledged < self.round.settled_from {
            return Change::Nothing;
        }
        if let Some(took) = answer.took {
            let round = &mut self.round;
            round.rises = if round.quickest.is_some() && took > round.latest { round.rises + 1 } else { 0 };
            round.quickest = Some(round.quickest.map_or(took, |quickest| quickest.min(took)));
            round.latest = took;
        }
        let was_idle = answer.busy_since.0 > self.round.began && !self.has_waited();
        let (began, acknowledged_before) = match was_idle {
            true => answer.busy_since,
            false => (self.round.began, self.round.acknowledged_before),
        };
        let sent = answer.sent + self.judged.repaired - self.round.sent_before;
        let elapsed = now.since(began);
        if sent < self.round_min() && !self.has_drowned() || elapsed.is_zero() {
            return Change::Nothing;
        }
        self.judged.look(now, assumed);
        let known = self.judged.amount(self.round.acknowledged) - self.round.judged_before;
        if self.is_paced() && known < self.round_min() {
            return Change::Nothing;
        }
        let goal = *self.round.goal.get_or_insert(answer.sent);
        let over = self.round.acknowledged >= goal || elapsed > self.path.smoothed * 4 + ROUND_SPARE;
        // Where nothing but repairs leave, what was lost of them is known when they may be repeated; a rate that grows faster than that
        // would have filled the link many times over by then.
        let unknown = self.path.smoothed.is_zero() && self.is_paced();
        let has_to_wait = elapsed < if unknown { assumed } else { self.path.smoothed };
        if (has_to_wait || !over) && !self.has_drowned() {
            return Change::Nothing;
        }
        let base = self.path.base();
        let delay = self.round.quickest.map(|quickest| quickest.saturating_sub(base));
        // A busy processor makes answers late as well, but seldom all of them for so long.
        if elapsed < LATE_MIN && !self.has_lost_much(known) && self.is_beyond_target(delay) {
            return Change::Nothing;
        }
        let acknowledged = self.round.acknowledged.saturating_sub(acknowledged_before);
        let (lost, whole) = (self.round.lost.cost, now.since(self.round.began));
        let arrived = known.saturating_sub(lost);
        // What left before the writer was idle had the whole round to arrive, and what was lost left after it.
        let survived_since =
            if was_idle { (answer.sent - answer.busy_since.1).saturating_sub(lost).min(arrived) } else { 0 };
        // Before anything is paced, a window waits for its answers. What is lost may have left before this round and the last.
        let known = if self.is_paced() { known } else { sent.max(self.round.last_sent) }.max(self.round.lost.cost);
        let mut observed = Observed {
            sent,
            lost: self.round.lost,
            known,
            arrived,
            share: (self.round.lost.cost * 1_000 / known).min(950),
            delay,
            latest: self.round.latest.saturating_sub(base),
            rises: self.round.rises >= RISES_MIN,
            elapsed,
            delivered: rate_of(acknowledged, elapsed),
            least: rate_of(sent / 20, whole),
            window: answer.window.min(WINDOW_MAX),
            survived: rate_of(arrived.max(sent / 20), whole).max(rate_of(survived_since, elapsed)),
            survived_twice: match self.round.last_sent {
                0 => u64::MAX,
                last_sent => {
                    rate_of((last_sent + sent).saturating_sub(self.round.lost.cost), now.since(self.round.last_began))
                }
            },
        };
        self.round = Round {
            began: now,
            sent_before: answer.sent + self.judged.repaired,
            acknowledged_before: self.round.acknowledged,
            acknowledged: self.round.acknowledged,
            last_began: began,
            last_sent: sent,
            judged_before: self.judged.amount(self.round.acknowledged),
            ..Round::default()
        };
        let change = self.decide(now, &mut observed);
        self.empty_queue(now);
        if change == Change::Slower {
            self.round.settled_from = answer.sent;
            self.judged.forget(answer.sent);
            self.round.judged_before = self.judged.amount(self.round.acknowledged);
        }
        change
    }

    /// Lets the queue run empty now and then: what others or this sender itself keep in it would else count as part of the path.
    fn empty_queue(&mut self, now: Instant) {
        let Phase::Paced(pace) = &mut self.phase else { return };
        if now.since(self.path.emptied_at) >= EMPTY_PERIOD {
            pace.drain(self.path.smoothed.min(EMPTY_MAX));
            self.path.emptied_at = now;
        }
    }

    fn decide(&mut self, now: Instant, observed: &mut Observed) -> Change {
        let lossy = observed.judge_loss(&mut self.runs, self.background.loss);
        self.background.delay = fade(self.background.delay, observed.latest, observed.elapsed);
        let is_late = self.is_beyond_target(observed.delay);
        match &mut self.phase {
            Phase::Open { window, drowned, carried } => {
                let rate = observed.rate(lossy);
                *drowned = if observed.share >= LOSS_MOST { *drowned + 1 } else { 0 };
                // A writer that sends less than it may is not what fills a link, unless that is too much again and again.
                let much = 2 * ROUND_MIN * unit_of(observed.lost);
                let is_much = observed.sent >= *window / 2 || observed.lost.cost >= much;
                let pushes = is_much || *drowned >= DROWNED_MAX;
                let is_late = observed.is_late(self.path.base(), self.background.delay);
                // What was carried until now is not too much at once: all may have stood still for a moment.
                let is_full = lossy || is_late && !*carried;
                if is_late {
                    *carried &= !pushes;
                } else if observed.delay.is_some() {
                    *carried |= *window >= observed.window && observed.sent >= *window / 4;
                }
                if pushes && is_full && rate < *RATE_RANGE.end() {
                    self.phase = Phase::Paced(Box::new(observed.start_pacing(now, rate, self.path.base())));
                    return Change::Slower;
                }
                // A round can be over because of the time that it took.
                if observed.arrived > 0 {
                    *window = (*window * 2).min(observed.window.max(WINDOW_START));
                }
                self.background.loss = (self.background.loss * 7 + observed.share.min(BACKGROUND_MAX)) / 8;
                Change::Other
            }
            Phase::Paced(pace) => {
                if pace.late_in_vain.note(&observed.lateness(is_late)) && !lossy {
                    self.background.delay = foreign(observed.latest);
                    self.phase = Phase::Open { window: WINDOW_START, drowned: 0, carried: false };
                    return Change::Other;
                }
                let change = pace.adapt(observed, lossy, self.path.base(), &mut self.background);
                if pace.rate >= *RATE_RANGE.end() {
                    self.phase = Phase::Open { window: observed.window.max(WINDOW_START), drowned: 0, carried: false };
                }
                change
            }
        }
    }
}

/// Kernel memory of a datagram that rounds are counted in: one that fills an Ethernet frame, or a jumbo frame where such ones were lost.
fn unit_of(lost: Loss) -> u64 {
    lost.datagram.clamp(DATAGRAM, 4 * DATAGRAM)
}

#[cfg(test)]
mod tests;
