//! Options that tell the form of a picture.

use clap::Args;
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat, parse_size};

use crate::outcome::Failure;

/// The form of a picture.
#[derive(Args, Clone, Debug, Default)]
pub struct PictureOptions {
    /// Let a picture have WIDTHxHEIGHT pixels, up to 8192x8192 (default: 1920x1080).
    #[arg(long, value_name = "WIDTHxHEIGHT", value_parser = parse_size)]
    pub size: Option<(u16, u16)>,

    /// Show RATE pictures a second, exactly: 25 or 30000/1001 (default: 30000/1001).
    #[arg(long, value_name = "RATE")]
    pub rate: Option<FrameRate>,

    /// Code pixels as yuv422-10 (4:2:2 with 10 bits), yuv422-8 or rgb8 (default: yuv422-10).
    #[arg(long, value_name = "PIXELS")]
    pub format: Option<PixelFormat>,

    /// Order lines as progressive, interlaced or psf, which sends the two fields of one moment (default: progressive).
    #[arg(long, value_name = "ORDER")]
    pub scan: Option<Scan>,
}

impl PictureOptions {
    /// The format.
    ///
    /// # Errors
    /// The options do not fit each other.
    pub fn format(&self) -> Result<VideoFormat, Failure> {
        let size = self.size.unwrap_or((1920, 1080));
        let pixels = self.format.unwrap_or(PixelFormat::Yuv422Bits10);
        let scan = self.scan.unwrap_or(Scan::Progressive);
        VideoFormat::new(pixels, size, self.rate(), scan).map_err(|error| Failure::Usage(error.to_string()))
    }

    /// The rate, or the default.
    pub fn rate(&self) -> FrameRate {
        self.rate.unwrap_or(FrameRate::NTSC)
    }

    /// Refuses options where `teller`, such as a file, tells the form of the picture.
    ///
    /// # Errors
    /// One of these options was given.
    pub fn refuse_beside(&self, teller: &str) -> Result<(), Failure> {
        let given = [
            ("--size", self.size.is_some()),
            ("--rate", self.rate.is_some()),
            ("--format", self.format.is_some()),
            ("--scan", self.scan.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(Failure::Usage(format!("{teller} tells the form of its pictures; leave {name} out")))
            }
            None => Ok(()),
        }
    }
}
