//! Thalweg as the laboratory measures it.

use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg::qos::{Durability, History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg::{DataReader, DataWriter, DomainParticipant, ReadFilter};
use thalweg_lab_station::{
    ArrivedSample, Fault, Keep, LinkCosts, Middleware, ProcessEnd, SampleChannel, SampleReader, SampleSink,
    SampleWriter, TransportCounts, Wait, Work, WriteError, WriterEffort,
};

use super::samples::{Carried, Numbered};
use super::{Multicast, Sending, StationNetwork, TokenBucket};
use crate::scenario::Load;

/// Thalweg's own part of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The network of all ends.
    pub network: StationNetwork,
    /// The way in which an end waits for data.
    pub wait: Wait,
    /// By what way the measured samples travel.
    pub sending: Sending,
    /// A flow controller to create for it.
    pub flow_controller: Option<TokenBucket>,
    /// The samples of an open schedule; missing for other measurements.
    pub load: Option<Load>,
    /// The work for each sample.
    pub work: Work,
    /// Every how many samples the layers are traced; missing means not at all.
    pub trace: Option<NonZeroU32>,
}

impl Setup {
    /// In this network, everything else by default.
    pub fn within(network: StationNetwork) -> Setup {
        Setup {
            network,
            wait: Wait::Listener,
            sending: Sending::default(),
            flow_controller: None,
            load: None,
            work: Work::default(),
            trace: None,
        }
    }
}

/// A participant of an experiment whose samples are of the type `T`.
pub struct Thalweg<T = Numbered> {
    participant: DomainParticipant,
    setup: Setup,
    type_marker: PhantomData<fn() -> T>,
}

impl<T: Carried> Middleware for Thalweg<T> {
    const NAME: &'static str = "Thalweg";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const DURABLE: bool = true;

    type Setup = Setup;
    type Sample = T;
    type Arrival<'a> = ThalwegArrival<'a, T>;
    type Writer = ThalwegWriter<T>;
    type Reader = ThalwegReader<T>;

    fn work(setup: &Setup) -> Work {
        setup.work
    }

    fn open(setup: &Setup, end: &ProcessEnd) -> Result<Thalweg<T>, Fault> {
        let network = &setup.network;
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
        // A publisher of a schedule waits for the time, not for data.
        let is_on_schedule = setup.load.is_some() && matches!(end, ProcessEnd::Publisher(_));
        if setup.wait == Wait::Busy && !is_on_schedule {
            builder = builder.busy_poll();
        }
        if let Some(bytes) = network.receive_buffer_bytes {
            builder = builder.receive_buffer(usize::try_from(bytes).map_err(Fault::here)?);
        }
        let participant = builder.create().map_err(Fault::here)?;
        setup.flow_controller.iter().try_for_each(|bucket| bucket.create_on(&participant))?;
        Ok(Thalweg { participant, setup: setup.clone(), type_marker: PhantomData })
    }

    fn scheduled_sample(&self) -> Result<T, Fault> {
        let sample = self.setup.load.and_then(T::scheduled);
        sample.ok_or_else(|| Fault::Here(format!("no sample of {:?} is of the type {}", self.setup.load, T::TYPE_NAME)))
    }

    fn writer(&self, channel: &SampleChannel) -> Result<ThalwegWriter<T>, Fault> {
        let by_default = Sending::default();
        self.writer_by(channel, if channel.is_measured { &self.setup.sending } else { &by_default })
    }

    fn reader<S: SampleSink<Thalweg<T>>>(&self, channel: &SampleChannel, sink: S) -> Result<ThalwegReader<T>, Fault> {
        let topic = self.participant.create_topic::<T>(&channel.topic);
        let reader = self.participant.create_reader(&topic, reader_qos(channel)).map_err(Fault::here)?;
        let supply = Supply { sink, samples: Vec::new(), work: self.setup.work, value: None };
        ThalwegReader::start(reader, self.setup.wait, supply)
    }

    fn counts(&self) -> Option<TransportCounts> {
        let (sent, received) = (self.participant.send_counts(), self.participant.receive_counts());
        // Wake-ups between threads of this process are not among them.
        let syscalls = sent.calls + sent.waits + received.calls + received.waits;
        Some(TransportCounts { syscalls, datagrams: received.datagrams })
    }

    fn begin_measurement(setup: &Setup) {
        setup.trace.into_iter().for_each(thalweg::trace::start);
    }

    fn end_measurement(setup: &Setup, folder: &Path, name: &str, origin_ns: u64) -> Result<(), Fault> {
        if setup.trace.is_some() {
            thalweg::trace::stop();
            crate::trial::write_traces(folder, name, origin_ns)?;
        }
        Ok(())
    }
}

impl<T: Carried> Thalweg<T> {
    /// A writer that sends in this way.
    ///
    /// # Errors
    /// The middleware refuses it.
    pub(crate) fn writer_by(&self, channel: &SampleChannel, sending: &Sending) -> Result<ThalwegWriter<T>, Fault> {
        let topic = self.participant.create_topic::<T>(&channel.topic);
        let qos = writer_qos(channel, sending);
        Ok(ThalwegWriter { writer: self.participant.create_writer(&topic, qos).map_err(Fault::here)? })
    }
}

fn writer_qos(channel: &SampleChannel, sending: &Sending) -> WriterQos {
    let (history, resource_limits) = match (channel.best_effort, channel.keep) {
        // Nothing waits for acknowledgement.
        (true, Keep::All) => (WriterQos::default().history, ResourceLimits::default()),
        _ => history(channel),
    };
    WriterQos {
        reliability: match channel.best_effort {
            true => Reliability::BestEffort,
            false => Reliability::Reliable { max_blocking_time: channel.max_blocking },
        },
        durability: durability(channel),
        history,
        resource_limits,
        transmission: sending.to_qos(),
        transport_priority: sending.priority,
        ..WriterQos::default()
    }
}

fn reader_qos(channel: &SampleChannel) -> ReaderQos {
    let (history, resource_limits) = history(channel);
    let reliability = if channel.best_effort { Reliability::BestEffort } else { Reliability::RELIABLE };
    ReaderQos { reliability, durability: durability(channel), history, resource_limits, ..ReaderQos::default() }
}

fn durability(channel: &SampleChannel) -> Durability {
    if channel.durable { Durability::TransientLocal } else { Durability::Volatile }
}

fn history(channel: &SampleChannel) -> (History, ResourceLimits) {
    let room = match channel.keep {
        Keep::Last(depth) => return (History::KeepLast(depth), ResourceLimits::default()),
        Keep::AllOf(room) => room,
        Keep::All => channel.samples_max.unwrap_or(BURST_MAX),
    };
    (History::KeepAll, ResourceLimits { max_samples: Some(room), ..ResourceLimits::default() })
}

/// A sample as Thalweg hands it over.
#[derive(Debug)]
pub enum ThalwegArrival<'a, T> {
    /// As a value.
    Decoded(&'a T),
    /// As it came.
    Raw {
        /// Its number.
        number: u64,
        /// Its octets in place.
        octets: &'a [u8],
        /// All of it.
        serialized: &'a [u8],
    },
}

impl<T: Carried> ArrivedSample for ThalwegArrival<'_, T> {
    fn number(&self) -> u64 {
        match self {
            ThalwegArrival::Decoded(value) => value.number(),
            ThalwegArrival::Raw { number, .. } => *number,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            ThalwegArrival::Decoded(value) => value.octets(),
            ThalwegArrival::Raw { octets, .. } => octets,
        }
    }

    fn time_ns(&self) -> Option<u64> {
        match self {
            ThalwegArrival::Decoded(value) => value.time_ns(),
            ThalwegArrival::Raw { octets, .. } => octets.first_chunk().map(|time| u64::from_le_bytes(*time)),
        }
    }
}

/// A writer of an experiment.
#[derive(Debug)]
pub struct ThalwegWriter<T> {
    writer: DataWriter<T>,
}

impl<T: Carried> SampleWriter<Thalweg<T>> for ThalwegWriter<T> {
    fn write(&mut self, sample: &T) -> Result<(), WriteError> {
        self.writer.write(sample).map(drop).map_err(write_error)
    }

    fn send_back(&mut self, arrival: ThalwegArrival<'_, T>) -> Result<(), WriteError> {
        let written = match arrival {
            ThalwegArrival::Decoded(value) => self.writer.write(value),
            ThalwegArrival::Raw { serialized, .. } => self.writer.write_serialized(serialized),
        };
        written.map(drop).map_err(write_error)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.writer.flush();
        Ok(())
    }

    fn matched(&self) -> usize {
        self.writer.matched_readers().len()
    }

    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault> {
        self.writer.flush();
        match self.writer.wait_for_acknowledgments(patience) {
            Ok(()) => Ok(true),
            Err(error) if error.is_timeout() => Ok(false),
            Err(error) => Err(Fault::here(error)),
        }
    }

    fn effort(&self) -> WriterEffort {
        let counters = self.writer.counters();
        WriterEffort {
            transmitted: counters.transmitted,
            repaired: counters.repaired,
            heartbeats: counters.heartbeats,
            acknacks: counters.acknacks,
            overwritten: counters.overwritten_unacknowledged,
        }
    }

    fn link_costs(&self) -> Option<LinkCosts> {
        let explanation = self.writer.explain();
        let group = explanation.route.groups.first()?;
        let milli = |nanos: f64| (nanos * 1e3).round() as u64;
        let unicast_milli = milli(group.unicast_nanos_per_byte);
        Some(LinkCosts { unicast_milli, multicast_milli: milli(group.multicast_nanos_per_byte?) })
    }

    fn way(&self) -> (String, String) {
        let qos = self.writer.qos();
        let transmission = &qos.transmission;
        (transmission.method.to_string(), transmission.destination.to_string())
    }
}

fn write_error(error: thalweg::Error) -> WriteError {
    if error.is_timeout() { WriteError::NoRoom(error.to_string()) } else { WriteError::Failed(error.to_string()) }
}

/// A reader of an experiment; what arrives goes to its sink until it is dropped.
#[derive(Debug)]
pub struct ThalwegReader<T> {
    reader: Arc<DataReader<T>>,
    is_over: Arc<AtomicBool>,
    /// The thread that takes, where it is not the one that receives.
    taking: Option<JoinHandle<()>>,
}

impl<T: Carried> ThalwegReader<T> {
    fn start<S: SampleSink<Thalweg<T>>>(
        reader: DataReader<T>,
        wait: Wait,
        mut supply: Supply<T, S>,
    ) -> Result<ThalwegReader<T>, Fault> {
        let (reader, is_over) = (Arc::new(reader), Arc::new(AtomicBool::new(false)));
        let taking = match wait {
            Wait::Block => {
                let (reader, is_over) = (Arc::clone(&reader), Arc::clone(&is_over));
                Some(std::thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if reader.wait(LOOK_PERIOD) {
                            supply.drain(&reader);
                        }
                    }
                }))
            }
            Wait::Listener | Wait::Busy => {
                let listen = move |reader: &DataReader<T>| supply.drain(reader);
                reader.on_data(thalweg::Delivery::Inline, listen).map_err(Fault::here)?;
                None
            }
        };
        Ok(ThalwegReader { reader, is_over, taking })
    }
}

impl<T: Carried> SampleReader for ThalwegReader<T> {
    fn matched(&self) -> usize {
        self.reader.matched_writers().len()
    }

    fn overwritten(&self) -> u64 {
        self.reader.overwritten()
    }

    fn rejected(&self) -> u64 {
        self.reader.counters().rejected
    }
}

impl<T> Drop for ThalwegReader<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        match self.taking.take() {
            // A panic in the thread has been printed where it happened.
            Some(thread) => drop(thread.join()),
            None => self.reader.clear_on_data(),
        }
    }
}

/// Takes what is there and hands it to a sink.
struct Supply<T, S> {
    sink: S,
    samples: Vec<thalweg::Sample<T>>,
    work: Work,
    /// The last value that was decoded: the next one uses its memory.
    value: Option<T>,
}

impl<T: Carried, S: SampleSink<Thalweg<T>>> Supply<T, S> {
    fn drain(&mut self, reader: &DataReader<T>) {
        // What comes after a take that left nothing behind is told anew.
        while reader.take_into(BATCH_MAX, &ReadFilter::ALL, &mut self.samples) == BATCH_MAX {
            self.hand_over();
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        if self.samples.is_empty() {
            return;
        }
        for sample in self.samples.iter().filter(|sample| sample.is_valid()) {
            match self.work {
                Work::Decoded => match decode(sample, &mut self.value) {
                    Ok(value) => self.sink.take(ThalwegArrival::Decoded(value)),
                    Err(error) => self.sink.fail(Fault::here(error)),
                },
                Work::Raw => match T::read(sample.bytes()) {
                    Some((number, octets)) => {
                        let serialized = sample.bytes();
                        self.sink.take(ThalwegArrival::Raw { number, octets, serialized });
                    }
                    None => self.sink.fail(Fault::here("a sample arrived that no experiment of this version sends")),
                },
            }
        }
        self.samples.clear();
        self.sink.taken();
    }
}

/// The value of a sample, in the memory of the one before.
fn decode<'a, T: Carried>(sample: &thalweg::Sample<T>, value: &'a mut Option<T>) -> Result<&'a T, thalweg::Error> {
    match value {
        Some(value) => {
            sample.data_into(value)?;
            Ok(value)
        }
        None => Ok(value.insert(sample.data()?)),
    }
}

/// Room for one whole burst of the usual sizes: a write waits only when another one would begin.
const BURST_MAX: u32 = 20_000;
/// How often a thread that takes looks at its end.
const LOOK_PERIOD: Duration = Duration::from_millis(10);
/// Samples taken at once: enough to spread the cost of a lock, few enough to stay in the cache.
const BATCH_MAX: usize = 256;
