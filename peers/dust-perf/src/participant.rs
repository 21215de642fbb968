//! Dust DDS as the measurements use it.

use std::sync::Arc;

use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    DataRepresentationQosPolicy, DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, HistoryQosPolicyKind,
    ReliabilityQosPolicy, ReliabilityQosPolicyKind, XCDR_DATA_REPRESENTATION,
};
use dust_dds::infrastructure::sample_info::{ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE};
use dust_dds::infrastructure::status::{NO_STATUS, StatusKind};
use dust_dds::infrastructure::time::{Duration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::wait_set::{Condition, WaitSet};
use peer_protocol::{Channel, Keep, Middleware, Profile, Setup, Sink, Wait, WriteError};

#[derive(DdsType)]
#[dust_dds(extensibility = "final")]
struct Sample {
    number: u64,
    bytes: Vec<u8>,
}

/// The largest fragments that Dust DDS allows, and sockets of 4 MiB.
const TUNED_FRAGMENT: usize = 65_000;
const TUNED_SOCKET_BUFFER: usize = 4 << 20;

/// How long acknowledgements may take; a shorter wait might run out, see `Reader`.
const ACKNOWLEDGED: std::time::Duration = std::time::Duration::from_secs(60);

pub struct Participant {
    entity: DomainParticipant,
}

/// Dust DDS's errors as the measurements report them.
fn said<T, E: std::fmt::Debug>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what}: {error:?}"))
}

impl Participant {
    fn topic(&self, channel: &Channel) -> Result<Topic, String> {
        let topic = self.entity.create_topic::<Sample>(
            &channel.topic,
            channel.type_name,
            QosKind::Default,
            NO_LISTENER,
            NO_STATUS,
        );
        said("topic", topic)
    }
}

fn reliability(channel: &Channel) -> ReliabilityQosPolicy {
    let reliable = !channel.best_effort;
    ReliabilityQosPolicy {
        kind: if reliable { ReliabilityQosPolicyKind::Reliable } else { ReliabilityQosPolicyKind::BestEffort },
        max_blocking_time: DurationKind::Finite(duration(channel.max_blocking)),
    }
}

fn duration(time: std::time::Duration) -> Duration {
    Duration::new(i32::try_from(time.as_secs()).unwrap_or(i32::MAX), time.subsec_nanos())
}

fn history(channel: &Channel) -> HistoryQosPolicy {
    let kind = match channel.keep {
        Keep::All | Keep::AllOf(_) => HistoryQosPolicyKind::KeepAll,
        Keep::Last(depth) => HistoryQosPolicyKind::KeepLast(depth),
    };
    HistoryQosPolicy { kind }
}

fn representation() -> DataRepresentationQosPolicy {
    DataRepresentationQosPolicy { value: vec![XCDR_DATA_REPRESENTATION] }
}

impl Middleware for Participant {
    const PEER: &'static str = "Dust DDS";
    const VERSION: &'static str = "0.16.0";
    const PROGRAM: &'static str = "dust-perf";
    const WAITS: &'static [Wait] = &[Wait::Block];
    const NO_BATCH: Option<&'static str> = Some("it has no batching");

    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &Setup) -> Result<Participant, String> {
        let factory = DomainParticipantFactory::get_instance();
        {
            let mut transport = factory.get_mut_transport();
            transport.set_interface_name(Some(setup.interface.name.clone()));
            if setup.profile != Profile::Default {
                // Elsewhere than on loopback, fragments of 64 KiB would travel as IP fragments.
                if setup.interface.is_loopback() {
                    said("fragment size", transport.set_fragment_size(TUNED_FRAGMENT))?;
                }
                transport.set_udp_receive_buffer_size(Some(TUNED_SOCKET_BUFFER));
            }
        }
        let domain = i32::try_from(setup.domain).map_err(|error| error.to_string())?;
        let entity = factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS);
        Ok(Participant { entity: said("participant", entity)? })
    }

    fn writer(&self, channel: &Channel) -> Result<Writer, String> {
        let topic = self.topic(channel)?;
        let publisher = said("publisher", self.entity.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS))?;
        let qos = DataWriterQos {
            reliability: reliability(channel),
            history: history(channel),
            durability: DurabilityQosPolicy { kind: DurabilityQosPolicyKind::Volatile },
            representation: representation(),
            ..Default::default()
        };
        let entity = publisher.create_datawriter::<Sample>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS);
        Ok(Writer { entity: said("writer", entity)? })
    }

    fn reader(&self, channel: &Channel, sink: impl Sink) -> Result<Reader, String> {
        let topic = self.topic(channel)?;
        let subscriber = said("subscriber", self.entity.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS))?;
        let qos = DataReaderQos {
            reliability: reliability(channel),
            history: history(channel),
            durability: DurabilityQosPolicy { kind: DurabilityQosPolicyKind::Volatile },
            representation: representation(),
            ..Default::default()
        };
        let entity = subscriber.create_datareader::<Sample>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS);
        Reader::start(said("reader", entity)?, sink)
    }
}

#[derive(Clone)]
pub struct Writer {
    entity: DataWriter<Sample>,
}

impl peer_protocol::Writer for Writer {
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        match self.entity.write(Sample { number, bytes: bytes.to_vec() }, None) {
            Err(DdsError::Timeout | DdsError::OutOfResources) => Err(WriteError::NoRoom),
            outcome => Ok(said("write", outcome)?),
        }
    }

    fn matched(&self) -> usize {
        let status = self.entity.get_publication_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or_default())
    }

    fn wait_for_acknowledgements(&self, time: std::time::Duration) -> bool {
        self.entity.wait_for_acknowledgments(duration(time.max(ACKNOWLEDGED))).is_ok()
    }
}

/// A reader with a thread that is blocked until it has data, and that ends with the process.
///
/// Every call that times out leaves its answer behind for the next call, which then panics in Dust DDS 0.16.0: nothing
/// here waits with a time limit that is expected to run out.
pub struct Reader {
    entity: Arc<DataReader<Sample>>,
}

impl Reader {
    fn start(entity: DataReader<Sample>, mut sink: impl Sink) -> Result<Reader, String> {
        const FOREVER: Duration = Duration::new(i32::MAX, 0);
        let condition = entity.get_statuscondition();
        said("condition", condition.set_enabled_statuses(&[StatusKind::DataAvailable]))?;
        let mut wait_set = WaitSet::new();
        said("wait set", wait_set.attach_condition(Condition::StatusCondition(condition)))?;
        let entity = Arc::new(entity);
        let reader = Arc::clone(&entity);
        std::thread::spawn(move || {
            while wait_set.wait(FOREVER).is_ok() {
                take(&reader, &mut sink);
            }
        });
        Ok(Reader { entity })
    }
}

/// Hands over what is there; that nothing is there is an error to Dust DDS.
fn take(reader: &DataReader<Sample>, sink: &mut impl Sink) {
    const SAMPLES: i32 = 100;
    while let Ok(samples) = reader.take(SAMPLES, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
        for data in samples.iter().filter_map(|sample| sample.data.as_ref()) {
            sink.take(data.number, &data.bytes);
        }
    }
    sink.taken();
}

impl peer_protocol::Reader for Reader {
    fn matched(&self) -> usize {
        let status = self.entity.get_subscription_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or_default())
    }
}
