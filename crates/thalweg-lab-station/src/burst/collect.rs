//! The subscriber's side: counts what arrives and echoes when a run is complete.

use std::time::Duration;

use super::content::Announcement;
use super::{ANNOUNCEMENT, BurstNumber, COMPLETE, ENQUIRY, echoes, samples};
use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::middleware::{ArrivedSample, Middleware, NumberedSample, SampleSink, SampleWriter};
use crate::station::pin;

/// Checks every sample and answers the last of each run until `over` holds.
///
/// # Errors
/// The middleware refuses an endpoint.
pub fn echo_bursts<M: Middleware<Sample: NumberedSample>>(
    setup: &M::Setup,
    cpu: Option<usize>,
    over: impl Fn() -> bool,
) -> Result<(), Fault> {
    pin(cpu)?;
    let middleware = M::open(setup, &ProcessEnd::subscriber())?;
    let _echoing = echo_on(&middleware, &samples(), &echoes())?;
    while !over() {
        std::thread::sleep(LOOK_PERIOD);
    }
    Ok(())
}

/// Checks the samples of one channel and answers on another until what it returns is dropped.
///
/// # Errors
/// The middleware refuses an endpoint.
pub fn echo_on<M: Middleware<Sample: NumberedSample>>(
    middleware: &M,
    samples: &SampleChannel,
    echoes: &SampleChannel,
) -> Result<M::Reader, Fault> {
    let writer = middleware.writer(echoes)?;
    middleware.reader(samples, Collector::<M> { writer, runs: BurstRuns::default() })
}

/// The subscriber's sink.
struct Collector<M: Middleware> {
    writer: M::Writer,
    runs: BurstRuns,
}

impl<M: Middleware<Sample: NumberedSample>> SampleSink<M> for Collector<M> {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let number = BurstNumber::from_wire(arrival.number());
        let Some((number, bytes)) = self.runs.handle(number, arrival.bytes()) else { return };
        let mut sample = M::Sample::of(bytes);
        sample.set_number(number.on_wire());
        let written = self.writer.write(&sample).map_err(Fault::from).and_then(|()| self.writer.flush());
        if let Err(error) = written {
            eprintln!("echo of run {}: {error}", number.run);
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.runs.fault = Some(fault.to_string());
    }
}

/// The run that is under way.
struct BurstRuns {
    run: u32,
    announced: Announcement,
    /// Whether this is the first run of its kind, of which every octet is looked at.
    is_first: bool,
    next: u32,
    /// The number of the next sample within those that travel.
    packed: u32,
    arrived: u32,
    fault: Option<String>,
}

impl Default for BurstRuns {
    fn default() -> BurstRuns {
        let announced = Announcement::default();
        BurstRuns { run: 0, announced, is_first: true, next: 0, packed: 0, arrived: 0, fault: None }
    }
}

impl BurstRuns {
    /// Takes a sample; the answer to it where it has one.
    fn handle(&mut self, number: BurstNumber, bytes: &[u8]) -> Option<(BurstNumber, Vec<u8>)> {
        match number.index {
            ANNOUNCEMENT => return self.begin(number, bytes),
            ENQUIRY => return Some((number, self.arrived.to_le_bytes().to_vec())),
            _ if number.run != self.run => return None, // Of a run that was given up.
            _ => {}
        }
        if self.fault.is_none() {
            self.fault = self.check(number, bytes);
        }
        self.next = self.next.max(number.index.saturating_add(1));
        self.arrived += 1;
        let is_complete = self.arrived == self.announced.count;
        is_complete.then(|| {
            let fault = self.fault.take().unwrap_or_default();
            (BurstNumber::new(self.run, COMPLETE), fault.into_bytes())
        })
    }

    /// Starts the run that an announcement describes.
    fn begin(&mut self, number: BurstNumber, bytes: &[u8]) -> Option<(BurstNumber, Vec<u8>)> {
        let announced = Announcement::from_wire(bytes)?;
        let is_first = announced != self.announced;
        *self = BurstRuns { run: number.run, announced, is_first, ..BurstRuns::default() };
        Some((number, Vec::new()))
    }

    fn check(&mut self, number: BurstNumber, bytes: &[u8]) -> Option<String> {
        if number.index != self.next {
            return Some(format!("sample {} came where {} was due", number.index, self.next));
        }
        self.announced.check(number, bytes, &mut self.packed, self.is_first)
    }
}

const LOOK_PERIOD: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// Announces a run of three samples of two octets, hands in the samples and returns the last echo.
    fn last_echo(samples: &[(u32, u32, &[u8])]) -> (u32, u32, Vec<u8>) {
        let mut runs = BurstRuns::default();
        let mut last = runs.handle(BurstNumber::new(5, ANNOUNCEMENT), &[3, 0, 0, 0, 2, 0, 0, 0]);
        for (run, index, bytes) in samples {
            last = runs.handle(BurstNumber::new(*run, *index), bytes).or(last);
        }
        let (BurstNumber { run, index }, bytes) = last.expect("the announcement is answered");
        (run, index, bytes)
    }

    #[test]
    fn a_run_is_echoed_when_its_last_sample_is_there() {
        let all: [(u32, u32, &[u8]); 3] = [(5, 0, &[0, 0]), (5, 1, &[1, 1]), (5, 2, &[2, 2])];
        assert_eq!(last_echo(&all), (5, 0, vec![]));
        assert_eq!(last_echo(&all[..2]), (5, ANNOUNCEMENT, vec![]));
    }

    #[test]
    fn a_run_that_is_not_whole_is_not_said_to_be() {
        let says = |samples: &[(u32, u32, &[u8])], what: &str| {
            let (_, _, bytes) = last_echo(samples);
            assert_eq!(String::from_utf8_lossy(&bytes), what);
        };
        says(&[(5, 0, &[0, 0]), (5, 2, &[2, 2]), (5, 1, &[1, 1])], "sample 2 came where 1 was due");
        says(&[(5, 0, &[0, 0]), (5, 1, &[1]), (5, 2, &[2, 2])], "sample 1 has 1 bytes instead of 2");
        says(&[(5, 0, &[0, 0]), (5, 1, &[1, 9]), (5, 2, &[2, 2])], "sample 1 arrived altered");
    }

    #[test]
    fn an_enquiry_is_answered_without_the_samples_of_other_runs() {
        let samples: [(u32, u32, &[u8]); 4] = [(4, 2, &[2, 2]), (5, 0, &[0, 0]), (5, 1, &[1, 1]), (5, ENQUIRY, &[])];
        assert_eq!(last_echo(&samples), (5, ENQUIRY, vec![2, 0, 0, 0]));
    }
}
