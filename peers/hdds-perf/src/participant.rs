//! hdds as the measurements use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdds::dds::StatusMask;
use hdds::{DataReader, DataWriter, Participant, QoS, TransportMode, WaitSet};
use peer_protocol::{
    Fault, Keep, Middleware, OctetArrival, PeerSetup, ProcessEnd, SampleChannel, SampleReader, SampleSink,
    SampleWriter, WriteError,
};

use crate::sample::Sample;

pub struct Domain {
    participant: Arc<Participant>,
    octets: usize,
}

/// The errors of hdds as the measurements report them.
fn said<T, E: std::fmt::Debug>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what}: {error:?}"))
}

fn qos(channel: &SampleChannel) -> QoS {
    let qos = if channel.best_effort { QoS::best_effort() } else { QoS::reliable() };
    match channel.keep {
        Keep::All | Keep::AllOf(_) => qos.keep_all(),
        Keep::Last(depth) => qos.keep_last(depth),
    }
}

impl Middleware for Domain {
    const NAME: &'static str = "hdds";
    const VERSION: &'static str = "1.1.2";

    type Setup = PeerSetup;
    type Sample = Sample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<Domain, Fault> {
        // SAFETY: called before any other thread is started. It is how hdds is told the interface.
        unsafe { std::env::set_var("HDDS_INTERFACE", setup.address.to_string()) };
        let builder = Participant::builder("hdds-perf").domain_id(setup.domain);
        let builder = builder.with_transport(TransportMode::UdpMulticast).shm_disable();
        Ok(Domain { participant: said("participant", builder.build())?, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<Sample, Fault> {
        Ok(Sample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        let topic = said("topic", self.participant.topic::<Sample>(&channel.topic))?;
        let entity = said("writer", topic.writer().qos(qos(channel)).build())?;
        Ok(Writer {
            entity,
            participant: Arc::clone(&self.participant),
            topic: channel.topic.clone(),
            max_blocking: channel.max_blocking,
        })
    }

    fn reader<S: SampleSink<Domain>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        let topic = said("topic", self.participant.topic::<Sample>(&channel.topic))?;
        let entity = said("reader", topic.reader().qos(qos(channel)).build())?;
        let mut reader = Reader {
            participant: Arc::clone(&self.participant),
            topic: channel.topic.clone(),
            over: Arc::default(),
            thread: None,
        };
        reader.thread = Some(start(entity, Arc::clone(&reader.over), sink)?);
        Ok(reader)
    }
}

pub struct Writer {
    entity: DataWriter<Sample>,
    participant: Arc<Participant>,
    topic: String,
    max_blocking: Duration,
}

impl SampleWriter<Domain> for Writer {
    /// Tries again while the history is full.
    fn write(&mut self, sample: &Sample) -> Result<(), WriteError> {
        let end = Instant::now() + self.max_blocking;
        loop {
            match self.entity.write(sample) {
                Err(hdds::Error::WouldBlock) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(hdds::Error::WouldBlock) => return Err(WriteError::no_room()),
                outcome => return Ok(said("write", outcome)?),
            }
        }
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.write(&Sample { number: arrival.number, bytes: arrival.bytes.to_vec() })
    }

    fn matched(&self) -> usize {
        self.participant.discovery().map_or(0, |discovery| discovery.find_readers_for_topic(&self.topic).len())
    }

    /// hdds does not tell what is acknowledged: allows for the repairs of half a second.
    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault> {
        std::thread::sleep(patience.min(Duration::from_millis(500)));
        Ok(true)
    }
}

/// A thread that is blocked until its reader has data.
pub struct Reader {
    participant: Arc<Participant>,
    topic: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn start(
    entity: DataReader<Sample>,
    over: Arc<AtomicBool>,
    mut sink: impl SampleSink<Domain>,
) -> Result<JoinHandle<()>, String> {
    const LOOK_UP: Duration = Duration::from_millis(50);
    let wait_set = WaitSet::new();
    let condition = entity.get_status_condition();
    condition.set_enabled_statuses(StatusMask::DATA_AVAILABLE);
    said("condition", wait_set.attach_condition(condition))?;
    Ok(std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            // A time-out is an error to hdds.
            let _ = wait_set.wait(Some(LOOK_UP));
            let mut taken = false;
            while let Ok(Some(sample)) = entity.take() {
                sink.take(OctetArrival { number: sample.number, bytes: &sample.bytes });
                taken = true;
            }
            if taken {
                sink.taken();
            }
        }
    }))
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        self.participant.discovery().map_or(0, |discovery| discovery.find_writers_for_topic(&self.topic).len())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic in the thread has been printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
