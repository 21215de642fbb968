//! Options of sound beside a picture.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use thalweg_video::audio::{AudioFormat, CHANNELS_MAX, PacketTime};
use thalweg_video::io::{PathRoom, SendOptions, SoundSendOptions, StreamStart};
use thalweg_video::sdp::AudioEncoding;
use thalweg_video::source::{AtEnd, SoundSource, ToneSource, WavSource};

use super::ends::after;
use super::path::{RepairName, SOUND_PAYLOAD_TYPE, SOUND_RETRANSMISSION};
use super::ports::{refuse_shared, sound_control};
use crate::outcome::Failure;

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
    send: SoundSendOptions,
}

impl SoundOptions {
    /// Opens the source of sound, if there is to be any beside the picture of `picture`, whose ways of sending it shares.
    ///
    /// # Errors
    /// The options do not fit, the file cannot be sent, no route leads to the receivers, or packets do not fit the path.
    pub fn open(&self, picture: &SendOptions, repair: RepairName, at_end: AtEnd) -> Result<Option<OpenSound>, Failure> {
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
        let Some(first) = to.first() else {
            return Err(Failure::Usage("sound has no address".to_owned()));
        };
        let mut send = SoundSendOptions::new(*first, format, SOUND_PAYLOAD_TYPE).map_err(Failure::from_cause)?;
        (send.to, send.mtu, send.stream) = (to, picture.mtu, picture.stream);
        send.sender.resend = repair.resend(SOUND_RETRANSMISSION, send.sender.ssrc);
        let room = send.room().map_err(|error| Failure::Failed(format!("sound cannot be sent: {error}")))?;
        oversize(&send, room).map_or(Ok(Some(OpenSound { source, send })), |reason| Err(Failure::Usage(reason)))
    }
}

impl OpenSound {
    /// Its form.
    pub fn format(&self) -> AudioFormat {
        self.send.sender.format
    }

    /// Where it goes.
    pub fn to(&self) -> &[SocketAddr] {
        &self.send.to
    }

    /// How the driver sends it beside a picture, whose clock and name it shares.
    ///
    /// # Errors
    /// No port is left for RTCP, or picture and sound would share one.
    pub fn driver_options(&self, picture: &mut SendOptions) -> Result<SoundSendOptions, Failure> {
        let mut send = self.send.clone();
        send.control = sound_control(picture.control);
        refuse_shared((&picture.to, picture.control), Some((&send.to, send.control)))?;
        send.rtcp.cname.clone_from(&picture.rtcp.cname);
        let start = StreamStart::default();
        (send.start, picture.start) = (Some(start.clone()), Some(start));
        Ok(send)
    }
}

/// Why packets do not fit the MTU that the user told, or else that of their path; `None` where they do. A packet holds a time of all
/// channels, and is not cut.
fn oversize(send: &SoundSendOptions, room: PathRoom) -> Option<String> {
    let (octets, PathRoom { mtu, payload }) = (send.datagram_octets(), room);
    if octets <= payload {
        return None;
    }
    let format = send.sender.format;
    let (channels, time) = (format.channels(), format.packet_time().duration());
    let is_long = format.packet_time() == PacketTime::Millisecond;
    let (narrow, remedy) = if send.mtu.is_some() {
        let (shorter, needed) = (if is_long { "--packet-time 125us, " } else { "" }, mtu as usize + octets - payload);
        (format!("--mtu {mtu}"), format!("{shorter}fewer channels, or --mtu {needed} or more"))
    } else {
        let shorter = if is_long { "--packet-time 125us or " } else { "" };
        (format!("the path, with an MTU of {mtu},"), format!("{shorter}fewer channels"))
    };
    Some(format!(
        "{time:?} of sound of {channels} channels is a datagram of {octets} octets, and {narrow} has room for {payload}; give {remedy}"
    ))
}

/// Where sound goes beside a picture: its RTCP has the port between.
fn beside(picture: &SocketAddr) -> Result<SocketAddr, Failure> {
    let port = picture.port().checked_add(2).filter(|port| *port < u16::MAX);
    let port = port.ok_or_else(|| {
        Failure::Usage(format!("no ports above {} are left for sound; give --sound-to", picture.port()))
    })?;
    // The interface of a link-local address stays.
    let mut to = *picture;
    to.set_port(port);
    Ok(to)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_leaves_by_the_interface_of_its_picture() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let to = beside(&address("[fe80::1%2]:5004")).expect("ports are left");
        assert_eq!(to, address("[fe80::1%2]:5006"));
    }

    #[test]
    fn sound_has_to_fit_the_path_where_nobody_tells_an_mtu() {
        let check = |packet_time, repair: RepairName, payload| {
            let format = AudioFormat::new(AudioEncoding::L24, 8, packet_time).expect("a form");
            let to = "192.0.2.7:5006".parse().expect("an address");
            let mut send = SoundSendOptions::new(to, format, SOUND_PAYLOAD_TYPE).expect("random numbers");
            send.sender.resend = repair.resend(SOUND_RETRANSMISSION, 1);
            oversize(&send, PathRoom { mtu: 1200, payload })
        };
        let told = check(PacketTime::Millisecond, RepairName::Off, 1163).expect("it is too large");
        let expect = "1ms of sound of 8 channels is a datagram of 1164 octets, and the path, with an MTU of 1200, has room for \
                      1163; give --packet-time 125us or fewer channels";
        assert_eq!(told, expect);
        assert_eq!(check(PacketTime::Millisecond, RepairName::Off, 1164), None);
        let repeated = check(PacketTime::Millisecond, RepairName::Rtx, 1164).expect("a repetition is larger");
        assert!(repeated.contains("1166 octets"), "{repeated}");
        assert_eq!(check(PacketTime::EighthMillisecond, RepairName::Rtx, 200), None);
    }
}
