//! Session descriptions (RFC 8866) of raw video (RFC 4175, SMPTE ST 2110-20) and linear audio (RFC 3190, ST 2110-30).
#![expect(dead_code, reason = "the reader and the writer follow")]

mod audio;
mod error;
mod fmtp;
mod tokens;
mod video;

pub use audio::{AudioDescription, AudioEncoding};
pub use error::{SdpError, SdpFault};

/// The longest description that is read, in octets. Chosen by us: one of a camera has 1,000, and SAP carries less.
pub const SDP_OCTETS_MAX: usize = 16 * 1024;
pub use tokens::{ColorSampling, Colorimetry, PackingMode, QuantizationRange, SampleDepth, TransferCharacteristics};
pub use video::{StudioParameters, VideoDescription};
