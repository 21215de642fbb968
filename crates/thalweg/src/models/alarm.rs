//! Deadlines that application threads set while the I/O thread goes to sleep.

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};
use loom::thread;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::EntityId;

use super::check;
use crate::runtime::{Alarm, Wake};

/// An event and a timer, as the receiver has them.
#[derive(Clone, Default)]
struct Bed(Arc<(Mutex<Signals>, Condvar)>);

#[derive(Default)]
struct Signals {
    woken: bool,
    timer: Option<Instant>,
    /// Requests whose call has returned.
    filed: Vec<Instant>,
}

impl Bed {
    fn signal(&self, signal: impl FnOnce(&mut Signals)) {
        let (signals, changed) = &*self.0;
        signal(&mut signals.lock().unwrap());
        changed.notify_one();
    }

    /// Sleeps until a signal. Nothing else ends the sleep, however long it was to last: a request that goes unnoticed is a
    /// deadlock. `taken` are the requests that the sleeper knows.
    fn sleep(&self, taken: &[Instant]) {
        let (signals, changed) = &*self.0;
        let mut signals = signals.lock().unwrap();
        while !std::mem::take(&mut signals.woken) {
            if let Some(now) = signals.timer.take() {
                let late = signals.filed.iter().find(|at| **at < now && !taken.contains(at));
                assert_eq!(late, None, "the sleep ends at {now:?}");
                return;
            }
            signals = changed.wait(signals).unwrap();
        }
    }
}

impl Wake for Bed {
    fn wake(&self) {
        self.signal(|signals| signals.woken = true);
    }

    fn wake_by(&self, deadline: Instant) {
        self.signal(|signals| signals.timer = Some(signals.timer.map_or(deadline, |timer| timer.min(deadline))));
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn alarm() -> (Bed, Arc<Alarm<Bed>>) {
    let bed = Bed::default();
    (bed.clone(), Arc::new(Alarm::new(bed)))
}

fn request(bed: &Bed, alarm: &Arc<Alarm<Bed>>, deadline: Instant) -> thread::JoinHandle<()> {
    let (bed, alarm) = (bed.clone(), Arc::clone(alarm));
    thread::spawn(move || {
        alarm.request(EntityId::UNKNOWN, deadline);
        bed.0.0.lock().unwrap().filed.push(deadline);
    })
}

/// The I/O thread: sleeps until `until` whenever there is nothing to do, and takes `count` requests.
fn take(alarm: &Alarm<Bed>, bed: &Bed, until: Instant, count: usize) {
    let (mut taken, mut requests) = (Vec::new(), Vec::new());
    loop {
        alarm.take_requests(&mut requests);
        taken.extend(requests.drain(..).map(|(_, at)| at));
        if taken.len() == count {
            return;
        }
        if alarm.fall_asleep(until) {
            bed.sleep(&taken);
        }
        alarm.awake();
    }
}

#[test]
fn a_request_is_noticed_however_the_io_thread_goes_to_sleep() {
    check(|| {
        let (bed, alarm) = alarm();
        let requester = request(&bed, &alarm, at(10));
        take(&alarm, &bed, at(1_000), 1);
        requester.join().unwrap();
    });
}

#[test]
fn the_earlier_of_two_requests_ends_the_sleep() {
    check(|| {
        let (bed, alarm) = alarm();
        let requesters = [request(&bed, &alarm, at(20)), request(&bed, &alarm, at(10))];
        take(&alarm, &bed, at(1_000), 2);
        requesters.into_iter().for_each(|requester| requester.join().unwrap());
    });
}

#[test]
fn a_request_for_later_wakes_nobody_and_is_not_forgotten() {
    check(|| {
        let (bed, alarm) = alarm();
        let requester = request(&bed, &alarm, at(2_000));
        let time = {
            let bed = bed.clone();
            thread::spawn(move || {
                requester.join().unwrap();
                bed.signal(|signals| {
                    assert!(!signals.woken && signals.timer.is_none(), "a needless wake-up");
                    signals.timer = Some(at(1_000));
                });
            })
        };
        take(&alarm, &bed, at(1_000), 1);
        time.join().unwrap();
    });
}
