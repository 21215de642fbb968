//! RustDDS as the measurements use it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use peer_protocol::{
    Fault, Keep, Middleware, OctetArrival, OctetSample, PeerSetup, ProcessEnd, SampleChannel, SampleReader, SampleSink,
    SampleWriter, TYPE_NAME, WriteError,
};
use rustdds::mio1::{Events, Interest, Poll, Token};
use rustdds::no_key::{DataWriter, SimpleDataReader};
use rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use rustdds::{
    DataReaderStatus, DataWriterStatus, DomainParticipant, DomainParticipantBuilder, QosPolicies, QosPolicyBuilder,
    StatusEvented, Topic, TopicKind,
};

use crate::sample::{Incoming, Outgoing, Xcdr1};

/// Room in a reader's KEEP_ALL history. A reader acknowledges what the application has not taken yet and drops the
/// oldest when it is full, which as shipped is at 64 samples.
const READER_SAMPLES_MAX: i32 = 4 << 20;

pub struct Participant {
    entity: DomainParticipant,
    octets: usize,
}

impl Participant {
    fn topic(&self, channel: &SampleChannel, qos: &QosPolicies) -> Result<Topic, String> {
        let (name, type_name) = (channel.topic.clone(), TYPE_NAME.to_owned());
        let topic = self.entity.create_topic(name, type_name, qos, TopicKind::NoKey);
        topic.map_err(|error| format!("topic: {error}"))
    }
}

fn qos(channel: &SampleChannel, samples_max: Option<i32>) -> QosPolicies {
    let reliability = if channel.best_effort {
        Reliability::BestEffort
    } else {
        Reliability::Reliable { max_blocking_time: rustdds::Duration::from(channel.max_blocking) }
    };
    let history = match channel.keep {
        Keep::All | Keep::AllOf(_) => History::KeepAll,
        Keep::Last(depth) => History::KeepLast { depth: i32::try_from(depth).unwrap_or(i32::MAX) },
    };
    let durability = if channel.durable { Durability::TransientLocal } else { Durability::Volatile };
    let qos = QosPolicyBuilder::new().reliability(reliability).history(history).durability(durability);
    match samples_max {
        Some(max_samples) if !matches!(channel.keep, Keep::Last(_)) => {
            let limits = ResourceLimits { max_samples, max_instances: 1, max_samples_per_instance: max_samples };
            qos.resource_limits(limits).build()
        }
        _ => qos.build(),
    }
}

impl Middleware for Participant {
    const NAME: &'static str = "RustDDS";
    const VERSION: &'static str = "0.15.1";
    const DURABLE: bool = true;

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Participant, Fault> {
        let domain = u16::try_from(setup.domain).map_err(|error| error.to_string())?;
        let builder = DomainParticipantBuilder::new(domain).with_only_networks([IpAddr::V4(setup.address)]);
        let entity = builder.build().map_err(|error| format!("participant: {error}"))?;
        Ok(Participant { entity, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        // Unless somebody says otherwise 8192 samples may be outstanding, as shipped: readers lose track of more.
        let room = if let Keep::AllOf(room) = channel.keep { i32::try_from(room).ok() } else { None };
        let qos = qos(channel, room);
        let topic = self.topic(channel, &qos)?;
        let publisher = self.entity.create_publisher(&qos).map_err(|error| format!("publisher: {error}"))?;
        let entity = publisher.create_datawriter_no_key::<Outgoing, Xcdr1>(&topic, Some(qos));
        let entity = entity.map_err(|error| format!("writer: {error}"))?;
        Ok(Writer { entity, matched: Arc::default() })
    }

    fn reader<S: SampleSink<Participant>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        let qos = qos(channel, Some(READER_SAMPLES_MAX));
        let topic = self.topic(channel, &qos)?;
        let subscriber = self.entity.create_subscriber(&qos).map_err(|error| format!("subscriber: {error}"))?;
        let entity = subscriber.create_simple_datareader_no_key::<Incoming, Xcdr1>(&topic, Some(qos));
        let entity = entity.map_err(|error| format!("reader: {error}"))?;
        Reader::start(entity, sink).map_err(|error| Fault::Here(format!("reader: {error}")))
    }
}

pub struct Writer {
    entity: DataWriter<Outgoing, Xcdr1>,
    matched: Arc<AtomicUsize>,
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        match self.entity.write(Outgoing::new(number, bytes), None) {
            Ok(()) => Ok(()),
            Err(rustdds::dds::WriteError::WouldBlock { .. }) => Err(WriteError::no_room()),
            Err(error) => Err(WriteError::Failed(error.to_string())),
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
        while let Some(status) = self.entity.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { current, .. } = status {
                self.matched.store(usize::try_from(current.count()).unwrap_or_default(), Ordering::Relaxed);
            }
        }
        self.matched.load(Ordering::Relaxed)
    }

    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault> {
        self.entity.wait_for_acknowledgments(patience).map_err(Fault::here)
    }
}

/// A thread that is blocked until its reader has data.
pub struct Reader {
    matched: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(
        mut entity: SimpleDataReader<Incoming, Xcdr1>,
        mut sink: impl SampleSink<Participant>,
    ) -> std::io::Result<Reader> {
        const LOOK_UP: Duration = Duration::from_millis(50);
        let mut poll = Poll::new()?;
        poll.registry().register(&mut entity, Token(0), Interest::READABLE)?;
        let mut reader = Reader { matched: Arc::default(), over: Arc::default(), thread: None };
        let (matched, over) = (Arc::clone(&reader.matched), Arc::clone(&reader.over));
        let thread = std::thread::spawn(move || {
            let mut events = Events::with_capacity(4);
            while !over.load(Ordering::Relaxed) {
                // An interrupted wait is as good as one that timed out.
                let _ = poll.poll(&mut events, Some(LOOK_UP));
                entity.drain_read_notifications();
                take(&entity, &mut sink);
                while let Some(status) = entity.try_recv_status() {
                    if let DataReaderStatus::SubscriptionMatched { current, .. } = status {
                        matched.store(usize::try_from(current.count()).unwrap_or_default(), Ordering::Relaxed);
                    }
                }
            }
        });
        reader.thread = Some(thread);
        Ok(reader)
    }
}

fn take(entity: &SimpleDataReader<Incoming, Xcdr1>, sink: &mut impl SampleSink<Participant>) {
    loop {
        match entity.try_take_one() {
            Ok(Some(change)) => {
                let sample = &change.sample;
                sink.take(OctetArrival { number: sample.number, bytes: &sample.bytes });
            }
            Ok(None) => break,
            Err(error) => eprintln!("read: {error}"),
        }
    }
    sink.taken();
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        self.matched.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic in the thread has been printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
