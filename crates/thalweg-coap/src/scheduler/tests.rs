//! Pools with real threads. What a job does is decided by the test, so that no time matters.

use std::sync::mpsc::{Receiver, Sender, channel};

use thalweg_base::time::Instant;

use super::admission::AdmissionRank;
use super::queue::{JobOffer, Refused};
use super::*;

/// Says which job began, then waits until the test lets one go on.
struct Gate {
    began: Sender<u32>,
    go_on: Mutex<Receiver<()>>,
}

impl Crew<u32> for Gate {
    fn work(&self, job: u32) {
        self.began.send(job).unwrap();
        assert_ne!(job, PANICS, "as the test wants");
        self.go_on.lock().unwrap().recv().unwrap();
    }

    fn expire(&self, refused: Refused<u32>) {
        self.began.send(refused.job + EXPIRED).unwrap();
    }
}

const PANICS: u32 = 99;
const EXPIRED: u32 = 1000;

struct World {
    scheduler: Scheduler,
    pool: Pool<u32>,
    began: Receiver<u32>,
    go_on: Sender<()>,
}

fn world(law: ControlLaw, length_max: usize) -> World {
    let period = Duration::from_millis(10);
    let scheduler = Scheduler::start(SchedulerConfig { period, ..SchedulerConfig::default() }).unwrap();
    let ((began, news), (go_on, wait)) = (channel(), channel());
    let config = PoolConfig {
        name: "test".to_owned(),
        group: ThreadGroup::Interaction,
        law,
        patience: Patience { length_max, ..Patience::default() },
    };
    let crew = Gate { began, go_on: Mutex::new(wait) };
    let pool = scheduler.add_pool(config, Box::new(crew)).unwrap();
    World { scheduler, pool, began: news, go_on }
}

impl World {
    fn push(&self, now: Instant, jobs: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut offers =
            jobs.into_iter().map(|job| JobOffer { rank: AdmissionRank::Droppable, bytes: 1, job }).collect();
        let mut refused = Vec::new();
        self.pool.push(now, &mut offers, &mut refused);
        refused.into_iter().map(|refused| refused.job).collect()
    }

    fn next(&self) -> u32 {
        self.began.recv_timeout(Duration::from_secs(20)).expect("a job begins")
    }
}

#[test]
fn a_pool_works_on_as_many_jobs_at_once_as_it_has_threads() {
    let world = world(ControlLaw::Fixed(2), 10);
    assert!(world.push(clock::now(), [1, 2, 3]).is_empty());
    let mut begun = [world.next(), world.next()];
    begun.sort_unstable();
    assert_eq!(begun, [1, 2]);
    assert!(world.began.try_recv().is_err());
    world.go_on.send(()).unwrap();
    assert_eq!(world.next(), 3);
    (0..2).for_each(|_| world.go_on.send(()).unwrap());
}

#[test]
fn a_full_queue_refuses_and_the_pool_goes_on() {
    let world = world(ControlLaw::Fixed(1), 2);
    assert!(world.push(clock::now(), [1]).is_empty());
    assert_eq!(world.next(), 1);
    assert_eq!(world.push(clock::now(), [2, 3, 4, 5]), [4, 5]);
    (0..3).for_each(|_| world.go_on.send(()).unwrap());
    assert_eq!([world.next(), world.next()], [2, 3]);
}

#[test]
fn a_job_that_panics_takes_no_thread_away() {
    let world = world(ControlLaw::Fixed(1), 10);
    world.push(clock::now(), [PANICS, 1]);
    assert_eq!([world.next(), world.next()], [PANICS, 1]);
    world.go_on.send(()).unwrap();
}

#[test]
fn a_job_that_waited_too_long_is_given_back_undone() {
    let world = world(ControlLaw::Fixed(1), 10);
    world.push(clock::now() - Duration::from_secs(3), [1]);
    assert_eq!(world.next(), 1 + EXPIRED);
}

#[test]
fn blocked_threads_get_company_and_leave_when_nothing_is_to_be_done() {
    let world = world(ControlLaw::Vta, 100);
    world.push(clock::now(), 0..20);
    (0..20).for_each(|_| world.go_on.send(()).unwrap());
    (0..20).for_each(|_| assert!(world.next() < 20));
    // All jobs block now, so only more threads can begin them all.
    world.push(clock::now(), 0..5);
    (0..5).for_each(|_| assert!(world.next() < 5));
    assert!(world.scheduler.snapshot().pools[0].threads >= 5);
    (0..5).for_each(|_| world.go_on.send(()).unwrap());
    while world.scheduler.snapshot().pools[0].threads > 4 {
        std::thread::yield_now();
    }
}

#[test]
fn what_a_pool_did_can_be_seen_while_it_works() {
    let world = world(ControlLaw::Fixed(1), 1);
    world.push(clock::now(), [1]);
    world.next();
    assert_eq!(world.push(clock::now(), [2, 3]), [3]);
    assert_eq!(world.pool.room(), 0);
    world.pool.handle_drops(2);
    let record = loop {
        if let Some(record) = world.scheduler.snapshot().pools[0].history.first() {
            break *record;
        }
        std::thread::yield_now();
    };
    assert_eq!((record.observation.arrivals, record.refused, record.observation.completions), (2, 3, 0));
    assert_eq!((record.observation.queue, record.observation.threads), (1, 1));
    assert!(record.observation.busy_share() > 0.5, "{record:?}");
    (0..2).for_each(|_| world.go_on.send(()).unwrap());
    assert_eq!(world.next(), 2);
}

#[test]
fn a_pool_under_the_law_inline_is_refused() {
    let scheduler = Scheduler::start(SchedulerConfig::default()).unwrap();
    let config = PoolConfig::for_resources(ControlLaw::Inline);
    let crew = Gate { began: channel().0, go_on: Mutex::new(channel().1) };
    let Err(error) = scheduler.add_pool(config, Box::new(crew)) else { panic!("it was made") };
    assert!(error.to_string().contains("inline"));
}
