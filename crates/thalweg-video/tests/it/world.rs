//! A sender, a receiver and the network between them, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::{
    NetworkPath, Paths, PictureOctets, ReceivedPicture, ReceiverConfig, Repair, VideoReceiver,
};
use thalweg_video::rfc4175::{PacketPlan, Packing, VideoPayload};
use thalweg_video::rtp::RtpPacket;
use thalweg_video::sender::{Resend, SenderConfig, VideoSender};

const RETRANSMISSION: u8 = 97;

/// What the network does.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The share of datagrams that are lost, in each direction and on each path.
    pub loss: f64,
    /// The time that a datagram takes at least.
    pub delay: Duration,
    /// What some take in addition, at most.
    pub jitter: Duration,
    /// The share of datagrams that take longer.
    pub jittery: f64,
    /// The share of datagrams that come twice.
    pub duplicates: f64,
    /// The share of frames during which the sender stands still for a while.
    pub stalls: f64,
    /// How long at most.
    pub stall: Duration,
}

impl Default for Weather {
    fn default() -> Weather {
        Weather {
            loss: 0.0,
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            jittery: 0.0,
            duplicates: 0.0,
            stalls: 0.0,
            stall: Duration::ZERO,
        }
    }
}

/// What the network knows to be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    pub expected: u64,
    pub received: u64,
    pub recovered: u64,
    pub lost: u64,
    pub duplicates: u64,
    pub reordered: u64,
}

/// One path's, or all paths', packets as they come out of the network.
#[derive(Debug, Default)]
struct Ledger {
    /// The number of each packet that came, and whether it came in the stream first.
    came: BTreeMap<u32, bool>,
    newest: Option<u32>,
    duplicates: u64,
    reordered: u64,
}

impl Ledger {
    fn note(&mut self, number: u32, is_stream: bool) {
        if self.came.contains_key(&number) {
            self.duplicates += 1;
            return;
        }
        self.came.insert(number, is_stream);
        self.reordered += u64::from(is_stream && self.newest.is_some_and(|newest| number < newest));
        if is_stream {
            self.newest = self.newest.max(Some(number));
        }
    }

    fn truth(&self) -> Truth {
        let (first, last) = (self.came.keys().next(), self.came.keys().next_back());
        let expected = first.zip(last).map_or(0, |(first, last)| u64::from(last - first) + 1);
        let received = self.came.values().filter(|is_stream| **is_stream).count() as u64;
        let recovered = self.came.len() as u64 - received;
        let lost = expected - self.came.len() as u64;
        Truth { expected, received, recovered, lost, duplicates: self.duplicates, reordered: self.reordered }
    }
}

/// What is under way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Traffic {
    Media(usize, Vec<u8>),
    Nack(Vec<u16>),
}

/// When the receiver is there.
#[derive(Debug, Default)]
pub struct Attendance {
    /// Datagrams of the stream that come before it.
    pub missed: usize,
    /// When the first datagram came that it heard.
    pub begun: Option<Instant>,
}

/// A frame that was presented, and the one presented before it.
pub struct Shown {
    pub picture: ReceivedPicture,
    /// When it was presented.
    pub at: Instant,
    pub sent: Arc<[u8]>,
    pub before: Option<PictureOctets>,
}

pub struct World {
    pub format: VideoFormat,
    pub sender: VideoSender,
    pub receiver: VideoReceiver,
    pub now: Instant,
    pub attendance: Attendance,
    weather: [Weather; 2],
    rng: Rng,
    traffic: BinaryHeap<Reverse<(Instant, u64, Traffic)>>,
    serial: u64,
    sent: BTreeMap<u32, Arc<[u8]>>,
    frames_left: u64,
    sleeps_until: Instant,
    ledgers: [Ledger; 3],
    pub shown: Vec<Shown>,
}

pub fn format(size: (u16, u16), scan: Scan) -> VideoFormat {
    VideoFormat::new(PixelFormat::Yuv422Bits10, size, "30000/1001".parse().unwrap(), scan).unwrap()
}

impl World {
    /// `octets` of datagrams at most; `adjust` changes the receiver's defaults.
    pub fn new(
        seed: u64,
        format: VideoFormat,
        (packing, octets): (Packing, usize),
        adjust: impl Fn(&mut ReceiverConfig),
    ) -> World {
        let mut config = ReceiverConfig::new(format);
        adjust(&mut config);
        let resend = match config.repair {
            Repair::Off => Resend::Never,
            Repair::Nack { retransmission: None, .. } => Resend::Same,
            Repair::Nack { .. } => {
                Resend::Retransmission { payload_type: RETRANSMISSION, ssrc: 2, first_sequence: 65_530 }
            }
        };
        let sender = SenderConfig {
            ssrc: 1,
            first_sequence: 0x1_fff0,
            // Wraps after some frames.
            first_timestamp: u32::MAX - 20_000,
            resend,
            ..SenderConfig::default()
        };
        let plan = PacketPlan::new(format, packing, octets).unwrap();
        World {
            format,
            sender: VideoSender::new(plan, sender).unwrap(),
            receiver: VideoReceiver::new(config).unwrap(),
            now: Instant::from_nanos(1 << 40),
            attendance: Attendance::default(),
            weather: [Weather::default(); 2],
            rng: Rng::new(seed),
            traffic: BinaryHeap::new(),
            serial: 0,
            sent: BTreeMap::new(),
            frames_left: 0,
            sleeps_until: Instant::ZERO,
            ledgers: Default::default(),
            shown: Vec::new(),
        }
    }

    pub fn weather(mut self, first: Weather, second: Weather) -> World {
        self.weather = [first, second];
        self
    }

    /// Sends so many frames and lets everything come to rest.
    pub fn run(&mut self, frames: u64) {
        self.frames_left += frames;
        while self.step() {}
    }

    /// Ends the stream.
    pub fn finish(&mut self) {
        self.receiver.finish();
        self.present();
    }

    /// What the network knows of all paths together.
    pub fn truth(&self) -> Truth {
        self.ledgers[2].truth()
    }

    pub fn path_truth(&self, path: usize) -> Truth {
        self.ledgers[path].truth()
    }

    /// Goes to the next time at which something happens; false at rest.
    fn step(&mut self) -> bool {
        while self.sleeps_until <= self.now {
            self.drive_sender();
            if self.frames_left == 0 || !self.sender.wants_frame() {
                break;
            }
        }
        self.present();
        while let Some(items) = self.receiver.poll_nack(self.now) {
            let numbers = items.iter().flat_map(|item| item.sequences()).collect();
            if !self.rng.chance(self.weather[0].loss) {
                let at = self.now + self.weather[0].delay;
                self.send(at, Traffic::Nack(numbers));
            }
        }
        let arrival = self.traffic.peek().map_or(Instant::NEVER, |Reverse((at, ..))| *at);
        let sender = self.sender.poll_timeout().max(self.sleeps_until);
        let next = arrival.min(sender).min(self.receiver.poll_timeout());
        if next == Instant::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        while let Some(Reverse((at, ..))) = self.traffic.peek()
            && *at <= self.now
        {
            let Reverse((_, _, traffic)) = self.traffic.pop().expect("just seen");
            self.deliver(traffic);
        }
        true
    }

    fn drive_sender(&mut self) {
        if self.frames_left > 0 && self.sender.wants_frame() {
            self.frames_left -= 1;
            let mut octets = vec![0; self.format.frame_octets()];
            self.rng.fill(&mut octets);
            let octets: Arc<[u8]> = octets.into();
            let timestamp = self.sender.handle_frame(self.now, octets.clone()).unwrap();
            self.sent.insert(timestamp, octets);
            if self.rng.chance(self.weather[0].stalls) {
                self.sleeps_until = self.now + self.weather[0].stall.mul_f64(self.rng.share());
            }
        }
        let mut leaving = Vec::new();
        while let Some(batch) = self.sender.poll_batch(self.now) {
            for packet in batch.packets() {
                let mut datagram = Vec::with_capacity(packet.octets());
                packet.copy_to(&mut datagram);
                leaving.push(datagram);
            }
        }
        let paths = if self.receiver.config().paths == Paths::Two { 2 } else { 1 };
        for datagram in leaving {
            for path in 0..paths {
                self.transmit(path, &datagram);
            }
        }
    }

    fn transmit(&mut self, path: usize, datagram: &[u8]) {
        let weather = self.weather[path];
        if self.rng.chance(weather.loss) {
            return;
        }
        let copies = 1 + u64::from(self.rng.chance(weather.duplicates));
        for _ in 0..copies {
            let mut at = self.now + weather.delay;
            if self.rng.chance(weather.jittery) {
                at += weather.jitter.mul_f64(self.rng.share());
            }
            self.send(at, Traffic::Media(path, datagram.to_vec()));
        }
    }

    fn send(&mut self, at: Instant, traffic: Traffic) {
        self.serial += 1;
        self.traffic.push(Reverse((at, self.serial, traffic)));
    }

    fn deliver(&mut self, traffic: Traffic) {
        match traffic {
            Traffic::Nack(numbers) => self.sender.handle_nack(self.now, numbers),
            Traffic::Media(..) if self.attendance.missed > 0 => self.attendance.missed -= 1,
            Traffic::Media(path, datagram) => {
                self.attendance.begun = self.attendance.begun.or(Some(self.now));
                let packet = RtpPacket::parse(&datagram).unwrap();
                let is_stream = packet.header.payload_type != RETRANSMISSION;
                let (low, payload) = match is_stream {
                    true => (packet.header.sequence, packet.payload),
                    false => (u16::from_be_bytes([packet.payload[0], packet.payload[1]]), &packet.payload[2..]),
                };
                let extended = VideoPayload::parse(payload).unwrap().extended_sequence;
                let number = u32::from(extended) << 16 | u32::from(low);
                if is_stream {
                    self.ledgers[path].note(number, true);
                }
                self.ledgers[2].note(number, is_stream);
                let path = [NetworkPath::First, NetworkPath::Second][path];
                self.receiver.handle_datagram_from(self.now, path, &datagram);
                assert!(self.receiver.counters().packets.are_consistent());
            }
        }
    }

    fn present(&mut self) {
        while let Some(picture) = self.receiver.poll_frame(self.now) {
            let before = self.shown.last().map(|shown| shown.picture.octets.clone());
            let sent = self.sent.get(&picture.timestamp).expect("a frame of this time was sent").clone();
            self.shown.push(Shown { picture, at: self.now, sent, before });
        }
    }
}
