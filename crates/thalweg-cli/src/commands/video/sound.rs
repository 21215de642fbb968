//! Options of sound beside a picture.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use thalweg_video::audio::{AudioFormat, CHANNELS_MAX, PacketTime};
use thalweg_video::io::{SendOptions, SoundSendOptions, StreamStart, payload_max};
use thalweg_video::sdp::AudioEncoding;
use thalweg_video::source::{AtEnd, SoundSource, ToneSource, WavSource};

use super::ends::after;
use super::ports::{refuse_shared, sound_control};
use crate::outcome::Failure;

/// The payload type of sound without a session description.
pub const SOUND_PAYLOAD_TYPE: u8 = 98;

/// Sound that is sent beside the picture.
#[derive(Args, Clone, Debug)]
pub struct SoundOptions {
    /// Send sound with the picture, L24 at 48 kHz: tone, another one in each channel, which a receiver proves, or wav:PATH (default: no
    /// sound).
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    pub sound: Option<SoundName>,

    /// Send the tone in N channels, 1 to 8 (default: 2; a file tells its own).
    #[arg(long, value_name = "N", requires = "sound", value_parser = clap::value_parser!(u8).range(1..=8))]
    pub channels: Option<u8>,

    /// Send sound to ADDR:PORT; given twice, by two paths (default: two ports above the picture).
    #[arg(long, value_name = "ADDR:PORT", requires = "sound")]
    pub sound_to: Vec<SocketAddr>,

    /// Put 1ms of sound into a packet or 125us (default: 1ms).
    #[arg(long, value_name = "TIME", requires = "sound", value_parser = packet_time)]
    pub packet_time: Option<PacketTime>,
}

/// Where samples come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SoundName {
    Tone,
    Wav(PathBuf),
}

/// Sound that is to be sent: where from, in which form and where to.
pub struct OpenSound {
    pub source: Box<dyn SoundSource>,
    pub format: AudioFormat,
    pub to: Vec<SocketAddr>,
}

impl SoundOptions {
    /// Opens the source of sound, if there is to be any beside the picture of `picture`.
    ///
    /// # Errors
    /// The options do not fit, or the file cannot be sent.
    pub fn open(&self, picture: &SendOptions, at_end: AtEnd) -> Result<Option<OpenSound>, Failure> {
        let source: Box<dyn SoundSource> = match &self.sound {
            None => return Ok(None),
            Some(SoundName::Tone) => Box::new(ToneSource::new(self.channels.unwrap_or(2))),
            Some(SoundName::Wav(_)) if self.channels.is_some() => {
                return Err(Failure::Usage("a WAVE file tells its channels; leave --channels out".to_owned()));
            }
            Some(SoundName::Wav(path)) => Box::new(WavSource::open(path, at_end).map_err(Failure::from_cause)?),
        };
        let to = match self.sound_to.is_empty() {
            true => picture.to.iter().map(beside).collect::<Result<Vec<_>, _>>()?,
            false => self.sound_to.clone(),
        };
        if to.len() > 2 {
            return Err(Failure::Usage(format!(
                "{} addresses are given for sound; it has two paths at most",
                to.len()
            )));
        }
        let packet_time = self.packet_time.unwrap_or(PacketTime::Millisecond);
        let format = AudioFormat::new(AudioEncoding::L24, source.channels(), packet_time);
        let format = format.map_err(|error| Failure::Usage(error.to_string()))?;
        picture.mtu.map_or(Ok(()), |mtu| refuse_oversize(format, &to, mtu))?;
        Ok(Some(OpenSound { source, format, to }))
    }
}

impl OpenSound {
    /// How the driver sends it beside a picture, whose clock, name and ways of sending it shares.
    ///
    /// # Errors
    /// No port is left for RTCP, picture and sound would share one, or the system has no random numbers.
    pub fn driver_options(&self, picture: &mut SendOptions) -> Result<SoundSendOptions, Failure> {
        let Some(first) = self.to.first() else {
            return Err(Failure::Usage("sound has no address".to_owned()));
        };
        let mut send = SoundSendOptions::new(*first, self.format, SOUND_PAYLOAD_TYPE).map_err(Failure::from_cause)?;
        send.to.clone_from(&self.to);
        send.control = sound_control(picture.control);
        refuse_shared((&picture.to, picture.control), Some((&send.to, send.control)))?;
        send.stream = picture.stream;
        send.rtcp.cname.clone_from(&picture.rtcp.cname);
        let start = StreamStart::default();
        (send.start, picture.start) = (Some(start.clone()), Some(start));
        Ok(send)
    }
}

/// Refuses sound whose packets do not fit the MTU that the user told: a packet holds a time of all channels, and is not cut.
fn refuse_oversize(format: AudioFormat, to: &[SocketAddr], mtu: u32) -> Result<(), Failure> {
    let octets = format.datagram_octets();
    let room = to.iter().map(|to| payload_max(mtu, to.ip())).min().unwrap_or(octets);
    if octets <= room {
        return Ok(());
    }
    let (channels, time) = (format.channels(), format.packet_time().duration());
    let shorter = if format.packet_time() == PacketTime::Millisecond { "--packet-time 125us, " } else { "" };
    let needed = mtu as usize + octets - room;
    Err(Failure::Usage(format!(
        "{time:?} of sound of {channels} channels is a datagram of {octets} octets, and --mtu {mtu} has room for {room}; give {shorter}\
         fewer channels, or --mtu {needed} or more"
    )))
}

/// Where sound goes beside a picture: its RTCP has the port between.
fn beside(picture: &SocketAddr) -> Result<SocketAddr, Failure> {
    let port = picture.port().checked_add(2).filter(|port| *port < u16::MAX);
    let port = port.ok_or_else(|| {
        Failure::Usage(format!("no ports above {} are left for sound; give --sound-to", picture.port()))
    })?;
    Ok(SocketAddr::new(picture.ip(), port))
}

fn source(text: &str) -> Result<SoundName, String> {
    if text == "tone" {
        return Ok(SoundName::Tone);
    }
    let wav = after(text, "wav").map(|path| SoundName::Wav(path.into()));
    wav.ok_or_else(|| format!("no sound; give tone or wav:PATH, with 1 to {CHANNELS_MAX} channels"))
}

fn packet_time(text: &str) -> Result<PacketTime, String> {
    match text {
        "1ms" => Ok(PacketTime::Millisecond),
        "125us" => Ok(PacketTime::EighthMillisecond),
        _ => Err("no time of a packet; give 1ms or 125us".to_owned()),
    }
}
