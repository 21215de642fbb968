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
use peer_protocol::{Channel, Keep, Middleware, Profile, Setup, Sink, Wait, WriteError};

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
    bytes_max: usize,
    buffer: usize,
    readers: usize,
    writers: usize,
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
fn waits(channel: &Channel) -> bool {
    !channel.best_effort && !matches!(channel.keep, Keep::Last(_))
}

impl SharedMemory {
    /// Samples that a reader may have outstanding.
    fn room(&self, channel: &Channel) -> usize {
        match channel.keep {
            Keep::All => self.buffer,
            Keep::AllOf(room) | Keep::Last(room) => room as usize,
        }
    }

    fn services(&self, channel: &Channel) -> Result<(Samples, event::PortFactory<Threads>), String> {
        let name = format!("{}/{}", channel.topic, self.domain);
        let name = said("name", ServiceName::new(&name))?;
        let samples = self.node.service_builder(&name).publish_subscribe::<[u8]>().user_header::<u64>();
        let samples = samples.enable_safe_overflow(!waits(channel)).subscriber_max_buffer_size(self.room(channel));
        let nodes = self.writers + self.readers;
        let samples = samples.max_publishers(self.writers).max_subscribers(self.readers).max_nodes(nodes);
        let events = self.node.service_builder(&name).event();
        let events = events.max_listeners(self.readers).max_notifiers(self.writers).max_nodes(nodes);
        Ok((said("samples", samples.open_or_create())?, said("events", events.open_or_create())?))
    }
}

impl Middleware for SharedMemory {
    const PEER: &'static str = "iceoryx2 (shared memory)";
    const VERSION: &'static str = "0.10.0";
    const PROGRAM: &'static str = "iceoryx-perf";
    const WAITS: &'static [Wait] = &[Wait::Block];
    const NO_BATCH: Option<&'static str> = None;
    const ANY_INTERFACE: bool = false;

    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &Setup) -> Result<SharedMemory, String> {
        set_log_level(LogLevel::Error);
        let builder = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled);
        let node = said("node", builder.create::<Threads>())?;
        let tuned = (TUNED_MEMORY / setup.bytes_max).clamp(BUFFER, TUNED_BUFFER_MAX);
        let buffer = if setup.profile == Profile::Default { BUFFER } else { tuned };
        // A reader must hear of a buffer that is half full.
        let stride = if setup.profile == Profile::Batch { BATCH.min(buffer as u32 / 2) } else { 1 };
        let (domain, bytes_max) = (setup.domain, setup.bytes_max);
        let (readers, writers) = (setup.readers, setup.writers);
        Ok(SharedMemory { node, domain, bytes_max, buffer, readers, writers, stride })
    }

    fn writer(&self, channel: &Channel) -> Result<Writer, String> {
        let (samples, events) = self.services(channel)?;
        let strategy =
            if waits(channel) { BackpressureStrategy::RetryUntilDelivered } else { BackpressureStrategy::DiscardData };
        let publisher =
            samples.publisher_builder().initial_max_slice_len(self.bytes_max).backpressure_strategy(strategy);
        let ports = Ports {
            publisher: said("publisher", publisher.create())?,
            notifier: said("notifier", events.notifier_builder().create())?,
            samples,
            unannounced: AtomicU32::new(0),
            stride: self.stride,
        };
        Ok(Writer(Arc::new(ports)))
    }

    fn reader(&self, channel: &Channel, mut sink: impl Sink) -> Result<Reader, String> {
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

fn take(subscriber: &Subscriber<Threads, [u8], u64>, sink: &mut impl Sink) {
    let mut taken = false;
    while let Ok(Some(sample)) = subscriber.receive() {
        sink.take(*sample.user_header(), sample.payload());
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

#[derive(Clone)]
pub struct Writer(Arc<Ports>);

impl Writer {
    fn announce(&self) -> Result<(), String> {
        self.0.unannounced.store(0, Ordering::Relaxed);
        said("notify", self.0.notifier.notify()).map(drop)
    }
}

impl peer_protocol::Writer for Writer {
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut sample = said("loan", self.0.publisher.loan_slice_uninit(bytes.len()))?;
        *sample.user_header_mut() = number;
        said("send", sample.write_from_slice(bytes).send())?;
        if self.0.unannounced.fetch_add(1, Ordering::Relaxed) + 1 >= self.0.stride {
            self.announce()?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), String> {
        if self.0.unannounced.load(Ordering::Relaxed) > 0 { self.announce() } else { Ok(()) }
    }

    fn matched(&self) -> usize {
        self.0.samples.dynamic_config().number_of_subscribers()
    }

    /// What is sent is in the reader's buffer at once.
    fn wait_for_acknowledgements(&self, _time: Duration) -> bool {
        true
    }
}

pub struct Reader {
    samples: Samples,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl peer_protocol::Reader for Reader {
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
