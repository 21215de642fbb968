//! The devices of the paper's list, in memory only.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;

use crate::device::{Access, Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// A device of the list (MinT's device types: sensors, actuators and network devices).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KitModel(&'static Model);

/// Simulated devices by name, each of one model. Their values follow the clock, with noise.
#[derive(Clone)]
pub struct Kit {
    devices: BTreeMap<String, KitModel>,
    seed: u64,
    clock: Arc<dyn Fn() -> Instant + Send + Sync>,
}

#[derive(Debug, PartialEq)]
struct Model {
    name: &'static str,
    title: &'static str,
    channels: &'static [Part],
}

impl Eq for Model {}

/// One channel of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    name: &'static str,
    quantity: &'static str,
    unit: Unit,
    behaviour: Behaviour,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    /// Swings around a mean with a period in seconds and noise.
    Swing { mean: f64, swing: f64, period_s: f64, noise: f64 },
    /// A whole number of things between 0 and this.
    Count { max: u64 },
    /// The number of what was read last, as text.
    Tag,
    /// A grey picture in the format PGM, in which a bright column wanders.
    Picture,
    /// On or off, as it was told.
    Switch,
    /// A position that moves to where it was told at this speed a second.
    Servo { from: f64, to: f64, speed: f64 },
}

impl KitModel {
    /// The model of this name.
    pub fn named(name: &str) -> Option<KitModel> {
        MODELS.iter().find(|model| model.name == name).map(KitModel)
    }

    /// Names of all models.
    pub fn names() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|model| model.name)
    }
}

impl Kit {
    /// No devices yet; noise follows from the seed.
    pub fn new(seed: u64) -> Kit {
        Kit::with_clock(seed, thalweg_transport::clock::now)
    }

    /// The same with another clock.
    pub fn with_clock(seed: u64, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Kit {
        Kit { devices: BTreeMap::new(), seed, clock: Arc::new(clock) }
    }

    /// Adds a device; a second one of the same name replaces the first.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, model: KitModel) -> Kit {
        self.devices.insert(name.into(), model);
        self
    }

    /// One device of each model, named like it.
    #[must_use]
    pub fn with_all(self) -> Kit {
        MODELS.iter().fold(self, |kit, model| kit.with(model.name, KitModel(model)))
    }
}

impl Driver for Kit {
    fn name(&self) -> &str {
        "kit"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |(name, KitModel(model)): (&String, &KitModel)| Description {
            name: name.clone(),
            title: format!("simulated {}", model.title),
            channels: model.channels.iter().map(Part::channel).collect(),
        };
        Ok(self.devices.iter().map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let place = self.devices.iter().enumerate().find(|(_, (name, _))| **name == description.name);
        let (number, (_, KitModel(model))) =
            place.ok_or_else(|| DeviceError::Absent(format!("there is no device {}", description.name)))?;
        let rng = Rng::new(self.seed.wrapping_add((number as u64).wrapping_mul(SEED_STEP)));
        let now = (self.clock)();
        let driven = model.channels.iter().map(|part| Driven { at: now, from: part.rest(), to: part.rest() }).collect();
        Ok(Box::new(KitDevice { parts: model.channels, driven, rng, clock: Arc::clone(&self.clock) }))
    }
}

impl Part {
    const fn swing(name: &'static str, unit: Unit, mean: f64, swing: f64, period_s: f64, noise: f64) -> Part {
        Part { name, quantity: name, unit, behaviour: Behaviour::Swing { mean, swing, period_s, noise } }
    }

    const fn of(name: &'static str, quantity: &'static str, unit: Unit, behaviour: Behaviour) -> Part {
        Part { name, quantity, unit, behaviour }
    }

    fn channel(&self) -> Channel {
        let (kind, access) = match self.behaviour {
            Behaviour::Swing { .. } => (ValueKind::Real, Access::Read),
            Behaviour::Count { .. } => (ValueKind::Integer, Access::Read),
            Behaviour::Tag => (ValueKind::Text, Access::Read),
            Behaviour::Picture => (ValueKind::Bytes, Access::Read),
            Behaviour::Switch => (ValueKind::Boolean, Access::ReadAndAct),
            Behaviour::Servo { .. } => (ValueKind::Real, Access::ReadAndAct),
        };
        Channel { name: self.name.to_owned(), quantity: self.quantity, kind, unit: self.unit, access }
    }

    /// The position of an actuator that was told nothing yet.
    fn rest(&self) -> f64 {
        if let Behaviour::Servo { from, to, .. } = self.behaviour { f64::midpoint(from, to) } else { 0.0 }
    }
}

struct KitDevice {
    parts: &'static [Part],
    driven: Vec<Driven>,
    rng: Rng,
    clock: Arc<dyn Fn() -> Instant + Send + Sync>,
}

/// The state of an actuator: where it was when it was told where to go.
struct Driven {
    at: Instant,
    from: f64,
    to: f64,
}

impl Driven {
    fn position(&self, now: Instant, speed: f64) -> f64 {
        let way = speed * now.since(self.at).as_secs_f64();
        self.from + (self.to - self.from).clamp(-way, way)
    }
}

impl KitDevice {
    fn part(&self, channel: usize) -> Result<Part, DeviceError> {
        let part = self.parts.get(channel).copied();
        part.ok_or_else(|| DeviceError::Refused(format!("there is no channel {channel}")))
    }
}

impl Device for KitDevice {
    fn read(&mut self, channel: usize) -> Result<Value, DeviceError> {
        let (part, now) = (self.part(channel)?, (self.clock)());
        let seconds = now.as_nanos() as f64 / 1e9;
        Ok(match part.behaviour {
            Behaviour::Swing { mean, swing, period_s, noise } => {
                let noise = noise * (self.rng.below(2001) as f64 / 1000.0 - 1.0);
                Value::Real(mean + swing * (seconds / period_s * std::f64::consts::TAU).sin() + noise)
            }
            Behaviour::Count { max } => Value::Integer(self.rng.below(max + 1) as i64),
            Behaviour::Tag => Value::Text(format!("04:{:02x}:{:02x}", seconds as u64 / 10 % 256, self.rng.below(4))),
            Behaviour::Picture => Value::Bytes(picture(seconds as usize)),
            Behaviour::Switch => Value::Boolean(self.driven[channel].to > 0.5),
            Behaviour::Servo { speed, .. } => Value::Real(self.driven[channel].position(now, speed)),
        })
    }

    fn act(&mut self, channel: usize, value: &Value) -> Result<(), DeviceError> {
        let (part, now) = (self.part(channel)?, (self.clock)());
        let driven = &mut self.driven[channel];
        *driven = match (part.behaviour, value) {
            (Behaviour::Switch, Value::Boolean(on)) => {
                Driven { at: now, from: driven.to, to: f64::from(u8::from(*on)) }
            }
            (Behaviour::Servo { from, to, speed }, Value::Real(target)) if (from..=to).contains(target) => {
                Driven { at: now, from: driven.position(now, speed), to: *target }
            }
            (Behaviour::Servo { from, to, .. }, _) => {
                return Err(DeviceError::Refused(format!("{} takes {from} to {to} {}", part.name, part.unit.symbol())));
            }
            _ => return Err(DeviceError::Refused(format!("{} takes no value {value}", part.name))),
        };
        Ok(())
    }
}

/// 16 by 16 grey points (PGM, `P5`).
fn picture(column: usize) -> Vec<u8> {
    let points = (0..256).map(|at| if at % 16 == column % 16 { 255 } else { 32 });
    b"P5 16 16 255\n".iter().copied().chain(points).collect()
}

const TEMPERATURE: Part = Part::swing("temperature", Unit::CELSIUS, 21.0, 4.0, 3600.0, 0.05);
const HUMIDITY: Part = Part::swing("humidity", Unit::HUMIDITY, 45.0, 10.0, 5400.0, 0.3);
const DECIBEL_MILLIWATT: Unit = Unit::fixed("dBm");
const SIGNAL: Part = Part::swing("signal", DECIBEL_MILLIWATT, -60.0, 15.0, 300.0, 3.0);
const NEIGHBOURS: Part = Part::of("neighbours", "count", Unit::COUNT, Behaviour::Count { max: 12 });

const MODELS: &[Model] = &[
    Model { name: "temperature", title: "thermometer", channels: &[TEMPERATURE] },
    Model { name: "humidity", title: "hygrometer", channels: &[HUMIDITY] },
    Model { name: "temphumi", title: "thermometer and hygrometer", channels: &[TEMPERATURE, HUMIDITY] },
    Model {
        name: "ultrasonic",
        title: "distance by ultrasound",
        channels: &[Part::swing("distance", Unit::METRE, 2.0, 1.5, 20.0, 0.01)],
    },
    Model {
        name: "magnetic",
        title: "magnetometer",
        channels: &[
            Part::swing("x", Unit::TESLA, 2e-5, 1e-6, 60.0, 1e-7),
            Part::swing("y", Unit::TESLA, 0.0, 1e-6, 60.0, 1e-7),
            Part::swing("z", Unit::TESLA, -4e-5, 1e-6, 60.0, 1e-7),
        ],
    },
    Model {
        name: "gyro",
        title: "gyroscope",
        channels: &[
            Part::swing("x", Unit::RADIAN_PER_SECOND, 0.0, 0.8, 4.0, 0.005),
            Part::swing("y", Unit::RADIAN_PER_SECOND, 0.0, 0.5, 6.0, 0.005),
            Part::swing("z", Unit::RADIAN_PER_SECOND, 0.0, 0.2, 9.0, 0.005),
        ],
    },
    Model {
        name: "servo",
        title: "servo motor",
        channels: &[Part::of("angle", "angle", Unit::DEGREE, Behaviour::Servo { from: 0.0, to: 180.0, speed: 300.0 })],
    },
    Model {
        name: "dust",
        title: "fine dust sensor",
        channels: &[Part::swing("pm2.5", Unit::MICROGRAM_PER_CUBIC_METRE, 18.0, 9.0, 7200.0, 0.5)],
    },
    Model {
        name: "co2",
        title: "carbon dioxide sensor",
        channels: &[Part::swing("concentration", Unit::PARTS_PER_MILLION, 700.0, 250.0, 3600.0, 4.0)],
    },
    Model {
        name: "photograph",
        title: "camera",
        channels: &[Part::of("picture", "picture", Unit::NONE, Behaviour::Picture)],
    },
    Model {
        name: "led",
        title: "light-emitting diode",
        channels: &[Part::of("light", "switch", Unit::NONE, Behaviour::Switch)],
    },
    Model {
        name: "illumination",
        title: "light sensor",
        channels: &[Part::swing("illuminance", Unit::LUX, 400.0, 390.0, 86_400.0, 5.0)],
    },
    Model { name: "ble", title: "Bluetooth LE radio", channels: &[SIGNAL, NEIGHBOURS] },
    Model { name: "wifi", title: "wireless network", channels: &[SIGNAL, NEIGHBOURS] },
    Model {
        name: "nfc",
        title: "reader of near-field tags",
        channels: &[Part::of("tag", "tag", Unit::NONE, Behaviour::Tag)],
    },
    Model { name: "bluetooth", title: "Bluetooth radio", channels: &[SIGNAL, NEIGHBOURS] },
];

/// Any odd number keeps the seeds of the devices apart.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn opened(kit: &Kit, name: &str) -> (Description, Box<dyn Device>) {
        let description = kit.find().expect("found").into_iter().find(|found| found.name == name).expect("there");
        let device = kit.open(&description).expect("opened");
        (description, device)
    }

    #[test]
    fn every_device_of_the_list_is_there_and_is_read_in_its_type() {
        let kit = Kit::new(1).with_all();
        let found = kit.find().expect("found");
        assert_eq!(found.len(), 16);
        for description in found {
            let (_, mut device) = opened(&kit, &description.name);
            for (at, channel) in description.channels.iter().enumerate() {
                assert_eq!(device.read(at).map(|value| value.kind()), Ok(channel.kind), "{} {at}", description.name);
            }
            assert!(device.read(description.channels.len()).is_err());
        }
        assert!(KitModel::named("gyroscope").is_none() && KitModel::named("gyro").is_some());
    }

    #[test]
    fn actuators_go_where_they_are_told_in_their_time() {
        let nanos = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&nanos);
        let kit = Kit::with_clock(1, move || Instant::from_nanos(told.load(Ordering::Relaxed))).with_all();
        let (_, mut servo) = opened(&kit, "servo");
        assert_eq!(servo.read(0), Ok(Value::Real(90.0)));
        servo.act(0, &Value::Real(150.0)).expect("it turns");
        nanos.store(100_000_000, Ordering::Relaxed);
        assert_eq!(servo.read(0), Ok(Value::Real(120.0)));
        nanos.store(900_000_000, Ordering::Relaxed);
        assert_eq!(servo.read(0), Ok(Value::Real(150.0)));
        let refused = servo.act(0, &Value::Real(181.0)).expect_err("too far").to_string();
        assert_eq!(refused, "angle takes 0 to 180 deg");
        let (_, mut led) = opened(&kit, "led");
        led.act(0, &Value::Boolean(true)).expect("it shines");
        assert_eq!(led.read(0), Ok(Value::Boolean(true)));
        let (_, mut gyro) = opened(&kit, "gyro");
        assert!(gyro.act(0, &Value::Real(1.0)).is_err());
    }
}
