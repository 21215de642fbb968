//! Other projects' programs that send and receive the picture.

use std::fmt;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// Another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoPeer {
    /// `rtpvrawpay` and `rtpvrawdepay`.
    Gstreamer,
    /// The muxer and demuxer of RTP with `bitpacked`.
    Ffmpeg,
}

impl VideoPeer {
    /// All of them.
    pub const ALL: [VideoPeer; 2] = [VideoPeer::Gstreamer, VideoPeer::Ffmpeg];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            VideoPeer::Gstreamer => "gstreamer",
            VideoPeer::Ffmpeg => "ffmpeg",
        }
    }

    /// The peer of this name.
    pub fn named(name: &str) -> Option<VideoPeer> {
        VideoPeer::ALL.into_iter().find(|peer| peer.name() == name)
    }

    /// Its version, or why it does not take part.
    ///
    /// # Errors
    /// Its program is not there or lacks a part.
    pub fn version(self) -> Result<String, String> {
        match self {
            VideoPeer::Gstreamer => {
                for element in ["rtpvrawpay", "rawvideoparse", "imagefreeze", "udpsink"] {
                    said("gst-inspect-1.0", &["--exists", element])
                        .map_err(|why| format!("it has no element {element} ({why})"))?;
                }
                let text = said("gst-launch-1.0", &["--version"])?;
                Ok(text.lines().find(|line| line.starts_with("GStreamer")).unwrap_or("of unknown version").to_owned())
            }
            VideoPeer::Ffmpeg => {
                let text = said("ffmpeg", &["-version"])?;
                Ok(text.lines().next().unwrap_or_default().split(" Copyright").next().unwrap_or_default().to_owned())
            }
        }
    }

    /// What to do where it is not there.
    pub fn remedy(self) -> &'static str {
        match self {
            VideoPeer::Gstreamer => {
                "install gstreamer1.0-tools, gstreamer1.0-plugins-base and gstreamer1.0-plugins-good, or leave it out with --peers"
            }
            VideoPeer::Ffmpeg => "install ffmpeg, or leave it out with --peers",
        }
    }
}

impl fmt::Display for VideoPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            VideoPeer::Gstreamer => "GStreamer",
            VideoPeer::Ffmpeg => "FFmpeg",
        })
    }
}

/// What a program prints, or why it does not.
pub(super) fn said(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} {}: {}", words.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
