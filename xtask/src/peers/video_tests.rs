//! Senders and receivers of other programs for the tests of pictures, from Debian's packages.

use std::ffi::OsString;
use std::process::Command;

use super::{TestPeer, debian_packages, tshark};
use crate::Outcome;
use crate::workspace::{has, output};

/// All of them.
pub const PEERS: [TestPeer; 4] = [
    TestPeer { name: "gstreamer", prepare: gstreamer },
    TestPeer { name: "ffmpeg", prepare: ffmpeg },
    TestPeer { name: "python", prepare: python },
    TestPeer { name: "dissector", prepare: || Ok(vec![("THALWEG_TSHARK", tshark()?.into())]) },
];

/// The launcher, and the plug-ins with raw video: 10 MB.
fn gstreamer() -> Outcome<Vec<(&'static str, OsString)>> {
    // Each with one of its elements that the tests use.
    let elements = ["rtpvrawpay", "rawvideoparse", "rtpsession"];
    let has_all =
        || elements.iter().all(|name| output(Command::new("gst-inspect-1.0").args(["--exists", name])).is_ok());
    if !has("gst-launch-1.0") || !has_all() {
        debian_packages(&["gstreamer1.0-tools", "gstreamer1.0-plugins-base", "gstreamer1.0-plugins-good"])?;
    }
    if has_all() { Ok(Vec::new()) } else { Err(format!("GStreamer has not all of {}", elements.join(", "))) }
}

/// The program with its libraries: 57 MB.
fn ffmpeg() -> Outcome<Vec<(&'static str, OsString)>> {
    if !has("ffmpeg") {
        debian_packages(&["ffmpeg"])?;
    }
    Ok(Vec::new())
}

/// An interpreter; the reader needs the standard library alone.
fn python() -> Outcome<Vec<(&'static str, OsString)>> {
    if !has("python3") {
        debian_packages(&["python3"])?;
    }
    Ok(Vec::new())
}
