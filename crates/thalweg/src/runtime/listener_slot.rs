//! The place of one listener: the callback, and news that it has not been told.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use thalweg_rtps::shared::debug_assert_none_held;

use super::Delivery;
use crate::sync::{Mutex, MutexGuard};

/// One callback of an endpoint, possibly none, and news of type `N` for it.
///
/// A callback runs on the thread that its [`Delivery`] names and on no other. Any thread may add news; the return value names the
/// thread to ask to run the callback. At most one thread is asked at a time, and one is asked as long as there is news. If the
/// listener's thread has changed meanwhile, the thread that was asked passes the request on to the other.
pub(crate) struct ListenerSlot<F: ?Sized, N>(Mutex<Slot<F, N>>);

struct Slot<F: ?Sized, N> {
    /// `None` without a listener, and while it runs.
    callback: Option<Box<F>>,
    delivery: Option<Delivery>,
    /// Counts replacements, so that a callback that is replaced while it runs is not put back.
    generation: u64,
    /// Oldest first; empty without a listener.
    news: VecDeque<N>,
    news_max: usize,
    /// Whether a thread was asked to run the callback and has not begun.
    asked: bool,
}

impl<F: ?Sized, N> ListenerSlot<F, N> {
    /// A slot without a listener, which holds the latest `news_max` news.
    pub(crate) fn new(news_max: usize) -> Self {
        let news = VecDeque::new();
        ListenerSlot(Mutex::new(Slot { callback: None, delivery: None, generation: 0, news, news_max, asked: false }))
    }

    /// The thread that runs the callback; `None` without one.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        self.slot().delivery
    }

    /// Installs a callback in place of the present one. It gets the news that the present one has not been told.
    pub(crate) fn set(&self, delivery: Delivery, callback: Box<F>) {
        let mut slot = self.slot();
        slot.generation += 1;
        slot.delivery = Some(delivery);
        // The replaced callback may hold the application's last reference to an object; it is dropped without the lock.
        let replaced = slot.callback.replace(callback);
        drop(slot);
        drop(replaced);
    }

    /// Removes the callback and its news. A call under way on another thread ends by itself.
    pub(crate) fn clear(&self) {
        let mut slot = self.slot();
        slot.generation += 1;
        slot.delivery = None;
        slot.news.clear();
        let removed = slot.callback.take();
        drop(slot);
        drop(removed);
    }

    /// Adds news. Returns the thread that the caller is to ask to [`ListenerSlot::run`]; `None` without a listener, or when a
    /// thread was asked before.
    #[must_use]
    pub(crate) fn add(&self, news: N) -> Option<Delivery> {
        self.slot().add(news)
    }

    /// As [`ListenerSlot::add`]; runs the callback at once when it belongs to `thread`, which is the caller.
    #[must_use]
    pub(crate) fn tell(&self, thread: Delivery, news: N, invoke: impl FnOnce(&mut F, N)) -> Option<Delivery> {
        let mut slot = self.slot();
        match slot.add(news) {
            Some(asked) if asked == thread => self.run_once(slot, invoke),
            other => other,
        }
    }

    /// Runs the callback with its oldest news when it belongs to `thread`, which was asked to. Returns the thread to ask next;
    /// `None` without more news, or when another thread was asked.
    #[must_use]
    pub(crate) fn run(&self, thread: Delivery, invoke: impl FnOnce(&mut F, N)) -> Option<Delivery> {
        let mut slot = self.slot();
        match slot.delivery.filter(|_| !slot.news.is_empty()) {
            Some(delivery) if delivery == thread => self.run_once(slot, invoke),
            Some(other) => Some(other),
            None => {
                slot.asked = false;
                None
            }
        }
    }

    /// Runs the callback without the lock; a panic in it removes it and is logged.
    fn run_once(&self, mut slot: MutexGuard<'_, Slot<F, N>>, invoke: impl FnOnce(&mut F, N)) -> Option<Delivery> {
        slot.asked = false;
        // Without a callback here, it is running; that call checks for news when it ends.
        let mut callback = slot.callback.take()?;
        let Some(news) = slot.news.pop_front() else {
            slot.callback = Some(callback);
            return None;
        };
        let generation = slot.generation;
        drop(slot);
        debug_assert_none_held();
        let outcome = catch_unwind(AssertUnwindSafe(|| invoke(&mut callback, news)));
        if outcome.is_err() {
            tracing::error!("a listener panicked and was removed");
        }
        let mut slot = self.slot();
        if slot.generation == generation {
            match outcome {
                Ok(()) => slot.callback = Some(callback),
                Err(_) => {
                    slot.delivery = None;
                    slot.news.clear();
                }
            }
        }
        slot.ask()
    }

    fn slot(&self) -> MutexGuard<'_, Slot<F, N>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: ?Sized, N> Slot<F, N> {
    fn add(&mut self, news: N) -> Option<Delivery> {
        self.delivery?;
        if self.news.len() >= self.news_max {
            self.news.pop_front();
        }
        self.news.push_back(news);
        self.ask()
    }

    /// The thread to ask; `None` without news, or when one was asked before.
    fn ask(&mut self) -> Option<Delivery> {
        let ask = self.delivery.filter(|_| !self.asked && !self.news.is_empty());
        self.asked |= ask.is_some();
        ask
    }
}
