//! Threads that write on one writer: the sending thread, and threads that wait for room.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use loom::sync::Mutex;
use loom::thread::{self, JoinHandle};
use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{History, Method, Reliability, Transmission, WriterQos};
use thalweg_rtps::time::{INFINITE, Instant, Timestamp};
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, Locator, SequenceNumber, VendorId};
use thalweg_rtps::wire::{AckNack, SequenceSet};
use thalweg_rtps::writer::{MatchedReader, NewChange, Writer, WriterOptions};

use super::{Modelled, check};
use crate::publication::{send_in_turn, wait_for_room};
use crate::runtime::{Deadline, Waiters};
use crate::sync::Lock;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const PAYLOAD_BYTES: usize = 16;

/// A KEEP_ALL writer that sends at once and has one reader.
#[derive(Clone)]
struct Scene(Arc<Parts>);

struct Parts {
    writer: Modelled<Writer>,
    waiters: Waiters,
    /// The samples handed to the socket.
    sent: Modelled<Vec<u8>>,
    /// A thread hands something to the socket.
    is_sending: Mutex<bool>,
}

impl Scene {
    fn new(reliability: Reliability, max_samples: u32) -> Scene {
        let guid = |number, entity| Guid::new(GuidPrefix([number; 12]), entity);
        let transmission = Transmission::by(Method::Immediate);
        let mut qos = WriterQos { reliability, history: History::KeepAll, transmission, ..WriterQos::default() };
        qos.resource_limits.max_samples = Some(max_samples);
        let mut writer =
            Writer::new(guid(1, EntityId::user_writer(1, Keyed::No)), qos.into(), &WriterOptions::default());
        writer.match_reader(
            NOW,
            MatchedReader {
                guid: guid(2, EntityId([0, 0, 1, 4])),
                vendor: VendorId::THALWEG,
                reliable: true,
                qos: Arc::default(),
                unicast: vec![Locator::from(SocketAddr::from(([10, 0, 0, 2], 7411)))],
                multicast: None,
                on_this_host: false,
                datagram_bytes: 1472,
                batches: true,
                round_trip: Duration::from_millis(2),
                receive_buffer_bytes: None,
            },
        );
        let scene = Scene(Arc::new(Parts {
            writer: Modelled::new(writer),
            waiters: Waiters::default(),
            sent: Modelled::default(),
            is_sending: Mutex::default(),
        }));
        if reliability != Reliability::BestEffort {
            scene.acknowledge(1, 0);
        }
        scene
    }

    fn spawn(&self, run: impl FnOnce(&Scene) + 'static) -> JoinHandle<()> {
        let scene = self.clone();
        thread::spawn(move || run(&scene))
    }

    /// One try to write a sample; due messages are sent in any case.
    fn attempt(&self, value: u8) -> bool {
        let mut writer = self.0.writer.lock();
        let (kind, instance, payload) =
            (ChangeKind::Write, KeyHash::default(), Payload::from(vec![value; PAYLOAD_BYTES]));
        let change = NewChange { kind, instance, timestamp: Some(Timestamp::default()), payload };
        let is_written = writer.write(NOW, change).is_ok();
        if writer.wants_to_send(NOW) {
            let sent = send_in_turn(&self.0.writer, writer, NOW, &mut Outbox::new(), |outbox| self.send(outbox));
            if sent.made_room {
                self.0.waiters.notify(&self.0.writer);
            }
        }
        is_written
    }

    /// Writes a sample, and waits for room as long as there is none.
    fn write(&self, value: u8) {
        while !self.attempt(value) {
            let Parts { waiters, writer, .. } = &*self.0;
            wait_for_room(waiters, writer, &KeyHash::default(), PAYLOAD_BYTES, Deadline::NEVER);
        }
    }

    /// The socket.
    fn send(&self, outbox: &Outbox) -> Instant {
        assert!(!std::mem::replace(&mut *self.0.is_sending.lock().unwrap(), true), "two threads send");
        let bytes: Vec<u8> = outbox.datagrams().flat_map(|datagram| datagram.to_vec()).collect();
        let samples = bytes.chunk_by(|one, other| one == other).filter(|run| run.len() >= PAYLOAD_BYTES);
        let samples: Vec<u8> = samples.map(|run| run[0]).filter(|value| *value > 0).collect();
        self.0.sent.lock().extend(samples);
        self.0.sent.notify_all();
        *self.0.is_sending.lock().unwrap() = false;
        NOW
    }

    /// The I/O thread: the reader has acknowledged everything up to `last`, in its `count`th message.
    fn acknowledge(&self, count: u32, last: i64) {
        let reader = Guid::new(GuidPrefix([2; 12]), EntityId([0, 0, 1, 4]));
        let mut writer = self.0.writer.lock();
        let state = SequenceSet::new(SequenceNumber(last + 1));
        let acknack = AckNack { reader: reader.entity, writer: writer.guid().entity, state, count, is_final: true };
        let outcome = writer.handle_acknack(NOW, reader, &acknack);
        drop(writer);
        if outcome.space || outcome.all_acknowledged {
            self.0.waiters.notify(&self.0.writer);
        }
    }

    /// Waits until so many samples were sent.
    fn wait_for(&self, count: usize) {
        let mut sent = self.0.sent.lock();
        while sent.len() < count {
            sent = self.0.sent.wait(sent, INFINITE);
        }
    }

    fn sent(&self) -> Vec<u8> {
        let mut sent = self.0.sent.lock().clone();
        sent.sort();
        sent
    }
}

#[test]
fn what_threads_write_while_one_sends_is_sent_once_and_the_token_is_free() {
    check(|| {
        let scene = Scene::new(Reliability::BestEffort, 100);
        let others = [1, 2].map(|value| scene.spawn(move |scene| scene.write(value)));
        scene.write(3);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.sent(), [1, 2, 3]);
        scene.write(4);
        assert_eq!(scene.sent(), [1, 2, 3, 4], "nobody sends");
    });
}

#[test]
fn a_write_that_waits_for_the_sending_of_others_ends() {
    check(|| {
        let scene = Scene::new(Reliability::BestEffort, 1);
        let others = [1, 2].map(|value| scene.spawn(move |scene| scene.write(value)));
        scene.write(3);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.sent(), [1, 2, 3]);
    });
}

#[test]
fn a_write_that_waits_for_acknowledgements_ends() {
    check(|| {
        let scene = Scene::new(Reliability::Reliable { max_blocking_time: INFINITE }, 2);
        (1..=2).for_each(|value| scene.write(value));
        let other = scene.spawn(|scene| scene.write(3));
        scene.acknowledge(2, 1);
        other.join().unwrap();
        assert_eq!(scene.sent(), [1, 2, 3]);
    });
}

#[test]
fn two_writes_that_wait_end_one_after_the_other() {
    check(|| {
        let scene = Scene::new(Reliability::Reliable { max_blocking_time: INFINITE }, 1);
        scene.write(1);
        let others = [2, 3].map(|value| scene.spawn(move |scene| scene.write(value)));
        scene.acknowledge(2, 1);
        scene.wait_for(2);
        scene.acknowledge(3, 2);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(scene.sent(), [1, 2, 3]);
    });
}

#[test]
fn a_write_for_which_others_left_no_room_is_told_of_the_next() {
    check(|| {
        let scene = Scene::new(Reliability::Reliable { max_blocking_time: INFINITE }, 4);
        (1..=4).for_each(|value| scene.write(value));
        let waiting = scene.spawn(|scene| scene.write(9));
        scene.acknowledge(2, 2);
        // They fill the history, and do not wait.
        let written = 4 + (5..=6).filter(|value| scene.attempt(*value)).count() as i64;
        // The last sample is never acknowledged.
        scene.acknowledge(3, written - 1);
        waiting.join().unwrap();
    });
}
