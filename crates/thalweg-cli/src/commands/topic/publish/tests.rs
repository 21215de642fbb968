//! What a writer offers to readers that ask for different things.

use std::sync::Arc;
use std::time::Duration;

use thalweg::discovery::{PublicationData, SubscriptionData};
use thalweg::qos::{
    DestinationOrder, Durability, LivelinessKind, MatchResult, Ownership, ReaderQos, Reliability, Representation,
    WriterQos, match_endpoints,
};
use thalweg::types::{EntityId, Guid, GuidPrefix};

use super::offer::{TopicEnds, text};
use crate::qos_options::QosOptions;

fn guid(index: u8, kind: u8) -> Guid {
    Guid { prefix: GuidPrefix([index; 12]), entity: EntityId([0, 0, index, kind]) }
}

fn reader(index: u8, qos: ReaderQos) -> Arc<SubscriptionData> {
    Arc::new(SubscriptionData::new(guid(index, 4), "t", "T", qos))
}

fn options(arguments: &[&str]) -> QosOptions {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    QosOptions::parse(&arguments).expect("options")
}

/// Checks how many readers match what is offered, and what is printed of that.
#[track_caller]
fn check(readers: Vec<ReaderQos>, given: &[&str], matching: usize, expect: &str) {
    let readers = (1..).zip(readers).map(|(index, qos)| reader(index, qos)).collect();
    let ends = TopicEnds { writers: Vec::new(), readers };
    let offered = ends.offer(&options(given));
    let writer = PublicationData::new(guid(99, 3), "t", "T", offered.clone());
    let fits = |reader: &&Arc<SubscriptionData>| {
        matches!(match_endpoints(&writer.offer(), &reader.request()), MatchResult::Match)
    };
    assert_eq!((ends.readers.iter().filter(fits).count(), text(&offered).as_str()), (matching, expect));
}

fn asking(change: impl FnOnce(&mut ReaderQos)) -> ReaderQos {
    let mut qos = ReaderQos::default();
    change(&mut qos);
    qos
}

fn partitions(names: &[&str]) -> ReaderQos {
    asking(|qos| qos.partition = names.iter().map(|name| (*name).to_owned()).collect())
}

const USUAL: &str = "RELIABLE, VOLATILE, KEEP_ALL, XCDR1";

#[test]
fn all_readers_get_what_they_ask_where_one_offer_can_fit_them() {
    check(vec![], &[], 0, USUAL);
    check(vec![ReaderQos::default()], &[], 1, USUAL);
    let strict = asking(|qos| {
        qos.reliability = Reliability::RELIABLE;
        qos.durability = Durability::TransientLocal;
        qos.timing.deadline = Duration::from_millis(500);
        qos.liveliness.kind = LivelinessKind::ManualByTopic;
        qos.liveliness.lease = Duration::from_secs(2);
        qos.destination_order = DestinationOrder::BySource;
        qos.presentation.ordered = true;
    });
    let expect = "RELIABLE, TRANSIENT_LOCAL, KEEP_ALL, XCDR1, deadline 500 ms, liveliness MANUAL_BY_TOPIC with lease 2s, \
                  BY_SOURCE_TIMESTAMP, presentation INSTANCE ordered";
    check(vec![ReaderQos::default(), strict], &[], 2, expect);
    let exclusive = asking(|qos| qos.ownership = Ownership::Exclusive);
    check(vec![exclusive], &[], 1, &format!("{USUAL}, ownership EXCLUSIVE"));
}

#[test]
fn the_encoding_is_one_that_most_readers_decode() {
    let of = |list: &[Representation]| asking(|qos| qos.data_representation = list.to_vec());
    let (one, two, none) = (of(&[Representation::Xcdr1]), of(&[Representation::Xcdr2]), of(&[]));
    let both = of(&[Representation::Xcdr2, Representation::Xcdr1]);
    let xcdr2 = "RELIABLE, VOLATILE, KEEP_ALL, XCDR2";
    check(vec![two.clone()], &[], 1, xcdr2);
    check(vec![none.clone(), both.clone()], &[], 2, USUAL);
    check(vec![both.clone()], &[], 1, xcdr2);
    check(vec![one, two.clone(), two.clone()], &[], 2, xcdr2);
    check(vec![none, two], &[], 1, USUAL);
    check(vec![both], &["representation=xcdr1"], 1, USUAL);
}

#[test]
fn each_reader_finds_its_partition() {
    check(vec![partitions(&["a"]), partitions(&["b", "c"])], &[], 2, &format!("{USUAL}, partition [\"a\", \"b\"]"));
    check(vec![partitions(&["a*"]), partitions(&["ab", "a"])], &[], 2, &format!("{USUAL}, partition [\"a\"]"));
    check(vec![partitions(&["x?z"])], &[], 1, &format!("{USUAL}, partition [\"x_z\"]"));
    check(vec![partitions(&[]), partitions(&["a"])], &[], 2, &format!("{USUAL}, partition [\"\", \"a\"]"));
    check(vec![partitions(&[]), partitions(&["*"])], &[], 2, USUAL);
    check(vec![partitions(&["a"])], &["partition=b"], 0, &format!("{USUAL}, partition [\"b\"]"));
}

#[test]
fn what_the_user_says_comes_before_what_readers_ask() {
    let durable = asking(|qos| qos.durability = Durability::TransientLocal);
    check(vec![durable], &["durability=volatile"], 0, USUAL);
    let exclusive = asking(|qos| qos.ownership = Ownership::Exclusive);
    check(vec![exclusive], &["ownership=shared"], 0, USUAL);
    check(
        vec![ReaderQos::default()],
        &["reliability=best-effort", "depth=3"],
        1,
        "BEST_EFFORT, VOLATILE, KEEP_LAST 3, XCDR1",
    );
}

#[test]
fn without_readers_a_writer_tells_what_the_topic_is_like() {
    let qos = WriterQos {
        durability: Durability::TransientLocal,
        data_representation: vec![Representation::Xcdr2],
        partition: vec!["p".to_owned()],
        ..WriterQos::default()
    };
    let writer = Arc::new(PublicationData::new(guid(1, 3), "t", "T", qos));
    let ends = TopicEnds { writers: vec![writer], readers: Vec::new() };
    let expect = "RELIABLE, TRANSIENT_LOCAL, KEEP_ALL, XCDR2, partition [\"p\"]";
    assert_eq!(text(&ends.offer(&options(&[]))), expect);
}
