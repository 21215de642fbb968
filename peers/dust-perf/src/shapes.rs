//! The shapes demonstration on Dust DDS, with the options and lines of the OMG's interoperability suite.
//!
//! What Dust DDS does not have ends it with the line `<what> = not supported`.

use std::fmt::Debug;

use dust_dds::dds_async::data_reader::DataReaderAsync;
use dust_dds::dds_async::data_reader_listener::DataReaderListener;
use dust_dds::dds_async::data_writer::DataWriterAsync;
use dust_dds::dds_async::data_writer_listener::DataWriterListener;
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, PublisherQos, QosKind, SubscriberQos};
use dust_dds::infrastructure::qos_policy::{
    DataRepresentationQosPolicy, DeadlineQosPolicy, DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy,
    HistoryQosPolicyKind, LifespanQosPolicy, OwnershipQosPolicy, OwnershipQosPolicyKind, OwnershipStrengthQosPolicy,
    PartitionQosPolicy, ReliabilityQosPolicy, ReliabilityQosPolicyKind, TimeBasedFilterQosPolicy,
    WriterDataLifecycleQosPolicy, XCDR_DATA_REPRESENTATION, XCDR2_DATA_REPRESENTATION,
};
use dust_dds::infrastructure::sample_info::{
    ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE, InstanceStateKind, Sample,
};
use dust_dds::infrastructure::status::{
    LivelinessChangedStatus, LivelinessLostStatus, NO_STATUS, OfferedDeadlineMissedStatus,
    OfferedIncompatibleQosStatus, PublicationMatchedStatus, RequestedDeadlineMissedStatus,
    RequestedIncompatibleQosStatus, StatusKind, SubscriptionMatchedStatus,
};
use dust_dds::infrastructure::time::{Duration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::xtypes::type_support::BoundedString;
use peer_protocol::shapes::{self, ShapesOptions, sample_line, tell};

/// As `shape.idl` of the suite describes it.
#[derive(Clone, DdsType)]
#[dust_dds(name = "ShapeType", extensibility = "appendable")]
struct Shape {
    #[dust_dds(key)]
    color: BoundedString<128>,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

/// Statuses that are told.
const WRITER_NEWS: &[StatusKind] = &[
    StatusKind::PublicationMatched,
    StatusKind::OfferedIncompatibleQos,
    StatusKind::OfferedDeadlineMissed,
    StatusKind::LivelinessLost,
];
const READER_NEWS: &[StatusKind] = &[
    StatusKind::SubscriptionMatched,
    StatusKind::RequestedIncompatibleQos,
    StatusKind::RequestedDeadlineMissed,
    StatusKind::LivelinessChanged,
];
const TAKEN_MAX: i32 = 1000;

/// What is asked for and not there.
fn missing(options: &ShapesOptions) -> Option<&'static str> {
    let all = [
        (options.has("--coherent"), "coherent access"),
        (options.has("--ordered"), "ordered access"),
        (options.has("--datafrag-size"), "datafrag-size"),
    ];
    all.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, what)| what)
}

/// Publishes or subscribes as the options say, and ends with it.
pub fn run(words: impl Iterator<Item = String>) -> ! {
    shapes::run(words, missing, start)
}

fn start(options: &ShapesOptions) -> Result<(), String> {
    let domain = i32::try_from(options.number("-d", 0)).map_err(told)?;
    let factory = DomainParticipantFactory::get_instance();
    let participant = factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS).map_err(told)?;
    if options.has("-P") { publish(options, &participant) } else { subscribe(options, &participant) }
}

fn topic(participant: &DomainParticipant, name: &str) -> Result<Topic, String> {
    println!("Create topic: {name}");
    participant.create_topic::<Shape>(name, "ShapeType", QosKind::Default, NO_LISTENER, NO_STATUS).map_err(told)
}

fn publish(options: &ShapesOptions, participant: &DomainParticipant) -> Result<(), String> {
    let qos = PublisherQos { partition: partition(options), ..PublisherQos::default() };
    let publisher = participant.create_publisher(QosKind::Specific(qos), NO_LISTENER, NO_STATUS).map_err(told)?;
    let mut writers = Vec::new();
    for name in options.topics() {
        let topic = topic(participant, &name)?;
        println!("Create writer for topic: {name} color: {}", options.color());
        let (qos, news) = (QosKind::Specific(writer_qos(options)), Some(News(name.clone())));
        let writer = publisher.create_datawriter::<Shape>(&topic, qos, news, WRITER_NEWS).map_err(told)?;
        writers.push((name, writer));
    }
    let (colors, octets) = (options.colors(), options.octets());
    for iteration in options.iterations() {
        for (name, writer) in &writers {
            for color in &colors {
                let place = (iteration % 200) as i32;
                let shape = Shape {
                    color: bounded(color)?,
                    x: place,
                    y: place,
                    shapesize: options.size(iteration),
                    additional_payload_size: octets.clone(),
                };
                let line = line(name, &shape);
                if writer.write(shape, None).is_ok() && options.has("-w") {
                    println!("{line}");
                }
            }
        }
        std::thread::sleep(options.period("--write-period", 33));
    }
    writers.iter().try_for_each(|(_, writer)| end(options, &colors, writer))?;
    options.let_ends_be_read();
    Ok(())
}

/// Ends the instances as the options say.
fn end(options: &ShapesOptions, colors: &[String], writer: &DataWriter<Shape>) -> Result<(), String> {
    for color in colors {
        let color = bounded(color)?;
        let shape = Shape { color, x: 0, y: 0, shapesize: 0, additional_payload_size: Vec::new() };
        match options.text("--final-instance-state", "") {
            "d" => writer.dispose(shape, None).map_err(told)?,
            "u" => writer.unregister_instance(shape, None).map_err(told)?,
            _ => {}
        }
    }
    _ = writer.wait_for_acknowledgments(Duration::new(1, 0));
    Ok(())
}

fn subscribe(options: &ShapesOptions, participant: &DomainParticipant) -> Result<(), String> {
    let qos = SubscriberQos { partition: partition(options), ..SubscriberQos::default() };
    let subscriber = participant.create_subscriber(QosKind::Specific(qos), NO_LISTENER, NO_STATUS).map_err(told)?;
    let mut readers = Vec::new();
    for name in options.topics() {
        let topic = topic(participant, &name)?;
        println!("Create reader for topic: {name}");
        let (qos, news) = (QosKind::Specific(reader_qos(options)), Some(News(name.clone())));
        let reader = match options.filter() {
            None => subscriber.create_datareader::<Shape>(&topic, qos, news, READER_NEWS),
            Some(filter) => {
                let filtered = format!("{name}_filtered");
                let filtered = participant.create_contentfilteredtopic(&filtered, &topic, filter, Vec::new());
                let filtered =
                    filtered.map_err(|error| format!("failed to create content filtered topic: {error:?}"))?;
                subscriber.create_datareader::<Shape>(&filtered, qos, news, READER_NEWS)
            }
        };
        readers.push((name, reader.map_err(told)?));
    }
    for _ in options.iterations() {
        for (name, reader) in &readers {
            // That nothing is there is an error to Dust DDS.
            let samples = taken(options, reader).unwrap_or_default();
            samples.iter().for_each(|sample| show(name, sample));
        }
        std::thread::sleep(options.period("--read-period", 100));
    }
    Ok(())
}

fn taken(options: &ShapesOptions, reader: &DataReader<Shape>) -> Result<Vec<Sample<Shape>>, String> {
    let samples = match options.has("-R") {
        true => reader.read(TAKEN_MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE),
        false => reader.take(TAKEN_MAX, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE),
    };
    samples.map_err(told)
}

fn show(topic: &str, sample: &Sample<Shape>) {
    if sample.sample_info.valid_data
        && let Some(shape) = &sample.data
    {
        println!("{}", line(topic, shape));
    }
    match sample.sample_info.instance_state {
        InstanceStateKind::Alive => {}
        InstanceStateKind::NotAliveDisposed => println!("{topic:<10} NOT_ALIVE_DISPOSED_INSTANCE_STATE"),
        InstanceStateKind::NotAliveNoWriters => println!("{topic:<10} NOT_ALIVE_NO_WRITERS_INSTANCE_STATE"),
    }
}

fn line(topic: &str, shape: &Shape) -> String {
    sample_line(
        topic,
        &String::from(shape.color.clone()),
        [shape.x, shape.y, shape.shapesize],
        &shape.additional_payload_size,
    )
}

fn writer_qos(options: &ShapesOptions) -> DataWriterQos {
    let value = i32::try_from(options.number("-s", 0)).unwrap_or_default().max(0);
    DataWriterQos {
        reliability: reliability(options),
        durability: durability(options),
        history: history(options),
        deadline: deadline(options),
        ownership: ownership(options),
        ownership_strength: OwnershipStrengthQosPolicy { value },
        lifespan: LifespanQosPolicy { duration: period(options, "--lifespan", DurationKind::Infinite) },
        representation: representation(options),
        writer_data_lifecycle: WriterDataLifecycleQosPolicy {
            autodispose_unregistered_instances: options.text("--final-instance-state", "") != "u",
        },
        ..DataWriterQos::default()
    }
}

fn reader_qos(options: &ShapesOptions) -> DataReaderQos {
    let none = DurationKind::Finite(Duration::new(0, 0));
    DataReaderQos {
        reliability: reliability(options),
        durability: durability(options),
        history: history(options),
        deadline: deadline(options),
        ownership: ownership(options),
        time_based_filter: TimeBasedFilterQosPolicy { minimum_separation: period(options, "--time-filter", none) },
        representation: representation(options),
        ..DataReaderQos::default()
    }
}

fn reliability(options: &ShapesOptions) -> ReliabilityQosPolicy {
    let is_best_effort = options.has("-b");
    ReliabilityQosPolicy {
        kind: if is_best_effort { ReliabilityQosPolicyKind::BestEffort } else { ReliabilityQosPolicyKind::Reliable },
        max_blocking_time: DurationKind::Finite(Duration::new(10, 0)),
    }
}

fn durability(options: &ShapesOptions) -> DurabilityQosPolicy {
    DurabilityQosPolicy {
        kind: match options.text("-D", "v") {
            "l" => DurabilityQosPolicyKind::TransientLocal,
            "t" => DurabilityQosPolicyKind::Transient,
            "p" => DurabilityQosPolicyKind::Persistent,
            _ => DurabilityQosPolicyKind::Volatile,
        },
    }
}

fn history(options: &ShapesOptions) -> HistoryQosPolicy {
    HistoryQosPolicy {
        kind: match options.number("-k", 1) {
            0 => HistoryQosPolicyKind::KeepAll,
            depth => HistoryQosPolicyKind::KeepLast(u32::try_from(depth).unwrap_or(u32::MAX)),
        },
    }
}

fn deadline(options: &ShapesOptions) -> DeadlineQosPolicy {
    DeadlineQosPolicy { period: period(options, "-f", DurationKind::Infinite) }
}

fn ownership(options: &ShapesOptions) -> OwnershipQosPolicy {
    let is_exclusive = options.number("-s", -1) >= 0;
    OwnershipQosPolicy {
        kind: if is_exclusive { OwnershipQosPolicyKind::Exclusive } else { OwnershipQosPolicyKind::Shared },
    }
}

fn representation(options: &ShapesOptions) -> DataRepresentationQosPolicy {
    let is_second = options.number("-x", 1) == 2;
    DataRepresentationQosPolicy {
        value: vec![if is_second { XCDR2_DATA_REPRESENTATION } else { XCDR_DATA_REPRESENTATION }],
    }
}

fn partition(options: &ShapesOptions) -> PartitionQosPolicy {
    let names = options.has("-p").then(|| options.text("-p", "").to_owned());
    PartitionQosPolicy { name: names.into_iter().collect() }
}

/// A period of the options, or else this one; zero is none as well.
fn period(options: &ShapesOptions, word: &str, otherwise: DurationKind) -> DurationKind {
    let period = options.period(word, 0);
    if period.is_zero() {
        return otherwise;
    }
    let seconds = i32::try_from(period.as_secs()).unwrap_or(i32::MAX);
    DurationKind::Finite(Duration::new(seconds, period.subsec_nanos()))
}

/// Prints statuses of the endpoints of a topic.
struct News(String);

impl DataWriterListener<Shape> for News {
    async fn on_publication_matched(&mut self, _: DataWriterAsync<Shape>, status: PublicationMatchedStatus) {
        let PublicationMatchedStatus { current_count, current_count_change, .. } = status;
        let what = format!("matched readers {current_count} (change = {current_count_change})");
        tell(&self.0, "on_publication_matched", what);
    }

    async fn on_offered_incompatible_qos(&mut self, _: DataWriterAsync<Shape>, status: OfferedIncompatibleQosStatus) {
        tell(&self.0, "on_offered_incompatible_qos", status.last_policy_id);
    }

    async fn on_offered_deadline_missed(&mut self, _: DataWriterAsync<Shape>, status: OfferedDeadlineMissedStatus) {
        tell(&self.0, "on_offered_deadline_missed", status.total_count);
    }

    async fn on_liveliness_lost(&mut self, _: DataWriterAsync<Shape>, status: LivelinessLostStatus) {
        tell(&self.0, "on_liveliness_lost", status.total_count);
    }
}

impl DataReaderListener<Shape> for News {
    async fn on_subscription_matched(&mut self, _: DataReaderAsync<Shape>, status: SubscriptionMatchedStatus) {
        let SubscriptionMatchedStatus { current_count, current_count_change, .. } = status;
        let what = format!("matched writers {current_count} (change = {current_count_change})");
        tell(&self.0, "on_subscription_matched", what);
    }

    async fn on_requested_incompatible_qos(
        &mut self,
        _: DataReaderAsync<Shape>,
        status: RequestedIncompatibleQosStatus,
    ) {
        tell(&self.0, "on_requested_incompatible_qos", status.last_policy_id);
    }

    async fn on_requested_deadline_missed(&mut self, _: DataReaderAsync<Shape>, status: RequestedDeadlineMissedStatus) {
        tell(&self.0, "on_requested_deadline_missed", status.total_count);
    }

    async fn on_liveliness_changed(&mut self, _: DataReaderAsync<Shape>, status: LivelinessChangedStatus) {
        tell(
            &self.0,
            "on_liveliness_changed",
            format!("(alive = {}, not_alive = {})", status.alive_count, status.not_alive_count),
        );
    }
}

fn bounded(color: &str) -> Result<BoundedString<128>, String> {
    color.to_owned().try_into().map_err(told)
}

fn told(error: impl Debug) -> String {
    format!("{error:?}")
}
