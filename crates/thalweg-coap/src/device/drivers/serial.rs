//! Instruments that speak lines of text on a serial port.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use serial2::SerialPort;

use crate::device::{Access, Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Instruments that answer a question of one line with a number, such as scales and laboratory power supplies.
#[derive(Clone, Debug, Default)]
pub struct Serial {
    instruments: Vec<Instrument>,
}

/// An instrument and its commands.
#[derive(Clone, Debug, PartialEq)]
pub struct Instrument {
    /// Names the device: `scale`.
    pub name: String,
    /// The port, such as `/dev/ttyUSB0`.
    pub port: PathBuf,
    /// Symbols a second.
    pub baud: u32,
    /// The line that asks for the value; empty when the instrument sends by itself.
    pub question: String,
    /// Text written in front of a value to set it; empty when it cannot be set.
    pub command: String,
    /// The kind of quantity and its unit.
    pub quantity: (&'static str, Unit),
}

impl Serial {
    /// A driver of these instruments.
    pub fn new(instruments: Vec<Instrument>) -> Serial {
        Serial { instruments }
    }
}

impl Driver for Serial {
    fn name(&self) -> &str {
        "serial"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |instrument: &Instrument| Description {
            name: instrument.name.clone(),
            title: format!("instrument at {}", instrument.port.display()),
            channels: vec![Channel {
                name: "value".to_owned(),
                quantity: instrument.quantity.0,
                kind: ValueKind::Real,
                unit: instrument.quantity.1,
                access: if instrument.command.is_empty() { Access::Read } else { Access::ReadAndAct },
            }],
        };
        Ok(self.instruments.iter().filter(|instrument| instrument.port.exists()).map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let instrument = self.instruments.iter().find(|instrument| instrument.name == description.name);
        let instrument =
            instrument.ok_or_else(|| DeviceError::Absent(format!("no instrument is called {}", description.name)))?;
        let gone = |error: std::io::Error| DeviceError::Absent(format!("{}: {error}", instrument.port.display()));
        let mut port = SerialPort::open(&instrument.port, instrument.baud).map_err(gone)?;
        port.set_read_timeout(ANSWER_TIME).map_err(gone)?;
        port.set_write_timeout(ANSWER_TIME).map_err(gone)?;
        Ok(Box::new(OpenPort { port, instrument: instrument.clone(), received: Vec::new() }))
    }
}

struct OpenPort {
    port: SerialPort,
    instrument: Instrument,
    /// Bytes after the last complete line.
    received: Vec<u8>,
}

impl Device for OpenPort {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        if !self.instrument.question.is_empty() {
            self.received.clear();
            self.write(&format!("{}\n", self.instrument.question))?;
        }
        let line = self.line()?;
        number(&line).map(Value::Real).ok_or_else(|| DeviceError::Failed(format!("{line:?} holds no number")))
    }

    fn act(&mut self, _channel: usize, value: &Value) -> Result<(), DeviceError> {
        self.write(&format!("{}{value}\n", self.instrument.command))
    }
}

impl OpenPort {
    fn write(&self, text: &str) -> Result<(), DeviceError> {
        self.port.write_all(text.as_bytes()).map_err(|error| self.failed(&error))
    }

    /// The next whole line.
    fn line(&mut self) -> Result<String, DeviceError> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            if self.received.len() > LINE_MAX_BYTES {
                self.received.clear();
                return Err(DeviceError::Failed(format!("no line end within {LINE_MAX_BYTES} bytes")));
            }
            let mut chunk = [0; 256];
            let count = self.port.read(&mut chunk).map_err(|error| self.failed(&error))?;
            if count == 0 {
                return Err(DeviceError::Absent(format!("{}: the port was closed", self.instrument.port.display())));
            }
            self.received.extend_from_slice(&chunk[..count]);
        }
    }

    fn failed(&self, error: &std::io::Error) -> DeviceError {
        let reason = format!("{}: {error}", self.instrument.port.display());
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => DeviceError::Failed(reason),
            _ => DeviceError::Absent(reason),
        }
    }
}

/// The first number in a line such as `+ 12.50 g`.
fn number(line: &str) -> Option<f64> {
    let start = line.find(|character: char| character.is_ascii_digit())?;
    let is_negative = line[..start].trim_end().ends_with('-');
    let rest = &line[start..];
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
    let magnitude: f64 = rest[..end].trim_end_matches('.').parse().ok()?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Time limit of an instrument's answer.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// More than any instrument says in a line.
const LINE_MAX_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: Option<f64>) {
        assert_eq!(number(line), expect, "{line:?}");
    }

    #[test]
    fn the_number_of_a_line_is_found() {
        check("+ 12.50 g", Some(12.5));
        check("S S   -3 kg", Some(-3.0));
        check("7.", Some(7.0));
        check("OVERLOAD", None);
    }

    #[test]
    fn an_instrument_on_a_pseudo_terminal_is_asked_and_set() {
        let Ok((mine, theirs)) = SerialPort::pair() else { return };
        let instrument = Instrument {
            name: "scale".to_owned(),
            port: "pair".into(),
            baud: 9600,
            question: "SI".to_owned(),
            command: "T ".to_owned(),
            quantity: ("mass", Unit::NONE),
        };
        let mut device = OpenPort { port: mine, instrument, received: Vec::new() };
        theirs.write_all(b"- 1.5 g\r\n").expect("written");
        assert_eq!(device.read(0), Ok(Value::Real(-1.5)));
        device.act(0, &Value::Real(2.0)).expect("set");
        let mut heard = [0; 7];
        let mut count = 0;
        while count < heard.len() {
            count += theirs.read(&mut heard[count..]).expect("read");
        }
        assert_eq!(&heard, b"SI\nT 2\n");
    }
}
