//! Small text files of the kernel.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::device::DeviceError;

/// More than any file that is read here has.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// The text of a file of `/proc` or `/sys`, trimmed.
pub fn text(path: &Path) -> Result<String, DeviceError> {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_MAX_BYTES).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(DeviceError::Absent(format!("{}: {error}", path.display())))
        }
        Err(error) => Err(DeviceError::Failed(format!("{}: {error}", path.display()))),
    }
}

/// A number that stood in a file.
pub fn number<T: std::str::FromStr>(path: &Path, text: Option<&str>, what: &str) -> Result<T, DeviceError> {
    let found = text.and_then(|text| text.parse().ok());
    found.ok_or_else(|| DeviceError::Failed(format!("{}: no {what} where one should be", path.display())))
}
