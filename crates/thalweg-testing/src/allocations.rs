//! An allocator that counts, for tests of what does not allocate and of what is held.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The system's allocator with a count of allocations and reallocations; a test binary makes it its own with
/// `#[global_allocator] static ALLOCATOR: Counting = Counting;`.
#[derive(Debug)]
pub struct Counting;

/// Allocations of all threads so far; 0 in a binary whose allocator is another one.
pub fn of_all_threads() -> u64 {
    ALL.load(Ordering::Relaxed)
}

/// Allocations of this thread so far; 0 in a binary whose allocator is another one.
pub fn of_this_thread() -> u64 {
    OWN.get()
}

/// Bytes that all threads have now; 0 in a binary whose allocator is another one.
pub fn bytes_held() -> i64 {
    HELD.load(Ordering::Relaxed)
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

static ALL: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicI64 = AtomicI64::new(0);

fn hold(bytes: usize) {
    HELD.fetch_add(bytes as i64, Ordering::Relaxed);
}

fn release(bytes: usize) {
    HELD.fetch_sub(bytes as i64, Ordering::Relaxed);
}

fn count() {
    OWN.set(OWN.get() + 1);
    ALL.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: every call goes unchanged to the system allocator, whose contract is this one's; the counters allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        release(layout.size());
        // SAFETY: the caller passes what `alloc` above returned, which came from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        release(layout.size());
        hold(bytes);
        // SAFETY: the caller passes what `alloc` above returned, which came from the system allocator.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn allocations_and_growth_count_for_their_thread_and_for_all() {
        let (own, all) = (of_this_thread(), of_all_threads());
        let mut list: Vec<u64> = Vec::with_capacity(1);
        list.reserve_exact(1_000);
        assert_eq!(of_this_thread() - own, 2);
        let there = std::thread::spawn(|| {
            let before = of_this_thread();
            drop(Box::new(7));
            of_this_thread() - before
        });
        assert_eq!(there.join().expect("it does not panic"), 1);
        assert!(of_all_threads() - all >= 3);
        let held = bytes_held();
        let large = vec![0_u8; 1 << 20];
        assert!(bytes_held() - held >= 1 << 20);
        drop(large);
        assert!(bytes_held() - held < 1 << 20, "given back");
    }
}
