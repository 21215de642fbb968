use std::collections::{BTreeMap, BTreeSet};

use super::super::sample_store::PLACE_BYTES;
use super::*;
use crate::payload::Payload;
use crate::qos::History;
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::SequenceNumber;

/// What a reader's cache should do, written for the eye and not for speed.
struct Model {
    keyed: Keyed,
    depth: Option<usize>,
    /// Samples, instances, samples per instance.
    limits: [usize; 3],
    bytes_max: usize,
    tells_every_end: bool,
    samples: Vec<Sample>,
    instances: BTreeMap<u8, Instance>,
    /// Disposed or writerless instances without samples, the first to become so first.
    idle: Vec<u8>,
    overwritten: u64,
    rejected: u64,
}

#[derive(Clone, PartialEq)]
struct Sample {
    writer: u8,
    number: i64,
    instance: u8,
    change: ChangeKind,
    is_value: bool,
    bytes: usize,
    read: bool,
    generations: (u32, u32),
}

#[derive(Clone)]
struct Instance {
    state: InstanceState,
    is_new: bool,
    generations: (u32, u32),
    writers: BTreeSet<u8>,
    key_known: bool,
}

/// What the application sees of a sample, in an order that is easy to compare.
type Seen = (u8, Option<u8>, ChangeKind, SampleInfo);

impl Model {
    fn of(&self, instance: u8) -> Vec<Sample> {
        self.samples.iter().filter(|sample| sample.instance == instance).cloned().collect()
    }

    fn bytes(&self) -> usize {
        self.samples.iter().map(|sample| sample.bytes).sum()
    }

    fn has_room(&self, instance: u8, bytes: usize) -> bool {
        if !self.instances.contains_key(&instance) && self.instances.len() >= self.limits[1] && self.idle.is_empty() {
            return false;
        }
        let own = self.of(instance);
        let (mut others, mut held) = (self.samples.len(), self.bytes());
        if self.depth.is_some() {
            others -= own.len();
            held -= own.iter().map(|sample| sample.bytes).sum::<usize>();
        } else if own.len() >= self.limits[2] {
            return false;
        }
        others < self.limits[0] && (others == 0 || held + bytes <= self.bytes_max)
    }

    fn insert(&mut self, writer: u8, number: i64, instance: u8, change: ChangeKind, payload: usize) -> Insert {
        let is_value = change == ChangeKind::Write;
        let news = match (change, self.instances.get(&instance)) {
            (ChangeKind::Write, _) => true,
            _ if self.tells_every_end => true,
            (ChangeKind::Unregister, None) => false,
            (ChangeKind::Unregister, Some(known)) => {
                known.state == InstanceState::Alive && known.writers.iter().eq([&writer])
            }
            (_, None) => payload > 0 || self.keyed == Keyed::No,
            (_, Some(known)) => known.state != InstanceState::NotAliveDisposed,
        };
        let bytes = PLACE_BYTES + if is_value || self.tells_every_end { payload } else { 0 };
        if news && !self.has_room(instance, bytes) {
            self.rejected += 1;
            return Insert::Full;
        }
        if !news && !self.instances.contains_key(&instance) {
            return Insert::Ignored;
        }
        if !self.instances.contains_key(&instance) && self.instances.len() >= self.limits[1] {
            let first = self.idle.remove(0);
            self.instances.remove(&first);
        }
        let known = self.instances.entry(instance).or_insert(Instance {
            state: InstanceState::Alive,
            is_new: true,
            generations: (0, 0),
            writers: BTreeSet::new(),
            key_known: false,
        });
        known.key_known |= payload > 0 && self.keyed == Keyed::Yes;
        if is_value || change.disposes() {
            known.writers.insert(writer);
        }
        if is_value {
            match known.state {
                InstanceState::Alive => {}
                InstanceState::NotAliveDisposed => known.generations.0 += 1,
                InstanceState::NotAliveNoWriters => known.generations.1 += 1,
            }
            known.is_new |= known.state != InstanceState::Alive;
            known.state = InstanceState::Alive;
        }
        if change.disposes() {
            known.state = InstanceState::NotAliveDisposed;
        }
        if change.unregisters() {
            known.writers.remove(&writer);
            if known.writers.is_empty() && known.state == InstanceState::Alive {
                known.state = InstanceState::NotAliveNoWriters;
            }
        }
        let overwritten = self.overwritten;
        if news {
            self.store(writer, number, instance, change, bytes);
        }
        self.settle(instance);
        match news {
            false => Insert::Ignored,
            true if self.overwritten > overwritten => Insert::Overwrote,
            true => Insert::Stored,
        }
    }

    fn store(&mut self, writer: u8, number: i64, instance: u8, change: ChangeKind, bytes: usize) {
        let is_value = change == ChangeKind::Write;
        let mut removed = false;
        while let (Some(depth), own) = (self.depth, self.of(instance))
            && !own.is_empty()
        {
            let values = own.iter().filter(|sample| sample.is_value).count() + usize::from(is_value);
            let too_many = values > depth
                || own.len() + 1 > (2 * depth + 1).min(self.limits[2])
                || self.samples.len() >= self.limits[0]
                || self.bytes() + bytes > self.bytes_max;
            if !(too_many || removed && values > 0 && !own[0].is_value && !self.tells_every_end) {
                break;
            }
            self.overwritten += u64::from(own[0].is_value);
            let place = self.samples.iter().position(|sample| *sample == own[0]).unwrap();
            self.samples.remove(place);
            removed = true;
        }
        let generations = self.instances[&instance].generations;
        self.samples.push(Sample { writer, number, instance, change, is_value, bytes, read: false, generations });
    }

    fn settle(&mut self, instance: u8) {
        let Some(known) = self.instances.get(&instance) else { return };
        let idle = known.state != InstanceState::Alive && self.of(instance).is_empty();
        if idle && known.writers.is_empty() {
            self.instances.remove(&instance);
        }
        if !idle || !self.instances.contains_key(&instance) {
            self.idle.retain(|other| *other != instance);
        } else if !self.idle.contains(&instance) {
            self.idle.push(instance);
        }
    }

    fn writer_lost(&mut self, writer: u8) {
        for instance in 0..=255 {
            let Some(known) = self.instances.get_mut(&instance) else { continue };
            if known.writers.remove(&writer) && known.writers.is_empty() && known.state == InstanceState::Alive {
                known.state = InstanceState::NotAliveNoWriters;
                self.store(writer, SequenceNumber::UNKNOWN.0, instance, ChangeKind::Unregister, PLACE_BYTES);
            }
            self.settle(instance);
        }
    }

    fn give_out(&mut self, max: usize, filter: &ReadFilter, takes: bool) -> Vec<Seen> {
        let selected = |sample: &&Sample| {
            let known = &self.instances[&sample.instance];
            let view = if known.is_new { ViewState::New } else { ViewState::NotNew };
            let state = if sample.read { SampleState::Read } else { SampleState::NotRead };
            filter.instance.is_none_or(|instance| instance == key(sample.instance))
                && filter.view_state.is_none_or(|wanted| wanted == view)
                && filter.sample_state.is_none_or(|wanted| wanted == state)
                && filter.instance_states.contains(known.state)
        };
        let picked: Vec<Sample> = self.samples.iter().filter(selected).take(max).cloned().collect();
        let seen = (0..picked.len()).map(|place| self.describe(&picked, place)).collect();
        for sample in &picked {
            self.instances.get_mut(&sample.instance).unwrap().is_new = false;
        }
        for sample in &picked {
            let place = self.samples.iter().position(|other| other == sample).unwrap();
            if takes {
                self.samples.remove(place);
                self.settle(sample.instance);
            } else {
                self.samples[place].read = true;
            }
        }
        seen
    }

    fn describe(&self, picked: &[Sample], place: usize) -> Seen {
        let sample = &picked[place];
        let known = &self.instances[&sample.instance];
        let following: Vec<&Sample> =
            picked[place + 1..].iter().filter(|other| other.instance == sample.instance).collect();
        let newest = following.last().unwrap_or(&sample);
        let rebirths = |generations: (u32, u32)| generations.0 + generations.1;
        let info = SampleInfo {
            sample_state: if sample.read { SampleState::Read } else { SampleState::NotRead },
            view_state: if known.is_new { ViewState::New } else { ViewState::NotNew },
            instance_state: known.state,
            disposed_generation_count: sample.generations.0,
            no_writers_generation_count: sample.generations.1,
            sample_rank: following.len() as u32,
            generation_rank: rebirths(newest.generations) - rebirths(sample.generations),
            absolute_generation_rank: rebirths(known.generations) - rebirths(sample.generations),
            source_timestamp: None,
            received: Instant::ZERO,
            instance: key(sample.instance),
            writer: writer(sample.writer),
            sequence: SequenceNumber(sample.number),
            valid: sample.is_value,
        };
        let tells_key = sample.bytes > PLACE_BYTES || (!sample.is_value && known.key_known);
        (sample.instance, tells_key.then_some(sample.instance), sample.change, info)
    }
}

fn random_cache(rng: &mut Rng, keyed: Keyed) -> (SampleCache, Model) {
    let depth = [None, Some(1), Some(2), Some(5)][rng.below(4) as usize];
    let mut limit = |of: [u32; 3]| of[rng.below(3) as usize];
    let (samples, instances, per_instance) = (limit([0, 12, 30]), limit([0, 0, 4]), limit([0, 0, 5]));
    let bytes_max = [usize::MAX, 10 * (PLACE_BYTES + 20)][rng.below(2) as usize];
    let tells_every_end = rng.chance(0.3);
    let history = depth.map_or(History::KeepAll, |depth| History::KeepLast(depth as u32));
    let mut cache = SampleCache::new(history, limits(samples, instances, per_instance), keyed);
    if tells_every_end {
        cache.tell_every_end();
    }
    let limit = |value: u32| if value == 0 { usize::MAX } else { value as usize };
    let model = Model {
        keyed,
        depth,
        limits: [limit(samples), limit(instances), limit(per_instance)],
        bytes_max,
        tells_every_end,
        samples: Vec::new(),
        instances: BTreeMap::new(),
        idle: Vec::new(),
        overwritten: 0,
        rejected: 0,
    };
    (cache.with_bytes_max(bytes_max), model)
}

fn random_filter(rng: &mut Rng, instances: u64) -> ReadFilter {
    let mut filter = ReadFilter::ALL;
    if rng.chance(0.3) {
        filter.sample_state = Some([SampleState::Read, SampleState::NotRead][rng.below(2) as usize]);
    }
    if rng.chance(0.2) {
        filter.view_state = Some([ViewState::New, ViewState::NotNew][rng.below(2) as usize]);
    }
    if rng.chance(0.3) {
        let states = [
            InstanceStates::ALIVE,
            InstanceStates::NOT_ALIVE,
            InstanceStates::NOT_ALIVE_DISPOSED,
            InstanceStates::ALIVE | InstanceStates::NOT_ALIVE_NO_WRITERS,
        ];
        filter.instance_states = states[rng.below(4) as usize];
    }
    if rng.chance(0.3) {
        filter.instance = Some(key(rng.below(instances) as u8));
    }
    filter
}

fn insert(cache: &mut SampleCache, from: u8, number: i64, instance: u8, change: ChangeKind, payload: usize) -> Insert {
    cache.insert(CachedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        payload: Payload::from(vec![instance; payload]),
        payload_kind: if change == ChangeKind::Write { PayloadKind::Data } else { PayloadKind::Key },
        valid: change == ChangeKind::Write,
        writer: writer(from),
        sequence: SequenceNumber(number),
        source_timestamp: None,
        received: Instant::ZERO,
        expires: Instant::NEVER,
        instance: key(instance),
        change,
    })
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let keyed = if seed % 3 == 0 { Keyed::No } else { Keyed::Yes };
        let (mut cache, mut model) = random_cache(&mut rng, keyed);
        let instances = if keyed == Keyed::No { 1 } else { 1 + rng.below(8) };
        let take_rate = [0.05, 0.2, 0.5][rng.below(3) as usize];
        for step in 0..150 {
            let context = format!("seed {seed} step {step}");
            if rng.chance(take_rate) {
                let filter = random_filter(&mut rng, instances);
                let max = [1, 3, usize::MAX][rng.below(3) as usize];
                let takes = rng.chance(0.6);
                let mut got = Vec::new();
                let count = match takes {
                    true => cache.take(max, &filter, &mut got),
                    false => cache.read(max, &filter, &mut got),
                };
                let expected = model.give_out(max, &filter, takes);
                let seen =
                    |one: &TakenSample| (one.info.instance.0[0], one.payload.first().copied(), one.change, one.info);
                let got: Vec<Seen> = got.iter().map(seen).collect();
                assert_eq!(got, expected, "{context}: {filter:?}, at most {max}");
                assert_eq!(count, expected.len(), "{context}");
            } else if rng.chance(0.05) {
                let from = rng.below(3) as u8;
                cache.writer_lost(writer(from), Instant::ZERO);
                model.writer_lost(from);
            } else {
                let (from, instance) = (rng.below(3) as u8, rng.below(instances) as u8);
                let payload = rng.below(40) as usize;
                let change = [
                    ChangeKind::Write,
                    ChangeKind::Write,
                    ChangeKind::Write,
                    ChangeKind::Dispose,
                    ChangeKind::Unregister,
                    ChangeKind::DisposeUnregister,
                ][rng.below(6) as usize];
                let got = insert(&mut cache, from, step, instance, change, payload);
                let expected = model.insert(from, step, instance, change, payload);
                assert_eq!(got, expected, "{context}: {change:?} of {instance} by {from}");
            }
            compare(&cache, &model, instances, &context);
        }
    }
}

fn compare(cache: &SampleCache, model: &Model, instances: u64, context: &str) {
    assert_eq!(cache.len(), model.samples.len(), "{context}");
    assert_eq!(cache.is_empty(), model.samples.is_empty(), "{context}");
    assert_eq!(cache.bytes(), model.bytes(), "{context}");
    assert_eq!(cache.instances(), model.instances.len(), "{context}");
    assert_eq!(cache.overwritten(), model.overwritten, "{context}");
    assert_eq!(cache.rejected(), model.rejected, "{context}");
    assert_eq!(cache.has_unread(), model.samples.iter().any(|sample| !sample.read), "{context}");
    let mut after = None;
    for instance in 0..instances as u8 {
        assert_eq!(cache.has_room(key(instance), 20), model.has_room(instance, PLACE_BYTES + 20), "{context}");
        let state = model.instances.get(&instance).map(|known| known.state);
        assert_eq!(cache.instance_state(key(instance)), state, "{context}");
        if !model.of(instance).is_empty() {
            assert_eq!(cache.next_instance(after), Some(key(instance)), "{context}");
            after = Some(key(instance));
        }
    }
    assert_eq!(cache.next_instance(after), None, "{context}");
}
