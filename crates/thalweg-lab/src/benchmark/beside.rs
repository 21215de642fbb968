//! A topic in a hurry beside a bulk transfer, both between the same two processes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use thalweg_lab_station::{
    ArrivalBitmap, ArrivedSample, BurstPublisher, BurstRequest, Fault, Keep, Middleware, ProcessEnd, SampleChannel,
    SampleReader, SampleSink, SampleWriter, echo_on, lock, wait_until,
};

use super::cells::RATE_HZ;
use crate::error::LabError;
use crate::host::{HostFiles, Layers, monotonic_nanos};
use crate::process::{Launcher, ParentPipe, ProcessPair, Stop, Supervised};
use crate::station::{Numbered, PackingMethod, Sending, Setup, Thalweg, ThalwegArrival, ThalwegWriter};
use crate::worker::Order;

/// The order of both processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BesideOrder {
    /// Their network, and by what way the bulk samples travel.
    pub(crate) setup: Setup,
    /// Time without transfers.
    pub(crate) quiet: Duration,
    /// Transfers follow each other for so long; one is made in any case.
    pub(crate) loaded: Duration,
    /// Whether the transfers come first, so that a slow drift of the machine touches both conditions alike.
    pub(crate) begins_loaded: bool,
    /// How long a transfer may take.
    pub(crate) patience: Duration,
    /// One transfer.
    pub(crate) transfer: BurstRequest,
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

/// Both processes' results, and what they wrote on their standard error.
pub(crate) struct SeenByBoth {
    pub(crate) sent: Sent,
    pub(crate) received: Received,
    pub(crate) remarks: Vec<String>,
}

impl BesideOrder {
    /// Both topics' writers say by what way they send.
    fn open(&self, end: &ProcessEnd) -> Result<Thalweg, LabError> {
        Ok(Thalweg::open(&Setup { sending: Sending::default(), ..self.setup.clone() }, end)?)
    }

    fn bulk_channel(&self) -> SampleChannel {
        // A write of background data never waits; others have room for what the link carries, so that nothing else waits long.
        let is_asynchronous = matches!(self.setup.sending.method, PackingMethod::Asynchronous { .. });
        let room = if is_asynchronous { self.transfer.n.saturating_add(ROOM_BESIDE) } else { BULK_HISTORY };
        SampleChannel { keep: Keep::AllOf(room), ..SampleChannel::reliable(BULK) }
    }

    /// Starts both processes, the sending and the receiving one by these launchers, and returns what they saw.
    pub(crate) fn run(&self, (sender, receiver): (&Launcher, &Launcher), stop: &Stop) -> Result<SeenByBoth, LabError> {
        let receiver =
            Supervised::start(receiver, "receiver of background data", &Order::BesideReceiver(self.clone()))?;
        let sender = Supervised::start(sender, "sender of background data", &Order::BesideSender(self.clone()))?;
        let mut pair = ProcessPair::new(receiver, sender);
        // The transfers in the loaded time, the one before that does not count, and one that begins at its end.
        let patience = self.quiet + self.loaded + 2 * self.patience + 2 * PATIENCE;
        let sent: Sent = pair.hear(patience, stop)?;
        let received: Received = pair.hear_receiver(PATIENCE, stop)?;
        let remarks = pair.remarks();
        pair.finish()?;
        received.check().map_err(LabError::Here)?;
        Ok(SeenByBoth { sent, received, remarks })
    }
}

fn hurried_channel(topic: &str) -> SampleChannel {
    SampleChannel { keep: Keep::AllOf(HURRIED_HISTORY), ..SampleChannel::reliable(topic) }
}

/// The sending process.
pub(crate) fn send(order: &BesideOrder, link: &ParentPipe) -> Result<Sent, LabError> {
    let station = order.open(&ProcessEnd::PUBLISHER)?;
    let in_a_hurry = Sending { priority: HURRIED_PRIORITY, ..Sending::default() };
    let mut hurried = station.writer_by(&hurried_channel(HURRIED), &in_a_hurry)?;
    let writer = station.writer_by(&order.bulk_channel(), &order.setup.sending)?;
    let limits = (u32::MAX, order.patience);
    let publisher = BurstPublisher::on(station, writer, &hurried_channel(ECHO), limits, link.stop())?;
    let mut bulk = Bulk { publisher, order, link, bytes: Vec::new() };
    if !wait_until(PATIENCE, link.stop(), || hurried.matched() > 0)? {
        return Err(LabError::Here(format!("the receiver was not found within {} s", PATIENCE.as_secs())));
    }
    bulk.transfer()?;
    let origin_ns = monotonic_nanos() + START_DELAY.as_nanos() as u64;
    let over = Stop::default();
    let (hurried_count, transfers_ns) = std::thread::scope(|scope| {
        let hurrying = scope.spawn(|| hurry(&mut hurried, origin_ns, &over));
        let transferred = bulk.run(origin_ns);
        over.request();
        let hurried = hurrying.join().map_err(|_| LabError::Here("the thread of the small topic failed".to_owned()))?;
        Ok::<_, LabError>((hurried?, transferred?))
    })?;
    hurried.wait_for_acknowledgements(PATIENCE)?;
    Ok(Sent { origin_ns, hurried: hurried_count, transfers_ns, transfers_bytes: bulk.bytes })
}

/// The receiving process: ends when the sending one has left.
pub(crate) fn receive(order: &BesideOrder, link: &ParentPipe) -> Result<Received, LabError> {
    let station = order.open(&ProcessEnd::subscriber())?;
    let samples_ns = Arc::default();
    let hurried = station.reader(&hurried_channel(HURRIED), Note { samples_ns: Arc::clone(&samples_ns) })?;
    let bulk = echo_on(&station, &order.bulk_channel(), &hurried_channel(ECHO))?;
    let matched = || hurried.matched() + bulk.matched();
    if !wait_until(PATIENCE, link.stop(), || matched() == 2)? {
        return Err(LabError::Here(format!("the sender was not found within {} s", PATIENCE.as_secs())));
    }
    while matched() > 0 {
        if link.stop().is_requested() {
            return Err(LabError::Interrupted);
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    drop((hurried, bulk));
    let samples_ns = std::mem::take(&mut *lock(&samples_ns));
    Ok(Received { samples_ns })
}

/// Sends the small samples at their times until all is over; returns how many.
fn hurry(hurried: &mut ThalwegWriter<Numbered>, origin_ns: u64, over: &Stop) -> Result<u64, LabError> {
    let mut sample = Numbered { number: 0, payload: vec![0; HURRIED_BYTES] };
    while !over.is_requested() {
        let due = origin_ns + sample.number * PERIOD_NANOS;
        wait_for(due);
        sample.payload[..8].copy_from_slice(&due.to_le_bytes());
        hurried.write(&sample).map_err(Fault::from)?;
        sample.number += 1;
    }
    Ok(sample.number)
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
    publisher: BurstPublisher<Thalweg>,
    order: &'a BesideOrder,
    link: &'a ParentPipe,
    bytes: Vec<u64>,
}

impl Bulk<'_> {
    /// The time without transfers and the one with them, from `origin_ns` on; returns when each transfer began and ended.
    fn run(&mut self, origin_ns: u64) -> Result<Vec<(u64, u64)>, LabError> {
        let mut transfers = Vec::new();
        let nanos = |duration: Duration| duration.as_nanos() as u64;
        if !self.order.begins_loaded {
            self.sleep_until(origin_ns + nanos(self.order.quiet))?;
        } else {
            self.sleep_until(origin_ns)?;
        }
        let end = monotonic_nanos() + nanos(self.order.loaded);
        while transfers.is_empty() || monotonic_nanos() < end {
            transfers.push(self.timed_transfer()?);
        }
        if self.order.begins_loaded {
            self.sleep_until(monotonic_nanos() + nanos(self.order.quiet))?;
        }
        Ok(transfers)
    }

    /// One transfer; returns when it began and ended, and notes the bytes that left meanwhile.
    fn timed_transfer(&mut self) -> Result<(u64, u64), LabError> {
        let transmitted = || Layers::read(&HostFiles::here()).transmitted_bytes();
        let before = transmitted();
        let nanos = self.transfer()?;
        let (to, after) = (monotonic_nanos(), transmitted());
        self.bytes.extend(before.zip(after).map(|(before, after)| after.saturating_sub(before)));
        Ok((to - nanos, to))
    }

    /// One transfer, up to the echo of its last sample; its nanoseconds.
    fn transfer(&mut self) -> Result<u64, LabError> {
        let runs_ms = self.publisher.runs(&self.order.transfer)?;
        Ok((runs_ms.iter().sum::<f64>() * 1e6) as u64)
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
        lock(&self.samples_ns).push(noted);
    }
}

impl Received {
    /// Each sample arrived at most once and in order, else the text says how many did not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut arrivals = ArrivalBitmap::default();
        self.samples_ns.iter().for_each(|(number, ..)| arrivals.note(*number));
        match arrivals.duplicates() + arrivals.out_of_order() {
            0 => Ok(()),
            faults => Err(format!("{faults} samples of the small topic arrived twice or out of order")),
        }
    }
}

const HURRIED: &str = "thalweg_lab_hurried";
const BULK: &str = "thalweg_lab_bulk";
const ECHO: &str = "thalweg_lab_bulk_echo";
/// Expedited forwarding (RFC 3246).
const HURRIED_PRIORITY: i32 = 46;
const HURRIED_HISTORY: u32 = 1_000;
/// Of the topic in a hurry.
pub(super) const PERIOD_NANOS: u64 = 1_000_000_000 / RATE_HZ;
/// 8 MiB of 32 KiB samples may wait for acknowledgement.
const BULK_HISTORY: u32 = 256;
/// Announcements of a transfer beside its samples.
const ROOM_BESIDE: u32 = 64;
/// A small sample: when it was due, and filler up to the size of a pose with its covariance.
const HURRIED_BYTES: usize = 256;
const PATIENCE: Duration = Duration::from_secs(20);
/// How late Linux wakes a sleeper on an idle machine: 50 µs of timer slack and the way out of a sleep state.
const TIMER_LATENESS_NANOS: u64 = 200_000;
const LOOK_PERIOD: Duration = Duration::from_millis(20);
const START_DELAY: Duration = Duration::from_millis(200);
