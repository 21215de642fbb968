//! Frames as a subscriber hands them out.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;

use thalweg::Payload;
use thalweg::types::Instant;

use crate::receiver::LineSet;

/// The octets of a frame, on loan: of the sample that they came in, or of the buffer that slices were put into. Let go of
/// them to have the memory used again.
#[derive(Clone)]
pub struct PictureOctets(Held);

#[derive(Clone)]
enum Held {
    Sample(Payload),
    Assembled(Arc<[u8]>),
}

impl PictureOctets {
    pub(super) fn of_sample(payload: &Payload, range: Range<usize>) -> PictureOctets {
        PictureOctets(Held::Sample(payload.slice(range)))
    }

    pub(super) fn assembled(octets: Arc<[u8]>) -> PictureOctets {
        PictureOctets(Held::Assembled(octets))
    }
}

impl Deref for PictureOctets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Sample(payload) => payload,
            Held::Assembled(octets) => octets,
        }
    }
}

impl fmt::Debug for PictureOctets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PictureOctets({})", self.len())
    }
}

/// A frame at its time.
#[derive(Clone, Debug)]
pub struct TopicPicture {
    /// The lines from top to bottom.
    pub octets: PictureOctets,
    /// The time stamp of 90 kHz.
    pub timestamp: u32,
    /// When the frame was taken, since 1970 by the sender's clock; `None` where that is not known any more.
    pub captured: Option<Duration>,
    /// When its first sample came.
    pub first_arrival: Instant,
    /// When its last missing line came.
    pub completed: Option<Instant>,
    /// Lines that are not from this frame; empty for a complete one.
    pub concealed_lines: LineSet,
    /// Pixel groups that are not from this frame.
    pub concealed_groups: usize,
}

impl TopicPicture {
    /// Whether every pixel is from this frame.
    pub fn is_complete(&self) -> bool {
        self.concealed_groups == 0
    }
}
