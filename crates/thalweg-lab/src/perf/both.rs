//! Both ends from one command: the reading ends as further processes, the writing end here.

use std::time::Duration;

use thalweg_lab_station::{Measurement, PerfOptions, RoundTripFigures, Streamed, ThroughputFigures};

use crate::error::LabError;
use crate::process::{Launcher, Stop, Supervised};
use crate::station::{Setup, Thalweg};
use crate::worker::Order;

/// The measuring end of round trips: returns when the limit is reached.
///
/// # Errors
/// No answer comes, an answer is wrong, or `stop` was requested.
pub fn ping(options: &PerfOptions<Setup>, stop: &Stop) -> Result<RoundTripFigures, LabError> {
    Ok(thalweg_lab_station::ping::<Thalweg>(options, stop)?)
}

/// The answering end: sends back what arrives until the other end leaves or `stop` is requested.
///
/// # Errors
/// The other end does not appear, or an answer cannot be sent.
pub fn pong(options: &PerfOptions<Setup>, stop: &Stop) -> Result<(), LabError> {
    Ok(thalweg_lab_station::pong::<Thalweg>(options, stop)?)
}

/// The writing end of a stream: returns what all ends saw when the limit is reached and the readers have told their part.
///
/// # Errors
/// Too few read, a write finds no room, reliable samples got lost, or `stop` was requested.
pub fn write(options: &PerfOptions<Setup>, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    judge(thalweg_lab_station::write_stream::<Thalweg>(options, stop)?)
}

/// A reading end: serves one writer and returns what all ends saw.
///
/// # Errors
/// No writer appears, the writer leaves before it is done, reliable samples got lost, or `stop` was requested.
pub fn read(options: &PerfOptions<Setup>, stop: &Stop) -> Result<ThroughputFigures, LabError> {
    judge(thalweg_lab_station::read_stream::<Thalweg>(options, stop)?)
}

/// Reliable samples of ours that did not all arrive once and in order are an error and no figure.
fn judge(streamed: Streamed) -> Result<ThroughputFigures, LabError> {
    streamed.fault.map_or(Ok(streamed.figures), |fault| Err(LabError::Here(fault)))
}

/// What one of the two measurements gave.
#[derive(Clone, Debug, PartialEq)]
pub enum PerfFigures {
    /// Round trips.
    Latency(RoundTripFigures),
    /// A stream.
    Throughput(ThroughputFigures),
}

/// Starts the reading ends by `launcher`, measures, and ends them.
///
/// # Errors
/// A reading process cannot be started, dies or fails; either end fails; `stop` was requested.
pub fn both(options: &PerfOptions<Setup>, launcher: &Launcher, stop: &Stop) -> Result<PerfFigures, LabError> {
    let mut readers = Vec::new();
    for number in 0..options.readers {
        let name =
            if options.readers == 1 { "reading process".to_owned() } else { format!("reading process {}", number + 1) };
        readers.push(Supervised::start(launcher, &name, &Order::PerfReader(options.of_reader(number)))?);
    }
    let here = Stop::default();
    let (figures, death) = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| match options.measurement {
            Measurement::Latency => ping(options, &here).map(PerfFigures::Latency),
            Measurement::Throughput => write(options, &here).map(PerfFigures::Throughput),
        });
        let mut death = None;
        while !measuring.is_finished() {
            if stop.is_requested() {
                here.request();
            } else if death.is_none() {
                death = readers.iter_mut().find_map(|reader| reader.check_alive().err());
                death.iter().for_each(|_| here.request());
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        (measuring.join(), death)
    });
    let figures = figures.map_err(|_| LabError::Here("the writing end failed".to_owned()))?;
    match (figures, death) {
        (Ok(figures), _) => readers.into_iter().try_for_each(Supervised::finish).map(|()| figures),
        (Err(_), Some(death)) if !stop.is_requested() => Err(death),
        (Err(error), _) => Err(error),
    }
}

const LOOK_PERIOD: Duration = Duration::from_millis(20);
