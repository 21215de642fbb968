//! A sink that proves of each line which frame it is from.

use super::{FrameSink, SinkError};
use crate::format::VideoFormat;
use crate::picture::{PictureError, TestPicture};
use crate::receiver::ReceivedPicture;

/// Checks test pictures: each line that the receiver calls received must be from one frame, and frames must come in their order.
#[derive(Clone, Debug)]
pub struct VerifySink {
    picture: TestPicture,
    summary: VerifySummary,
}

/// What a [`VerifySink`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifySummary {
    /// Frames that were checked.
    pub frames: u64,
    /// Frames of which every line is from one frame, with nothing concealed.
    pub proved: u64,
    /// Frames with a line that is neither from their frame nor concealed, or in which no line tells a number: the receiver is
    /// wrong, or the sender sends something else than the test picture.
    pub wrong: u64,
    /// Lines of such frames.
    pub lines_wrong: u64,
    /// Concealed lines.
    pub lines_concealed: u64,
    /// Frames with the number of the one before, or an earlier one.
    pub out_of_order: u64,
    /// Numbers that were passed over: lost frames, and frames that a slow check made the receiver let go.
    pub numbers_missing: u64,
    /// The number of the last frame that told one.
    pub last: Option<u32>,
}

impl VerifySummary {
    /// Whether everything that was checked is as it should be; frames may be concealed or missing.
    pub fn is_proved(&self) -> bool {
        self.frames > 0 && self.wrong == 0 && self.out_of_order == 0
    }
}

impl VerifySink {
    /// Checks test pictures of a format.
    ///
    /// # Errors
    ///
    /// A line is too short for the picture's code.
    pub fn new(format: VideoFormat) -> Result<VerifySink, PictureError> {
        Ok(VerifySink { picture: TestPicture::new(format)?, summary: VerifySummary::default() })
    }

    /// What was found so far.
    pub fn summary(&self) -> VerifySummary {
        self.summary
    }
}

impl FrameSink for VerifySink {
    fn take(&mut self, picture: &ReceivedPicture) -> Result<(), SinkError> {
        let report = self.picture.check(&picture.octets, &picture.concealed_lines);
        let concealed = picture.concealed_lines.count();
        let summary = &mut self.summary;
        summary.frames += 1;
        summary.lines_wrong += report.lines_wrong as u64;
        summary.lines_concealed += concealed as u64;
        // A frame that is concealed as a whole tells no number of its own.
        let is_all_concealed = concealed == usize::from(self.picture.format().height());
        if !report.is_proved() && !is_all_concealed {
            summary.wrong += 1;
        }
        summary.proved += u64::from(report.is_proved() && concealed == 0);
        if let Some(number) = report.number {
            // Numbers wrap: the nearer direction counts.
            let step = summary.last.map_or(1, |last| number.wrapping_sub(last) as i32);
            summary.out_of_order += u64::from(step <= 0);
            summary.numbers_missing += u64::try_from(step - 1).unwrap_or(0);
            summary.last = Some(number);
        }
        Ok(())
    }
}
