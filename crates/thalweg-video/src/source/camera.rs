//! Frames of a camera (V4L2), with their pixels in the order of packets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_transport::camera::{Camera, CameraField, CameraForm, CameraWish};

use super::captured::PixelOrder;
use super::{Filled, FrameSource, SourceError};
use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

/// What is wanted of a camera; what is left out is what it captures now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CameraWishes {
    /// The format of pixels. Default: 4:2:2 with 8 bits.
    pub pixels: Option<PixelFormat>,
    /// Width and height.
    pub size: Option<(u16, u16)>,
    /// Frames a second.
    pub rate: Option<FrameRate>,
    /// The order of lines.
    pub scan: Option<Scan>,
}

/// The frames of a V4L2 device. A camera keeps its own time: frame times for which none came are told as missed.
pub struct CameraSource {
    path: PathBuf,
    camera: Camera,
    order: PixelOrder,
    bytes_per_line: usize,
    format: VideoFormat,
    /// The frame as the device has it.
    captured: Vec<u8>,
}

impl CameraSource {
    /// Opens the device at `path`, such as `/dev/video0`.
    ///
    /// # Errors
    /// It cannot be opened, or captures no such pictures.
    pub fn open(path: &Path, wishes: &CameraWishes) -> Result<CameraSource, SourceError> {
        let refused = |reason| SourceError::Camera { path: path.to_owned(), reason };
        let pixels = wishes.pixels.unwrap_or(PixelFormat::Yuv422Bits8);
        let orders = PixelOrder::of(pixels);
        if orders.is_empty() {
            return Err(refused("pixels of cameras have 8 bits; give yuv422-8 or rgb8".to_owned()));
        }
        let wish = CameraWish {
            pixels: orders.iter().map(|order| order.name()).collect(),
            size: wishes.size.map(|(width, height)| (width.into(), height.into())),
            frame_time: wishes.rate.map(|rate| (rate.denominator(), rate.numerator())),
        };
        let camera = Camera::open(path, &wish).map_err(|error| refused(error.to_string()))?;
        let form = camera.form();
        let format = format_of(pixels, &form, wishes).map_err(refused)?;
        let order = orders.iter().find(|order| order.name() == form.pixels).copied();
        let order = order.ok_or_else(|| refused("it gives other pixels than it was asked for".to_owned()))?;
        let bytes_per_line = usize::try_from(form.bytes_per_line).unwrap_or(0).max(format.line_octets());
        Ok(CameraSource { path: path.to_owned(), camera, order, bytes_per_line, format, captured: Vec::new() })
    }
}

impl FrameSource for CameraSource {
    fn format(&self) -> VideoFormat {
        self.format
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        let failed = |reason| SourceError::Camera { path: self.path.clone(), reason };
        self.camera.take(PATIENCE, &mut self.captured).map_err(|error| failed(error.to_string()))?;
        if self.order.pack(&self.captured, (self.format.line_octets(), self.bytes_per_line), frame) {
            return Ok(Filled::Frame);
        }
        Err(failed(format!("a frame of it has {} octets, too few for {}", self.captured.len(), self.format)))
    }
}

/// The format of what a camera gives; it has to be what was wanted, as far as that was told.
fn format_of(pixels: PixelFormat, form: &CameraForm, wishes: &CameraWishes) -> Result<VideoFormat, String> {
    let size = u16::try_from(form.width).ok().zip(u16::try_from(form.height).ok());
    let size = size.ok_or_else(|| format!("its pictures of {}x{} are too large", form.width, form.height))?;
    if wishes.size.is_some_and(|wanted| wanted != size) {
        return Err(format!("it gives pictures of {}x{}; give --size {}x{}", size.0, size.1, size.0, size.1));
    }
    let rate = match (form.frame_time, wishes.rate) {
        (Some((seconds, frames)), _) => FrameRate::new(frames, seconds).map_err(|error| error.to_string())?,
        (None, Some(rate)) => rate,
        (None, None) => return Err("it does not tell how many frames a second it gives; give --rate".to_owned()),
    };
    if wishes.rate.is_some_and(|wanted| wanted != rate) {
        return Err(format!("it gives {rate} frames a second; give --rate {rate}"));
    }
    let scan = match form.field {
        CameraField::Progressive => Scan::Progressive,
        CameraField::Interlaced => Scan::Interlaced,
        CameraField::Other(number) => {
            return Err(format!(
                "it orders its lines as V4L2's field {number}, and frames or pairs of fields are sent"
            ));
        }
    };
    if wishes.scan.is_some_and(|wanted| wanted != scan) {
        return Err(format!("it orders its lines as {scan}; give --scan {scan}"));
    }
    VideoFormat::new(pixels, size, rate, scan).map_err(|error| error.to_string())
}

/// How long a frame is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a camera's form, and why not.
    #[track_caller]
    fn check(form: CameraForm, wishes: CameraWishes, expect: &str) {
        let found = format_of(PixelFormat::Yuv422Bits8, &form, &wishes);
        assert_eq!(found.map_or_else(|reason| reason, |format| format.to_string()), expect);
    }

    #[test]
    fn a_camera_has_to_give_what_is_wanted_of_it() {
        let field = CameraField::Progressive;
        let form = CameraForm {
            pixels: *b"YUYV",
            width: 640,
            height: 480,
            field,
            bytes_per_line: 1280,
            frame_time: Some((1, 30)),
        };
        let none = CameraWishes::default();
        check(form, none, "640x480 yuv422-8 30 progressive");
        let all = CameraWishes {
            size: Some((640, 480)),
            rate: FrameRate::new(30, 1).ok(),
            scan: Some(Scan::Progressive),
            pixels: None,
        };
        check(form, all, "640x480 yuv422-8 30 progressive");
        check(CameraForm { field: CameraField::Interlaced, ..form }, none, "640x480 yuv422-8 30 interlaced");
        check(CameraForm { width: 800, ..form }, all, "it gives pictures of 800x480; give --size 800x480");
        let slower = CameraForm { frame_time: Some((2, 15)), ..form };
        check(slower, all, "it gives 15/2 frames a second; give --rate 15/2");
        let untold = CameraForm { frame_time: None, ..form };
        check(untold, all, "640x480 yuv422-8 30 progressive");
        check(untold, none, "it does not tell how many frames a second it gives; give --rate");
        let scan = Some(Scan::Interlaced);
        check(form, CameraWishes { scan, ..none }, "it orders its lines as progressive; give --scan progressive");
        let alternating = CameraForm { field: CameraField::Other(7), ..form };
        check(alternating, none, "it orders its lines as V4L2's field 7, and frames or pairs of fields are sent");
    }

    #[test]
    fn what_is_no_camera_is_told_with_its_path() {
        let refused =
            |path: &str, wishes| CameraSource::open(Path::new(path), &wishes).err().map(|error| error.to_string());
        let missing = refused("/nonexistent/video0", CameraWishes::default()).expect("there is none");
        assert!(missing.starts_with("the camera /nonexistent/video0: "), "{missing}");
        let ten_bits = CameraWishes { pixels: Some(PixelFormat::Yuv422Bits10), ..CameraWishes::default() };
        assert!(refused("/dev/null", ten_bits).is_some_and(|reason| reason.contains("give yuv422-8 or rgb8")));
    }
}
