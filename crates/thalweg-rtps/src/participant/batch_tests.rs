//! Batches from the datagram to the application: the content of DATA_BATCH, and the memory that it keeps alive.

use std::net::SocketAddr;

use super::tests::*;
use super::*;
use crate::history::{InstanceState, TakenSample};
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::qos::{History, ReaderQos, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::time::Timestamp;
use crate::types::{EntityId, Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::parameters::{ParameterWriter, inline_qos};
use crate::wire::pid;
use crate::wire::write::{self, DataBatchHead, DataHead, DataKind};

/// Node 1 reads; the test writes in the name of node 0's writer.
struct Feed {
    net: Net,
    reader: Shared<Reader>,
    writer: Guid,
}

impl Feed {
    fn new(keyed: Keyed, writer_qos: WriterQos, reader_qos: ReaderQos) -> Feed {
        let mut net = Net::new(2);
        let writer = net.writer(0, writer_qos, keyed).lock().guid();
        let reader = net.reader(1, reader_qos, keyed);
        net.run_for(SECOND);
        Feed { net, reader, writer }
    }

    fn reliable(keyed: Keyed) -> Feed {
        Feed::new(keyed, reliable_writer(History::KeepAll), reliable_reader(History::KeepAll))
    }

    /// Sends a datagram in a receive buffer of its own.
    fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>, EntityId)) {
        let mut bytes = Vec::with_capacity(65_536);
        write::header(&mut bytes, self.writer.prefix);
        fill(&mut bytes, self.writer.entity);
        let source = SocketAddr::from(([10, 0, 0, 1], 7411));
        let now = self.net.now;
        self.net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
    }

    /// A batch of plain samples.
    fn batch(&mut self, batch: i64, first: i64, samples: &[&[u8]]) {
        let mut infos = Vec::new();
        for (number, sample) in samples.iter().enumerate() {
            write::batch_sample(&mut infos, Timestamp { seconds: number as u32 + 1, fraction: 0 }, sample.len());
        }
        self.batch_of(batch, first, samples.len() as u32, &infos, &samples.concat());
    }

    fn batch_of(&mut self, batch: i64, first: i64, count: u32, infos: &[u8], data: &[u8]) {
        self.send(|out, writer| {
            let (batch, first) = (SequenceNumber(batch), SequenceNumber(first));
            let head = DataBatchHead { reader: EntityId::UNKNOWN, writer, batch, first, count };
            write::data_batch(out, &head, infos.len(), data.len());
            out.extend_from_slice(infos);
            out.extend_from_slice(&[0, 1, 0, 0]);
            out.extend_from_slice(data);
            write::padding(out, data.len());
        });
    }

    fn data(&mut self, numbers: std::ops::RangeInclusive<i64>, bytes: &[u8]) {
        let mut sample = vec![0, 1, 0, 0];
        sample.extend_from_slice(bytes);
        self.send(|out, writer| {
            for sequence in numbers {
                let head = DataHead {
                    reader: EntityId::UNKNOWN,
                    writer,
                    sequence: SequenceNumber(sequence),
                    inline_qos: &[],
                    kind: DataKind::Data,
                };
                write::data(out, &head, sample.len());
                out.extend_from_slice(&sample);
                write::padding(out, sample.len());
            }
        });
    }

    fn take(&mut self) -> Vec<TakenSample> {
        take(&self.net, &self.reader)
    }

    fn events(&mut self) -> usize {
        let participant = &mut self.net.nodes[1].participant;
        let available = |event: &Event| matches!(event, Event::DataAvailable { .. });
        std::iter::from_fn(|| participant.poll_event()).filter(available).count()
    }
}

/// The description of a sample with any flags, as other vendors write it: flags big endian, the rest little endian.
fn info(out: &mut Vec<u8>, flags: u16, len: u32, offset: Option<u32>, qos: &[u8]) {
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend(offset.into_iter().flat_map(u32::to_le_bytes));
    out.extend_from_slice(qos);
}

#[test]
fn a_batch_arrives_as_samples_with_their_header_and_time() {
    let mut feed = Feed::reliable(Keyed::No);
    feed.batch(1, 1, &[b"one", b"", b"three"]);
    assert_eq!(feed.events(), 1, "one for all of them");
    let samples = feed.take();
    let bytes: Vec<&[u8]> = samples.iter().map(|sample| &*sample.payload).collect();
    assert_eq!(bytes, [&b"\0\x01\0\0one"[..], b"\0\x01\0\0", b"\0\x01\0\0three"]);
    for (number, sample) in samples.iter().enumerate() {
        assert_eq!(sample.info.sequence.0, number as i64 + 1);
        assert_eq!(sample.info.source_timestamp.map(|time| time.seconds), Some(number as u32 + 1));
        assert_eq!((sample.info.writer, sample.info.valid), (feed.writer, true));
    }
}

#[test]
fn batches_and_single_samples_share_one_sequence() {
    let mut feed = Feed::reliable(Keyed::No);
    feed.batch(1, 1, &[b"a", b"b"]);
    feed.data(3..=4, b"c");
    feed.batch(2, 3, &[b"c", b"c", b"d"]);
    feed.batch(2, 3, &[b"c", b"c", b"d"]);
    assert_eq!(first_bytes(&feed.take()), b"abccd");
    assert_eq!(feed.reader.lock().counters().duplicates, 5);
}

#[test]
fn best_effort_readers_take_batches_too() {
    let mut feed = Feed::new(Keyed::No, WriterQos::default(), ReaderQos::default());
    feed.batch(1, 1, &[b"a", b"b"]);
    feed.batch(4, 9, &[b"z"]);
    let samples = feed.take();
    assert_eq!(first_bytes(&samples), b"z", "KEEP_LAST 1 by default");
    assert_eq!(feed.reader.lock().counters().received, 3);
}

#[test]
fn keyed_batches_tell_instances_by_their_keys_and_end_them_by_status() {
    let mut feed = Feed::reliable(Keyed::Yes);
    let (mut infos, mut disposed) = (Vec::new(), Vec::new());
    inline_qos(Some(1), None, &mut disposed);
    info(&mut infos, 0x0008, 2, None, &[]);
    info(&mut infos, 0x0008, 2, None, &[]);
    // This one is irrelevant, though it carries bytes; the next one has its offset.
    info(&mut infos, 0x0018, 2, None, &[]);
    info(&mut infos, 0x0026, 1, Some(3), &disposed);
    feed.batch_of(1, 1, 4, &infos, b"x1y1??x");
    let samples = feed.take();
    let seen: Vec<_> = samples.iter().map(|sample| (sample.info.instance.0[0], sample.info.valid)).collect();
    assert_eq!(seen, [(b'x', true), (b'y', true), (b'x', false)]);
    assert_eq!(samples[2].info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(samples[1].info.instance_state, InstanceState::Alive);
    assert_eq!(samples[2].info.sequence.0, 4);
    feed.batch(2, 5, &[b"z"]);
    assert_eq!(first_bytes(&feed.take()), b"z", "number 3 is not waited for");
}

#[test]
fn a_key_hash_alone_ends_an_instance_and_no_key_at_all_is_counted() {
    let mut feed = Feed::reliable(Keyed::Yes);
    let (mut infos, mut hash) = (Vec::new(), Vec::new());
    inline_qos(Some(3), Some(KeyHash([b'x'; 16])), &mut hash);
    info(&mut infos, 0x0008, 1, None, &[]);
    info(&mut infos, 0x0002, 0, None, &hash);
    info(&mut infos, 0x0008, 0, None, &[]);
    info(&mut infos, 0x0000, 0, None, &[]);
    info(&mut infos, 0x0008, 1, None, &[]);
    feed.batch_of(1, 1, 5, &infos, b"xy");
    let seen: Vec<_> = feed.take().iter().map(|sample| (sample.info.sequence.0, sample.info.valid)).collect();
    assert_eq!(seen, [(1, true), (2, false), (5, true)]);
    assert_eq!(feed.net.nodes[1].participant.counters().keyless, 1);
}

#[test]
fn keys_that_change_nothing_and_samples_for_others_are_passed_over() {
    let mut feed = Feed::reliable(Keyed::Yes);
    let (mut infos, mut alive, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    inline_qos(Some(0), None, &mut alive);
    let mut list = ParameterWriter::new(&mut elsewhere);
    list.put(pid::DIRECTED_WRITE, |value| value.guid(Guid::UNKNOWN));
    list.finish();
    info(&mut infos, 0x0022, 1, None, &alive);
    info(&mut infos, 0x0008, 1, None, &[]);
    info(&mut infos, 0x000a, 1, None, &elsewhere);
    feed.batch_of(1, 1, 3, &infos, b"xxz");
    let seen: Vec<_> = feed.take().iter().map(|sample| (sample.info.sequence.0, sample.info.valid)).collect();
    assert_eq!(seen, [(2, true)]);
    feed.batch(2, 4, &[b"y"]);
    assert_eq!(first_bytes(&feed.take()), b"y", "the numbers before it are used");
}

/// Bytes that samples of different datagrams keep alive together.
fn pinned(samples: &[TakenSample]) -> usize {
    samples.iter().map(|sample| sample.payload.pinned_bytes()).sum()
}

#[test]
fn a_small_sample_of_each_datagram_does_not_keep_the_receive_buffers() {
    let mut feed = Feed::reliable(Keyed::No);
    let mut held = Vec::new();
    for datagram in 0..200 {
        feed.data(datagram * 500 + 1..=datagram * 500 + 500, &[7; 36]);
        held.push(feed.take().swap_remove(250));
    }
    assert!(pinned(&held) <= 200 * 8192, "{} bytes for 200 samples of 40", pinned(&held));
    let mut held = Vec::new();
    for batch in 0..200 {
        feed.batch(batch + 1, 100_001 + batch * 500, &[&[7; 36][..]; 500]);
        held.push(feed.take().swap_remove(250));
    }
    assert!(pinned(&held) <= 200 * 8192, "{} bytes for 200 samples of 40 from batches", pinned(&held));
    let mut held = Vec::new();
    for sequence in 200_001..200_201 {
        feed.data(sequence..=sequence, &[7; 36]);
        held.append(&mut feed.take());
    }
    assert!(pinned(&held) <= 200 * 64, "{} bytes for 200 samples of 40 that came alone", pinned(&held));
}

#[test]
fn larger_samples_keep_what_came_with_them_only_where_it_goes_with_them() {
    let size = |keyed, count: i64, len: usize| {
        let mut feed = Feed::reliable(keyed);
        feed.data(1..=count, &vec![7; len - 4]);
        feed.take()[0].payload.pinned_bytes()
    };
    assert_eq!(size(Keyed::No, 60, 1024), 65_536, "a slice of the receive buffer, with no copy");
    assert!(size(Keyed::No, 1, 1024) <= 1024, "the rest of the buffer would be empty");
    assert!(size(Keyed::Yes, 60, 1024) <= 8192, "the value of an instance may stay for long");
    assert_eq!(size(Keyed::Yes, 1, 60_000), 65_536);
    let mut feed = Feed::reliable(Keyed::No);
    feed.batch(1, 1, &[&[7; 1020][..]; 60]);
    assert!(feed.take()[0].payload.pinned_bytes() <= 65_536);
}

#[test]
fn news_without_bytes_keep_nothing() {
    let mut feed = Feed::reliable(Keyed::Yes);
    let mut hash = Vec::new();
    inline_qos(Some(1), Some(KeyHash([b'x'; 16])), &mut hash);
    feed.send(|out, writer| {
        let sequence = SequenceNumber(1);
        let head = DataHead { reader: EntityId::UNKNOWN, writer, sequence, inline_qos: &hash, kind: DataKind::None };
        write::data(out, &head, 0);
    });
    feed.data(2..=2, b"x");
    let samples = feed.take();
    assert!(samples.iter().all(|sample| sample.payload.pinned_bytes() < 100));
}

#[test]
fn batches_that_break_off_are_counted_and_change_nothing() {
    let mut feed = Feed::reliable(Keyed::No);
    let mut infos = Vec::new();
    info(&mut infos, 0x0008, 2, None, &[]);
    info(&mut infos, 0x0008, u32::MAX, None, &[]);
    feed.batch_of(1, 1, 2, &infos, b"abcd");
    infos.truncate(8);
    feed.batch_of(1, 1, 9, &infos, b"abcd");
    assert_eq!(feed.net.nodes[1].participant.counters().malformed, 2);
    assert!(feed.take().is_empty());
    feed.batch(1, 1, &[b"ok"]);
    assert_eq!(first_bytes(&feed.take()), b"o");
}

#[test]
fn datagrams_received_together_count_as_many_and_share_their_buffer() {
    let mut feed = Feed::reliable(Keyed::No);
    let (mut bytes, mut ends) = (Vec::with_capacity(65_536), vec![0]);
    for sequence in (2..=41).map(SequenceNumber) {
        write::header(&mut bytes, feed.writer.prefix);
        let (reader, writer) = (EntityId::UNKNOWN, feed.writer.entity);
        write::data(&mut bytes, &DataHead { reader, writer, sequence, inline_qos: &[], kind: DataKind::Data }, 1028);
        bytes.extend([7; 1028]);
        ends.push(bytes.len());
    }
    let buffer = Payload::from(bytes);
    let datagrams: Vec<Payload> = ends.windows(2).map(|ends| buffer.slice(ends[0]..ends[1])).collect();
    let source = SocketAddr::from(([10, 0, 0, 1], 7411));
    let now = feed.net.now;
    let mut receive = |datagrams: &[Payload]| {
        let participant = &mut feed.net.nodes[1].participant;
        participant.handle_datagrams(now, datagrams.iter().map(|datagram| (datagram, source)));
        let mut outbox = Outbox::new();
        participant.poll_transmit(now, &mut outbox);
        outbox.len()
    };
    assert_eq!(receive(&datagrams[..2]), 0, "two datagrams may have overtaken one");
    assert_eq!(receive(&datagrams[2..]), 1, "the first sample is asked for");
    feed.data(1..=1, b"late");
    let samples = feed.take();
    assert_eq!(samples.len(), 41);
    assert_eq!(feed.net.nodes[1].participant.counters().malformed, 0);
    assert!(samples[40].payload.as_ptr_range().end == datagrams[39].as_ptr_range().end, "not copied");
}
