//! The lab's way to the middleware: numbered samples over `thalweg`'s API.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg::qos::{History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataReader, DataWriter, DomainParticipant, Raw, ReadFilter, Topic, TopicType};

use super::{ArrivalHandler, ArrivedSample, DeliveryGuarantee, Ended, Flow, Multicast, Sending, StationNetwork, Wait};
use crate::error::LabError;

/// What experiments send: a number and bytes.
#[derive(Clone, Debug, Default, PartialEq, Topic)]
#[topic(name = "thalweg::lab::Numbered", extensibility = "final")]
pub struct Numbered {
    /// Its place in the experiment.
    pub number: u64,
    /// The bytes that are moved.
    pub payload: Vec<u8>,
}

/// A participant of an experiment.
pub struct Station {
    participant: DomainParticipant,
}

impl Station {
    /// Joins `network`; `wait` decides whether its I/O thread sleeps or polls.
    ///
    /// # Errors
    /// The system refuses sockets or threads, or the network cannot be used as described.
    pub fn open(network: &StationNetwork, wait: Wait) -> Result<Station, LabError> {
        let mut builder =
            DomainParticipant::builder(network.domain).name("thalweg lab").domain_tag(&network.domain_tag);
        for peer in &network.peers {
            builder = builder.peer(peer);
        }
        for interface in &network.interfaces {
            builder = builder.allow_interface(interface);
        }
        if network.multicast == Multicast::Avoided {
            builder = builder.without_multicast();
        }
        if wait == Wait::Busy {
            builder = builder.busy_poll();
        }
        if let Some(bytes) = network.receive_buffer_bytes {
            builder = builder.receive_buffer(usize::try_from(bytes).map_err(LabError::here)?);
        }
        Ok(Station { participant: builder.create().map_err(LabError::here)? })
    }

    /// A writer of `topic` with the default way of sending.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub fn sender(&self, topic: &str, delivery: DeliveryGuarantee) -> Result<SampleSender, LabError> {
        self.sender_by(topic, delivery, &Sending::default())
    }

    /// A writer of `topic` that sends in this way.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub fn sender_by(
        &self,
        topic: &str,
        delivery: DeliveryGuarantee,
        sending: &Sending,
    ) -> Result<SampleSender, LabError> {
        let topic = self.participant.create_topic::<Numbered>(topic);
        let mut qos =
            WriterQos { transmission: sending.to_qos(), transport_priority: sending.priority, ..WriterQos::default() };
        match delivery {
            DeliveryGuarantee::BestEffort { .. } => qos.reliability = Reliability::BestEffort,
            DeliveryGuarantee::Reliable { max_samples } => {
                qos.reliability = Reliability::Reliable { max_blocking_time: BLOCKING_MAX };
                qos.history = History::KeepAll;
                qos.resource_limits = limits(max_samples);
            }
        }
        let writer = self.participant.create_writer(&topic, qos).map_err(LabError::here)?;
        Ok(SampleSender { writer })
    }

    /// A reader of `topic`.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub fn receiver(&self, topic: &str, delivery: DeliveryGuarantee) -> Result<SampleReceiver, LabError> {
        let topic = self.participant.create_raw_topic(topic, Numbered::TYPE_NAME, Keyed::No, None);
        let (reliability, max_samples) = match delivery {
            DeliveryGuarantee::BestEffort { max_samples } => (Reliability::BestEffort, max_samples),
            DeliveryGuarantee::Reliable { max_samples } => (Reliability::RELIABLE, max_samples),
        };
        let qos = ReaderQos {
            reliability,
            history: History::KeepAll,
            resource_limits: limits(max_samples),
            ..ReaderQos::default()
        };
        let reader = self.participant.create_reader(&topic, qos).map_err(LabError::here)?;
        Ok(SampleReceiver::new(reader, arrival))
    }

    pub(super) fn participant(&self) -> &DomainParticipant {
        &self.participant
    }

    /// System calls of the participant's sockets so far: sends, receives and waits for readiness. Wake-ups between threads of
    /// this process are not among them.
    pub fn syscalls(&self) -> u64 {
        let (sent, received) = (self.participant.send_counts(), self.participant.receive_counts());
        sent.calls + sent.waits + received.calls + received.waits
    }

    /// Datagrams that reached the participant's sockets so far, each counted by itself even where the kernel joined them.
    pub fn datagrams_received(&self) -> u64 {
        self.participant.receive_counts().datagrams
    }
}

/// A writer of numbered samples.
#[derive(Debug)]
pub struct SampleSender {
    writer: DataWriter<Numbered>,
}

impl SampleSender {
    /// Readers matched now.
    pub fn matched(&self) -> usize {
        self.writer.matched_readers().len()
    }

    /// How its samples share datagrams, as the middleware has it.
    pub fn method(&self) -> String {
        self.writer.qos().transmission.method.to_string()
    }

    /// Where its datagrams go to, as the middleware has it.
    pub fn destination(&self) -> String {
        self.writer.qos().transmission.destination.to_string()
    }

    /// Writes a sample; waits up to ten seconds while the history is full.
    ///
    /// # Errors
    /// There was no room in that time: a reader does not acknowledge.
    pub fn send(&self, sample: &Numbered) -> Result<(), LabError> {
        self.writer.write(sample).map(drop).map_err(LabError::here)
    }

    /// Lets everything that waits for company leave now: what an application does that knows its burst to be over.
    pub fn flush(&self) {
        self.writer.flush();
    }

    /// Writes a sample as it arrived, number included.
    ///
    /// # Errors
    /// As [`SampleSender::send`].
    pub fn send_back(&self, arrival: &ArrivedSample<'_>) -> Result<(), LabError> {
        self.writer.write_serialized(arrival.serialized).map(drop).map_err(LabError::here)
    }

    /// Whether all matched readers have acknowledged everything within `patience`.
    ///
    /// # Errors
    /// The middleware cannot tell.
    pub fn wait_for_acknowledgements(&self, patience: Duration) -> Result<bool, LabError> {
        match self.writer.wait_for_acknowledgments(patience) {
            Ok(()) => Ok(true),
            Err(error) if error.is_timeout() => Ok(false),
            Err(error) => Err(LabError::here(error)),
        }
    }
}

/// A reader of numbered samples.
#[derive(Debug)]
pub struct SampleReceiver {
    reader: DataReader<Raw>,
    read: Read,
    pending: Arc<Mutex<Pending>>,
}

/// How a sample's number and payload are found in its bytes.
type Read = fn(&[u8]) -> Result<ArrivedSample<'_>, LabError>;

/// Samples that were taken and not handled yet: a handler may have enough in the middle of a batch.
#[derive(Debug, Default)]
struct Pending {
    samples: Vec<thalweg::Sample<Raw>>,
    next: usize,
}

impl SampleReceiver {
    pub(super) fn new(reader: DataReader<Raw>, read: Read) -> SampleReceiver {
        SampleReceiver { reader, read, pending: Arc::default() }
    }

    /// Samples that newer ones took the place of before they were taken (KEEP_LAST).
    pub fn overwritten(&self) -> u64 {
        self.reader.overwritten()
    }

    /// Times the history had no room for a sample (SAMPLE_REJECTED); best-effort samples are lost by it, reliable ones kept back.
    pub fn rejected(&self) -> u64 {
        self.reader.counters().rejected
    }

    /// Writers matched now.
    pub fn matched(&self) -> usize {
        self.reader.matched_writers().len()
    }

    /// Gives every arriving sample to `handler` until it has enough, nothing came for `patience`, or `over` holds; returns the
    /// handler. Samples that come after the end wait for the next call.
    ///
    /// # Errors
    /// What `handler` failed with, or a sample that is none of ours.
    pub fn run<H: ArrivalHandler>(
        &self,
        wait: Wait,
        patience: Duration,
        over: &dyn Fn() -> bool,
        handler: H,
    ) -> Result<(H, Ended), LabError> {
        match wait {
            Wait::Block => self.run_here(patience, over, handler),
            Wait::Listener | Wait::Busy => self.run_in_listener(patience, over, handler),
        }
    }

    fn run_here<H: ArrivalHandler>(
        &self,
        patience: Duration,
        over: &dyn Fn() -> bool,
        mut handler: H,
    ) -> Result<(H, Ended), LabError> {
        handler.begin()?;
        let mut pending = lock(&self.pending);
        let (mut heard, mut looked) = (Instant::now(), Instant::now());
        loop {
            let (handled, flow) = drain(&self.reader, self.read, &mut pending, &mut handler)?;
            if flow == Flow::Enough {
                return Ok((handler, Ended::Enough));
            }
            let now = Instant::now();
            if handled > 0 {
                heard = now;
            }
            if now - looked >= LOOK_PERIOD {
                looked = now;
                if over() {
                    return Ok((handler, Ended::Over));
                }
                if now - heard >= patience {
                    return Ok((handler, Ended::Silence));
                }
            }
            self.reader.wait(LOOK_PERIOD);
        }
    }

    fn run_in_listener<H: ArrivalHandler>(
        &self,
        patience: Duration,
        over: &dyn Fn() -> bool,
        mut handler: H,
    ) -> Result<(H, Ended), LabError> {
        handler.begin()?;
        let course = Arc::new(Course { state: Mutex::new(CourseState::new(handler)), ended: Condvar::new() });
        let listener = Arc::clone(&course);
        let pending = Arc::clone(&self.pending);
        let read = self.read;
        let listen = move |reader: &DataReader<Raw>| listener.handle_data(reader, read, &mut lock(&pending));
        self.reader.on_data(thalweg::Delivery::Inline, listen).map_err(LabError::here)?;
        let outcome = course.wait(patience, over);
        self.reader.clear_on_data();
        outcome
    }
}

/// A reception in a listener, as the waiting thread and the listener share it.
struct Course<H> {
    state: Mutex<CourseState<H>>,
    ended: Condvar,
}

struct CourseState<H> {
    /// Gone once the reception is over, so that a late call of the listener takes nothing.
    handler: Option<H>,
    /// What the handler ended with.
    result: Option<Result<Flow, LabError>>,
    handled: usize,
}

impl<H> CourseState<H> {
    fn new(handler: H) -> CourseState<H> {
        CourseState { handler: Some(handler), result: None, handled: 0 }
    }
}

impl<H: ArrivalHandler> Course<H> {
    fn handle_data(&self, reader: &DataReader<Raw>, read: Read, pending: &mut Pending) {
        let mut state = lock(&self.state);
        if state.result.is_some() {
            return;
        }
        let Some(handler) = state.handler.as_mut() else { return };
        let outcome = drain(reader, read, pending, handler);
        match outcome {
            Ok((handled, Flow::Continue)) => state.handled += handled,
            Ok((_, Flow::Enough)) => state.result = Some(Ok(Flow::Enough)),
            Err(error) => state.result = Some(Err(error)),
        }
        if state.result.is_some() {
            self.ended.notify_one();
        }
    }

    fn wait(&self, patience: Duration, over: &dyn Fn() -> bool) -> Result<(H, Ended), LabError> {
        let mut state = lock(&self.state);
        let (mut handled, mut heard) = (state.handled, Instant::now());
        let ended = loop {
            match state.result.take() {
                Some(Ok(_)) => break Ended::Enough,
                Some(Err(error)) => return Err(error),
                None => {}
            }
            state = self
                .ended
                .wait_timeout(state, LOOK_PERIOD)
                .map_or_else(|error| error.into_inner().0, |(state, _)| state);
            if state.handled != handled {
                (handled, heard) = (state.handled, Instant::now());
            }
            if state.result.is_some() {
                continue;
            }
            if over() {
                break Ended::Over;
            }
            if heard.elapsed() >= patience {
                break Ended::Silence;
            }
        };
        let handler = state.handler.take();
        handler
            .map(|handler| (handler, ended))
            .ok_or_else(|| LabError::Here("a reception was waited for twice".to_owned()))
    }
}

/// Handles what is there; returns how much it was and whether more is wanted.
fn drain<H: ArrivalHandler>(
    reader: &DataReader<Raw>,
    read: Read,
    pending: &mut Pending,
    handler: &mut H,
) -> Result<(usize, Flow), LabError> {
    let (mut handled, mut more) = (0, true);
    loop {
        while let Some(sample) = pending.samples.get(pending.next) {
            pending.next += 1;
            if !sample.is_valid() {
                continue;
            }
            handled += 1;
            if handler.handle(read(sample.bytes())?)? == Flow::Enough {
                handler.handled_some();
                return Ok((handled, Flow::Enough));
            }
        }
        if !pending.samples.is_empty() {
            handler.handled_some();
        }
        pending.samples.clear();
        pending.next = 0;
        if !more {
            return Ok((handled, Flow::Continue));
        }
        // What comes after a take that left nothing behind is told anew.
        more = reader.take_into(BATCH_MAX, &ReadFilter::ALL, &mut pending.samples) == BATCH_MAX;
    }
}

/// Reads number and payload of a serialized [`Numbered`] in place: after the encapsulation header the number, then length and
/// bytes; XCDR1 and XCDR2 lay them out alike.
fn arrival(serialized: &[u8]) -> Result<ArrivedSample<'_>, LabError> {
    let read = || {
        let (header, rest) = serialized.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        // The lowest bit of the encapsulation tells the byte order; Thalweg's writers set it: little endian.
        let is_little = header[1] & 1 == 1;
        let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
        is_little.then_some(ArrivedSample { number: u64::from_le_bytes(*number), payload, serialized })
    };
    read().ok_or_else(|| LabError::Here("a sample arrived that no experiment of this version sends".to_owned()))
}

pub(super) fn limits(max_samples: u32) -> ResourceLimits {
    ResourceLimits { max_samples: Some(max_samples), ..ResourceLimits::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a write may wait for room: beyond it a reader hangs.
const BLOCKING_MAX: Duration = Duration::from_secs(10);
/// How often a reception looks at its end conditions.
const LOOK_PERIOD: Duration = Duration::from_millis(10);
/// Samples taken at once: enough to spread the cost of a lock, few enough to stay in the cache.
const BATCH_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_payloads_are_read_where_the_codec_writes_them() {
        let sample = Numbered { number: 0x0102_0304_0506_0708, payload: vec![9, 8, 7] };
        for representation in [thalweg::cdr::Representation::Xcdr1, thalweg::cdr::Representation::Xcdr2] {
            let mut bytes = Vec::new();
            thalweg::cdr::encode(&sample, representation, &mut bytes).expect("encoded");
            let arrival = arrival(&bytes).expect("read");
            assert_eq!((arrival.number, arrival.payload), (sample.number, sample.payload.as_slice()));
            for end in 0..bytes.len().min(19) {
                assert!(super::arrival(&bytes[..end]).is_err(), "{end} bytes are no sample");
            }
        }
    }
}
