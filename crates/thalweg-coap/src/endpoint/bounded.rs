//! A map whose entries cost bytes, with a budget.

use std::collections::{HashMap, VecDeque};

use thalweg_base::time::Instant;

/// Cost of an entry besides its content: its places in the tables.
const ENTRY_BYTES: usize = 160;

/// Entries by key; those written longest ago make room, and each ends at its time.
#[derive(Debug)]
pub struct BoundedMap<V> {
    entries: HashMap<u64, Entry<V>>,
    /// Keys by the time they were written; an entry that was written again is in here more than once.
    order: VecDeque<(u64, u64)>,
    written: u64,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    written: u64,
    ends: Instant,
}

impl<V> BoundedMap<V> {
    pub fn new(bytes_max: usize) -> BoundedMap<V> {
        BoundedMap { entries: HashMap::new(), order: VecDeque::new(), written: 0, bytes: 0, bytes_max }
    }

    /// Bytes that the entries cost.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds a value of `bytes` bytes until `ends`, in place of one with the same key; false when it does not fit.
    pub fn insert(&mut self, key: u64, value: V, bytes: usize, ends: Instant) -> bool {
        self.remove(key);
        let bytes = bytes + ENTRY_BYTES;
        if bytes > self.bytes_max {
            return false;
        }
        while self.bytes + bytes > self.bytes_max {
            self.evict();
        }
        self.written += 1;
        self.bytes += bytes;
        self.order.push_back((self.written, key));
        self.entries.insert(key, Entry { value, bytes, written: self.written, ends });
        if self.order.len() > 2 * self.entries.len() + 16 {
            self.order.retain(|(written, key)| self.entries.get(key).is_some_and(|entry| entry.written == *written));
        }
        true
    }

    /// The value of a key, unless its time is over.
    pub fn get(&self, now: Instant, key: u64) -> Option<&V> {
        self.entries.get(&key).filter(|entry| now < entry.ends).map(|entry| &entry.value)
    }

    /// Takes the value of a key out, unless its time is over.
    pub fn take(&mut self, now: Instant, key: u64) -> Option<V> {
        let entry = self.remove(key)?;
        (now < entry.ends).then_some(entry.value)
    }

    /// Takes out all values that `is_gone` says yes to; as much work as there are values.
    pub fn remove_if(&mut self, is_gone: impl Fn(&V) -> bool) {
        let gone = self.entries.iter().filter(|(_, entry)| is_gone(&entry.value)).map(|(key, _)| *key);
        gone.collect::<Vec<u64>>().into_iter().for_each(|key| drop(self.remove(key)));
    }

    fn remove(&mut self, key: u64) -> Option<Entry<V>> {
        let entry = self.entries.remove(&key)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn evict(&mut self) {
        let Some((written, key)) = self.order.pop_front() else { return };
        if self.entries.get(&key).is_some_and(|entry| entry.written == written) {
            self.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_nothing_exceeds_the_budget() {
        let at = Instant::from_nanos;
        let mut map = BoundedMap::new(3 * (ENTRY_BYTES + 100));
        for key in 0..3 {
            assert!(map.insert(key, key, 100, at(9)));
        }
        assert!(map.insert(0, 10, 100, at(9)), "written again, it is the youngest");
        assert!(map.insert(3, 3, 100, at(5)));
        assert_eq!((0..4).filter_map(|key| map.get(at(1), key).copied()).collect::<Vec<_>>(), [10, 2, 3]);
        assert_eq!((map.get(at(5), 3).copied(), map.take(at(9), 2)), (None, None), "each ends at its time");
        assert!(!map.insert(0, 4, 4 * (ENTRY_BYTES + 100), at(9)), "larger than the whole budget");
        for key in 0..10_000 {
            map.insert(key % 7, key, key as usize % 300, at(9));
            assert!(map.bytes() <= 3 * (ENTRY_BYTES + 100) && map.order.len() < 64);
        }
    }
}
