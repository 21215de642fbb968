//! A topic in a hurry beside a bulk transfer, both between the same two processes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use thalweg_lab_station::{
    ArrivalBitmap, ArrivedSample, Keep, Middleware, NumberedSample, ProcessEnd, SampleChannel, SampleReader,
    SampleSink, SampleWriter, wait_until,
};

use crate::error::LabError;
use crate::host::{monotonic_nanos, transmitted_bytes};
use crate::process::{ParentPipe, Stop};
use crate::station::{
    Numbered, Sending, Setup, StationNetwork, Thalweg, ThalwegArrival, ThalwegReader, ThalwegWriter, TokenBucket,
};

/// The order of both processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DuelOrder {
    /// Their network.
    pub(crate) network: StationNetwork,
    /// Time between two samples of the topic in a hurry.
    pub(crate) period: Duration,
    /// When transfers run.
    pub(crate) course: Course,
    /// By what way the bulk samples travel.
    pub(crate) bulk: Sending,
    /// A flow controller to create for them.
    pub(crate) flow_controller: Option<TokenBucket>,
    /// Bulk samples that may wait for acknowledgement.
    pub(crate) bulk_history: u32,
    /// How long a transfer may take.
    pub(crate) patience: Duration,
    /// Samples of one transfer.
    pub(crate) transfer_samples: u64,
    /// Payload bytes of each of them.
    pub(crate) sample_bytes: u64,
}

/// When transfers run beside the topic in a hurry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Course {
    /// In phases of one length; in those that are `true` back to back.
    Phases {
        /// Length of each phase.
        phase: Duration,
        /// Whether transfers run, phase by phase.
        loaded: Vec<bool>,
    },
    /// One after the other, each after a pause.
    Transfers {
        /// Transfers at most.
        count: u64,
        /// Length of each pause.
        pause: Duration,
        /// None begins after so long, but one is always made.
        time_max: Duration,
    },
}

/// What the sending process saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// When the first phase began, on the host's clock.
    pub(crate) origin_ns: u64,
    /// Samples of the topic in a hurry.
    pub(crate) hurried: u64,
    /// Start and end of each transfer, on the host's clock.
    pub(crate) transfers_ns: Vec<(u64, u64)>,
    /// Bytes that left the host during each transfer, headers included; empty where the kernel does not tell.
    pub(crate) transfers_bytes: Vec<u64>,
}

/// What the receiving process saw of the topic in a hurry: when each sample was due and when it arrived.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Received {
    /// (number, due, arrived), on the host's clock.
    pub(crate) samples_ns: NotedSamples,
}

impl DuelOrder {
    fn open(&self, end: &ProcessEnd) -> Result<Thalweg, LabError> {
        let setup = Setup { flow_controller: self.flow_controller.clone(), ..Setup::within(self.network.clone()) };
        Ok(Thalweg::open(&setup, end)?)
    }

    fn bulk_channel(&self) -> SampleChannel {
        SampleChannel { keep: Keep::AllOf(self.bulk_history), ..SampleChannel::reliable(BULK) }
    }
}

fn hurried_channel(topic: &str) -> SampleChannel {
    SampleChannel { keep: Keep::AllOf(HURRIED_HISTORY), ..SampleChannel::reliable(topic) }
}

/// The sending process; reports each phase as progress.
pub(crate) fn send(order: &DuelOrder, link: &ParentPipe) -> Result<Sent, LabError> {
    let station = order.open(&ProcessEnd::PUBLISHER)?;
    let in_a_hurry = Sending { priority: HURRIED_PRIORITY, ..Sending::default() };
    let mut hurried = station.writer_by(&hurried_channel(HURRIED), &in_a_hurry)?;
    let (told, echoes) = channel();
    let mut bulk = Bulk {
        order,
        writer: station.writer_by(&order.bulk_channel(), &order.bulk)?,
        reader: station.reader(&hurried_channel(ECHO), Echoes(told))?,
        echoes,
        sample: Numbered { number: 0, payload: vec![0x5a; order.sample_bytes as usize] },
        link,
        bytes: Vec::new(),
    };
    let all = || hurried.matched() > 0 && bulk.writer.matched() > 0 && bulk.reader.matched() > 0;
    if !wait_until(PATIENCE, link.stop(), all)? {
        return Err(LabError::Here(format!("the receiver was not found within {} s", PATIENCE.as_secs())));
    }
    bulk.meet()?;
    bulk.transfer()?;
    let origin_ns = monotonic_nanos() + START_DELAY.as_nanos() as u64;
    let over = Stop::default();
    let (hurried_count, transfers_ns) = std::thread::scope(|scope| {
        let hurrying = scope.spawn(|| hurry(order, &mut hurried, origin_ns, &over));
        let transferred = bulk.run(origin_ns);
        if transferred.is_err() || matches!(order.course, Course::Transfers { .. }) {
            over.request();
        }
        let hurried = hurrying.join().map_err(|_| LabError::Here("the thread of the small topic failed".to_owned()))?;
        Ok::<_, LabError>((hurried?, transferred?))
    })?;
    hurried.wait_for_acknowledgements(PATIENCE)?;
    say(&mut bulk.writer, FAREWELL)?;
    bulk.writer.wait_for_acknowledgements(PATIENCE)?;
    Ok(Sent { origin_ns, hurried: hurried_count, transfers_ns, transfers_bytes: bulk.bytes })
}

/// The receiving process.
pub(crate) fn receive(order: &DuelOrder, link: &ParentPipe) -> Result<Received, LabError> {
    let station = order.open(&ProcessEnd::subscriber())?;
    let (samples_ns, ended) = (Arc::default(), Arc::default());
    let noting = station.reader(&hurried_channel(HURRIED), Note { samples_ns: Arc::clone(&samples_ns) })?;
    let echo = station.writer(&hurried_channel(ECHO))?;
    let (samples, bytes) = (order.transfer_samples, order.sample_bytes);
    let drain = Drain { samples, bytes, echo, next: 0, ended: Arc::clone(&ended) };
    let draining = station.reader(&order.bulk_channel(), drain)?;
    let outcome = loop {
        if link.stop().is_requested() {
            return Err(LabError::Interrupted);
        }
        let ended: Option<Result<(), LabError>> = ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ended {
            Some(outcome) => break outcome,
            None => std::thread::sleep(LOOK_PERIOD),
        }
    };
    outcome?;
    drop((draining, noting));
    let samples_ns = std::mem::take(&mut *samples_ns.lock().unwrap_or_else(PoisonError::into_inner));
    Received::of(samples_ns)
}

/// Sends the small samples at their times, as long as the phases last; returns how many.
fn hurry(
    order: &DuelOrder,
    hurried: &mut ThalwegWriter<Numbered>,
    origin_ns: u64,
    over: &Stop,
) -> Result<u64, LabError> {
    let period = order.period.as_nanos() as u64;
    let total = match &order.course {
        Course::Phases { phase, loaded } => phase.as_nanos() as u64 * loaded.len() as u64,
        Course::Transfers { .. } => u64::MAX,
    };
    let mut sample = Numbered { number: 0, payload: vec![0; HURRIED_BYTES] };
    while sample.number * period < total && !over.is_requested() {
        let due = origin_ns + sample.number * period;
        wait_for(due);
        sample.payload[..8].copy_from_slice(&due.to_le_bytes());
        hurried.write(&sample).map_err(write_error)?;
        sample.number += 1;
    }
    Ok(sample.number)
}

fn write_error(error: thalweg_lab_station::WriteError) -> LabError {
    LabError::from(thalweg_lab_station::Fault::from(error))
}

/// Writes a sample without content.
fn say(writer: &mut ThalwegWriter<Numbered>, number: u64) -> Result<(), LabError> {
    let mut signal = Numbered::of(Vec::new());
    signal.set_number(number);
    writer.write(&signal).map_err(write_error)?;
    Ok(writer.flush()?)
}

/// Sleeps until shortly before `due` and watches the clock for the rest: a timer's own lateness is no latency of the topic.
fn wait_for(due: u64) {
    std::thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic_nanos() + TIMER_LATENESS_NANOS)));
    while monotonic_nanos() < due {
        std::hint::spin_loop();
    }
}

/// The sending side of the transfers.
struct Bulk<'a> {
    order: &'a DuelOrder,
    writer: ThalwegWriter<Numbered>,
    reader: ThalwegReader<Numbered>,
    echoes: Receiver<u64>,
    sample: Numbered,
    link: &'a ParentPipe,
    bytes: Vec<u64>,
}

impl Bulk<'_> {
    /// Greets until the receiver answers: from then on every sample is for it.
    fn meet(&mut self) -> Result<(), LabError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            say(&mut self.writer, GREETING)?;
            if self.hear(GREETING, GREETING_PERIOD)? {
                return Ok(());
            }
        }
        Err(LabError::Here("the receiver was found but does not answer".to_owned()))
    }

    /// Makes the transfers of the course from `origin_ns` on; returns when each began and ended.
    fn run(&mut self, origin_ns: u64) -> Result<Vec<(u64, u64)>, LabError> {
        match self.order.course.clone() {
            Course::Phases { phase, loaded } => self.phases(origin_ns, phase, &loaded),
            Course::Transfers { count, pause, time_max } => self.transfers(origin_ns, count, pause, time_max),
        }
    }

    /// Goes through the phases: transfers back to back in the loaded ones, sleep in the others.
    fn phases(&mut self, origin_ns: u64, phase: Duration, loaded: &[bool]) -> Result<Vec<(u64, u64)>, LabError> {
        let mut transfers = Vec::new();
        let mut end = origin_ns;
        self.sleep_until(end)?;
        for (index, loaded) in loaded.iter().enumerate() {
            end += phase.as_nanos() as u64;
            while *loaded && monotonic_nanos() < end {
                transfers.push(self.timed_transfer()?);
            }
            self.sleep_until(end)?;
            self.link.progress(&index)?;
        }
        Ok(transfers)
    }

    /// Makes single transfers with a pause before each and after the last.
    fn transfers(
        &mut self,
        origin_ns: u64,
        count: u64,
        pause: Duration,
        time_max: Duration,
    ) -> Result<Vec<(u64, u64)>, LabError> {
        let mut transfers = Vec::new();
        let end = origin_ns + time_max.as_nanos() as u64;
        let mut next = origin_ns + pause.as_nanos() as u64;
        while (transfers.len() as u64) < count && (transfers.is_empty() || monotonic_nanos() < end) {
            self.sleep_until(next)?;
            transfers.push(self.timed_transfer()?);
            self.link.progress(&transfers.len())?;
            next = monotonic_nanos() + pause.as_nanos() as u64;
        }
        self.sleep_until(next)?;
        Ok(transfers)
    }

    /// One transfer; returns when it began and ended, and notes the bytes that left meanwhile.
    fn timed_transfer(&mut self) -> Result<(u64, u64), LabError> {
        let (before, from) = (transmitted_bytes(), monotonic_nanos());
        self.transfer()?;
        let (after, to) = (transmitted_bytes(), monotonic_nanos());
        self.bytes.extend(before.zip(after).map(|(before, after)| after.saturating_sub(before)));
        Ok((from, to))
    }

    /// One transfer, up to the echo of its last sample.
    fn transfer(&mut self) -> Result<(), LabError> {
        for number in 0..self.order.transfer_samples {
            if number.is_multiple_of(64) && self.link.stop().is_requested() {
                return Err(LabError::Interrupted);
            }
            self.sample.number = number;
            self.writer.write(&self.sample).map_err(write_error)?;
        }
        self.writer.flush()?;
        let patience = self.order.patience;
        if self.hear(self.sample.number, patience)? {
            return Ok(());
        }
        Err(LabError::Here(format!("a transfer was not answered within {} s", patience.as_secs())))
    }

    /// Whether the echo `expected` comes within `patience`; echoes of greetings that were answered late are skipped.
    fn hear(&self, expected: u64, patience: Duration) -> Result<bool, LabError> {
        let deadline = Instant::now() + patience;
        loop {
            if self.link.stop().is_requested() {
                return Err(LabError::Interrupted);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.echoes.recv_timeout(left.min(LOOK_PERIOD)) {
                Ok(number) if number == expected => return Ok(true),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => return Err(LabError::Interrupted),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn sleep_until(&self, end: u64) -> Result<(), LabError> {
        while monotonic_nanos() < end {
            if self.link.stop().is_requested() {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(
                Duration::from_nanos(end.saturating_sub(monotonic_nanos())).min(Duration::from_millis(50)),
            );
        }
        Ok(())
    }
}

/// Hands on the numbers of echoes.
struct Echoes(Sender<u64>);

impl SampleSink<Thalweg> for Echoes {
    fn take(&mut self, arrival: ThalwegArrival<'_, Numbered>) {
        // Nobody listens any more at the end.
        let _ = self.0.send(arrival.number());
    }
}

/// (number, due, arrived) of each small sample.
type NotedSamples = Vec<(u64, u64, u64)>;

/// Notes when each small sample was due and arrived.
struct Note {
    samples_ns: Arc<Mutex<NotedSamples>>,
}

impl SampleSink<Thalweg> for Note {
    fn take(&mut self, arrival: ThalwegArrival<'_, Numbered>) {
        let now = monotonic_nanos();
        let noted = (arrival.number(), arrival.time_ns().unwrap_or_default(), now);
        self.samples_ns.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }
}

impl Received {
    fn of(samples_ns: NotedSamples) -> Result<Received, LabError> {
        let mut arrivals = ArrivalBitmap::default();
        samples_ns.iter().for_each(|(number, ..)| arrivals.note(*number));
        match arrivals.duplicates() + arrivals.out_of_order() {
            0 => Ok(Received { samples_ns }),
            faults => Err(LabError::Here(format!("{faults} samples of the small topic arrived twice or out of order"))),
        }
    }
}

/// Checks the bulk samples' order and length and answers the last of each transfer.
struct Drain {
    samples: u64,
    bytes: u64,
    echo: ThalwegWriter<Numbered>,
    next: u64,
    /// How it ended.
    ended: Arc<Mutex<Option<Result<(), LabError>>>>,
}

impl Drain {
    /// Whether this was the farewell.
    fn handle(&mut self, number: u64, bytes: &[u8]) -> Result<bool, LabError> {
        match number {
            FAREWELL => return Ok(true),
            GREETING => return say(&mut self.echo, GREETING).map(|()| false),
            number if number != self.next => {
                let next = self.next;
                return Err(LabError::Here(format!("sample {number} of a transfer arrived where {next} was expected")));
            }
            _ => {}
        }
        if bytes.len() as u64 != self.bytes {
            return Err(LabError::Here(format!("sample {} of a transfer has a wrong length", self.next)));
        }
        self.next += 1;
        if self.next == self.samples {
            self.next = 0;
            say(&mut self.echo, number)?;
        }
        Ok(false)
    }
}

impl SampleSink<Thalweg> for Drain {
    fn take(&mut self, arrival: ThalwegArrival<'_, Numbered>) {
        let outcome = match self.handle(arrival.number(), arrival.bytes()) {
            Ok(false) => return,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
    }
}

const HURRIED: &str = "thalweg_lab_hurried";
const BULK: &str = "thalweg_lab_bulk";
const ECHO: &str = "thalweg_lab_bulk_echo";
/// Expedited forwarding (RFC 3246).
const HURRIED_PRIORITY: i32 = 46;
const HURRIED_HISTORY: u32 = 1_000;
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// A small sample: when it was due, and filler up to the size of a pose with its covariance.
const HURRIED_BYTES: usize = 256;
const GREETING: u64 = u64::MAX;
const FAREWELL: u64 = u64::MAX - 1;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);
/// How late Linux wakes a sleeper on an idle machine: 50 µs of timer slack and the way out of a sleep state.
const TIMER_LATENESS_NANOS: u64 = 200_000;
const START_DELAY: Duration = Duration::from_millis(200);
