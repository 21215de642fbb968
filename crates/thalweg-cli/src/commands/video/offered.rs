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
}

/// The first sound of a session; `None` without any.
///
/// # Errors
/// Its form is none of ours.
pub fn first_sound(session: &SessionDescription) -> Result<Option<OfferedSound>, Failure> {
    let found = session.streams.iter().find_map(|stream| match &stream.media {
        MediaDescription::Audio(audio) => Some((stream, audio)),
        MediaDescription::Video(_) => None,
    });
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
    })
}

/// The first picture of a session.
///
/// # Errors
/// There is none, its form is none of ours, or its rate is in neither the description nor `picture`, or in both.
pub fn first_picture(session: &SessionDescription, picture: &PictureOptions) -> Result<OfferedPicture, Failure> {
    let found = session.streams.iter().find_map(|stream| match &stream.media {
        MediaDescription::Video(video) => Some((stream, video)),
        MediaDescription::Audio(_) => None,
    });
    let Some((stream, video)) = found else {
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

/// Why a stream is not received, at whatever rate; `None` where it is.
pub fn refusal_of(stream: &StreamDescription) -> Option<String> {
    match &stream.media {
        MediaDescription::Video(video) => picture_of(stream, video, FrameRate::NTSC).err(),
        MediaDescription::Audio(audio) => sound_of(stream, audio).err(),
    }
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
