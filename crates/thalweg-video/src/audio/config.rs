//! How audio is received.

use std::time::Duration;

use super::format::AudioFormat;
use crate::receiver::Repair;

/// What is played in place of samples that did not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioConcealment {
    /// Nothing.
    Silence,
    /// The block before, for up to 10 ms; then nothing.
    Repeat,
}

/// What the picture's times are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureSync {
    /// Sound is played with its picture, unless that is shown before the sound comes, or more than a second after it, or than twice
    /// [`AudioReceiverConfig::delay`] where that is longer.
    Follow,
    /// Sound keeps its own times, and the difference is told.
    Measure,
}

/// How audio is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioReceiverConfig {
    /// The form of audio. Packets of other times are taken as well.
    pub format: AudioFormat,
    /// RTP payload type; others are counted and dropped, but for that of repetitions.
    pub payload_type: u8,
    /// Time from the earliest arrival to playing, in which late packets find their place. Default 20 ms; at most 8 s.
    pub delay: Duration,
    /// What is played in gaps. Default repetition.
    pub concealment: AudioConcealment,
    /// What the picture's times are used for. Default following.
    pub sync: PictureSync,
    /// Whether missing packets are asked for as long as they can still be played. Default not.
    pub repair: Repair,
}

impl AudioReceiverConfig {
    /// The defaults for a form of audio.
    pub fn new(format: AudioFormat, payload_type: u8) -> AudioReceiverConfig {
        AudioReceiverConfig {
            format,
            payload_type,
            delay: Duration::from_millis(20),
            concealment: AudioConcealment::Repeat,
            sync: PictureSync::Follow,
            repair: Repair::Off,
        }
    }
}
