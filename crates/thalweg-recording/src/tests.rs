mod ends;
pub mod files;
mod played;
mod replayed;
mod verified;

use std::time::Duration;

use thalweg::Payload;
use thalweg::discovery::PublicationData;
use thalweg::qos::{
    AccessScope, Durability, DurabilityService, History, Liveliness, LivelinessKind, Presentation, Reliability,
    Representation, WriterOwnership, WriterQos,
};
use thalweg::types::{EntityId, Guid, GuidPrefix, INFINITE, KeyHash, VendorId};
use thalweg_types::idl;

use crate::latched::{Kept, Latched};
use crate::order::LookAhead;
use crate::qos::RecordedQos;
use crate::queue::{ByteQueue, QueueRefusal, TakenEntries};
use crate::schema::{OMGIDL, ROS2MSG, TypeSchema, shown_topic, wire_topic};
use crate::{TopicSelection, Withheld};

#[test]
fn a_queue_holds_no_more_bytes_than_it_may_and_gives_all_it_holds() {
    let queue = ByteQueue::new(1_000);
    let taken = (0..).take_while(|number| queue.offer(*number, 100) == Ok(())).count();
    assert!((2..10).contains(&taken), "{taken}");
    assert_eq!(queue.offer(99, 100), Err(QueueRefusal::Full));
    assert_eq!(queue.take(1, usize::MAX, Duration::ZERO), TakenEntries::Entries(vec![0]));
    assert_eq!(queue.offer(taken, 100), Ok(()), "the bytes are free again");
    queue.close();
    assert_eq!(queue.offer(7, 1), Err(QueueRefusal::Closed));
    assert_eq!(queue.take(99, usize::MAX, Duration::ZERO), TakenEntries::Entries((1..=taken).collect()));
    assert_eq!(queue.take(99, usize::MAX, Duration::ZERO), TakenEntries::Closed);
}

#[test]
fn no_more_is_taken_at_once_than_the_first_entry_that_reaches_the_bytes() {
    let queue = ByteQueue::new(10_000);
    (0..4).for_each(|number| queue.offer(number, 1_000).expect("room"));
    assert_eq!(queue.take(99, 1_500, Duration::ZERO), TakenEntries::Entries(vec![0, 1]));
    assert_eq!(queue.take(99, 1, Duration::ZERO), TakenEntries::Entries(vec![2]), "one always leaves");
    assert_eq!(queue.take(99, 1 << 20, Duration::ZERO), TakenEntries::Entries(vec![3]));
    assert_eq!(queue.bytes().0, 0);
}

#[test]
fn empty_samples_are_bounded_too() {
    let queue = ByteQueue::new(1_000);
    assert!((0..100).any(|number| queue.offer(number, 0) == Err(QueueRefusal::Full)));
}

#[test]
fn entries_leave_in_the_order_of_their_times_within_the_look_ahead() {
    let mut ahead = LookAhead::new(3, 1_000);
    for time in [30, 10, 20] {
        ahead.put(time, 1, time);
    }
    assert!(!ahead.has_room());
    assert_eq!(ahead.take(), Some((10, 10)));
    ahead.put(5, 1, 5);
    assert_eq!((ahead.take(), ahead.late()), (Some((5, 5)), 1));
    assert_eq!((ahead.take(), ahead.take(), ahead.take()), (Some((20, 20)), Some((30, 30)), None));
    assert_eq!(ahead.late(), 1);
    ahead.put(1, 2_000, 1);
    assert!(!ahead.has_room(), "bytes bound it as well");
}

#[test]
fn entries_of_one_time_stay_in_their_order() {
    let mut ahead = LookAhead::new(10, 1_000);
    (0..5).for_each(|number| ahead.put(7, 1, number));
    assert_eq!(std::iter::from_fn(|| ahead.take()).map(|(_, number)| number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn the_qos_of_a_writer_survives_a_recording() {
    let mut qos = WriterQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(7),
        liveliness: Liveliness { kind: LivelinessKind::ManualByTopic, lease: Duration::from_millis(300) },
        ownership: WriterOwnership::Exclusive { strength: -4 },
        transport_priority: 12,
        data_representation: vec![Representation::Xcdr2],
        partition: vec!["left".to_owned(), "*".to_owned()],
        ..WriterQos::default()
    };
    qos.timing.deadline = Duration::from_millis(1_500);
    let history = History::KeepLast(3);
    let transient = WriterQos {
        durability: Durability::Transient,
        durability_service: DurabilityService { history, ..DurabilityService::default() },
        history,
        presentation: Presentation { access_scope: AccessScope::Topic, coherent: false, ordered: true },
        ..WriterQos::default()
    };
    let grouped = WriterQos {
        durability: Durability::TransientLocal,
        presentation: Presentation { access_scope: AccessScope::Group, coherent: true, ordered: true },
        ..WriterQos::default()
    };
    for original in [qos, transient, grouped, WriterQos::default()] {
        let recorded = RecordedQos::of(&original);
        let json = serde_json::to_string(&recorded).expect("JSON");
        let read: RecordedQos = serde_json::from_str(&json).expect("the same");
        let replayed = read.to_writer_qos(1.0);
        // How long a write waits is the replaying program's matter.
        let expected = WriterQos {
            reliability: replayed.reliability,
            data_representation: vec![original.representation()],
            // Unregistering that disposes is recorded as a dispose.
            autodispose: false,
            ..original.clone()
        };
        assert_eq!((replayed.reliability.is_reliable(), replayed), (original.reliability.is_reliable(), expected));
    }
}

#[test]
fn every_qos_that_others_offer_is_replayed_with_one_that_a_writer_may_have() {
    let replayed = |qos: &WriterQos| RecordedQos::of(qos).to_writer_qos(1.0);
    let scopes = [AccessScope::Instance, AccessScope::Topic, AccessScope::Group];
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    let durabilities =
        [Durability::Volatile, Durability::TransientLocal, Durability::Transient, Durability::Persistent];
    let spans = scopes.map(|scope| flags.map(|flags| (scope, flags)));
    for durability in durabilities {
        for (access_scope, (coherent, ordered)) in spans.into_iter().flatten() {
            for reliability in [Reliability::BestEffort, Reliability::RELIABLE] {
                let presentation = Presentation { access_scope, coherent, ordered };
                let qos = replayed(&WriterQos { durability, reliability, presentation, ..WriterQos::default() });
                assert_eq!(qos.check(), Ok(()), "{durability}, {reliability}, {presentation}");
                assert!(qos.durability >= durability.min(Durability::TransientLocal), "{durability}");
                assert_eq!((qos.presentation.coherent, qos.presentation.ordered), (coherent, ordered));
            }
        }
    }
    let persistent = WriterQos { durability: Durability::Persistent, ..WriterQos::default() };
    assert_eq!(replayed(&persistent).durability, Durability::Transient);
    let best_effort = WriterQos { reliability: Reliability::BestEffort, ..persistent };
    assert_eq!(replayed(&best_effort).durability, Durability::TransientLocal);
}

#[test]
fn the_qos_in_older_files_is_read_and_the_usual_one_is_read_by_older_programs() {
    let old: RecordedQos = serde_json::from_str(r#"{"reliable":true,"transient_local":true,"depth":1}"#).expect("read");
    let qos = old.to_writer_qos(1.0);
    assert_eq!((qos.durability, qos.presentation), (Durability::TransientLocal, Presentation::default()));
    let json = serde_json::to_string(&RecordedQos::of(&WriterQos::default().transient_local())).expect("JSON");
    assert!(!json.contains("outlives") && !json.contains("presentation"), "{json}");
}

#[test]
fn a_slow_replay_offers_periods_that_it_keeps() {
    let replayed = |kind: LivelinessKind, rate: f64| {
        let lease = Duration::from_millis(300);
        let mut qos = WriterQos { liveliness: Liveliness { kind, lease }, ..WriterQos::default() };
        qos.timing.deadline = Duration::from_millis(100);
        qos.timing.lifespan = Duration::from_secs(2);
        let qos = RecordedQos::of(&qos).to_writer_qos(rate);
        [qos.timing.deadline, qos.timing.lifespan, qos.liveliness.lease].map(|period| period.as_millis())
    };
    assert_eq!(replayed(LivelinessKind::ManualByTopic, 0.25), [400, 8_000, 1_200]);
    assert_eq!(replayed(LivelinessKind::ManualByParticipant, 0.25), [400, 8_000, 1_200]);
    assert_eq!(replayed(LivelinessKind::Automatic, 0.25), [400, 8_000, 300]);
    assert_eq!(replayed(LivelinessKind::ManualByTopic, 1_000.0), [100, 2_000, 300]);
    let infinite = RecordedQos::of(&WriterQos::default()).to_writer_qos(0.25);
    assert_eq!(
        (infinite.timing.deadline, infinite.timing.lifespan, infinite.liveliness.lease),
        (INFINITE, INFINITE, INFINITE)
    );
    let mut long = WriterQos::default();
    long.timing.lifespan = Duration::from_secs(86_400 * 365);
    assert_eq!(RecordedQos::of(&long).to_writer_qos(1e-15).timing.lifespan, INFINITE);
}

#[test]
fn profiles_of_rosbag2_are_read_by_number_and_by_name() {
    let check = |text: &str, reliable: bool, durability: Durability, history: History| {
        let qos = RecordedQos::from_profiles(text).to_writer_qos(1.0);
        assert_eq!(
            (qos.reliability.is_reliable(), qos.durability, qos.history),
            (reliable, durability, history),
            "{text}"
        );
    };
    check("", true, Durability::Volatile, History::KeepLast(10));
    check(
        "- history: 1\n  depth: 5\n  reliability: 2\n  durability: 2\n  deadline:\n    sec: 1\n    nsec: 0",
        false,
        Durability::Volatile,
        History::KeepLast(5),
    );
    check(
        "- history: keep_all\n  depth: 0\n  reliability: reliable\n  durability: transient_local\n- history: keep_last",
        true,
        Durability::TransientLocal,
        History::KeepAll,
    );
    let own = RecordedQos::of(&WriterQos { durability: Durability::TransientLocal, ..WriterQos::default() });
    check(&own.to_profiles(), true, Durability::TransientLocal, History::KeepLast(1));
    // What rosbag2 writes of a writer of Fast DDS, and what it plays then.
    for unknown in ["history: 3", "history: unknown", "history: 0", "history: system_default", "history: 1"] {
        let text = format!("- {unknown}\n  depth: 0\n  reliability: 2\n  durability: 2");
        check(&text, false, Durability::Volatile, History::KeepLast(10));
    }
}

#[test]
fn a_history_that_is_not_announced_is_not_taken_for_the_default() {
    let announced = |vendor: VendorId, history: History| {
        let mut prefix = [7; 12];
        prefix[..2].copy_from_slice(&vendor.0);
        let guid = Guid { prefix: GuidPrefix(prefix), entity: EntityId([0, 0, 1, 3]) };
        let qos = WriterQos { durability: Durability::TransientLocal, history, ..WriterQos::default() };
        let recorded = RecordedQos::announced(&PublicationData::new(guid, "t", "T", qos));
        let again = RecordedQos::from_profiles(&recorded.to_profiles()).to_writer_qos(1.0).history;
        let history = recorded.to_writer_qos(1.0).history;
        assert_eq!(again, history, "{vendor}");
        let json = serde_json::to_string(&recorded).expect("JSON");
        assert_eq!(serde_json::from_str::<RecordedQos>(&json).expect("the same"), recorded);
        (history, recorded.kept_for_late_readers(), recorded.to_profiles().contains("history: 3\n  depth: 0\n"))
    };
    let one = History::KeepLast(1);
    assert_eq!(announced(VendorId::FAST_DDS, one), (History::KeepLast(10), Some(10), true));
    assert_eq!(announced(VendorId::UNKNOWN, one), (History::KeepLast(10), Some(10), true));
    assert_eq!(announced(VendorId::FAST_DDS, History::KeepLast(5)), (History::KeepLast(5), Some(5), false));
    assert_eq!(announced(VendorId::FAST_DDS, History::KeepAll), (History::KeepAll, Some(1_000), false));
    for vendor in [VendorId::THALWEG, VendorId::CYCLONE] {
        assert_eq!(announced(vendor, one), (one, Some(1), false));
    }
}

#[test]
fn messages_of_ros_are_definitions_of_ros_and_come_back_as_the_same_type() {
    let text = "module a { module msg { module dds_ {
          @final struct Inner_ { octet flag; sequence<double, 3> some; };
          @final struct Outer_ { Inner_ one; string<9> name; sequence<Inner_> many; float grid[4]; };
        }; }; };";
    let types = idl::parse(text).expect("IDL");
    let outer = types.find("a::msg::dds_::Outer_").expect("defined");
    let schema = TypeSchema::of("a::msg::dds_::Outer_", outer);
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("a/msg/Outer", ROS2MSG));
    let border = "=".repeat(80);
    let expected = format!(
        "a/Inner one\nstring<=9 name\na/Inner[] many\nfloat32[4] grid\n{border}\nMSG: a/Inner\nbyte flag\nfloat64[<=3] some\n"
    );
    assert_eq!(schema.text, expected);
    assert_eq!(schema.wire_type_name(), "a::msg::dds_::Outer_");
    assert_eq!(schema.to_type(), Ok(Some(outer.clone())));
}

#[test]
fn defaults_of_members_are_in_their_definitions() {
    let define = |defaults: [&str; 4]| {
        let [flag, numbers, name, backslash] = defaults;
        let text = format!(
            "module a {{ module msg {{ module dds_ {{ @final struct T_ {{
              {flag} boolean flag; {numbers} double numbers[2]; {name} string name; {backslash} string path; }};
            }}; }}; }};"
        );
        idl::parse(&text).expect("IDL").find("a::msg::dds_::T_").expect("defined").clone()
    };
    let of = define(["@default(TRUE)", "@default(\"(1, 0.5)\")", "@default(\"a # b\")", ""]);
    let schema = TypeSchema::of("a::msg::dds_::T_", &of);
    assert_eq!(schema.encoding, ROS2MSG);
    assert_eq!(schema.text, "bool flag true\nfloat64[2] numbers [1,0.5]\nstring name \"a # b\"\nstring path\n");
    assert_eq!(schema.to_type(), Ok(Some(of)));
    let of = define(["", "", "", "@default(\"c:\\\\d\")"]);
    let schema = TypeSchema::of("a::msg::dds_::T_", &of);
    assert_eq!((schema.encoding.as_str(), schema.to_type()), (OMGIDL, Ok(Some(of))), "{}", schema.text);
}

#[test]
fn other_types_are_definitions_in_idl() {
    let text = "module a { @appendable struct Part { long x; }; @mutable struct Whole { @key long id; @optional Part part; }; };";
    let types = idl::parse(text).expect("IDL");
    let whole = types.find("a::Whole").expect("defined");
    let schema = TypeSchema::of("a::Whole", whole);
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("a::Whole", OMGIDL));
    assert_eq!(schema.to_type(), Ok(Some(whole.clone())));
    assert!(TypeSchema { text: "struct".to_owned(), ..schema.clone() }.to_type().is_err());
    assert_eq!(TypeSchema { encoding: "protobuf".to_owned(), ..schema }.to_type(), Ok(None));
}

#[test]
fn types_that_contain_themselves_are_definitions_in_idl_whatever_their_names() {
    let text = "module a { module msg { module dds_ {
          struct Node_; @final struct Part_ { sequence<Node_> nodes; }; @final struct Node_ { long x; Part_ part; };
        }; }; };";
    let types = idl::parse(text).expect("IDL");
    for name in ["a::msg::dds_::Node_", "a::msg::dds_::Part_"] {
        let of = types.find(name).expect("defined");
        let schema = TypeSchema::of(name, of);
        assert_eq!((schema.name.as_str(), schema.encoding.as_str()), (name, OMGIDL));
        assert_eq!(schema.to_type(), Ok(Some(of.clone())), "{}", schema.text);
    }
}

#[test]
fn definitions_that_never_resolve_are_an_error_and_no_endless_search() {
    let schema = TypeSchema {
        name: "a/msg/A".to_owned(),
        encoding: ROS2MSG.to_owned(),
        text: format!("a/B b\n{}\nMSG: a/B\na/A a\n", "=".repeat(80)),
    };
    assert!(schema.to_type().is_err());
}

#[test]
fn topics_are_chosen_by_either_name() {
    let chosen = |names: &[&str], excluded: &[&str], topic: &str| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        TopicSelection::new(owned(names), owned(excluded)).has(topic)
    };
    assert!(chosen(&[], &[], "rt/scan") && chosen(&["/scan"], &[], "rt/scan") && chosen(&["rt/s*"], &[], "rt/scan"));
    assert!(!chosen(&["/scan"], &[], "rt/imu") && !chosen(&[], &["/sc?n"], "rt/scan"));
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let selection = TopicSelection::new(owned(&["/scan", "/scna", "rt/i*"]), owned(&["/imu", "*raw"]));
    assert_eq!(selection.idle_patterns(&["rt/scan", "rt/imu"]), ["/scna", "*raw"]);
    assert_eq!(TopicSelection::default().idle_patterns(&["rt/scan"]), Vec::<String>::new());
    assert!(chosen(&["/camera/*"], &["*raw"], "rt/camera/front/info"));
    assert!(!chosen(&["/camera/*"], &["*raw"], "rt/camera/front/raw"));
    assert_eq!(
        (shown_topic("rt/a/b"), wire_topic("/a/b"), wire_topic("a")),
        ("/a/b".into(), "rt/a/b".into(), "a".into())
    );
}

#[test]
fn requests_and_the_graph_of_ros_are_replayed_by_name_only() {
    let withheld = |names: &[&str], topic: &str| {
        let chosen = names.iter().map(|name| (*name).to_owned()).collect();
        TopicSelection::new(chosen, vec!["rr/*".to_owned()]).withheld(topic)
    };
    assert_eq!(withheld(&[], "rq/add_two_intsRequest"), Some(Withheld::Requests));
    assert_eq!(withheld(&[], "rq/robot/fibonacci/_action/send_goalRequest"), Some(Withheld::Requests));
    assert_eq!(withheld(&[], "ros_discovery_info"), Some(Withheld::Graph));
    // An excluded topic is none that is withheld.
    assert_eq!(withheld(&[], "rr/add_two_intsReply"), None);
    for named in ["rq/add_two_intsRequest", "rq/*", "*"] {
        assert_eq!(withheld(&[named], "rq/add_two_intsRequest"), None, "{named}");
    }
    assert_eq!(withheld(&["/scan"], "rq/add_two_intsRequest"), None, "another one is chosen");
    for topic in
        ["rt/rosout", "rt/fibonacci/_action/status", "rt/add_two_ints/_service_event", "rq", "rt/rq/a", "Square"]
    {
        assert_eq!(withheld(&[], topic), None, "{topic}");
    }
}

#[test]
fn definitions_name_types_as_foxglove_reads_them() {
    let text = r#"
        module a { struct Point { double x; }; };
        module b { struct Path { @key a::Point first; sequence<a::Point> rest; @unit("a ::b") long length; }; };
    "#;
    let types = idl::parse(text).expect("IDL");
    let of = types.find("b::Path").expect("b::Path");
    let schema = TypeSchema::of("b::Path", of);
    let (told, quoted) = (schema.text.replace("\"a ::b\"", ""), schema.text.contains("\"a ::b\""));
    assert!(quoted && told.contains("sequence<a::Point>") && !told.contains(" ::"), "{}", schema.text);
    assert_eq!(schema.to_type(), Ok(Some(of.clone())));
}

#[test]
fn a_definition_that_means_another_type_without_global_names_keeps_them() {
    let text = "module a { struct T { long x; }; module a { struct T { double y; }; struct U { ::a::T t; }; }; };";
    let types = idl::parse(text).expect("IDL");
    let of = types.find("a::a::U").expect("a::a::U");
    assert_eq!(TypeSchema::of("a::a::U", of).to_type(), Ok(Some(of.clone())));
}

#[test]
fn what_a_writer_keeps_goes_with_it_and_bytes_are_given_back() {
    let guid = |number: u8| Guid { prefix: GuidPrefix([number; 12]), entity: EntityId([0, 0, 1, 3]) };
    let kept = |sequence: u32, bytes: usize| Kept {
        sequence,
        log_time_ns: u64::from(sequence),
        publish_time_ns: 0,
        payload: Payload::from(vec![7; bytes]),
    };
    let mut latched = Latched::default();
    let third = 20 << 20;
    for number in 1..=3 {
        assert!(latched.keep(guid(number), KeyHash::default(), 1, kept(1, third)), "{number}");
    }
    assert!(!latched.keep(guid(4), KeyHash::default(), 1, kept(1, third)), "64 MiB are full");
    latched.forget(guid(1));
    assert!(latched.keep(guid(4), KeyHash::default(), 1, kept(2, third)), "the bytes are free again");
    assert!(latched.keep(guid(2), KeyHash::default(), 1, kept(9, 1)), "in place of the one before");
    let of_two = latched.samples_of(|writer| writer == guid(2));
    assert_eq!(of_two.iter().map(|(_, sample)| sample.sequence).collect::<Vec<_>>(), [9]);
    let all: Vec<Guid> = latched.samples().into_iter().map(|(writer, _)| writer).collect();
    assert_eq!(all, [guid(2), guid(3), guid(4)]);
}
