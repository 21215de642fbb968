//! Cameras and other devices of V4L2: frames as the device has them, copied out of the memory that it shares with this process.
//!
//! Only with the feature `v4l2`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::sys::capture::{self, CaptureForm, Mapping};

/// Frames that a device may fill while its reader is busy.
const BUFFERS_MAX: u32 = 4;
/// Buffers without which a device waits for its reader with each frame.
const BUFFERS_MIN: u32 = 2;
/// Damaged frames in a row after which a device is given up.
const DAMAGED_MAX: u32 = 60;

/// What is wanted of a camera.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CameraWish {
    /// Formats of pixels by their four characters, such as `UYVY`, the best one first.
    pub pixels: Vec<[u8; 4]>,
    /// Width and height in pixels. Default `None`: what the device captures now.
    pub size: Option<(u32, u32)>,
    /// Seconds from frame to frame, as a fraction. Default `None`: what the device keeps now.
    pub frame_time: Option<(u32, u32)>,
}

/// What a camera gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CameraForm {
    /// The format of pixels by its four characters.
    pub pixels: [u8; 4],
    /// Pixels of a line.
    pub width: u32,
    /// Lines of a frame.
    pub height: u32,
    /// The order of lines.
    pub field: CameraField,
    /// Bytes from the beginning of a line to that of the next one; 0 where the device does not tell.
    pub bytes_per_line: u32,
    /// Seconds from frame to frame, as a fraction; `None` where the device does not tell.
    pub frame_time: Option<(u32, u32)>,
}

/// The order in which a device takes the lines of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CameraField {
    /// All of one moment, from top to bottom.
    Progressive,
    /// Two fields in turn, the upper one first.
    Interlaced,
    /// Another one, by its number in `enum v4l2_field`.
    Other(u32),
}

/// An open camera that captures.
#[derive(Debug)]
pub struct Camera {
    device: File,
    buffers: Vec<Mapping>,
    form: CameraForm,
}

impl Camera {
    /// Opens the device at `path`, such as `/dev/video0`, and has it capture what comes nearest to `wish`.
    ///
    /// # Errors
    /// What the system says of the file; that it is no device which captures pictures into shared memory, is in use, or has none of the
    /// formats of pixels. Sizes and times that the device does not have are no errors; see [`Camera::form`].
    pub fn open(path: &Path, wish: &CameraWish) -> io::Result<Camera> {
        // Frames are waited for with a limit.
        let device = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let is_camera = match capture::captures(device.as_fd()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => false,
            other => other?,
        };
        if !is_camera {
            return Err(unsupported("it is no device of V4L2 that captures pictures into shared memory".to_owned()));
        }
        let form = choose(&device, wish)?;
        let buffers = share(&device)?;
        capture::start(device.as_fd())?;
        Ok(Camera { device, buffers, form })
    }

    /// What it captures.
    pub fn form(&self) -> CameraForm {
        self.form
    }

    /// Copies the next frame in place of what `frame` holds; damaged ones are passed over.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when none comes within `patience`; what the system says when the device is gone or fails.
    pub fn take(&mut self, patience: Duration, frame: &mut Vec<u8>) -> io::Result<()> {
        let device = self.device.as_fd();
        for _ in 0..DAMAGED_MAX {
            if !capture::wait(device, patience)? {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no frame came within {patience:?}")));
            }
            let Some(filled) = capture::dequeue(device)? else { continue };
            let buffer = usize::try_from(filled.index).ok().and_then(|index| self.buffers.get(index));
            let buffer = buffer.ok_or_else(|| io::Error::other("the device filled a buffer that it does not have"))?;
            if !filled.is_damaged {
                buffer.copy_to(filled.bytes, frame);
            }
            capture::queue(device, filled.index)?;
            if !filled.is_damaged {
                return Ok(());
            }
        }
        Err(io::Error::other(format!("the device says of {DAMAGED_MAX} frames in a row that they are damaged")))
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        // A device that is gone has ended already.
        let _ = capture::stop(self.device.as_fd());
    }
}

/// Has the device capture what comes nearest to a wish.
fn choose(device: &File, wish: &CameraWish) -> io::Result<CameraForm> {
    let device = device.as_fd();
    let now = capture::form(device)?;
    let (width, height) = wish.size.unwrap_or((now.width, now.height));
    let mut found = None;
    for name in &wish.pixels {
        let pixels = u32::from_le_bytes(*name);
        found = ask_for(device, CaptureForm { width, height, pixels, field: FIELD_ANY, ..now })?;
        if found.is_some() {
            break;
        }
    }
    let Some(CaptureForm { width, height, pixels, field, bytes_per_line, .. }) = found else {
        let names = wish.pixels.iter().map(|name| text(*name)).collect::<Vec<_>>().join(" or ");
        let own = text(now.pixels.to_le_bytes());
        return Err(unsupported(format!("it does not give pixels as {names}; it gives them as {own}")));
    };
    let frame_time = match wish.frame_time {
        Some(time) => capture::set_frame_time(device, time)?,
        None => capture::frame_time(device)?,
    };
    let field = match field {
        FIELD_NONE => CameraField::Progressive,
        FIELD_INTERLACED_TB => CameraField::Interlaced,
        // Of the standards with 525 lines it means the lower field first.
        FIELD_INTERLACED if ![480, 486].contains(&height) => CameraField::Interlaced,
        other => CameraField::Other(other),
    };
    Ok(CameraForm { pixels: pixels.to_le_bytes(), width, height, field, bytes_per_line, frame_time })
}

/// Asks the device for such pictures; `None` where it has other pixels.
fn ask_for(device: BorrowedFd<'_>, wanted: CaptureForm) -> io::Result<Option<CaptureForm>> {
    match capture::set_form(device, wanted) {
        Ok(given) => Ok(Some(given).filter(|given| given.pixels == wanted.pixels)),
        // Some drivers refuse what they do not have, where others give something else.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maps the buffers of the device, and hands them to it.
fn share(device: &File) -> io::Result<Vec<Mapping>> {
    let device = device.as_fd();
    let count = capture::request_buffers(device, BUFFERS_MAX)?;
    if count < BUFFERS_MIN {
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, format!("the device has memory for {count} frames")));
    }
    let share = |index| {
        let mapping = Mapping::of(device, index)?;
        capture::queue(device, index)?;
        Ok(mapping)
    };
    (0..count).map(share).collect()
}

fn unsupported(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

/// Four characters as text.
fn text(name: [u8; 4]) -> String {
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// `enum v4l2_field`.
const FIELD_ANY: u32 = 0;
const FIELD_NONE: u32 = 1;
const FIELD_INTERLACED: u32 = 4;
const FIELD_INTERLACED_TB: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_camera_is_told_from_one() {
        let wish = CameraWish { pixels: vec![*b"UYVY"], ..CameraWish::default() };
        let refused = |path: &str| Camera::open(Path::new(path), &wish).unwrap_err();
        assert_eq!(refused("/nonexistent/video0").kind(), io::ErrorKind::NotFound);
        let other = refused("/dev/null");
        assert_eq!(other.kind(), io::ErrorKind::Unsupported, "{other}");
        assert!(other.to_string().contains("no device of V4L2"), "{other}");
    }
}
