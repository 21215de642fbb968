//! An end of an experiment: a participant with writers and readers of numbered samples.
//!
//! Everything the lab needs of the middleware lies here, so that experiments read as experiments.

mod flow;
mod middleware;
mod sending;
mod stamped;

pub use flow::TokenBucket;
pub use middleware::{Numbered, SampleReceiver, SampleSender, Station};
pub use sending::{Addressing, PackingLimits, PackingMethod, Sending};
pub(crate) use stamped::serialized_bytes;
pub use thalweg_lab_station::WriterEffort;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::process::Stop;

/// Where a station looks for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationNetwork {
    /// Domain, 0 to 232.
    pub domain: u32,
    /// Only participants with the same tag meet.
    pub domain_tag: String,
    /// Further addresses to announce to, with or without a port.
    pub peers: Vec<String>,
    /// Interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Whether multicast is used; loopback and peers always are.
    pub multicast: Multicast,
    /// Bytes to ask for in the receive buffer; missing means the middleware's default.
    pub receive_buffer_bytes: Option<u64>,
}

/// Whether a station sends and receives multicast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Multicast {
    /// It does.
    #[default]
    Used,
    /// It does not.
    Avoided,
}

impl StationNetwork {
    /// This host's domain `domain`, apart from everybody else in it: the tag is made of this process and the time.
    pub fn apart(domain: u32) -> StationNetwork {
        let tag = format!("thalweg-lab-{}-{}", std::process::id(), crate::host::monotonic_nanos());
        StationNetwork { domain, domain_tag: tag, ..StationNetwork::default() }
    }
}

/// Whether lost samples are sent again, and how many may wait for acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryGuarantee {
    /// BEST_EFFORT: lost samples stay lost; the reader keeps up to so many that were not taken yet.
    BestEffort {
        /// Samples that the reader keeps.
        max_samples: u32,
    },
    /// RELIABLE and KEEP_ALL: a write waits while so many samples are unacknowledged.
    Reliable {
        /// Samples that writer and reader keep.
        max_samples: u32,
    },
}

/// How a receiver learns that data are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wait {
    /// A callback in the thread that receives: no hand-over.
    Listener,
    /// The calling thread sleeps until data are there.
    Block,
    /// As [`Wait::Listener`], and the thread that receives polls without ever sleeping: the lowest latency for the price of a whole
    /// core.
    Busy,
}

/// A sample as it arrived; the payload is lent.
#[derive(Clone, Copy, Debug)]
pub struct ArrivedSample<'a> {
    /// The number its sender gave it.
    pub number: u64,
    /// Its bytes.
    pub payload: &'a [u8],
    /// Number and payload as they came, to be sent on without decoding.
    pub serialized: &'a [u8],
}

/// Whether a handler wants more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// More is expected.
    Continue,
    /// The handler has what it waited for.
    Enough,
}

/// What happens to samples as they arrive, whatever thread they arrive in.
pub trait ArrivalHandler: Send + 'static {
    /// Called once before anything is received; the place to send what others answer to.
    ///
    /// # Errors
    /// Ends the reception with this error.
    fn begin(&mut self) -> Result<(), LabError> {
        Ok(())
    }

    /// Called for every sample, in the order of arrival.
    ///
    /// # Errors
    /// Ends the reception with this error.
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError>;

    /// Called after the samples that were taken together, at most a few hundred, were all handled: the place for what would cost
    /// too much for each of them, such as a look at the clock.
    fn handled_some(&mut self) {}
}

/// Why a reception ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The handler had enough.
    Enough,
    /// Nothing arrived for so long as was allowed.
    Silence,
    /// The caller's condition came true.
    Over,
}

/// Waits until `condition` holds, at most `patience`, looking again every two milliseconds.
///
/// # Errors
/// `stop` was requested.
pub fn wait_until(patience: Duration, stop: &Stop, mut condition: impl FnMut() -> bool) -> Result<bool, LabError> {
    let deadline = std::time::Instant::now() + patience;
    loop {
        if condition() {
            return Ok(true);
        }
        if stop.is_requested() {
            return Err(LabError::Interrupted);
        }
        if std::time::Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
