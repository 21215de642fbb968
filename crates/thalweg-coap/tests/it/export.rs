//! Resources as topics, between two participants.

use std::sync::{Arc, Condvar, Mutex, mpsc};

use thalweg::Topic;
use thalweg::qos::{Durability, ReaderQos};
use thalweg_coap::data_space::{Exporter, Types};
use thalweg_coap::device::drivers::{Simulated, Simulation};
use thalweg_coap::device::{DevicePool, Finder, Linker, Unit, Value, ValueKind};
use thalweg_coap::interaction::handler::Catalog;
use thalweg_coap::link_format::WebLink;
use thalweg_coap::message::{RequestBuf, content_format};
use thalweg_coap::resource::representation::{of_value, to_value};
use thalweg_coap::resource::{
    ChannelPolicy, Get, LocalStore, Property, Put, Resource, ResourceError, ResourceRepresentation, add_devices,
    system_clock,
};
use thalweg_coap::scheduler::controller::ControlLaw;
use thalweg_coap::scheduler::{Scheduler, SchedulerConfig};

use super::bridge::{PATIENCE, domain, participant, reliable, taken, until};

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "thalweg::things::Real", extensibility = "appendable")]
struct Real {
    value: f64,
    unit: String,
}

#[derive(Topic, Clone, Debug, PartialEq)]
#[topic(name = "thalweg::things::Text", extensibility = "appendable")]
struct Label {
    value: String,
    unit: String,
}

fn real(value: f64) -> Real {
    Real { value, unit: String::new() }
}

/// A reader of the state of an exported resource, in all it is told.
fn state() -> ReaderQos {
    ReaderQos { durability: Durability::TransientLocal, ..reliable().1 }
}

fn level() -> Property {
    Property::pushed("level", "level", Unit::NONE, PATIENCE, system_clock())
}

/// An actuator whose commands last until it is opened, which the end of its observation does as well.
struct Valve {
    commands: mpsc::Sender<Value>,
    is_open: Mutex<bool>,
    turned: Condvar,
}

impl Valve {
    fn turn(&self, open: bool) {
        *self.is_open.lock().expect("a lock") = open;
        self.turned.notify_all();
    }
}

impl Resource for Valve {
    fn path(&self) -> &str {
        "valve"
    }

    fn link(&self) -> WebLink {
        WebLink::new("/valve").with("if", "core.a")
    }

    fn blocks(&self) -> bool {
        true
    }

    fn get(&self, _request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        let payload = of_value(content_format::CBOR, "valve", &Value::Real(0.0), Unit::NONE)?;
        Ok(ResourceRepresentation::new(content_format::CBOR, payload, PATIENCE))
    }

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        let command = to_value(request.content_format, request.payload, ValueKind::Real)?;
        // Nobody turns it between the command and the look.
        let is_open = self.is_open.lock().expect("a lock");
        self.commands.send(command).unwrap_or_default();
        let opened = self.turned.wait_timeout_while(is_open, PATIENCE, |is_open| !*is_open);
        assert!(!opened.expect("a lock").1.timed_out());
        Ok(())
    }

    fn set_observed(&self, observed: bool) {
        if !observed {
            self.turn(true);
        }
    }
}

#[test]
fn a_resource_is_a_topic_that_tells_and_takes_values() {
    let domain = domain();
    let (here, there) = (Arc::new(participant(domain)), participant(domain));
    let store = LocalStore::new();
    let found = Finder::new().with(Simulated::new(Simulation::default())).find(PATIENCE);
    let scheduler = Scheduler::start(SchedulerConfig::default()).expect("a thread");
    let linker = Linker::new(DevicePool::start(&scheduler, ControlLaw::Vta).expect("a thread"));
    let failures = add_devices(&store, &found, &linker, &ChannelPolicy::default(), &system_clock());
    assert_eq!(failures, []);
    let level = level();
    store.insert(Arc::new(level.clone())).expect("inserted");
    let read = |name: &str| there.create_reader(&there.create_topic::<Real>(name), state()).expect("a reader");
    let (levels, means) = (read("coap/level"), read("coap/sensors/simulated0/mean"));
    let mut exporter = Exporter::start(here, Types::default(), store.clone()).expect("started");
    for path in ["level", "sensors/simulated0/mean"] {
        exporter.add(path).expect("there");
    }
    assert!(exporter.add("nothing").is_err());
    level.push(Value::Real(4.5));
    assert_eq!(taken(&levels), real(4.5));
    assert_eq!(taken(&means), Real { value: 20.0, unit: "Cel".to_owned() });
    let topic = there.create_topic::<Real>("coap/sensors/simulated0/mean");
    let writer = there.create_writer(&topic, reliable().0).expect("a writer");
    // Only the exporter's reader asks for no more than this writer offers.
    writer.wait_for_matched(1, PATIENCE).expect("matched");
    writer.write(&real(33.0)).expect("written");
    let mean = || store.handle(&RequestBuf::get("/sensors/simulated0/mean").view()).expect("there").payload;
    until("the new mean", || (&*mean() == b"33").then_some(()));
    drop(exporter);
}

#[test]
fn of_commands_that_wait_for_a_busy_actuator_the_last_drives_it_and_nothing_else_waits_for_the_others() {
    let domain = domain();
    let (here, there) = (Arc::new(participant(domain)), participant(domain));
    let store = LocalStore::new();
    let (commands, driven) = mpsc::channel();
    let valve = Arc::new(Valve { commands, is_open: Mutex::new(false), turned: Condvar::new() });
    let level = level();
    store.insert(Arc::clone(&valve) as _).expect("inserted");
    store.insert(Arc::new(level.clone())).expect("inserted");
    let mut exporter = Exporter::start(here, Types::default(), store.clone()).expect("started");
    for path in ["valve", "level"] {
        exporter.add(path).expect("there");
    }
    let levels = there.create_reader(&there.create_topic::<Real>("coap/level"), state()).expect("a reader");
    level.push(Value::Real(1.0));
    assert_eq!(taken(&levels), real(1.0));
    let writer = there.create_writer(&there.create_topic::<Real>("coap/valve"), reliable().0).expect("a writer");
    writer.wait_for_matched(1, PATIENCE).expect("matched");
    let write = |value: f64| writer.write(&real(value)).expect("written");
    write(0.5);
    assert_eq!(driven.recv_timeout(PATIENCE), Ok(Value::Real(0.5)));

    for number in 1..=5000 {
        write(f64::from(number));
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    level.push(Value::Real(2.0));
    valve.turn(true);
    let mut later = Vec::new();
    while later.last() != Some(&Value::Real(5000.0)) {
        later.push(driven.recv_timeout(PATIENCE).expect("the last command"));
    }
    // One waited; another may have been on its way from the reader when the last one arrived there.
    assert!(later.len() <= 3, "{later:?}");
    until("the change of the other", || (taken(&levels) == real(2.0)).then_some(()));

    valve.turn(false);
    write(-1.0);
    assert_eq!(driven.recv_timeout(PATIENCE), Ok(Value::Real(-1.0)));
    write(-2.0);
    writer.wait_for_acknowledgments(PATIENCE).expect("received");
    drop(exporter);
    assert_eq!(driven.try_iter().collect::<Vec<_>>(), [], "what waits is left");
}

#[test]
fn the_topic_of_a_resource_ends_with_it_and_has_the_type_of_the_next_one() {
    let domain = domain();
    let (here, there) = (Arc::new(participant(domain)), participant(domain));
    let store = LocalStore::new();
    let insert = |value: Value| {
        let level = level();
        level.push(value);
        store.insert(Arc::new(level.clone())).expect("inserted");
        level
    };
    insert(Value::Real(4.5));
    let mut exporter = Exporter::start(here, Types::default(), store.clone()).expect("started");
    exporter.add("level").expect("there");
    let reals = there.create_reader(&there.create_topic::<Real>("coap/level"), state()).expect("a reader");
    assert_eq!(taken(&reals), real(4.5));
    assert!(store.remove("level"));
    until("the end of the topic", || reals.matched_writers().is_empty().then_some(()));
    drop(reals);

    insert(Value::Text("low".to_owned()));
    let labels = there.create_reader(&there.create_topic::<Label>("coap/level"), state()).expect("a reader");
    assert_eq!(taken(&labels), Label { value: "low".to_owned(), unit: String::new() });

    // Another one takes its place, as when a gateway reads its file again.
    let held = store.hold_changes();
    store.remove("level");
    let level = insert(Value::Real(7.5));
    drop(held);
    until("the end of the topic", || labels.matched_writers().is_empty().then_some(()));
    drop(labels);
    let reals = there.create_reader(&there.create_topic::<Real>("coap/level"), state()).expect("a reader");
    assert_eq!(taken(&reals), real(7.5));
    // A whole number among others needs no other type.
    level.push(Value::Integer(8));
    assert_eq!(taken(&reals), real(8.0));
}
