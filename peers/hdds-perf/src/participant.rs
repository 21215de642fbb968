//! hdds as the measurements use it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdds::dds::StatusMask;
use hdds::{DataReader, DataWriter, Participant, QoS, TransportMode, WaitSet};
use peer_protocol::{Channel, Keep, Middleware, Setup, Sink, Wait, WriteError};

use crate::sample::Sample;

pub struct Domain {
    participant: Arc<Participant>,
}

/// The errors of hdds as the measurements report them.
fn said<T, E: std::fmt::Debug>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what}: {error:?}"))
}

fn qos(channel: &Channel) -> QoS {
    let qos = if channel.best_effort { QoS::best_effort() } else { QoS::reliable() };
    match channel.keep {
        Keep::All | Keep::AllOf(_) => qos.keep_all(),
        Keep::Last(depth) => qos.keep_last(depth),
    }
}

impl Middleware for Domain {
    const PEER: &'static str = "hdds";
    const VERSION: &'static str = "1.1.2";
    const PROGRAM: &'static str = "hdds-perf";
    const WAITS: &'static [Wait] = &[Wait::Block];
    const NO_BATCH: Option<&'static str> = Some("it has no batching");

    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &Setup) -> Result<Domain, String> {
        // SAFETY: called before any other thread is started. It is how hdds is told the interface.
        unsafe { std::env::set_var("HDDS_INTERFACE", setup.interface.address.to_string()) };
        let builder = Participant::builder(Self::PROGRAM).domain_id(setup.domain);
        let builder = builder.with_transport(TransportMode::UdpMulticast).shm_disable();
        Ok(Domain { participant: said("participant", builder.build())? })
    }

    fn writer(&self, channel: &Channel) -> Result<Writer, String> {
        let topic = said("topic", self.participant.topic::<Sample>(&channel.topic))?;
        let entity = said("writer", topic.writer().qos(qos(channel)).build())?;
        Ok(Writer {
            entity: Arc::new(Mutex::new(entity)),
            participant: Arc::clone(&self.participant),
            topic: channel.topic.clone(),
            max_blocking: channel.max_blocking,
        })
    }

    fn reader(&self, channel: &Channel, sink: impl Sink) -> Result<Reader, String> {
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

#[derive(Clone)]
pub struct Writer {
    /// hdds allows one thread at a time.
    entity: Arc<Mutex<DataWriter<Sample>>>,
    participant: Arc<Participant>,
    topic: String,
    max_blocking: Duration,
}

impl peer_protocol::Writer for Writer {
    /// Tries again while the history is full.
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let sample = Sample { number, bytes: bytes.to_vec() };
        let entity = self.entity.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + self.max_blocking;
        loop {
            match entity.write(&sample) {
                Err(hdds::Error::WouldBlock) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(hdds::Error::WouldBlock) => return Err(WriteError::NoRoom),
                outcome => return Ok(said("write", outcome)?),
            }
        }
    }

    fn matched(&self) -> usize {
        self.participant.discovery().map_or(0, |discovery| discovery.find_readers_for_topic(&self.topic).len())
    }

    /// hdds does not tell what is acknowledged: allows for the repairs of half a second.
    fn wait_for_acknowledgements(&self, time: Duration) -> bool {
        std::thread::sleep(time.min(Duration::from_millis(500)));
        true
    }
}

/// A thread that is blocked until its reader has data.
pub struct Reader {
    participant: Arc<Participant>,
    topic: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn start(entity: DataReader<Sample>, over: Arc<AtomicBool>, mut sink: impl Sink) -> Result<JoinHandle<()>, String> {
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
                sink.take(sample.number, &sample.bytes);
                taken = true;
            }
            if taken {
                sink.taken();
            }
        }
    }))
}

impl peer_protocol::Reader for Reader {
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
