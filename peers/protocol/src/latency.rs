//! Ping-pong: the publisher writes a sample, the subscriber writes it back.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::figures::Latency;
use crate::middleware::{Channel, Keep, Middleware, Reader, Setup, Sink, Wait, Writer};
use crate::options::{Options, Role};
use crate::process;

const WARM_UP: usize = 500;
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the end, or both ends, that the options name.
pub fn run<M: Middleware>(options: &Options) -> Result<(), String> {
    let setup = options.setup::<M>()?;
    match options.role {
        _ if options.readers != 1 => Err("latency is measured with one reader".to_owned()),
        Role::Sub => answer::<M>(options, &setup),
        Role::Pub => measure::<M>(options, &setup),
        Role::Both => {
            let subscribers = process::start_subscribers("latency", options)?;
            measure::<M>(options, &setup)?;
            subscribers.into_iter().try_for_each(|subscriber| subscriber.output().map(drop))
        }
    }
}

fn channel(topic: &str, options: &Options, setup: &Setup) -> Channel {
    // The listener itself writes: a full KEEP_ALL history would block the thread that frees it.
    const ECHOES: u32 = 16;
    let keep = if setup.wait == Wait::Listener { Keep::Last(ECHOES) } else { Keep::All };
    Channel {
        topic: topic.to_owned(),
        type_name: "Perf",
        keep,
        best_effort: options.best_effort,
        durable: false,
        samples_max: Some(2000),
        max_blocking: Channel::MAX_BLOCKING,
    }
}

/// Writes back what arrives.
struct Answer<W> {
    writer: W,
}

impl<W: Writer> Sink for Answer<W> {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let answered = self.writer.write(number, bytes).map_err(String::from).and_then(|()| self.writer.flush());
        if let Err(error) = answered {
            eprintln!("answer to sample {number}: {error}");
        }
    }
}

fn answer<M: Middleware>(options: &Options, setup: &Setup) -> Result<(), String> {
    process::pin(options.cpu.get(1))?;
    let middleware = M::open(setup)?;
    let writer = middleware.writer(&channel("perf_pong", options, setup))?;
    let reader = middleware.reader(&channel("perf_ping", options, setup), Answer { writer })?;
    if !process::wait_until(PATIENCE, || reader.matched() > 0) {
        return Err("no publisher within 10 s".to_owned());
    }
    while reader.matched() > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The publisher's side of the game.
struct Ping<W> {
    writer: W,
    bytes: Vec<u8>,
    number: u64,
    sent: Instant,
    round_trips: Vec<u64>,
    warm_up: usize,
    end: Instant,
    count: usize,
    over: Option<Result<(), String>>,
}

impl<W: Writer> Ping<W> {
    fn serve(&mut self) {
        self.sent = Instant::now();
        let written = self.writer.write(self.number, &self.bytes).map_err(String::from);
        if let Err(error) = written.and_then(|()| self.writer.flush()) {
            self.over = Some(Err(format!("sample {}: {error}", self.number)));
        }
    }

    /// Notes the time and serves again, or ends the game.
    fn handle_return(&mut self, number: u64, bytes: &[u8]) {
        let now = Instant::now();
        if number != self.number || self.over.is_some() {
            return; // A repeated answer of an earlier round.
        }
        if bytes.len() != self.bytes.len() {
            self.over = Some(Err(format!("sample {number} came back with {} bytes", bytes.len())));
            return;
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.round_trips.push((now - self.sent).as_nanos() as u64);
        }
        if self.round_trips.len() >= self.count || now >= self.end {
            self.over = Some(Ok(()));
            return;
        }
        self.number += 1;
        self.serve();
    }
}

/// The game, played in the thread that brings the answers while the main thread waits for its end.
struct Game<W>(Arc<(Mutex<Ping<W>>, Condvar)>);

impl<W: Writer> Sink for Game<W> {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let (ping, over) = &*self.0;
        let mut ping = ping.lock().unwrap_or_else(PoisonError::into_inner);
        ping.handle_return(number, bytes);
        if ping.over.is_some() {
            over.notify_one();
        }
    }
}

fn measure<M: Middleware>(options: &Options, setup: &Setup) -> Result<(), String> {
    process::pin(options.cpu.first())?;
    let middleware = M::open(setup)?;
    let writer = middleware.writer(&channel("perf_ping", options, setup))?;
    let ping = Ping {
        writer: writer.clone(),
        bytes: vec![0x5a; options.size],
        number: 1,
        sent: Instant::now(),
        round_trips: Vec::with_capacity(1 << 20),
        warm_up: if options.size > 100_000 { 20 } else { WARM_UP },
        end: Instant::now(),
        count: usize::try_from(options.count()).unwrap_or(usize::MAX),
        over: None,
    };
    let game = Arc::new((Mutex::new(ping), Condvar::new()));
    let reader = middleware.reader(&channel("perf_pong", options, setup), Game(Arc::clone(&game)))?;
    if !process::wait_until(PATIENCE, || writer.matched() > 0 && reader.matched() > 0) {
        return Err("no subscriber within 10 s".to_owned());
    }
    // Matching is one-sided: give the other process time to match us as well.
    std::thread::sleep(Duration::from_millis(300));
    let (ping, over) = &*game;
    let mut ping = ping.lock().unwrap_or_else(PoisonError::into_inner);
    let time = Duration::from_secs_f64(options.seconds());
    ping.end = Instant::now() + time;
    ping.serve();
    let waited = over.wait_timeout_while(ping, time + PATIENCE, |ping| ping.over.is_none());
    let (mut ping, _) = waited.unwrap_or_else(PoisonError::into_inner);
    let silent = Err(format!("no answer to sample {} within 10 s", ping.number));
    ping.over.take().unwrap_or(silent)?;
    let figures = Latency::new(options.size, std::mem::take(&mut ping.round_trips));
    drop(ping);
    print(options, &figures)
}

fn print(options: &Options, figures: &Latency) -> Result<(), String> {
    if options.json {
        println!("{}", serde_json::to_string(figures).map_err(|error| error.to_string())?);
        return Ok(());
    }
    let Latency { size, samples, min_us, p50_us, p90_us, p99_us, p999_us, max_us } = figures;
    println!(
        "{size} B: {samples} round trips, min {min_us:.1} p50 {p50_us:.1} p90 {p90_us:.1} p99 {p99_us:.1} \
         p99.9 {p999_us:.1} max {max_us:.1} µs"
    );
    Ok(())
}
