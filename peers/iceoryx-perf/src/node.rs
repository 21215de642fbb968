//! An iceoryx2 node as the measurements use it: samples through shared memory, an event to wake the reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use peer_protocol::{
    Fault, Keep, Middleware, OctetArrival, OctetSample, PeerProfile, PeerSetup, ProcessEnd, SampleChannel,
    SampleReader, SampleSink, SampleWriter, Work, WriteError,
};

/// Entities that several threads may share.
type Threads = ipc_threadsafe::Service;

/// Samples that a reader may have outstanding as shipped, and how many fit into the memory of the tuned profile.
const BUFFER: usize = 2;
const TUNED_MEMORY: usize = 256 << 20;
const TUNED_BUFFER_MAX: usize = 1024;

/// Of how many samples the profile `batch` announces one, if the buffer is large enough.
const BATCH: u32 = 32;

pub struct SharedMemory {
    node: Node<Threads>,
    domain: u32,
    octets: usize,
    octets_max: usize,
    buffer: usize,
    /// Writers and readers that a topic may have: what the ends of a stream tell each other goes both ways.
    ends: usize,
    /// Of how many samples one is announced.
    stride: u32,
}

/// The errors of iceoryx2 as the measurements report them.
fn said<T, E: std::fmt::Debug>(what: &str, outcome: Result<T, E>) -> Result<T, String> {
    outcome.map_err(|error| format!("{what}: {error:?}"))
}

/// Samples with their number as the header.
type Samples = publish_subscribe::PortFactory<Threads, [u8], u64>;

/// Whether a write waits for room; else the oldest sample that was not taken yet makes room.
fn waits(channel: &SampleChannel) -> bool {
    !channel.best_effort && !matches!(channel.keep, Keep::Last(_))
}

impl SharedMemory {
    /// Samples that a reader may have outstanding.
    fn room(&self, channel: &SampleChannel) -> usize {
        match channel.keep {
            Keep::All => self.buffer,
            Keep::AllOf(room) | Keep::Last(room) => room as usize,
        }
    }

    fn services(&self, channel: &SampleChannel) -> Result<(Samples, event::PortFactory<Threads>), String> {
        let name = format!("{}/{}", channel.topic, self.domain);
        let name = said("name", ServiceName::new(&name))?;
        let samples = self.node.service_builder(&name).publish_subscribe::<[u8]>().user_header::<u64>();
        let samples = samples.enable_safe_overflow(!waits(channel)).subscriber_max_buffer_size(self.room(channel));
        let nodes = 2 * self.ends;
        let samples = samples.max_publishers(self.ends).max_subscribers(self.ends).max_nodes(nodes);
        let events = self.node.service_builder(&name).event();
        let events = events.max_listeners(self.ends).max_notifiers(self.ends).max_nodes(nodes);
        Ok((said("samples", samples.open_or_create())?, said("events", events.open_or_create())?))
    }
}

impl Middleware for SharedMemory {
    const NAME: &'static str = "iceoryx2 (shared memory)";
    const VERSION: &'static str = "0.10.0";

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn work(_setup: &PeerSetup) -> Work {
        Work::Raw
    }

    fn open(setup: &PeerSetup, _end: &ProcessEnd) -> Result<SharedMemory, Fault> {
        set_log_level(LogLevel::Error);
        let builder = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled);
        let node = said("node", builder.create::<Threads>())?;
        let tuned = (TUNED_MEMORY / setup.octets_max()).clamp(BUFFER, TUNED_BUFFER_MAX);
        let buffer = if setup.profile == PeerProfile::Default { BUFFER } else { tuned };
        // A reader must hear of a buffer that is half full.
        let stride = if setup.profile == PeerProfile::Batch { BATCH.min(buffer as u32 / 2) } else { 1 };
        let (domain, octets, octets_max) = (setup.domain, setup.octets(), setup.octets_max());
        let ends = setup.topic_readers.max(setup.topic_writers) as usize;
        Ok(SharedMemory { node, domain, octets, octets_max, buffer, ends, stride })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        let (samples, events) = self.services(channel)?;
        let strategy =
            if waits(channel) { BackpressureStrategy::RetryUntilDelivered } else { BackpressureStrategy::DiscardData };
        let publisher =
            samples.publisher_builder().initial_max_slice_len(self.octets_max).backpressure_strategy(strategy);
        let ports = Ports {
            publisher: said("publisher", publisher.create())?,
            notifier: said("notifier", events.notifier_builder().create())?,
            samples,
            unannounced: AtomicU32::new(0),
            stride: self.stride,
        };
        Ok(Writer(ports))
    }

    fn reader<S: SampleSink<SharedMemory>>(&self, channel: &SampleChannel, mut sink: S) -> Result<Reader, Fault> {
        const LOOK_UP: Duration = Duration::from_millis(50);
        let (samples, events) = self.services(channel)?;
        let subscriber = said("subscriber", samples.subscriber_builder().create())?;
        let listener = said("listener", events.listener_builder().create())?;
        let over = Arc::new(AtomicBool::new(false));
        let in_thread = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !in_thread.load(Ordering::Relaxed) {
                // A time-out shows whether it is over; what an event says does not matter.
                if let Err(error) = listener.timed_wait(|_| (), LOOK_UP) {
                    eprintln!("wait: {error:?}");
                }
                take(&subscriber, &mut sink);
            }
        });
        Ok(Reader { samples, over, thread: Some(thread) })
    }
}

fn take(subscriber: &Subscriber<Threads, [u8], u64>, sink: &mut impl SampleSink<SharedMemory>) {
    let mut taken = false;
    while let Ok(Some(sample)) = subscriber.receive() {
        sink.take(OctetArrival { number: *sample.user_header(), bytes: sample.payload() });
        taken = true;
    }
    if taken {
        sink.taken();
    }
}

struct Ports {
    publisher: Publisher<Threads, [u8], u64>,
    notifier: Notifier<Threads>,
    samples: Samples,
    unannounced: AtomicU32,
    stride: u32,
}

pub struct Writer(Ports);

impl Writer {
    fn announce(&self) -> Result<(), String> {
        self.0.unannounced.store(0, Ordering::Relaxed);
        said("notify", self.0.notifier.notify()).map(drop)
    }
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut sample = said("loan", self.0.publisher.loan_slice_uninit(bytes.len()))?;
        *sample.user_header_mut() = number;
        said("send", sample.write_from_slice(bytes).send())?;
        if self.0.unannounced.fetch_add(1, Ordering::Relaxed) + 1 >= self.0.stride {
            self.announce()?;
        }
        Ok(())
    }
}

impl SampleWriter<SharedMemory> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if self.0.unannounced.load(Ordering::Relaxed) > 0 { Ok(self.announce()?) } else { Ok(()) }
    }

    fn matched(&self) -> usize {
        self.0.samples.dynamic_config().number_of_subscribers()
    }

    /// What is sent is in the reader's buffer at once.
    fn wait_for_acknowledgements(&mut self, _patience: Duration) -> Result<bool, Fault> {
        Ok(true)
    }
}

pub struct Reader {
    samples: Samples,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SampleReader for Reader {
    fn matched(&self) -> usize {
        self.samples.dynamic_config().number_of_publishers()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A panic in the thread has been printed where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
