//! The kernel's thermal zones.

use std::path::{Path, PathBuf};

use super::files;
use crate::device::{Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Temperatures of `/sys/class/thermal`: processors, batteries, boards.
#[derive(Clone, Debug)]
pub struct Thermal {
    root: PathBuf,
}

impl Default for Thermal {
    fn default() -> Self {
        Thermal::at("/sys/class/thermal")
    }
}

impl Thermal {
    /// Thermal zones below another directory.
    pub fn at(root: impl Into<PathBuf>) -> Thermal {
        Thermal { root: root.into() }
    }
}

impl Driver for Thermal {
    fn name(&self) -> &str {
        "thermal"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        // Containers and small boards have no such directory, which is no failure.
        let Ok(entries) = std::fs::read_dir(&self.root) else { return Ok(Vec::new()) };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut zones: Vec<String> = names.filter(|name| name.starts_with("thermal_zone")).collect();
        zones.sort();
        let describe = |name: String| {
            let title = files::text(&self.root.join(&name).join("type")).unwrap_or_else(|_| name.clone());
            let channels = vec![Channel::sensor("temperature", "temperature", ValueKind::Real, Unit::CELSIUS)];
            Description { name, title, channels }
        };
        Ok(zones.into_iter().map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let path = self.root.join(Path::new(&description.name).file_name().unwrap_or_default()).join("temp");
        if !path.exists() {
            return Err(DeviceError::Absent(format!("{} does not exist", path.display())));
        }
        Ok(Box::new(Zone { path }))
    }
}

struct Zone {
    path: PathBuf,
}

impl Device for Zone {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        let text = files::text(&self.path)?;
        let millidegrees: i32 = files::number(&self.path, Some(&text), "temperature in millidegrees")?;
        Ok(Value::Real(f64::from(millidegrees) / 1000.0))
    }

    fn act(&mut self, _channel: usize, _value: &Value) -> Result<(), DeviceError> {
        Err(DeviceError::Refused("a thermal zone takes no value".to_owned()))
    }
}
