//! Ping-pong: the publisher writes a sample, the subscriber writes it back.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::cyclone::{Keep, Participant, Reader, Sample, WaitSet, Writer};
use crate::figures::Latency;
use crate::{Options, Role, Wait, process};

const WARM_UP: usize = 500;
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(options: &Options) -> Result<(), String> {
    match options.role {
        Role::Sub => answer(options),
        Role::Pub => measure(options),
        Role::Both => {
            let subscriber = process::start_subscriber("latency", options)?;
            measure(options)?;
            subscriber.output().map(drop)
        }
    }
}

/// KEEP_ALL unless the listener itself writes.
fn keep(options: &Options) -> Keep {
    if options.wait == Wait::Listener { Keep::Last } else { Keep::All }
}

fn answer(options: &Options) -> Result<(), String> {
    process::pin(options.cpu.get(1))?;
    let participant = Participant::new(options.domain)?;
    let reader = participant.reader("perf_ping", keep(options), options)?;
    let writer = participant.writer("perf_pong", keep(options), options)?;
    let reply = move |reader: Reader| {
        reader.take(|sample| writer.write(sample).expect("Cyclone accepts the answer"));
    };
    let wait_set = match options.wait {
        Wait::Block => Some(WaitSet::new(&participant, reader)?),
        Wait::Listener => {
            reader.listen(Box::new(reply));
            None
        }
    };
    if !process::wait_until(PATIENCE, || reader.matched() > 0) {
        return Err("no publisher within 10 s".to_owned());
    }
    while reader.matched() > 0 {
        match &wait_set {
            Some(wait_set) => {
                if wait_set.wait(Duration::from_millis(100)) {
                    reply(reader);
                }
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}

/// The publisher's side of the game; in listener mode it lives in Cyclone's receive thread.
struct Ping {
    writer: Writer,
    bytes: Vec<u8>,
    sequence: u64,
    sent: Instant,
    round_trips: Vec<u64>,
    warm_up: usize,
    end: Instant,
    count: usize,
}

impl Ping {
    fn serve(&mut self) {
        self.sent = Instant::now();
        let sample = Sample::borrowing(self.sequence, &mut self.bytes);
        self.writer.write(&sample).expect("Cyclone accepts a sample when nothing is outstanding");
    }

    /// Notes the time and serves again; false when enough was measured.
    fn handle_return(&mut self, sample: &Sample) -> bool {
        let now = Instant::now();
        assert_eq!(sample.bytes().len(), self.bytes.len(), "the sample came back with another length");
        if sample.sequence != self.sequence {
            return true; // A repeated answer of an earlier round.
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.round_trips.push((now - self.sent).as_nanos() as u64);
        }
        if self.round_trips.len() >= self.count || now >= self.end {
            return false;
        }
        self.sequence += 1;
        self.serve();
        true
    }
}

fn measure(options: &Options) -> Result<(), String> {
    process::pin(options.cpu.first())?;
    let participant = Participant::new(options.domain)?;
    let writer = participant.writer("perf_ping", keep(options), options)?;
    let reader = participant.reader("perf_pong", keep(options), options)?;
    if !process::wait_until(PATIENCE, || writer.matched() > 0 && reader.matched() > 0) {
        return Err("no subscriber within 10 s".to_owned());
    }
    // Matching is one-sided: give the other process time to match us as well.
    std::thread::sleep(Duration::from_millis(300));
    let mut ping = Ping {
        writer,
        bytes: vec![0x5a; options.size],
        sequence: 0,
        sent: Instant::now(),
        round_trips: Vec::with_capacity(1 << 20),
        warm_up: if options.size > 100_000 { 20 } else { WARM_UP },
        end: Instant::now() + Duration::from_secs_f64(options.seconds()),
        count: usize::try_from(options.count()).unwrap_or(usize::MAX),
    };
    let round_trips = match options.wait {
        Wait::Block => {
            let wait_set = WaitSet::new(&participant, reader)?;
            ping.serve();
            let mut going = true;
            while going {
                if !wait_set.wait(PATIENCE) {
                    return Err(format!("no answer to sample {} within 10 s", ping.sequence));
                }
                reader.take(|sample| going = going && ping.handle_return(sample));
            }
            ping.round_trips
        }
        Wait::Listener => play_in_listener(ping, reader, Duration::from_secs_f64(options.seconds()) + PATIENCE)?,
    };
    let figures = Latency::new(options.size, round_trips);
    if options.json {
        println!("{}", serde_json::to_string(&figures).map_err(|error| error.to_string())?);
    } else {
        println!(
            "{} B: {} round trips, min {:.1} p50 {:.1} p90 {:.1} p99 {:.1} p99.9 {:.1} max {:.1} µs",
            figures.size,
            figures.samples,
            figures.min_us,
            figures.p50_us,
            figures.p90_us,
            figures.p99_us,
            figures.p999_us,
            figures.max_us
        );
    }
    Ok(())
}

/// Plays the game in the reader's callback and returns its round trips when it is over.
fn play_in_listener(ping: Ping, reader: Reader, patience: Duration) -> Result<Vec<u64>, String> {
    let shared = Arc::new((Mutex::new((ping, true)), Condvar::new()));
    let in_listener = Arc::clone(&shared);
    reader.listen(Box::new(move |reader| {
        let (state, over) = &*in_listener;
        let mut state = state.lock().expect("no holder panics");
        let (ping, going) = &mut *state;
        reader.take(|sample| *going = *going && ping.handle_return(sample));
        if !*going {
            over.notify_one();
        }
    }));
    let (state, over) = &*shared;
    let mut guard = state.lock().expect("no holder panics");
    guard.0.serve();
    let (mut guard, waited) =
        over.wait_timeout_while(guard, patience, |(_, going)| *going).map_err(|error| error.to_string())?;
    if waited.timed_out() {
        return Err(format!("no answer to sample {}", guard.0.sequence));
    }
    Ok(std::mem::take(&mut guard.0.round_trips))
}
