//! Quantities of the host and of this process, from the kernel.

use thalweg_host::{HostFiles, Task, TaskStat, TaskStatus};

use crate::device::{Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Sensors of `/proc`: the devices `host` (load, memory, uptime) and `process` (memory, processor time, threads).
#[derive(Clone, Debug)]
pub struct System {
    files: HostFiles,
}

impl Default for System {
    fn default() -> Self {
        System::of(HostFiles::here())
    }
}

impl System {
    /// Sensors of these files.
    pub fn of(files: HostFiles) -> System {
        System { files }
    }
}

/// A quantity: name, kind of quantity, unit and reader.
type Quantity = (&'static str, &'static str, Unit, fn(&HostFiles) -> Option<f64>);

const HOST: [Quantity; 5] = [
    ("load-1min", "load", Unit::RATIO, |files| files.load_averages().map(|[load, ..]| load)),
    ("load-5min", "load", Unit::RATIO, |files| files.load_averages().map(|[_, load, _]| load)),
    ("load-15min", "load", Unit::RATIO, |files| files.load_averages().map(|[.., load]| load)),
    ("uptime", "duration", Unit::SECOND, HostFiles::uptime_s),
    ("memory-available", "memory", Unit::BYTE, |files| {
        files.memory_kib().map(|(_, available)| available as f64 * 1024.0)
    }),
];

const PROCESS: [Quantity; 3] = [
    ("memory", "memory", Unit::BYTE, |files| {
        TaskStatus::read(files, Task::This).map(|status| status.resident_kib as f64 * 1024.0)
    }),
    ("threads", "count", Unit::COUNT, |files| TaskStat::read(files, Task::This).map(|stat| stat.threads as f64)),
    ("processor-time", "duration", Unit::SECOND, |files| {
        TaskStat::read(files, Task::This).map(|stat| stat.cpu().as_secs_f64())
    }),
];

const DEVICES: [(&str, &str, &[Quantity]); 2] =
    [("host", "load and memory of the host", &HOST), ("process", "memory and time of this process", &PROCESS)];

impl Driver for System {
    fn name(&self) -> &str {
        "system"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |&(name, title, quantities): &(&str, &str, &[Quantity])| {
            let told = quantities.iter().filter(|(.., read)| read(&self.files).is_some());
            let channels = told.map(|(name, kind, unit, _)| Channel::sensor(name, kind, ValueKind::Real, *unit));
            Description { name: name.to_owned(), title: title.to_owned(), channels: channels.collect() }
        };
        Ok(DEVICES.iter().map(describe).filter(|description| !description.channels.is_empty()).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let device = DEVICES.iter().find(|(name, ..)| *name == description.name);
        let (.., all) =
            device.ok_or_else(|| DeviceError::Absent(format!("there is no device {}", description.name)))?;
        let quantity = |channel: &Channel| all.iter().find(|(name, ..)| *name == channel.name).copied();
        let quantities = description.channels.iter().filter_map(quantity).collect();
        Ok(Box::new(Sensors { files: self.files.clone(), quantities }))
    }
}

struct Sensors {
    files: HostFiles,
    quantities: Vec<Quantity>,
}

impl Device for Sensors {
    fn read(&mut self, channel: usize) -> Result<Value, DeviceError> {
        let Some((name, .., read)) = self.quantities.get(channel) else {
            return Err(DeviceError::Refused(format!("there is no channel {channel}")));
        };
        let value = read(&self.files);
        value.map(Value::Real).ok_or_else(|| DeviceError::Absent(format!("the kernel does not tell {name}")))
    }

    fn act(&mut self, _channel: usize, _value: &Value) -> Result<(), DeviceError> {
        Err(DeviceError::Refused("the system's sensors take no value".to_owned()))
    }
}
