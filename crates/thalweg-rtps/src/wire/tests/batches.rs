//! DATA_BATCH, HEARTBEAT_BATCH and ACKNACK_BATCH: hand-made bytes as RTI sends them, our own, and damaged ones.

use super::super::batch::DataBatch;
use super::super::write::DataBatchHead;
use super::*;
use crate::time::Timestamp;

/// A batch in one line, its samples behind it: number, time, kind and bytes of each.
pub(super) fn tell(text: &mut String, batch: &DataBatch<'_>) {
    let DataBatch { reader, writer, batch: number, first, last, count, encapsulation, .. } = batch;
    write!(text, "DATA_BATCH {number} {first}..={last} of {count} {writer}>{reader} {encapsulation:02x?}").unwrap();
    tell_qos(text, batch.inline_qos);
    for sample in batch.samples {
        write!(text, "\n  {}", sample.sequence).unwrap();
        if let Some(time) = sample.timestamp {
            write!(text, " at {}", time.seconds).unwrap();
        }
        tell_qos(text, sample.inline_qos);
        let kind = if sample.key { "key" } else { "data" };
        let valid = if sample.valid { "" } else { " invalid" };
        write!(text, " {kind} {:?}{valid}", sample.bytes).unwrap();
    }
}

pub(super) fn walk(message: &[u8], batch: &DataBatch<'_>) {
    assert_eq!(batch.samples.count() as u32, batch.count);
    let mut least = batch.first;
    for sample in batch.samples {
        assert!(sample.sequence >= least && sample.sequence <= batch.last);
        assert!(message.get(sample.bytes).is_some(), "the sample is within the datagram");
        least = sample.sequence;
    }
}

/// Head, sample list and samples, as bytes in hex; the lengths are filled in.
fn batch_of(flags: u8, numbers: &str, qos: &str, infos: &str, data: &str) -> Vec<u8> {
    let (numbers, qos, infos, data) = (bytes_of(numbers), bytes_of(qos), bytes_of(infos), bytes_of(data));
    let little = flags & 1 != 0;
    let word = |value: usize| if little { (value as u32).to_le_bytes() } else { (value as u32).to_be_bytes() };
    let short = |value: usize| if little { (value as u16).to_le_bytes() } else { (value as u16).to_be_bytes() };
    let length = 4 + 8 + numbers.len() + qos.len() + 4 + infos.len() + data.len();
    message(|out| {
        out.extend_from_slice(&[0x18, flags]);
        out.extend_from_slice(&short(length));
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&short(32));
        out.extend_from_slice(&bytes_of("00000107 00000202"));
        out.extend_from_slice(&numbers);
        out.extend_from_slice(&qos);
        out.extend_from_slice(&word(infos.len()));
        out.extend_from_slice(&infos);
        out.extend_from_slice(&data);
    })
}

/// Batch 3 of samples 10 to 14, of which 12 does not exist: one plain, one with offset, one irrelevant, one a key with status.
/// The flags of a sample are big endian whatever the others are.
const INFOS_LE: &str = "
    0009 0000 05000000 01000000 00000080
    000d 0000 03000000 02000000 00000000 01000000
    001c 0000 00000000 03000000
    0022 0000 04000000 7100 0400 00000001 0100 0000";
const INFOS_BE: &str = "
    0009 0000 00000005 00000001 80000000
    000d 0000 00000003 00000002 00000000 00000001
    001c 0000 00000000 00000003
    0022 0000 00000004 0071 0004 00000001 0001 0000";
const TOLD: &str = "
  10 at 1 data 136..141
  11 at 2 data 141..144
  13 data 144..144 invalid
  14 qos 0071 status 1 key 144..148";
const DATA: &str = "0001 0000 aaaaaaaaaa bbbbbb cccccccc";

#[test]
fn batches_of_other_vendors_say_what_their_senders_meant() {
    let head = "DATA_BATCH 3 10..=14 of 4 00000202>00000107 [00, 01, 00, 00]";
    let little = batch_of(1, "00000000 03000000 00000000 0a000000 04000000 04000000", "", INFOS_LE, DATA);
    check(&little, &format!("{head}{TOLD}"));
    let big = batch_of(0, "00000000 00000003 00000000 0000000a 00000004 00000004", "", INFOS_BE, DATA);
    check(&big, &format!("{head}{TOLD}"));
}

#[test]
fn inline_qos_of_the_batch_and_of_samples_may_skip_new_fields() {
    let numbers = "00000000 03000000 00000000 0a000000 00000000 01000000";
    let qos = "7100 0400 00000001 0100 0000";
    // 8 instead of 4 bytes between octetsToInlineQos and the list.
    let infos = "000a 0800 04000000 deadbeef 7100 0400 00000002 0100 0000";
    let message = batch_of(3, numbers, qos, infos, "0001 0000 aaaaaaaa");
    check(
        &message,
        "DATA_BATCH 3 10..=10 of 1 00000202>00000107 [00, 01, 00, 00] qos 0071 status 1
  10 qos 0071 status 2 data 104..108",
    );
}

#[test]
fn heartbeats_and_acknowledgements_of_batches_are_read_in_both_byte_orders() {
    let heartbeat =
        "00000107 00000202 00000000 03000000 00000000 04000000 00000000 0a000000 00000000 1d000000 07000000";
    check(&message_of(&format!("19 03 2c00 {heartbeat}")), "HEARTBEAT_BATCH 3..=4 10..=29 #7 00000202>00000107 final");
    let heartbeat =
        "00000107 00000202 00000000 00000003 00000000 00000004 00000000 0000000a 00000000 0000001d 00000007";
    check(&message_of(&format!("19 00 002c {heartbeat}")), "HEARTBEAT_BATCH 3..=4 10..=29 #7 00000202>00000107");
    let acknack = "00000107 00000202 00000000 03000000 02000000 00000040 05000000";
    check(&message_of(&format!("17 01 1c00 {acknack}")), "ACKNACK_BATCH 3/2 {4} #5 00000107>00000202");
    let acknack = "00000107 00000202 00000000 00000003 00000002 40000000 00000005";
    check(&message_of(&format!("17 02 001c {acknack}")), "ACKNACK_BATCH 3/2 {4} #5 00000107>00000202 final");
}

/// A batch as Thalweg's writers send it.
fn own_batch(samples: &[&[u8]]) -> Vec<u8> {
    let data_len: usize = samples.iter().map(|sample| sample.len()).sum();
    message(|out| {
        let count = samples.len() as u32;
        let (batch, first) = (SequenceNumber(3), SequenceNumber(1 << 33));
        let head = DataBatchHead { reader: EntityId::UNKNOWN, writer: WRITER, batch, first, count };
        write::data_batch(out, &head, samples.len() * write::BATCH_SAMPLE_LEN, data_len);
        for (number, sample) in samples.iter().enumerate() {
            write::batch_sample(out, Timestamp { seconds: number as u32, fraction: 0 }, sample.len());
        }
        out.extend_from_slice(&[0, 1, 0, 0]);
        samples.iter().for_each(|sample| out.extend_from_slice(sample));
        write::padding(out, data_len);
    })
}

#[test]
fn batches_come_back_as_they_were_written() {
    let mut rng = Rng::new(3);
    for _ in 0..500 {
        let sent: Vec<Vec<u8>> =
            (0..1 + rng.below(80)).map(|_| vec![rng.next_u64() as u8; rng.below(2000) as usize]).collect();
        let mut bytes = own_batch(&sent.iter().map(|sample| &sample[..]).collect::<Vec<_>>());
        if bytes.len() <= 65_535 {
            // What follows is not swallowed; a longer one has to be the last.
            bytes.extend_from_slice(&bytes_of("01 01 0000"));
        }
        let mut submessages = Message::parse(&bytes).unwrap().submessages();
        let Some(Ok(Submessage::DataBatch(batch))) = submessages.next() else { panic!("a batch") };
        assert_eq!((batch.first.0, batch.last.0), (1 << 33, (1 << 33) + sent.len() as i64 - 1));
        assert_eq!((batch.batch, batch.count as usize), (SequenceNumber(3), sent.len()));
        assert_eq!((batch.reader, batch.writer, batch.inline_qos), (EntityId::UNKNOWN, WRITER, None));
        for (number, (sample, sent)) in batch.samples.zip(&sent).enumerate() {
            assert_eq!(sample.sequence, batch.first + number as i64);
            assert_eq!(sample.timestamp, Some(Timestamp { seconds: number as u32, fraction: 0 }));
            assert!(sample.valid && !sample.key);
            assert_eq!(&bytes[sample.bytes], &sent[..]);
        }
        assert_eq!(submessages.next().is_some(), bytes.len() <= 65_539);
    }
}

#[test]
fn batches_that_lie_about_themselves_are_refused() {
    let numbers = |count: &str| format!("00000000 03000000 00000000 0a000000 {count}");
    let two = "0009 0000 02000000 01000000 00000000 0009 0000 02000000 01000000 00000000";
    let data = "0001 0000 aaaa bbbb";
    let of = |count: &str, infos: &str, data: &str| batch_of(1, &numbers(count), "", infos, data);
    let told = "DATA_BATCH 3 10..=11 of 2 00000202>00000107 [00, 01, 00, 00]
  10 at 1 data 100..102
  11 at 1 data 102..104";
    check(&of("01000000 02000000", two, data), told);
    let count = "56: expected sample count of at least 1, as many as are listed";
    check(&of("01000000 03000000", two, data), count);
    check(&of("01000000 01000000", two, data), count);
    check(&of("01000000 ffffffff", two, data), count);
    check(&of("00000000 00000000", "", data), count);
    check(&of("00000000 02000000", two, data), "80: expected ascending sample numbers up to the last one");
    check(&of("01000000 02000000", two, "0001 0000 aaaa bb"), "80: expected sample within the submessage");
    check(&of("01000000 02000000", two, "0001 00"), "96: expected encapsulation header");
    let long = "0009 0000 ffffffff 01000000 00000000 0009 0000 ffffffff 01000000 00000000";
    check(&of("01000000 02000000", long, data), "64: expected sample within the submessage");
    let back = "000c 0000 02000000 01000000 000c 0000 02000000 01000000";
    check(&of("01000000 02000000", back, data), "76: expected ascending sample numbers up to the last one");
    let both = "0028 0000 02000000 0008 0000 02000000";
    check(&of("01000000 02000000", both, data), "64: expected flag D or K of a sample, not both");
    let short = "0008 0000 02000000 0009 0000 02000000 0100";
    check(&of("01000000 02000000", short, data), "80: expected seconds");
    let qos = "000a ffff 02000000 0100 0000 0008 0000 02000000";
    check(&of("01000000 02000000", qos, data), "72: expected inline QoS");
    // The list reaches beyond the submessage.
    let mut beyond = of("01000000 02000000", two, data);
    beyond[60] = 0xff;
    check(&beyond, "64: expected sample list within the submessage");
    beyond[26..28].copy_from_slice(&[31, 0]);
    check(&beyond, "26: expected octetsToInlineQos behind the known fields and within the submessage");
}

/// Batches to damage.
pub(super) fn specimens() -> Vec<Vec<u8>> {
    vec![
        own_batch(&[b"one", b"", b"three"]),
        batch_of(1, "00000000 03000000 00000000 0a000000 04000000 04000000", "", INFOS_LE, DATA),
        batch_of(0, "00000000 00000003 00000000 0000000a 00000004 00000004", "", INFOS_BE, DATA),
    ]
}

#[test]
fn samples_by_themselves_and_of_batches_count_and_nothing_else_does() {
    let (reader, writer) = (EntityId::UNKNOWN, EntityId([0, 0, 1, 3]));
    let head = DataBatchHead { reader, writer, batch: SequenceNumber(3), first: SequenceNumber(8), count: 2 };
    let three = message(|out| {
        write::info_timestamp(out, Some(Timestamp { seconds: 1, fraction: 0 }));
        let kind = DataKind::Data;
        write::data(out, &DataHead { reader, writer, sequence: SequenceNumber(7), inline_qos: &[], kind }, 4);
        out.extend_from_slice(&[0, 1, 0, 0]);
        write::data_batch(out, &head, 2 * write::BATCH_SAMPLE_LEN, 8);
        (0..2).for_each(|_| write::batch_sample(out, Timestamp { seconds: 1, fraction: 0 }, 4));
        out.extend_from_slice(&[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    });
    assert_eq!(count_samples(&three), 3);
    assert_eq!([count_samples(&three[1..]), count_samples(&[])], [0, 0]);
    assert!((0..three.len()).all(|length| count_samples(&three[..length]) <= 3), "cut off");
    assert_eq!(count_samples(&message(|out| out.extend_from_slice(&[9, 1, 0, 0]))), 0);
}
