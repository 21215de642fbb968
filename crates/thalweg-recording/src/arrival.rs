//! Samples as readers hand them over: what may be held of them, and when they came.

use std::time::Duration;

use thalweg::types::Instant;
use thalweg::{Payload, clock};

/// The payload of a sample that waits for long. A short one is copied, as it would keep the whole buffer of its datagram.
pub fn held(payload: &Payload) -> Payload {
    match payload.len() {
        0..COPIED_MAX => Payload::from(&payload[..]),
        _ => payload.clone(),
    }
}

/// The host's clocks at one moment, to tell by the wall clock when samples came.
#[derive(Clone, Copy, Debug)]
pub struct ReceptionClock {
    now: Instant,
    since_epoch: Duration,
}

impl ReceptionClock {
    /// The clocks now.
    pub fn read() -> ReceptionClock {
        ReceptionClock { now: clock::now(), since_epoch: clock::wall_clock().to_unix() }
    }

    /// The reception of a sample in nanoseconds since 1970.
    pub fn log_time_ns(&self, received: Instant) -> u64 {
        let log_time = self.since_epoch.saturating_sub(self.now.since(received));
        u64::try_from(log_time.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Bytes of samples that are copied rather than held in the buffer in which they came.
const COPIED_MAX: usize = 16 << 10;
