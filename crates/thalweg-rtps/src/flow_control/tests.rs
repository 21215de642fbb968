//! Laws of the bucket, against a model that counts nanosecond by nanosecond, and of the order in which writers are served.

use std::time::Duration;

use super::bucket::{Cost, Demand, Portion, TokenBucket};
use super::controller::{FlowController, Spent};
use super::queue::Waiting;
use super::*;
use crate::rng::Rng;
use crate::types::EntityId;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn limited(max: u32, added: u32, period_nanos: u64, bytes: u32) -> FlowControllerSettings {
    FlowControllerSettings {
        max_tokens: Amount::Limited(max),
        tokens_added_per_period: Amount::Limited(added),
        period: Duration::from_nanos(period_nanos),
        bytes_per_token: Amount::Limited(bytes),
        ..FlowControllerSettings::default()
    }
}

fn bytes(bytes: u64) -> Cost {
    Cost { bytes, copies: 1 }
}

/// The bucket as one would explain it: every nanosecond something comes, something leaks, and what does not fit is lost.
struct Model {
    settings: FlowControllerSettings,
    /// In parts of a token, `period × bytes per token` of them.
    credit: i128,
}

impl Model {
    fn amount(amount: Amount) -> Option<i128> {
        match amount {
            Amount::Limited(count) => Some(i128::from(count)),
            Amount::Unlimited => None,
        }
    }

    fn bytes_per_token(&self) -> i128 {
        Model::amount(self.settings.bytes_per_token).unwrap_or(1)
    }

    fn token(&self) -> i128 {
        self.settings.period.as_nanos() as i128 * self.bytes_per_token()
    }

    fn capacity(&self) -> i128 {
        Model::amount(self.settings.max_tokens).map_or(i128::MAX, |tokens| tokens * self.token())
    }

    fn added(&self) -> i128 {
        let added = self.settings.tokens_added_per_period;
        Model::amount(added).or(Model::amount(self.settings.max_tokens)).unwrap() * self.bytes_per_token()
    }

    fn nanosecond(&mut self, demand: Demand) {
        let in_debt = self.credit < 0;
        self.credit += self.added();
        if demand == Demand::Idle {
            match Model::amount(self.settings.tokens_leaked_per_period) {
                None => self.credit = self.credit.min(0),
                Some(_) if in_debt => {}
                Some(leaked) => self.credit -= (leaked * self.bytes_per_token()).min(self.credit),
            }
        }
        self.credit = self.credit.min(self.capacity());
    }

    fn cost(&self, cost: Cost) -> i128 {
        match self.settings.bytes_per_token {
            Amount::Limited(_) => i128::from(cost.bytes) * self.settings.period.as_nanos() as i128,
            Amount::Unlimited => i128::from(cost.copies) * self.token(),
        }
    }
}

fn random_settings(rng: &mut Rng) -> FlowControllerSettings {
    let mut amount = |bound| match rng.below(5) {
        0 => Amount::Unlimited,
        _ => Amount::Limited(1 + rng.below(bound) as u32),
    };
    let mut settings = FlowControllerSettings {
        max_tokens: amount(20),
        tokens_added_per_period: amount(20),
        tokens_leaked_per_period: amount(25),
        bytes_per_token: amount(9),
        ..FlowControllerSettings::default()
    };
    if settings.max_tokens == Amount::Unlimited && settings.tokens_added_per_period == Amount::Unlimited {
        settings.max_tokens = Amount::Limited(3);
    }
    if rng.chance(0.4) {
        settings.tokens_leaked_per_period = Amount::Limited(0);
    }
    settings.period = Duration::from_nanos(1 + rng.below(30));
    settings
}

fn portion(bytes: u64, shortest: Duration, longest: Duration) -> Portion {
    Portion { bytes, shortest, longest }
}

const AT_LEAST_NOTHING: Portion = Portion { bytes: 0, shortest: Duration::ZERO, longest: Duration::ZERO };

#[test]
fn the_bucket_holds_what_counting_every_nanosecond_gives() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let settings = random_settings(&mut rng);
        settings.check().unwrap();
        let mut now = 7;
        let mut bucket = TokenBucket::new(at(now), &settings);
        let mut model = Model { settings, credit: 0 };
        model.credit = (model.added() * settings.period.as_nanos() as i128).min(model.capacity());
        for step in 0..100 {
            let demand = if rng.chance(0.5) { Demand::Idle } else { Demand::Waiting };
            let nanos = 1 + rng.below(40);
            now += nanos;
            bucket.advance(at(now), demand);
            (0..nanos).for_each(|_| model.nanosecond(demand));
            let token = model.token();
            assert_eq!(
                i128::from(bucket.tokens().unwrap()),
                model.credit.div_euclid(token),
                "{settings:?} {seed}/{step}"
            );
            if let (Some(bytes), Amount::Limited(_)) = (bucket.bytes(), settings.bytes_per_token) {
                let expect = model.credit.max(0) / settings.period.as_nanos() as i128;
                assert_eq!(i128::from(bytes), expect, "{settings:?} {seed}/{step}");
            }
            let cost = Cost { bytes: rng.below(200), copies: 1 + rng.below(3) };
            let affordable = model.credit >= model.cost(cost).min(model.capacity());
            assert_eq!(bucket.affords(cost), affordable, "{settings:?} {seed}/{step}");
            if rng.chance(0.7) {
                let due = bucket.affordable_at(cost, AT_LEAST_NOTHING);
                let mut nanos = 0;
                while model.credit < model.cost(cost).min(model.capacity()) {
                    model.nanosecond(Demand::Waiting);
                    nanos += 1;
                }
                assert_eq!(due, at(now + nanos), "to the nanosecond: {settings:?} {seed}/{step}");
                now += nanos;
                bucket.advance(due, Demand::Waiting);
                bucket.spend(cost);
                model.credit -= model.cost(cost);
            }
        }
    }
}

#[test]
fn a_day_of_odd_numbers_drifts_by_nothing() {
    // 7 tokens of 13 bytes in 1,000,003 ns, looked at every 77,777 ns.
    let settings = limited(1_000, 7, 1_000_003, 13);
    let mut bucket = TokenBucket::new(at(0), &settings);
    bucket.spend(bytes(7 * 13));
    let (mut sent, mut now) = (0u64, 0u64);
    let day = 86_400_000_000_000;
    while now < day {
        now += 77_777_777;
        bucket.advance(at(now), Demand::Waiting);
        let all = bucket.bytes().unwrap();
        bucket.spend(bytes(all));
        sent += all;
    }
    assert_eq!(u128::from(sent), u128::from(now) * 7 * 13 / 1_000_003);
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let mut settings = limited(u32::MAX, u32::MAX, PERIOD_MAX.as_nanos() as u64, u32::MAX);
    for _ in 0..2 {
        settings.check().unwrap();
        let mut bucket = TokenBucket::new(at(0), &settings);
        bucket.advance(at(u64::MAX / 2), Demand::Idle);
        bucket.spend(Cost { bytes: u64::MAX, copies: u64::MAX });
        bucket.spend(Cost { bytes: u64::MAX, copies: u64::MAX });
        assert!(bucket.tokens().unwrap() < 0);
        bucket.advance(Instant::NEVER, Demand::Waiting);
        let _ = bucket.affordable_at(bytes(u64::MAX), portion(u64::MAX, Duration::MAX, Duration::MAX));
        bucket.set(&limited(1, 1, 1, 1));
        settings.max_tokens = Amount::Unlimited;
        settings.tokens_leaked_per_period = Amount::Limited(u32::MAX);
    }
}

#[test]
fn a_datagram_larger_than_the_bucket_waits_for_a_full_one_and_leaves_a_debt() {
    let settings = limited(10, 10, 1_000, 100);
    let mut bucket = TokenBucket::new(at(0), &settings);
    assert!(bucket.affords(bytes(5_000)), "the bucket is full");
    bucket.spend(bytes(5_000));
    assert_eq!(bucket.tokens(), Some(-40));
    assert!(!bucket.affords(bytes(1)));
    assert_eq!(
        bucket.affordable_at(bytes(5_000), AT_LEAST_NOTHING),
        at(5_000),
        "5,000 bytes take 5,000 ns at this rate"
    );
}

#[test]
fn portions_are_waited_for_as_far_as_the_bucket_holds_them() {
    // A byte each microsecond, a thousand at most.
    let mut bucket = TokenBucket::new(at(0), &limited(1_000, 1_000, 1_000_000, 1));
    bucket.spend(bytes(1_000));
    let micros = Duration::from_micros;
    let due = |cost, portion| bucket.affordable_at(bytes(cost), portion);
    assert_eq!(due(10, portion(400, micros(200), micros(500))), at(400_000));
    assert_eq!(due(10, portion(100, micros(200), micros(500))), at(200_000), "the shortest time");
    assert_eq!(due(10, portion(5_000, micros(200), micros(500))), at(500_000), "the longest time");
    assert_eq!(due(600, portion(400, micros(200), micros(500))), at(600_000), "what the next datagram costs");
    assert_eq!(due(10, portion(5_000, Duration::ZERO, Duration::from_secs(1))), at(1_000_000), "a full bucket");
}

#[test]
fn other_settings_keep_the_tokens() {
    let mut bucket = TokenBucket::new(at(0), &limited(100, 40, 1_000, 10));
    bucket.set(&limited(100, 1, 7_777, 1_500));
    assert_eq!(bucket.tokens(), Some(40));
    bucket.set(&limited(30, 1, 7_777, 1_500));
    assert_eq!(bucket.tokens(), Some(30), "what fits");
    bucket.set(&FlowControllerSettings::default());
    assert_eq!((bucket.tokens(), bucket.bytes()), (None, Some(u64::MAX)));
    bucket.set(&limited(30, 5, 1_000, 10));
    assert_eq!(bucket.tokens(), Some(5), "a bucket that counted nothing starts anew");
}

#[track_caller]
fn refused(settings: FlowControllerSettings, expect: &str) {
    let error = settings.check().expect_err(expect).to_string();
    assert!(error.starts_with(expect), "{error}");
}

#[test]
fn settings_under_which_nothing_would_leave_are_refused() {
    refused(limited(0, 1, 1, 1), "max_tokens 0: nothing fits");
    refused(limited(1, 0, 1, 1), "tokens_added_per_period 0: no token ever comes");
    refused(limited(1, 1, 0, 1), "period 0 s: ");
    refused(limited(1, 1, 1, 0), "bytes_per_token 0: a token would pay for nothing");
    let endless = FlowControllerSettings { period: crate::time::INFINITE, ..limited(1, 1, 1, 1) };
    refused(endless, "period ");
    for settings in [FlowControllerSettings::default(), FlowControllerSettings::background(), limited(1, 1, 1, 1)] {
        settings.check().unwrap();
    }
    FlowControllerSettings::bytes_per_second(1).check().unwrap();
}

fn writer(name: u8) -> EntityId {
    EntityId([0, 0, name, 3])
}

fn waiting(name: u8, priority: i32, deadline: u64) -> Waiting {
    Waiting { writer: writer(name), priority, deadline: at(deadline), next_cost: 100 }
}

/// The writers in the order in which they are served, when `each` has that many datagrams of 100 bytes.
fn order(scheduling: Scheduling, each: &[(Waiting, u32)]) -> Vec<u8> {
    let settings = FlowControllerSettings { scheduling, ..limited(100, 100, 1_000, 100) };
    let mut controller = FlowController::new(at(0), settings);
    let mut left: Vec<(Waiting, u32)> = each.to_vec();
    for (waiting, _) in &left {
        controller.enqueue(at(0), *waiting);
    }
    let mut served = Vec::new();
    while let Some(grant) = controller.poll(at(0)) {
        let one = left.iter_mut().find(|(waiting, _)| waiting.writer == grant.writer).unwrap();
        one.1 -= 1;
        one.0.deadline += Duration::from_nanos(10);
        served.push(grant.writer.0[2]);
        let spent = Spent { bytes: 100, copies: 1, destinations: 1 };
        controller.record(at(0), grant.writer, spent, (one.1 > 0).then_some(one.0));
    }
    served
}

#[test]
fn writers_are_served_in_the_order_of_the_scheduling() {
    let writers = [(waiting(1, 0, 20), 3), (waiting(2, 5, 15), 2), (waiting(3, 0, 12), 2), (waiting(4, 5, 90), 2)];
    let check = |scheduling, expect: &[u8]| assert_eq!(order(scheduling, &writers), expect, "{scheduling}");
    check(Scheduling::HighestPriorityFirst, &[2, 4, 2, 4, 1, 3, 1, 3, 1]);
    check(Scheduling::EarliestDeadlineFirst, &[3, 2, 1, 3, 2, 1, 1, 4, 4]);
    check(Scheduling::RoundRobin, &[1, 2, 3, 4, 1, 2, 3, 4, 1]);
}

#[test]
fn a_writer_alone_gets_everything_and_one_among_others_a_datagram() {
    let settings = limited(100, 100, 1_000, 100);
    let mut controller = FlowController::new(at(0), settings);
    controller.enqueue(at(0), waiting(1, 0, 1));
    assert_eq!(controller.poll(at(0)).map(|grant| grant.bytes), Some(10_000));
    controller.enqueue(at(0), waiting(2, 0, 2));
    assert_eq!(controller.poll(at(0)).map(|grant| grant.bytes), Some(100 + 25 + 64), "with room for an estimate");
}

#[test]
fn who_comes_with_a_higher_priority_does_not_wait_for_the_tokens_of_another() {
    let mut settings = limited(1_000, 1_000, 1_000_000_000, 1);
    settings.scheduling = Scheduling::HighestPriorityFirst;
    let mut controller = FlowController::new(at(0), settings);
    controller.enqueue(at(0), Waiting { next_cost: 900, ..waiting(1, 0, 0) });
    assert!(controller.poll(at(0)).is_some());
    let spent = Spent { bytes: 900, copies: 1, destinations: 1 };
    controller.record(at(0), writer(1), spent, Some(Waiting { next_cost: 900, ..waiting(1, 0, 0) }));
    assert_eq!(controller.poll(at(1)), None);
    assert_eq!(controller.resume_at(), Some(at(800_000_000)));
    controller.enqueue(at(2), Waiting { next_cost: 90, ..waiting(2, 1, 0) });
    assert_eq!(controller.poll(at(2)).map(|grant| grant.writer), Some(writer(2)));
}

#[test]
fn a_writer_that_does_not_wait_ends_no_wait_of_others() {
    let mut controller = FlowController::new(at(0), limited(1_000, 1_000, 1_000_000_000, 1));
    controller.enqueue(at(0), Waiting { next_cost: 900, ..waiting(1, 0, 0) });
    assert!(controller.poll(at(0)).is_some());
    let spent = Spent { bytes: 900, copies: 1, destinations: 1 };
    controller.record(at(0), writer(1), spent, Some(Waiting { next_cost: 900, ..waiting(1, 0, 0) }));
    assert_eq!(controller.poll(at(1)), None);
    let resume_at = controller.resume_at();
    assert!(resume_at.is_some(), "tokens are missing");
    controller.dequeue(at(2), writer(2));
    assert_eq!((controller.resume_at(), controller.counters(at(2), 0).waits), (resume_at, 1));
    controller.dequeue(at(3), writer(1));
    assert_eq!(controller.resume_at(), None);
}

#[test]
fn news_of_a_waiting_writer_do_not_make_it_less_urgent() {
    let mut controller = FlowController::new(at(0), limited(100, 100, 1_000, 100));
    controller.enqueue(at(0), waiting(1, 0, 10));
    controller.enqueue(at(0), waiting(2, 0, 20));
    controller.enqueue(at(0), waiting(1, 0, 30));
    assert_eq!(controller.poll(at(0)).map(|grant| grant.writer), Some(writer(1)));
    let spent = Spent { bytes: 100, copies: 1, destinations: 1 };
    controller.record(at(0), writer(1), spent, Some(waiting(1, 0, 30)));
    assert_eq!(controller.poll(at(0)).map(|grant| grant.writer), Some(writer(2)), "what it has left comes later");
}

#[test]
fn a_grant_that_is_not_used_is_not_offered_again_at_once() {
    let mut controller = FlowController::new(at(0), limited(100, 100, 1_000, 100));
    controller.enqueue(at(0), waiting(1, 0, 0));
    let grant = controller.poll(at(5)).unwrap();
    controller.record(at(5), grant.writer, Spent::default(), Some(waiting(1, 0, 0)));
    assert_eq!(controller.resume_at(), Some(at(1_000_005)));
    controller.enqueue(at(6), waiting(2, 0, 0));
    assert_eq!(controller.resume_at(), Some(at(1_000_005)), "the news of another changes nothing");
    controller.enqueue(at(6), waiting(1, 0, 0));
    assert_eq!(controller.resume_at(), None, "its own news lets it try again");
    controller.dequeue(at(6), writer(2));
    controller.dequeue(at(6), grant.writer);
    assert_eq!((controller.resume_at(), controller.priority()), (None, None));
}
