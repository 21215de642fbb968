//! Session descriptions (RFC 8866) of raw video (RFC 4175, SMPTE ST 2110-20) and linear audio (RFC 3190, ST 2110-30).
//!
//! [`SessionDescription::parse`] reads one and [`SessionDescription::to_text`] writes one. Unknown lines, attributes and keys
//! are passed over, as RFC 8866 §5 asks, and so are media of other kinds. A stream of raw video or linear audio that
//! contradicts itself or lacks what a receiver needs is refused with the stream and the key named.

mod audio;
mod error;
mod fmtp;
mod read;
mod session;
#[cfg(test)]
mod tests;
mod tokens;
mod video;
mod write;

pub use audio::{AudioDescription, AudioEncoding};
pub use error::{SdpError, SdpFault};
pub use session::{
    MediaClockSource, MediaDescription, ReferenceClock, Retransmission, SDP_OCTETS_MAX, STREAMS_MAX,
    SessionDescription, StreamDescription, StreamPath,
};
pub use tokens::{ColorSampling, Colorimetry, PackingMode, QuantizationRange, SampleDepth, TransferCharacteristics};
pub use video::{EXTENDED_UDP_OCTETS, StudioParameters, VideoDescription};
