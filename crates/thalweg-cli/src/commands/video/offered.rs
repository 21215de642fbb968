//! The stream that a session description offers a receiver.

use std::net::{IpAddr, SocketAddr};

use thalweg_video::audio::AudioFormat;
use thalweg_video::format::{FrameRate, VideoFormat};
use thalweg_video::io::ControlPort;
use thalweg_video::receiver::Repair;
use thalweg_video::sdp::{
    AudioDescription, MediaDescription, SessionDescription, StreamDescription, StreamPath, VideoDescription,
};

use super::picture::PictureOptions;
use crate::outcome::Failure;

/// A stream as a description tells it to a receiver.
#[derive(Clone, Debug)]
pub struct OfferedPicture {
    pub format: VideoFormat,
    pub payload_type: u8,
    pub to: Vec<SocketAddr>,
    pub control: ControlPort,
    /// Whom each of `to` is heard from; empty for everybody.
    pub sources: Vec<Vec<IpAddr>>,
    pub repair: Repair,
}

/// Sound as a description tells it to a receiver.
#[derive(Clone, Debug)]
pub struct OfferedSound {
    pub format: AudioFormat,
    pub payload_type: u8,
    pub to: Vec<SocketAddr>,
    pub control: ControlPort,
    /// Whom each of `to` is heard from; empty for everybody.
    pub sources: Vec<Vec<IpAddr>>,
    pub repair: Repair,
}

/// The first sound of a session; `None` without any.
///
/// # Errors
/// Its form is none of ours.
pub fn first_sound(session: &SessionDescription) -> Result<Option<OfferedSound>, Failure> {
    let found = sounds(session).next();
    let refused = |reason| Failure::Failed(format!("{reason}; give --sound-sink off to do without it"));
    found.map(|(stream, audio)| sound_of(stream, audio).map_err(refused)).transpose()
}

fn sound_of(stream: &StreamDescription, audio: &AudioDescription) -> Result<OfferedSound, String> {
    Ok(OfferedSound {
        format: AudioFormat::from_description(audio).map_err(|error| error.to_string())?,
        payload_type: stream.payload_type,
        to: stream.paths.iter().map(|path| path.destination).collect(),
        control: control_of(&stream.paths)?,
        sources: sources_of(&stream.paths),
        repair: repair_of(stream),
    })
}

/// The first picture of a session.
///
/// # Errors
/// There is none, its form is none of ours, or its rate is in neither the description nor `picture`, or in both.
pub fn first_picture(session: &SessionDescription, picture: &PictureOptions) -> Result<OfferedPicture, Failure> {
    let Some((stream, video)) = pictures(session).next() else {
        return Err(Failure::Failed("the session description has no picture".to_owned()));
    };
    if video.rate.is_none() && picture.rate.is_none() {
        return Err(Failure::Usage("the session description tells no rate; give --rate".to_owned()));
    }
    if video.rate.is_some() {
        PictureOptions { rate: picture.rate, ..PictureOptions::default() }.refuse_beside("the session description")?;
    }
    picture_of(stream, video, picture.rate()).map_err(Failure::Failed)
}

fn picture_of(stream: &StreamDescription, video: &VideoDescription, rate: FrameRate) -> Result<OfferedPicture, String> {
    Ok(OfferedPicture {
        format: video.to_format(rate).map_err(|error| error.to_string())?,
        payload_type: stream.payload_type,
        to: stream.paths.iter().map(|path| path.destination).collect(),
        control: control_of(&stream.paths)?,
        sources: sources_of(&stream.paths),
        repair: repair_of(stream),
    })
}

/// Width to height of a pixel of the first picture of a session; 1:1 without any.
pub fn pixel_aspect(session: &SessionDescription) -> (u16, u16) {
    pictures(session).next().map_or((1, 1), |(_, video)| video.pixel_aspect)
}

fn pictures(session: &SessionDescription) -> impl Iterator<Item = (&StreamDescription, &VideoDescription)> {
    session.streams.iter().filter_map(|stream| match &stream.media {
        MediaDescription::Video(video) => Some((stream, video)),
        MediaDescription::Audio(_) => None,
    })
}

fn sounds(session: &SessionDescription) -> impl Iterator<Item = (&StreamDescription, &AudioDescription)> {
    session.streams.iter().filter_map(|stream| match &stream.media {
        MediaDescription::Audio(audio) => Some((stream, audio)),
        MediaDescription::Video(_) => None,
    })
}

/// What becomes of a stream of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamReception {
    /// It is received with these options.
    Received { needs: Vec<&'static str> },
    /// It is not, for this reason.
    Refused(String),
}

/// What becomes of each stream of a session: the first picture is received, and the first sound beside it.
pub fn receptions(session: &SessionDescription) -> Vec<StreamReception> {
    let picture = pictures(session).next();
    let refusal = match picture {
        None => Some("sound is received beside a picture alone, and the description has none".to_owned()),
        Some((stream, video)) => picture_of(stream, video, FrameRate::NTSC).err(),
    };
    let sound = sounds(session).next();
    let is_mute = sound.is_some_and(|(stream, audio)| sound_of(stream, audio).is_err());
    // Neither begins without the other where the description has both.
    let rate = picture.filter(|(_, video)| video.rate.is_none()).map(|_| "--rate RATE");
    let needs = |options: [Option<&'static str>; 2]| -> Vec<&'static str> { options.into_iter().flatten().collect() };
    let reception = |stream: &StreamDescription| match &stream.media {
        MediaDescription::Video(_) if picture.is_some_and(|(first, _)| !std::ptr::eq(first, stream)) => {
            StreamReception::Refused("of the pictures of a description the first one alone is received".to_owned())
        }
        MediaDescription::Audio(_) if sound.is_some_and(|(first, _)| !std::ptr::eq(first, stream)) => {
            StreamReception::Refused("of the sounds of a description the first one alone is received".to_owned())
        }
        MediaDescription::Audio(audio) => match (sound_of(stream, audio), &refusal, picture) {
            (Err(reason), ..) => StreamReception::Refused(reason),
            (Ok(_), Some(reason), None) => StreamReception::Refused(reason.clone()),
            (Ok(_), Some(_), Some(_)) => {
                let reason = "sound is received beside a picture alone, and that of the description is not";
                StreamReception::Refused(reason.to_owned())
            }
            (Ok(_), None, _) => StreamReception::Received { needs: needs([rate, None]) },
        },
        MediaDescription::Video(_) => match &refusal {
            Some(reason) => StreamReception::Refused(reason.clone()),
            None => StreamReception::Received { needs: needs([rate, is_mute.then_some("--sound-sink off")]) },
        },
    };
    session.streams.iter().map(reception).collect()
}

/// Whom each of the addresses `bind` is heard from: as the description says of its group, or else of the path at its place.
pub fn sources_at(bind: &[SocketAddr], to: &[SocketAddr], sources: &[Vec<IpAddr>]) -> Vec<Vec<IpAddr>> {
    let at = |(place, bind): (usize, &SocketAddr)| {
        let is_its = |path: &usize| to.get(*path).is_some_and(|to| to.ip() == bind.ip());
        let path = [place].into_iter().chain(0..to.len()).find(is_its).unwrap_or(place);
        sources.get(path).cloned().unwrap_or_default()
    };
    bind.iter().enumerate().map(at).collect()
}

fn control_of(paths: &[StreamPath]) -> Result<ControlPort, String> {
    let of = |path: &StreamPath| match path.rtcp_port {
        port if port == path.destination.port() => ControlPort::Multiplexed,
        port if Some(port) == path.destination.port().checked_add(1) => ControlPort::Next,
        port => ControlPort::At(port),
    };
    let first = paths.first().map_or(ControlPort::Next, of);
    if paths.iter().any(|path| of(path) != first) {
        return Err("RTCP of the two paths goes to ports of two kinds, which is not built".to_owned());
    }
    Ok(first)
}

fn sources_of(paths: &[StreamPath]) -> Vec<Vec<IpAddr>> {
    paths.iter().map(|path| path.sources.clone()).collect()
}

fn repair_of(stream: &StreamDescription) -> Repair {
    match stream.retransmission {
        _ if !stream.accepts_nack => Repair::Off,
        again => Repair::Nack {
            reorder_window: Repair::REORDER_WINDOW,
            retransmission: again.map(|again| again.payload_type),
        },
    }
}
