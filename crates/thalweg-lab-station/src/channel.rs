//! A topic and the behaviour of its endpoints.

use std::time::Duration;

/// Which end of a measurement a process is; where there is a connection, the publisher awaits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// With its number among the publishers, from 0.
    Publisher(u32),
    /// With the numbers of the publishers that it hears.
    Subscriber(Vec<u32>),
}

impl ProcessEnd {
    /// The end of a measurement with one publisher.
    pub const PUBLISHER: ProcessEnd = ProcessEnd::Publisher(0);

    /// The other end of it.
    pub fn subscriber() -> ProcessEnd {
        ProcessEnd::Subscriber(vec![0])
    }
}

/// A topic and the behaviour of its endpoints. All topics but those of open schedules have the type `ThalwegBurst` of `peers/README.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleChannel {
    /// Its name.
    pub topic: String,
    /// What the histories keep.
    pub keep: Keep,
    /// BEST_EFFORT instead of RELIABLE.
    pub best_effort: bool,
    /// TRANSIENT_LOCAL instead of VOLATILE; only where [`Middleware::DURABLE`](crate::Middleware::DURABLE) says so.
    pub durable: bool,
    /// Room in a [`Keep::All`] history for those who cannot do without; `None` leaves it to the middleware.
    pub samples_max: Option<u32>,
    /// How long a write may wait for room.
    pub max_blocking: Duration,
    /// Whether its samples are what is measured, and are sent in the way that the setup names.
    pub is_measured: bool,
}

impl SampleChannel {
    /// A reliable topic that keeps all and is not measured itself.
    pub fn reliable(topic: impl Into<String>) -> SampleChannel {
        SampleChannel {
            topic: topic.into(),
            keep: Keep::All,
            best_effort: false,
            durable: false,
            samples_max: None,
            max_blocking: BLOCKING_MAX,
            is_measured: false,
        }
    }
}

/// What the history of an endpoint keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// All, with room for so many; a write waits while there is none.
    AllOf(u32),
    /// So many of the latest.
    Last(u32),
}

/// How long a write waits where nobody says otherwise: longer than any reader that still works.
const BLOCKING_MAX: Duration = Duration::from_secs(10);
