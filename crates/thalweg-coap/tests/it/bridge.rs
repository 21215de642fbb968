//! Topics as resources, between two participants.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use thalweg::qos::{Durability, History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DomainParticipant, InstanceState, Topic};
use thalweg_coap::data_space::{Bridge, Changes, TopicResource, Types};
use thalweg_coap::interaction::handler::Catalog;
use thalweg_coap::interaction::routes::Routes;
use thalweg_coap::message::{Code, OptionNumber, RequestBuf, Response, content_format};
use thalweg_coap::resource::{LocalStore, WatchGuard};

/// Longer than anything takes on a loaded machine; nothing waits for it when all is well.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "ShapeType", extensibility = "appendable")]
struct Shape {
    #[topic(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "std_msgs::msg::dds_::String_", extensibility = "final")]
struct Text {
    data: String,
}

pub(super) fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + (std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed)) % 230
}

pub(super) fn participant(domain: u32) -> DomainParticipant {
    DomainParticipant::builder(domain).loopback_only().create().expect("a participant")
}

pub(super) fn reliable() -> (WriterQos, ReaderQos) {
    let writer = WriterQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..WriterQos::default() };
    let reader = ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    (writer, reader)
}

/// Looks again and again until it is there.
#[track_caller]
pub(super) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) fn taken<T: thalweg::TopicType>(reader: &DataReader<T>) -> T {
    until("a sample", || {
        reader.wait(Duration::from_millis(100));
        reader.take_one().filter(|sample| sample.is_valid())
    })
    .data()
    .expect("decoded")
}

/// A bridge with its store, and what changed in it.
struct Side {
    store: LocalStore,
    bridge: Bridge,
    changes: mpsc::Receiver<String>,
    _watch: WatchGuard,
}

impl Side {
    fn new(domain: u32) -> Side {
        let store = LocalStore::new();
        let bridge = Bridge::new(Arc::new(participant(domain)), Types::default(), store.clone());
        let (sender, changes) = mpsc::channel();
        let watch = store.on_change(Arc::new(move |path| sender.send(path.to_owned()).unwrap_or_default()));
        Side { store, bridge, changes, _watch: watch }
    }

    /// Waits until a topic is a resource.
    fn topic(&mut self, name: &str) -> Arc<TopicResource> {
        until("the topic", || {
            self.bridge.refresh();
            self.bridge.topic(name).cloned()
        })
    }

    fn ask(&self, request: &RequestBuf) -> Response {
        self.store.handle(&request.view()).unwrap_or_else(|| Response::new(Code::NOT_FOUND))
    }

    fn text(&self, path: &str) -> String {
        let response = self.ask(&RequestBuf::get(path));
        format!("{:?} {}", response.code, String::from_utf8_lossy(&response.payload))
    }
}

fn shape(color: &str, x: i32) -> Shape {
    Shape { color: color.to_owned(), x, y: 2, shapesize: 3 }
}

#[test]
fn a_topic_is_read_and_observed_as_a_resource() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let qos = WriterQos { durability: Durability::TransientLocal, ..reliable().0 };
    let writer = there.create_writer(&there.create_topic::<Shape>("Square"), qos).expect("a writer");
    writer.write(&shape("RED", 1)).expect("written");
    let topic = side.topic("Square");
    let first = side.changes.recv_timeout(PATIENCE);
    assert_eq!(first.as_deref(), Ok("topics/Square"), "what was written before comes as well");
    assert_eq!(side.text("/topics/Square"), r#"2.05 Content {"color":"RED","x":1,"y":2,"shapesize":3}"#);
    side.changes.try_iter().for_each(drop);
    writer.write(&shape("BLUE", 5)).expect("written");
    side.changes.recv_timeout(PATIENCE).expect("observers are told");
    until("the newest of any instance", || side.text("/topics/Square").contains("BLUE").then_some(()));
    assert!(side.text("/topics/Square?color=RED").contains("\"x\":1"), "the newest of this one");
    assert!(side.text("/topics/Square?color=GREEN").starts_with("5.03"));
    assert!(side.text("/topics/Square?colour=RED").starts_with("4.00"));
    let cbor = side.ask(&RequestBuf::get("/topics/Square?x=5").with_accept(content_format::CBOR));
    assert_eq!((cbor.content_format, cbor.payload[0]), (Some(content_format::CBOR), 0xa4));
    writer.dispose(&shape("BLUE", 5)).expect("disposed");
    // An instance that has ended is no state.
    until("the older instance", || side.text("/topics/Square").contains("RED").then_some(()));
    let links = thalweg_coap::link_format::encode(&side.store.links());
    let expect = r#"</topics/Square>;title="Square";rt="core.ps.data";if="core.p";ct="50 60";type="ShapeType";obs"#;
    assert_eq!(links, expect);
    drop(topic);
    drop(writer);
    drop(there);
    until("the end of the topic", || (side.bridge.refresh().removed == ["topics/Square"]).then_some(()));
    assert!(side.text("/topics/Square").starts_with("4.04"));
}

#[test]
fn what_is_put_is_written_to_the_topic() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let square = there.create_reader(&there.create_topic::<Shape>("Square"), reliable().1).expect("a reader");
    let chatter = there.create_reader(&there.create_topic::<Text>("rt/chatter"), reliable().1).expect("a reader");
    for name in ["Square", "rt/chatter"] {
        side.topic(name).writer().wait_for_matched(2, PATIENCE).expect("matched with the other's reader and its own");
    }
    square.wait_for_matched(1, PATIENCE).expect("matched");
    chatter.wait_for_matched(1, PATIENCE).expect("matched");
    let put = |path: &str, payload: &str, format: u16| {
        let response = side.ask(&RequestBuf::put(path, payload).with_content_format(format));
        format!("{:?} {}", response.code, String::from_utf8_lossy(&response.payload))
    };
    let json = r#"{"color":"RED","x":10,"y":2,"shapesize":3}"#;
    assert_eq!(put("/topics/Square", json, content_format::JSON), "2.04 Changed ");
    assert_eq!(taken(&square), shape("RED", 10));
    assert_eq!(put("/topics/rt/chatter", "hello", content_format::TEXT), "2.04 Changed ");
    assert_eq!(taken(&chatter), Text { data: "hello".to_owned() });
    let wrong = put("/topics/Square", r#"{"color":"RED","x":10,"y":2}"#, content_format::JSON);
    assert_eq!(wrong, "4.00 Bad Request the member \"shapesize\" is missing");
    assert!(put("/topics/Square", "RED", content_format::TEXT).starts_with("4.15"));
    // What was put is the state, as soon as it has come back from the data space.
    until("the state", || side.text("/topics/Square").contains("\"x\":10").then_some(()));
}

#[test]
fn what_is_deleted_is_disposed() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let square = there.create_reader(&there.create_topic::<Shape>("Square"), reliable().1).expect("a reader");
    let chatter = there.create_reader(&there.create_topic::<Text>("rt/chatter"), reliable().1).expect("a reader");
    side.topic("Square").writer().wait_for_matched(2, PATIENCE).expect("matched with the other's reader and its own");
    side.topic("rt/chatter");
    square.wait_for_matched(1, PATIENCE).expect("matched");
    for color in ["RED", "BLUE"] {
        let json = format!(r#"{{"color":"{color}","x":1,"y":2,"shapesize":3}}"#);
        let put = side.ask(&RequestBuf::put("/topics/Square", json).with_content_format(content_format::JSON));
        assert_eq!(put.code, Code::CHANGED);
        assert_eq!(taken(&square).color, color);
        until("the state", || side.text(&format!("/topics/Square?color={color}")).starts_with("2.05").then_some(()));
    }
    let delete = |path: &str| side.ask(&RequestBuf::delete(path)).code;
    assert_eq!(delete("/topics/Square"), Code::BAD_REQUEST, "not all of them by mistake");
    assert_eq!(delete("/topics/Square?colour=RED"), Code::BAD_REQUEST);
    assert_eq!(delete("/topics/rt/chatter?data=x"), Code::METHOD_NOT_ALLOWED, "it has no instances");
    assert_eq!(delete("/topics/Square?color=RED"), Code::DELETED);
    let ended = until("the end of an instance", || {
        square.wait(Duration::from_millis(100));
        square.take_one()
    });
    assert_eq!(ended.info().instance_state, InstanceState::NotAliveDisposed);
    until("the state without it", || side.text("/topics/Square?color=RED").starts_with("5.03").then_some(()));
    assert!(side.text("/topics/Square?color=BLUE").starts_with("2.05"), "the other one lives");
    assert_eq!(delete("/topics/Square?color=RED"), Code::DELETED, "what is gone may be deleted again");
    drop(chatter);
}

#[test]
fn conditions_are_compared_with_the_newest_sample_and_what_they_refuse_reaches_no_reader() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let square = there.create_reader(&there.create_topic::<Shape>("Square"), reliable().1).expect("a reader");
    side.topic("Square").writer().wait_for_matched(2, PATIENCE).expect("matched with the other's reader and its own");
    square.wait_for_matched(1, PATIENCE).expect("matched");
    let routes = Routes::new().with_catalog(Arc::new(side.store.clone()));
    let ask = |request: &RequestBuf| routes.handle(routes.find(&request.view()), &request.view());
    let red = "/topics/Square?color=RED";
    let put = |x: i32| {
        let json = format!(r#"{{"color":"RED","x":{x},"y":2,"shapesize":3}}"#);
        RequestBuf::put(red, json).with_content_format(content_format::JSON)
    };
    // What arrives next, a disposal as well.
    let next = || {
        until("a sample", || {
            square.wait(Duration::from_millis(100));
            square.take_one()
        })
    };
    let until_state = |x: i32| {
        let part = format!("\"x\":{x},");
        until("the state", || side.text(red).contains(&part).then_some(()));
    };
    let new_only = |request: RequestBuf| request.with_option(OptionNumber::IF_NONE_MATCH, &[]);
    let if_match = |request: RequestBuf, tag: &[u8]| request.with_option(OptionNumber::IF_MATCH, tag);
    let tag = || ask(&RequestBuf::get(red)).etag.expect("a tag");

    assert_eq!(ask(&if_match(put(0), &[])).code, Code::PRECONDITION_FAILED, "there is none yet");
    assert_eq!(ask(&new_only(put(1))).code, Code::CHANGED);
    assert_eq!(next().data().expect("decoded"), shape("RED", 1), "and not what was refused");
    until_state(1);
    let first = tag();
    assert_eq!(ask(&new_only(put(2))).code, Code::PRECONDITION_FAILED);
    assert_eq!(ask(&if_match(put(2), &[1])).code, Code::PRECONDITION_FAILED);
    assert_eq!(ask(&if_match(put(3), &first)).code, Code::CHANGED);
    assert_eq!(next().data().expect("decoded"), shape("RED", 3), "and not what was refused");
    until_state(3);

    let delete = |tag: &[u8]| ask(&if_match(RequestBuf::delete(red), tag)).code;
    assert_eq!(delete(&first), Code::PRECONDITION_FAILED, "the state of before");
    assert_eq!(delete(&[1]), Code::PRECONDITION_FAILED);
    assert_eq!(ask(&put(4)).code, Code::CHANGED);
    let kept = next();
    assert!(kept.is_valid() && kept.info().instance_state == InstanceState::Alive, "nothing was disposed");
    assert_eq!(kept.data().expect("decoded"), shape("RED", 4));
    until_state(4);
    assert_eq!(delete(&tag()), Code::DELETED);
    assert_eq!(next().info().instance_state, InstanceState::NotAliveDisposed);
    until("the state without it", || side.text(red).starts_with("5.03").then_some(()));
    assert_eq!(delete(&first), Code::PRECONDITION_FAILED, "there is none any more");
}

#[test]
fn two_bridges_do_not_keep_a_topic_for_each_other() {
    let domain = domain();
    let (mut one, mut other, there) = (Side::new(domain), Side::new(domain), participant(domain));
    let writer = there.create_writer(&there.create_topic::<Shape>("Square"), reliable().0).expect("a writer");
    for topic in [one.topic("Square"), other.topic("Square")] {
        topic.writer().wait_for_matched(2, PATIENCE).expect("matched with the readers of both bridges");
    }
    drop(writer);
    drop(there);
    for side in [&mut one, &mut other] {
        until("the end of the topic", || (side.bridge.refresh().removed == ["topics/Square"]).then_some(()));
    }
}

#[test]
fn a_topic_of_an_unknown_type_is_named_once() {
    #[derive(Topic)]
    struct Unheard {
        x: u8,
    }
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let topic = there.create_topic::<Unheard>("strange");
    let writer = there.create_writer(&topic, WriterQos::default()).expect("a writer");
    writer.write(&Unheard { x: 1 }).expect("written");
    let refused = until("the refusal", || {
        let changes = side.bridge.refresh();
        (!changes.refused.is_empty()).then_some(changes.refused)
    });
    assert_eq!(refused.len(), 1);
    assert!(refused[0].0 == "strange" && refused[0].1.contains("is not known; give the IDL"), "{refused:?}");
    assert_eq!(side.bridge.refresh().refused, []);
}

#[test]
fn the_state_of_a_topic_stays_when_its_writers_come_to_offer_less() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let square = there.create_topic::<Shape>("Square");
    let durable = WriterQos { durability: Durability::TransientLocal, ..reliable().0 };
    let first = there.create_writer(&square, durable).expect("a writer");
    first.write(&shape("BLUE", 5)).expect("written");
    let topic = side.topic("Square");
    topic.writer().wait_for_matched(1, PATIENCE).expect("matched with its own reader");
    until("what was written", || side.text("/topics/Square?color=BLUE").starts_with("2.05").then_some(()));
    let json = r#"{"color":"RED","x":10,"y":2,"shapesize":3}"#;
    let put = side.ask(&RequestBuf::put("/topics/Square", json).with_content_format(content_format::JSON));
    assert_eq!(put.code, Code::CHANGED);
    until("what was put", || side.text("/topics/Square").contains("\"x\":10").then_some(()));

    let exchange = |side: &mut Side| {
        let former = topic.reader().guid();
        until("another reader", || {
            assert_eq!(side.bridge.refresh(), Changes::default());
            (topic.reader().guid() != former).then_some(())
        });
    };
    let best_effort = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let second = there.create_writer(&square, best_effort).expect("a writer");
    exchange(&mut side);
    assert!(Arc::ptr_eq(&topic, side.bridge.topic("Square").expect("there")), "the same resource");
    assert!(side.text("/topics/Square").contains("\"x\":10"), "the newest is what was put");
    assert!(side.text("/topics/Square?color=BLUE").starts_with("2.05"));
    // Nothing repeats what a best-effort writer has written while there was no match.
    until("what the new writer writes", || {
        second.write(&shape("GREEN", 7)).expect("written");
        side.text("/topics/Square?color=GREEN").starts_with("2.05").then_some(())
    });

    // The reader asks for history again, and gets what is known.
    drop(second);
    exchange(&mut side);
    topic.reader().wait_for_matched(2, PATIENCE).expect("matched with the first writer and its own");
    first.write(&shape("WHITE", 9)).expect("written");
    until("the newest", || side.text("/topics/Square").contains("WHITE").then_some(()));
    assert!(side.text("/topics/Square?color=RED").contains("\"x\":10"));
    until("the end of what the second wrote", || {
        side.bridge.refresh();
        side.text("/topics/Square?color=GREEN").starts_with("5.03").then_some(())
    });
}

#[test]
fn what_an_earlier_reader_of_a_topic_gave_ends_with_its_writer() {
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let square = there.create_topic::<Shape>("Square");
    let first = there.create_writer(&square, reliable().0).expect("a writer");
    let topic = side.topic("Square");
    topic.reader().wait_for_matched(2, PATIENCE).expect("matched with the writer and its own");
    first.wait_for_matched(1, PATIENCE).expect("matched");
    first.write(&shape("BLUE", 5)).expect("written");
    until("what was written", || side.text("/topics/Square?color=BLUE").starts_with("2.05").then_some(()));
    let former = topic.reader().guid();
    let best_effort = WriterQos { reliability: Reliability::BestEffort, ..WriterQos::default() };
    let _second = there.create_writer(&square, best_effort).expect("a writer");
    until("another reader", || {
        side.bridge.refresh();
        (topic.reader().guid() != former).then_some(())
    });
    side.bridge.refresh();
    assert!(side.text("/topics/Square?color=BLUE").starts_with("2.05"), "its writer lives");
    drop(first);
    until("the end of what it wrote", || {
        side.bridge.refresh();
        side.text("/topics/Square?color=BLUE").starts_with("5.03").then_some(())
    });
}

#[test]
fn observers_of_a_topic_with_another_type_are_not_told_that_it_is_gone() {
    let domain = domain();
    let (here, there) = (Arc::new(participant(domain)), participant(domain));
    let store = LocalStore::new();
    let mut bridge = Bridge::new(Arc::clone(&here), Types::default(), store.clone());
    let shapes = there.create_writer(&there.create_topic::<Shape>("Square"), reliable().0).expect("a writer");
    until("the topic", || (bridge.refresh().added == ["topics/Square"]).then_some(()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (asked, answers) = (store.clone(), Arc::clone(&told));
    let ask = move || {
        let answer = asked.handle(&RequestBuf::get("/topics/Square").view());
        answers.lock().expect("a lock").push(answer.map_or(Code::NOT_FOUND, |answer| answer.code));
    };
    let watch = store.observe("topics/Square", ask).expect("there");
    drop(shapes);
    let texts = there.create_writer(&there.create_topic::<Text>("Square"), reliable().0).expect("a writer");
    until("the other type", || {
        let mut known = here.publications();
        known.retain(|known| known.data.guid.prefix == there.guid_prefix() && known.data.topic_name == "Square");
        (known.len() == 1 && known[0].data.guid == texts.guid()).then_some(())
    });
    let changes = bridge.refresh();
    assert_eq!(changes, Changes { added: vec!["topics/Square".to_owned()], ..Changes::default() });
    assert_eq!(*told.lock().expect("a lock"), [Code::SERVICE_UNAVAILABLE], "there is no sample of the new type yet");
    drop(watch);
}

#[test]
fn more_instances_than_are_taken_at_once_are_all_read() {
    const INSTANCES: i32 = 600;
    let domain = domain();
    let (mut side, there) = (Side::new(domain), participant(domain));
    let writer = there.create_writer(&there.create_topic::<Shape>("Square"), reliable().0).expect("a writer");
    let topic = side.topic("Square");
    topic.reader().wait_for_matched(2, PATIENCE).expect("matched with the writer and its own");
    writer.wait_for_matched(1, PATIENCE).expect("matched");
    // Holds up the listener until they are all there.
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().expect("a lock");
    let held_up = Arc::clone(&gate);
    let watch = side.store.on_change(Arc::new(move |_: &str| drop(held_up.lock())));
    writer.write(&shape("c0", 0)).expect("written");
    side.changes.recv_timeout(PATIENCE).expect("the first is told");
    for number in 1..INSTANCES {
        writer.write(&shape(&format!("c{number}"), number)).expect("written");
    }
    let reader = topic.reader();
    until("the others", || (reader.available() == 599).then_some(()));
    drop(closed);
    until("each of them", || {
        let is_there = |number: i32| side.text(&format!("/topics/Square?color=c{number}")).starts_with("2.05");
        (0..INSTANCES).all(is_there).then_some(())
    });
    drop(watch);
}
