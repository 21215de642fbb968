//! Session descriptions: made from options, and read from files.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use thalweg_video::audio::{AudioFormat, SOUND_KEPT};
use thalweg_video::conformance::PacingKind;
use thalweg_video::format::VideoFormat;
use thalweg_video::io::ControlPort;
use thalweg_video::rfc4175::Packing;
use thalweg_video::sdp::{
    EXTENDED_UDP_OCTETS, MediaClockSource, MediaDescription, PackingMode, ReferenceClock, Retransmission,
    SDP_OCTETS_MAX, SessionDescription, StreamDescription, StreamPath, StudioParameters, VideoDescription,
};
use thalweg_video::sender::{Batching, FRAMES_KEPT};

use super::path::{PAYLOAD_TYPE, RETRANSMISSION, RepairName, SOUND_PAYLOAD_TYPE, SOUND_RETRANSMISSION};
use crate::outcome::Failure;

/// The vocabulary of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VocabularyName {
    /// That of ST 2110-20, which receivers by RFC 4175 read too.
    #[value(name = "2110")]
    Studio,
    /// That of RFC 4175 alone.
    #[value(name = "4175")]
    Plain,
}

/// A stream that is to be described.
#[derive(Clone, Copy, Debug)]
pub struct OfferedStream<'options> {
    pub format: VideoFormat,
    /// Width to height of a pixel, which ST 2110 alone has a key for.
    pub pixel_aspect: (u16, u16),
    pub to: &'options [SocketAddr],
    pub hops: Option<u8>,
    /// Where RTCP of the picture goes.
    pub control: ControlPort,
    /// How the plan cuts frames, which may be otherwise than asked for.
    pub packing: Packing,
    pub batching: Batching,
    pub repair: RepairName,
    pub vocabulary: VocabularyName,
    /// Sound beside the picture, where it goes and where its RTCP does.
    pub sound: Option<(AudioFormat, &'options [SocketAddr], ControlPort)>,
    /// Octets of the largest datagram, which a studio is told where it exceeds the standard size.
    pub datagram_octets: u16,
}

impl OfferedStream<'_> {
    /// The description as text.
    ///
    /// # Errors
    /// No port is left for RTCP, datagrams are larger than studios take them, or the clock of this host is before 1970.
    pub fn to_text(self) -> Result<String, Failure> {
        let is_studio = self.vocabulary == VocabularyName::Studio;
        let mut video = VideoDescription::from_format(&self.format);
        if is_studio {
            video = video.with_studio(self.studio()?);
            video.pixel_aspect = self.pixel_aspect;
        }
        let kept_for = self.format.frame_time() * u32::try_from(FRAMES_KEPT).unwrap_or(1);
        let retransmission = Retransmission { payload_type: RETRANSMISSION, kept_for: Some(kept_for) };
        let stream = StreamDescription {
            media: MediaDescription::Video(video),
            payload_type: PAYLOAD_TYPE,
            paths: self.paths(self.to, self.control)?,
            accepts_nack: self.repair != RepairName::Off,
            retransmission: (self.repair == RepairName::Rtx).then_some(retransmission),
            reference_clocks: self.reference_clocks(),
            media_clock: is_studio.then_some(MediaClockSource::Sender),
        };
        let sound = self
            .sound
            .map(|(format, to, control)| Ok(self.sound_stream(format, self.paths(to, control)?)))
            .transpose()?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(Failure::from_cause)?;
        let session = SessionDescription {
            name: format!("Thalweg {}", self.format),
            // Senders that start within one second of this host are told apart by it.
            id: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
            version: since.as_secs(),
            origin: self.to.first().map_or_else(|| "127.0.0.1".to_owned(), |to| origin(*to).to_string()),
            streams: [stream].into_iter().chain(sound).collect(),
        };
        Ok(session.to_text())
    }

    fn paths(&self, to: &[SocketAddr], control: ControlPort) -> Result<Vec<StreamPath>, Failure> {
        let path = |to: &SocketAddr| {
            let control = control.beside(*to).map_err(|error| Failure::Usage(error.to_string()))?;
            Ok(StreamPath { ttl: self.hops, rtcp_port: control.port(), ..StreamPath::new(*to) })
        };
        to.iter().map(path).collect()
    }

    /// The clock of this host, which nobody else follows.
    fn reference_clocks(&self) -> Vec<ReferenceClock> {
        match self.vocabulary {
            VocabularyName::Studio => vec![ReferenceClock::Other("local".to_owned())],
            VocabularyName::Plain => Vec::new(),
        }
    }

    fn sound_stream(&self, format: AudioFormat, paths: Vec<StreamPath>) -> StreamDescription {
        let retransmission = Retransmission { payload_type: SOUND_RETRANSMISSION, kept_for: Some(SOUND_KEPT) };
        StreamDescription {
            media: MediaDescription::Audio(format.to_description()),
            payload_type: SOUND_PAYLOAD_TYPE,
            paths,
            accepts_nack: self.repair != RepairName::Off,
            retransmission: (self.repair == RepairName::Rtx).then_some(retransmission),
            reference_clocks: self.reference_clocks(),
            media_clock: (self.vocabulary == VocabularyName::Studio).then_some(MediaClockSource::Sender),
        }
    }

    fn studio(&self) -> Result<StudioParameters, Failure> {
        let packing = match self.packing {
            Packing::Blocks => PackingMode::Block,
            Packing::Equal | Packing::Fill => PackingMode::General,
        };
        let mut studio = StudioParameters::new(packing);
        studio.pacing = (self.batching == Batching::Wide).then_some(PacingKind::Wide);
        // With the header of UDP.
        let octets = self.datagram_octets.saturating_add(8);
        if octets > EXTENDED_UDP_OCTETS {
            let header = if self.to.iter().all(SocketAddr::is_ipv6) { 40 } else { 20 };
            let mtu = EXTENDED_UDP_OCTETS + header;
            return Err(Failure::Usage(format!(
                "ST 2110-10 allows UDP datagrams of {EXTENDED_UDP_OCTETS} octets and these have {octets}; give --mtu {mtu} or less, or \
                 describe them with --vocabulary 4175"
            )));
        }
        studio.udp_octets_max = studio.udp_octets_max.max(octets);
        Ok(studio)
    }
}

/// The address that this host sends to `to` from; the unspecified one where no route leads there.
pub fn origin(to: SocketAddr) -> IpAddr {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    // Connecting chooses the address and sends nothing.
    let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(to).map(|()| socket));
    let address = socket.and_then(|socket| socket.local_addr()).map(|address| address.ip());
    address.unwrap_or(if to.is_ipv4() { [0; 4].into() } else { [0; 16].into() })
}

/// Reads the description in a file.
///
/// # Errors
/// It cannot be read or is refused.
pub fn read(path: &Path) -> Result<SessionDescription, Failure> {
    let failed = |error| Failure::Failed(format!("cannot read {}: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_file() && metadata.len() > SDP_OCTETS_MAX as u64 {
        let octets = metadata.len();
        return Err(Failure::Failed(format!("{} has {octets} octets and is no session description", path.display())));
    }
    let octets = std::fs::read(path).map_err(failed)?;
    SessionDescription::parse(&octets).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}
