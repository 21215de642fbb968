//! Why a device gave no answer.

use std::fmt;
use std::time::Duration;

/// Why a device could not be read or driven; the text says where and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// It is not there, or not any more; it is opened anew at the next command.
    Absent(String),
    /// It is there and the command failed.
    Failed(String),
    /// The command does not fit the channel.
    Refused(String),
    /// No answer within this time; the command may still run.
    TimedOut(Duration),
    /// An earlier command has run over its time and still runs.
    Unresponsive,
    /// Too many commands wait already.
    Overloaded,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::Absent(reason) => write!(f, "the device is not there: {reason}"),
            DeviceError::Failed(reason) => write!(f, "the device failed: {reason}"),
            DeviceError::Refused(reason) => f.write_str(reason),
            DeviceError::TimedOut(time) => {
                write!(f, "the device gave no answer within {} ms", time.as_millis())
            }
            DeviceError::Unresponsive => f.write_str("the device still works on an earlier command that is overdue"),
            DeviceError::Overloaded => f.write_str("too many commands wait for the device; ask less often"),
        }
    }
}

impl std::error::Error for DeviceError {}
