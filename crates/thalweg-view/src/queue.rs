//! Samples that wait for one client.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use thalweg::Payload;

/// A queue that is bounded by bytes. Where a sample finds no room, the oldest of the subscription that holds the most bytes makes room for
/// it: large images do not push out the small samples beside them.
#[derive(Debug)]
pub struct SampleQueue {
    /// In the order in which they came.
    waiting: BTreeMap<u64, WaitingSample>,
    lanes: HashMap<u32, Lane>,
    /// Subscriptions with the bytes of each, the fullest last.
    by_bytes: BTreeSet<(usize, u32)>,
    next: u64,
    bytes: usize,
    /// Bytes that may wait; the user chooses it.
    bytes_max: usize,
    dropped: u64,
}

/// A sample that waits.
#[derive(Debug)]
pub struct WaitingSample {
    pub subscription: u32,
    pub log_time_ns: u64,
    pub payload: Payload,
}

/// What waits of one subscription, the oldest first.
#[derive(Debug, Default)]
struct Lane {
    places: VecDeque<u64>,
    bytes: usize,
}

impl SampleQueue {
    pub fn new(bytes_max: usize) -> SampleQueue {
        SampleQueue {
            waiting: BTreeMap::new(),
            lanes: HashMap::new(),
            by_bytes: BTreeSet::new(),
            next: 0,
            bytes: 0,
            bytes_max,
            dropped: 0,
        }
    }

    /// Puts a sample behind the others.
    pub fn push(&mut self, sample: WaitingSample) {
        let (subscription, bytes) = (sample.subscription, bytes_of(&sample));
        if bytes > self.bytes_max {
            self.dropped += 1;
            return;
        }
        let lane = self.lanes.entry(subscription).or_default();
        self.by_bytes.remove(&(lane.bytes, subscription));
        lane.places.push_back(self.next);
        lane.bytes += bytes;
        self.by_bytes.insert((lane.bytes, subscription));
        self.bytes += bytes;
        self.waiting.insert(self.next, sample);
        self.next += 1;
        while self.bytes > self.bytes_max {
            self.drop_one();
        }
    }

    /// Takes the oldest.
    pub fn pop(&mut self) -> Option<WaitingSample> {
        let place = *self.waiting.first_key_value()?.0;
        self.remove(place)
    }

    /// Forgets what waits of a subscription, which its client has ended.
    pub fn clear(&mut self, subscription: u32) {
        let places = self.lanes.get(&subscription).map(|lane| lane.places.clone()).unwrap_or_default();
        for place in places {
            self.remove(place);
        }
    }

    /// Whether anything of a subscription waits.
    pub fn has(&self, subscription: u32) -> bool {
        self.lanes.contains_key(&subscription)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Samples that found no room, or made room for others.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn drop_one(&mut self) {
        let fullest = self.by_bytes.last().and_then(|(_, subscription)| self.lanes.get(subscription));
        if let Some(place) = fullest.and_then(|lane| lane.places.front().copied()) {
            self.remove(place);
            self.dropped += 1;
        }
    }

    /// Removes the oldest sample of its subscription.
    fn remove(&mut self, place: u64) -> Option<WaitingSample> {
        let sample = self.waiting.remove(&place)?;
        let bytes = bytes_of(&sample);
        self.bytes -= bytes;
        if let Some(lane) = self.lanes.get_mut(&sample.subscription) {
            // Places are removed from the front alone: the oldest of all is the oldest of its lane.
            lane.places.pop_front();
            self.by_bytes.remove(&(lane.bytes, sample.subscription));
            lane.bytes -= bytes;
            if lane.places.is_empty() {
                self.lanes.remove(&sample.subscription);
            } else {
                self.by_bytes.insert((lane.bytes, sample.subscription));
            }
        }
        Some(sample)
    }
}

fn bytes_of(sample: &WaitingSample) -> usize {
    sample.payload.pinned_bytes() + OVERHEAD_BYTES
}

/// Memory of a sample beside its payload, so that empty ones are bounded, too.
const OVERHEAD_BYTES: usize = 128;
