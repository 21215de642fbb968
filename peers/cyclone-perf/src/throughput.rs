//! One way: the publisher writes as fast as Cyclone lets it, one datagram a sample; the subscriber counts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::cyclone::{Keep, Participant, Sample, WaitSet};
use crate::figures::{Received, Throughput};
use crate::{Options, Role, Wait, process};

/// The number of the sample that ends the measurement; its first eight bytes say how many were sent.
const END: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(options: &Options) -> Result<(), String> {
    match options.role {
        Role::Sub => print(options, &Throughput::new(options.size, &receive(options)?)),
        Role::Pub => send(options).map(drop),
        Role::Both => {
            let subscriber = process::start_subscriber("throughput", options)?;
            let writer_cpu_seconds = send(options)?;
            let output = subscriber.output()?;
            let mut figures: Throughput =
                serde_json::from_str(&output).map_err(|error| format!("{error}: {output}"))?;
            figures.cpu_s_per_million_writer = Some(writer_cpu_seconds * 1e6 / figures.received.max(1) as f64);
            print(options, &figures)
        }
    }
}

fn print(options: &Options, figures: &Throughput) -> Result<(), String> {
    if options.json {
        println!("{}", serde_json::to_string(figures).map_err(|error| error.to_string())?);
    } else {
        println!(
            "{} B: {:.0} samples/s, {:.0} Mbit/s, {} sent, {} received, {} lost",
            figures.size, figures.received_per_s, figures.mbit_per_s, figures.sent, figures.received, figures.lost
        );
    }
    Ok(())
}

/// Writes for the time or count asked for; returns the CPU seconds that took.
fn send(options: &Options) -> Result<f64, String> {
    process::pin(options.cpu.first())?;
    let participant = Participant::new(options.domain)?;
    let writer = participant.writer("perf_throughput", Keep::All, options)?;
    if !process::wait_until(PATIENCE, || writer.matched() > 0) {
        return Err("no subscriber within 10 s".to_owned());
    }
    std::thread::sleep(Duration::from_millis(300));
    let mut bytes = vec![0x5a; options.size];
    let cpu_before = process::cpu_seconds();
    let end = Instant::now() + Duration::from_secs_f64(options.seconds());
    let mut sent = 0;
    while sent < options.count() && (!sent.is_multiple_of(64) || Instant::now() < end) {
        writer.write(&Sample::borrowing(sent, &mut bytes))?;
        sent += 1;
    }
    let cpu = process::cpu_seconds() - cpu_before;
    writer.wait_for_acknowledgements(PATIENCE);
    let mut total = sent.to_le_bytes();
    // Best-effort readers may miss one end mark.
    for _ in 0..if options.best_effort { 20 } else { 1 } {
        writer.write(&Sample::borrowing(END, &mut total))?;
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
    cpu_at_end: f64,
    sent: Option<u64>,
}

impl Count {
    fn add(&mut self, sample: &Sample) {
        if sample.sequence == END {
            if let (None, Some(total)) = (self.sent, sample.bytes().first_chunk::<8>()) {
                self.sent = Some(u64::from_le_bytes(*total));
                self.lost += self.sent.map_or(0, |sent| sent.saturating_sub(self.next));
                self.cpu_at_end = process::cpu_seconds();
            }
            return;
        }
        if self.first.is_none() {
            self.first = Some((Instant::now(), process::cpu_seconds()));
        }
        self.lost += sample.sequence.saturating_sub(self.next);
        self.next = sample.sequence + 1;
        self.received += 1;
    }
}

fn receive(options: &Options) -> Result<Received, String> {
    process::pin(options.cpu.get(1))?;
    let participant = Participant::new(options.domain)?;
    let reader = participant.reader("perf_throughput", Keep::All, options)?;
    let count = Count { next: 0, received: 0, lost: 0, first: None, last: Instant::now(), cpu_at_end: 0.0, sent: None };
    let count = Arc::new(Mutex::new(count));
    let take = {
        let count = Arc::clone(&count);
        move |reader: crate::cyclone::Reader| {
            let mut count = count.lock().expect("no holder panics");
            let before = count.received;
            reader.take(|sample| count.add(sample));
            if count.received > before {
                count.last = Instant::now();
            }
        }
    };
    let state = |read: &dyn Fn(&Count) -> bool| read(&count.lock().expect("no holder panics"));
    let over = |matched_before: bool| state(&|count| count.sent.is_some()) || (matched_before && reader.matched() == 0);
    let mut seen = false;
    let patience = Instant::now() + PATIENCE;
    if options.wait == Wait::Block {
        let wait_set = WaitSet::new(&participant, reader)?;
        while !over(seen) {
            if wait_set.wait(Duration::from_millis(100)) {
                take(reader);
            }
            seen = seen || reader.matched() > 0;
            if !seen && Instant::now() > patience {
                return Err("no publisher within 10 s".to_owned());
            }
        }
    } else {
        reader.listen(Box::new(take));
        if !process::wait_until(PATIENCE, || reader.matched() > 0) {
            return Err("no publisher within 10 s".to_owned());
        }
        while !over(true) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let count = count.lock().expect("no holder panics");
    let (first, cpu_at_first) = count.first.ok_or("nothing arrived")?;
    Ok(Received {
        sent: count.sent.unwrap_or(count.next),
        received: count.received,
        lost: count.lost,
        seconds: (count.last - first).as_secs_f64(),
        cpu_seconds: (count.cpu_at_end - cpu_at_first).max(0.0),
    })
}
