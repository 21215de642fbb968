//! A receiver of pictures under any datagrams at any times, genuine ones among them: no panic, counters with their law,
//! lists within their bound, frames in order and of the right size, and it comes to rest.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use thalweg_base::time::Instant;
use thalweg_video::format::{PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::{Concealment, NACK_ITEMS_MAX, NetworkPath, Paths, ReceiverConfig, Repair, VideoReceiver};
use thalweg_video::rfc4175::{PacketPlan, Packing};
use thalweg_video::sender::{Resend, SenderConfig, VideoSender};

/// Frames that may wait for a driver: two that are ready and nine slots.
const PICTURES_MAX: usize = 11;

struct World {
    sender: VideoSender,
    receiver: VideoReceiver,
    format: VideoFormat,
    now: Instant,
    /// Genuine datagrams, of which the fuzzer gives some.
    datagrams: Vec<Vec<u8>>,
}

impl World {
    fn new(choice: [u8; 3]) -> World {
        let scan = [Scan::Progressive, Scan::Interlaced, Scan::SegmentedFrame][usize::from(choice[0]) % 3];
        let pixels = PixelFormat::ALL[usize::from(choice[0]) / 3 % 3];
        let rate = "30000/1001".parse().expect("a rate");
        let format = VideoFormat::new(pixels, (16, 12), rate, scan).expect("a format");
        let mut config = ReceiverConfig::new(format);
        config.concealment = [Concealment::Previous, Concealment::Interpolate, Concealment::Flag, Concealment::Drop]
            [usize::from(choice[1]) % 4];
        config.paths = if choice[1] & 4 == 0 { Paths::One } else { Paths::Two };
        config.repair = match choice[1] >> 3 & 3 {
            0 => Repair::Off,
            1 => Repair::Nack { reorder_window: Duration::ZERO, retransmission: None },
            _ => Repair::by_retransmission(97),
        };
        config.payload_type = (choice[1] & 32 != 0).then_some(96);
        config.playout = format.frame_time() * u32::from(choice[2] % 8 + 1);
        let plan = PacketPlan::new(format, Packing::Fill, 20 + 30 + usize::from(choice[2])).expect("a plan");
        let resend = Resend::Retransmission { payload_type: 97, ssrc: 2, first_sequence: 0 };
        let sender = SenderConfig { resend, first_sequence: 0xfffa, ..SenderConfig::default() };
        World {
            sender: VideoSender::new(plan, sender).expect("a sender"),
            receiver: VideoReceiver::new(config).expect("a receiver"),
            format,
            now: Instant::from_nanos(1 << 40),
            datagrams: Vec::new(),
        }
    }

    /// Lets the sender send what is due.
    fn send(&mut self, value: u8) {
        if self.sender.wants_frame() {
            let octets: Arc<[u8]> = vec![value; self.format.frame_octets()].into();
            self.sender.handle_frame(self.now, octets).expect("it wants one");
        }
        while let Some(batch) = self.sender.poll_batch(self.now) {
            for packet in batch.packets() {
                let mut datagram = Vec::new();
                packet.copy_to(&mut datagram);
                self.datagrams.push(datagram);
            }
        }
        let first = self.datagrams.len().saturating_sub(64);
        self.datagrams.drain(..first);
    }

    /// Lets a frame time pass in eight parts; what is sent in a part arrives unless `lost` has its bit.
    fn pass_frame(&mut self, lost: u8) {
        for part in 0..8 {
            let before = self.datagrams.len();
            self.send(lost);
            let first = before.min(self.datagrams.len());
            if lost >> part & 1 == 0 {
                for datagram in &self.datagrams[first..] {
                    self.receiver.handle_datagram(self.now, datagram);
                }
            }
            self.settle();
            self.now += self.format.frame_time() / 8;
        }
    }

    /// Takes what the receiver has, and checks it.
    fn settle(&mut self) {
        let mut pictures = 0;
        while let Some(picture) = self.receiver.poll_frame(self.now) {
            assert_eq!(picture.octets.len(), self.format.frame_octets());
            assert_eq!(picture.is_complete(), picture.concealed_lines.count() == 0);
            pictures += 1;
        }
        assert!(pictures <= PICTURES_MAX, "{pictures} frames at once");
        while let Some(items) = self.receiver.poll_nack(self.now) {
            assert!((1..=NACK_ITEMS_MAX).contains(&items.len()));
            self.sender.handle_nack(self.now, items.iter().flat_map(|item| item.sequences()));
        }
        assert!(self.receiver.poll_timeout() > self.now, "nothing is due that was not given out");
        let counters = self.receiver.counters();
        assert!(counters.packets.are_consistent(), "{counters:?}");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, mut steps)) = input.split_first_chunk() else { return };
    let mut world = World::new(*choice);
    while let Some(([kind, value], rest)) = steps.split_first_chunk() {
        steps = rest;
        match kind % 7 {
            0 => world.now += Duration::from_micros(u64::from(*value).pow(3)),
            1 => world.send(*value),
            2 | 3 => {
                let path = [NetworkPath::First, NetworkPath::Second][usize::from(kind / 7 % 2)];
                let Some(index) = world.datagrams.len().checked_sub(1 + usize::from(*value)) else { continue };
                let mut datagram = world.datagrams[index].clone();
                // Changed in one octet, or as it is.
                if kind % 7 == 3
                    && let Some(([place, octet], rest)) = steps.split_first_chunk()
                {
                    steps = rest;
                    let place = usize::from(*place) % datagram.len();
                    datagram[place] = *octet;
                }
                world.receiver.handle_datagram_from(world.now, path, &datagram);
            }
            4 => {
                let (datagram, rest) = steps.split_at(usize::from(*value).min(steps.len()));
                steps = rest;
                world.receiver.handle_datagram(world.now, datagram);
            }
            5 => world.pass_frame(*value),
            _ => world.receiver.handle_round_trip(Duration::from_micros(u64::from(*value).pow(3))),
        }
        world.settle();
    }
    // It comes to rest: whatever is due comes in the end.
    for _ in 0..10_000 {
        let next = world.receiver.poll_timeout();
        if next == Instant::NEVER {
            world.receiver.finish();
            assert_eq!(world.receiver.counters().packets.outstanding, 0);
            return;
        }
        world.now = next;
        world.settle();
    }
    panic!("it never rests");
});
