//! The shapes demonstration on RustDDS, with the options and lines of the OMG's interoperability suite.
//!
//! What RustDDS does not have ends it with the line `<what> = not supported`.

use std::fmt;
use std::time::Duration;

use peer_protocol::shapes::{self, ShapesOptions, tell};
use rustdds::policy::{
    DataRepresentation, Deadline, Durability, History, Lifespan, Ownership, Presentation, PresentationAccessScope,
    Reliability, XCDR_DATA_REPRESENTATION,
};
use rustdds::qos::QosPolicyId;
use rustdds::with_key::{DataReader, DataWriter, Sample};
use rustdds::{
    CDRDeserializerAdapter, CDRSerializerAdapter, DataReaderStatus, DataWriterStatus, DomainParticipant,
    DomainParticipantBuilder, InstanceState, Keyed, QosPolicies, QosPolicyBuilder, StatusEvented, Topic, TopicKind,
};
use serde::{Deserialize, Serialize};

/// As `shape.idl` of the suite describes it.
#[derive(Clone, Serialize, Deserialize)]
struct Shape {
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

impl Keyed for Shape {
    type K = String;

    fn key(&self) -> String {
        self.color.clone()
    }
}

type Writer = DataWriter<Shape, CDRSerializerAdapter<Shape>>;
type Reader = DataReader<Shape, CDRDeserializerAdapter<Shape>>;

/// What is asked for and not there.
fn missing(options: &ShapesOptions) -> Option<&'static str> {
    let all = [
        (options.has("-p"), "PARTITION"),
        (options.number("--time-filter", 0) > 0, "TIME_BASED_FILTER"),
        (options.filter().is_some(), "content filtered topic"),
        (options.has("--coherent"), "coherent access"),
        (options.has("--ordered"), "ordered access"),
        (options.number("-x", 1) == 2, "XCDR2"),
        (options.text("--final-instance-state", "") == "u", "unregister"),
        (options.has("--datafrag-size"), "datafrag-size"),
    ];
    all.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, what)| what)
}

fn qos(options: &ShapesOptions) -> QosPolicies {
    let max_blocking_time = rustdds::Duration::from(Duration::from_secs(10));
    let reliability =
        if options.has("-b") { Reliability::BestEffort } else { Reliability::Reliable { max_blocking_time } };
    let history = match options.number("-k", 1) {
        0 => History::KeepAll,
        depth => History::KeepLast { depth: i32::try_from(depth).unwrap_or(i32::MAX) },
    };
    let durability = match options.text("-D", "v") {
        "l" => Durability::TransientLocal,
        "t" => Durability::Transient,
        "p" => Durability::Persistent,
        _ => Durability::Volatile,
    };
    let access_scope = match options.text("--access-scope", "i") {
        "t" => PresentationAccessScope::Topic,
        "g" => PresentationAccessScope::Group,
        _ => PresentationAccessScope::Instance,
    };
    let presentation = Presentation { access_scope, coherent_access: false, ordered_access: false };
    let ownership = match options.number("-s", -1) {
        strength @ 0.. => Ownership::Exclusive { strength: i32::try_from(strength).unwrap_or(i32::MAX) },
        _ => Ownership::Shared,
    };
    let mut qos = QosPolicyBuilder::new()
        .reliability(reliability)
        .history(history)
        .durability(durability)
        .presentation(presentation)
        .ownership(ownership);
    if options.number("-f", 0) > 0 {
        qos = qos.deadline(Deadline(options.period("-f", 0).into()));
    }
    if options.has("--lifespan") {
        qos = qos.lifespan(Lifespan { duration: options.period("--lifespan", 0).into() });
    }
    qos.build().with_data_representation(DataRepresentation { value: vec![XCDR_DATA_REPRESENTATION] })
}

/// Publishes or subscribes as the options say, and ends with it.
pub fn run(words: impl Iterator<Item = String>) -> ! {
    shapes::run(words, missing, start)
}

fn start(options: &ShapesOptions) -> Result<(), String> {
    let domain = u16::try_from(options.number("-d", 0)).map_err(told)?;
    let participant = DomainParticipantBuilder::new(domain).build().map_err(told)?;
    let topics = options.topics();
    if options.has("-P") { publish(options, &participant, &topics) } else { subscribe(options, &participant, &topics) }
}

fn topic(participant: &DomainParticipant, name: &str, qos: &QosPolicies) -> Result<Topic, String> {
    println!("Create topic: {name}");
    participant.create_topic(name.to_owned(), "ShapeType".to_owned(), qos, TopicKind::WithKey).map_err(told)
}

fn publish(options: &ShapesOptions, participant: &DomainParticipant, topics: &[String]) -> Result<(), String> {
    let qos = qos(options);
    let publisher = participant.create_publisher(&qos).map_err(told)?;
    let mut writers = Vec::new();
    for name in topics {
        let topic = topic(participant, name, &qos)?;
        println!("Create writer for topic: {name} color: {}", options.color());
        let writer = publisher.create_datawriter_cdr::<Shape>(&topic, Some(qos.clone())).map_err(told)?;
        writers.push((name.as_str(), writer));
    }
    let (colors, octets) = (options.colors(), options.octets());
    for iteration in options.iterations() {
        for (name, writer) in &mut writers {
            for color in &colors {
                let shape = Shape {
                    color: color.clone(),
                    x: (iteration % 200) as i32,
                    y: (iteration % 200) as i32,
                    shapesize: options.size(iteration),
                    additional_payload_size: octets.clone(),
                };
                let line = line(name, &shape);
                let is_written = writer.write(shape, None).is_ok();
                if is_written && options.has("-w") {
                    println!("{line}");
                }
            }
            tell_writer(name, writer);
        }
        std::thread::sleep(options.period("--write-period", 33));
    }
    for (_, writer) in &writers {
        if options.text("--final-instance-state", "") == "d" {
            colors.iter().try_for_each(|color| writer.dispose(color, None)).map_err(told)?;
        }
        _ = writer.wait_for_acknowledgments(Duration::from_secs(1));
    }
    options.let_ends_be_read();
    Ok(())
}

fn subscribe(options: &ShapesOptions, participant: &DomainParticipant, topics: &[String]) -> Result<(), String> {
    let qos = qos(options);
    let subscriber = participant.create_subscriber(&qos).map_err(told)?;
    let mut readers = Vec::new();
    for name in topics {
        let topic = topic(participant, name, &qos)?;
        println!("Create reader for topic: {name}");
        let reader = subscriber.create_datareader_cdr::<Shape>(&topic, Some(qos.clone())).map_err(told)?;
        readers.push((name.as_str(), reader));
    }
    for _ in options.iterations() {
        for (name, reader) in &mut readers {
            take(name, reader);
            tell_reader(name, reader);
        }
        std::thread::sleep(options.period("--read-period", 100));
    }
    Ok(())
}

fn take(topic: &str, reader: &mut Reader) {
    loop {
        let taken = match reader.take_next_sample() {
            Ok(Some(taken)) => taken,
            Ok(None) => return,
            Err(error) => return eprintln!("{topic}: {error}"),
        };
        let state = match taken.sample_info().instance_state() {
            InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
            InstanceState::NotAliveDisposed | InstanceState::Alive => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
        };
        match taken.into_value() {
            Sample::Value(shape) => println!("{}", line(topic, &shape)),
            Sample::Dispose(color) => println!("{topic:<10} {color:<10} {state}"),
        }
    }
}

fn line(topic: &str, shape: &Shape) -> String {
    let Shape { color, x, y, shapesize, additional_payload_size } = shape;
    shapes::sample_line(topic, color, [*x, *y, *shapesize], additional_payload_size)
}

fn tell_writer(topic: &str, writer: &Writer) {
    while let Some(status) = writer.try_recv_status() {
        match status {
            DataWriterStatus::PublicationMatched { .. } => tell(topic, "on_publication_matched", ""),
            DataWriterStatus::OfferedIncompatibleQos { last_policy_id, .. } => {
                tell(topic, "on_offered_incompatible_qos", number_of(last_policy_id));
            }
            DataWriterStatus::OfferedDeadlineMissed { .. } => tell(topic, "on_offered_deadline_missed", ""),
            DataWriterStatus::LivelinessLost { .. } => tell(topic, "on_liveliness_lost", ""),
        }
    }
}

fn tell_reader(topic: &str, reader: &Reader) {
    while let Some(status) = reader.try_recv_status() {
        match status {
            DataReaderStatus::SubscriptionMatched { .. } => tell(topic, "on_subscription_matched", ""),
            DataReaderStatus::RequestedIncompatibleQos { last_policy_id, .. } => {
                tell(topic, "on_requested_incompatible_qos", number_of(last_policy_id));
            }
            DataReaderStatus::RequestedDeadlineMissed { .. } => tell(topic, "on_requested_deadline_missed", ""),
            DataReaderStatus::LivelinessChanged { .. } => tell(topic, "on_liveliness_changed", ""),
            DataReaderStatus::SampleRejected { .. } | DataReaderStatus::SampleLost { .. } => {}
        }
    }
}

/// The number of a policy in DDS's IDL.
fn number_of(policy: QosPolicyId) -> &'static str {
    match policy {
        QosPolicyId::Durability => "2",
        QosPolicyId::Presentation => "3",
        QosPolicyId::Deadline => "4",
        QosPolicyId::LatencyBudget => "5",
        QosPolicyId::Ownership => "6",
        QosPolicyId::Liveliness => "8",
        QosPolicyId::Reliability => "11",
        QosPolicyId::DestinationOrder => "12",
        QosPolicyId::Representation => "23",
        _ => "",
    }
}

fn told(error: impl fmt::Display) -> String {
    error.to_string()
}
