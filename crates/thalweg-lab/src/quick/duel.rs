//! A topic in a hurry beside a bulk transfer, both between the same two processes.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::host::{HostFiles, Layers, monotonic_nanos};
use crate::perf::ArrivalBitmap;
use crate::process::{ParentPipe, Stop};
use crate::station::{
    ArrivalHandler, ArrivedSample, DeliveryGuarantee, Ended, Flow, Numbered, SampleReceiver, SampleSender, Sending,
    Station, StationNetwork, TokenBucket, Wait, wait_until,
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
    pub(crate) samples_ns: Vec<(u64, u64, u64)>,
}

/// The sending process; reports each phase as progress.
pub(crate) fn send(order: &DuelOrder, link: &ParentPipe) -> Result<Sent, LabError> {
    let station = Station::open(&order.network, Wait::Listener)?;
    order.flow_controller.iter().try_for_each(|bucket| station.create_flow_controller(bucket))?;
    let in_a_hurry = Sending { priority: HURRIED_PRIORITY, ..Sending::default() };
    let hurried = station.sender_by(HURRIED, HURRIED_DELIVERY, &in_a_hurry)?;
    let bulk_delivery = DeliveryGuarantee::Reliable { max_samples: order.bulk_history };
    let mut bulk = Bulk {
        order,
        sender: station.sender_by(BULK, bulk_delivery, &order.bulk)?,
        echo: station.receiver(ECHO, HURRIED_DELIVERY)?,
        sample: Numbered { number: 0, payload: vec![0x5a; order.sample_bytes as usize] },
        link,
        bytes: Vec::new(),
    };
    let all = || hurried.matched() > 0 && bulk.sender.matched() > 0 && bulk.echo.matched() > 0;
    if !wait_until(PATIENCE, link.stop(), all)? {
        return Err(LabError::Here(format!("the receiver was not found within {} s", PATIENCE.as_secs())));
    }
    bulk.meet()?;
    bulk.transfer()?;
    let origin_ns = monotonic_nanos() + START_DELAY.as_nanos() as u64;
    let over = Stop::default();
    let (hurried_count, transfers_ns) = std::thread::scope(|scope| {
        let hurrying = scope.spawn(|| hurry(order, &hurried, origin_ns, &over));
        let transferred = bulk.run(origin_ns);
        if transferred.is_err() || matches!(order.course, Course::Transfers { .. }) {
            over.request();
        }
        let hurried = hurrying.join().map_err(|_| LabError::Here("the thread of the small topic failed".to_owned()))?;
        Ok::<_, LabError>((hurried?, transferred?))
    })?;
    hurried.wait_for_acknowledgements(PATIENCE)?;
    bulk.sender.send(&signal(FAREWELL))?;
    bulk.sender.wait_for_acknowledgements(PATIENCE)?;
    Ok(Sent { origin_ns, hurried: hurried_count, transfers_ns, transfers_bytes: bulk.bytes })
}

/// The receiving process.
pub(crate) fn receive(order: &DuelOrder, link: &ParentPipe) -> Result<Received, LabError> {
    let station = Station::open(&order.network, Wait::Listener)?;
    let echo = station.sender(ECHO, HURRIED_DELIVERY)?;
    let hurried = station.receiver(HURRIED, HURRIED_DELIVERY)?;
    let bulk = station.receiver(BULK, DeliveryGuarantee::Reliable { max_samples: order.bulk_history })?;
    let over = Stop::default();
    std::thread::scope(|scope| {
        let noting = scope.spawn(|| {
            let is_over = || over.is_requested() || link.stop().is_requested();
            hurried.run(Wait::Listener, Duration::MAX, &is_over, Note::default())
        });
        let drain = Drain { order: order.clone(), echo, next: 0 };
        let drained =
            bulk.run(Wait::Listener, Duration::MAX, &|| link.stop().is_requested() || noting.is_finished(), drain);
        over.request();
        let noted = noting.join().map_err(|_| LabError::Here("the thread of the small topic failed".to_owned()))?;
        let (note, _) = noted?;
        match drained?.1 {
            Ended::Enough => note.into_received(),
            Ended::Silence | Ended::Over => Err(LabError::Interrupted),
        }
    })
}

/// Sends the small samples at their times, as long as the phases last; returns how many.
fn hurry(order: &DuelOrder, hurried: &SampleSender, origin_ns: u64, over: &Stop) -> Result<u64, LabError> {
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
        hurried.send(&sample)?;
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
    order: &'a DuelOrder,
    sender: SampleSender,
    echo: SampleReceiver,
    sample: Numbered,
    link: &'a ParentPipe,
    bytes: Vec<u64>,
}

impl Bulk<'_> {
    /// Greets until the receiver answers: from then on every sample is for it.
    fn meet(&self) -> Result<(), LabError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            self.sender.send(&signal(GREETING))?;
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
        let transmitted = || Layers::read(&HostFiles::here()).transmitted_bytes();
        let (before, from) = (transmitted(), monotonic_nanos());
        self.transfer()?;
        let (to, after) = (monotonic_nanos(), transmitted());
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
            self.sender.send(&self.sample)?;
        }
        self.sender.flush();
        let patience = self.order.patience;
        if self.hear(self.sample.number, patience)? {
            return Ok(());
        }
        Err(LabError::Here(format!("a transfer was not answered within {} s", patience.as_secs())))
    }

    /// Whether the echo `expected` comes within `patience`.
    fn hear(&self, expected: u64, patience: Duration) -> Result<bool, LabError> {
        match self.echo.run(Wait::Block, patience, &|| self.link.stop().is_requested(), UntilEcho { expected })?.1 {
            Ended::Enough => Ok(true),
            Ended::Silence => Ok(false),
            Ended::Over => Err(LabError::Interrupted),
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

/// A sample without content.
fn signal(number: u64) -> Numbered {
    Numbered { number, payload: Vec::new() }
}

/// Waits for one echo; echoes of greetings that were answered late are skipped.
struct UntilEcho {
    expected: u64,
}

impl ArrivalHandler for UntilEcho {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        Ok(if arrival.number == self.expected { Flow::Enough } else { Flow::Continue })
    }
}

/// Notes when each small sample was due and arrived.
#[derive(Default)]
struct Note {
    samples_ns: Vec<(u64, u64, u64)>,
}

impl Note {
    fn into_received(self) -> Result<Received, LabError> {
        let mut arrivals = ArrivalBitmap::default();
        self.samples_ns.iter().for_each(|(number, ..)| arrivals.note(*number));
        match arrivals.duplicates() + arrivals.out_of_order() {
            0 => Ok(Received { samples_ns: self.samples_ns }),
            faults => Err(LabError::Here(format!("{faults} samples of the small topic arrived twice or out of order"))),
        }
    }
}

impl ArrivalHandler for Note {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        let now = monotonic_nanos();
        let due = arrival.payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let due = due.ok_or_else(|| LabError::Here("a sample of the small topic is too short".to_owned()))?;
        self.samples_ns.push((arrival.number, due, now));
        Ok(Flow::Continue)
    }
}

/// Checks the bulk samples' order and length and answers the last of each transfer.
struct Drain {
    order: DuelOrder,
    echo: SampleSender,
    next: u64,
}

impl ArrivalHandler for Drain {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        match arrival.number {
            FAREWELL => return Ok(Flow::Enough),
            GREETING => {
                self.echo.send(&signal(GREETING))?;
                return Ok(Flow::Continue);
            }
            number if number != self.next => {
                return Err(LabError::Here(format!(
                    "sample {number} of a transfer arrived where {} was expected",
                    self.next
                )));
            }
            _ => {}
        }
        if arrival.payload.len() as u64 != self.order.sample_bytes {
            return Err(LabError::Here(format!("sample {} of a transfer has a wrong length", self.next)));
        }
        self.next += 1;
        if self.next == self.order.transfer_samples {
            self.next = 0;
            self.echo.send(&signal(arrival.number))?;
        }
        Ok(Flow::Continue)
    }
}

const HURRIED: &str = "thalweg_lab_hurried";
const BULK: &str = "thalweg_lab_bulk";
const ECHO: &str = "thalweg_lab_bulk_echo";
/// Expedited forwarding (RFC 3246).
const HURRIED_PRIORITY: i32 = 46;
const HURRIED_DELIVERY: DeliveryGuarantee = DeliveryGuarantee::Reliable { max_samples: 1_000 };
/// A small sample: when it was due, and filler up to the size of a pose with its covariance.
const HURRIED_BYTES: usize = 256;
const GREETING: u64 = u64::MAX;
const FAREWELL: u64 = u64::MAX - 1;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);
/// How late Linux wakes a sleeper on an idle machine: 50 µs of timer slack and the way out of a sleep state.
const TIMER_LATENESS_NANOS: u64 = 200_000;
const START_DELAY: Duration = Duration::from_millis(200);
