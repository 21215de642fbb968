//! Settings of a flow controller: the rate of tokens, their value, and the order of writers.

use std::fmt;
use std::time::Duration;

/// A number of tokens or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many.
    Limited(u32),
    /// As many as anybody wants.
    Unlimited,
}

/// Which of the writers that wait for tokens gets them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheduling {
    /// The writer with the highest TRANSPORT_PRIORITY; writers of one priority take turns, a datagram each.
    HighestPriorityFirst,
    /// The writer whose oldest waiting sample has to arrive first: when it was written plus the writer's LATENCY_BUDGET.
    #[default]
    EarliestDeadlineFirst,
    /// All take turns, a datagram each.
    RoundRobin,
}

/// A token bucket: asynchronous writers send only datagrams that its tokens pay for.
///
/// The sustained rate is `tokens_added_per_period × bytes_per_token ÷ period`, the largest burst
/// `max_tokens × bytes_per_token`. Tokens come evenly, nanosecond by nanosecond, not all at the start of each period. Every
/// destination of a datagram is paid for, in bytes of UDP payload. A datagram that costs more than the bucket holds waits
/// until the bucket is full and leaves it in debt, so that the rate holds and nothing waits for ever.
///
/// The default lets everything through at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControllerSettings {
    /// Tokens that the bucket holds at most; at least 1. Default unlimited: unused tokens are saved for later without bound.
    pub max_tokens: Amount,
    /// Tokens that come in each period; at least 1. Default unlimited: as many as `max_tokens`, or no limit at all where that is
    /// unlimited too.
    pub tokens_added_per_period: Amount,
    /// Tokens that are lost in each period while no writer waits. Default 0. Unlimited: nothing is saved while no writer waits,
    /// so that the first datagram after a pause waits for its tokens.
    pub tokens_leaked_per_period: Amount,
    /// The time that the two amounts above refer to. Default 1 s, at least 1 ns, at most [`PERIOD_MAX`].
    pub period: Duration,
    /// Bytes that a token pays for; at least 1. Default unlimited: a token pays for one datagram of any size to one destination.
    pub bytes_per_token: Amount,
    /// Which writer goes next.
    pub scheduling: Scheduling,
}

/// The longest period of a flow controller.
pub const PERIOD_MAX: Duration = Duration::from_secs(86_400);

impl Default for FlowControllerSettings {
    fn default() -> FlowControllerSettings {
        FlowControllerSettings {
            max_tokens: Amount::Unlimited,
            tokens_added_per_period: Amount::Unlimited,
            tokens_leaked_per_period: Amount::Limited(0),
            period: Duration::from_secs(1),
            bytes_per_token: Amount::Unlimited,
            scheduling: Scheduling::default(),
        }
    }
}

impl FlowControllerSettings {
    /// Initial settings of the controller [`BACKGROUND`](crate::qos::BACKGROUND): 100 Mbit/s, in bursts of at most 125,000 bytes.
    ///
    /// A tenth of a gigabit link, and all that the slowest link in common use carries. While it sends without a pause, its bursts are
    /// of 2,500 bytes or one datagram; only after a pause one keeps a gigabit link busy for a millisecond. The bucket covers the
    /// largest datagram on this host and the milliseconds in which the I/O thread of a busy host does not run.
    pub fn background() -> FlowControllerSettings {
        FlowControllerSettings {
            max_tokens: Amount::Limited(100),
            tokens_added_per_period: Amount::Limited(10),
            tokens_leaked_per_period: Amount::Limited(0),
            period: Duration::from_millis(1),
            bytes_per_token: Amount::Limited(1_250),
            scheduling: Scheduling::HighestPriorityFirst,
        }
    }

    /// This many bytes a second; bursts of 10 ms of that rate and one datagram of the largest size. A token is a byte.
    pub fn bytes_per_second(rate: u32) -> FlowControllerSettings {
        FlowControllerSettings {
            max_tokens: Amount::Limited(rate / 100 + 65_536),
            tokens_added_per_period: Amount::Limited(rate),
            bytes_per_token: Amount::Limited(1),
            scheduling: Scheduling::HighestPriorityFirst,
            ..FlowControllerSettings::default()
        }
    }

    /// Tells whether a controller can work with this.
    ///
    /// # Errors
    /// [`FlowControllerError::Setting`] for an amount of 0 where that would let nothing pass, and a period that is 0 or too
    /// long.
    pub fn check(&self) -> Result<(), FlowControllerError> {
        let refuse = |setting, value: &dyn fmt::Display, reason| {
            Err(FlowControllerError::Setting { setting, value: value.to_string(), reason })
        };
        if self.max_tokens == Amount::Limited(0) {
            return refuse("max_tokens", &0, "nothing fits; hold at least 1 token");
        }
        if self.tokens_added_per_period == Amount::Limited(0) {
            return refuse(
                "tokens_added_per_period",
                &0,
                "no token ever comes and samples would wait for ever; add at least 1",
            );
        }
        if self.bytes_per_token == Amount::Limited(0) {
            return refuse("bytes_per_token", &0, "a token would pay for nothing; at least 1");
        }
        if self.period.is_zero() {
            return refuse("period", &"0 s", "an infinite rate is tokens_added_per_period unlimited; at least 1 ns");
        }
        if self.period > PERIOD_MAX {
            let reason = "at most a day, and tokens are never added on demand";
            return refuse("period", &format_args!("{:?}", self.period), reason);
        }
        Ok(())
    }
}

impl From<u32> for Amount {
    fn from(count: u32) -> Amount {
        Amount::Limited(count)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Limited(count) => count.fmt(f),
            Amount::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheduling::HighestPriorityFirst => "highest priority first",
            Scheduling::EarliestDeadlineFirst => "earliest deadline first",
            Scheduling::RoundRobin => "round robin",
        })
    }
}

/// Why a flow controller cannot be created, changed, found or deleted; displays as a sentence with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowControllerError {
    /// A setting with which nothing would ever be sent, or that cannot be counted with.
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The reason of the refusal, and the possible values.
        reason: &'static str,
    },
    /// A name that is empty or longer than [`NAME_BYTES_MAX`].
    Name,
    /// There is a controller of this name already.
    Exists {
        /// The name.
        name: String,
    },
    /// There is no controller of this name.
    Unknown {
        /// The name.
        name: String,
        /// All that there are.
        existing: Vec<String>,
    },
    /// Writers send under it.
    InUse {
        /// The name.
        name: String,
        /// Number of writers.
        writers: usize,
    },
    /// [`BACKGROUND`](crate::qos::BACKGROUND) is always there.
    Permanent,
}

/// The longest name of a flow controller, in bytes. Chosen by Thalweg, as long as a topic's.
pub const NAME_BYTES_MAX: usize = 255;

impl fmt::Display for FlowControllerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowControllerError::Setting { setting, value, reason } => write!(f, "{setting} {value}: {reason}"),
            FlowControllerError::Name => write!(f, "a name has 1 to {NAME_BYTES_MAX} bytes"),
            FlowControllerError::Exists { name } => {
                write!(f, "a flow controller {name:?} exists; change it, or choose another name")
            }
            FlowControllerError::Unknown { name, existing } => {
                write!(f, "no flow controller {name:?}; create it first, or name one of {existing:?}")
            }
            FlowControllerError::InUse { name, writers } => {
                write!(f, "{writers} writers send under the flow controller {name:?}; delete them first")
            }
            FlowControllerError::Permanent => {
                f.write_str("this flow controller is always there; it can only be changed")
            }
        }
    }
}

impl std::error::Error for FlowControllerError {}
