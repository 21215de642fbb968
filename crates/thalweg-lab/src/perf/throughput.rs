//! One way: one end writes as fast as it may, the other counts what arrives.
//!
//! Beside the measured topic runs a conversation on two reliable topics: greeting, end of the stream, what each end saw. So both ends
//! have the whole result, wherever they run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::arrivals::Arrivals;
use super::figures::{Cost, ReaderEnd, ThroughputFigures, WriterEnd};
use super::options::{ANSWER_PATIENCE, Limit, PEER_PATIENCE, PerfOptions, Reliability};
use crate::error::LabError;
use crate::host::{cpu_time, monotonic_nanos};
use crate::process::Stop;
use crate::station::{Arrival, Delivery, Ended, Flow, Handler, Numbered, Receiver, Sender, Station, Wait, wait_until};

/// The writing end: returns what both ends saw when the limit is reached and the reader has told its part.
///
/// # Errors
/// Nobody reads, a write finds no room, reliable samples got lost, or `stop` was requested.
pub fn write(options: &PerfOptions, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    let station = options.open(options.writer_cpu)?;
    let talk = Talk { sender: station.sender(TO_READER, TALK)?, receiver: station.receiver(TO_WRITER, TALK)? };
    let data = station.sender(DATA, options.delivery())?;
    if !wait_until(PEER_PATIENCE, stop, || data.matched() > 0 && talk.is_matched())? {
        let patience = PEER_PATIENCE.as_secs();
        return Err(LabError::Here(format!(
            "no other end appeared within {patience} s; start `thalweg perf throughput --role sub` with the same options"
        )));
    }
    talk.greet(stop)?;
    let mut sample = options.sample()?;
    warm_up(options, &data, &mut sample, stop)?;
    let writer = stream(options, &station, &data, &mut sample, stop)?;
    settle(options, &data)?;
    talk.say(&Word::End(writer))?;
    let reader = talk.hear(ANSWER_PATIENCE, stop, |word| match word {
        Word::Result(end) => Some(end),
        _ => None,
    })?;
    judge(options, &writer, &reader)?;
    Ok(ThroughputFigures::of(options.size, &writer, &reader))
}

/// The reading end: serves one writer and returns what both ends saw.
///
/// # Errors
/// Nobody writes, the writer leaves before it is done, reliable samples got lost, or `stop` was requested.
pub fn read(options: &PerfOptions, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    let station = Arc::new(options.open(options.reader_cpu)?);
    let data = station.receiver(DATA, options.delivery())?;
    let talk = Talk { sender: station.sender(TO_WRITER, TALK)?, receiver: station.receiver(TO_READER, TALK)? };
    if !wait_until(PEER_PATIENCE, stop, || data.matched() > 0 && talk.is_matched())? {
        return Err(LabError::Here(format!("no other end appeared within {} s", PEER_PATIENCE.as_secs())));
    }
    let shared = Arc::new(Shared::default());
    let count = Count {
        options: options.clone(),
        station: Arc::clone(&station),
        shared: Arc::clone(&shared),
        state: State::default(),
    };
    let (sender, count) = std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let listen = Listen { sender: talk.sender, shared: Arc::clone(&shared) };
            let over = || stop.is_requested() || shared.end().is_some() || talk.receiver.matched() == 0;
            talk.receiver.run(Wait::Block, Duration::MAX, &over, listen).map(|(listen, _)| listen.sender)
        });
        let progress = Progress::default();
        let over = || {
            stop.is_requested() || listening.is_finished() && shared.end().is_none() || progress.is_complete(&shared)
        };
        let counted = data.run(options.wait, Duration::MAX, &over, count).map(|(count, _)| count);
        let sender =
            listening.join().map_err(|_| LabError::Here("the thread that hears the writer failed".to_owned()))?;
        Ok::<_, LabError>((sender?, counted?))
    })?;
    if stop.is_requested() {
        return Err(LabError::Interrupted);
    }
    let Some(writer) = shared.end() else {
        return Err(LabError::Here("the writer left before it told how many samples it sent".to_owned()));
    };
    let reader = count.finish();
    say(&sender, &Word::Result(reader))?;
    sender.wait_for_acknowledgements(ANSWER_PATIENCE)?;
    judge(options, &writer, &reader)?;
    Ok(ThroughputFigures::of(options.size, &writer, &reader))
}

/// Unmeasured samples first: round-trip estimates, windows and caches settle.
fn warm_up(options: &PerfOptions, data: &Sender, sample: &mut Numbered, stop: &Stop) -> Result<(), LabError> {
    let end = Instant::now() + WARM_UP_TIME;
    for number in 0..WARM_UP_MAX {
        if stop.is_requested() {
            return Err(LabError::Interrupted);
        }
        if Instant::now() >= end {
            break;
        }
        sample.number = WARM_UP_FIRST + number;
        data.send(sample)?;
    }
    settle(options, data)
}

/// The measured samples: numbered from 0, as many as the limit allows.
fn stream(
    options: &PerfOptions,
    station: &Station,
    data: &Sender,
    sample: &mut Numbered,
    stop: &Stop,
) -> Result<WriterEnd, LabError> {
    let meter = Meter::start(station);
    let (count, end) = match options.limit {
        Limit::Samples(count) => (count, None),
        Limit::Time(duration) => (WARM_UP_FIRST, Some(Instant::now() + duration)),
    };
    let mut sent = 0;
    while sent < count {
        // Large samples are rare enough to look every time.
        if (sent.is_multiple_of(64) || options.size > 8_192)
            && (stop.is_requested() || end.is_some_and(|end| Instant::now() >= end))
        {
            break;
        }
        sample.number = sent;
        data.send(sample)?;
        sent += 1;
    }
    if stop.is_requested() {
        return Err(LabError::Interrupted);
    }
    Ok(WriterEnd { sent, cost: meter.stop(station) })
}

/// Waits until everything written has arrived, or where nobody acknowledges until it must have.
fn settle(options: &PerfOptions, data: &Sender) -> Result<(), LabError> {
    match options.reliability {
        Reliability::BestEffort => std::thread::sleep(Duration::from_millis(200)),
        Reliability::Reliable if data.wait_for_acknowledgements(PEER_PATIENCE)? => {}
        Reliability::Reliable => {
            let patience = PEER_PATIENCE.as_secs();
            return Err(LabError::Here(format!(
                "the reader owes acknowledgements for {patience} s; it hangs or lost its network"
            )));
        }
    }
    Ok(())
}

/// An error when reliable samples did not all arrive once and in order.
fn judge(options: &PerfOptions, writer: &WriterEnd, reader: &ReaderEnd) -> Result<(), LabError> {
    let faults = writer.sent.abs_diff(reader.received) + reader.duplicates + reader.out_of_order;
    if options.reliability == Reliability::BestEffort || faults == 0 {
        return Ok(());
    }
    Err(LabError::Here(format!(
        "reliable delivery failed: {} samples sent, {} received, {} twice, {} out of order; please report this",
        writer.sent, reader.received, reader.duplicates, reader.out_of_order
    )))
}

/// What the ends tell each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Word {
    /// Asks whether the other end is ready, and answers that it is.
    Greeting,
    /// The stream is over, and everything in it was acknowledged.
    End(WriterEnd),
    /// What the reader saw.
    Result(ReaderEnd),
}

/// The writer's side of the conversation.
struct Talk {
    sender: Sender,
    receiver: Receiver,
}

impl Talk {
    fn is_matched(&self) -> bool {
        self.sender.matched() > 0 && self.receiver.matched() > 0
    }

    /// Greets until a greeting comes back.
    fn greet(&self, stop: &Stop) -> Result<(), LabError> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        while Instant::now() < deadline {
            self.say(&Word::Greeting)?;
            let heard = self.receiver.run(Wait::Block, GREETING_PERIOD, &|| stop.is_requested(), Hear(None))?;
            match heard {
                (Hear(Some(_)), _) => return Ok(()),
                (_, Ended::Over) => return Err(LabError::Interrupted),
                _ => {}
            }
        }
        Err(LabError::Here(format!("the other end matched but did not answer within {} s", ANSWER_PATIENCE.as_secs())))
    }

    fn say(&self, word: &Word) -> Result<(), LabError> {
        say(&self.sender, word)
    }

    /// Waits for the word that `wanted` picks; skips others.
    fn hear<T>(&self, patience: Duration, stop: &Stop, wanted: impl Fn(Word) -> Option<T>) -> Result<T, LabError> {
        loop {
            match self.receiver.run(Wait::Block, patience, &|| stop.is_requested(), Hear(None))? {
                (Hear(Some(word)), _) => {
                    if let Some(found) = wanted(word) {
                        return Ok(found);
                    }
                }
                (_, Ended::Over) => return Err(LabError::Interrupted),
                _ => {
                    return Err(LabError::Here(format!(
                        "the other end did not report within {} s",
                        patience.as_secs()
                    )));
                }
            }
        }
    }
}

fn say(sender: &Sender, word: &Word) -> Result<(), LabError> {
    sender.send(&Numbered { number: 0, payload: serde_json::to_vec(word).map_err(LabError::here)? })
}

/// Keeps the first word that arrives.
struct Hear(Option<Word>);

impl Handler for Hear {
    fn handle(&mut self, arrival: Arrival<'_>) -> Result<Flow, LabError> {
        self.0 = Some(serde_json::from_slice(arrival.payload).map_err(LabError::here)?);
        Ok(Flow::Enough)
    }
}

/// The reader's side of the conversation: answers greetings, notes the end.
struct Listen {
    sender: Sender,
    shared: Arc<Shared>,
}

impl Handler for Listen {
    fn handle(&mut self, arrival: Arrival<'_>) -> Result<Flow, LabError> {
        match serde_json::from_slice(arrival.payload).map_err(LabError::here)? {
            Word::Greeting => say(&self.sender, &Word::Greeting)?,
            Word::End(end) => {
                *self.shared.lock() = Some(end);
                return Ok(Flow::Enough);
            }
            Word::Result(_) => {}
        }
        Ok(Flow::Continue)
    }
}

/// What the reader's threads know in common.
#[derive(Default)]
struct Shared {
    received: AtomicU64,
    end: Mutex<Option<WriterEnd>>,
}

impl Shared {
    fn end(&self) -> Option<WriterEnd> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<WriterEnd>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the stream is over: all of it arrived, or nothing came for a while after its end was told.
struct Progress(Mutex<(u64, Instant)>);

impl Default for Progress {
    fn default() -> Progress {
        Progress(Mutex::new((0, Instant::now())))
    }
}

impl Progress {
    fn is_complete(&self, shared: &Shared) -> bool {
        let received = shared.received.load(Ordering::Relaxed);
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != received {
            *last = (received, Instant::now());
        }
        shared.end().is_some_and(|end| received >= end.sent || last.1.elapsed() > TAIL_PATIENCE)
    }
}

/// Counts the measured samples.
struct Count {
    options: PerfOptions,
    station: Arc<Station>,
    shared: Arc<Shared>,
    state: State,
}

#[derive(Default)]
struct State {
    arrivals: Arrivals,
    first_ns: u64,
    last_ns: u64,
    meter: Option<Meter>,
}

impl Count {
    fn finish(self) -> ReaderEnd {
        let State { arrivals, first_ns, last_ns, meter } = self.state;
        ReaderEnd {
            received: arrivals.received(),
            duplicates: arrivals.duplicates(),
            out_of_order: arrivals.out_of_order(),
            span_ns: last_ns - first_ns,
            cost: meter.map(|meter| meter.stop(&self.station)).unwrap_or_default(),
        }
    }
}

impl Handler for Count {
    fn handle(&mut self, arrival: Arrival<'_>) -> Result<Flow, LabError> {
        if arrival.number >= WARM_UP_FIRST {
            return Ok(Flow::Continue);
        }
        self.options.check(arrival.payload)?;
        let now = monotonic_nanos();
        if self.state.meter.is_none() {
            self.state.meter = Some(Meter::start(&self.station));
            self.state.first_ns = now;
        }
        self.state.last_ns = now;
        self.state.arrivals.note(arrival.number);
        self.shared.received.store(self.state.arrivals.received(), Ordering::Relaxed);
        Ok(Flow::Continue)
    }
}

/// CPU time and system calls from one moment to another.
struct Meter {
    cpu: Duration,
    syscalls: u64,
}

impl Meter {
    fn start(station: &Station) -> Meter {
        Meter { cpu: cpu_time(), syscalls: station.syscalls() }
    }

    fn stop(self, station: &Station) -> Cost {
        let cpu = cpu_time().saturating_sub(self.cpu);
        Cost { cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX), syscalls: station.syscalls() - self.syscalls }
    }
}

const DATA: &str = "thalweg_perf_data";
const TO_READER: &str = "thalweg_perf_to_reader";
const TO_WRITER: &str = "thalweg_perf_to_writer";
const TALK: Delivery = Delivery::Reliable { max_samples: 1_000 };
/// Numbers from here on belong to the warm-up.
const WARM_UP_FIRST: u64 = 1 << 40;
const WARM_UP_TIME: Duration = Duration::from_millis(300);
const WARM_UP_MAX: u64 = 20_000;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
/// After the writer told the end, nothing more is expected when nothing came for so long.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);
