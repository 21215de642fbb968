//! Ping-pong: one end writes a sample, the other sends it back, again and again.

use std::time::{Duration, Instant};

use super::figures::RoundTripFigures;
use super::options::{ANSWER_PATIENCE, Limit, PEER_PATIENCE, PerfOptions};
use crate::error::LabError;
use crate::process::Stop;
use crate::scenario::ReliabilitySetting;
use crate::station::{
    ArrivalHandler, ArrivedSample, Ended, Flow, Numbered, SampleReceiver, SampleSender, Wait, wait_until,
};
use crate::statistics::Latencies;

/// The measuring end: returns when the limit is reached.
///
/// # Errors
/// No answer comes, an answer is wrong, or `stop` was requested.
pub fn ping(options: &PerfOptions, stop: &Stop) -> Result<RoundTripFigures, LabError> {
    let station = options.open(options.writer_cpu)?;
    let receiver = station.receiver(PONG, options.delivery())?;
    let sender = station.sender_by(PING, options.delivery(), &options.sending)?;
    if !wait_until(PEER_PATIENCE, stop, || sender.matched() > 0 && receiver.matched() > 0)? {
        let patience = PEER_PATIENCE.as_secs();
        return Err(LabError::Here(format!(
            "no other end appeared within {patience} s; start `thalweg perf latency --role sub` with the same options"
        )));
    }
    shake_hands(&sender, &receiver, stop)?;
    let mut game = Game::new(options, sender)?;
    loop {
        let patience = match options.reliability {
            ReliabilitySetting::Reliable => ANSWER_PATIENCE,
            ReliabilitySetting::BestEffort => LOSS_PATIENCE,
        };
        let (state, ended) = receiver.run(options.wait, patience, &|| stop.is_requested(), game)?;
        game = state;
        match ended {
            Ended::Enough => return Ok(RoundTripFigures::of(options.size, &game.latencies)),
            Ended::Over => return Err(LabError::Interrupted),
            Ended::Silence if options.reliability == ReliabilitySetting::BestEffort && receiver.matched() > 0 => {
                game.sample.number += 1
            }
            Ended::Silence => {
                let number = game.sample.number;
                return Err(LabError::Here(format!(
                    "sample {number} was not answered within {} s",
                    patience.as_secs()
                )));
            }
        }
    }
}

/// The answering end: sends back what arrives until the other end leaves or `stop` is requested.
///
/// # Errors
/// The other end does not appear, or an answer cannot be sent.
pub fn pong(options: &PerfOptions, stop: &Stop) -> Result<(), LabError> {
    let station = options.open(options.reader_cpus.first().copied())?;
    let sender = station.sender_by(PONG, options.delivery(), &options.sending)?;
    let receiver = station.receiver(PING, options.delivery())?;
    if !wait_until(PEER_PATIENCE, stop, || receiver.matched() > 0)? {
        return Err(LabError::Here(format!("no other end appeared within {} s", PEER_PATIENCE.as_secs())));
    }
    let over = || stop.is_requested() || receiver.matched() == 0;
    receiver.run(options.wait, Duration::MAX, &over, Answer { sender })?;
    Ok(())
}

/// Sends greetings until one comes back: from then on both sides have matched in both directions.
fn shake_hands(sender: &SampleSender, receiver: &SampleReceiver, stop: &Stop) -> Result<(), LabError> {
    let deadline = Instant::now() + ANSWER_PATIENCE;
    while Instant::now() < deadline {
        sender.send(&Numbered { number: GREETING, payload: Vec::new() })?;
        match receiver.run(Wait::Block, GREETING_PERIOD, &|| stop.is_requested(), UntilGreeted)?.1 {
            Ended::Enough => return Ok(()),
            Ended::Over => return Err(LabError::Interrupted),
            Ended::Silence => {}
        }
    }
    Err(LabError::Here(format!("the other end matched but did not answer within {} s", ANSWER_PATIENCE.as_secs())))
}

struct UntilGreeted;

impl ArrivalHandler for UntilGreeted {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        Ok(if arrival.number == GREETING { Flow::Enough } else { Flow::Continue })
    }
}

struct Answer {
    sender: SampleSender,
}

impl ArrivalHandler for Answer {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        self.sender.send_back(&arrival)?;
        Ok(Flow::Continue)
    }
}

/// The measuring end's side of the game.
struct Game {
    options: PerfOptions,
    sender: SampleSender,
    sample: Numbered,
    sent: Instant,
    warm_up: u64,
    end: Option<Instant>,
    latencies: Latencies,
}

impl Game {
    fn new(options: &PerfOptions, sender: SampleSender) -> Result<Game, LabError> {
        Ok(Game {
            options: options.clone(),
            sender,
            sample: options.sample()?,
            sent: Instant::now(),
            warm_up: if options.size > 100_000 { WARM_UP_LARGE } else { WARM_UP },
            end: None,
            latencies: Latencies::new(),
        })
    }

    fn serve(&mut self) -> Result<(), LabError> {
        self.sent = Instant::now();
        self.sender.send(&self.sample)
    }

    fn check_limit(&mut self, now: Instant) -> bool {
        match self.options.limit {
            Limit::Samples(count) => self.latencies.count() >= count,
            Limit::Time(duration) => now >= *self.end.get_or_insert(now + duration),
        }
    }
}

impl ArrivalHandler for Game {
    fn begin(&mut self) -> Result<(), LabError> {
        self.serve()
    }

    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        let now = Instant::now();
        if arrival.number != self.sample.number {
            // A greeting that was answered late, or an answer of a round that was given up.
            if arrival.number == GREETING || self.options.reliability == ReliabilitySetting::BestEffort {
                return Ok(Flow::Continue);
            }
            let (got, expected) = (arrival.number, self.sample.number);
            return Err(LabError::Here(format!("sample {got} came back where {expected} was expected")));
        }
        self.options.check(arrival.payload)?;
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.latencies.record(now - self.sent);
            if self.check_limit(now) {
                return Ok(Flow::Enough);
            }
        }
        self.sample.number += 1;
        self.serve()?;
        Ok(Flow::Continue)
    }
}

const PING: &str = "thalweg_perf_ping";
const PONG: &str = "thalweg_perf_pong";
/// Number of the samples that are no part of the game.
const GREETING: u64 = u64::MAX;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
/// After this long a best-effort sample counts as lost and the next one is served.
const LOSS_PATIENCE: Duration = Duration::from_millis(500);
/// Round trips before the measured ones: caches, branch predictors and RTT estimates settle.
const WARM_UP: u64 = 500;
const WARM_UP_LARGE: u64 = 20;
