//! Laws against a fluid model of a pool: arrivals at a rate, threads that each finish a rate, noise of 3 %.

use thalweg_rtps::rng::Rng;

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
        let decision = self.controller.handle_observation(&Observation {
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

const LIMITS: Limits = Limits { processors: 2, threads_max: 1000 };

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

fn row(law: impl Fn() -> Box<dyn Controller>) -> Row {
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
    Row {
        threads: [first, second, third],
        queue_peak,
        backlog_gone,
        later: fluid.threads,
        overloaded: bound.threads,
    }
}

#[test]
#[ignore]
fn print_rows() {
    for (name, law) in laws() {
        println!("{name}: {:?}", row(law));
    }
}

type Make = fn() -> Box<dyn Controller>;

fn laws() -> [(&'static str, Make); 5] {
    [
        ("printed, completions", || Box::new(VtaPrinted::new(HandlerRate::Completions, LIMITS))),
        ("printed, capacity", || Box::new(VtaPrinted::new(HandlerRate::Capacity, LIMITS))),
        ("authors", || Box::new(VtaAuthors::new(LIMITS))),
        ("corrected", || Box::new(Vta::new(LIMITS))),
        ("queue delay", || Box::new(QueueDelay::new(LIMITS))),
    ]
}
