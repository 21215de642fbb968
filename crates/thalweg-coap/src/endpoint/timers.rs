//! A hierarchical timer wheel: setting, cancelling and firing cost the same however many timers there are.

use thalweg_base::time::Instant;

/// 2²⁰ ns, about a millisecond: timers fire at most this much late.
const TICK_BITS: u32 = 20;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// Enough for the 44 bits of a tick.
const LEVELS: usize = 8;
/// The list of timers that are due.
const DUE: usize = SLOTS * LEVELS;
const NONE: u32 = u32::MAX;

/// A set timer; not valid any more once it fired or was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    index: u32,
    generation: u32,
}

/// Timers that each carry a value.
#[derive(Debug)]
pub struct Timers<T> {
    heads: Vec<u32>,
    occupied: [u64; LEVELS],
    nodes: Vec<Node<T>>,
    free: u32,
    now: u64,
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    tick: u64,
    list: u16,
    generation: u32,
    previous: u32,
    next: u32,
}

impl<T: Copy> Timers<T> {
    pub fn new() -> Timers<T> {
        Timers { heads: vec![NONE; DUE + 1], occupied: [0; LEVELS], nodes: Vec::new(), free: NONE, now: 0 }
    }

    /// Sets a timer.
    pub fn set(&mut self, at: Instant, value: T) -> TimerId {
        let tick = at.as_nanos().div_ceil(1 << TICK_BITS);
        let index = match self.nodes.get_mut(self.free as usize) {
            Some(node) => {
                let index = self.free;
                self.free = node.next;
                node.value = value;
                node.tick = tick;
                index
            }
            None => {
                self.nodes.push(Node { value, tick, list: 0, generation: 0, previous: NONE, next: NONE });
                (self.nodes.len() - 1) as u32
            }
        };
        self.link(index);
        TimerId { index, generation: self.nodes[index as usize].generation }
    }

    /// Forgets a timer; nothing happens when it fired before.
    pub fn cancel(&mut self, id: TimerId) {
        if self.nodes[id.index as usize].generation == id.generation {
            self.release(id.index);
        }
    }

    /// The next timer that is due; call until `None`.
    pub fn fire(&mut self, now: Instant) -> Option<T> {
        let target = (now.as_nanos() >> TICK_BITS).max(self.now);
        loop {
            let due = self.heads[DUE];
            if due != NONE {
                let value = self.nodes[due as usize].value;
                self.release(due);
                return Some(value);
            }
            let Some((list, tick)) = self.first_slot().filter(|(_, tick)| *tick <= target) else {
                self.now = target;
                return None;
            };
            self.now = tick;
            // From here each goes to a lower level, or to those that are due.
            while self.heads[list] != NONE {
                let index = self.heads[list];
                self.unlink(index);
                self.link(index);
            }
        }
    }

    /// When to call [`Timers::fire`] next; never later than the first timer.
    pub fn next(&self) -> Option<Instant> {
        if self.heads[DUE] != NONE {
            return Some(Instant::from_nanos(self.now << TICK_BITS));
        }
        self.first_slot().map(|(_, tick)| Instant::from_nanos(tick << TICK_BITS))
    }

    /// The first list that is not empty, and the tick at which it begins. All on one level lie ahead of the present
    /// slot, and all on a lower level before those on a higher one.
    fn first_slot(&self) -> Option<(usize, u64)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let shift = SLOT_BITS as usize * level;
        let base = self.now >> (shift + SLOT_BITS as usize) << (shift + SLOT_BITS as usize);
        Some((level * SLOTS + slot, base + ((slot as u64) << shift)))
    }

    fn link(&mut self, index: u32) {
        let tick = self.nodes[index as usize].tick;
        let list = if tick <= self.now {
            DUE
        } else {
            // The highest group of six bits in which the tick differs from the present.
            let level = ((63 - (tick ^ self.now).leading_zeros()) / SLOT_BITS) as usize;
            let slot = (tick >> (SLOT_BITS as usize * level)) as usize & (SLOTS - 1);
            self.occupied[level] |= 1 << slot;
            level * SLOTS + slot
        };
        let head = self.heads[list];
        let node = &mut self.nodes[index as usize];
        node.list = list as u16;
        node.previous = NONE;
        node.next = head;
        if head != NONE {
            self.nodes[head as usize].previous = index;
        }
        self.heads[list] = index;
    }

    fn unlink(&mut self, index: u32) {
        let Node { previous, next, list, .. } = self.nodes[index as usize];
        let list = usize::from(list);
        match previous {
            NONE => self.heads[list] = next,
            _ => self.nodes[previous as usize].next = next,
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if self.heads[list] == NONE && list != DUE {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }

    fn release(&mut self, index: u32) {
        self.unlink(index);
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        node.next = self.free;
        self.free = index;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use thalweg_base::rng::Rng;

    use super::*;

    /// Beside the timers a map that is plainly right: each fires once, not early, at most a tick late, never if cancelled.
    #[test]
    fn timers_fire_when_they_are_due() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let mut timers = Timers::new();
            let mut model = BTreeMap::new();
            let mut now = rng.next_u64() >> 8;
            assert_eq!(timers.fire(Instant::from_nanos(now)), None);
            for number in 0..2000_u32 {
                let at = now + (rng.next_u64() >> (20 + rng.below(40)));
                model.insert(number, (at, timers.set(Instant::from_nanos(at), number)));
                if rng.chance(0.3) {
                    let victim = rng.below(u64::from(number) + 1) as u32;
                    if let Some((_, id)) = model.remove(&victim) {
                        timers.cancel(id);
                    }
                }
                now = match rng.below(3) {
                    0 => timers.next().map_or(now, |next| next.as_nanos().max(now)),
                    _ => now + (rng.next_u64() >> (24 + rng.below(36))),
                };
                while let Some(fired) = timers.fire(Instant::from_nanos(now)) {
                    let (at, _) = model.remove(&fired).expect("fires once and not after it was cancelled");
                    assert!(at <= now, "seed {seed}: {fired} fired {} ns early", at - now);
                }
                let late = model.values().map(|(at, _)| *at).min().is_some_and(|at| at + (1 << TICK_BITS) <= now);
                assert!(!late, "seed {seed}: a timer is overdue");
                let first = model.values().map(|(at, _)| *at).min();
                let next = timers.next().map(|next| next.as_nanos());
                assert_eq!(next.is_some(), first.is_some());
                assert!(next <= first.map(|at| at + (1 << TICK_BITS)), "seed {seed}: would wake too late");
            }
        }
    }
}
