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
use peer_protocol::{
    Fault, Interface, Keep, Middleware, OctetArrival, OctetSample, PeerProfile, PeerSetup, ProcessEnd, SampleChannel,
    SampleReader, SampleSink, SampleWriter, TYPE_NAME, WriteError,
};

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
    octets: usize,
}

/// Dust DDS's errors as the measurements report them.
fn said<T, E: std::fmt::Debug>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what}: {error:?}"))
}

impl Participant {
    fn topic(&self, channel: &SampleChannel) -> Result<Topic, String> {
        let topic =
            self.entity.create_topic::<Sample>(&channel.topic, TYPE_NAME, QosKind::Default, NO_LISTENER, NO_STATUS);
        said("topic", topic)
    }
}

fn reliability(channel: &SampleChannel) -> ReliabilityQosPolicy {
    let reliable = !channel.best_effort;
    ReliabilityQosPolicy {
        kind: if reliable { ReliabilityQosPolicyKind::Reliable } else { ReliabilityQosPolicyKind::BestEffort },
        max_blocking_time: DurationKind::Finite(duration(channel.max_blocking)),
    }
}

fn duration(time: std::time::Duration) -> Duration {
    Duration::new(i32::try_from(time.as_secs()).unwrap_or(i32::MAX), time.subsec_nanos())
}

fn history(channel: &SampleChannel) -> HistoryQosPolicy {
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
    const NAME: &'static str = "Dust DDS";
    const VERSION: &'static str = "0.16.0";

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Participant, Fault> {
        let factory = DomainParticipantFactory::get_instance();
        {
            let mut transport = factory.get_mut_transport();
            transport.set_interface_name(Some(Interface::with_address(setup.address)?.name));
            if setup.profile != PeerProfile::Default {
                // Elsewhere than on loopback, fragments of 64 KiB would travel as IP fragments.
                if setup.address.is_loopback() {
                    said("fragment size", transport.set_fragment_size(TUNED_FRAGMENT))?;
                }
                transport.set_udp_receive_buffer_size(Some(TUNED_SOCKET_BUFFER));
            }
        }
        let domain = i32::try_from(setup.domain).map_err(|error| error.to_string())?;
        let entity = factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS);
        Ok(Participant { entity: said("participant", entity)?, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
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

    fn reader<S: SampleSink<Participant>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
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
        Ok(Reader::start(said("reader", entity)?, sink)?)
    }
}

pub struct Writer {
    entity: DataWriter<Sample>,
}

impl Writer {
    /// Dust DDS takes samples away from the application, which has to copy one that it wants to keep.
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        match self.entity.write(Sample { number, bytes: bytes.to_vec() }, None) {
            Err(DdsError::Timeout | DdsError::OutOfResources) => Err(WriteError::no_room()),
            outcome => Ok(said("write", outcome)?),
        }
    }
}

impl SampleWriter<Participant> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn matched(&self) -> usize {
        let status = self.entity.get_publication_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or_default())
    }

    fn wait_for_acknowledgements(&mut self, patience: std::time::Duration) -> Result<bool, Fault> {
        Ok(self.entity.wait_for_acknowledgments(duration(patience.max(ACKNOWLEDGED))).is_ok())
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
    fn start(entity: DataReader<Sample>, mut sink: impl SampleSink<Participant>) -> Result<Reader, String> {
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
fn take(reader: &DataReader<Sample>, sink: &mut impl SampleSink<Participant>) {
    const SAMPLES: i32 = 100;
    while let Ok(samples) = reader.take(SAMPLES, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
        for data in samples.iter().filter_map(|sample| sample.data.as_ref()) {
            sink.take(OctetArrival { number: data.number, bytes: &data.bytes });
        }
    }
    sink.taken();
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        let status = self.entity.get_subscription_matched_status();
        status.map_or(0, |status| usize::try_from(status.current_count).unwrap_or_default())
    }
}
