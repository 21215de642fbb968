//! The test picture as a source.

use super::{Filled, FrameSource, SourceError};
use crate::format::VideoFormat;
use crate::picture::{PictureError, TestPicture};

/// Test pictures, numbered from 0, for ever; numbers wrap after 4.5 years at 30 a second.
#[derive(Clone, Debug)]
pub struct PictureSource {
    picture: TestPicture,
    next: u32,
}

impl PictureSource {
    /// Test pictures of a format.
    ///
    /// # Errors
    ///
    /// A line is too short for the picture's code.
    pub fn new(format: VideoFormat) -> Result<PictureSource, PictureError> {
        Ok(PictureSource { picture: TestPicture::new(format)?, next: 0 })
    }
}

impl FrameSource for PictureSource {
    fn format(&self) -> VideoFormat {
        self.picture.format()
    }

    fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, SourceError> {
        self.picture.draw(self.next, frame);
        self.next = self.next.wrapping_add(1);
        Ok(Filled::Frame)
    }
}
