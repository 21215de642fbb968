//! The words of the programs at both ends.

use std::net::Ipv4Addr;
use std::path::Path;

use super::cell::{HdtvTraffic, PictureCase, STANDARD_MTU, Segmenting};
use super::plan::Paper3Plan;

/// Where the picture goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PictureWay<'a> {
    pub(super) plan: &'a Paper3Plan,
    pub(super) case: PictureCase,
    pub(super) to: Ipv4Addr,
    pub(super) seconds: f64,
    /// A frame as it lies in packets.
    pub(super) frame: &'a Path,
}

impl PictureWay<'_> {
    /// Frames that are sent.
    pub(super) fn frames(&self) -> u64 {
        self.case.frames_in(self.seconds)
    }

    fn size(&self) -> String {
        let (width, lines) = self.plan.size();
        format!("{width}x{lines}")
    }

    fn repair(&self) -> &'static str {
        if self.case.is_repaired { "rtx" } else { "off" }
    }

    /// `thalweg video send`; the paper's repeats nothing.
    pub(super) fn thalweg_sender(&self, code_point: Option<u8>) -> Vec<String> {
        let packing = if self.case.is_filled { "fill" } else { "equal" };
        let mut out = words(&format!(
            "video send --to {}:{PORT} --size {} --rate {} --mtu {} --packing {packing} --batching {} --repair {} --frames {} --repeat --json --source",
            self.to,
            self.size(),
            self.case.rate,
            self.case.packet_mtu_bytes,
            self.case.batching,
            self.repair(),
            self.frames()
        ));
        out.push(format!("raw:{}", self.frame.display()));
        out.extend(code_point.into_iter().flat_map(|code_point| ["--dscp".to_owned(), code_point.to_string()]));
        out
    }

    /// `thalweg video recv`, which ends with the sender, and in any case.
    pub(super) fn thalweg_receiver(&self) -> Vec<String> {
        words(&format!(
            "video recv --bind {}:{PORT} --size {} --rate {} --sink null --repair {} --buffer {} --seconds {:.0} --json",
            self.to,
            self.size(),
            self.case.rate,
            self.repair(),
            self.case.buffer_bytes,
            self.seconds + RECEIVER_PATIENCE_S
        ))
    }

    /// A pipeline of GStreamer: one frame, frozen, so that no generator costs anything.
    pub(super) fn gstreamer_sender(&self) -> Vec<String> {
        let (width, lines) = self.plan.size();
        let mut out = vec!["-q".to_owned(), "filesrc".to_owned(), format!("location={}", self.frame.display())];
        out.extend(words(&format!(
            "blocksize={} ! rawvideoparse format=uyvp width={width} height={lines} framerate=30000/1001 ! imagefreeze num-buffers={} ! \
             video/x-raw,framerate=30000/1001 ! rtpvrawpay mtu={} ! udpsink host={} port={PORT} sync=true",
            self.plan.frame_octets(),
            self.frames(),
            self.payload_octets(),
            self.to
        )));
        out
    }

    /// A pipeline that tells each frame.
    pub(super) fn gstreamer_receiver(&self) -> Vec<String> {
        let (width, lines) = self.plan.size();
        words(&format!(
            "-v udpsrc address={} port={PORT} buffer-size={} \
             caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96,sampling=(string)YCbCr-4:2:2,\
             depth=(string)10,width=(string){width},height=(string){lines} ! rtpvrawdepay ! fakesink silent=false sync=false",
            self.to, self.case.buffer_bytes
        ))
    }

    /// FFmpeg repeats the frame as it lies in packets.
    pub(super) fn ffmpeg_sender(&self) -> Vec<String> {
        let mut out = words(&format!(
            "-hide_banner -nostdin -loglevel warning -re -stream_loop -1 -f bitpacked -video_size {} -pixel_format yuv422p10 \
             -framerate 30000/1001 -i",
            self.size()
        ));
        out.push(self.frame.display().to_string());
        out.extend(words(&format!(
            "-c:v copy -frames:v {} -strict -1 -f rtp rtp://{}:{PORT}?pkt_size={}",
            self.frames(),
            self.to,
            self.payload_octets()
        )));
        out
    }

    /// FFmpeg tells its frames now and then.
    pub(super) fn ffmpeg_receiver(&self, description: &Path) -> Vec<String> {
        let mut out = words(&format!(
            "-hide_banner -nostdin -loglevel warning -protocol_whitelist file,udp,rtp -buffer_size {} -i",
            self.case.buffer_bytes
        ));
        out.push(description.display().to_string());
        out.extend(words("-an -c:v copy -f null -progress pipe:1 -stats_period 0.1 -"));
        out
    }

    /// The stream for FFmpeg.
    pub(super) fn description(&self) -> String {
        let (width, lines) = self.plan.size();
        let to = self.to;
        format!(
            "v=0\r\no=- 1 1 IN IP4 {to}\r\ns=paper3\r\nc=IN IP4 {to}\r\nt=0 0\r\nm=video {PORT} RTP/AVP 96\r\na=rtpmap:96 raw/90000\r\n\
             a=fmtp:96 sampling=YCbCr-4:2:2; width={width}; height={lines}; depth=10; colorimetry=BT709-2; exactframerate=30000/1001\r\n"
        )
    }

    /// Octets of an RTP packet that fits the MTU.
    fn payload_octets(&self) -> u32 {
        self.case.packet_mtu_bytes - HEADERS
    }
}

/// `thalweg perf` to the server at `to`; nothing for a picture alone.
pub(super) fn probe(
    traffic: HdtvTraffic,
    to: std::net::SocketAddr,
    (mtu_bytes, segmenting): (u32, Segmenting),
    seconds: f64,
) -> Vec<String> {
    let joining = if segmenting == Segmenting::Program { " --no-gso --no-gro" } else { "" };
    match traffic {
        HdtvTraffic::Udp { streams } => words(&format!(
            "perf udp {to} --streams {streams} --mtu-size {mtu_bytes} --seconds {seconds} --json{joining}"
        )),
        HdtvTraffic::Tcp { streams } => words(&format!("perf tcp {to} --streams {streams} --seconds {seconds} --json")),
        HdtvTraffic::RoundTrips { bytes } => {
            words(&format!("perf udp {to} --round-trips --size {bytes} --seconds {seconds} --json"))
        }
        HdtvTraffic::Picture(_) | HdtvTraffic::Shared { .. } => Vec::new(),
    }
}

/// TCP in frames of the usual size beside a picture.
pub(super) fn standard_tcp(to: std::net::SocketAddr, seconds: f64) -> Vec<String> {
    words(&format!("perf tcp {to} --mtu-size {STANDARD_MTU} --seconds {seconds} --json"))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The port of the picture; hosts of a run have nothing else.
pub(super) const PORT: u16 = 5_004;
/// The payload type of Thalweg's pictures, whose repetitions have the next one; other programs are told the same.
pub(super) const PAYLOAD_TYPE: u8 = 96;
/// Assured forwarding of video (RFC 4594 §4.5: AF41).
pub(super) const CODE_POINT: u8 = 34;
/// A receiver whose sender does not say that it leaves ends by itself.
const RECEIVER_PATIENCE_S: f64 = 30.0;
/// Of IPv4 and UDP.
const HEADERS: u32 = 28;
