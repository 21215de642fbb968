//! One way: one end writes as fast as it may, the others count what arrives.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thalweg_host::{cpu_time, monotonic_nanos};

use crate::arrivals::ArrivalBitmap;
use crate::channel::ProcessEnd;
use crate::conversation::{Sentence, StreamPoint, Talk};
use crate::fault::Fault;
use crate::link::{Stop, lock};
use crate::middleware::{ArrivedSample, Middleware, NumberedSample, SampleSink, SampleWriter, TransportCounts};
use crate::order::ReliabilitySetting;
use crate::perf_options::{Limit, PEER_PATIENCE, PerfOptions, check_size};
use crate::station::wait_until;
use crate::stream_figures::{Cost, ReaderEnd, ThroughputFigures, WriterEnd};

/// What all ends of a stream saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Streamed {
    /// The figures.
    pub figures: ThroughputFigures,
    /// Why a reliable stream was none: samples that did not arrive, or not once and in order.
    pub fault: Option<String>,
}

/// The writing end: returns what all ends saw when the limit is reached and the readers have told their part.
///
/// # Errors
/// Too few read, a write finds no room, or `stop` was requested.
pub fn write_stream<M: Middleware<Sample: NumberedSample>>(
    options: &PerfOptions<M::Setup>,
    stop: &Stop,
) -> Result<Streamed, Fault> {
    let middleware: M = options.open(&ProcessEnd::PUBLISHER)?;
    let mut talk = Talk::of_writer(&middleware, options.readers)?;
    let writer = middleware.writer(&options.channel(DATA))?;
    let readers = options.readers;
    if !wait_until(PEER_PATIENCE, stop, || writer.matched() >= readers && talk.is_matched(readers))? {
        let (patience, there) = (PEER_PATIENCE.as_secs(), writer.matched());
        let how = "start the same measurement with --role sub and the same options";
        return Err(Fault::Here(match readers {
            1 => format!("no other end appeared within {patience} s; {how}"),
            _ => format!("{there} of {readers} readers appeared within {patience} s; {how}, once for each reader"),
        }));
    }
    talk.ask(StreamPoint::Greeting, readers, stop)?;
    let mut stream: Stream<'_, M> = Stream { options, writer, sample: options.sample()?, stop };
    stream.warm_up()?;
    talk.ask(StreamPoint::Begin, readers, stop)?;
    let end = stream.run(&middleware)?;
    talk.say(&Sentence::End(end.clone()))?;
    let ends = talk.results(readers, stop)?;
    talk.say(&Sentence::Results(ends.clone()))?;
    talk.settle()?;
    Ok(options.streamed(M::work(&options.setup), &end, &ends))
}

/// A reading end: serves one writer and returns what all ends saw.
///
/// # Errors
/// No writer appears, the writer leaves before it is done, or `stop` was requested.
pub fn read_stream<M: Middleware<Sample: NumberedSample>>(
    options: &PerfOptions<M::Setup>,
    stop: &Stop,
) -> Result<Streamed, Fault> {
    let middleware: M = options.open(&ProcessEnd::subscriber())?;
    let tally = Arc::new(StreamTally::default());
    let count = Count {
        size: options.size,
        arrivals: ArrivalBitmap::with_room_for(options.samples_expected()),
        first_ns: None,
        tally: Arc::clone(&tally),
    };
    let reader = middleware.reader(&options.channel(DATA), count)?;
    let mut talk = Talk::of_reader(&middleware, options.reader)?;
    let is_met = || crate::SampleReader::matched(&reader) > 0 && talk.is_matched(1);
    if !wait_until(PEER_PATIENCE, stop, is_met)? {
        return Err(Fault::Here(format!("no other end appeared within {} s", PEER_PATIENCE.as_secs())));
    }
    let me = monotonic_nanos() ^ u64::from(std::process::id()) << 40;
    let (writer, meter) = attend(&middleware, &mut talk, me, stop)?;
    tally.wait_for_rest(writer.sent, stop)?;
    let end = tally.end(meter.map(|meter| meter.stop(&middleware)))?;
    talk.say(&Sentence::Result(me, end))?;
    // The writer answers when the slowest reader has told its part.
    let ends = talk.wait_for(PEER_PATIENCE, stop, |sentence| match sentence {
        Sentence::Results(ends) => Some(ends),
        _ => None,
    })?;
    talk.settle()?;
    Ok(options.streamed(M::work(&options.setup), &writer, &ends))
}

/// Answers the writer until it told the end of its stream.
fn attend<M: Middleware<Sample: NumberedSample>>(
    middleware: &M,
    talk: &mut Talk<M>,
    me: u64,
    stop: &Stop,
) -> Result<(WriterEnd, Option<Meter>), Fault> {
    let mut meter = None;
    loop {
        match talk.hear(LOOK_PERIOD, stop)? {
            Some(Sentence::Ask(point)) => {
                if point == StreamPoint::Begin && meter.is_none() {
                    meter = Some(Meter::start(middleware));
                }
                talk.say(&Sentence::Here(point, me))?;
            }
            Some(Sentence::End(writer)) => return Ok((writer, meter)),
            Some(Sentence::Here(..) | Sentence::Result(..) | Sentence::Results(_)) => {}
            None if talk.writers_matched() == 0 => {
                return Err(Fault::here("the writer left before it told how many samples it sent"));
            }
            None => {}
        }
    }
}

impl<Setup> PerfOptions<Setup> {
    fn streamed(&self, work: crate::Work, writer: &WriterEnd, readers: &[ReaderEnd]) -> Streamed {
        let fault = match self.reliability {
            ReliabilitySetting::BestEffort => None,
            ReliabilitySetting::Reliable => readers.iter().find_map(|reader| reader.fault(writer)),
        };
        Streamed { figures: ThroughputFigures::of(self.size, work, writer, readers), fault }
    }
}

impl ReaderEnd {
    /// Why it did not get each sample of a reliable writer once and in order.
    fn fault(&self, writer: &WriterEnd) -> Option<String> {
        let faults = writer.sent.abs_diff(self.received) + self.duplicates + self.out_of_order;
        (faults > 0).then(|| {
            format!(
                "reliable delivery failed: {} samples sent, {} received, {} twice, {} out of order; please report this",
                writer.sent, self.received, self.duplicates, self.out_of_order
            )
        })
    }
}

/// The writing end's side of a stream.
struct Stream<'a, M: Middleware> {
    options: &'a PerfOptions<M::Setup>,
    writer: M::Writer,
    sample: M::Sample,
    stop: &'a Stop,
}

impl<M: Middleware<Sample: NumberedSample>> Stream<'_, M> {
    /// Unmeasured samples first: round-trip estimates, windows and caches settle.
    fn warm_up(&mut self) -> Result<(), Fault> {
        let end = Instant::now() + WARM_UP_TIME;
        for number in 0..WARM_UP_MAX {
            if self.stop.is_requested() {
                return Err(Fault::Interrupted);
            }
            if Instant::now() >= end {
                break;
            }
            self.sample.set_number(WARM_UP_FIRST + number);
            self.writer.write(&self.sample)?;
        }
        self.settle()
    }

    /// The measured samples: numbered from 0, as many as the limit allows.
    fn run(&mut self, middleware: &M) -> Result<WriterEnd, Fault> {
        let meter = Meter::start(middleware);
        let first_ns = monotonic_nanos();
        let (count, end) = match self.options.limit {
            Limit::Samples(count) => (count, None),
            Limit::Time(duration) => (WARM_UP_FIRST, Some(Instant::now() + duration)),
        };
        let mut sent: u64 = 0;
        while sent < count {
            // Large samples are rare enough to look every time.
            if (sent.is_multiple_of(64) || self.options.size > 8_192)
                && (self.stop.is_requested() || end.is_some_and(|end| Instant::now() >= end))
            {
                break;
            }
            self.sample.set_number(sent);
            self.writer.write(&self.sample)?;
            sent += 1;
        }
        if self.stop.is_requested() {
            return Err(Fault::Interrupted);
        }
        let span_ns = monotonic_nanos() - first_ns;
        let cost = meter.stop(middleware);
        self.sample.set_number(END_MARK);
        self.writer.write(&self.sample)?;
        self.settle()?;
        let (method, destination) = self.writer.way();
        Ok(WriterEnd { method, destination, sent, span_ns, cost })
    }

    /// Waits until everything written has arrived, or where nobody acknowledges until it must have.
    fn settle(&mut self) -> Result<(), Fault> {
        self.writer.flush()?;
        match self.options.reliability {
            ReliabilitySetting::BestEffort => std::thread::sleep(Duration::from_millis(200)),
            ReliabilitySetting::Reliable if self.writer.wait_for_acknowledgements(PEER_PATIENCE)? => {}
            ReliabilitySetting::Reliable => {
                let patience = PEER_PATIENCE.as_secs();
                return Err(Fault::Here(format!(
                    "the reader owes acknowledgements for {patience} s; it hangs or lost its network"
                )));
            }
        }
        Ok(())
    }
}

/// What a reader counted, as its threads share it.
#[derive(Default)]
struct StreamTally(Mutex<Counted>);

#[derive(Clone, Debug, Default)]
struct Counted {
    received: u64,
    duplicates: u64,
    out_of_order: u64,
    span_ns: u64,
    fault: Option<Fault>,
}

impl StreamTally {
    /// Waits until so many samples arrived, or nothing came for a while.
    fn wait_for_rest(&self, sent: u64, stop: &Stop) -> Result<(), Fault> {
        let (mut received, mut heard) = (0, Instant::now());
        loop {
            let counted = lock(&self.0).clone();
            if counted.received != received {
                (received, heard) = (counted.received, Instant::now());
            }
            if received >= sent || counted.fault.is_some() || heard.elapsed() > TAIL_PATIENCE {
                return Ok(());
            }
            if stop.is_requested() {
                return Err(Fault::Interrupted);
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    fn end(&self, cost: Option<Cost>) -> Result<ReaderEnd, Fault> {
        let Counted { received, duplicates, out_of_order, span_ns, fault } = lock(&self.0).clone();
        let end = ReaderEnd { received, duplicates, out_of_order, span_ns, cost: cost.unwrap_or_default() };
        fault.map_or(Ok(end), Err)
    }
}

/// Counts the measured samples.
struct Count {
    size: u64,
    arrivals: ArrivalBitmap,
    first_ns: Option<u64>,
    tally: Arc<StreamTally>,
}

impl<M: Middleware> SampleSink<M> for Count {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let number = arrival.number();
        if number >= WARM_UP_FIRST {
            if number == END_MARK {
                SampleSink::<M>::taken(self);
            }
            return;
        }
        if let Err(fault) = check_size(arrival.bytes(), self.size) {
            lock(&self.tally.0).fault.get_or_insert(fault);
        }
        if self.first_ns.is_none() {
            self.first_ns = Some(monotonic_nanos());
        }
        self.arrivals.note(number);
    }

    fn taken(&mut self) {
        // Late samples of the warm-up alone start no clock.
        let Some(first_ns) = self.first_ns else { return };
        let mut counted = lock(&self.tally.0);
        if counted.received == self.arrivals.received() && counted.span_ns > 0 {
            return;
        }
        counted.span_ns = monotonic_nanos() - first_ns;
        counted.received = self.arrivals.received();
        counted.duplicates = self.arrivals.duplicates();
        counted.out_of_order = self.arrivals.out_of_order();
    }

    fn fail(&mut self, fault: Fault) {
        lock(&self.tally.0).fault = Some(fault);
    }
}

/// CPU time, system calls and datagrams from one moment to another.
struct Meter {
    cpu: Duration,
    counts: Option<TransportCounts>,
}

impl Meter {
    fn start<M: Middleware>(middleware: &M) -> Meter {
        Meter { cpu: cpu_time(), counts: middleware.counts() }
    }

    fn stop<M: Middleware>(self, middleware: &M) -> Cost {
        let cpu = cpu_time().saturating_sub(self.cpu);
        let counts = self.counts.zip(middleware.counts());
        Cost {
            cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
            syscalls: counts.map(|(before, now)| now.syscalls - before.syscalls),
            datagrams: counts.map(|(before, now)| now.datagrams - before.datagrams),
        }
    }
}

/// The topic of the stream.
pub const DATA: &str = "thalweg_perf_data";
/// Numbers from here on belong to the warm-up.
const WARM_UP_FIRST: u64 = 1 << 40;
/// The number after the last sample: not every middleware tells that nothing more is there.
const END_MARK: u64 = u64::MAX;
const WARM_UP_TIME: Duration = Duration::from_millis(300);
const WARM_UP_MAX: u64 = 20_000;
/// After the writer told the end, nothing more is expected when nothing came for so long.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);
const LOOK_PERIOD: Duration = Duration::from_millis(10);
