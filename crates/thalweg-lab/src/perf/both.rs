//! Both ends from one command: the reading ends as further processes, the writing end here.

use std::time::Duration;

use super::options::{Measurement, PerfOptions};
use super::{RoundTripFigures, ThroughputFigures, ping, write};
use crate::error::LabError;
use crate::process::{Launcher, Stop, Supervised};
use crate::worker::Order;

/// What one of the two measurements gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Figures {
    /// Round trips.
    Latency(RoundTripFigures),
    /// A stream.
    Throughput(ThroughputFigures),
}

/// Starts the reading ends by `launcher`, measures, and ends them.
///
/// # Errors
/// A reading process cannot be started, dies or fails; either end fails; `stop` was requested.
pub fn both(options: &PerfOptions, launcher: &Launcher, stop: &Stop) -> Result<Figures, LabError> {
    let mut readers = Vec::new();
    for number in 1..=options.readers {
        let name =
            if options.readers == 1 { "reading process".to_owned() } else { format!("reading process {number}") };
        let cpu = options.reader_cpus.get((number - 1) % options.reader_cpus.len().max(1));
        let order = PerfOptions { reader_cpus: cpu.copied().into_iter().collect(), ..options.clone() };
        readers.push(Supervised::start(launcher, &name, &Order::PerfReader(order))?);
    }
    let here = Stop::default();
    let (figures, death) = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| match options.measurement {
            Measurement::Latency => ping(options, &here).map(Figures::Latency),
            Measurement::Throughput => write(options, &here).map(Figures::Throughput),
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
