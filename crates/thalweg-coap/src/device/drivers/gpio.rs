//! Lines of GPIO chips, through the kernel's character device.

use std::path::PathBuf;

use gpiocdev::Request;
use gpiocdev::line::Value as Level;

use crate::device::{Access, Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// GPIO lines as switches. Only the lines that are named are touched: what hangs on the others is not known here.
#[derive(Clone, Debug, Default)]
pub struct Gpio {
    lines: Vec<Line>,
}

/// A line and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Names the device: `door`.
    pub name: String,
    /// The chip, such as `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// The line's number on its chip.
    pub offset: u32,
    /// Whether it is read or driven.
    pub direction: Direction,
}

/// Whether a line is read or driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Others drive it.
    Input,
    /// It is driven, and low when it is opened and closed.
    Output,
}

impl Gpio {
    /// A driver of these lines.
    pub fn new(lines: Vec<Line>) -> Gpio {
        Gpio { lines }
    }
}

impl Driver for Gpio {
    fn name(&self) -> &str {
        "gpio"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |line: &Line| Description {
            name: line.name.clone(),
            title: format!("line {} of {}", line.offset, line.chip.display()),
            channels: vec![Channel {
                name: "level".to_owned(),
                quantity: "switch",
                kind: ValueKind::Boolean,
                unit: Unit::NONE,
                access: if line.direction == Direction::Input { Access::Read } else { Access::ReadAndAct },
            }],
        };
        Ok(self.lines.iter().filter(|line| line.chip.exists()).map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let line = self.lines.iter().find(|line| line.name == description.name);
        let line = line.ok_or_else(|| DeviceError::Absent(format!("no line is called {}", description.name)))?;
        let mut builder = Request::builder();
        builder.on_chip(&line.chip).with_consumer("thalweg").with_line(line.offset);
        match line.direction {
            Direction::Input => builder.as_input(),
            Direction::Output => builder.as_output(Level::Inactive),
        };
        let request = builder.request().map_err(|error| {
            DeviceError::Absent(format!("line {} of {}: {error}", line.offset, line.chip.display()))
        })?;
        Ok(Box::new(OpenLine { request, direction: line.direction }))
    }
}

struct OpenLine {
    request: Request,
    direction: Direction,
}

impl Device for OpenLine {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        let level = self.request.lone_value().map_err(gone)?;
        Ok(Value::Boolean(level == Level::Active))
    }

    fn act(&mut self, _channel: usize, value: &Value) -> Result<(), DeviceError> {
        let level = if *value == Value::Boolean(true) { Level::Active } else { Level::Inactive };
        self.request.set_lone_value(level).map(|_| ()).map_err(gone)
    }

    fn close(&mut self) {
        if self.direction == Direction::Output {
            // The line is released in any case; an error has no receiver.
            let _ = self.request.set_lone_value(Level::Inactive);
        }
    }
}

/// A line that once could be used fails only when its chip is taken away, so it is opened anew.
fn gone(error: gpiocdev::Error) -> DeviceError {
    DeviceError::Absent(error.to_string())
}
