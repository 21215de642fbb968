//! Registers of chips on I²C buses.

use std::path::PathBuf;

use i2cdev::core::I2CDevice;
use i2cdev::linux::{LinuxI2CDevice, LinuxI2CError};

use crate::device::{Access, Channel, Description, Device, DeviceError, Driver, Unit, Value, ValueKind};

/// Registers that hold one quantity each. Only those that are named are touched: a read changes the state of some chips.
#[derive(Clone, Debug, Default)]
pub struct I2c {
    registers: Vec<Register>,
}

/// A register and the meaning of its content: `content × scale + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Names the device: `cellar`.
    pub name: String,
    /// The bus, such as `/dev/i2c-1`.
    pub bus: PathBuf,
    /// The chip's address of 7 bits.
    pub address: u16,
    /// The register's number.
    pub register: u8,
    /// Its width and byte order.
    pub width: Width,
    /// Value of one step.
    pub scale: f64,
    /// Value of a content of zero.
    pub offset: f64,
    /// The kind of quantity and its unit.
    pub quantity: (&'static str, Unit),
    /// Whether it can be written.
    pub access: Access,
}

/// The width of a register; wider ones are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte without sign.
    Byte,
    /// Two bytes with sign, the low one first, as SMBus has it.
    WordLittle,
    /// Two bytes with sign, the high one first, as most sensors have it.
    WordBig,
}

impl I2c {
    /// A driver of these registers.
    pub fn new(registers: Vec<Register>) -> I2c {
        I2c { registers }
    }
}

impl Driver for I2c {
    fn name(&self) -> &str {
        "i2c"
    }

    fn find(&self) -> Result<Vec<Description>, DeviceError> {
        let describe = |register: &Register| Description {
            name: register.name.clone(),
            title: format!(
                "register {:#04x} of {:#04x} on {}",
                register.register,
                register.address,
                register.bus.display()
            ),
            channels: vec![Channel {
                name: "value".to_owned(),
                quantity: register.quantity.0,
                kind: ValueKind::Real,
                unit: register.quantity.1,
                access: register.access,
            }],
        };
        Ok(self.registers.iter().filter(|register| register.bus.exists()).map(describe).collect())
    }

    fn open(&self, description: &Description) -> Result<Box<dyn Device>, DeviceError> {
        let register = self.registers.iter().find(|register| register.name == description.name);
        let register =
            register.ok_or_else(|| DeviceError::Absent(format!("no register is called {}", description.name)))?;
        let chip = LinuxI2CDevice::new(&register.bus, register.address).map_err(|error| gone(register, &error))?;
        Ok(Box::new(OpenRegister { chip, register: register.clone() }))
    }
}

struct OpenRegister {
    chip: LinuxI2CDevice,
    register: Register,
}

impl Device for OpenRegister {
    fn read(&mut self, _channel: usize) -> Result<Value, DeviceError> {
        let number = self.register.register;
        let content = match self.register.width {
            Width::Byte => self.chip.smbus_read_byte_data(number).map(f64::from),
            Width::WordLittle => self.chip.smbus_read_word_data(number).map(|word| f64::from(word.cast_signed())),
            Width::WordBig => {
                self.chip.smbus_read_word_data(number).map(|word| f64::from(word.swap_bytes().cast_signed()))
            }
        };
        let content = content.map_err(|error| gone(&self.register, &error))?;
        Ok(Value::Real(content * self.register.scale + self.register.offset))
    }

    fn act(&mut self, _channel: usize, value: &Value) -> Result<(), DeviceError> {
        let content = content(&self.register, value)?;
        let number = self.register.register;
        let written = match self.register.width {
            Width::Byte => self.chip.smbus_write_byte_data(number, content as u8),
            Width::WordLittle => self.chip.smbus_write_word_data(number, content as u16),
            Width::WordBig => self.chip.smbus_write_word_data(number, (content as u16).swap_bytes()),
        };
        written.map_err(|error| gone(&self.register, &error))
    }
}

/// Register content for a value, within the register's range.
fn content(register: &Register, value: &Value) -> Result<i32, DeviceError> {
    let Value::Real(real) = value else {
        return Err(DeviceError::Refused(format!("{value} is no number")));
    };
    let steps = ((real - register.offset) / register.scale).round();
    let range = match register.width {
        Width::Byte => 0.0..=255.0,
        Width::WordLittle | Width::WordBig => -32768.0..=32767.0,
    };
    if !range.contains(&steps) {
        return Err(DeviceError::Refused(format!("{real} does not fit the register {}", register.name)));
    }
    Ok(steps as i32)
}

fn gone(register: &Register, error: &LinuxI2CError) -> DeviceError {
    DeviceError::Absent(format!("chip {:#04x} on {}: {error}", register.address, register.bus.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(width: Width) -> Register {
        Register {
            name: "r".to_owned(),
            bus: "/nonexistent/i2c-1".into(),
            address: 0x48,
            register: 0,
            width,
            scale: 0.5,
            offset: -40.0,
            quantity: ("temperature", Unit::CELSIUS),
            access: Access::ReadAndAct,
        }
    }

    #[test]
    fn values_that_do_not_fit_the_register_are_refused() {
        assert_eq!(content(&register(Width::Byte), &Value::Real(87.5)), Ok(255));
        assert!(content(&register(Width::Byte), &Value::Real(88.0)).is_err());
        assert_eq!(content(&register(Width::WordBig), &Value::Real(-41.0)), Ok(-2));
        assert!(content(&register(Width::WordBig), &Value::Real(f64::NAN)).is_err());
    }

    #[test]
    fn a_bus_that_is_not_there_has_no_devices_and_cannot_be_opened() {
        let driver = I2c::new(vec![register(Width::Byte)]);
        assert_eq!(driver.find(), Ok(Vec::new()));
        let description = Description { name: "r".to_owned(), title: String::new(), channels: Vec::new() };
        assert!(matches!(driver.open(&description), Err(DeviceError::Absent(_))));
    }
}
