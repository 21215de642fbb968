//! The shapes demonstration on RustDDS, with the options and lines of the OMG's interoperability suite.
//!
//! What RustDDS does not have ends it with the line `<what> = not supported`.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

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

/// Options without a value.
const FLAGS: [&str; 9] = ["-P", "-S", "-b", "-r", "-w", "-R", "--take-read", "--coherent", "--ordered"];

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

/// The options: flags, and words with a value.
struct Options(HashMap<String, String>);

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut all = HashMap::new();
        while let Some(word) = words.next() {
            let value = match FLAGS.contains(&word.as_str()) {
                true => String::new(),
                false => words.next().ok_or_else(|| format!("{word} needs a value"))?,
            };
            all.insert(word, value);
        }
        Ok(Options(all))
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains_key(word)
    }

    fn text<'a>(&'a self, word: &str, otherwise: &'a str) -> &'a str {
        self.0.get(word).map_or(otherwise, String::as_str)
    }

    fn number(&self, word: &str, otherwise: i64) -> i64 {
        self.0.get(word).and_then(|value| value.parse().ok()).unwrap_or(otherwise)
    }

    /// A period in milliseconds.
    fn period(&self, word: &str, otherwise: i64) -> Duration {
        Duration::from_millis(u64::try_from(self.number(word, otherwise)).unwrap_or_default())
    }

    /// What is asked for and not there.
    fn missing(&self) -> Option<&'static str> {
        let filters = self.has("--cft") || self.has("-S") && self.has("-c");
        let all = [
            (self.has("-p"), "PARTITION"),
            (self.number("--time-filter", 0) > 0, "TIME_BASED_FILTER"),
            (filters, "content filtered topic"),
            (self.has("--coherent"), "coherent access"),
            (self.has("--ordered"), "ordered access"),
            (self.number("-x", 1) == 2, "XCDR2"),
            (self.text("--final-instance-state", "") == "u", "unregister"),
            (self.has("--datafrag-size"), "datafrag-size"),
        ];
        all.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, what)| what)
    }

    fn qos(&self) -> QosPolicies {
        let max_blocking_time = rustdds::Duration::from(Duration::from_secs(10));
        let reliability =
            if self.has("-b") { Reliability::BestEffort } else { Reliability::Reliable { max_blocking_time } };
        let history = match self.number("-k", 1) {
            0 => History::KeepAll,
            depth => History::KeepLast { depth: i32::try_from(depth).unwrap_or(i32::MAX) },
        };
        let durability = match self.text("-D", "v") {
            "l" => Durability::TransientLocal,
            "t" => Durability::Transient,
            "p" => Durability::Persistent,
            _ => Durability::Volatile,
        };
        let access_scope = match self.text("--access-scope", "i") {
            "t" => PresentationAccessScope::Topic,
            "g" => PresentationAccessScope::Group,
            _ => PresentationAccessScope::Instance,
        };
        let presentation = Presentation { access_scope, coherent_access: false, ordered_access: false };
        let ownership = match self.number("-s", -1) {
            strength @ 0.. => Ownership::Exclusive { strength: i32::try_from(strength).unwrap_or(i32::MAX) },
            _ => Ownership::Shared,
        };
        let mut qos = QosPolicyBuilder::new()
            .reliability(reliability)
            .history(history)
            .durability(durability)
            .presentation(presentation)
            .ownership(ownership);
        if self.number("-f", 0) > 0 {
            qos = qos.deadline(Deadline(self.period("-f", 0).into()));
        }
        if self.has("--lifespan") {
            qos = qos.lifespan(Lifespan { duration: self.period("--lifespan", 0).into() });
        }
        qos.build().with_data_representation(DataRepresentation { value: vec![XCDR_DATA_REPRESENTATION] })
    }
}

/// Publishes or subscribes as the options say, and ends with it.
pub fn run(words: impl Iterator<Item = String>) -> ! {
    let ended = Options::read(words).and_then(|options| match options.missing() {
        Some(what) => Err(format!("    {what} = not supported")),
        None => start(&options),
    });
    if let Err(line) = &ended {
        println!("{line}");
    }
    std::process::exit(i32::from(ended.is_err()))
}

fn start(options: &Options) -> Result<(), String> {
    let domain = u16::try_from(options.number("-d", 0)).map_err(told)?;
    let participant = DomainParticipantBuilder::new(domain).build().map_err(told)?;
    let topics = numbered(options.text("-t", ""), options.number("--num-topics", 1));
    if options.has("-P") { publish(options, &participant, &topics) } else { subscribe(options, &participant, &topics) }
}

fn topic(participant: &DomainParticipant, name: &str, qos: &QosPolicies) -> Result<Topic, String> {
    println!("Create topic: {name}");
    participant.create_topic(name.to_owned(), "ShapeType".to_owned(), qos, TopicKind::WithKey).map_err(told)
}

fn publish(options: &Options, participant: &DomainParticipant, topics: &[String]) -> Result<(), String> {
    let qos = options.qos();
    let publisher = participant.create_publisher(&qos).map_err(told)?;
    let mut writers = Vec::new();
    for name in topics {
        let topic = topic(participant, name, &qos)?;
        println!("Create writer for topic: {name} color: {}", options.text("-c", "BLUE"));
        let writer = publisher.create_datawriter_cdr::<Shape>(&topic, Some(qos.clone())).map_err(told)?;
        writers.push((name.as_str(), writer));
    }
    let colors = numbered(options.text("-c", "BLUE"), options.number("--num-instances", 1));
    let octets = usize::try_from(options.number("--additional-payload-size", 0)).map_err(told)?;
    for iteration in 0..options.number("--num-iterations", i64::MAX) {
        let size = match options.number("-z", 20) {
            0 => iteration % options.number("--size-modulo", i64::from(i32::MAX)) + 1,
            size => size,
        };
        for (name, writer) in &mut writers {
            for color in &colors {
                let shape = Shape {
                    color: color.clone(),
                    x: (iteration % 200) as i32,
                    y: (iteration % 200) as i32,
                    shapesize: size as i32,
                    additional_payload_size: vec![255; octets],
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
    if options.has("--final-instance-state") {
        // It is there to be read before the writer leaves, which is another end.
        std::thread::sleep(Duration::from_millis(400));
    }
    println!("Done.");
    Ok(())
}

fn subscribe(options: &Options, participant: &DomainParticipant, topics: &[String]) -> Result<(), String> {
    let qos = options.qos();
    let subscriber = participant.create_subscriber(&qos).map_err(told)?;
    let mut readers = Vec::new();
    for name in topics {
        let topic = topic(participant, name, &qos)?;
        println!("Create reader for topic: {name}");
        let reader = subscriber.create_datareader_cdr::<Shape>(&topic, Some(qos.clone())).map_err(told)?;
        readers.push((name.as_str(), reader));
    }
    for _ in 0..options.number("--num-iterations", i64::MAX) {
        for (name, reader) in &mut readers {
            take(name, reader);
            tell_reader(name, reader);
        }
        std::thread::sleep(options.period("--read-period", 100));
    }
    println!("Done.");
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

/// A sample as the suite reads it.
fn line(topic: &str, shape: &Shape) -> String {
    let Shape { color, x, y, shapesize, additional_payload_size } = shape;
    let last = additional_payload_size.last().map(|octet| format!(" {{{octet}}}")).unwrap_or_default();
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]{last}")
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

fn tell(topic: &str, name: &str, what: &str) {
    println!("{name}() topic: '{topic}'  type: 'ShapeType' : {what}");
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

/// The name alone, then with the numbers from 1.
fn numbered(name: &str, count: i64) -> Vec<String> {
    std::iter::once(name.to_owned()).chain((1..count).map(|number| format!("{name}{number}"))).collect()
}

fn told(error: impl fmt::Display) -> String {
    error.to_string()
}
