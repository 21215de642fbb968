//! One way: one end writes as fast as it may, the others count what arrives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ArrivalBitmap;
use super::conversation::{Talk, Word, say, word};
use super::figures::{Cost, ReaderEnd, ThroughputFigures, WriterEnd};
use super::options::{ANSWER_PATIENCE, Limit, PEER_PATIENCE, PerfOptions};
use crate::error::LabError;
use crate::host::{cpu_time, monotonic_nanos};
use crate::process::Stop;
use crate::scenario::ReliabilitySetting;
use crate::station::{ArrivalHandler, ArrivedSample, Flow, Numbered, SampleSender, Station, Wait, wait_until};

/// The writing end: returns what all ends saw when the limit is reached and the readers have told their part.
///
/// # Errors
/// Too few read, a write finds no room, reliable samples got lost, or `stop` was requested.
pub fn write(options: &PerfOptions, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    let station = options.open(options.writer_cpu)?;
    let talk = Talk::of_writer(&station)?;
    let data = station.sender_by(DATA, options.delivery(), &options.sending)?;
    let readers = options.readers;
    if !wait_until(PEER_PATIENCE, stop, || data.matched() >= readers && talk.is_matched(readers))? {
        let (patience, there) = (PEER_PATIENCE.as_secs(), data.matched());
        let how = "start `thalweg perf throughput --role sub` with the same options";
        return Err(LabError::Here(match readers {
            1 => format!("no other end appeared within {patience} s; {how}"),
            _ => format!("{there} of {readers} readers appeared within {patience} s; {how}, once for each reader"),
        }));
    }
    talk.greet(readers, stop)?;
    let mut sample = options.sample()?;
    warm_up(options, &data, &mut sample, stop)?;
    let writer = stream(options, &station, &data, &mut sample, stop)?;
    settle(options, &data)?;
    talk.say(&Word::End(writer.clone()))?;
    let ends = talk.results(readers, stop)?;
    talk.say(&Word::Results(ends.clone()))?;
    talk.sender.wait_for_acknowledgements(ANSWER_PATIENCE)?;
    ends.iter().try_for_each(|end| judge(options, &writer, end))?;
    Ok(ThroughputFigures::of(options.size, &writer, &ends))
}

/// A reading end: serves one writer and returns what all ends saw.
///
/// # Errors
/// No writer appears, the writer leaves before it is done, reliable samples got lost, or `stop` was requested.
pub fn read(options: &PerfOptions, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    let station = Arc::new(options.open(options.reader_cpus.first().copied())?);
    let data = station.receiver(DATA, options.delivery())?;
    let talk = Talk::of_reader(&station)?;
    if !wait_until(PEER_PATIENCE, stop, || data.matched() > 0 && talk.is_matched(1))? {
        return Err(LabError::Here(format!("no other end appeared within {} s", PEER_PATIENCE.as_secs())));
    }
    let me = monotonic_nanos() ^ u64::from(std::process::id()) << 40;
    let shared = Arc::new(Shared::default());
    let count = Count {
        station: Arc::clone(&station),
        shared: Arc::clone(&shared),
        state: State { arrivals: ArrivalBitmap::with_room_for(options.samples_expected()), ..State::default() },
        options: options.clone(),
    };
    let (sender, count) = std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let listen = Listen { me, sender: talk.sender, shared: Arc::clone(&shared) };
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
    let end = count.finish();
    let talk = Talk { sender, receiver: talk.receiver };
    talk.say(&Word::Result(me, end))?;
    judge(options, &writer, &end)?;
    // The writer answers when the slowest reader has told its part.
    let ends = talk.hear(PEER_PATIENCE, stop, |word| match word {
        Word::Results(ends) => Some(ends),
        _ => None,
    })?;
    talk.sender.wait_for_acknowledgements(ANSWER_PATIENCE)?;
    Ok(ThroughputFigures::of(options.size, &writer, &ends))
}

/// Unmeasured samples first: round-trip estimates, windows and caches settle.
fn warm_up(options: &PerfOptions, data: &SampleSender, sample: &mut Numbered, stop: &Stop) -> Result<(), LabError> {
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
    data: &SampleSender,
    sample: &mut Numbered,
    stop: &Stop,
) -> Result<WriterEnd, LabError> {
    let meter = Meter::start(station);
    let first_ns = monotonic_nanos();
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
    let span_ns = monotonic_nanos() - first_ns;
    Ok(WriterEnd { method: data.method(), destination: data.destination(), sent, span_ns, cost: meter.stop(station) })
}

/// Waits until everything written has arrived, or where nobody acknowledges until it must have.
fn settle(options: &PerfOptions, data: &SampleSender) -> Result<(), LabError> {
    match options.reliability {
        ReliabilitySetting::BestEffort => std::thread::sleep(Duration::from_millis(200)),
        ReliabilitySetting::Reliable if data.wait_for_acknowledgements(PEER_PATIENCE)? => {}
        ReliabilitySetting::Reliable => {
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
    if options.reliability == ReliabilitySetting::BestEffort || faults == 0 {
        return Ok(());
    }
    Err(LabError::Here(format!(
        "reliable delivery failed: {} samples sent, {} received, {} twice, {} out of order; please report this",
        writer.sent, reader.received, reader.duplicates, reader.out_of_order
    )))
}

/// The reader's side of the conversation: answers greetings, notes the end.
struct Listen {
    me: u64,
    sender: SampleSender,
    shared: Arc<Shared>,
}

impl ArrivalHandler for Listen {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        match word(&arrival)? {
            Word::Greeting => say(&self.sender, &Word::Ready(self.me))?,
            Word::End(end) => {
                *self.shared.lock() = Some(end);
                return Ok(Flow::Enough);
            }
            Word::Ready(_) | Word::Result(..) | Word::Results(_) => {}
        }
        Ok(Flow::Continue)
    }
}

/// State shared by the reader's threads.
#[derive(Default)]
struct Shared {
    received: AtomicU64,
    end: Mutex<Option<WriterEnd>>,
}

impl Shared {
    fn end(&self) -> Option<WriterEnd> {
        self.lock().clone()
    }

    /// Samples that the writer told it sent, once it did.
    fn sent(&self) -> Option<u64> {
        self.lock().as_ref().map(|end| end.sent)
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
        shared.sent().is_some_and(|sent| received >= sent || last.1.elapsed() > TAIL_PATIENCE)
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
    arrivals: ArrivalBitmap,
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
            span_ns: last_ns.saturating_sub(first_ns),
            cost: meter.map(|meter| meter.stop(&self.station)).unwrap_or_default(),
        }
    }
}

impl ArrivalHandler for Count {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        if arrival.number >= WARM_UP_FIRST {
            return Ok(Flow::Continue);
        }
        self.options.check(arrival.payload)?;
        if self.state.meter.is_none() {
            self.state.meter = Some(Meter::start(&self.station));
            self.state.first_ns = monotonic_nanos();
        }
        self.state.arrivals.note(arrival.number);
        Ok(Flow::Continue)
    }

    fn handled_some(&mut self) {
        // Late samples of the warm-up alone start no clock.
        if self.state.meter.is_some() {
            self.state.last_ns = monotonic_nanos();
            self.shared.received.store(self.state.arrivals.received(), Ordering::Relaxed);
        }
    }
}

/// CPU time, system calls and datagrams from one moment to another.
struct Meter {
    cpu: Duration,
    syscalls: u64,
    datagrams: u64,
}

impl Meter {
    fn start(station: &Station) -> Meter {
        Meter { cpu: cpu_time(), syscalls: station.syscalls(), datagrams: station.datagrams_received() }
    }

    fn stop(self, station: &Station) -> Cost {
        let cpu = cpu_time().saturating_sub(self.cpu);
        Cost {
            cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
            syscalls: station.syscalls() - self.syscalls,
            datagrams: station.datagrams_received() - self.datagrams,
        }
    }
}

const DATA: &str = "thalweg_perf_data";
/// Numbers from here on belong to the warm-up.
const WARM_UP_FIRST: u64 = 1 << 40;
const WARM_UP_TIME: Duration = Duration::from_millis(300);
const WARM_UP_MAX: u64 = 20_000;
/// After the writer told the end, nothing more is expected when nothing came for so long.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);
