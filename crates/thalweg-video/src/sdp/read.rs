//! Reading session descriptions.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use sdp_types::{Media, Session, SourceFilter, SourceFilterAddress, SourceFilterDestination, SourceFilterMode};

use super::audio::{AudioDescription, RtpMapping};
use super::error::{SdpError, SdpFault};
use super::fmtp::{Parameters, digits};
use super::session::{
    MediaClockSource, MediaDescription, ReferenceClock, Retransmission, SDP_OCTETS_MAX, STREAMS_MAX,
    SessionDescription, StreamDescription, StreamPath,
};
use super::video::VideoDescription;

/// How many payload types of a media are looked at.
const PAYLOAD_TYPES_MAX: usize = 32;

/// How many reference clocks of a stream are kept.
const CLOCKS_MAX: usize = 8;

/// How many paths a stream has (ST 2022-7).
const PATHS_MAX: usize = 2;

impl SessionDescription {
    /// Reads a description.
    ///
    /// # Errors
    /// It is too long, not of the form of RFC 8866, has no stream of raw video or linear audio, or one that contradicts itself or
    /// lacks what a receiver needs.
    pub fn parse(octets: &[u8]) -> Result<SessionDescription, SdpError> {
        if octets.len() > SDP_OCTETS_MAX {
            return Err(SdpFault::TooLong { octets: octets.len() }.of_session());
        }
        let session = Session::parse(octets)
            .map_err(|error| SdpFault::Syntax { reason: error.to_string() })
            .map_err(SdpFault::of_session)?;
        if session.medias.len() > STREAMS_MAX {
            return Err(SdpFault::TooMany { what: "media", max: STREAMS_MAX }.of_session());
        }
        let id = session.origin.sess_id.parse().map_err(|_| {
            SdpFault::invalid("o=", &session.origin.sess_id, "a number of 64 bits as identifier").of_session()
        })?;
        let mut legs = Vec::new();
        for (index, media) in session.medias.iter().enumerate() {
            let leg = MediaReader { session: &session, media }.read().map_err(|fault| {
                let place = format!("stream {} ({}, port {})", index + 1, media.media, media.port);
                SdpError { place, fault }
            })?;
            let mid = media.get_first_attribute_value("mid").flatten().unwrap_or_default();
            legs.push((mid, leg));
        }
        let streams = join_paths(&session, legs).map_err(SdpFault::of_session)?;
        if streams.is_empty() {
            return Err(SdpFault::NoStream.of_session());
        }
        let origin = session.origin.unicast_address.clone();
        Ok(SessionDescription { name: session.session_name, id, version: session.origin.sess_version, origin, streams })
    }
}

/// Makes one stream of media that a `group:DUP` says to be the same (RFC 7104 §4).
fn join_paths(
    session: &Session,
    mut legs: Vec<(&str, Option<StreamDescription>)>,
) -> Result<Vec<StreamDescription>, SdpFault> {
    for group in session.get_attribute_values("group").flatten() {
        let mut words = group.split_ascii_whitespace();
        if words.next() != Some("DUP") {
            continue;
        }
        let mut first: Option<usize> = None;
        for mid in words {
            let unknown = || SdpFault::contradiction(&format!("group:{group}"), &format!("no mid:{mid}"));
            let index = legs.iter().position(|(known, _)| *known == mid).ok_or_else(unknown)?;
            let Some(first) = first else {
                first = Some(index);
                continue;
            };
            if first != index {
                let copy = legs[index].1.take();
                join_path(legs[first].1.as_mut(), copy, group)?;
            }
        }
    }
    Ok(legs.into_iter().filter_map(|(_, leg)| leg).collect())
}

fn join_path(
    stream: Option<&mut StreamDescription>,
    copy: Option<StreamDescription>,
    group: &str,
) -> Result<(), SdpFault> {
    match (stream, copy) {
        (None, None) => Ok(()),
        (Some(stream), Some(copy)) if stream.media == copy.media && stream.payload_type == copy.payload_type => {
            if stream.paths.len() + copy.paths.len() > PATHS_MAX {
                return Err(SdpFault::TooMany { what: "paths of one stream", max: PATHS_MAX });
            }
            stream.paths.extend(copy.paths);
            Ok(())
        }
        _ => Err(SdpFault::contradiction(&format!("group:{group}"), "media that differ")),
    }
}

/// One media with the session that it inherits from.
struct MediaReader<'a> {
    session: &'a Session,
    media: &'a Media,
}

impl<'a> MediaReader<'a> {
    /// The stream; none when it is of another kind or switched off.
    fn read(&self) -> Result<Option<StreamDescription>, SdpFault> {
        let is_known = ["video", "audio"].contains(&self.media.media.as_str()) && self.media.proto.starts_with("RTP/");
        if !is_known || self.media.port == 0 {
            return Ok(None);
        }
        let Some((payload_type, mapping)) =
            self.find_mapping(|name| ["raw", "L16", "L24"].iter().any(|known| name.eq_ignore_ascii_case(known)))?
        else {
            return Ok(None);
        };
        if !["RTP/AVP", "RTP/AVPF"].contains(&self.media.proto.as_str()) {
            return Err(SdpFault::invalid("m=", &self.media.proto, "RTP/AVP or RTP/AVPF; encryption is not supported"));
        }
        let parameters = self.parameters(payload_type)?;
        let media = match AudioDescription::read(&mapping, &parameters, self.value("ptime"))? {
            Some(audio) => MediaDescription::Audio(audio),
            None if mapping.rate_hz != 90_000 => {
                return Err(SdpFault::invalid("rtpmap", mapping.text, "raw/90000"));
            }
            None => MediaDescription::Video(VideoDescription::read(&parameters, self.value("framerate"))?),
        };
        Ok(Some(StreamDescription {
            media,
            payload_type,
            paths: vec![self.path()?],
            accepts_nack: self.accepts_nack(payload_type),
            retransmission: self.retransmission(payload_type, mapping.rate_hz)?,
            reference_clocks: self.inherited("ts-refclk").take(CLOCKS_MAX).map(reference_clock).collect(),
            media_clock: self.inherited("mediaclk").next().map(media_clock),
        }))
    }

    /// The first payload type in the order of the `m=` line whose encoding `is_wanted`.
    fn find_mapping(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Option<(u8, RtpMapping<'a>)>, SdpFault> {
        for payload_type in self.payload_types() {
            let Some(text) = self.values_of("rtpmap", payload_type).next() else { continue };
            let mapping = RtpMapping::parse(text)?;
            if is_wanted(mapping.encoding) {
                return Ok(Some((payload_type, mapping)));
            }
        }
        Ok(None)
    }

    fn payload_types(&self) -> impl Iterator<Item = u8> + 'a {
        let types = self.media.fmt.split_ascii_whitespace().take(PAYLOAD_TYPES_MAX);
        types.filter_map(digits).filter_map(|number| u8::try_from(number).ok().filter(|number| *number < 128))
    }

    fn parameters(&self, payload_type: u8) -> Result<Parameters<'a>, SdpFault> {
        let mut parameters = Parameters::default();
        self.values_of("fmtp", payload_type).try_for_each(|line| parameters.add(line))?;
        Ok(parameters)
    }

    /// What follows the payload type in the attributes of a name.
    fn values_of(&self, name: &'static str, payload_type: u8) -> impl Iterator<Item = &'a str> + 'a {
        self.media.get_attribute_values(name).flatten().filter_map(move |value| {
            let (number, rest) = value.trim_start().split_once(' ')?;
            (digits(number) == Some(u32::from(payload_type))).then(|| rest.trim())
        })
    }

    fn value(&self, name: &'static str) -> Option<&'a str> {
        self.media.get_first_attribute_value(name).flatten().map(str::trim)
    }

    /// The values of an attribute of the media or, when it has none, of the session.
    fn inherited(&self, name: &'static str) -> impl Iterator<Item = &'a str> + 'a {
        let own = self.media.get_attribute_values(name).flatten();
        let is_own = self.media.get_first_attribute_value(name).is_some();
        let inherited = self.session.get_attribute_values(name).flatten().filter(move |_| !is_own);
        own.chain(inherited).map(str::trim)
    }

    fn path(&self) -> Result<StreamPath, SdpFault> {
        let connection = self.media.connections.first().or(self.session.connection.as_ref());
        let connection = connection.ok_or(SdpFault::Missing { key: "c=" })?;
        let text = &connection.connection_address;
        let address = connection.try_address().map_err(|_| SdpFault::invalid("c=", text, "an IP address"))?;
        if address.count.is_some_and(|count| count != 1) || self.media.connections.len() > 1 {
            return Err(SdpFault::invalid("c=", text, "one address for a stream"));
        }
        let rtcp_port = if self.media.get_first_attribute_value("rtcp-mux").is_some() {
            self.media.port
        } else {
            match self.value("rtcp") {
                Some(text) => {
                    let port = text.split_ascii_whitespace().next().and_then(|port| port.parse().ok());
                    port.ok_or_else(|| SdpFault::invalid("rtcp", text, "a port"))?
                }
                None => {
                    let (port, expected) = (self.media.port, "a port with one above it for RTCP, or rtcp-mux");
                    port.checked_add(1).ok_or_else(|| SdpFault::invalid("m=", &port.to_string(), expected))?
                }
            }
        };
        let ttl = address.ttl.filter(|_| address.ip.is_ipv4() && address.ip.is_multicast());
        let sources = self.sources(address.ip)?;
        Ok(StreamPath { destination: SocketAddr::new(address.ip, self.media.port), ttl, sources, rtcp_port })
    }

    /// The addresses that source filters admit, each once; filters that exclude, and names of hosts, are passed over. All are kept: a
    /// sender whose address were left out would not be heard, and the length of the description bounds them.
    fn sources(&self, destination: IpAddr) -> Result<Vec<IpAddr>, SdpFault> {
        let mut sources = Vec::new();
        for text in self.inherited("source-filter") {
            let expected = "incl IN IP4 destination source";
            let filter: SourceFilter = text.parse().map_err(|_| SdpFault::invalid("source-filter", text, expected))?;
            let is_ours = match filter.destination {
                SourceFilterDestination::Wildcard => true,
                SourceFilterDestination::Address(SourceFilterAddress::IpAddr(address)) => address == destination,
                SourceFilterDestination::Address(SourceFilterAddress::FQDN(_)) => false,
            };
            if is_ours && filter.mode == SourceFilterMode::Incl {
                sources.extend(filter.sources.iter().filter_map(|source| match source {
                    SourceFilterAddress::IpAddr(address) => Some(*address),
                    SourceFilterAddress::FQDN(_) => None,
                }));
            }
        }
        let mut known = HashSet::new();
        sources.retain(|source| known.insert(*source));
        Ok(sources)
    }

    fn accepts_nack(&self, payload_type: u8) -> bool {
        self.media.get_attribute_values("rtcp-fb").flatten().any(|value| {
            let mut words = value.split_ascii_whitespace();
            let is_ours = words.next().is_some_and(|word| word == "*" || digits(word) == Some(u32::from(payload_type)));
            is_ours && words.next() == Some("nack") && words.next().is_none()
        })
    }

    /// The payload type `rtx` whose `apt` is ours (RFC 4588 §8.1).
    fn retransmission(&self, payload_type: u8, rate_hz: u32) -> Result<Option<Retransmission>, SdpFault> {
        for rtx in self.payload_types().filter(|other| *other != payload_type) {
            let Some(text) = self.values_of("rtpmap", rtx).next() else { continue };
            let mapping = RtpMapping::parse(text)?;
            if !mapping.encoding.eq_ignore_ascii_case("rtx") {
                continue;
            }
            let parameters = self.parameters(rtx)?;
            let apt = parameters.number("apt", 0..=127, "a payload type")?.ok_or(SdpFault::Missing { key: "apt" })?;
            if apt != u32::from(payload_type) {
                continue;
            }
            if mapping.rate_hz != rate_hz {
                return Err(SdpFault::contradiction(&format!("rtpmap:{rtx} {text}"), &format!("a rate of {rate_hz}")));
            }
            let kept = parameters.number("rtx-time", 0..=3_600_000, "milliseconds")?;
            let kept_for = kept.map(|millis| Duration::from_millis(millis.into()));
            return Ok(Some(Retransmission { payload_type: rtx, kept_for }));
        }
        Ok(None)
    }
}

fn reference_clock(text: &str) -> ReferenceClock {
    if let Some(address) = text.strip_prefix("localmac=") {
        return ReferenceClock::LocalMac(address.to_owned());
    }
    let other = || ReferenceClock::Other(text.to_owned());
    let Some((version, server)) = text.strip_prefix("ptp=").and_then(|rest| rest.split_once(':')) else {
        return other();
    };
    let (grandmaster, domain) = match server.split_once(':') {
        Some((grandmaster, domain)) => match domain.parse() {
            Ok(domain @ 0..=127) => (Some(grandmaster), Some(domain)),
            _ => return other(),
        },
        None if server == "traceable" => (None, None),
        None => (Some(server), None),
    };
    ReferenceClock::Ptp { version: version.to_owned(), grandmaster: grandmaster.map(str::to_owned), domain }
}

fn media_clock(text: &str) -> MediaClockSource {
    match text.strip_prefix("direct=").and_then(digits) {
        Some(offset) => MediaClockSource::Direct(offset),
        None if text == "sender" => MediaClockSource::Sender,
        None => MediaClockSource::Other(text.to_owned()),
    }
}
