//! How fast a reader on another host is sent to: what its path carries, found out from its answers.
//!
//! As long as nothing speaks against it, a window opens to twice its size with each round of answers, up to what the reader's
//! socket holds, and nothing is paced. Loss, or answers that take longer, show that a link on the path is full. From then on
//! what leaves for the reader, first transmissions and repairs alike, leaves at a rate: a little less than what was delivered,
//! slowly approached again, and exceeded by and by, until answers are late or fragments lost again. So the queue in front of
//! the link stays short for others who share it.
//!
//! All amounts are kernel memory at the receiver, as the send window counts them.

use std::time::Duration;

use crate::time::Instant;

/// What is known of the path to one reader.
#[derive(Debug)]
pub(super) struct Congestion {
    phase: Phase,
    path: Path,
    round: Round,
    /// Repairs and history that left for this reader alone, so far.
    repaired: u64,
    /// The path's own loss in thousandths, which sending less does not change.
    background: u64,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is known to limit it but a window that opens with each round.
    Open {
        window: u64,
    },
    Paced(Pace),
}

/// What leaves at a rate.
#[derive(Debug)]
struct Pace {
    /// In a second.
    rate: u64,
    /// The rate that was too much last, or what was delivered of it.
    ceiling: u64,
    /// What may leave now; negative when more than that left.
    credit: i64,
    credited_at: Instant,
    /// What leaves at a time.
    burst: Duration,
    /// Something had to wait since the round began, so that the rate decided how much left.
    waited: bool,
    /// The answers of this round tell of what left before the rate changed.
    settles: bool,
    /// Rounds in a row that lost much although less was sent than before.
    in_vain: u32,
    /// Rounds since it was tried last whether the path's own loss goes away when less is sent.
    trusted: u32,
    /// It is being tried; the rate before.
    doubted: Option<u64>,
}

/// What answers take.
#[derive(Debug)]
struct Path {
    /// The shortest of this period and of the one before: what they take when nobody waits for anybody.
    shortest: [Duration; 2],
    period_began: Instant,
    smoothed: Duration,
}

/// What happened since the last decision.
#[derive(Debug, Default)]
struct Round {
    began: Instant,
    /// What had been sent, and what of it acknowledged, when it began.
    sent_before: u64,
    acknowledged_before: u64,
    acknowledged: u64,
    lost: u64,
    /// When the round before began, and what was sent in it.
    last_began: Instant,
    last_sent: u64,
    /// The quickest answer.
    quickest: Option<Duration>,
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
    /// What the reader's socket leaves of the send window.
    pub window: u64,
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
/// A round has at least so much, so that its loss is more than chance.
const ROUND_MIN: u64 = 16 * DATAGRAM;
/// What answers may take longer before a link counts as full; while nothing is paced, a burst may take longer than that alone.
const DELAY_MIN: Duration = Duration::from_micros(300);
const DELAY_OPEN: Duration = Duration::from_millis(3);
/// Loss in thousandths that is nobody's fault.
const LOSS_MIN: u64 = 20;
/// Loss in thousandths at which the next decision waits for nothing.
const LOSS_HEAVY: u64 = 250;
/// And at which a burst has met a link that carries far less.
const LOSS_MOST: u64 = 400;
/// Most loss that a path is believed to have of its own, in thousandths.
const BACKGROUND_MAX: u64 = 300;
/// The first round that loses much slows down by no more, in thousandths: what it lost may have been lost before.
const CUT_MAX: u64 = 500;
/// Rounds in a row that lose much although less is sent, after which the loss counts as the path's own.
const VAIN_MAX: u32 = 4;
/// Rounds after which that is tried again.
const TRUSTED_MAX: u32 = 16;
/// Rates in a second. Beyond the highest, about 2.4 Gbit/s, timers are too coarse to pace, and processors are what limits.
const RATE_RANGE: std::ops::RangeInclusive<u64> = 60_000..=500_000_000;
/// Round trips count as longer by so much where rates grow by a part of a datagram in each.
const ADDED_PERIOD: Duration = Duration::from_millis(10);
/// What a lost request for an acknowledgement costs, twice: it must not stop what is paced anyway.
const ANSWER_LOST: Duration = Duration::from_millis(45);
/// What may leave at a time, and by how much it may be late before that is lost.
const BURST_RANGE: std::ops::RangeInclusive<Duration> = Duration::from_micros(60)..=Duration::from_micros(500);
/// Latecoming timers are made up for up to so many bursts.
const LATE_BURSTS: u64 = 4;
/// How long the shortest round trip counts, at least.
const PATH_PERIOD: Duration = Duration::from_secs(10);

impl Congestion {
    /// Nothing is known of the path.
    pub(super) fn new(now: Instant) -> Congestion {
        Congestion {
            phase: Phase::Open { window: WINDOW_START },
            path: Path { shortest: [Duration::MAX; 2], period_began: now, smoothed: Duration::ZERO },
            round: Round { began: now, ..Round::default() },
            repaired: 0,
            background: 0,
        }
    }

    /// What may be on its way.
    pub(super) fn window(&self) -> u64 {
        match &self.phase {
            Phase::Open { window } => *window,
            Phase::Paced(pace) => {
                let time = self.path.base() * 2 + ANSWER_LOST + pace.burst * 2;
                4 * DATAGRAM + amount(pace.rate, time)
            }
        }
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
        let missing = u64::try_from(pace.burst_amount() as i64 - pace.credit).unwrap_or(0);
        now + time_for(missing, pace.rate)
    }

    /// So much left for all readers.
    pub(super) fn charge(&mut self, cost: u64) {
        if let Phase::Paced(pace) = &mut self.phase {
            pace.credit -= i64::try_from(cost).unwrap_or(i64::MAX);
        }
    }

    /// So much left for this reader alone.
    pub(super) fn charge_repair(&mut self, cost: u64) {
        self.repaired += cost;
        self.charge(cost);
    }

    /// So much is found to be lost.
    pub(super) fn note_loss(&mut self, cost: u64) {
        self.round.lost += cost;
    }

    /// True when what is sent waited for the rate, which then is why nothing was on its way for a while.
    fn has_waited(&self) -> bool {
        matches!(&self.phase, Phase::Paced(pace) if pace.waited)
    }

    /// What answers take at present.
    pub(super) fn round_trip(&self) -> Duration {
        self.path.smoothed
    }

    /// The reader answers. Returns what that changed.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: &Answered) -> Change {
        if let Some(took) = answer.took {
            self.path.note(now, took);
            let quickest = self.round.quickest.map_or(took, |quickest| quickest.min(took));
            self.round.quickest = Some(quickest);
        }
        self.round.acknowledged = self.round.acknowledged.max(answer.reached.unwrap_or(0));
        let (began, acknowledged_before) = match answer.busy_since.0 > self.round.began && !self.has_waited() {
            true => answer.busy_since,
            false => (self.round.began, self.round.acknowledged_before),
        };
        let sent = answer.sent + self.repaired - self.round.sent_before;
        let elapsed = now.since(began);
        if sent < ROUND_MIN || elapsed < self.path.smoothed || elapsed.is_zero() {
            return Change::Nothing;
        }
        let acknowledged = self.round.acknowledged.saturating_sub(acknowledged_before);
        let observed = Observed {
            sent,
            lost: self.round.lost,
            share: (self.round.lost * 1_000 / sent.max(self.round.last_sent)).min(950),
            delay: self.round.quickest.map(|quickest| quickest.saturating_sub(self.path.base())),
            delivered: rate_of(acknowledged, elapsed),
            least: rate_of(sent / 20, elapsed),
            window: answer.window.min(WINDOW_MAX),
            survived: rate_of(sent.saturating_sub(self.round.lost), elapsed),
            survived_twice: rate_of(
                (self.round.last_sent + sent).saturating_sub(self.round.lost),
                now.since(self.round.last_began),
            ),
        };
        self.round = Round {
            began: now,
            sent_before: answer.sent + self.repaired,
            acknowledged_before: self.round.acknowledged,
            acknowledged: self.round.acknowledged,
            last_began: began,
            last_sent: sent,
            ..Round::default()
        };
        self.decide(now, &observed)
    }

    fn decide(&mut self, now: Instant, observed: &Observed) -> Change {
        let base = self.path.base();
        let lossy = observed.lost >= 2 * DATAGRAM && observed.share > 2 * LOSS_MIN + self.background * 5 / 4;
        match &mut self.phase {
            Phase::Open { window } => {
                let delayed = observed.delay.is_some_and(|delay| delay > DELAY_OPEN + base / 4);
                let survived = match observed.share < LOSS_MOST {
                    true => observed.survived,
                    false => observed.survived.min(observed.survived_twice),
                };
                let rate = if lossy { survived } else { observed.delivered }.max(observed.least.min(survived));
                // A writer that sends less than it may is not what fills a link.
                let pushes = observed.sent >= *window / 2 || observed.lost >= ROUND_MIN * 2;
                if pushes && (lossy || delayed) && rate < *RATE_RANGE.end() {
                    let drains = observed.delay.unwrap_or_default().min(time_for(*window, rate.max(1)));
                    self.phase = Phase::Paced(Pace::new(now, rate, drains));
                    return Change::Slower;
                } else {
                    *window = (*window * 2).min(observed.window.max(WINDOW_START));
                    self.background = (self.background * 7 + observed.share.min(BACKGROUND_MAX)) / 8;
                }
            }
            Phase::Paced(pace) => {
                if observed.lost > 0 && observed.share > LOSS_MIN {
                    pace.burst = (pace.burst / 2).max(*BURST_RANGE.start());
                }
                // What was lost before does not count; so much loss tells of the new rate.
                if std::mem::take(&mut pace.settles) && observed.share < LOSS_HEAVY {
                    return Change::Other;
                }
                let target = DELAY_MIN + base / 4 + time_for(DATAGRAM * 3 / 2, pace.rate);
                let delay = observed.delay.unwrap_or_default();
                let lossy = lossy && pace.waited;
                let slower = lossy || delay > target;
                pace.in_vain = if lossy { pace.in_vain + 1 } else { 0 };
                if let Some(before) = pace.doubted.take() {
                    if observed.share * 2 < self.background {
                        // The loss was the link's, which was full.
                        self.background = 0;
                        pace.ceiling = pace.rate;
                    } else {
                        pace.rate = before;
                    }
                } else if lossy && pace.in_vain >= VAIN_MAX {
                    self.background = observed.share.min(BACKGROUND_MAX);
                } else if lossy {
                    let most = if pace.in_vain > 1 { 1_000 } else { CUT_MAX };
                    let excess = observed.share.saturating_sub(self.background).min(most);
                    pace.slow_down(pace.rate * (1_000 - excess) / 1_000);
                } else if delay > target {
                    let in_queue = delay.min(Duration::from_millis(20) + base);
                    pace.credit -= i64::try_from(amount(pace.rate, in_queue)).unwrap_or(i64::MAX);
                    pace.slow_down(observed.delivered.clamp(pace.rate / 2, pace.rate));
                } else {
                    self.background = (self.background * 7 + observed.share.min(BACKGROUND_MAX)) / 8;
                    pace.trusted += 1;
                    if self.background > LOSS_MIN && pace.trusted >= TRUSTED_MAX {
                        pace.doubt(self.background);
                    } else if std::mem::take(&mut pace.waited) {
                        let round_trip = self.path.smoothed + ADDED_PERIOD;
                        pace.speed_up(rate_of(DATAGRAM * 2, round_trip));
                    }
                }
                if pace.rate >= *RATE_RANGE.end() {
                    self.phase = Phase::Open { window: observed.window.max(WINDOW_START) };
                }
                if slower {
                    return Change::Slower;
                }
            }
        }
        Change::Other
    }
}

/// A round.
struct Observed {
    sent: u64,
    lost: u64,
    /// The lost part in thousandths.
    share: u64,
    /// How much longer than the shortest the quickest answer took.
    delay: Option<Duration>,
    /// Rates in a second: what was acknowledged, and what was not lost.
    delivered: u64,
    survived: u64,
    /// The same of this round and the one before: what it lost may have been sent there.
    survived_twice: u64,
    /// Less is not believed at once.
    least: u64,
    /// What the reader's socket leaves of the send window.
    window: u64,
}

impl Pace {
    /// A path was found to be full. It gets time to drain.
    fn new(now: Instant, delivered: u64, drains: Duration) -> Pace {
        let mut pace = Pace {
            rate: 0,
            ceiling: 0,
            credit: 0,
            credited_at: now + drains,
            burst: *BURST_RANGE.end(),
            waited: false,
            settles: true,
            in_vain: 0,
            trusted: 0,
            doubted: None,
        };
        pace.slow_down(delivered);
        pace
    }

    fn refill(&mut self, now: Instant) -> u64 {
        if now > self.credited_at {
            let earned = i64::try_from(amount(self.rate, now.since(self.credited_at))).unwrap_or(i64::MAX);
            let most = (self.burst_amount() * LATE_BURSTS) as i64;
            self.credit = self.credit.saturating_add(earned).min(most);
            self.credited_at = now;
        }
        u64::try_from(self.credit).unwrap_or(0)
    }

    fn burst_amount(&self) -> u64 {
        amount(self.rate, self.burst).max(DATAGRAM)
    }

    /// So much is what the path carried; a little less leaves room for the queue to empty.
    fn slow_down(&mut self, carried: u64) {
        // What was enough before and is too much now belongs to others meanwhile.
        let carried = carried.clamp(*RATE_RANGE.start(), *RATE_RANGE.end());
        self.ceiling = if carried < self.ceiling { carried / 100 * 95 } else { carried };
        self.rate = (carried / 100 * 95).max(*RATE_RANGE.start());
        self.settles = true;
        self.waited = false;
    }

    /// Tries whether the path's own loss is its own.
    fn doubt(&mut self, background: u64) {
        self.doubted = Some(self.rate);
        self.rate = (self.rate * (1_000 - background) / 1_000 / 100 * 95).max(*RATE_RANGE.start());
        self.settles = true;
        self.trusted = 0;
    }

    /// Quickly towards what was too much, slowly past it, and quickly again where that is no longer so. At least by what is `added`,
    /// which is the same for all who share a link, so that their rates become equal by and by.
    fn speed_up(&mut self, added: u64) {
        let least = (self.rate / 200).max(added);
        let step = match self.ceiling.checked_sub(self.rate) {
            Some(below) => (below / 4).max(least),
            None if self.rate - self.ceiling < self.ceiling / 4 => least,
            None => (self.rate / 8).max(least),
        };
        self.rate = (self.rate + step).min(*RATE_RANGE.end());
        self.burst = (self.burst + self.burst / 16).min(*BURST_RANGE.end());
    }
}

impl Path {
    fn note(&mut self, now: Instant, took: Duration) {
        if now.since(self.period_began) >= PATH_PERIOD {
            self.shortest = [took, self.shortest[0]];
            self.period_began = now;
        }
        self.shortest[0] = self.shortest[0].min(took);
        self.smoothed = if self.smoothed.is_zero() { took } else { (self.smoothed * 3 + took) / 4 };
    }

    /// What an answer takes when nothing waits; nothing is assumed before the first.
    fn base(&self) -> Duration {
        let shortest = self.shortest[0].min(self.shortest[1]);
        if shortest == Duration::MAX { Duration::ZERO } else { shortest }
    }
}

fn amount(rate: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(rate) * time.as_nanos() / 1_000_000_000).unwrap_or(u64::MAX)
}

fn time_for(amount: u64, rate: u64) -> Duration {
    let nanos = u128::from(amount) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn rate_of(amount: u64, time: Duration) -> u64 {
    u64::try_from(u128::from(amount) * 1_000_000_000 / time.as_nanos().max(1)).unwrap_or(u64::MAX)
}
