//! Reference-counted bytes: payloads that history, datagrams and application loans share without a copy.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// An immutable slice of a shared buffer. Cloning and slicing cost one reference count, never a copy.
///
/// Its hidden methods are for the crates of Thalweg, and no part of the API.
#[derive(Clone)]
pub struct Payload {
    slab: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

impl Payload {
    /// All of `slab`.
    #[inline]
    pub fn new(slab: Arc<Vec<u8>>) -> Payload {
        let end = slab.len();
        Payload { slab, start: 0, end }
    }

    /// No bytes; all such payloads share one buffer.
    pub fn empty() -> Payload {
        static EMPTY: std::sync::OnceLock<Arc<Vec<u8>>> = std::sync::OnceLock::new();
        Payload::new(Arc::clone(EMPTY.get_or_init(Arc::default)))
    }

    /// The part `range` of `slab`, or `None` when it reaches beyond the end.
    #[doc(hidden)]
    #[inline]
    pub fn part(slab: Arc<Vec<u8>>, range: Range<usize>) -> Option<Payload> {
        (range.start <= range.end && range.end <= slab.len()).then_some(Payload {
            slab,
            start: range.start,
            end: range.end,
        })
    }

    /// The part `range` of this payload.
    ///
    /// # Panics
    /// When `range` reaches beyond the end: callers check lengths while parsing.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Payload {
        assert!(range.start <= range.end && range.end <= self.len(), "slice within the payload");
        Payload { slab: Arc::clone(&self.slab), start: self.start + range.start, end: self.start + range.end }
    }

    /// Appends to a payload without other references that ends where its buffer ends; false for others.
    #[doc(hidden)]
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        match Arc::get_mut(&mut self.slab) {
            Some(slab) if slab.len() == self.end => {
                slab.extend_from_slice(bytes);
                self.end = slab.len();
                true
            }
            _ => false,
        }
    }

    /// Lets `pool` reuse the buffer once its last reference is gone.
    #[doc(hidden)]
    pub fn remember_in(&self, pool: &mut SlabPool) {
        pool.remember(&self.slab);
    }

    /// Bytes of the whole buffer that this payload keeps alive.
    #[inline]
    pub fn pinned_bytes(&self) -> usize {
        self.slab.capacity()
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.slab[self.start..self.end]
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for Payload {
    fn default() -> Payload {
        Payload::empty()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::new(Arc::new(bytes))
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Payload {
        Payload::from(bytes.to_vec())
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        **self == **other
    }
}

impl Eq for Payload {}

/// Buffers handed out and taken back without a call: the pool keeps a reference to each and reuses it once every other
/// reference is gone. One pool holds buffers of one capacity class.
///
/// Of the free buffers the one used last is reused first, so that a pool that once grew large works in few of them, which
/// the processor still has in its cache.
#[derive(Debug)]
pub struct SlabPool {
    /// Buffers known to be free; the one used last is at the back.
    free: VecDeque<Arc<Vec<u8>>>,
    /// Buffers that were in use when last looked at, in about the order of their use.
    lent: VecDeque<Arc<Vec<u8>>>,
    slab_bytes: usize,
    slabs_max: usize,
    search: Search,
}

/// When the pool looks behind buffers that are held for long.
#[derive(Debug, Default)]
struct Search {
    /// Looks that are still left out, and how many are after the next one in vain.
    left_out: usize,
    pause: usize,
}

/// Buffers found free again in one [`SlabPool::take`]: more than the one it hands out, so that the list grows.
const RECLAIMS_MAX: usize = 4;
/// Number of lent buffers that are checked beyond one that is held for long, before a new one is made.
const PROBES_MAX: usize = 4;
/// Most buffers that are made between two looks in vain: where a deep history holds every buffer, each probe costs memory that no
/// cache has.
const PAUSE_MAX: usize = 63;
/// Buffers lent at a time from which on that is so: they fill the second-level cache of most processors with what is looked at.
const DEEP_MIN: usize = 4_096;

impl SlabPool {
    /// A pool of buffers of `slab_bytes` each that remembers at most `slabs_max` of them.
    pub fn new(slab_bytes: usize, slabs_max: usize) -> SlabPool {
        SlabPool { free: VecDeque::new(), lent: VecDeque::new(), slab_bytes, slabs_max, search: Search::default() }
    }

    /// A buffer without other references; its content and length are those of its last use (capacity ≥ `slab_bytes`).
    ///
    /// Fill it by `Arc::get_mut`, which succeeds until it is cloned, then hand it to [`SlabPool::remember`].
    #[inline]
    pub fn take(&mut self) -> Arc<Vec<u8>> {
        self.take_free().unwrap_or_else(|| Arc::new(Vec::with_capacity(self.slab_bytes)))
    }

    /// As [`SlabPool::take`], with `slab_bytes` bytes of unspecified content. A new buffer's pages come from the operating system
    /// untouched and cost memory only once they are filled.
    #[inline]
    pub fn take_full(&mut self) -> Arc<Vec<u8>> {
        let mut slab = self.take_free().unwrap_or_else(|| Arc::new(vec![0; self.slab_bytes]));
        if slab.len() < self.slab_bytes {
            Arc::get_mut(&mut slab).expect("a free buffer has no other owner").resize(self.slab_bytes, 0);
        }
        slab
    }

    #[inline]
    fn take_free(&mut self) -> Option<Arc<Vec<u8>>> {
        for _ in 0..RECLAIMS_MAX {
            if self.lent.front_mut().is_none_or(|slab| Arc::get_mut(slab).is_none()) {
                break;
            }
            self.free.extend(self.lent.pop_front());
        }
        self.free.pop_back().or_else(|| self.search())
    }

    /// Looks for a free buffer behind those that are held for long: at the one lent last, and at others seldom while all are held.
    #[inline]
    fn search(&mut self) -> Option<Arc<Vec<u8>>> {
        if self.lent.back_mut().is_some_and(|slab| Arc::get_mut(slab).is_some()) {
            return self.lent.pop_back();
        }
        if self.search.left_out > 0 {
            self.search.left_out -= 1;
            return None;
        }
        for _ in 0..PROBES_MAX.min(self.lent.len()) {
            let mut slab = self.lent.pop_front()?;
            if Arc::get_mut(&mut slab).is_some() {
                self.search = Search::default();
                return Some(slab);
            }
            self.lent.push_back(slab);
        }
        if self.lent.len() >= DEEP_MIN {
            self.search.pause = (2 * self.search.pause + 1).min(PAUSE_MAX);
            self.search.left_out = self.search.pause;
        }
        None
    }

    /// An empty payload in a recycled buffer without other references, for [`Payload::append`].
    pub fn take_empty(&mut self) -> Payload {
        let mut slab = self.take();
        if let Some(buffer) = Arc::get_mut(&mut slab) {
            buffer.clear();
        }
        Payload::new(slab)
    }

    /// Capacity of its buffers.
    #[inline]
    pub fn slab_bytes(&self) -> usize {
        self.slab_bytes
    }

    /// Keeps a reference to `slab`, so that it is reused when all its payloads are gone.
    #[inline]
    pub fn remember(&mut self, slab: &Arc<Vec<u8>>) {
        if self.lent.len() + self.free.len() >= self.slabs_max && self.free.pop_front().is_none() {
            self.lent.pop_front();
        }
        self.lent.push_back(Arc::clone(slab));
    }
}

/// Pools by power-of-two size class, 64 B to 64 MiB; larger buffers are allocated and freed each time.
#[derive(Debug)]
pub struct PayloadPool {
    classes: Vec<SlabPool>,
}

const SMALLEST_CLASS_BITS: u32 = 6;
const LARGEST_CLASS_BITS: u32 = 26;
/// A hint above that is not believed at once: the buffer grows where it is true.
const HINT_BELIEVED_MAX: usize = 1 << 30;

impl PayloadPool {
    /// A pool that remembers at most about `budget_bytes` in each size class.
    pub fn new(budget_bytes: usize) -> PayloadPool {
        let class = |bits: u32| SlabPool::new(1 << bits, (budget_bytes >> bits).clamp(2, 1 << 16));
        PayloadPool { classes: (SMALLEST_CLASS_BITS..=LARGEST_CLASS_BITS).map(class).collect() }
    }

    /// Lets `fill` write into an empty recycled buffer with room for `bytes_hint` bytes, which grows where it writes more, and returns
    /// what it wrote. Hints above the largest size class get a new buffer, which is not recycled; nor is a buffer that grew to more than
    /// twice its size class.
    ///
    /// # Errors
    /// Those of `fill`; the buffer is recycled all the same.
    #[inline]
    pub fn fill<E>(
        &mut self,
        bytes_hint: usize,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Payload, E> {
        let Some(pool) = self.class_of(bytes_hint) else {
            // A hint is a guess: a wrong one must not ask for memory that no host has.
            let mut bytes = Vec::new();
            _ = bytes.try_reserve_exact(bytes_hint.min(HINT_BELIEVED_MAX));
            fill(&mut bytes)?;
            return Ok(Payload::from(bytes));
        };
        let mut slab = pool.take();
        let bytes = Arc::get_mut(&mut slab).expect("a pooled buffer has no other owner");
        bytes.clear();
        let filled = fill(bytes);
        // The class counts its buffers: large ones among them would be many times its budget.
        if slab.capacity() <= 2 * pool.slab_bytes() {
            pool.remember(&slab);
        }
        filled.map(|()| Payload::new(slab))
    }

    /// A recycled buffer of exactly `bytes` bytes of unspecified content without other references. Hand it to
    /// [`PayloadPool::remember`] when it is complete, so that it can be reused.
    pub fn take_sized(&mut self, bytes: usize) -> Arc<Vec<u8>> {
        let mut slab = match self.class_of(bytes) {
            Some(pool) => pool.take(),
            None => Arc::new(Vec::new()),
        };
        let buffer = Arc::get_mut(&mut slab).expect("a pooled buffer has no other owner");
        if buffer.is_empty() {
            // Zeroed pages come from the operating system untouched: an announced size costs memory only once it is filled.
            *buffer = vec![0; buffer.capacity().max(bytes)];
        }
        buffer.resize(bytes, 0);
        slab
    }

    /// Keeps a reference to a buffer of [`PayloadPool::take_sized`], so that it is reused when its payloads are gone.
    pub fn remember(&mut self, slab: &Arc<Vec<u8>>) {
        if let Some(pool) = self.class_of(slab.capacity()) {
            pool.remember(slab);
        }
    }

    #[inline]
    fn class_of(&mut self, bytes: usize) -> Option<&mut SlabPool> {
        let bits = usize::BITS - bytes.saturating_sub(1).leading_zeros();
        self.classes.get_mut(bits.saturating_sub(SMALLEST_CLASS_BITS) as usize)
    }

    /// A recycled copy of `bytes`.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Payload {
        let fill = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
            buffer.extend_from_slice(bytes);
            Ok(())
        };
        match self.fill(bytes.len(), fill) {
            Ok(payload) => payload,
            Err(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_reused_only_when_all_its_payloads_are_gone() {
        let mut pool = PayloadPool::new(1 << 20);
        let first = pool.copy(b"first");
        let address = first.as_ptr();
        let second = pool.copy(b"second");
        assert_ne!(second.as_ptr(), address);
        drop(first);
        let third = pool.copy(b"third");
        assert_eq!(third.as_ptr(), address);
        assert_eq!(&*second, b"second");
        assert_eq!(&*third, b"third");
    }

    #[test]
    fn the_buffer_freed_last_is_reused_first_and_held_ones_are_passed_over() {
        let mut pool = SlabPool::new(64, 100);
        let mut lend = || {
            let slab = pool.take();
            pool.remember(&slab);
            slab
        };
        let held = lend();
        let (early, late) = (lend(), lend());
        let (early_at, late_at) = (early.as_ptr(), late.as_ptr());
        drop((early, late));
        let first = lend();
        assert_eq!(first.as_ptr(), late_at, "the oldest one is held, the one lent last is free");
        drop(held);
        drop(first);
        let addresses = [lend().as_ptr(), lend().as_ptr(), lend().as_ptr()];
        assert!(addresses.contains(&early_at), "nothing new is made while buffers are free");
    }

    #[test]
    fn buffers_that_are_freed_among_held_ones_are_found_again() {
        let mut pool = SlabPool::new(64, 10_000);
        let mut lend = || {
            let slab = pool.take();
            pool.remember(&slab);
            slab
        };
        let mut held: Vec<_> = (0..800).map(|_| lend()).collect();
        let freed: std::collections::BTreeSet<_> = held.drain(400..600).map(|slab| slab.as_ptr()).collect();
        held.extend((0..7_000).map(|_| lend()));
        let found = held.iter().filter(|slab| freed.contains(&slab.as_ptr())).count();
        assert_eq!(found, 200);
    }

    #[test]
    fn a_pool_that_grew_large_works_in_few_buffers() {
        let mut pool = SlabPool::new(64, 1000);
        let mut lend = || {
            let slab = pool.take();
            pool.remember(&slab);
            slab
        };
        let burst: Vec<_> = (0..500).map(|_| lend()).collect();
        drop(burst);
        (0..2000).for_each(|_| drop(lend()));
        let used: std::collections::BTreeSet<_> = (0..1000).map(|_| lend().as_ptr()).collect();
        assert!(used.len() <= RECLAIMS_MAX, "{} buffers for one at a time", used.len());
    }

    /// As many bytes as `bytes`, in a buffer chosen by `bytes_hint`.
    fn filled(pool: &mut PayloadPool, bytes_hint: usize, bytes: usize) -> Payload {
        let fill = |buffer: &mut Vec<u8>| -> Result<(), std::convert::Infallible> {
            buffer.resize(bytes, 7);
            Ok(())
        };
        pool.fill(bytes_hint, fill).unwrap()
    }

    #[test]
    fn a_hint_of_more_than_any_host_has_asks_for_no_such_memory() {
        let payload = filled(&mut PayloadPool::new(1 << 20), usize::MAX, 10);
        assert_eq!(*payload, [7; 10]);
        assert!(payload.pinned_bytes() <= HINT_BELIEVED_MAX, "{}", payload.pinned_bytes());
    }

    #[test]
    fn a_buffer_that_grew_far_beyond_its_class_is_not_kept_in_it() {
        let mut pool = PayloadPool::new(1 << 20);
        drop(filled(&mut pool, 64, 1 << 20));
        assert!(filled(&mut pool, 64, 1).pinned_bytes() <= 128);
    }

    #[test]
    fn slices_share_the_buffer() {
        let payload = Payload::from(&b"abcdef"[..]);
        assert_eq!(&*payload.slice(2..4), b"cd");
        assert_eq!(&*payload.slice(2..4).slice(1..2), b"d");
    }
}
