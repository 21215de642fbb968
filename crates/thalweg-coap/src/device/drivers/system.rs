//! Quantities of the host and of this process, from the kernel.

use std::path::PathBuf;

use super::files;
use crate::device::{Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Sensors of `/proc`: the devices `host` (load, memory, uptime) and `process` (memory, processor time, threads).
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        System::at("/proc")
    }
}

impl System {
    /// Sensors below another directory.
    pub fn at(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }
}

/// The source of a quantity.
#[derive(Clone, Copy)]
enum Place {
    /// The word of this number in the file.
    Word(usize),
    /// The word behind this label, in KiB.
    Kibibytes(&'static str),
    /// The word behind this label.
    Labelled(&'static str),
    /// User and system time of `stat`, in clock ticks.
    ProcessorTime,
}

/// A quantity: name, kind of quantity, unit, file and place in it.
type Row = (&'static str, &'static str, Unit, &'static str, Place);

const HOST: [Row; 5] = [
    ("load-1min", "load", Unit::RATIO, "loadavg", Place::Word(0)),
    ("load-5min", "load", Unit::RATIO, "loadavg", Place::Word(1)),
    ("load-15min", "load", Unit::RATIO, "loadavg", Place::Word(2)),
    ("uptime", "duration", Unit::SECOND, "uptime", Place::Word(0)),
    ("memory-available", "memory", Unit::BYTE, "meminfo", Place::Kibibytes("MemAvailable:")),
];

const PROCESS: [Row; 3] = [
    ("memory", "memory", Unit::BYTE, "self/status", Place::Kibibytes("VmRSS:")),
    ("threads", "count", Unit::COUNT, "self/status", Place::Labelled("Threads:")),
    ("processor-time", "duration", Unit::SECOND, "self/stat", Place::ProcessorTime),
];

const DEVICES: [(&str, &str, &[Row]); 2] =
    [("host", "load and memory of the host", &HOST), ("process", "memory and time of this process", &PROCESS)];

impl Driver for System {
    fn name(&self) -> &str {
        "system"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |&(name, title, rows): &(&str, &str, &[Row])| {
            let readable = rows.iter().filter(|row| self.root.join(row.3).exists());
            let channels = readable.map(|row| Channel::sensor(row.0, row.1, ValueKind::Real, row.2)).collect();
            Description { name: name.to_owned(), title: title.to_owned(), channels }
        };
        Ok(DEVICES.iter().map(describe).filter(|description| !description.channels.is_empty()).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let table = DEVICES.iter().find(|(name, ..)| *name == description.name);
        let (_, _, table) =
            table.ok_or_else(|| DeviceError::Absent(format!("there is no device {}", description.name)))?;
        let row = |channel: &Channel| table.iter().find(|row| row.0 == channel.name).copied();
        let rows = description.channels.iter().filter_map(row).collect();
        Ok(Box::new(Sensors { root: self.root.clone(), rows }))
    }
}

struct Sensors {
    root: PathBuf,
    rows: Vec<Row>,
}

impl Device for Sensors {
    fn read(&mut self, channel: usize) -> Result<Value, DeviceError> {
        let Some((_, _, _, file, place)) = self.rows.get(channel) else {
            return Err(DeviceError::Refused(format!("there is no channel {channel}")));
        };
        let path = self.root.join(file);
        let text = files::text(&path)?;
        let behind = |label: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(label))?;
            line.split_whitespace().next()
        };
        let number = |word: Option<&str>, what: &str| files::number::<f64>(&path, word, what);
        let value = match *place {
            Place::Word(index) => number(text.split_whitespace().nth(index), "number")?,
            Place::Kibibytes(label) => number(behind(label), label)? * 1024.0,
            Place::Labelled(label) => number(behind(label), label)?,
            Place::ProcessorTime => {
                // The name in front is in parentheses and may hold spaces; words 14 and 15 of proc_pid_stat(5) are meant.
                let words = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
                let mut times = words.split_whitespace().skip(11);
                (number(times.next(), "user time")? + number(times.next(), "system time")?) / TICKS_PER_SECOND
            }
        };
        Ok(Value::Real(value))
    }

    fn act(&mut self, _channel: usize, _value: &Value) -> Result<(), DeviceError> {
        Err(DeviceError::Refused("the system's sensors take no value".to_owned()))
    }
}

/// USER_HZ, which Linux fixes for all architectures that it runs on today.
const TICKS_PER_SECOND: f64 = 100.0;
