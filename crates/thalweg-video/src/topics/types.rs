//! The types of the topics.

use thalweg::Topic;

use super::{FormatWords, TopicError};
use crate::format::VideoFormat;
use crate::sdp::SDP_OCTETS_MAX;

/// A whole frame.
#[derive(Topic, Clone, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::VideoFrame")]
pub struct VideoFrame {
    /// The stream.
    #[topic(key)]
    pub stream: u32,
    /// Drawn by each publisher when it starts, as an SSRC.
    pub source: u32,
    /// Counts the frames of the source from 0.
    pub frame: u64,
    /// When the frame was taken: nanoseconds since 1970 of the sender's clock.
    pub captured: u64,
    /// The time stamp of 90 kHz.
    pub timestamp: u32,
    /// CRC-32C of the octets (RFC 9260 appendix A), where bit 0 of the flags is set.
    pub crc32c: u32,
    /// The format.
    pub format: FormatWords,
    /// 0: the lines of both fields in turn. Single fields are not sent, and refused.
    pub field: u8,
    /// Bit 0: there is a checksum. Others are 0.
    pub flags: u8,
    /// The lines from top to bottom.
    pub octets: Vec<u8>,
}

/// Some lines of a frame.
#[derive(Topic, Clone, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::VideoSlice")]
pub struct VideoSlice {
    /// The stream.
    #[topic(key)]
    pub stream: u32,
    /// Drawn by each publisher when it starts, as an SSRC.
    pub source: u32,
    /// Counts the frames of the source from 0.
    pub frame: u64,
    /// Counts the slices of the source from 0.
    pub number: u64,
    /// When the frame was taken: nanoseconds since 1970 of the sender's clock.
    pub captured: u64,
    /// The time stamp of the frame, of 90 kHz; the same for both fields.
    pub timestamp: u32,
    /// CRC-32C of the octets (RFC 9260 appendix A), where bit 0 of the flags is set.
    pub crc32c: u32,
    /// The format.
    pub format: FormatWords,
    /// 0 of a progressive frame, 1 of the first field, 2 of the second one.
    pub field: u8,
    /// Bit 0: there is a checksum. Bit 1: the last slice of its field. Others are 0.
    pub flags: u8,
    /// The first line, counted in its field from 0.
    pub first_line: u16,
    /// The number of lines.
    pub lines: u16,
    /// The lines from top to bottom.
    pub octets: Vec<u8>,
}

/// What a subscriber has to know of a stream; kept for late joiners.
#[derive(Topic, Clone, Debug, Default, PartialEq, Eq)]
#[topic(name = "thalweg::video::StreamDescription")]
pub struct VideoStreamDescription {
    /// The stream.
    #[topic(key)]
    pub stream: u32,
    /// The source that sends it now.
    pub source: u32,
    /// Name for people.
    #[topic(max_len = 255)]
    pub name: String,
    /// The format.
    pub format: FormatWords,
    /// Lines of a slice; 0 where frames come whole.
    pub slice_lines: u16,
    /// Whether frames are offered RELIABLE.
    pub is_reliable: bool,
    /// How long a frame is of use, in nanoseconds: LIFESPAN.
    pub lifespan_nanos: u64,
    /// The session description of the stream (RFC 8866), for those who read it as RTP or want its colors. The address is
    /// 0.0.0.0 and the port 9 where the stream is not sent by RTP as well (RFC 8829 §5.2.1).
    #[topic(max_len = 16384)]
    pub sdp: String,
}

const _: () = assert!(SDP_OCTETS_MAX == 16_384, "the bound in the type");

impl VideoStreamDescription {
    /// The format, checked.
    ///
    /// # Errors
    /// A word that is not known, or numbers that no format has.
    pub fn video_format(&self) -> Result<VideoFormat, TopicError> {
        self.format.try_into()
    }
}
