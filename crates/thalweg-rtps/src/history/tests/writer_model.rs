use std::collections::BTreeMap;

use super::super::writer_history::CHANGE_BYTES;
use super::super::{FrameLimit, HeldSample, SmallSample};
use super::*;
use crate::payload::Payload;
use crate::qos::History;
use crate::rng::Rng;
use crate::time::Timestamp;
use crate::types::SequenceNumber;

/// What a writer's history should do, written for the eye and not for speed.
struct Model {
    depth: Option<usize>,
    limits: [usize; 3],
    bytes_max: usize,
    durable: bool,
    held: Vec<Held>,
    last: i64,
    acknowledged: i64,
    /// Last kind of each instance ever seen, and whether it is disposed.
    instances: BTreeMap<u8, (bool, bool)>,
    departures: Vec<(i64, u8)>,
    lost: u64,
}

#[derive(Clone)]
struct Held {
    number: i64,
    instance: u8,
    is_value: bool,
    bytes: usize,
}

impl Model {
    fn of(&self, instance: u8) -> Vec<Held> {
        self.held.iter().filter(|held| held.instance == instance).cloned().collect()
    }

    fn bytes(&self) -> usize {
        self.held.iter().map(|held| held.bytes).sum()
    }

    fn in_use(&self, instance: u8) -> bool {
        let registered = self.instances.get(&instance).is_some_and(|(registered, _)| *registered);
        !self.of(instance).is_empty() || (registered && self.limits[1] != usize::MAX)
    }

    fn room_for(&self, instance: u8, payload: usize) -> bool {
        let in_use = self.instances.keys().filter(|instance| self.in_use(**instance)).count();
        if !self.in_use(instance) && in_use >= self.limits[1] {
            return false;
        }
        let own = self.of(instance);
        let (mut others, mut bytes) = (self.held.len(), self.bytes());
        if self.depth.is_some() {
            others -= own.len();
            bytes -= own.iter().map(|held| held.bytes).sum::<usize>();
        } else if own.len() >= self.limits[2] {
            return false;
        }
        others < self.limits[0] && (others == 0 || bytes + payload + CHANGE_BYTES <= self.bytes_max)
    }

    fn push(&mut self, instance: u8, kind: ChangeKind, payload: usize) -> Option<i64> {
        self.last += 1;
        let is_value = kind == ChangeKind::Write;
        let was_disposed = self.instances.get(&instance).is_some_and(|(_, disposed)| *disposed);
        let disposed = kind.disposes() || (was_disposed && kind == ChangeKind::Unregister);
        self.instances.insert(instance, (!kind.unregisters(), disposed));
        let bytes = payload + CHANGE_BYTES;
        let mut overwrote = None;
        while let (Some(depth), own) = (self.depth, self.of(instance))
            && !own.is_empty()
        {
            let values = own.iter().filter(|held| held.is_value).count() + usize::from(is_value);
            let too_many = values > depth
                || own.len() + 1 > (2 * depth + 1).min(self.limits[2])
                || self.held.len() >= self.limits[0]
                || !self.held.is_empty() && self.bytes() + bytes > self.bytes_max;
            let stale = overwrote.is_some() && values > 0 && !own[0].is_value;
            if !too_many && !stale {
                break;
            }
            self.lost += u64::from(own[0].number > self.acknowledged);
            overwrote = Some(own[0].number);
            self.held.retain(|held| held.number != own[0].number);
        }
        self.held.push(Held { number: self.last, instance, is_value, bytes });
        if self.durable && disposed && kind.unregisters() {
            self.departures.push((self.last, instance));
        }
        overwrote
    }

    fn acknowledge(&mut self, number: i64) -> bool {
        let number = number.min(self.last);
        if number <= self.acknowledged {
            return false;
        }
        self.acknowledged = number;
        let before = self.held.len();
        if self.durable {
            for (departure, instance) in self.departures.clone() {
                if departure <= number && self.of(instance).last().is_some_and(|last| last.number == departure) {
                    self.held.retain(|held| held.instance != instance);
                }
            }
            self.departures.retain(|(departure, _)| *departure > number);
        } else {
            self.held.retain(|held| held.number > number);
        }
        self.held.len() < before
    }
}

fn random_history(rng: &mut Rng) -> (WriterHistory, Model) {
    let depth = [None, Some(1), Some(2), Some(5)][rng.below(4) as usize];
    let mut limit = |of: [u32; 3]| of[rng.below(3) as usize];
    let (samples, instances, per_instance) = (limit([0, 12, 30]), limit([0, 0, 4]), limit([0, 0, 5]));
    let bytes_max = [usize::MAX, 10 * (CHANGE_BYTES + 20)][rng.below(2) as usize];
    let durable = rng.chance(0.5);
    let history = depth.map_or(History::KeepAll, |depth| History::KeepLast(depth as u32));
    let limit = |value: u32| if value == 0 { usize::MAX } else { value as usize };
    let model = Model {
        depth,
        limits: [limit(samples), limit(instances), limit(per_instance)],
        bytes_max,
        durable,
        held: Vec::new(),
        last: 0,
        acknowledged: 0,
        instances: BTreeMap::new(),
        departures: Vec::new(),
        lost: 0,
    };
    (WriterHistory::new(history, limits(samples, instances, per_instance), durable, bytes_max), model)
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 0..1000 {
        let mut rng = Rng::new(seed);
        let (mut history, mut model) = random_history(&mut rng);
        let instances = 1 + rng.below(8);
        let collects = rng.chance(0.5);
        let dispose_rate = [0.0, 0.1, 0.5][rng.below(3) as usize];
        for step in 0..120 {
            let context = format!("seed {seed} step {step}");
            if rng.chance(0.1) {
                history.seal();
            }
            if rng.chance(0.2) {
                let number = model.acknowledged + rng.below(10) as i64;
                let freed = history.acknowledged(SequenceNumber(number));
                assert_eq!(freed, model.acknowledge(number), "{context}: acknowledged {number}");
            } else {
                let instance = rng.below(instances) as u8;
                let payload = rng.below(40) as usize;
                let room = history.room_for(&key(instance), payload);
                assert_eq!(room, model.room_for(instance, payload), "{context}: room for {instance}");
                // Now and then push without room, as the documentation allows.
                if room || rng.chance(0.05) {
                    let kind = random_kind(&mut rng, dispose_rate);
                    let collected = collects && rng.chance(0.8);
                    let overwrote = push(&mut history, instance, kind, payload, collected);
                    assert_eq!(overwrote, model.push(instance, kind, payload), "{context}: push {instance} {kind:?}");
                }
            }
            compare(&history, &model, &context);
        }
    }
}

fn random_kind(rng: &mut Rng, dispose_rate: f64) -> ChangeKind {
    if !rng.chance(dispose_rate) {
        return ChangeKind::Write;
    }
    [ChangeKind::Dispose, ChangeKind::Unregister, ChangeKind::DisposeUnregister][rng.below(3) as usize]
}

fn push(history: &mut WriterHistory, instance: u8, kind: ChangeKind, payload: usize, collected: bool) -> Option<i64> {
    let change = Change {
        sequence: SequenceNumber::UNKNOWN,
        kind,
        instance: key(instance),
        timestamp: None,
        payload: Payload::from(vec![instance; payload]),
        fragment_bytes: None,
    };
    let before = history.last();
    let result = match change.payload.split_first_chunk() {
        Some((encapsulation, body)) if collected && kind == ChangeKind::Write => {
            let timestamp = Timestamp { seconds: before.0 as u32, fraction: 0 };
            let sample = SmallSample { instance: key(instance), timestamp, encapsulation: *encapsulation, body };
            history.collect(&sample, FrameLimit { bytes: 200, overhead: 16 })
        }
        _ => history.push(change),
    };
    assert_eq!(result.sequence, before.next());
    result.overwrote.map(|number| number.0)
}

/// The sample's bytes and the pack it is in.
fn check_sample(history: &WriterHistory, sample: &HeldSample<'_>, model: &Model, context: &str) {
    let number = sample.sequence;
    let expected = model.held.iter().find(|held| held.number == number.0).expect("the model holds it");
    assert_eq!(sample.len() + CHANGE_BYTES, expected.bytes, "{context}: bytes of {number}");
    let bytes = sample.encapsulation.iter().flatten().chain(&sample.payload[sample.range.clone()]);
    assert!(bytes.copied().all(|byte| byte == expected.instance), "{context}: content of {number}");
    let (first, end) = history.pack(history.pack_of(number));
    assert!(first <= number && number < end, "{context}: {number} in {first}..{end}");
}

fn compare(history: &WriterHistory, model: &Model, context: &str) {
    let numbers: Vec<i64> = model.held.iter().map(|held| held.number).collect();
    let mut held = Vec::new();
    for number in 0..=model.last + 1 {
        let change = history.get(SequenceNumber(number));
        if let Some(sample) = &change {
            check_sample(history, sample, model, context);
        }
        held.extend(change.map(|change| change.sequence.0));
        let next = history.next_from(SequenceNumber(number)).map(|change| change.sequence.0);
        let expected = numbers.iter().copied().find(|held| *held >= number);
        assert_eq!(next, expected, "{context}: next from {number}");
    }
    assert_eq!(held, numbers, "{context}");
    assert_eq!(history.len(), numbers.len(), "{context}");
    assert_eq!(history.is_empty(), numbers.is_empty(), "{context}");
    assert_eq!(history.bytes(), model.bytes(), "{context}");
    assert_eq!(history.first().0, numbers.first().copied().unwrap_or(model.last + 1), "{context}");
    assert_eq!(history.last().0, model.last, "{context}");
    assert_eq!(history.overwritten_unacknowledged(), model.lost, "{context}");
}
