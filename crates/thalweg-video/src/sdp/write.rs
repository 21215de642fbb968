//! Writing session descriptions.

use std::fmt;

use sdp_types::{AddrType, Attribute, Connection, Media, MediaType, NetType, Origin, Session, TransportProto};

use super::session::{
    MediaClockSource, MediaDescription, ReferenceClock, SessionDescription, StreamDescription, StreamPath,
};

/// Time to live of multicast where a path tells none: RFC 8866 §5.7 demands a number.
const TTL: u8 = 64;

impl SessionDescription {
    /// The description as text, with CR and LF at the ends of lines.
    ///
    /// A stream of two paths becomes two media in a `group:DUP`; one that accepts requests for packets has the profile
    /// RTP/AVPF.
    pub fn to_text(&self) -> String {
        let address_type = if self.origin.contains(':') { AddrType::Ip6 } else { AddrType::Ip4 };
        let origin = Origin::new(self.id, self.version, NetType::In, address_type, &self.origin);
        let name = if self.name.trim().is_empty() { "-" } else { &self.name };
        let mut session = Session::new(origin, name);
        for (index, stream) in self.streams.iter().enumerate() {
            let mids: Vec<String> = match stream.paths.len() {
                0 | 1 => vec![String::new()],
                count => (0..count).map(|path| format!("stream{}-path{}", index + 1, path + 1)).collect(),
            };
            if mids.len() > 1 {
                session.attributes.push(Attribute::with_value("group", format!("DUP {}", mids.join(" "))));
            }
            for (path, mid) in stream.paths.iter().zip(&mids) {
                session.medias.push(media(stream, path, mid));
            }
        }
        let mut octets = Vec::new();
        // Writing to memory cannot fail, and all parts are text.
        let _ = session.write(&mut octets);
        String::from_utf8_lossy(&octets).into_owned()
    }
}

fn media(stream: &StreamDescription, path: &StreamPath, mid: &str) -> Media {
    let needs_feedback = stream.accepts_nack || stream.retransmission.is_some();
    let profile = if needs_feedback { TransportProto::RtpAvpf } else { TransportProto::RtpAvp };
    let media_type = match stream.media {
        MediaDescription::Video(_) => MediaType::Video,
        MediaDescription::Audio(_) => MediaType::Audio,
    };
    let payload_type = stream.payload_type;
    let formats = match stream.retransmission {
        Some(again) => format!("{payload_type} {}", again.payload_type),
        None => payload_type.to_string(),
    };
    let mut media = Media::new(media_type, path.destination.port(), profile, formats);
    let ip = path.destination.ip();
    let ttl = (ip.is_ipv4() && ip.is_multicast()).then(|| path.ttl.unwrap_or(TTL));
    media.connections.push(Connection::from_ip_addr_ttl(ip, ttl));
    let mut add = |name: &str, value: String| media.attributes.push(Attribute::with_value(name, value));
    let rate_hz = add_format(stream, &mut add);
    if let Some(again) = stream.retransmission {
        let kept = again.kept_for.map_or_else(String::new, |time| format!("; rtx-time={}", time.as_millis()));
        add("rtpmap", format!("{} rtx/{rate_hz}", again.payload_type));
        add("fmtp", format!("{} apt={payload_type}{kept}", again.payload_type));
    }
    if stream.accepts_nack {
        add("rtcp-fb", format!("{payload_type} nack"));
    }
    if !path.sources.is_empty() {
        let family = if ip.is_ipv4() { "IP4" } else { "IP6" };
        let sources: Vec<String> = path.sources.iter().map(ToString::to_string).collect();
        add("source-filter", format!(" incl IN {family} {ip} {}", sources.join(" ")));
    }
    for clock in &stream.reference_clocks {
        add("ts-refclk", clock.to_string());
    }
    if let Some(clock) = &stream.media_clock {
        add("mediaclk", clock.to_string());
    }
    if path.rtcp_port != path.destination.port().saturating_add(1) && path.rtcp_port != path.destination.port() {
        add("rtcp", path.rtcp_port.to_string());
    }
    if !mid.is_empty() {
        add("mid", mid.to_owned());
    }
    if path.rtcp_port == path.destination.port() {
        media.attributes.push(Attribute::new("rtcp-mux"));
    }
    media
}

/// The encoding and its parameters; returns the clock rate.
fn add_format(stream: &StreamDescription, add: &mut impl FnMut(&str, String)) -> u32 {
    let payload_type = stream.payload_type;
    match &stream.media {
        MediaDescription::Video(video) => {
            add("rtpmap", format!("{payload_type} raw/90000"));
            add("fmtp", format!("{payload_type} {}", video.parameters()));
            90_000
        }
        MediaDescription::Audio(audio) => {
            let (encoding, rate_hz, channels) = (audio.encoding.word(), audio.rate_hz, audio.channels);
            add("rtpmap", format!("{payload_type} {encoding}/{rate_hz}/{channels}"));
            if let Some(order) = &audio.channel_order {
                add("fmtp", format!("{payload_type} channel-order={order}"));
            }
            if let Some(time) = audio.packet_time {
                // The shortest decimals: 1, 0.125.
                add("ptime", format!("{}", time.as_nanos() as f64 / 1e6));
            }
            rate_hz
        }
    }
}

impl fmt::Display for ReferenceClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReferenceClock::Ptp { version, grandmaster, domain } => {
                write!(f, "ptp={version}:{}", grandmaster.as_deref().unwrap_or("traceable"))?;
                domain.map_or(Ok(()), |domain| write!(f, ":{domain}"))
            }
            ReferenceClock::LocalMac(address) => write!(f, "localmac={address}"),
            ReferenceClock::Other(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for MediaClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MediaClockSource::Direct(offset) => write!(f, "direct={offset}"),
            MediaClockSource::Sender => f.write_str("sender"),
            MediaClockSource::Other(text) => f.write_str(text),
        }
    }
}
