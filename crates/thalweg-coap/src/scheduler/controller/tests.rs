//! Laws against a fluid model of a pool: arrivals at a rate, threads that each finish a rate, noise of 3 %.

use thalweg_base::rng::Rng;

use super::*;

/// A pool whose work flows, with one law for its threads.
struct Fluid {
    controller: Box<dyn Controller>,
    /// Requests a second that one thread finishes.
    thread_rate: f64,
    /// Processors that the handlers share when they need one all the time; `None` for handlers that only wait.
    processors: Option<f64>,
    period: Duration,
    threads: usize,
    queue: f64,
    queue_peak: f64,
    threads_max: usize,
    rng: Rng,
}

impl Fluid {
    fn new(controller: Box<dyn Controller>) -> Fluid {
        Fluid {
            controller,
            thread_rate: 1000.0,
            processors: None,
            period: Duration::from_secs(1),
            threads: 1,
            queue: 0.0,
            queue_peak: 0.0,
            threads_max: 0,
            rng: Rng::new(7),
        }
    }

    fn bound_by_processors(controller: Box<dyn Controller>) -> Fluid {
        Fluid { processors: Some(2.0), ..Fluid::new(controller) }
    }

    fn noise(&mut self) -> f64 {
        // A sum of uniform numbers is normal enough; its deviation is that of the model, 0.03.
        let sum: f64 = (0..12).map(|_| self.rng.below(1 << 20) as f64 / f64::from(1 << 20)).sum();
        1.0 + 0.03 * (sum - 6.0)
    }

    fn step(&mut self, rate: f64) {
        let seconds = self.period.as_secs_f64();
        let threads = self.threads as f64;
        let working = self.processors.map_or(threads, |processors| threads.min(processors));
        let capacity = working * self.thread_rate * self.noise() * seconds;
        let arrivals = rate * self.noise() * seconds;
        let done = capacity.min(self.queue + arrivals);
        self.queue = (self.queue + arrivals - done).max(0.0);
        self.queue_peak = self.queue_peak.max(self.queue);
        let busy = threads * seconds * done / capacity;
        let on_processor = if self.processors.is_some() { busy * working / threads } else { busy * 0.01 };
        let waited = if self.processors.is_some() { busy - on_processor } else { 0.0 };
        let decision = self.controller.handle_observation(&PeriodObservation {
            period: self.period,
            threads: self.threads,
            arrivals: arrivals.round() as u64,
            completions: done.round() as u64,
            busy: Duration::from_secs_f64(busy),
            processor: Duration::from_secs_f64(on_processor),
            processor_wait: Duration::from_secs_f64(waited),
            queue: self.queue.round() as usize,
            sojourn: Duration::from_secs_f64(self.queue * seconds / capacity),
        });
        self.threads = decision.threads;
        self.threads_max = decision.threads_max;
    }

    fn run(&mut self, rate: f64, seconds: f64) {
        for _ in 0..(seconds / self.period.as_secs_f64()).round() as usize {
            self.step(rate);
        }
    }

    /// Seconds of `rate` until `reached`, at most 100.
    fn until(&mut self, rate: f64, reached: impl Fn(&Fluid) -> bool) -> f64 {
        let mut seconds = 0.0;
        while seconds < 100.0 && !reached(self) {
            self.step(rate);
            seconds += self.period.as_secs_f64();
        }
        seconds
    }
}

const LIMITS: PoolLimits = PoolLimits { processors: 2, threads_max: 1000 };

/// What the model's table shows of one law under 2,500 requests a second for 30 s, 9,000 for 40 s, 1,500 for 40 s: 3, 9
/// and 2 threads are needed.
#[derive(Debug)]
struct Row {
    threads: [usize; 3],
    queue_peak: f64,
    /// Seconds from the step up until the backlog was gone.
    backlog_gone: f64,
    /// Threads after ten minutes of 500 requests a second.
    later: usize,
    /// Threads after twenty minutes of 2,500 requests a second for handlers that fill both processors with 2,000.
    overloaded: usize,
}

fn row(law: Make) -> Row {
    let mut fluid = Fluid::new(law());
    fluid.run(2500.0, 29.0);
    let first = fluid.threads;
    fluid.run(2500.0, 1.0);
    fluid.step(9000.0);
    let backlog_gone = 1.0 + fluid.until(9000.0, |fluid| fluid.queue < 1.0);
    fluid.run(9000.0, (39.0 - backlog_gone).max(0.0));
    let second = fluid.threads;
    fluid.run(9000.0, 1.0);
    fluid.run(1500.0, 39.0);
    let third = fluid.threads;
    let queue_peak = fluid.queue_peak;
    fluid.run(500.0, 600.0);
    let mut bound = Fluid::bound_by_processors(law());
    bound.run(2500.0, 1200.0);
    Row { threads: [first, second, third], queue_peak, backlog_gone, later: fluid.threads, overloaded: bound.threads }
}

type Make = fn() -> Box<dyn Controller>;

fn printed() -> Box<dyn Controller> {
    ControlLaw::VtaPrinted.controller(LIMITS).unwrap()
}

fn printed_with_completions() -> Box<dyn Controller> {
    Box::new(VtaPrinted::new(HandlerRate::Completions, PeakOf::HandlerRate, LIMITS))
}

fn printed_with_capacity() -> Box<dyn Controller> {
    Box::new(VtaPrinted::new(HandlerRate::Capacity, PeakOf::HandlerRate, LIMITS))
}

fn authors() -> Box<dyn Controller> {
    Box::new(VtaAuthors::new(LIMITS))
}

fn corrected() -> Box<dyn Controller> {
    Box::new(Vta::new(LIMITS))
}

fn queue_delay() -> Box<dyn Controller> {
    Box::new(QueueDelay::new(LIMITS))
}

#[test]
fn the_printed_equations_never_take_a_thread_away_and_leave_a_backlog() {
    for law in [printed as Make, printed_with_completions] {
        let row = row(law);
        let [first, second, third] = row.threads;
        assert!(first <= second && second <= third && third <= row.later, "{row:?}");
        assert!(row.later >= 10 && row.queue_peak > 20_000.0 && row.backlog_gone > 20.0, "{row:?}");
        assert!(row.overloaded > 2, "{row:?}");
    }
}

#[test]
fn with_capacities_for_rates_the_printed_equations_never_stop_growing() {
    let row = row(printed_with_capacity);
    assert!(row.threads[2] >= 25 && row.later >= 2 * row.threads[2], "{row:?}");
    assert!(row.queue_peak < 3000.0 && row.backlog_gone <= 2.0, "{row:?}");
}

#[test]
fn the_authors_code_comes_down_but_is_slow_to_grow() {
    let row = row(authors);
    assert!(row.threads[2] == 2 && row.later == 1, "{row:?}");
    assert!(row.queue_peak > 15_000.0 && row.backlog_gone > 15.0 && row.overloaded > 2, "{row:?}");
}

#[test]
fn the_corrected_reading_follows_the_load_in_two_seconds_and_stops_at_the_processors() {
    let row = row(corrected);
    let [first, second, third] = row.threads;
    assert!((3..=4).contains(&first) && (9..=12).contains(&second) && third == 2, "{row:?}");
    assert!(row.queue_peak < 6000.0 && row.backlog_gone <= 2.0, "{row:?}");
    assert_eq!((row.later, row.overloaded), (1, 2));
}

#[test]
fn a_law_that_knows_the_delay_only_is_slower_and_stops_at_the_processors_too() {
    let row = row(queue_delay);
    let [first, second, third] = row.threads;
    assert!((3..=4).contains(&first) && (9..=15).contains(&second) && third == 2, "{row:?}");
    assert!(row.backlog_gone <= 10.0, "{row:?}");
    assert_eq!((row.later, row.overloaded), (1, 2));
}

/// Steps of 200 ms under 1,000, 6,000 and 1,000 requests a second that block for 2 ms: 3, 16 and 3 threads are needed.
#[test]
fn a_step_up_is_met_in_two_seconds_and_forgotten_in_ten() {
    let mut fluid = Fluid::new(corrected());
    (fluid.period, fluid.thread_rate) = (Duration::from_millis(200), 480.0);
    fluid.run(1000.0, 7.0);
    assert!((2..=4).contains(&fluid.threads), "{}", fluid.threads);
    fluid.step(6000.0);
    assert!(fluid.until(6000.0, |fluid| fluid.queue < 1.0) <= 1.0);
    fluid.run(6000.0, 4.0);
    for _ in 0..25 {
        fluid.step(6000.0);
        assert!((13..=20).contains(&fluid.threads), "{}", fluid.threads);
    }
    fluid.run(1000.0, 10.0);
    assert!(fluid.threads <= 6, "{}", fluid.threads);
}

/// Clients that wait for their answers ask only as fast as they are answered.
fn closed_loop(mut controller: Box<dyn Controller>) -> usize {
    let mut threads = 1;
    for _ in 0..30 {
        let observation = PeriodObservation {
            period: Duration::from_secs(1),
            threads,
            arrivals: 1000 * threads as u64,
            completions: 1000 * threads as u64,
            busy: Duration::from_secs(threads as u64),
            processor: Duration::from_millis(10 * threads as u64),
            processor_wait: Duration::ZERO,
            queue: 20_usize.saturating_sub(threads),
            sojourn: Duration::from_millis(20 / threads as u64),
        };
        threads = controller.handle_observation(&observation).threads;
    }
    threads
}

#[test]
fn clients_that_wait_for_answers_get_more_threads_by_utilisation_only() {
    assert!(closed_loop(corrected()) >= 20);
    assert_eq!(closed_loop(authors()), 1);
}

#[test]
fn threads_that_all_block_get_company() {
    for (name, law) in [("vta", corrected as Make), ("queue-delay", queue_delay)] {
        let mut controller = law();
        let mut threads = 1;
        for _ in 0..20 {
            let period = Duration::from_millis(200);
            let busy = period * threads as u32;
            let observation = PeriodObservation { period, threads, busy, queue: 100, ..PeriodObservation::default() };
            threads = controller.handle_observation(&observation).threads;
        }
        assert!(threads >= 50, "{name}: {threads}");
    }
}

#[test]
fn without_requests_one_thread_stays() {
    let mut fluid = Fluid::new(corrected());
    fluid.run(9000.0, 20.0);
    fluid.run(0.0, 10.0);
    assert_eq!(fluid.threads, 1);
}

#[test]
fn the_cap_follows_what_handlers_need_a_processor_for_and_not_how_long_they_wait_for_one() {
    let mut controller = corrected();
    let mut check = |processor: u64, wait: u64, expect: usize| {
        let observation = PeriodObservation {
            period: Duration::from_secs(1),
            threads: 4,
            arrivals: 100_000,
            completions: 1000,
            busy: Duration::from_secs(4),
            processor: Duration::from_millis(processor),
            processor_wait: Duration::from_millis(wait),
            queue: 50_000,
            sojourn: Duration::from_secs(1),
        };
        // Five periods later nothing else is remembered.
        let decisions: Vec<usize> = (0..5).map(|_| controller.handle_observation(&observation).threads_max).collect();
        assert_eq!(decisions[4], expect, "{processor} {wait}");
    };
    check(2000, 2000, 2);
    check(2000, 0, 4);
    check(40, 0, 200);
    check(4, 0, 1000);
}

#[test]
fn the_printed_law_sees_the_last_five_seconds_whatever_the_period() {
    for milliseconds in [100, 200, 1000] {
        let mut law = printed();
        let threads_after = |arrivals_a_second: u64| {
            let observation = PeriodObservation {
                period: Duration::from_millis(milliseconds),
                threads: 1,
                arrivals: arrivals_a_second * milliseconds / 1000,
                completions: milliseconds,
                busy: Duration::from_millis(milliseconds),
                ..PeriodObservation::default()
            };
            let mut threads = 0;
            for _ in 0..1000 / milliseconds {
                threads = law.handle_observation(&observation).threads;
            }
            threads
        };
        // Equation (3) asks for threads as long as the second of many requests is among its five samples.
        let threads = [10_000, 0, 0, 0, 0, 0].map(threads_after);
        assert_eq!(threads, [3, 3, 3, 3, 2, 1], "{milliseconds} ms");
    }
}

#[test]
fn laws_have_names() {
    for law in [
        ControlLaw::Inline,
        ControlLaw::Fixed(7),
        ControlLaw::VtaPrinted,
        ControlLaw::VtaAuthors,
        ControlLaw::Vta,
        ControlLaw::QueueDelay,
    ] {
        assert_eq!(law.to_string().parse(), Ok(law));
    }
    for text in ["fixed", "fixed:0", "fixed:-1", "VTA", ""] {
        assert!(text.parse::<ControlLaw>().is_err(), "{text}");
    }
    assert_eq!(
        ControlLaw::Fixed(2000).controller(LIMITS).unwrap().handle_observation(&PeriodObservation::default()).threads,
        1000
    );
    assert!(ControlLaw::Inline.controller(LIMITS).is_none());
}
