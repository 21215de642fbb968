//! Two processes between which bursts travel: the paper's test program. The sender notes T1, writes n samples and waits for the one
//! sample that the receiver sends back after the n-th; T2 − T1 is the time of the run.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::host::pin_to_cpu;
use crate::process::{ParentPipe, Stop};
use crate::station::{
    ArrivalHandler, ArrivedSample, DeliveryGuarantee, Ended, Flow, Numbered, SampleReceiver, SampleSender, Sending,
    Station, StationNetwork, TokenBucket, Wait, wait_until,
};

/// The order of both processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PairOrder {
    /// Their network.
    pub(crate) network: StationNetwork,
    /// By what way the samples travel.
    pub(crate) sending: Sending,
    /// A flow controller to create for it.
    pub(crate) flow_controller: Option<TokenBucket>,
    /// Logical CPU of this process.
    pub(crate) cpu: Option<usize>,
}

/// A series of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BurstRequest {
    /// Samples a run.
    pub(crate) n: u64,
    /// Payload bytes of each.
    pub(crate) size: u64,
    /// Runs; one if missing.
    #[serde(default = "one")]
    pub(crate) runs: u64,
    /// The application packs samples into larger ones of so many bytes; 0 for none of this.
    #[serde(default)]
    pub(crate) wrap_bytes: u64,
    /// Microseconds that the application waits between two writes.
    #[serde(default)]
    pub(crate) pause_us: u64,
}

fn one() -> u64 {
    1
}

/// The sender's message after each series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BurstAnswer {
    /// T2 − T1 of each run, in milliseconds.
    pub(crate) runs_ms: Vec<f64>,
}

/// The sending process: says `null` once both sides have met, then serves a request a line until its input ends.
pub(crate) fn send(order: &PairOrder, link: &ParentPipe) -> Result<(), LabError> {
    let mut burster = Burster::open(order, link.stop())?;
    link.progress(&())?;
    while let Some(request) = link.next::<BurstRequest>()? {
        link.progress(&BurstAnswer { runs_ms: burster.runs(&request)? })?;
    }
    Ok(())
}

/// The receiving process: checks every sample and answers the last of each run until its input ends.
pub(crate) fn receive(order: &PairOrder, link: &ParentPipe) -> Result<(), LabError> {
    echo(order, &|| link.stop().is_requested())
}

/// Checks every sample and answers the last of each run until `over` holds.
pub(crate) fn echo(order: &PairOrder, over: &dyn Fn() -> bool) -> Result<(), LabError> {
    let station = open(order)?;
    let echo = station.sender(ECHO, ECHO_DELIVERY)?;
    let data = station.receiver(DATA, DATA_DELIVERY)?;
    let check = Check { echo, expected: None };
    data.run(Wait::Listener, Duration::MAX, over, check)?;
    Ok(())
}

fn open(order: &PairOrder) -> Result<Station, LabError> {
    if let Some(cpu) = order.cpu {
        pin_to_cpu(cpu).map_err(|error| LabError::Here(format!("this process cannot run on CPU {cpu}: {error}")))?;
    }
    let station = Station::open(&order.network, Wait::Listener)?;
    order.flow_controller.iter().try_for_each(|bucket| station.create_flow_controller(bucket))?;
    Ok(station)
}

/// State of the sending process.
pub(crate) struct Burster<'a> {
    data: SampleSender,
    echo: SampleReceiver,
    stop: &'a Stop,
    epoch: u64,
}

impl Burster<'_> {
    /// Joins the network and waits until the receiver answers.
    pub(crate) fn open<'a>(order: &PairOrder, stop: &'a Stop) -> Result<Burster<'a>, LabError> {
        let station = open(order)?;
        let data = station.sender_by(DATA, DATA_DELIVERY, &order.sending)?;
        let echo = station.receiver(ECHO, ECHO_DELIVERY)?;
        let burster = Burster { data, echo, stop, epoch: 0 };
        burster.meet()?;
        Ok(burster)
    }

    /// Its transmission method, in the middleware's words.
    pub(crate) fn method(&self) -> String {
        self.data.method()
    }

    /// A series of runs: T2 − T1 of each in milliseconds.
    pub(crate) fn runs(&mut self, request: &BurstRequest) -> Result<Vec<f64>, LabError> {
        let mut content = Content::new(request)?;
        (0..request.runs).map(|_| self.run(request, &mut content)).collect()
    }

    /// Greets until the receiver answers: from then on every sample is for it.
    fn meet(&self) -> Result<(), LabError> {
        let is_there = || self.data.matched() > 0 && self.echo.matched() > 0;
        if !wait_until(MATCH_PATIENCE, self.stop, is_there)? {
            return Err(LabError::Here(format!("the receiver was not found within {} s", MATCH_PATIENCE.as_secs())));
        }
        let deadline = Instant::now() + MATCH_PATIENCE;
        while Instant::now() < deadline {
            self.data.send(&Numbered { number: GREETING, payload: Vec::new() })?;
            self.data.flush();
            if self.hear(GREETING, GREETING_PERIOD)? {
                return Ok(());
            }
        }
        Err(LabError::Here("the receiver was found but does not answer".to_owned()))
    }

    /// One run: returns T2 − T1 in milliseconds.
    fn run(&mut self, request: &BurstRequest, content: &mut Content) -> Result<f64, LabError> {
        self.epoch = (self.epoch + 1) % EPOCHS;
        let pause = Duration::from_micros(request.pause_us);
        let started = Instant::now();
        let samples = content.samples();
        for index in 0..samples {
            content.prepare(index);
            content.sample.number =
                Mark { epoch: self.epoch, is_wrapped: content.per_wrap.is_some(), samples, index }.number();
            self.data.send(&content.sample)?;
            if !pause.is_zero() && index + 1 < samples {
                let written = Instant::now();
                while written.elapsed() < pause {
                    std::hint::spin_loop();
                }
            }
        }
        self.data.flush();
        let is_answered = self.hear(content.sample.number, ANSWER_PATIENCE)?;
        let elapsed = started.elapsed();
        if !is_answered {
            let (n, size, patience) = (request.n, request.size, ANSWER_PATIENCE.as_secs());
            return Err(LabError::Here(format!("{n} samples of {size} bytes were not answered within {patience} s")));
        }
        Ok(crate::figures::millis(elapsed))
    }

    /// Whether the echo `expected` comes within `patience`; others, of greetings, are skipped.
    fn hear(&self, expected: u64, patience: Duration) -> Result<bool, LabError> {
        match self.echo.run(Wait::Block, patience, &|| self.stop.is_requested(), UntilEcho { expected })?.1 {
            Ended::Enough => Ok(true),
            Ended::Silence => Ok(false),
            Ended::Over => Err(LabError::Interrupted),
        }
    }
}

struct UntilEcho {
    expected: u64,
}

impl ArrivalHandler for UntilEcho {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        Ok(if arrival.number == self.expected { Flow::Enough } else { Flow::Continue })
    }
}

/// The samples of a run: the samples themselves, or larger ones with several of them inside.
struct Content {
    n: u64,
    sample: Numbered,
    /// Samples in each larger one, and the bytes of one of them.
    per_wrap: Option<(u64, Vec<u8>)>,
}

impl Content {
    fn new(request: &BurstRequest) -> Result<Content, LabError> {
        let size = usize::try_from(request.size).map_err(LabError::here)?;
        let bytes: Vec<u8> = (0..size).map(|index| index as u8).collect();
        if request.n == 0 || request.n > SAMPLES_MAX {
            return Err(LabError::Here(format!("a run has 1 to {SAMPLES_MAX} samples, not {}", request.n)));
        }
        if request.wrap_bytes == 0 {
            let sample = Numbered { number: 0, payload: bytes };
            return Ok(Content { n: request.n, sample, per_wrap: None });
        }
        let per_wrap = (request.wrap_bytes / (request.size + INNER_HEADER_BYTES)).clamp(1, request.n);
        let sample = Numbered { number: 0, payload: Vec::new() };
        Ok(Content { n: request.n, sample, per_wrap: Some((per_wrap, bytes)) })
    }

    /// Samples that travel.
    fn samples(&self) -> u64 {
        self.per_wrap.as_ref().map_or(self.n, |(per_wrap, _)| self.n.div_ceil(*per_wrap))
    }

    /// Makes the sample with this index: only wrapping has something to do.
    fn prepare(&mut self, index: u64) {
        let Some((per_wrap, bytes)) = &self.per_wrap else { return };
        let payload = &mut self.sample.payload;
        payload.clear();
        for number in index * per_wrap..((index + 1) * per_wrap).min(self.n) {
            // An application's own format needs the number and the end of each sample.
            payload.extend_from_slice(&(number as u32).to_le_bytes());
            payload.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            payload.extend_from_slice(bytes);
        }
    }
}

/// Checks order and length of every sample, wrapped ones included, and answers the last of each run.
struct Check {
    echo: SampleSender,
    expected: Option<Expected>,
}

/// State of the present run.
#[derive(Clone, Copy, Debug)]
struct Expected {
    mark: Mark,
    bytes: usize,
    inner: u32,
}

impl ArrivalHandler for Check {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        if arrival.number == GREETING {
            self.echo.send(&Numbered { number: GREETING, payload: Vec::new() })?;
            return Ok(Flow::Continue);
        }
        let mark = Mark::from_number(arrival.number);
        let expected = self.expected.unwrap_or(Expected {
            mark: Mark { index: 0, ..mark },
            bytes: arrival.payload.len(),
            inner: 0,
        });
        if mark != expected.mark {
            return Err(LabError::Here(format!("{mark:?} arrived where {:?} was expected", expected.mark)));
        }
        let mut inner = expected.inner;
        if mark.is_wrapped {
            inner = unwrap_samples(arrival.payload, inner)?;
        } else if arrival.payload.len() != expected.bytes {
            let (got, first) = (arrival.payload.len(), expected.bytes);
            return Err(LabError::Here(format!("{mark:?} has {got} bytes where the run's first sample had {first}")));
        }
        let is_last = mark.index + 1 == mark.samples;
        let next = Mark { index: mark.index + 1, ..mark };
        self.expected = (!is_last).then_some(Expected { mark: next, bytes: expected.bytes, inner });
        if is_last {
            self.echo.send(&Numbered { number: arrival.number, payload: Vec::new() })?;
        }
        Ok(Flow::Continue)
    }
}

/// Takes the samples in a larger one apart; returns the number of the next.
fn unwrap_samples(mut payload: &[u8], mut next: u32) -> Result<u32, LabError> {
    while !payload.is_empty() {
        let rest = unwrap_sample(payload, next)
            .ok_or_else(|| LabError::Here(format!("sample {next} is damaged within its larger one")))?;
        payload = rest;
        next += 1;
    }
    Ok(next)
}

/// Takes one sample off; returns what follows it, or `None` unless it has the expected number and all its bytes.
fn unwrap_sample(payload: &[u8], expected: u32) -> Option<&[u8]> {
    let (number, rest) = payload.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (sample, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    std::hint::black_box(sample);
    (u32::from_le_bytes(*number) == expected).then_some(rest)
}

/// Which sample of which run; all a receiver has to know stands in the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    epoch: u64,
    is_wrapped: bool,
    samples: u64,
    index: u64,
}

impl Mark {
    fn number(self) -> u64 {
        u64::from(self.is_wrapped) << 63 | self.epoch << 48 | self.samples << 24 | self.index
    }

    fn from_number(number: u64) -> Mark {
        Mark {
            is_wrapped: number >> 63 == 1,
            epoch: number >> 48 & (EPOCHS - 1),
            samples: number >> 24 & SAMPLES_MAX,
            index: number & SAMPLES_MAX,
        }
    }
}

const DATA: &str = "thalweg_lab_pair";
const ECHO: &str = "thalweg_lab_pair_echo";
/// Room for one whole burst, as the paper advises.
const DATA_DELIVERY: DeliveryGuarantee = DeliveryGuarantee::Reliable { max_samples: 20_000 };
const ECHO_DELIVERY: DeliveryGuarantee = DeliveryGuarantee::Reliable { max_samples: 64 };
/// No run has this number: it would be the sample after the last of a run of as many as there can be.
const GREETING: u64 = u64::MAX;
const EPOCHS: u64 = 1 << 15;
const SAMPLES_MAX: u64 = (1 << 24) - 1;
const INNER_HEADER_BYTES: u64 = 8;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
const MATCH_PATIENCE: Duration = Duration::from_secs(20);
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_number() {
        for mark in [
            Mark { epoch: 0, is_wrapped: false, samples: 1, index: 0 },
            Mark { epoch: EPOCHS - 1, is_wrapped: true, samples: SAMPLES_MAX, index: SAMPLES_MAX - 1 },
        ] {
            assert_eq!(Mark::from_number(mark.number()), mark);
            assert_ne!(mark.number(), GREETING);
        }
    }

    #[test]
    fn wrapped_samples_come_out_as_they_went_in() {
        let request = BurstRequest { n: 10, size: 100, runs: 1, wrap_bytes: 450, pause_us: 0 };
        let mut content = Content::new(&request).expect("possible");
        assert_eq!(content.samples(), 3, "four of 108 bytes fit into 450");
        let mut next = 0;
        for index in 0..3 {
            content.prepare(index);
            next = unwrap_samples(&content.sample.payload, next).expect("whole");
        }
        assert_eq!(next, 10);
        assert!(unwrap_samples(&content.sample.payload, 0).is_err(), "the wrong number");
        content.sample.payload.pop();
        assert!(unwrap_samples(&content.sample.payload, 8).is_err(), "cut off");
    }

    #[test]
    fn a_run_of_nothing_is_refused() {
        let request = BurstRequest { n: 0, size: 1, runs: 1, wrap_bytes: 0, pause_us: 0 };
        assert!(Content::new(&request).is_err());
    }
}
