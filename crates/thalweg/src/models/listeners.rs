//! Listeners that are switched, removed and called at the same time.

use std::cell::Cell;
use std::sync::Arc;

use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use thalweg_rtps::status::Status;

use super::check;
use crate::runtime::{Agenda, Call, Delivery, ListenerSlot, StatusBoard};

type Slot = ListenerSlot<dyn FnMut(u32) + Send, u32>;

/// One listener of a participant, and the threads that run it.
#[derive(Clone)]
struct Scene(Arc<Parts>);

struct Parts {
    slot: Slot,
    agenda: Agenda<Scene>,
    /// The news that were heard, with the callback.
    heard: Mutex<Vec<(&'static str, u32)>>,
    changed: Condvar,
    /// Calls requested from a thread.
    calls: Mutex<usize>,
}

impl Call for Scene {
    fn run(&self, thread: Delivery) -> Option<Delivery> {
        assert_eq!(thread == Delivery::Inline, IS_IO_THREAD.with(Cell::get), "on a thread of its own");
        *self.0.calls.lock().unwrap() += 1;
        self.0.slot.run(thread, |listener, news| listener(news))
    }
}

loom::thread_local! {
    static IS_IO_THREAD: Cell<bool> = Cell::new(false);
}

impl Scene {
    fn new(news_max: usize) -> Scene {
        let (agenda, heard, calls) = (Agenda::default(), Mutex::default(), Mutex::default());
        Scene(Arc::new(Parts { slot: Slot::new(news_max), agenda, heard, changed: Condvar::new(), calls }))
    }

    fn spawn(&self, run: impl FnOnce(&Scene) + 'static) -> JoinHandle<()> {
        let scene = self.clone();
        thread::spawn(move || run(&scene))
    }

    fn install(&self, name: &'static str, delivery: Delivery) {
        let parts = Arc::downgrade(&self.0);
        let callback = move |news| {
            let is_io_thread = IS_IO_THREAD.with(Cell::get);
            assert_eq!(is_io_thread, delivery == Delivery::Inline, "{name} runs on another's thread");
            let parts = parts.upgrade().expect("the scene lasts");
            parts.heard.lock().unwrap().push((name, news));
            parts.changed.notify_all();
        };
        self.0.slot.set(delivery, Box::new(callback));
    }

    /// The I/O thread has news.
    fn deliver(&self, news: u32) {
        IS_IO_THREAD.with(|is| is.set(true));
        let next = self.0.slot.tell(Delivery::Inline, news, |listener, news| listener(news));
        self.0.agenda.go_on(next, self.clone());
    }

    /// Another thread has news.
    fn announce(&self, news: u32) {
        if let Some(thread) = self.0.slot.add(news) {
            _ = self.0.agenda.ask(thread, self.clone());
        }
    }

    fn listener_thread(&self) -> JoinHandle<()> {
        self.spawn(|scene| scene.0.agenda.run_listeners(|| ()))
    }

    /// Waits until so much was heard: for ever, if it never is.
    fn wait_for(&self, count: usize) {
        let mut heard = self.0.heard.lock().unwrap();
        while heard.len() < count {
            heard = self.0.changed.wait(heard).unwrap();
        }
    }

    /// Lets both threads finish their work; returns all news heard. The calling thread is the I/O thread from now on.
    fn finish(&self, listener_thread: JoinHandle<()>) -> Vec<(&'static str, u32)> {
        self.0.agenda.stop();
        listener_thread.join().unwrap();
        IS_IO_THREAD.with(|is| is.set(true));
        self.0.agenda.run_inline();
        self.0.heard.lock().unwrap().clone()
    }
}

/// All news in `heard`, of any callback; the order in which each callback heard it is checked.
#[track_caller]
fn news(heard: &[(&'static str, u32)]) -> Vec<u32> {
    for name in heard.iter().map(|(name, _)| name) {
        let mine = heard.iter().filter(|(whose, _)| whose == name).map(|(_, news)| news);
        assert!(mine.is_sorted(), "out of order: {heard:?}");
    }
    let mut news: Vec<u32> = heard.iter().map(|(_, news)| *news).collect();
    news.sort();
    news
}

/// A listener is switched while its old thread has a call to make and new news comes.
fn switched(from: Delivery, to: Delivery) {
    check(move || {
        let scene = Scene::new(4);
        scene.install("old", from);
        scene.announce(1);
        let listener_thread = scene.listener_thread();
        let io_thread = scene.spawn(|scene| {
            scene.deliver(2);
            scene.0.agenda.run_inline();
        });
        scene.install("new", to);
        io_thread.join().unwrap();
        let heard = scene.finish(listener_thread);
        assert_eq!(news(&heard), [1, 2], "{heard:?}");
    });
}

#[test]
fn a_listener_switched_to_the_io_thread_hears_all_news() {
    switched(Delivery::Thread, Delivery::Inline);
}

#[test]
fn a_listener_switched_to_the_listener_thread_hears_all_news() {
    switched(Delivery::Inline, Delivery::Thread);
}

#[test]
fn news_of_several_threads_is_told_once_each_by_one_call_each() {
    check(|| {
        let scene = Scene::new(4);
        scene.install("only", Delivery::Thread);
        let listener_thread = scene.listener_thread();
        let other = scene.spawn(|scene| scene.announce(1));
        scene.announce(2);
        scene.wait_for(2);
        other.join().unwrap();
        let mut heard: Vec<u32> = scene.finish(listener_thread).iter().map(|(_, news)| *news).collect();
        heard.sort();
        assert_eq!(heard, [1, 2]);
        assert_eq!(*scene.0.calls.lock().unwrap(), 2);
    });
}

#[test]
fn a_new_listener_hears_no_news_of_one_that_was_removed() {
    check(|| {
        let scene = Scene::new(4);
        scene.install("old", Delivery::Thread);
        scene.announce(1);
        scene.0.slot.clear();
        scene.install("new", Delivery::Thread);
        scene.announce(2);
        let listener_thread = scene.listener_thread();
        assert_eq!(scene.finish(listener_thread), [("new", 2)]);
    });
}

#[test]
fn a_new_listener_hears_statuses_in_the_order_of_their_changes() {
    check(|| {
        let board = Arc::new(StatusBoard::<Status<u64>, dyn FnMut(u64) + Send, u64>::new());
        assert_eq!(board.note(|status| status, |total| *total = 1, |growth| growth), None, "nobody listens");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (counting, hears) = (Arc::clone(&board), Arc::clone(&heard));
        let io_thread = thread::spawn(move || {
            _ = counting.note(|status| status, |total| *total = 3, |growth| growth);
        });
        board.listener().set(Delivery::Thread, Box::new(move |growth| hears.lock().unwrap().push(growth)));
        _ = board.announce(board.statuses(), |status| status.tell_changed().into_iter().collect());
        io_thread.join().unwrap();
        while board.listener().run(Delivery::Thread, |listener, growth| listener(growth)).is_some() {}
        let heard = heard.lock().unwrap().clone();
        assert!(heard == [1, 2] || heard == [3], "{heard:?}");
    });
}

#[test]
fn a_call_may_stand_for_much_news_but_comes_after_the_latest() {
    check(|| {
        let scene = Scene::new(1);
        scene.install("only", Delivery::Thread);
        let listener_thread = scene.listener_thread();
        let io_thread = scene.spawn(|scene| (1..=3).for_each(|news| scene.deliver(news)));
        io_thread.join().unwrap();
        let heard = scene.finish(listener_thread);
        assert_eq!(heard.last(), Some(&("only", 3)), "{heard:?}");
        news(&heard);
    });
}

#[test]
fn a_removed_listener_hears_no_later_news() {
    check(|| {
        let scene = Scene::new(4);
        scene.install("old", Delivery::Thread);
        let listener_thread = scene.listener_thread();
        let io_thread = scene.spawn(|scene| scene.deliver(1));
        scene.0.slot.clear();
        scene.announce(2);
        scene.install("new", Delivery::Thread);
        io_thread.join().unwrap();
        scene.announce(3);
        let heard = scene.finish(listener_thread);
        assert!(!heard.iter().any(|(name, news)| *news == 2 || *name == "old" && *news == 3), "{heard:?}");
        assert!(heard.contains(&("new", 3)), "{heard:?}");
    });
}
