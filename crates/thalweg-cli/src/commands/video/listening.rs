//! Options and sinks of sound that is received beside a picture.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_video::audio::{AudioFormat, AudioReceiverConfig, PacketTime};
use thalweg_video::io::{ControlPort, PictureTimes, ReceiveOptions, SoundReceiveOptions};
use thalweg_video::receiver::Repair;
use thalweg_video::sdp::{AudioEncoding, SessionDescription};
use thalweg_video::sink::{NullSink, SoundSink, ToneSink, ToneSummary, WavSink};

use super::ends::after;
use super::offered::{first_sound, sources_at};
use super::path::{SOUND_PAYLOAD_TYPE, SOUND_RETRANSMISSION};
use super::ports::sound_control;
use crate::outcome::Failure;

/// Sound beside the picture.
#[derive(Args, Clone, Debug)]
pub struct ListeningOptions {
    /// Hear sound at ADDR:PORT, L24 at 48 kHz; given twice, hear two paths (default: where the session description sends it, none without
    /// one).
    #[arg(long, value_name = "ADDR:PORT")]
    pub sound_bind: Vec<SocketAddr>,

    /// Hear sound of N channels, 1 to 8, where no session description tells it (default: 2).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub channels: Option<u8>,

    /// Give sound to verify, which proves of each sample that it is the test tone's, to null, or into wav:PATH, or do without it: off
    /// (default: verify where the picture goes there, else null).
    #[arg(long, value_name = "SINK", value_parser = sink)]
    pub sound_sink: Option<SoundSinkName>,
}

/// Where samples go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoundSinkName {
    Verify,
    Null,
    Wav(PathBuf),
    Off,
}

/// The sink of a run.
pub enum OpenSoundSink {
    Verify(Box<ToneSink>),
    Null(NullSink),
    Wav(WavSink),
}

impl ListeningOptions {
    /// How the driver hears sound beside the picture of `picture`, which is told to say when it shows its frames, with RTCP where the user
    /// said with `rtcp`; `None` where there is no sound.
    ///
    /// # Errors
    /// The options do not fit each other or the session description.
    pub fn driver_options(
        &self,
        session: Option<&SessionDescription>,
        rtcp: Option<ControlPort>,
        picture: &mut ReceiveOptions,
    ) -> Result<Option<SoundReceiveOptions>, Failure> {
        if self.sound_sink == Some(SoundSinkName::Off) {
            let given = [("--sound-bind", !self.sound_bind.is_empty()), ("--channels", self.channels.is_some())];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => {
                    Err(Failure::Usage(format!("--sound-sink off does without sound; leave {name} out")))
                }
                None => Ok(None),
            };
        }
        let offered = session.map_or(Ok(None), first_sound)?;
        let told =
            offered.as_ref().filter(|_| self.sound_bind.is_empty()).map_or(&self.sound_bind, |offered| &offered.to);
        let Some(first) = told.first() else {
            return match self.sound_sink {
                Some(_) => {
                    Err(Failure::Usage("no sound is described; give --sound-bind or leave --sound-sink out".to_owned()))
                }
                None if self.channels.is_some() => {
                    Err(Failure::Usage("no sound is described; give --sound-bind or leave --channels out".to_owned()))
                }
                None => Ok(None),
            };
        };
        if told.len() > 2 {
            return Err(Failure::Usage(format!(
                "{} addresses are given for sound; it has one or two paths",
                told.len()
            )));
        }
        let (format, payload_type) = match &offered {
            Some(_) if self.channels.is_some() => {
                return Err(Failure::Usage(
                    "the session description tells the channels; leave --channels out".to_owned(),
                ));
            }
            Some(offered) => (offered.format, offered.payload_type),
            None => {
                let format = AudioFormat::new(AudioEncoding::L24, self.channels.unwrap_or(2), PacketTime::Millisecond);
                (format.map_err(|error| Failure::Usage(error.to_string()))?, SOUND_PAYLOAD_TYPE)
            }
        };
        // A little less than the picture waits: sound that meets its picture then pauses, and loses nothing.
        let delay = (picture.receiver.playout / 4 * 3).max(DELAY_MIN);
        let repair = offered.as_ref().map_or(Repair::by_retransmission(SOUND_RETRANSMISSION), |offered| offered.repair);
        let config = AudioReceiverConfig { delay, repair, ..AudioReceiverConfig::new(format, payload_type) };
        let mut hear = SoundReceiveOptions::new(*first, config).map_err(Failure::from_cause)?;
        hear.bind.clone_from(told);
        // A port is the picture's alone.
        let rtcp = rtcp.filter(|rtcp| !matches!(rtcp, ControlPort::At(_)));
        let described = offered.as_ref().map(|offered| offered.control);
        hear.control = rtcp.or(described).unwrap_or_else(|| sound_control(picture.control));
        hear.group_sources = match &offered {
            Some(offered) => sources_at(told, &offered.to, &offered.sources),
            None => sources_at(told, &picture.bind, &picture.group_sources),
        };
        hear.group_interface = picture.group_interface;
        hear.farewell = picture.farewell;
        let times = PictureTimes::default();
        (hear.picture, picture.picture) = (Some(times.clone()), Some(times));
        Ok(Some(hear))
    }

    /// Opens the sink; `proves_picture` where the picture is checked as well.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open_sink(&self, format: AudioFormat, proves_picture: bool) -> Result<OpenSoundSink, Failure> {
        let verify = || OpenSoundSink::Verify(Box::new(ToneSink::new(format)));
        Ok(match &self.sound_sink {
            Some(SoundSinkName::Verify) => verify(),
            None if proves_picture => verify(),
            Some(SoundSinkName::Wav(path)) => {
                // A form has eight channels at most.
                OpenSoundSink::Wav(WavSink::create(path, format.channels() as u8).map_err(Failure::from_cause)?)
            }
            None | Some(SoundSinkName::Null | SoundSinkName::Off) => OpenSoundSink::Null(NullSink),
        })
    }
}

impl OpenSoundSink {
    /// As the driver takes it.
    pub fn as_dyn(&mut self) -> &mut dyn SoundSink {
        match self {
            OpenSoundSink::Verify(sink) => sink.as_mut(),
            OpenSoundSink::Null(sink) => sink,
            OpenSoundSink::Wav(sink) => sink,
        }
    }

    /// What a check of the tone found; `None` of other sinks.
    pub fn summary(&self) -> Option<ToneSummary> {
        match self {
            OpenSoundSink::Verify(sink) => Some(sink.summary()),
            OpenSoundSink::Null(_) | OpenSoundSink::Wav(_) => None,
        }
    }
}

fn sink(text: &str) -> Result<SoundSinkName, String> {
    match text {
        "verify" => Ok(SoundSinkName::Verify),
        "null" => Ok(SoundSinkName::Null),
        "off" => Ok(SoundSinkName::Off),
        _ => after(text, "wav")
            .map(|path| SoundSinkName::Wav(path.into()))
            .ok_or_else(|| "no sink of sound; give verify, null, wav:PATH or off".to_owned()),
    }
}

/// The least delay: sound that comes later is concealed.
const DELAY_MIN: Duration = Duration::from_millis(20);
