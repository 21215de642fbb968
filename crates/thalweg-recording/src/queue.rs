//! Samples on their way from the readers to the disk.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A queue that is bounded by bytes: what finds no room is refused, and whoever offers never waits.
#[derive(Debug)]
pub struct ByteQueue<T> {
    state: Mutex<State<T>>,
    filled: Condvar,
    /// Bytes that may wait; the user chooses it.
    bytes_max: usize,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
    bytes_most: usize,
    is_closed: bool,
}

/// Why an entry was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// It would exceed the bytes that may wait.
    Full,
    /// Nothing is taken any more.
    Closed,
}

/// What a wait for entries ended with.
#[derive(Debug, PartialEq, Eq)]
pub enum TakenEntries<T> {
    /// The oldest ones.
    Entries(Vec<T>),
    /// Nothing came in time.
    Nothing,
    /// The queue is empty and closed.
    Closed,
}

impl<T> ByteQueue<T> {
    /// An empty queue.
    pub fn new(bytes_max: usize) -> ByteQueue<T> {
        let state = State { waiting: VecDeque::new(), bytes: 0, bytes_most: 0, is_closed: false };
        ByteQueue { state: Mutex::new(state), filled: Condvar::new(), bytes_max }
    }

    /// Puts an entry of so many bytes behind the others.
    ///
    /// # Errors
    /// When there is no room, or the queue is closed.
    pub fn offer(&self, entry: T, bytes: usize) -> Result<(), QueueRefusal> {
        // The entry's own memory counts, so that empty samples are bounded, too.
        let bytes = bytes.saturating_add(size_of::<(T, usize)>());
        let mut state = self.lock();
        if state.is_closed {
            return Err(QueueRefusal::Closed);
        }
        if state.bytes.saturating_add(bytes) > self.bytes_max {
            return Err(QueueRefusal::Full);
        }
        state.bytes += bytes;
        state.bytes_most = state.bytes_most.max(state.bytes);
        state.waiting.push_back((entry, bytes));
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for entries and takes up to `count` of them, and no more than the first that reaches so many bytes. Their bytes are free
    /// again at once: the fewer are taken, the less is held beyond the queue's bound.
    pub fn take(&self, count: usize, bytes: usize, patience: Duration) -> TakenEntries<T> {
        let state = self.lock();
        let empty = |state: &mut State<T>| state.waiting.is_empty() && !state.is_closed;
        let waited = self.filled.wait_timeout_while(state, patience, empty);
        let (mut state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.waiting.is_empty() {
            return if state.is_closed { TakenEntries::Closed } else { TakenEntries::Nothing };
        }
        let (mut entries, mut taken_bytes) = (Vec::new(), 0);
        while entries.len() < count
            && taken_bytes < bytes
            && let Some((entry, bytes)) = state.waiting.pop_front()
        {
            entries.push(entry);
            taken_bytes += bytes;
        }
        state.bytes -= taken_bytes;
        TakenEntries::Entries(entries)
    }

    /// Lets nothing more in; what waits can still be taken.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// Bytes that wait, and the most that ever waited.
    pub fn bytes(&self) -> (usize, usize) {
        let state = self.lock();
        (state.bytes, state.bytes_most)
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
