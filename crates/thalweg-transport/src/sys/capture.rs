//! Questions to a device that captures pictures, and the memory that it shares (V4L2, linux/videodev2.h).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::time::Duration;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the structures of V4L2 are those of targets with 64 bits");

/// What a device captures, as far as it is of use here: members of `struct v4l2_pix_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaptureForm {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Four characters, the first in the lowest octet.
    pub(crate) pixels: u32,
    pub(crate) field: u32,
    pub(crate) bytes_per_line: u32,
}

/// A buffer that the device has filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilledBuffer {
    pub(crate) index: u32,
    pub(crate) bytes: usize,
    /// Whether the device says that the picture is damaged.
    pub(crate) is_damaged: bool,
}

/// Whether a device captures pictures, and into shared memory (`VIDIOC_QUERYCAP`).
pub(crate) fn captures(device: BorrowedFd<'_>) -> io::Result<bool> {
    let mut capability = [0; CAPABILITY_WORDS];
    call(device, READ, 0, &mut capability)?;
    // Of a device with several nodes the whole has more abilities than this one.
    let (whole, node) = (capability[21], capability[22]);
    let has = if whole & CAP_DEVICE_CAPS != 0 { node } else { whole };
    Ok(has & CAP_VIDEO_CAPTURE != 0 && has & CAP_STREAMING != 0)
}

/// What the device captures now (`VIDIOC_G_FMT`).
pub(crate) fn form(device: BorrowedFd<'_>) -> io::Result<CaptureForm> {
    let mut format = [0; FORMAT_WORDS];
    format[0] = CAPTURE;
    call(device, READ | WRITE, 4, &mut format)?;
    Ok(form_of(&format))
}

/// Asks the device to capture such pictures; returns what it will, which may be something else (`VIDIOC_S_FMT`).
pub(crate) fn set_form(device: BorrowedFd<'_>, wanted: CaptureForm) -> io::Result<CaptureForm> {
    let mut format = [0; FORMAT_WORDS];
    format[0] = CAPTURE;
    (format[2], format[3], format[4], format[5]) = (wanted.width, wanted.height, wanted.pixels, wanted.field);
    call(device, READ | WRITE, 5, &mut format)?;
    Ok(form_of(&format))
}

/// The time from frame to frame in seconds, as a fraction; `None` if the device does not tell it (`VIDIOC_G_PARM`).
pub(crate) fn frame_time(device: BorrowedFd<'_>) -> io::Result<Option<(u32, u32)>> {
    let mut parameters = [0; PARAMETERS_WORDS];
    parameters[0] = CAPTURE;
    told(call(device, READ | WRITE, 21, &mut parameters).map(|()| time_of(&parameters)))
}

/// Asks for such a time; returns the one that the device keeps (`VIDIOC_S_PARM`).
pub(crate) fn set_frame_time(device: BorrowedFd<'_>, time: (u32, u32)) -> io::Result<Option<(u32, u32)>> {
    let mut parameters = [0; PARAMETERS_WORDS];
    parameters[0] = CAPTURE;
    (parameters[3], parameters[4]) = time;
    told(call(device, READ | WRITE, 22, &mut parameters).map(|()| time_of(&parameters)))
}

/// Has the device make up to so many buffers; returns how many it made (`VIDIOC_REQBUFS`).
pub(crate) fn request_buffers(device: BorrowedFd<'_>, count: u32) -> io::Result<u32> {
    let mut request = [count, CAPTURE, MEMORY_MAPPED, 0, 0];
    call(device, READ | WRITE, 8, &mut request)?;
    Ok(request[0])
}

/// Hands a buffer to the device (`VIDIOC_QBUF`).
pub(crate) fn queue(device: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    call(device, READ | WRITE, 15, &mut buffer(index))
}

/// Takes back a buffer that is filled; `None` if there is none (`VIDIOC_DQBUF`).
pub(crate) fn dequeue(device: BorrowedFd<'_>) -> io::Result<Option<FilledBuffer>> {
    let mut buffer = buffer(0);
    match call(device, READ | WRITE, 17, &mut buffer) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    }
    let is_damaged = buffer[3] & BUFFER_ERROR != 0;
    Ok(Some(FilledBuffer { index: buffer[0], bytes: buffer[2] as usize, is_damaged }))
}

/// Begins to capture (`VIDIOC_STREAMON`).
pub(crate) fn start(device: BorrowedFd<'_>) -> io::Result<()> {
    call(device, WRITE, 18, &mut [CAPTURE])
}

/// Ends it; the device lets go of all buffers (`VIDIOC_STREAMOFF`).
pub(crate) fn stop(device: BorrowedFd<'_>) -> io::Result<()> {
    call(device, WRITE, 19, &mut [CAPTURE])
}

/// Waits until a buffer is filled or the device fails; false after `patience`.
pub(crate) fn wait(device: BorrowedFd<'_>, patience: Duration) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd: device.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = libc::c_int::try_from(patience.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: one live pollfd.
    let ready = unsafe { libc::poll(&raw mut entry, 1, millis) };
    if ready >= 0 {
        return Ok(ready > 0);
    }
    let error = io::Error::last_os_error();
    // A signal ends the wait; the caller looks and waits again.
    if error.kind() == io::ErrorKind::Interrupted { Ok(true) } else { Err(error) }
}

/// Memory of a buffer that the device fills. It is read by copying alone: while a buffer is queued, the device writes to it.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<libc::c_void>,
    bytes: usize,
}

// SAFETY: the mapping is memory of the process, which any thread may read and unmap; nothing in it depends on a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the buffer at a place (`VIDIOC_QUERYBUF`, mmap).
    pub(crate) fn of(device: BorrowedFd<'_>, index: u32) -> io::Result<Mapping> {
        let mut buffer = buffer(index);
        call(device, READ | WRITE, 9, &mut buffer)?;
        let (offset, bytes) = (libc::off_t::from(buffer[16]), buffer[18] as usize);
        let (access, sharing) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: the kernel chooses the address, so that the mapping takes the place of no other memory; the descriptor is open.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, sharing, device.as_raw_fd(), offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address).ok_or_else(|| io::Error::other("a buffer was mapped nowhere"))?;
        Ok(Mapping { address, bytes })
    }

    /// Copies the first `bytes` of the buffer, or all if there are fewer, in place of what `out` holds.
    pub(crate) fn copy_to(&self, bytes: usize, out: &mut Vec<u8>) {
        out.resize(bytes.min(self.bytes), 0);
        // SAFETY: the mapping is readable for `self.bytes`, which `out` does not exceed, and memory of `out` is its own.
        unsafe { std::ptr::copy_nonoverlapping(self.address.as_ptr().cast::<u8>(), out.as_mut_ptr(), out.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: address and length are those of the mapping, to which no reference was ever made.
        unsafe { libc::munmap(self.address.as_ptr(), self.bytes) };
    }
}

fn form_of(format: &[u32; FORMAT_WORDS]) -> CaptureForm {
    CaptureForm { width: format[2], height: format[3], pixels: format[4], field: format[5], bytes_per_line: format[6] }
}

fn time_of(parameters: &[u32; PARAMETERS_WORDS]) -> Option<(u32, u32)> {
    let tells = parameters[1] & CAP_TIME_PER_FRAME != 0 && parameters[3] != 0 && parameters[4] != 0;
    tells.then_some((parameters[3], parameters[4]))
}

/// Drivers without times do not know the question.
fn told(answer: io::Result<Option<(u32, u32)>>) -> io::Result<Option<(u32, u32)>> {
    match answer {
        Err(error) if [Some(libc::ENOTTY), Some(libc::EINVAL)].contains(&error.raw_os_error()) => Ok(None),
        other => other,
    }
}

fn buffer(index: u32) -> [u32; BUFFER_WORDS] {
    let mut buffer = [0; BUFFER_WORDS];
    (buffer[0], buffer[1], buffer[15]) = (index, CAPTURE, MEMORY_MAPPED);
    buffer
}

/// Asks or tells the device what `words` hold.
fn call<const WORDS: usize>(
    device: BorrowedFd<'_>,
    direction: u32,
    number: u32,
    words: &mut [u32; WORDS],
) -> io::Result<()> {
    let command = command(direction, number, WORDS);
    loop {
        // SAFETY: the command tells the kernel the length of `words`, which are live for the call, and the kernel reads and writes no more;
        // none of the structures here holds a pointer. The descriptor is borrowed, hence open.
        let result = unsafe { libc::ioctl(device.as_raw_fd(), command, words.as_mut_ptr()) };
        if result >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The command of a structure of so many words (`_IOC`).
const fn command(direction: u32, number: u32, words: usize) -> libc::Ioctl {
    // The longest structure has 208 octets.
    (direction << 30 | (words as u32 * 4) << 16 | (b'V' as u32) << 8 | number) as libc::Ioctl
}

/// Directions of a command: to the kernel, and from it.
const WRITE: u32 = 1;
const READ: u32 = 2;

/// Words of `struct v4l2_capability`, `v4l2_format`, `v4l2_streamparm` and `v4l2_buffer`.
const CAPABILITY_WORDS: usize = 26;
const FORMAT_WORDS: usize = 52;
const PARAMETERS_WORDS: usize = 51;
const BUFFER_WORDS: usize = 22;

/// `V4L2_BUF_TYPE_VIDEO_CAPTURE`.
const CAPTURE: u32 = 1;
/// `V4L2_MEMORY_MMAP`.
const MEMORY_MAPPED: u32 = 1;
/// `V4L2_BUF_FLAG_ERROR`.
const BUFFER_ERROR: u32 = 0x40;
const CAP_VIDEO_CAPTURE: u32 = 0x1;
const CAP_STREAMING: u32 = 0x0400_0000;
const CAP_DEVICE_CAPS: u32 = 0x8000_0000;
/// `V4L2_CAP_TIMEPERFRAME`.
const CAP_TIME_PER_FRAME: u32 = 0x1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_kernel() {
        // As strace shows them: they prove the length of each structure.
        let checks = [
            (command(READ, 0, CAPABILITY_WORDS), 0x8068_5600),
            (command(READ | WRITE, 4, FORMAT_WORDS), 0xc0d0_5604),
            (command(READ | WRITE, 5, FORMAT_WORDS), 0xc0d0_5605),
            (command(READ | WRITE, 8, 5), 0xc014_5608),
            (command(READ | WRITE, 9, BUFFER_WORDS), 0xc058_5609),
            (command(READ | WRITE, 15, BUFFER_WORDS), 0xc058_560f),
            (command(READ | WRITE, 17, BUFFER_WORDS), 0xc058_5611),
            (command(WRITE, 18, 1), 0x4004_5612),
            (command(WRITE, 19, 1), 0x4004_5613),
            (command(READ | WRITE, 21, PARAMETERS_WORDS), 0xc0cc_5615),
            (command(READ | WRITE, 22, PARAMETERS_WORDS), 0xc0cc_5616),
        ];
        for (found, expect) in checks {
            assert_eq!(found as u32, expect, "{found:x}");
        }
    }
}
