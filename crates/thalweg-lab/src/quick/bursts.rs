//! Bursts: n samples, one echo after the last, T2 − T1 at the sender.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::process::{ParentPipe, Stop};
use crate::station::{
    ArrivalHandler, ArrivedSample, DeliveryGuarantee, Ended, Flow, Numbered, SampleReceiver, SampleSender, Station,
    StationNetwork, Wait, wait_until,
};

/// What sender and receiver of a series of bursts are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BurstOrder {
    /// Their network.
    pub(crate) network: StationNetwork,
    /// The kinds of bursts, one after the other.
    pub(crate) cells: Vec<CellOrder>,
}

/// One kind of burst.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CellOrder {
    /// Samples a run.
    pub(crate) samples: u64,
    /// Payload bytes of each.
    pub(crate) sample_bytes: u64,
    /// Runs, unless the time is up before.
    pub(crate) runs_max: u64,
    /// After so long no further run is started, once there are [`RUNS_MIN`].
    pub(crate) time_max: Duration,
}

/// One finished run, as the sender reports it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RunDone {
    /// Position of the cell in the order.
    pub(crate) cell: usize,
    /// From the first write to the echo, in nanoseconds.
    pub(crate) nanos: u64,
}

/// The sending process: reports each run as progress.
pub(crate) fn send(order: &BurstOrder, link: &ParentPipe) -> Result<(), LabError> {
    let station = Station::open(&order.network, Wait::Listener)?;
    let sending = Sending {
        data: station.sender(DATA, delivery(order))?,
        echo: station.receiver(ECHO, ECHO_DELIVERY)?,
        stop: link.stop().clone(),
    };
    sending.meet()?;
    for (index, cell) in order.cells.iter().enumerate() {
        let mut sample = Numbered { number: 0, payload: content(cell.sample_bytes) };
        let started = Instant::now();
        let mut measured = 0;
        for run in 0..WARM_UP_RUNS + cell.runs_max {
            if measured >= RUNS_MIN && started.elapsed() >= cell.time_max {
                break;
            }
            let nanos = sending.burst(Mark { cell: index as u64, run, sample: 0 }, cell, &mut sample)?;
            if run >= WARM_UP_RUNS {
                link.progress(&RunDone { cell: index, nanos })?;
                measured += 1;
            }
        }
    }
    sending.data.send(&signal(FAREWELL))?;
    sending.data.wait_for_acknowledgements(ANSWER_PATIENCE)?;
    Ok(())
}

/// The receiving process: checks every sample, answers the last of each run, ends at the sender's farewell.
pub(crate) fn receive(order: &BurstOrder, link: &ParentPipe) -> Result<(), LabError> {
    let station = Station::open(&order.network, Wait::Listener)?;
    let echo = station.sender(ECHO, ECHO_DELIVERY)?;
    let data = station.receiver(DATA, delivery(order))?;
    let check = Check { cells: order.cells.clone(), echo, next: Mark::default() };
    let (_, ended) = data.run(Wait::Listener, Duration::MAX, &|| link.stop().is_requested(), check)?;
    match ended {
        Ended::Enough => Ok(()),
        Ended::Silence | Ended::Over => Err(LabError::Interrupted),
    }
}

/// State of the sending process.
struct Sending {
    data: SampleSender,
    echo: SampleReceiver,
    stop: Stop,
}

impl Sending {
    /// Greets until the receiver answers: from then on every sample is for it.
    fn meet(&self) -> Result<(), LabError> {
        if !wait_until(MATCH_PATIENCE, &self.stop, || self.data.matched() > 0 && self.echo.matched() > 0)? {
            return Err(LabError::Here(format!("the receiver was not found within {} s", MATCH_PATIENCE.as_secs())));
        }
        let deadline = Instant::now() + MATCH_PATIENCE;
        while Instant::now() < deadline {
            self.data.send(&signal(GREETING))?;
            if self.hear(GREETING, GREETING_PERIOD)? {
                return Ok(());
            }
        }
        Err(LabError::Here("the receiver was found but does not answer".to_owned()))
    }

    /// One run: returns T2 − T1 in nanoseconds.
    fn burst(&self, mark: Mark, cell: &CellOrder, sample: &mut Numbered) -> Result<u64, LabError> {
        let started = Instant::now();
        for index in 0..cell.samples {
            sample.number = Mark { sample: index, ..mark }.number();
            self.data.send(sample)?;
        }
        let is_answered = self.hear(sample.number, ANSWER_PATIENCE)?;
        let elapsed = started.elapsed();
        if !is_answered {
            let (samples, bytes, patience) = (cell.samples, cell.sample_bytes, ANSWER_PATIENCE.as_secs());
            let run = mark.run;
            return Err(LabError::Here(format!(
                "no echo of run {run} ({samples} samples of {bytes} bytes) within {patience} s"
            )));
        }
        Ok(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Whether the echo `expected` comes within `patience`.
    fn hear(&self, expected: u64, patience: Duration) -> Result<bool, LabError> {
        match self.echo.run(Wait::Block, patience, &|| self.stop.is_requested(), UntilEcho { expected })?.1 {
            Ended::Enough => Ok(true),
            Ended::Silence => Ok(false),
            Ended::Over => Err(LabError::Interrupted),
        }
    }
}

/// Waits for one echo; late echoes of greetings are skipped.
struct UntilEcho {
    expected: u64,
}

impl ArrivalHandler for UntilEcho {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        match arrival.number {
            number if number == self.expected => Ok(Flow::Enough),
            GREETING => Ok(Flow::Continue),
            number => Err(LabError::Here(format!("echo {number:#x} arrived where {:#x} was expected", self.expected))),
        }
    }
}

/// Checks number and length of every sample, and the whole content during warm-up.
struct Check {
    cells: Vec<CellOrder>,
    echo: SampleSender,
    next: Mark,
}

impl ArrivalHandler for Check {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        match arrival.number {
            GREETING => {
                self.echo.send(&signal(GREETING))?;
                return Ok(Flow::Continue);
            }
            FAREWELL => return Ok(Flow::Enough),
            _ => {}
        }
        let mark = Mark::from_number(arrival.number);
        // A cell ends earlier than its largest number of runs when its time is up.
        if mark.cell == self.next.cell + 1 && self.next.sample == 0 {
            self.next = Mark { cell: mark.cell, ..Mark::default() };
        }
        if mark != self.next {
            return Err(LabError::Here(format!("{mark} arrived where {} was expected", self.next)));
        }
        let cell =
            *self.cells.get(mark.cell as usize).ok_or_else(|| LabError::Here(format!("{mark} was not ordered")))?;
        let got = arrival.payload.len() as u64;
        if got != cell.sample_bytes {
            return Err(LabError::Here(format!("{mark} has {got} bytes where {} were sent", cell.sample_bytes)));
        }
        if mark.run < WARM_UP_RUNS && arrival.payload.iter().enumerate().any(|(index, byte)| *byte != index as u8) {
            return Err(LabError::Here(format!("the content of {mark} was changed on its way")));
        }
        self.next.sample += 1;
        if self.next.sample == cell.samples {
            self.next = Mark { run: mark.run + 1, sample: 0, ..mark };
            self.echo.send(&signal(arrival.number))?;
        }
        Ok(Flow::Continue)
    }
}

/// Which sample of which run of which cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    cell: u64,
    run: u64,
    sample: u64,
}

impl Mark {
    fn number(self) -> u64 {
        self.cell << 48 | self.run << 32 | self.sample
    }

    fn from_number(number: u64) -> Mark {
        Mark { cell: number >> 48, run: number >> 32 & 0xffff, sample: number & 0xffff_ffff }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sample {} of run {} of series {}", self.sample, self.run, self.cell)
    }
}

/// A sample without content.
fn signal(number: u64) -> Numbered {
    Numbered { number, payload: Vec::new() }
}

/// What every payload holds: bytes that count up.
fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| index as u8).collect()
}

/// Room for one whole burst, as the paper advises: a write waits only when a second burst would begin.
fn delivery(order: &BurstOrder) -> DeliveryGuarantee {
    let samples = order.cells.iter().map(|cell| cell.samples).max().unwrap_or(1).clamp(16, 20_000);
    DeliveryGuarantee::Reliable { max_samples: samples as u32 }
}

const DATA: &str = "thalweg_lab_burst";
const ECHO: &str = "thalweg_lab_echo";
const ECHO_DELIVERY: DeliveryGuarantee = DeliveryGuarantee::Reliable { max_samples: 64 };
const GREETING: u64 = u64::MAX;
const FAREWELL: u64 = u64::MAX - 1;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
const MATCH_PATIENCE: Duration = Duration::from_secs(15);
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);
/// Runs before the measured ones of each cell.
const WARM_UP_RUNS: u64 = 3;
/// As many runs as the paper makes, however long they take.
const RUNS_MIN: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_survive_their_number() {
        for mark in [
            Mark::default(),
            Mark { cell: 3, run: 102, sample: 9_999 },
            Mark { cell: 0, run: 0xffff, sample: 0xffff_ffff },
        ] {
            assert_eq!(Mark::from_number(mark.number()), mark);
        }
    }
}
