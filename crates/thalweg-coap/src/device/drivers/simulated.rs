//! A sensor that exists in memory only.

use std::sync::Arc;
use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use crate::device::{Access, Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Behaviour of simulated sensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Noise and failures follow from it.
    pub seed: u64,
    /// Number of sensors; each has its own noise. Default 1.
    pub sensors: usize,
    /// Time of one rise and fall of the temperature. Default 60 s.
    pub period: Duration,
    /// Duration of a read. Default none.
    pub latency: Duration,
    /// The share of reads that fail, from 0 to 1. Default 0.
    pub failure: f64,
}

impl Default for Simulation {
    fn default() -> Self {
        Simulation { seed: 1, sensors: 1, period: Duration::from_secs(60), latency: Duration::ZERO, failure: 0.0 }
    }
}

/// Thermometers that swing by 5 °C around a mean with 0.1 °C of noise; the mean can be set.
#[derive(Clone)]
pub struct Simulated {
    simulation: Simulation,
    clock: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Simulated {
    /// Sensors whose swing follows the system's clock.
    pub fn new(simulation: Simulation) -> Simulated {
        Simulated::with_clock(simulation, thalweg_transport::clock::now)
    }

    /// Sensors whose swing follows another clock.
    pub fn with_clock(simulation: Simulation, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Simulated {
        Simulated { simulation, clock: Arc::new(clock) }
    }
}

impl Driver for Simulated {
    fn name(&self) -> &str {
        "simulated"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |index: usize| Description {
            name: format!("simulated{index}"),
            title: "simulated thermometer".to_owned(),
            channels: vec![
                Channel::sensor("temperature", "temperature", ValueKind::Real, Unit::CELSIUS),
                Channel {
                    name: "mean".to_owned(),
                    quantity: "temperature",
                    kind: ValueKind::Real,
                    unit: Unit::CELSIUS,
                    access: Access::ReadAndAct,
                },
            ],
        };
        Ok((0..self.simulation.sensors).map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let index = description.name.strip_prefix("simulated").and_then(|index| index.parse::<u64>().ok());
        let index = index.filter(|index| *index < self.simulation.sensors as u64);
        let index = index.ok_or_else(|| DeviceError::Absent(format!("there is no sensor {}", description.name)))?;
        let rng = Rng::new(self.simulation.seed.wrapping_add(index.wrapping_mul(SEED_STEP)));
        Ok(Box::new(Thermometer { driver: self.clone(), rng, mean: MEAN_CELSIUS }))
    }
}

struct Thermometer {
    driver: Simulated,
    rng: Rng,
    mean: f64,
}

impl Device for Thermometer {
    fn read(&mut self, channel: usize) -> Result<Value, DeviceError> {
        if channel == MEAN {
            return Ok(Value::Real(self.mean));
        }
        let simulation = &self.driver.simulation;
        if !simulation.latency.is_zero() {
            std::thread::sleep(simulation.latency);
        }
        if self.rng.chance(simulation.failure) {
            return Err(DeviceError::Failed("a simulated failure".to_owned()));
        }
        let period_nanos = simulation.period.as_nanos().max(1);
        let phase = (u128::from((self.driver.clock)().as_nanos()) % period_nanos) as f64 / period_nanos as f64;
        let noise = NOISE_CELSIUS * (self.rng.below(2001) as f64 / 1000.0 - 1.0);
        Ok(Value::Real(self.mean + SWING_CELSIUS * (phase * std::f64::consts::TAU).sin() + noise))
    }

    fn act(&mut self, _channel: usize, value: &Value) -> Result<(), DeviceError> {
        match value {
            Value::Real(mean) if mean.is_finite() => {
                self.mean = *mean;
                Ok(())
            }
            other => Err(DeviceError::Refused(format!("{other} is no temperature"))),
        }
    }
}

/// The channel of the mean.
const MEAN: usize = 1;
const MEAN_CELSIUS: f64 = 20.0;
const SWING_CELSIUS: f64 = 5.0;
const NOISE_CELSIUS: f64 = 0.1;
/// Any odd number keeps the seeds of the sensors apart.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
