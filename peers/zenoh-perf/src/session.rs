//! A Zenoh session as the measurements use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use peer_protocol::{Channel, Middleware, Setup, Sink, Wait, WriteError};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Session, Wait as _};

use crate::configuration::configuration;

pub struct Peers {
    session: Session,
    wait: Wait,
}

impl Middleware for Peers {
    const PEER: &'static str = "Zenoh";
    const VERSION: &'static str = "1.10.2";
    const PROGRAM: &'static str = "zenoh-perf";
    const WAITS: &'static [Wait] = &[Wait::Listener, Wait::Block];
    // Zenoh batches by itself in every profile: `batch` is `tuned`.
    const NO_BATCH: Option<&'static str> = None;

    type Writer = Writer;
    type Reader = Reader;

    fn open(setup: &Setup) -> Result<Peers, String> {
        let session = zenoh::open(configuration(setup)?).wait().map_err(|error| error.to_string())?;
        Ok(Peers { session, wait: setup.wait })
    }

    fn writer(&self, channel: &Channel) -> Result<Writer, String> {
        // As shipped, a publisher drops what its connection cannot take.
        let congestion = if channel.best_effort { CongestionControl::Drop } else { CongestionControl::Block };
        let declared = self.session.declare_publisher(channel.topic.clone()).congestion_control(congestion).wait();
        let publisher = Arc::new(declared.map_err(|error| error.to_string())?);
        Ok(Writer { publisher, session: self.session.clone() })
    }

    fn reader(&self, channel: &Channel, sink: impl Sink) -> Result<Reader, String> {
        let declaration = self.session.declare_subscriber(channel.topic.clone());
        let subscription = if self.wait == Wait::Listener {
            let mut supplier = Supplier { sink, untold: 0 };
            let callback = std::sync::Mutex::new(move |sample: Sample| supplier.supply(&sample));
            let declared = declaration.callback(move |sample| {
                if let Ok(mut callback) = callback.lock() {
                    callback(sample);
                }
            });
            Subscription::Called { _subscriber: declared.wait().map_err(|error| error.to_string())? }
        } else {
            let declared = declaration.with(FifoChannel::new(1024)).wait();
            Subscription::read(declared.map_err(|error| error.to_string())?, sink)
        };
        Ok(Reader { session: self.session.clone(), subscription })
    }
}

/// How many connections are open.
fn connections(session: &Session) -> usize {
    session.info().peers_zid().wait().count()
}

#[derive(Clone)]
pub struct Writer {
    publisher: Arc<Publisher<'static>>,
    session: Session,
}

impl peer_protocol::Writer for Writer {
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut payload = Vec::with_capacity(size_of::<u64>() + bytes.len());
        payload.extend_from_slice(&number.to_le_bytes());
        payload.extend_from_slice(bytes);
        self.publisher.put(payload).wait().map_err(|error| WriteError::Failed(error.to_string()))
    }

    fn matched(&self) -> usize {
        let status = self.publisher.matching_status().wait();
        if status.is_ok_and(|status| status.matching()) { connections(&self.session) } else { 0 }
    }

    /// Zenoh has no acknowledgements: its writer blocks, and TCP delivers.
    fn wait_for_acknowledgements(&self, _time: Duration) -> bool {
        true
    }
}

/// Takes samples apart for a sink.
struct Supplier<S> {
    sink: S,
    /// Samples since `Sink::taken`.
    untold: u32,
}

impl<S: Sink> Supplier<S> {
    /// For callbacks, which never hear that nothing more is there: now and then is often enough.
    fn supply(&mut self, sample: &Sample) {
        const OFTEN: u32 = 16;
        const LARGE: usize = 4096;
        let length = self.hand_over(sample);
        self.untold += 1;
        if self.untold >= OFTEN || length >= LARGE {
            self.untold = 0;
            self.sink.taken();
        }
    }

    fn hand_over(&mut self, sample: &Sample) -> usize {
        let payload = sample.payload().to_bytes();
        if let Some((number, bytes)) = payload.split_first_chunk::<8>() {
            self.sink.take(u64::from_le_bytes(*number), bytes);
        }
        payload.len()
    }
}

pub struct Reader {
    session: Session,
    subscription: Subscription,
}

enum Subscription {
    Called { _subscriber: Subscriber<()> },
    Read { over: Arc<AtomicBool>, thread: Option<JoinHandle<()>> },
}

impl Subscription {
    fn read(subscriber: Subscriber<FifoChannelHandler<Sample>>, sink: impl Sink) -> Subscription {
        const LOOK_UP: Duration = Duration::from_millis(100);
        let over = Arc::new(AtomicBool::new(false));
        let in_thread = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut supplier = Supplier { sink, untold: 0 };
            while !in_thread.load(Ordering::Relaxed) {
                let mut sample = subscriber.recv_timeout(LOOK_UP).ok().flatten();
                while let Some(next) = sample {
                    supplier.hand_over(&next);
                    sample = subscriber.try_recv().ok().flatten();
                }
                supplier.sink.taken();
            }
        });
        Subscription::Read { over, thread: Some(thread) }
    }
}

impl peer_protocol::Reader for Reader {
    fn matched(&self) -> usize {
        connections(&self.session)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Subscription::Read { over, thread } = &mut self.subscription {
            over.store(true, Ordering::Relaxed);
            // A panic in the thread has been printed where it happened.
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}
