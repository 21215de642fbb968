//! Laws of what is said beside the bytes of samples: keys that change nothing, and samples for some readers only.

use std::net::SocketAddr;

use super::tests::*;
use super::{KeySource, ReaderConfig};
use crate::history::InstanceState;
use crate::payload::Payload;
use crate::qos::{AccessScope, History, Presentation, ReaderQos, WriterQos};
use crate::reader::Reader;
use crate::shared::Shared;
use crate::types::{EntityId, Guid, KeyHash, Keyed, SequenceNumber};
use crate::wire::parameters::{Belonging, ParameterWriter, inline_qos, inline_qos_with};
use crate::wire::pid;
use crate::wire::write::{self, DataFragHead, DataHead, DataKind};

/// Node 1 reads; the test writes in the name of node 0's writer.
struct Feed {
    net: Net,
    writer: Guid,
    presentation: Presentation,
}

impl Feed {
    fn new(keyed: Keyed, presentation: Presentation) -> Feed {
        let mut net = Net::new(2);
        let qos = WriterQos { presentation, ..reliable_writer(History::KeepAll) };
        let writer = net.writer(0, qos, keyed).lock().guid();
        Feed { net, writer, presentation }
    }

    fn reader(&mut self) -> Shared<Reader> {
        let qos = ReaderQos { presentation: self.presentation, ..reliable_reader(History::KeepAll) };
        let reader = self.net.reader(1, qos, self.writer.entity.keyed());
        self.net.run_for(SECOND);
        reader
    }

    fn send(&mut self, fill: impl FnOnce(&mut Vec<u8>, EntityId)) {
        let mut bytes = Vec::new();
        write::header(&mut bytes, self.writer.prefix);
        fill(&mut bytes, self.writer.entity);
        let source = SocketAddr::from(([10, 0, 0, 1], 7411));
        let now = self.net.now;
        self.net.nodes[1].participant.handle_datagram(now, &Payload::from(bytes), source);
    }

    /// A DATA of eight bytes, of which the first behind the header is the key.
    fn data(&mut self, sequence: i64, kind: DataKind, inline_qos: &[u8], key: u8) {
        self.send(|out, writer| {
            let (reader, sequence) = (EntityId::UNKNOWN, SequenceNumber(sequence));
            write::data(out, &DataHead { reader, writer, sequence, inline_qos, kind }, 8);
            out.extend([0, 1, 0, 0, key, 0, 0, 0]);
        });
    }

    /// The same in two fragments of a kilobyte.
    fn fragments(&mut self, sequence: i64, is_key: bool, inline_qos: &[u8], key: u8) {
        for first_fragment in [1, 2] {
            self.fragment(sequence, first_fragment, is_key, inline_qos, key);
        }
    }

    fn fragment(&mut self, sequence: i64, first_fragment: u32, is_key: bool, inline_qos: &[u8], key: u8) {
        self.send(|out, writer| {
            let head = DataFragHead {
                reader: EntityId::UNKNOWN,
                writer,
                sequence: SequenceNumber(sequence),
                first_fragment,
                fragments: 1,
                fragment_size: 1_000,
                sample_size: 2_000,
                inline_qos,
                key: is_key,
            };
            write::data_frag(out, &head, 1_000);
            out.extend([0, 1, 0, 0]);
            out.extend([key; 996]);
        });
    }
}

/// Cyclone DDS sends the inline QoS with the first fragment only.
#[test]
fn the_key_hash_of_a_large_sample_may_come_with_its_first_fragment_only() {
    let mut feed = Feed::new(Keyed::Yes, Presentation::default());
    let config = ReaderConfig {
        topic_name: "topic".into(),
        type_name: "type".into(),
        keyed: Keyed::Yes,
        qos: reliable_reader(History::KeepAll).into(),
        keys: KeySource::Wire,
        filter: None,
    };
    let reader = feed.net.nodes[1].participant.create_reader(feed.net.now, config).expect("a legal QoS");
    feed.net.run_for(SECOND);
    for (sequence, order) in [(1, [1, 2]), (2, [2, 1])] {
        let mut told = Vec::new();
        inline_qos(None, Some(KeyHash([40 + sequence as u8; 16])), &mut told);
        for first_fragment in order {
            let inline_qos = if first_fragment == 1 { &told[..] } else { &[] };
            feed.fragment(sequence, first_fragment, false, inline_qos, 7);
        }
    }
    let instances: Vec<KeyHash> = take(&feed.net, &reader).iter().map(|sample| sample.info.instance).collect();
    assert_eq!(instances, [KeyHash([41; 16]), KeyHash([42; 16])]);
}

#[test]
fn a_key_whose_instance_lives_on_changes_nothing() {
    // The writer registers the instance, or leaves out a value that a filter refuses.
    for status in [0, 4] {
        let mut feed = Feed::new(Keyed::Yes, Presentation::default());
        let reader = feed.reader();
        let mut alive = Vec::new();
        inline_qos(Some(status), None, &mut alive);
        feed.data(1, DataKind::Key, &alive, 7);
        feed.data(2, DataKind::Data, &[], 7);
        let samples = take(&feed.net, &reader);
        let seen: Vec<_> = samples.iter().map(|sample| (sample.info.sequence.0, sample.info.valid)).collect();
        assert_eq!((seen, samples[0].info.disposed_generation_count), (vec![(2, true)], 0), "status {status}");
        feed.data(3, DataKind::Key, &alive, 7);
        feed.fragments(4, true, &alive, 7);
        assert!(take(&feed.net, &reader).is_empty(), "status {status}");
        let state = reader.lock().cache().instance_state(KeyHash([7; 16]));
        assert_eq!(state, Some(InstanceState::Alive), "status {status}");
        feed.data(5, DataKind::Data, &[], 8);
        assert_eq!(first_bytes(&take(&feed.net, &reader)), [8], "the numbers before it are used");
        // Without a status, a key can only end its instance.
        feed.data(6, DataKind::Key, &[], 7);
        let samples = take(&feed.net, &reader);
        let states: Vec<_> = samples.iter().map(|sample| sample.info.instance_state).collect();
        assert_eq!(states, [InstanceState::NotAliveDisposed], "status {status}");
    }
}

#[test]
fn a_coherent_set_ends_in_front_of_a_key_that_changes_nothing() {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: false };
    let mut feed = Feed::new(Keyed::Yes, presentation);
    let reader = feed.reader();
    let (mut of_set, mut alive) = (Vec::new(), Vec::new());
    let belonging = Belonging { coherent_set: Some(SequenceNumber(1)), ..Belonging::default() };
    inline_qos_with(None, None, belonging, &mut of_set);
    inline_qos(Some(0), None, &mut alive);
    feed.data(1, DataKind::Data, &of_set, 1);
    feed.data(2, DataKind::Data, &of_set, 2);
    assert!(take(&feed.net, &reader).is_empty());
    feed.data(3, DataKind::Key, &alive, 3);
    feed.data(4, DataKind::Data, &[], 3);
    let samples = take(&feed.net, &reader);
    let seen: Vec<_> = samples.iter().map(|sample| (sample.info.sequence.0, sample.info.valid)).collect();
    assert_eq!(seen, [(1, true), (2, true), (4, true)]);
    assert_eq!(reader.lock().losses().total(), 0);
}

/// The inline QoS of a sample for these readers, one by one or in a sequence.
fn directed_to(readers: &[Guid], is_sequence: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterWriter::new(&mut bytes);
    if is_sequence {
        list.put(pid::DIRECTED_WRITE, |value| {
            value.u32(readers.len() as u32);
            readers.iter().for_each(|reader| value.guid(*reader));
        });
    } else {
        readers.iter().for_each(|reader| list.put(pid::DIRECTED_WRITE, |value| value.guid(*reader)));
    }
    list.finish();
    bytes
}

#[test]
fn a_directed_sample_is_handed_over_by_its_readers_only() {
    for is_sequence in [false, true] {
        let mut feed = Feed::new(Keyed::No, Presentation::default());
        let [first, second, third] = [(); 3].map(|()| feed.reader());
        let directed = directed_to(&[&first, &third].map(|reader| reader.lock().guid()), is_sequence);
        feed.data(1, DataKind::Data, &directed, 1);
        feed.fragments(2, false, &directed, 2);
        feed.data(3, DataKind::Data, &[], 3);
        for (reader, expect) in [(&first, vec![1, 2, 3]), (&second, vec![3]), (&third, vec![1, 2, 3])] {
            assert_eq!(first_bytes(&take(&feed.net, reader)), expect, "as a sequence: {is_sequence}");
            assert_eq!(reader.lock().losses().total(), 0);
        }
    }
}

#[test]
fn a_reader_of_coherent_sets_takes_samples_for_others_as_well() {
    let presentation = Presentation { access_scope: AccessScope::Topic, coherent: true, ordered: false };
    let mut feed = Feed::new(Keyed::No, presentation);
    let [first, second] = [(); 2].map(|()| feed.reader());
    let directed = directed_to(&[first.lock().guid()], false);
    feed.data(1, DataKind::Data, &[], 1);
    feed.data(2, DataKind::Data, &directed, 2);
    feed.fragments(3, false, &directed, 3);
    feed.data(4, DataKind::Data, &[], 4);
    for reader in [&first, &second] {
        assert_eq!(first_bytes(&take(&feed.net, reader)), [1, 2, 3, 4]);
        assert_eq!(reader.lock().losses().total(), 0);
    }
}
