//! `thalweg video`: uncompressed pictures over RTP.

mod analyse;
mod analysed;
mod description;
mod ends;
mod figures;
mod hearing;
mod listening;
mod live;
mod offered;
mod paced;
mod packets;
mod path;
mod picture;
mod ports;
mod received;
mod recv;
mod sdp;
mod send;
mod sent;
mod sound;
mod sounded;

use clap::{Args, Subcommand};

use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Sends and receives uncompressed video over RTP (RFC 4175, SMPTE ST 2110-20).
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg video recv --bind 127.0.0.1:5004 & thalweg video send --to 127.0.0.1:5004 --seconds 5"
))]
pub struct VideoOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub action: VideoAction,
}

/// Subcommands of `video`.
#[derive(Debug, Subcommand)]
pub enum VideoAction {
    /// Sends a test picture or a file, paced over each frame time, and repeats packets that receivers ask for. Exit code 1 when frames were
    /// dropped here.
    #[command(after_help = crate::after_help!(
        "thalweg video send --to 127.0.0.1:5004 --seconds 5",
        "thalweg video send --to 239.1.2.3:5004 --source y4m:film.y4m --sound wav:film.wav --sdp film.sdp",
        "thalweg video send --to 192.0.2.7:5004 --size 1280x720 --rate 60000/1001 --mtu 1500 --json"
    ))]
    Send(send::VideoSendOptions),
    /// Receives a picture, asks for lost packets, and presents each frame at its time. Exit code 1 when frames were lost or a check failed.
    #[command(after_help = crate::after_help!(
        "thalweg video recv --bind 0.0.0.0:5004 --seconds 5 --json",
        "thalweg video recv --sdp film.sdp --sink file:film.y4m --sound-sink wav:film.wav --playout-frames 4"
    ))]
    Recv(recv::VideoReceiveOptions),
    /// Measures a stream without putting its pictures together: how it is cut and its lines are counted, whether it is paced as ST 2110-21
    /// asks, and how regularly it arrives. It takes the place of the receiver, or hears a group beside it.
    #[command(after_help = crate::after_help!(
        "thalweg video analyse --bind 0.0.0.0:5004 --seconds 10",
        "thalweg video analyse --sdp film.sdp --json"
    ))]
    Analyse(analyse::VideoAnalyseOptions),
    /// Writes the session description (SDP) of a stream, or explains one, or those that are announced.
    #[command(after_help = crate::after_help!(
        "thalweg video sdp --to 239.1.2.3:5004 --size 1280x720 --rate 50 --out film.sdp",
        "thalweg video sdp --explain film.sdp",
        "thalweg video sdp --listen 40"
    ))]
    Sdp(sdp::VideoDescribeOptions),
}

/// Does what the subcommand says.
///
/// # Errors
/// As the subcommand.
pub fn run(options: &VideoOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.action {
        VideoAction::Send(options) => send::run(options, interrupt),
        VideoAction::Recv(options) => recv::run(options, interrupt),
        VideoAction::Analyse(options) => analyse::run(options, interrupt),
        VideoAction::Sdp(options) => sdp::run(options, interrupt),
    }
}
