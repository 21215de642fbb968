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
            // What is there came too late for an earlier question.
            self.port.discard_input_buffer().map_err(|error| self.failed(&error))?;
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

/// The first number in a line such as `+ 12.50 g` or `-1.25E+01`.
fn number(line: &str) -> Option<f64> {
    let bytes = line.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let end_of_digits = |from: usize| (from..bytes.len()).find(|at| !is_digit(*at)).unwrap_or(bytes.len());
    let begins = |at: &usize| match bytes[*at] {
        // Behind a word or another point it is punctuation.
        b'.' => is_digit(at + 1) && (*at == 0 || !matches!(bytes[at - 1], b'.' | b'a'..=b'z' | b'A'..=b'Z')),
        byte => byte.is_ascii_digit(),
    };
    let start = (0..bytes.len()).find(begins)?;
    let mut end = end_of_digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = end_of_digits(end + 1);
    }
    if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
        return None;
    }
    if matches!(bytes.get(end), Some(b'E' | b'e')) {
        let exponent = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = if is_digit(exponent) { end_of_digits(exponent) } else { end };
    }
    let magnitude: f64 = line[start..end].parse().ok()?;
    let is_negative = line[..start].trim_end().ends_with('-');
    Some(if is_negative { -magnitude } else { magnitude }).filter(|number| number.is_finite())
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
        check("+1.25000E+01", Some(12.5));
        check("2e-3 V", Some(0.002));
        check("9.9E37", Some(9.9e37));
        check("4eV", Some(4.0));
        check("12E+", Some(12.0));
        check(".5", Some(0.5));
        check("- .5 V", Some(-0.5));
        check("-.5E1", Some(-5.0));
        check("No.5", Some(5.0));
        check("level...5", Some(5.0));
        check("1.2.3", None);
        check("1E999", None);
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
        let hear = |expect: &[u8]| {
            let (mut heard, mut count) = (vec![0; expect.len()], 0);
            while count < heard.len() {
                count += theirs.read(&mut heard[count..]).expect("read");
            }
            assert_eq!(heard, expect);
        };
        // An answer that came too late for an earlier question, once the kernel has it.
        theirs.write_all(b"7.0 g\r\n").expect("written");
        std::thread::sleep(Duration::from_millis(100));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                hear(b"SI\n");
                theirs.write_all(b"- 1.5 g\r\n").expect("written");
            });
            assert_eq!(device.read(0), Ok(Value::Real(-1.5)));
        });
        device.act(0, &Value::Real(2.0)).expect("set");
        hear(b"T 2\n");
    }
}
