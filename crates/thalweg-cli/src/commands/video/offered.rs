//! The stream that a session description offers a receiver.

use std::net::{IpAddr, SocketAddr};

use thalweg_video::audio::AudioFormat;
use thalweg_video::format::VideoFormat;
use thalweg_video::io::ControlPort;
use thalweg_video::receiver::Repair;
use thalweg_video::sdp::{MediaDescription, SessionDescription, StreamDescription, StreamPath};

use super::picture::PictureOptions;
use crate::outcome::Failure;

/// A stream as a description tells it to a receiver.
#[derive(Clone, Debug)]
pub struct OfferedPicture {
    pub format: VideoFormat,
    pub payload_type: u8,
    pub to: Vec<SocketAddr>,
    pub control: ControlPort,
    pub source: Option<IpAddr>,
    pub repair: Repair,
}

/// Sound as a description tells it to a receiver.
#[derive(Clone, Debug)]
pub struct OfferedSound {
    pub format: AudioFormat,
    pub payload_type: u8,
    pub to: Vec<SocketAddr>,
    pub control: ControlPort,
    pub source: Option<IpAddr>,
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
    let Some((stream, audio)) = found else { return Ok(None) };
    let refused = |error| Failure::Failed(format!("{error}; give --sound-sink off to do without it"));
    Ok(Some(OfferedSound {
        format: AudioFormat::from_description(audio).map_err(refused)?,
        payload_type: stream.payload_type,
        to: stream.paths.iter().map(|path| path.destination).collect(),
        control: control_of(&stream.paths)?,
        source: source_of(&stream.paths)?,
    }))
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
    let format = video.to_format(picture.rate()).map_err(Failure::from_cause)?;
    Ok(OfferedPicture {
        format,
        payload_type: stream.payload_type,
        to: stream.paths.iter().map(|path| path.destination).collect(),
        control: control_of(&stream.paths)?,
        source: source_of(&stream.paths)?,
        repair: repair_of(stream),
    })
}

fn control_of(paths: &[StreamPath]) -> Result<ControlPort, Failure> {
    let of = |path: &StreamPath| match path.rtcp_port {
        port if port == path.destination.port() => ControlPort::Multiplexed,
        port if Some(port) == path.destination.port().checked_add(1) => ControlPort::Next,
        port => ControlPort::At(port),
    };
    let first = paths.first().map_or(ControlPort::Next, of);
    if paths.iter().any(|path| of(path) != first) {
        return Err(Failure::Failed("RTCP of the two paths goes to ports of two kinds, which is not built".to_owned()));
    }
    Ok(first)
}

/// Whom groups are heard from.
fn source_of(paths: &[StreamPath]) -> Result<Option<IpAddr>, Failure> {
    let first = paths.first().and_then(|path| path.sources.first()).copied();
    let are_equal = paths.iter().all(|path| path.sources.first().copied() == first && path.sources.len() < 2);
    if !are_equal {
        return Err(Failure::Failed(
            "the session description names several sources of a group; one for all paths is built".to_owned(),
        ));
    }
    Ok(first)
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
