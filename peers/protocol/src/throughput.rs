//! One way: the publisher writes as fast as the middleware lets it; the subscribers count.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::figures::{Received, Throughput};
use crate::middleware::{Channel, Keep, Middleware, Reader, Setup, Sink, Writer};
use crate::options::{Options, Role};
use crate::process;

/// The number of the sample that ends the measurement; its first eight bytes say how many were sent.
const END: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(10);

/// Room in a KEEP_ALL history, as in `thalweg perf`.
const SAMPLES_MAX: u32 = 2000;

/// Runs the end, or all ends, that the options name.
pub fn run<M: Middleware>(options: &Options) -> Result<(), String> {
    let setup = options.setup::<M>()?;
    match options.role {
        Role::Sub => print(options, &Throughput::new(options.size, &receive::<M>(options, &setup)?)),
        Role::Pub => send::<M>(options, &setup).map(drop),
        Role::Both => {
            let subscribers = process::start_subscribers("throughput", options)?;
            let writer_cpu_seconds = send::<M>(options, &setup)?;
            let mut all: Option<Throughput> = None;
            for subscriber in subscribers {
                let output = subscriber.output()?;
                let line = output.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
                let one: Throughput = serde_json::from_str(line).map_err(|error| format!("{error}: {output}"))?;
                all = Some(match all {
                    Some(all) => all.add(&one),
                    None => one,
                });
            }
            let mut figures = all.ok_or("no subscriber reported")?;
            figures.cpu_s_per_million_writer = Some(writer_cpu_seconds * 1e6 / figures.sent.max(1) as f64);
            print(options, &figures)
        }
    }
}

fn print(options: &Options, figures: &Throughput) -> Result<(), String> {
    if options.json {
        println!("{}", serde_json::to_string(figures).map_err(|error| error.to_string())?);
        return Ok(());
    }
    println!(
        "{} B: {:.0} samples/s, {:.0} Mbit/s, {} readers, {} sent, {} received, {} lost",
        figures.size,
        figures.received_per_s,
        figures.mbit_per_s,
        figures.readers,
        figures.sent,
        figures.received,
        figures.lost
    );
    Ok(())
}

fn channel(options: &Options) -> Channel {
    Channel {
        topic: "perf_throughput".to_owned(),
        type_name: "Perf",
        keep: Keep::All,
        best_effort: options.best_effort,
        durable: false,
        samples_max: Some(SAMPLES_MAX),
        max_blocking: Channel::MAX_BLOCKING,
    }
}

/// Writes for the time or count asked for; returns the CPU seconds that took.
fn send<M: Middleware>(options: &Options, setup: &Setup) -> Result<f64, String> {
    process::pin(options.cpu.first())?;
    let middleware = M::open(setup)?;
    let writer = middleware.writer(&channel(options))?;
    if !process::wait_until(PATIENCE, || writer.matched() >= usize::from(options.readers)) {
        return Err(format!("{} of {} subscribers within 10 s", writer.matched(), options.readers));
    }
    std::thread::sleep(Duration::from_millis(300));
    let bytes = vec![0x5a; options.size];
    let cpu_before = process::cpu_seconds();
    let end = Instant::now() + Duration::from_secs_f64(options.seconds());
    let mut sent = 0;
    // Small samples are quicker than a look at the clock.
    let stride = if options.size < 4096 { 64 } else { 1 };
    while sent < options.count() && (!sent.is_multiple_of(stride) || Instant::now() < end) {
        writer.write(sent, &bytes)?;
        sent += 1;
    }
    writer.flush()?;
    let cpu = process::cpu_seconds() - cpu_before;
    writer.wait_for_acknowledgements(PATIENCE);
    // Best-effort readers may miss one end mark.
    for _ in 0..if options.best_effort { 20 } else { 1 } {
        writer.write(END, &sent.to_le_bytes())?;
        writer.flush()?;
        std::thread::sleep(Duration::from_millis(5));
    }
    writer.wait_for_acknowledgements(PATIENCE);
    process::wait_until(PATIENCE, || writer.matched() == 0);
    Ok(cpu)
}

/// What has arrived so far.
struct Count {
    next: u64,
    received: u64,
    lost: u64,
    first: Option<(Instant, f64)>,
    last: Instant,
    /// Samples since `last`.
    unclocked: u64,
    total: Option<u64>,
    /// What the main thread sees.
    report: Arc<Mutex<Report>>,
}

#[derive(Clone, Copy, Default)]
struct Report {
    received: Option<Received>,
    ended: bool,
}

impl Sink for Count {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        if number == END {
            if let (None, Some(total)) = (self.total, bytes.first_chunk::<8>()) {
                let total = u64::from_le_bytes(*total);
                self.lost += total.saturating_sub(self.next);
                self.total = Some(total);
                self.taken();
            }
            return;
        }
        if self.first.is_none() {
            self.first = Some((Instant::now(), process::cpu_seconds()));
        }
        self.lost += number.saturating_sub(self.next);
        self.next = self.next.max(number + 1);
        self.received += 1;
        self.unclocked += 1;
    }

    fn taken(&mut self) {
        let Some((first, cpu_at_first)) = self.first else { return };
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if report.ended {
            return;
        }
        if self.unclocked > 0 {
            (self.unclocked, self.last) = (0, Instant::now());
        }
        report.ended = self.total.is_some();
        report.received = Some(Received {
            sent: self.total.unwrap_or(self.next),
            received: self.received,
            lost: self.lost,
            seconds: (self.last - first).as_secs_f64(),
            // A system call: worth it only where it counts.
            cpu_seconds: if report.ended { process::cpu_seconds() - cpu_at_first } else { 0.0 },
        });
    }
}

fn receive<M: Middleware>(options: &Options, setup: &Setup) -> Result<Received, String> {
    process::pin(options.cpu.get(1))?;
    let middleware = M::open(setup)?;
    let report = Arc::new(Mutex::new(Report::default()));
    let shared = Arc::clone(&report);
    let last = Instant::now();
    let count = Count { next: 0, received: 0, lost: 0, first: None, last, unclocked: 0, total: None, report: shared };
    let reader = middleware.reader(&channel(options), count)?;
    if !process::wait_until(PATIENCE, || reader.matched() > 0) {
        return Err("no publisher within 10 s".to_owned());
    }
    let now = || *report.lock().unwrap_or_else(PoisonError::into_inner);
    while !now().ended && reader.matched() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    now().received.ok_or_else(|| "nothing arrived".to_owned())
}
