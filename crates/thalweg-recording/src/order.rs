//! Entries in the order of their time stamps, within a bounded look-ahead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Orders entries by time and, where times are equal, as they came. What comes later than one that has left already leaves at once.
#[derive(Debug)]
pub struct LookAhead<T> {
    waiting: BinaryHeap<Reverse<Held<T>>>,
    bytes: usize,
    next: u64,
    /// Entries that may wait, chosen by us: a second of a busy robot.
    count_max: usize,
    /// Bytes that may wait, chosen by us.
    bytes_max: usize,
    /// The latest time that has left.
    latest_ns: u64,
    late: u64,
}

#[derive(Debug)]
struct Held<T> {
    time_ns: u64,
    number: u64,
    bytes: usize,
    entry: T,
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.time_ns, self.number) == (other.time_ns, other.number)
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time_ns, self.number).cmp(&(other.time_ns, other.number))
    }
}

impl<T> LookAhead<T> {
    /// A look-ahead of so many entries and bytes; at least one entry waits.
    pub fn new(count_max: usize, bytes_max: usize) -> LookAhead<T> {
        LookAhead {
            waiting: BinaryHeap::new(),
            bytes: 0,
            next: 0,
            count_max: count_max.max(1),
            bytes_max,
            latest_ns: 0,
            late: 0,
        }
    }

    /// Whether another entry finds room; without, one has to be taken first.
    pub fn has_room(&self) -> bool {
        self.waiting.is_empty() || (self.waiting.len() < self.count_max && self.bytes < self.bytes_max)
    }

    /// Puts an entry of a time and so many bytes in its place.
    pub fn put(&mut self, time_ns: u64, bytes: usize, entry: T) {
        self.bytes += bytes;
        self.waiting.push(Reverse(Held { time_ns, number: self.next, bytes, entry }));
        self.next += 1;
    }

    /// Takes the earliest entry, with its time.
    pub fn take(&mut self) -> Option<(u64, T)> {
        let Reverse(held) = self.waiting.pop()?;
        self.bytes -= held.bytes;
        if held.time_ns < self.latest_ns {
            self.late += 1;
        }
        self.latest_ns = self.latest_ns.max(held.time_ns);
        Some((held.time_ns, held.entry))
    }

    /// Entries that left behind a later one, since they came too late.
    pub fn late(&self) -> u64 {
        self.late
    }
}
