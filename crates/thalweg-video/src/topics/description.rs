//! Descriptions of streams: making, finding and waiting for them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use thalweg::{DataReader, DomainParticipant, clock};

use super::qos::{self, DESCRIPTIONS};
use super::{PublisherConfig, SampleUnit, TopicError, TopicReliability, VideoStreamDescription};
use crate::sdp::{
    MediaDescription, SDP_OCTETS_MAX, SessionDescription, StreamDescription, StreamPath, VideoDescription,
};

/// Octets of a stream's name at most, as in its type.
const NAME_OCTETS_MAX: usize = 255;
/// Streams that a list has at most; chosen by us.
const STREAMS_MAX: usize = 1024;
/// The port that means nobody (RFC 863): the stream is not sent by RTP.
const PORT_DISCARD: u16 = 9;
/// The dynamic payload type of the session description.
const PAYLOAD_TYPE: u8 = 96;

/// The description of a publisher's stream.
pub(super) fn describe(config: &PublisherConfig, source: u32) -> Result<VideoStreamDescription, TopicError> {
    let sdp = config.sdp.clone().unwrap_or_else(|| session_text(config, source));
    for (what, octets, octets_max) in
        [("name", config.name.len(), NAME_OCTETS_MAX), ("session description", sdp.len(), SDP_OCTETS_MAX)]
    {
        if octets > octets_max {
            return Err(TopicError::TextLength { what, octets, octets_max });
        }
    }
    Ok(VideoStreamDescription {
        stream: config.stream,
        source,
        name: config.name.clone(),
        format: config.format.into(),
        slice_lines: match config.unit {
            SampleUnit::Frame => 0,
            SampleUnit::Slice(lines) => lines,
        },
        is_reliable: config.reliability == TopicReliability::Reliable,
        lifespan_nanos: u64::try_from(config.lifespan.as_nanos()).unwrap_or(u64::MAX),
        sdp,
    })
}

/// A session description of a stream that is not sent by RTP.
fn session_text(config: &PublisherConfig, source: u32) -> String {
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT_DISCARD));
    let stream = StreamDescription {
        media: MediaDescription::Video(VideoDescription::from_format(&config.format)),
        payload_type: PAYLOAD_TYPE,
        paths: vec![StreamPath::new(nowhere)],
        accepts_nack: false,
        retransmission: None,
        reference_clocks: Vec::new(),
        media_clock: None,
    };
    let session = SessionDescription {
        name: config.name.clone(),
        id: source.into(),
        version: 1,
        origin: Ipv4Addr::UNSPECIFIED.to_string(),
        streams: vec![stream],
    };
    session.to_text()
}

/// The streams that publishers describe, by number: those that are found within `patience`, which is waited for whole.
///
/// # Errors
///
/// The middleware refuses the reader.
pub fn list_streams(
    participant: &DomainParticipant,
    patience: Duration,
) -> Result<Vec<VideoStreamDescription>, TopicError> {
    let reader = create_reader(participant)?;
    let mut found = Vec::new();
    collect(&reader, patience, &mut found, |_| false);
    Ok(found)
}

/// The description of a stream, as soon as it is there.
///
/// # Errors
///
/// Nobody described the stream within `patience`; the error tells which others there are.
pub fn wait_for_stream(
    participant: &DomainParticipant,
    stream: u32,
    patience: Duration,
) -> Result<VideoStreamDescription, TopicError> {
    let reader = create_reader(participant)?;
    wait_in(&reader, stream, patience)
}

pub(super) fn create_reader(participant: &DomainParticipant) -> Result<DataReader<VideoStreamDescription>, TopicError> {
    let topic = participant.create_topic::<VideoStreamDescription>(DESCRIPTIONS);
    Ok(participant.create_reader(&topic, qos::kept_reader())?)
}

/// As [`wait_for_stream`], with a reader that stays.
pub(super) fn wait_in(
    reader: &DataReader<VideoStreamDescription>,
    stream: u32,
    patience: Duration,
) -> Result<VideoStreamDescription, TopicError> {
    /// Others that an error tells of.
    const OTHERS_MAX: usize = 8;
    let mut found = Vec::new();
    if collect(reader, patience, &mut found, |description| description.stream == stream) {
        found.retain(|description| description.stream == stream);
        if let Some(description) = found.pop() {
            return Ok(description);
        }
    }
    let others = found.iter().map(|description| description.stream).take(OTHERS_MAX).collect();
    Err(TopicError::NoStream { stream, waited: patience, others })
}

/// Takes descriptions until `is_enough` says so of one, and returns true; false after `patience`. Newer ones of a stream
/// take the place of older ones; a stream whose publisher is gone leaves the list.
fn collect(
    reader: &DataReader<VideoStreamDescription>,
    patience: Duration,
    found: &mut Vec<VideoStreamDescription>,
    is_enough: impl Fn(&VideoStreamDescription) -> bool,
) -> bool {
    let deadline = clock::now() + patience;
    loop {
        while let Some(sample) = reader.take_one() {
            let Ok(key) = sample.key() else { continue };
            found.retain(|known| known.stream != key.stream);
            let Ok(description) = sample.data() else { continue };
            let ends = is_enough(&description);
            if found.len() < STREAMS_MAX {
                let place = found.partition_point(|known| known.stream < description.stream);
                found.insert(place, description);
            }
            if ends {
                return true;
            }
        }
        if !reader.wait(deadline.since(clock::now())) && clock::now() >= deadline {
            return false;
        }
    }
}
