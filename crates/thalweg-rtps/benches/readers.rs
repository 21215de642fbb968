//! What a writer's work costs with one reader and with a thousand: a sample written and packed when ACKNACKs have just filled the
//! processor's cache, the next one, an ACKNACK, those of all readers, one timeout while one reader owes an acknowledgement, a reader that
//! comes. A thousand readers take part of the processor's cache, as anything does that an application works on between two samples; a
//! last row tells what that alone costs a writer with one reader.
//!
//!     cargo xtask count readers

#![expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "a benchmark reads the clock and prints")]

use std::net::SocketAddr;
use std::time::Duration;

use thalweg_rtps::history::ChangeKind;
use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::payload::Payload;
use thalweg_rtps::qos::{Destination, History, Method, Transmission, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, Locator, VendorId};
use thalweg_rtps::wire::{AckNack, SequenceSet};
use thalweg_rtps::writer::{MatchedReader, NewChange, Writer, WriterOptions};

/// Samples written at each number of readers.
const SAMPLES: u32 = 300;
const SAMPLE_BYTES: usize = 100;
/// What an application touches between two samples, in the last row: about what a thousand readers take.
const WORK_BYTES: usize = 2 << 20;

fn main() {
    println!("KEEP_ALL, reliable, {SAMPLE_BYTES} B, one multicast group; median of {SAMPLES} samples, in nanoseconds:");
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>14} {:>12} {:>10}",
        "readers", "write", "next write", "ACKNACK", "all ACKNACKs", "one timeout", "match"
    );
    for readers in [1, 10, 100, 300, 1_000, 4_000] {
        let Costs { write, next, acknack, all, timeout, matching } = measure(readers, 0);
        println!("{readers:>8} {write:>10} {next:>10} {acknack:>10} {all:>14} {timeout:>12} {matching:>10}");
    }
    let Costs { write, next, .. } = measure(1, WORK_BYTES);
    println!("{:>8} {write:>10} {next:>10}   after {} KB of an application's own were touched", 1, WORK_BYTES >> 10);
}

/// Medians, in nanoseconds.
struct Costs {
    write: u64,
    next: u64,
    acknack: u64,
    all: u64,
    timeout: u64,
    matching: u64,
}

fn reader(number: u32) -> Guid {
    let mut prefix = [7; 12];
    prefix[8..].copy_from_slice(&number.to_be_bytes());
    Guid::new(GuidPrefix(prefix), EntityId([0, 0, 1, 4]))
}

fn matched(number: u32) -> MatchedReader {
    let [_, _, high, low] = number.to_be_bytes();
    MatchedReader {
        guid: reader(number),
        vendor: VendorId::THALWEG,
        reliable: true,
        qos: std::sync::Arc::default(),
        unicast: vec![Locator::from(SocketAddr::from(([10, 0, high, low], 7411)))],
        multicast: Some(Locator::from(SocketAddr::from(([239, 255, 0, 1], 7401)))),
        on_this_host: false,
        datagram_bytes: 1_472,
        batches: true,
        round_trip: Duration::from_millis(1),
        receive_buffer_bytes: None,
    }
}

fn measure(readers: u32, work_bytes: usize) -> Costs {
    let qos = WriterQos {
        history: History::KeepAll,
        transmission: Transmission { destination: Destination::Multicast, ..Transmission::by(Method::Immediate) },
        ..WriterQos::default()
    };
    let guid = Guid::new(GuidPrefix([9; 12]), EntityId::user_writer(1, Keyed::No));
    let mut writer = Writer::new(guid, qos.into(), &WriterOptions::default());
    let (mut outbox, mut now, mut count) = (Outbox::default(), Instant::from_nanos(1), 0);
    let mut matching = Samples::default();
    (0..readers).for_each(|number| matching.time(|| writer.match_reader(now, matched(number))));
    let mut answer = |writer: &mut Writer, now, number, outbox: &mut Outbox| {
        count += 1;
        let state = SequenceSet::new(writer.last().next());
        let reader = reader(number);
        let acknack = AckNack { reader: reader.entity, writer: guid.entity, state, count, is_final: true };
        writer.handle_acknack(now, reader, &acknack);
        writer.poll_transmit(now, outbox);
    };
    (0..readers).for_each(|number| answer(&mut writer, now, number, &mut outbox));
    while writer.poll_transmit(now, &mut outbox) {
        outbox.clear();
    }
    let (mut writes, mut nexts) = (Samples::default(), Samples::default());
    let (mut acknacks, mut all) = (Samples::default(), Samples::default());
    let mut work = vec![0_u8; work_bytes];
    for _ in 0..SAMPLES {
        work.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        now += Duration::from_millis(10);
        for times in [&mut writes, &mut nexts] {
            let payload = Payload::from(vec![0; SAMPLE_BYTES]);
            let change = NewChange { kind: ChangeKind::Write, instance: KeyHash::default(), timestamp: None, payload };
            outbox.clear();
            times.time(|| {
                writer.write(now, change).expect("everything was acknowledged");
                writer.poll_transmit(now, &mut outbox)
            });
        }
        outbox.clear();
        all.time(|| {
            (0..readers).for_each(|number| {
                acknacks.time(|| answer(&mut writer, now, number, &mut outbox));
            })
        });
        assert!(writer.all_acknowledged(), "everybody has answered");
    }
    let mut timeouts = Samples::default();
    for _ in 0..SAMPLES {
        let payload = Payload::from(vec![0; SAMPLE_BYTES]);
        let change = NewChange { kind: ChangeKind::Write, instance: KeyHash::default(), timestamp: None, payload };
        writer.write(now, change).expect("everything was acknowledged");
        writer.poll_transmit(now, &mut outbox);
        (1..readers).for_each(|number| answer(&mut writer, now, number, &mut outbox));
        for _ in 0..3 {
            now = writer.poll_timeout().expect("the first reader owes an acknowledgement");
            timeouts.time(|| writer.handle_timeout(now));
            writer.poll_transmit(now, &mut outbox);
            outbox.clear();
        }
        answer(&mut writer, now, 0, &mut outbox);
        outbox.clear();
    }
    Costs {
        write: writes.median(),
        next: nexts.median(),
        acknack: acknacks.median(),
        all: all.median(),
        timeout: timeouts.median(),
        matching: matching.median(),
    }
}

#[derive(Default)]
struct Samples(Vec<u64>);

impl Samples {
    fn time<R>(&mut self, run: impl FnOnce() -> R) -> R {
        let start = std::time::Instant::now();
        let result = run();
        self.0.push(start.elapsed().as_nanos() as u64);
        result
    }

    fn median(mut self) -> u64 {
        self.0.sort_unstable();
        self.0[self.0.len() / 2]
    }
}
