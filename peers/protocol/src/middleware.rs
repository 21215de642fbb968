//! What a middleware has to offer so that it can be measured.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::ValueEnum;

use crate::Interface;

/// A middleware under measurement; an instance is one process's participant or session.
pub trait Middleware: Sized + Send + 'static {
    /// The name in figures, for example `Cyclone DDS`.
    const PEER: &'static str;
    /// The version that is measured, for example `11.0.1`.
    const VERSION: &'static str;
    /// The name of the program, for example `cyclone-perf`.
    const PROGRAM: &'static str;
    /// What the middleware can be told about waiting for data, the preferred way first.
    const WAITS: &'static [Wait];
    /// Why this middleware has no profile `batch`; `None` if it has one.
    const NO_BATCH: Option<&'static str>;
    /// Whether it can be bound to another interface than loopback.
    const ANY_INTERFACE: bool = true;
    /// Whether readers of [`Channel::durable`] get what was written before them.
    const DURABLE: bool = false;

    type Writer: Writer;
    type Reader: Reader;

    /// Joins the domain on the interface that `setup` names, and on no other.
    fn open(setup: &Setup) -> Result<Self, String>;

    fn writer(&self, channel: &Channel) -> Result<Self::Writer, String>;

    /// Hands what arrives to `sink`, in the way that `setup.wait` names, from now until the reader is dropped.
    fn reader(&self, channel: &Channel, sink: impl Sink) -> Result<Self::Reader, String>;
}

/// Sends samples; shared by the threads of a process.
pub trait Writer: Clone + Send + 'static {
    /// Blocks while a reliable reader is too far behind, as long as the channel allows.
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError>;

    /// Sends what the middleware holds back to batch it.
    fn flush(&self) -> Result<(), String> {
        Ok(())
    }

    /// How many readers are matched.
    fn matched(&self) -> usize;

    /// Whether the readers acknowledged everything within the time; at once where there are no acknowledgements.
    fn wait_for_acknowledgements(&self, time: Duration) -> bool;
}

/// Keeps a sink supplied.
pub trait Reader {
    /// How many writers are matched.
    fn matched(&self) -> usize;
}

/// Where samples arrive; called by one thread at a time.
pub trait Sink: Send + 'static {
    fn take(&mut self, number: u64, bytes: &[u8]);

    /// Nothing more is there at the moment. Called after each run of `take`.
    fn taken(&mut self) {}
}

/// How a middleware is set up for a measurement.
#[derive(Clone)]
pub struct Setup {
    pub domain: u32,
    /// The network interface to use, loopback unless [`Middleware::ANY_INTERFACE`].
    pub interface: Interface,
    pub profile: Profile,
    pub wait: Wait,
    /// The longest `bytes` of a sample, for what must be reserved beforehand.
    pub bytes_max: usize,
    /// How many readers a topic has.
    pub readers: usize,
    /// How many writers a topic has.
    pub writers: usize,
    pub end: End,
    /// The address of each publisher's host, by the publisher's number.
    pub publishers: Vec<Ipv4Addr>,
}

/// Which end of the measurement a process is; where there is a connection, the publisher awaits it.
#[derive(Clone, PartialEq, Eq)]
pub enum End {
    /// With its number among the publishers, from 0.
    Publisher(u32),
    /// With the numbers of the publishers that it hears.
    Subscriber(Vec<u32>),
}

impl End {
    /// The end of a measurement with one publisher.
    pub const PUBLISHER: End = End::Publisher(0);

    /// The other end of it.
    pub fn subscriber() -> End {
        End::Subscriber(vec![0])
    }
}

/// Why a sample was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There was no room for it in time.
    NoRoom,
    /// The writer cannot go on, and why.
    Failed(String),
}

impl From<WriteError> for String {
    fn from(error: WriteError) -> String {
        match error {
            WriteError::NoRoom => "the history stayed full for as long as a write may wait".to_owned(),
            WriteError::Failed(reason) => reason,
        }
    }
}

impl From<String> for WriteError {
    fn from(reason: String) -> WriteError {
        WriteError::Failed(reason)
    }
}

/// A topic and how its endpoints behave.
#[derive(Clone)]
pub struct Channel {
    pub topic: String,
    pub type_name: &'static str,
    pub keep: Keep,
    pub best_effort: bool,
    /// TRANSIENT_LOCAL instead of VOLATILE; only where [`Middleware::DURABLE`] says so.
    pub durable: bool,
    /// Room in a [`Keep::All`] history for those who cannot do without; `None` leaves it to the middleware.
    pub samples_max: Option<u32>,
    /// How long a write may wait for room.
    pub max_blocking: Duration,
}

impl Channel {
    /// How long a write waits where nobody says otherwise: longer than any reader that still works.
    pub const MAX_BLOCKING: Duration = Duration::from_secs(10);
}

/// What the history of an endpoint keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    All,
    /// All, with room for so many; a write waits while there is none.
    AllOf(u32),
    /// So many of the latest.
    Last(u32),
}

/// A set of settings of the middleware.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// As shipped, plus what it takes to be lossless.
    Default,
    /// The best settings known for these measurements.
    Tuned,
    /// `tuned` and the batching that the middleware offers.
    Batch,
}

impl Profile {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Default => "default",
            Profile::Tuned => "tuned",
            Profile::Batch => "batch",
        }
    }
}

/// How a process learns that data is there.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// In the middleware's receive thread, in a data-available callback.
    Listener,
    /// In a thread of its own, blocked in a wait set or a blocking read.
    Block,
    /// In a thread that asks without pause, for the price of a whole core.
    Busy,
}

impl Wait {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Wait::Listener => "listener",
            Wait::Block => "block",
            Wait::Busy => "busy",
        }
    }
}
