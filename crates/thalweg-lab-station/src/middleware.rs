//! The interface of a middleware that the laboratory measures.

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::order::{LinkCosts, WriterEffort};

/// A middleware under measurement; an instance is one process's participant or session.
///
/// Schedules, round trips, streams, bursts and readers on demand are measured by the same code for all of them. Whatever happens for
/// each sample is a call that the compiler resolves.
pub trait Middleware: Sized + Send + 'static {
    /// The name in figures, for example `Cyclone DDS`.
    const NAME: &'static str;
    /// The version that is measured, for example `11.0.1`.
    const VERSION: &'static str;
    /// Whether readers of a durable channel get samples that were written before them.
    const DURABLE: bool = false;
    /// Whether several writers of a topic may have the same reader.
    const JOINS_WRITERS: bool = true;

    /// Settings common to all endpoints of a process.
    type Setup: DeserializeOwned + Sync;
    /// A sample that the application has: its octets are written in place, and encoded as the middleware encodes such a type.
    type Sample: ScheduledSample;
    /// A sample that the application gets, as the middleware hands it over.
    type Arrival<'a>: ArrivedSample;
    /// A writer.
    type Writer: SampleWriter<Self>;
    /// A reader.
    type Reader: SampleReader;

    /// The work that an application does for each sample under this setup.
    fn work(_setup: &Self::Setup) -> Work {
        Work::Decoded
    }

    /// Joins as one end of a measurement.
    ///
    /// # Errors
    /// The middleware refuses it.
    fn open(setup: &Self::Setup, end: &ProcessEnd) -> Result<Self, Fault>;

    /// The sample of an open schedule, as the setup describes it.
    ///
    /// # Errors
    /// The setup describes none of this type.
    fn scheduled_sample(&self) -> Result<Self::Sample, Fault>;

    /// A writer of a topic.
    ///
    /// # Errors
    /// The middleware refuses it.
    fn writer(&self, channel: &SampleChannel) -> Result<Self::Writer, Fault>;

    /// Hands arrivals to `sink`, in the way of waiting that the setup names, from now on until the reader is dropped.
    ///
    /// # Errors
    /// The middleware refuses it.
    fn reader<S: SampleSink<Self>>(&self, channel: &SampleChannel, sink: S) -> Result<Self::Reader, Fault>;

    /// Its sockets' counters so far, where it tells them.
    fn counts(&self) -> Option<TransportCounts> {
        None
    }

    /// Called once in each process before the first measured sample.
    fn begin_measurement(_setup: &Self::Setup) {}

    /// Called once in each process of an open schedule after its end; writes records of its own into `folder` for the process `name`,
    /// times since `origin_ns`.
    ///
    /// # Errors
    /// It cannot be written.
    fn end_measurement(_setup: &Self::Setup, _folder: &Path, _name: &str, _origin_ns: u64) -> Result<(), Fault> {
        Ok(())
    }
}

/// The work that an application does for each sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// It decodes every sample that arrives into a value of its type, and encodes every sample that it writes, echoes included.
    #[default]
    Decoded,
    /// It looks at the octets as they arrived and sends these back: the work where a middleware has no types.
    Raw,
}

impl Work {
    /// The name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Work::Decoded => "decoded",
            Work::Raw => "raw",
        }
    }
}

/// How a process learns that data are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// A callback in the thread that receives: no hand-over.
    Listener,
    /// A thread of the application sleeps until data are there.
    Block,
    /// A thread polls without ever sleeping: the lowest latency for the price of a whole core.
    Busy,
}

impl Wait {
    /// All of them.
    pub const ALL: [Wait; 3] = [Wait::Listener, Wait::Block, Wait::Busy];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Listener => "listener",
            Wait::Block => "block",
            Wait::Busy => "busy",
        }
    }
}

/// A writer of samples.
pub trait SampleWriter<M: Middleware>: Send + 'static {
    /// Writes a sample; waits while a reliable reader is too far behind, as long as the channel allows.
    ///
    /// # Errors
    /// There was no room in time, or the writer cannot go on.
    fn write(&mut self, sample: &M::Sample) -> Result<(), WriteError>;

    /// Writes a sample; returns whether there was room for it in time.
    ///
    /// # Errors
    /// The writer cannot go on.
    fn write_in_time(&mut self, sample: &M::Sample) -> Result<bool, Fault> {
        match self.write(sample) {
            Ok(()) => Ok(true),
            Err(WriteError::NoRoom(_)) => Ok(false),
            Err(WriteError::Failed(reason)) => Err(Fault::Here(reason)),
        }
    }

    /// Writes an arrival, number included, as an application does that answers with what it got.
    ///
    /// # Errors
    /// As [`SampleWriter::write`].
    fn send_back(&mut self, arrival: M::Arrival<'_>) -> Result<(), WriteError>;

    /// Lets everything that waits for company leave now: what an application does that knows its burst to be over.
    ///
    /// # Errors
    /// The writer cannot go on.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Readers matched now.
    fn matched(&self) -> usize;

    /// Whether all matched readers acknowledged everything within `patience`; at once where there are no acknowledgements.
    ///
    /// # Errors
    /// The middleware cannot tell.
    fn wait_for_acknowledgements(&mut self, patience: Duration) -> Result<bool, Fault>;

    /// Its counters on the wire, as far as the middleware has them.
    fn effort(&self) -> WriterEffort {
        WriterEffort::default()
    }

    /// What its ways cost by the middleware's own account, where it has one.
    fn link_costs(&self) -> Option<LinkCosts> {
        None
    }

    /// How its samples share datagrams and where these go to, in the middleware's words; empty where there is nothing to choose.
    fn way(&self) -> (String, String) {
        (String::new(), String::new())
    }
}

/// Keeps a sink supplied.
pub trait SampleReader: Send {
    /// Writers matched now.
    fn matched(&self) -> usize;

    /// Samples that newer ones took the place of before they were taken, as far as the middleware tells.
    fn overwritten(&self) -> u64 {
        0
    }

    /// Samples that arrived and found the history full, as far as the middleware tells.
    fn rejected(&self) -> u64 {
        0
    }
}

/// Where samples arrive; called by one thread at a time.
pub trait SampleSink<M: Middleware>: Send + 'static {
    /// A sample arrived.
    fn take(&mut self, arrival: M::Arrival<'_>);

    /// Nothing more is there at the moment, or many samples were taken: the place for what would cost too much for each of them, such
    /// as a look at the clock.
    fn taken(&mut self) {}

    /// A sample arrived that cannot be read, and why.
    fn fail(&mut self, fault: Fault) {
        eprintln!("{fault}");
    }
}

/// A sample that an open schedule can send.
pub trait ScheduledSample: Send + 'static {
    /// Puts in the time of the write and the number of the sample.
    fn stamp(&mut self, time_ns: u64, id: u64);
}

/// A sample of a number and octets.
pub trait NumberedSample: ScheduledSample {
    /// With these octets and the number 0.
    fn of(bytes: Vec<u8>) -> Self;

    /// Changes the number.
    fn set_number(&mut self, number: u64);

    /// Its octets.
    fn bytes_mut(&mut self) -> &mut Vec<u8>;
}

/// A sample as it arrived.
pub trait ArrivedSample {
    /// Its number.
    fn number(&self) -> u64;

    /// Its octets.
    fn bytes(&self) -> &[u8];

    /// The time that an open schedule put into it, `None` where there is no room for one: in the first eight octets.
    fn time_ns(&self) -> Option<u64> {
        self.bytes().first_chunk().map(|time| u64::from_le_bytes(*time))
    }
}

/// The sample of a middleware that is given a number and octets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OctetSample {
    /// Its number.
    pub number: u64,
    /// Its octets.
    pub bytes: Vec<u8>,
}

impl ScheduledSample for OctetSample {
    fn stamp(&mut self, time_ns: u64, id: u64) {
        self.number = id;
        if let Some(time) = self.bytes.first_chunk_mut() {
            *time = time_ns.to_le_bytes();
        }
    }
}

impl NumberedSample for OctetSample {
    fn of(bytes: Vec<u8>) -> OctetSample {
        OctetSample { number: 0, bytes }
    }

    fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// The arrival of a middleware that hands over a number and octets.
#[derive(Clone, Copy, Debug)]
pub struct OctetArrival<'a> {
    /// Its number.
    pub number: u64,
    /// Its octets, lent.
    pub bytes: &'a [u8],
}

impl ArrivedSample for OctetArrival<'_> {
    fn number(&self) -> u64 {
        self.number
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

/// Counters of a participant's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounts {
    /// Sends, receives and waits for readiness.
    pub syscalls: u64,
    /// Datagrams that arrived, each counted by itself even where the kernel joined them.
    pub datagrams: u64,
}

/// Why a sample was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There was no room for it in time, in the middleware's words.
    NoRoom(String),
    /// The writer cannot go on, and why.
    Failed(String),
}

impl WriteError {
    /// No room, from a middleware that says no more.
    pub fn no_room() -> WriteError {
        WriteError::NoRoom("the history stayed full for as long as a write may wait".to_owned())
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Fault {
        let (WriteError::NoRoom(reason) | WriteError::Failed(reason)) = error;
        Fault::Here(reason)
    }
}

impl From<String> for WriteError {
    fn from(reason: String) -> WriteError {
        WriteError::Failed(reason)
    }
}
