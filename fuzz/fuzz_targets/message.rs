//! Any datagram: no panic, ranges within bounds, and what is written again reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thalweg_rtps::wire::{Content, Message, Submessage, write};

fuzz_target!(|datagram: &[u8]| {
    let Ok(message) = Message::parse(datagram) else { return };
    for submessage in message.submessages() {
        let Ok(submessage) = submessage else { return };
        walk(datagram, &submessage);
        let mut again = Vec::new();
        write::header(&mut again, message.header.prefix);
        if write_again(&mut again, &submessage) {
            let read = Message::parse(&again).unwrap().submessages().next().unwrap().unwrap();
            assert_eq!(read, submessage);
        }
    }
});

fn walk(datagram: &[u8], submessage: &Submessage<'_>) {
    match submessage {
        Submessage::Data(data) => {
            if let Content::Data(range) | Content::Key(range) = &data.content {
                assert!(datagram.get(range.clone()).is_some());
            }
            if let Some(list) = data.inline_qos {
                assert!(list.iter().all(|parameter| parameter.is_ok()));
                let _ = (list.status_info(), list.key_hash());
            }
        }
        Submessage::DataFrag(frag) => {
            assert!(datagram.get(frag.bytes.clone()).is_some());
            assert!(frag.sample_offset() + frag.bytes.len() <= frag.sample_size as usize);
            assert!(frag.first_fragment + u32::from(frag.fragments) - 1 <= frag.fragments_total());
        }
        Submessage::DataBatch(batch) => {
            assert_eq!(batch.samples.count() as u32, batch.count);
            let mut least = batch.first;
            for sample in batch.samples {
                assert!(sample.sequence >= least && sample.sequence <= batch.last);
                assert!(datagram.get(sample.bytes).is_some());
                let _ = sample.inline_qos.map(|list| (list.status_info(), list.key_hash()));
                least = sample.sequence;
            }
        }
        Submessage::InfoReply { unicast, multicast } => {
            let locators = unicast.iter().count() + multicast.map_or(0, |list| list.iter().count());
            assert!(locators * 24 <= datagram.len());
        }
        Submessage::Gap(gap) => assert!(gap.list.iter().all(|number| gap.list.contains(number))),
        _ => {}
    }
}

fn write_again(out: &mut Vec<u8>, submessage: &Submessage<'_>) -> bool {
    match submessage {
        Submessage::Heartbeat(heartbeat) => write::heartbeat(out, heartbeat),
        Submessage::GroupHeartbeat(heartbeat, info) => write::group_heartbeat(out, heartbeat, info),
        Submessage::HeartbeatFrag(heartbeat) => write::heartbeat_frag(out, heartbeat),
        Submessage::AckNack(acknack) => write::acknack(out, acknack),
        Submessage::NackFrag(nack) => write::nack_frag(out, nack),
        Submessage::Lost(lost) => write::lost(out, lost),
        Submessage::LostFrag(lost) => write::lost_frag(out, lost),
        Submessage::Echo(echo) => write::echo(out, echo),
        Submessage::Gap(gap) => write::gap(out, gap),
        // Its flag L is not written.
        Submessage::HeartbeatBatch(batch) if !batch.heartbeat.liveliness => write::heartbeat_batch(out, batch),
        Submessage::AckNackBatch(acknack) => write::acknack_batch(out, acknack),
        Submessage::InfoTimestamp(timestamp) => write::info_timestamp(out, *timestamp),
        Submessage::InfoDestination(prefix) => write::info_destination(out, *prefix),
        _ => return false,
    }
    true
}
