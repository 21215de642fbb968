//! `thalweg video`: uncompressed pictures over RTP.

mod description;
mod packets;
mod path;
mod picture;
mod sdp;

use clap::{Args, Subcommand};

use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Sends and receives uncompressed video over RTP (RFC 4175, SMPTE ST 2110-20).
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg video sdp --to 239.1.2.3:5004 --out film.sdp"
))]
pub struct VideoOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub action: VideoAction,
}

/// Subcommands of `video`.
#[derive(Debug, Subcommand)]
pub enum VideoAction {
    /// Writes the session description (SDP) of a stream, or explains one.
    #[command(after_help = crate::after_help!(
        "thalweg video sdp --to 239.1.2.3:5004 --size 1280x720 --rate 50 --out film.sdp",
        "thalweg video sdp --explain film.sdp"
    ))]
    Sdp(sdp::VideoDescribeOptions),
}

/// Does what the subcommand says.
///
/// # Errors
/// As the subcommand.
pub fn run(options: &VideoOptions, _: &Interrupt) -> Result<(), Failure> {
    match &options.action {
        VideoAction::Sdp(options) => sdp::run(options),
    }
}
