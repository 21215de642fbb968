//! Many seeds, on as many processors as there are.

use std::any::Any;
use std::ops::{ControlFlow, RangeInclusive};
use std::panic::{UnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use crate::world::{Breach, World, WorldOutcome};

/// The result of a series of seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Worlds that were run.
    pub seeds: u64,
    /// Samples that applications wrote in all of them.
    pub written: u64,
    /// Samples that applications took.
    pub taken: u64,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Virtual time in sum.
    pub simulated: Duration,
    /// The first broken law of each seed that broke one, in order of seeds.
    pub breaches: Vec<Breach>,
}

impl Report {
    fn of(outcome: &WorldOutcome) -> Report {
        let record = outcome.record();
        Report {
            seeds: 1,
            written: record.writers.iter().map(|writer| writer.written.len() as u64).sum(),
            taken: record.readers.iter().map(|reader| reader.taken.len() as u64).sum(),
            datagrams: record.processes.iter().map(|process| process.sent).sum(),
            simulated: Duration::from_nanos(record.ended_at.as_nanos()),
            breaches: outcome.verify().err().into_iter().collect(),
        }
    }

    /// The report of `world`, which grows from `seed`; where it panics, a breach that says so.
    fn of_seed(seed: u64, world: impl FnOnce() -> Report + UnwindSafe) -> Report {
        catch_unwind(world).unwrap_or_else(|panic| {
            let how = words_of(&*panic).to_string();
            let breach = Breach { seed, law: "no panic".into(), how, tail: String::new() };
            Report { seeds: 1, breaches: vec![breach], ..Report::default() }
        })
    }

    fn add(&mut self, other: Report) {
        self.seeds += other.seeds;
        self.written += other.written;
        self.taken += other.taken;
        self.datagrams += other.datagrams;
        self.simulated += other.simulated;
        self.breaches.extend(other.breaches);
    }
}

/// What a panic said.
fn words_of(panic: &(dyn Any + Send)) -> &str {
    let words = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    words.unwrap_or("without words")
}

/// Runs the worlds of `seeds` on `jobs` threads (at least one) and checks every law in each; a panic breaks one. `progress` is called
/// for each world when it is over, in no order, and may break the series off.
pub fn run_seeds(
    seeds: RangeInclusive<u64>,
    jobs: usize,
    mut progress: impl FnMut(&Report) -> ControlFlow<()>,
) -> Report {
    let mut report = Report::default();
    let (left, over) = (Mutex::new(seeds), AtomicBool::new(false));
    // Nobody runs ahead of `progress`: broken off, each thread ends with the world that it runs.
    let (done, worlds) = mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let done = done.clone();
            let next = || left.lock().ok().and_then(|mut left| left.next());
            let over = &over;
            scope.spawn(move || {
                while let Some(seed) = next().filter(|_| !over.load(Ordering::Relaxed)) {
                    if done.send(Report::of_seed(seed, || Report::of(&World::new(seed).run()))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        for world in worlds {
            if progress(&world).is_break() {
                over.store(true, Ordering::Relaxed);
            }
            report.add(world);
        }
    });
    report.breaches.sort_by_key(|breach| breach.seed);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_of_seeds_is_run_however_many_jobs_there_are() {
        let mut seen = 0;
        let whole = run_seeds(u64::MAX - 2..=u64::MAX, 2, |world| {
            seen += world.seeds;
            ControlFlow::Continue(())
        });
        assert_eq!((whole.seeds, seen), (3, 3));
        let single = run_seeds(u64::MAX - 2..=u64::MAX, 1, |_| ControlFlow::Continue(()));
        assert_eq!((single.written, single.taken, single.datagrams), (whole.written, whole.taken, whole.datagrams));
    }

    #[test]
    fn a_world_that_panics_is_named() {
        let panicked = |world: fn() -> Report| Report::of_seed(7, world).breaches[0].to_string();
        for named in [panicked(|| panic!("no room")), panicked(|| panic!("no {}", "room"))] {
            assert!(named.contains("seed 7 ") && named.contains("no room"), "{named}");
        }
    }

    #[test]
    fn a_series_can_be_broken_off() {
        let report = run_seeds(0..=1_000_000, 2, |_| ControlFlow::Break(()));
        assert!((1..=3).contains(&report.seeds), "{} worlds", report.seeds);
    }
}
