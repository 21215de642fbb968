//! How streams are sent and received.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thalweg_transport::stream::{IcmpNews, StreamOptions};
use thalweg_transport::{entropy, stream};

use super::send_error::SendError;
use super::socket::ControlPort;
use super::sound_receive::PictureTimes;
use super::sound_send::StreamStart;
use crate::format::VideoFormat;
use crate::receiver::ReceiverConfig;
use crate::rfc4175::{PacketPlan, Packing};
use crate::rtcp::RtcpConfig;
use crate::sender::SenderConfig;

/// How a stream is sent.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Where RTP goes: one address, or two for the two paths of ST 2022-7.
    pub to: Vec<SocketAddr>,
    /// Where RTP leaves from, for each address; the system chooses where there is none.
    pub from: Vec<SocketAddr>,
    /// Where RTCP goes and is heard. Default: the next port.
    pub control: ControlPort,
    /// Of every socket. Default: those of [`StreamOptions`], refusals heard, 1 MiB of receive buffer.
    pub stream: StreamOptions,
    /// The MTU in bytes that packets fit. Default `None`: that of the narrowest path.
    pub mtu: Option<u32>,
    /// How frames are cut into packets.
    pub packing: Packing,
    /// Numbers, pacing and repetition.
    pub sender: SenderConfig,
    /// Names and times of reports.
    pub rtcp: RtcpConfig,
    /// Frames after which the stream ends. Default: none.
    pub frames_max: u64,
    /// Time after which it ends. Default: never.
    pub duration: Duration,
    /// Tells the sender of its sound when the first frame begins. Default: nobody.
    pub start: Option<StreamStart>,
    /// Whether it is measured how evenly packets leave ([`SendReport::pacing`](super::SendReport::pacing)). Default: not.
    pub measures_pacing: bool,
}

impl SendOptions {
    /// Sends to `to` with random identities.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(to: SocketAddr) -> io::Result<SendOptions> {
        let [ssrc, first_sequence, first_timestamp] = random_words()?;
        let stream = StreamOptions { receive_buffer_bytes: 1 << 20, icmp: IcmpNews::Heard, ..StreamOptions::default() };
        Ok(SendOptions {
            to: vec![to],
            from: Vec::new(),
            control: ControlPort::Next,
            stream,
            mtu: None,
            packing: Packing::Equal,
            sender: SenderConfig { ssrc, first_sequence, first_timestamp, ..SenderConfig::default() },
            rtcp: RtcpConfig { tool: TOOL.to_owned(), ..RtcpConfig::new(format!("{ssrc:08x}@thalweg")) },
            frames_max: u64::MAX,
            duration: Duration::MAX,
            start: None,
            measures_pacing: false,
        })
    }

    /// How frames of `format` are cut for this path.
    ///
    /// # Errors
    /// No route leads there, or the format cannot be cut for it.
    pub fn plan(&self, format: VideoFormat) -> Result<PacketPlan, SendError> {
        let room = PathRoom::of(&self.to, self.mtu, &self.stream).map_err(SendError::Socket)?;
        let payload = room.payload.saturating_sub(self.sender.resend.added_octets());
        PacketPlan::new(format, self.packing, payload).map_err(SendError::Plan)
    }
}

/// What the narrowest of a stream's paths carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRoom {
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The longest payload of a datagram in bytes.
    pub payload: usize,
}

impl PathRoom {
    /// That of the paths to these addresses, or of such ones with this `mtu`.
    ///
    /// # Errors
    /// No route leads there, and no MTU is told.
    pub(super) fn of(to: &[SocketAddr], mtu: Option<u32>, options: &StreamOptions) -> io::Result<PathRoom> {
        let narrowest = || -> io::Result<u32> {
            let mut paths = to.iter().map(|to| stream::path_mtu(*to, options.multicast_interface));
            paths.try_fold(u32::from(u16::MAX), |narrowest, mtu| mtu.map(|mtu| narrowest.min(mtu)))
        };
        let mtu = mtu.map_or_else(narrowest, Ok)?;
        let payload = to.iter().map(|to| stream::payload_max(mtu, to.ip())).min().unwrap_or_default();
        Ok(PathRoom { mtu, payload })
    }
}

/// Three random numbers.
pub(super) fn random_words() -> io::Result<[u32; 3]> {
    let octets = entropy::bytes::<12>()?;
    let (words, _) = octets.as_chunks::<4>();
    Ok([0, 1, 2].map(|word| words.get(word).copied().map_or(0, u32::from_ne_bytes)))
}

/// How a stream is received.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Where RTP is heard: one address, or two for the two paths of ST 2022-7. A multicast address is joined.
    pub bind: Vec<SocketAddr>,
    /// Where RTCP is heard. Default: at the next port.
    pub control: ControlPort,
    /// Whom the group at each address of `bind` is heard from. Default, and where there is nobody: from everybody.
    pub group_sources: Vec<Vec<IpAddr>>,
    /// The interface that groups are joined on, by its index; 0 (default): that of a zone in `bind`, or else the choice of the system.
    pub group_interface: u32,
    /// Of every socket.
    pub stream: StreamOptions,
    /// How long arrivals are gathered before they are read: a thread that wakes for each batch of packets costs as much for waking
    /// as for reading. Default 1 ms; a quarter of the time in which the receive buffer fills where that is shorter. It delays requests
    /// for lost packets by as much, or by what reading takes, and no frame, since arrivals have the kernel's times; zero reads at once.
    pub gathering: Duration,
    /// Format, playout, concealment and repair.
    pub receiver: ReceiverConfig,
    /// The source of our reports; random.
    pub ssrc: u32,
    /// Names and times of reports.
    pub rtcp: RtcpConfig,
    /// Where reports go on each path. Default: to where the sender's reports come from, and until then to the port of RTCP beside
    /// the one that its packets come from.
    pub control_to: Vec<SocketAddr>,
    /// Frames after which receiving ends. Default: none.
    pub frames_max: u64,
    /// Time after which it ends. Default: never.
    pub duration: Duration,
    /// What a sender's farewell means, or its silence for the time after which a peer is forgotten. Default: the end.
    pub farewell: Farewell,
    /// Tells the receiver of the sound when pictures are shown. Default: nobody.
    pub picture: Option<PictureTimes>,
}

/// What follows when the sender of the stream says that it leaves, or is gone without it (RFC 3550 §6.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Farewell {
    /// Its last frames are presented, and receiving ends.
    #[default]
    End,
    /// Another sender may come.
    Continue,
}

impl ReceiveOptions {
    /// Receives frames as `receiver` tells at `bind`, with random identities.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(bind: SocketAddr, receiver: ReceiverConfig) -> io::Result<ReceiveOptions> {
        let [ssrc, ..] = random_words()?;
        Ok(ReceiveOptions {
            bind: vec![bind],
            control: ControlPort::Next,
            group_sources: Vec::new(),
            group_interface: 0,
            stream: StreamOptions::default(),
            gathering: GATHERING,
            receiver,
            ssrc,
            rtcp: RtcpConfig { tool: TOOL.to_owned(), ..RtcpConfig::new(format!("{ssrc:08x}@thalweg")) },
            control_to: Vec::new(),
            frames_max: u64::MAX,
            duration: Duration::MAX,
            farewell: Farewell::End,
            picture: None,
        })
    }

    /// How long arrivals are gathered with receive buffers of so many bytes: a quarter of the time in which the picture fills them at
    /// most, since the kernel charges up to twice a packet's octets and a thread may wake late. Zero where that is too short to save
    /// anything.
    pub(super) fn gathering_within(&self, receive_buffer_bytes: usize) -> Duration {
        let format = self.receiver.format;
        let filled = format.frame_time().mul_f64(receive_buffer_bytes as f64 / format.frame_octets() as f64);
        let allowed = self.gathering.min(filled / 4);
        if allowed < GATHERING_MIN { Duration::ZERO } else { allowed }
    }
}

/// Name and version of this program, in reports.
pub(super) const TOOL: &str = concat!("thalweg ", env!("CARGO_PKG_VERSION"));
/// The default of [`ReceiveOptions::gathering`]: eight batches of 1080p30 at MTU 1500, and little beside the two frame times in which a lost
/// packet can come again.
const GATHERING: Duration = Duration::from_millis(1);
/// A shorter sleep costs as much as being told of what arrives.
const GATHERING_MIN: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, PixelFormat, Scan, VideoFormat};

    #[test]
    fn arrivals_are_gathered_no_longer_than_the_receive_buffer_allows() {
        let format =
            VideoFormat::new(PixelFormat::Yuv422Bits10, (1920, 1080), FrameRate::NTSC, Scan::Progressive).unwrap();
        let options = ReceiveOptions::new("127.0.0.1:5004".parse().unwrap(), ReceiverConfig::new(format)).unwrap();
        assert_eq!(options.gathering_within(32 << 20), options.gathering);
        // 1.24 Gbit/s fill Debian's default in 0.69 ms.
        let short = options.gathering_within(106_496);
        assert!((Duration::from_micros(165)..Duration::from_micros(175)).contains(&short), "{short:?}");
        assert_eq!(options.gathering_within(32 << 10), Duration::ZERO);
        let at_once = ReceiveOptions { gathering: Duration::ZERO, ..options };
        assert_eq!(at_once.gathering_within(32 << 20), Duration::ZERO);
    }
}
