//! What a middleware has to offer so that it can be measured.

use std::time::Duration;

use clap::ValueEnum;

/// A middleware under measurement; an instance is one process's participant or session.
pub trait Middleware: Sized + 'static {
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
    const ANY_INTERFACE: bool = false;

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
    /// Blocks while a reliable reader is too far behind.
    fn write(&self, number: u64, bytes: &[u8]) -> Result<(), String>;

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

/// The name of the loopback interface.
pub const LOOPBACK: &str = "lo";

/// How a middleware is set up for a measurement.
#[derive(Clone)]
pub struct Setup {
    pub domain: u32,
    /// The network interface to use, [`LOOPBACK`] unless [`Middleware::ANY_INTERFACE`].
    pub interface: String,
    pub profile: Profile,
    pub wait: Wait,
    /// The longest `bytes` of a sample, for what must be reserved beforehand.
    pub bytes_max: usize,
    /// How many subscriber processes take part.
    pub readers: usize,
    pub end: End,
}

/// Which end of the measurement a process is; where there is a connection, the publisher awaits it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Publisher,
    Subscriber,
}

/// A topic and how its endpoints behave.
#[derive(Clone, Copy)]
pub struct Channel {
    pub topic: &'static str,
    pub type_name: &'static str,
    pub keep: Keep,
    pub best_effort: bool,
    /// Room in a KEEP_ALL history; `None` leaves it to the middleware.
    pub samples_max: Option<u32>,
}

/// What the history of an endpoint keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    All,
    /// The last sixteen: for writers inside a listener, where a full KEEP_ALL history would block the thread that
    /// frees it.
    Last,
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
