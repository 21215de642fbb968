//! In the steady state neither sender nor receiver allocates anything, with losses and requests.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::rng::Rng;
use thalweg_base::time::Instant;
use thalweg_testing::allocations::{Counting, of_this_thread};
use thalweg_video::format::{FrameRate, PixelFormat, Scan, VideoFormat};
use thalweg_video::receiver::{NetworkPath, Paths, ReceiverConfig, Repair, VideoReceiver};
use thalweg_video::rfc4175::{PacketPlan, Packing};
use thalweg_video::sender::{Resend, SenderConfig, VideoSender};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A sender and a receiver with a network that loses packets and delays nothing.
struct Pair {
    sender: VideoSender,
    receiver: VideoReceiver,
    pictures: VecDeque<Arc<[u8]>>,
    datagram: Vec<u8>,
    requests: Vec<u16>,
    rng: Rng,
    now: Instant,
    complete: u64,
    concealed: u64,
}

impl Pair {
    fn new(scan: Scan, packing: Packing, repair: Repair) -> Pair {
        let format = VideoFormat::new(PixelFormat::Yuv422Bits10, (480, 270), FrameRate::NTSC, scan).unwrap();
        let plan = PacketPlan::new(format, packing, 1452).unwrap();
        let resend = Resend::Retransmission { payload_type: 97, ssrc: 2, first_sequence: 0 };
        let config = ReceiverConfig { repair, paths: Paths::Two, ..ReceiverConfig::new(format) };
        Pair {
            sender: VideoSender::new(plan, SenderConfig { resend, ..SenderConfig::default() }).unwrap(),
            receiver: VideoReceiver::new(config).unwrap(),
            pictures: (0..8).map(|value| vec![value; format.frame_octets()].into()).collect(),
            datagram: Vec::with_capacity(2000),
            requests: Vec::with_capacity(10_000),
            rng: Rng::new(1),
            now: Instant::from_nanos(1 << 40),
            complete: 0,
            concealed: 0,
        }
    }

    fn run(&mut self, frames: usize) {
        let mut left = frames;
        loop {
            if self.sender.wants_frame() && left > 0 {
                left -= 1;
                let picture = self.pictures.pop_front().expect("more than the sender keeps");
                self.pictures.push_back(picture.clone());
                self.sender.handle_frame(self.now, picture).unwrap();
            }
            if left == 0 && self.sender.is_idle() {
                return;
            }
            while let Some(batch) = self.sender.poll_batch(self.now) {
                for packet in batch.packets() {
                    self.datagram.clear();
                    packet.copy_to(&mut self.datagram);
                    for path in [NetworkPath::First, NetworkPath::Second] {
                        if !self.rng.chance(0.2) {
                            self.receiver.handle_datagram_from(self.now, path, &self.datagram);
                        }
                    }
                }
            }
            self.requests.clear();
            while let Some(items) = self.receiver.poll_nack(self.now) {
                self.requests.extend(items.iter().flat_map(|item| item.sequences()));
            }
            self.sender.handle_nack(self.now, self.requests.iter().copied());
            while let Some(picture) = self.receiver.poll_frame(self.now) {
                *(if picture.is_complete() { &mut self.complete } else { &mut self.concealed }) += 1;
            }
            let next = self.sender.poll_timeout().min(self.receiver.poll_timeout());
            self.now = next.max(self.now + Duration::from_nanos(1));
        }
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    for scan in [Scan::Progressive, Scan::Interlaced] {
        for packing in [Packing::Equal, Packing::Fill] {
            for repair in [Repair::Off, Repair::by_retransmission(97)] {
                let mut pair = Pair::new(scan, packing, repair);
                pair.run(20);
                let (before, complete, concealed) = (of_this_thread(), pair.complete, pair.concealed);
                pair.run(60);
                assert_eq!(of_this_thread() - before, 0, "{scan} {packing:?} {repair:?}");
                let (complete, concealed) = (pair.complete - complete, pair.concealed - concealed);
                assert!(complete + concealed >= 58, "{complete} and {concealed}");
                assert!(if repair == Repair::Off { concealed > 50 } else { complete > 50 }, "{complete}, {concealed}");
            }
        }
    }
    assert!(of_this_thread() > 0, "the allocator counts");
}
