//! A Zenoh session as the measurements use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use peer_protocol::{
    Fault, Middleware, OctetArrival, OctetSample, PeerSetup, ProcessEnd, SampleChannel, SampleReader, SampleSink,
    SampleWriter, Wait, Work, WriteError,
};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Session, Wait as _};

use crate::configuration::configuration;

pub struct Peers {
    session: Session,
    wait: Wait,
    octets: usize,
}

impl Middleware for Peers {
    const NAME: &'static str = "Zenoh";
    const VERSION: &'static str = "1.10.2";

    type Setup = PeerSetup;
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = Writer;
    type Reader = Reader;

    fn work(_setup: &PeerSetup) -> Work {
        Work::Raw
    }

    fn open(setup: &PeerSetup, end: &ProcessEnd) -> Result<Peers, Fault> {
        let session = zenoh::open(configuration(setup, end)?).wait().map_err(Fault::here)?;
        Ok(Peers { session, wait: setup.wait, octets: setup.octets() })
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; self.octets] })
    }

    fn writer(&self, channel: &SampleChannel) -> Result<Writer, Fault> {
        // As shipped, a publisher drops what its connection cannot take.
        let congestion = if channel.best_effort { CongestionControl::Drop } else { CongestionControl::Block };
        let declared = self.session.declare_publisher(channel.topic.clone()).congestion_control(congestion).wait();
        let publisher = Arc::new(declared.map_err(Fault::here)?);
        Ok(Writer { publisher, session: self.session.clone() })
    }

    fn reader<S: SampleSink<Peers>>(&self, channel: &SampleChannel, sink: S) -> Result<Reader, Fault> {
        let declaration = self.session.declare_subscriber(channel.topic.clone());
        let subscription = if self.wait == Wait::Listener {
            let mut supplier = Supplier { sink, untold: 0 };
            let callback = std::sync::Mutex::new(move |sample: Sample| supplier.supply(&sample));
            let declared = declaration.callback(move |sample| {
                if let Ok(mut callback) = callback.lock() {
                    callback(sample);
                }
            });
            Subscription::Called { _subscriber: declared.wait().map_err(Fault::here)? }
        } else {
            let declared = declaration.with(FifoChannel::new(1024)).wait();
            Subscription::read(declared.map_err(Fault::here)?, sink)
        };
        Ok(Reader { session: self.session.clone(), subscription })
    }
}

/// How many connections are open.
fn connections(session: &Session) -> usize {
    session.info().peers_zid().wait().count()
}

pub struct Writer {
    publisher: Arc<Publisher<'static>>,
    session: Session,
}

impl Writer {
    fn put(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let mut payload = Vec::with_capacity(size_of::<u64>() + bytes.len());
        payload.extend_from_slice(&number.to_le_bytes());
        payload.extend_from_slice(bytes);
        self.publisher.put(payload).wait().map_err(|error| WriteError::Failed(error.to_string()))
    }
}

impl SampleWriter<Peers> for Writer {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        self.put(sample.number, &sample.bytes)
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.put(arrival.number, arrival.bytes)
    }

    fn matched(&self) -> usize {
        let status = self.publisher.matching_status().wait();
        if status.is_ok_and(|status| status.matching()) { connections(&self.session) } else { 0 }
    }

    /// Zenoh has no acknowledgements: its writer blocks, and TCP delivers.
    fn wait_for_acknowledgements(&mut self, _patience: Duration) -> Result<bool, Fault> {
        Ok(true)
    }
}

/// Takes samples apart for a sink.
struct Supplier<S> {
    sink: S,
    /// Samples since `SampleSink::taken`.
    untold: u32,
}

impl<S: SampleSink<Peers>> Supplier<S> {
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
            self.sink.take(OctetArrival { number: u64::from_le_bytes(*number), bytes });
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
    fn read(subscriber: Subscriber<FifoChannelHandler<Sample>>, sink: impl SampleSink<Peers>) -> Subscription {
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

impl SampleReader for Reader {
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
