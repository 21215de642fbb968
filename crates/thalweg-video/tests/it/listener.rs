//! A peer that is no receiver of this crate: it puts packets where their headers say and notes what came.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::clock;
use thalweg_transport::stream::StreamScratch;
use thalweg_video::format::{Field, Scan, VideoFormat};
use thalweg_video::io::{MediaReceiver, MediaSocket, Protocol};
use thalweg_video::rfc4175::VideoPayload;
use thalweg_video::rtp::RtpPacket;

/// A packet that came.
pub struct Packet {
    pub arrived: Instant,
    pub sequence: u32,
    pub timestamp: u32,
    pub ssrc: u32,
    pub payload_type: u8,
    pub marker: bool,
}

/// Everything that came.
#[derive(Default)]
pub struct Heard {
    pub packets: Vec<Packet>,
    /// Each frame by its time stamp, in the order of the stamps since the first.
    pub frames: BTreeMap<u32, Vec<u8>>,
    pub control: Vec<Vec<u8>>,
    /// Where RTCP came from.
    pub control_source: Option<SocketAddr>,
    /// Messages that brought the packets.
    pub messages: usize,
}

/// Listens until `stop`; a datagram that `answer` makes of a packet is sent to where RTCP comes from.
pub fn listen(
    socket: MediaSocket,
    format: VideoFormat,
    stop: &AtomicBool,
    mut answer: impl FnMut(&Packet) -> Option<Vec<u8>>,
) -> Heard {
    let sockets = [socket];
    let mut receiver = MediaReceiver::new(&sockets).unwrap();
    let [socket] = &sockets;
    let (mut heard, mut answers) = (Heard::default(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        receiver.wait_until(clock::now() + Duration::from_millis(5)).unwrap();
        while receiver.receive(|arrival| {
            let is_control = arrival.datagrams().any(|(protocol, _)| protocol == Protocol::Control);
            heard.messages += usize::from(!is_control);
            for (protocol, bytes) in arrival.datagrams() {
                if protocol == Protocol::Control {
                    heard.control.push(bytes.to_vec());
                    heard.control_source = Some(arrival.message.source);
                } else {
                    let packet = heard.place(format, bytes, arrival.message.arrived);
                    answers.extend(answer(&packet));
                    heard.packets.push(packet);
                }
            }
        }) {}
        if let Some(to) = heard.control_source {
            for datagram in answers.drain(..) {
                let mut scratch = StreamScratch::default();
                let mut burst = socket.control().burst(&mut scratch, to);
                burst.push([&datagram[..]]);
                burst.send(Duration::from_millis(5));
            }
        }
    }
    heard
}

impl Heard {
    fn place(&mut self, format: VideoFormat, bytes: &[u8], arrived: Instant) -> Packet {
        let packet = RtpPacket::parse(bytes).unwrap();
        let header = packet.header;
        // A repetition begins with the number of its original (RFC 4588 §4).
        let payload = if header.payload_type == REPETITIONS { &packet.payload[2..] } else { packet.payload };
        let payload = VideoPayload::parse(payload).unwrap();
        let frame = self.frames.entry(header.timestamp).or_insert_with(|| vec![0; format.frame_octets()]);
        for (piece, octets) in payload.pieces() {
            let line = match format.scan() {
                Scan::Progressive => usize::from(piece.line),
                _ => 2 * usize::from(piece.line) + usize::from(piece.field == Field::Second),
            };
            let group = format.pixels().group();
            let at = usize::from(piece.offset / group.pixels * group.octets);
            let start = line * format.line_octets() + at;
            frame[start..start + octets.len()].copy_from_slice(octets);
        }
        Packet {
            arrived,
            sequence: u32::from(payload.extended_sequence) << 16 | u32::from(header.sequence),
            timestamp: header.timestamp,
            ssrc: header.ssrc,
            payload_type: header.payload_type,
            marker: header.marker,
        }
    }
}

/// The payload type of repetitions in these tests.
pub const REPETITIONS: u8 = 97;
