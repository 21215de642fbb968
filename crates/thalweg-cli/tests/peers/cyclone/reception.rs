//! What a reader tells of samples of Cyclone DDS that it does not hand over, and how often it speaks.

use std::time::{Duration, Instant};

use ::thalweg::qos::PolicyId;
use ::thalweg::status::LossReason;
use ::thalweg::{DataReader, DomainParticipant, Topic, TopicType};

use crate::bursts::{self, Bytes};
use crate::program::{PATIENCE, Program};
use crate::{peer, thalweg};

#[derive(Clone, Debug, PartialEq, Topic)]
#[topic(name = "ShapeType", extensibility = "appendable")]
struct ShapeType {
    #[topic(key)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

/// A reader of what the peer writes with these words.
struct Meeting<T> {
    reader: DataReader<T>,
    publisher: Program,
    _participant: DomainParticipant,
}

impl<T: TopicType> Meeting<T> {
    fn new(words: &str) -> Meeting<T> {
        let domain = thalweg::domain();
        Meeting::at(bursts::participant(domain), domain, words)
    }

    fn at(participant: DomainParticipant, domain: u32, words: &str) -> Meeting<T> {
        let reader = bursts::reader::<T>(&participant, "reception");
        let publisher = peer::start(None, domain, &format!("pub --topic reception {words}"));
        Meeting { reader, publisher, _participant: participant }
    }

    #[track_caller]
    fn eventually(&self, holds: impl Fn(&DataReader<T>) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(&self.reader) {
            assert!(Instant::now() < end, "{:?}", self.reader.counters());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn samples_of_a_mutable_type_at_an_appendable_reader_are_lost_and_told() {
    // Types that are not told are not compared: the names match.
    let domain = thalweg::domain();
    let participant = DomainParticipant::builder(domain).loopback_only().without_type_description();
    let participant = participant.create().expect("a loopback interface");
    let meeting = Meeting::<ShapeType>::at(participant, domain, "--type mutable-shape --xcdr 2 --count 10 --rate 100");
    meeting.eventually(|reader| reader.counters().lost == 10);
    let lost = meeting.reader.sample_lost();
    assert_eq!((lost.total_change, lost.losses.of(LossReason::KeyUnknown)), (10, 10));
    meeting.publisher.finish().well();
    assert_eq!((meeting.reader.counters().received, meeting.reader.counters().lost), (0, 10));
}

#[test]
fn a_mutable_type_does_not_match_an_appendable_reader_that_describes_its_type() {
    let meeting = Meeting::<ShapeType>::new("--type mutable-shape --xcdr 2 --count 10 --rate 100");
    meeting.eventually(|reader| reader.requested_incompatible_qos().total == 1);
    let told = meeting.reader.requested_incompatible_qos();
    assert_eq!(told.last_policy(), Some(PolicyId::TYPE_CONSISTENCY), "{told:?}");
    assert_eq!((meeting.reader.subscription_matched().total, meeting.reader.counters().received), (0, 0));
}

#[test]
fn samples_expire_after_the_life_span_that_the_writer_announces() {
    let meeting = Meeting::<Bytes>::new("--type bytes --count 10 --lifespan 2 --linger 3");
    meeting.eventually(|reader| reader.available() == 10);
    meeting.eventually(|reader| reader.available() == 0);
    let counters = meeting.reader.counters();
    assert_eq!((counters.expired, counters.lost), (10, 0), "{counters:?}");
    meeting.publisher.finish().well();
}

#[test]
fn a_large_sample_takes_few_acknowledgements() {
    let meeting = Meeting::<Bytes>::new("--type bytes --size 6000000 --count 5 --rate 5");
    meeting.eventually(|reader| reader.counters().received == 5);
    meeting.publisher.finish().well();
    // Cyclone DDS tells with each of some 450 packets how far it is.
    let counters = meeting.reader.counters();
    assert!(counters.acknacks <= 40, "{counters:?}");
}
