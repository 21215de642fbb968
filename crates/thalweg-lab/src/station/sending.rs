//! By what way a station's samples travel, in a form that orders, results and profiles can hold.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg::qos;

/// TRANSMISSION of a measured writer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    /// How samples share datagrams.
    #[serde(flatten)]
    pub method: PackingMethod,
    /// Where datagrams go to.
    #[serde(default)]
    pub destination: Addressing,
    /// Largest datagram in bytes, where a path takes larger ones; missing means as large as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_datagram_bytes: Option<u64>,
    /// Microseconds until a reader is asked again for an acknowledgement; missing means the usual period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_period_us: Option<u64>,
    /// TRANSPORT_PRIORITY: the DSCP of its datagrams, 0 to 63.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
}

/// How samples share datagrams, see [`thalweg::qos::Method`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum PackingMethod {
    /// What the writer finds best.
    #[default]
    Auto,
    /// Each sample at once, in a datagram of its own.
    Immediate,
    /// Samples wait for each other; each stays a submessage of its own.
    Coalesce(PackingLimits),
    /// Samples wait for each other and leave as one submessage.
    Batch(PackingLimits),
    /// The I/O thread sends when a flow controller grants tokens.
    Asynchronous {
        /// Name of the flow controller.
        flow_controller: String,
    },
}

/// What lets collected samples leave; whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackingLimits {
    /// Bytes of serialized samples.
    pub max_bytes: u64,
    /// Samples; missing means any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_samples: Option<u64>,
    /// Microseconds since the first of them was written.
    pub max_flush_delay_us: u64,
}

/// How a writer addresses its readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// What costs less.
    #[default]
    Auto,
    /// A copy for each reading participant.
    Unicast,
    /// The readers' group where they announce one.
    Multicast,
}

impl fmt::Display for Addressing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Addressing::Auto => "auto",
            Addressing::Unicast => "unicast",
            Addressing::Multicast => "multicast",
        })
    }
}

impl Sending {
    /// This method, and a destination that the writer chooses.
    pub fn by(method: PackingMethod) -> Sending {
        Sending { method, ..Sending::default() }
    }

    /// The same as a policy of a writer.
    pub fn to_qos(&self) -> qos::Transmission {
        let method = match &self.method {
            PackingMethod::Auto => qos::Method::Auto,
            PackingMethod::Immediate => qos::Method::Immediate,
            PackingMethod::Coalesce(limits) => qos::Method::Coalesce(limits.to_qos()),
            PackingMethod::Batch(limits) => qos::Method::Batch(limits.to_qos()),
            PackingMethod::Asynchronous { flow_controller } => qos::Method::asynchronous(flow_controller),
        };
        let destination = match self.destination {
            Addressing::Auto => qos::Destination::Auto,
            Addressing::Unicast => qos::Destination::Unicast,
            Addressing::Multicast => qos::Destination::Multicast,
        };
        let usual = qos::Transmission::default();
        let most = self.max_datagram_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        qos::Transmission {
            method,
            destination,
            max_datagram_bytes: most.unwrap_or(usual.max_datagram_bytes),
            heartbeat_period: self.heartbeat_period_us.map_or(usual.heartbeat_period, Duration::from_micros),
        }
    }
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

impl fmt::Display for Sending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_qos().method)?;
        if let chosen @ (Addressing::Unicast | Addressing::Multicast) = self.destination {
            write!(f, ", {chosen}")?;
        }
        if let Some(bytes) = self.max_datagram_bytes {
            write!(f, ", datagrams of at most {bytes} B")?;
        }
        if let Some(micros) = self.heartbeat_period_us {
            write!(f, ", HEARTBEAT every {:?}", Duration::from_micros(micros))?;
        }
        Ok(())
    }
}

impl PackingLimits {
    fn to_qos(self) -> qos::Limits {
        // A 32-bit machine holds no more samples or bytes than it can count.
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        qos::Limits {
            max_bytes: size(self.max_bytes),
            max_samples: self.max_samples.map_or(usize::MAX, size),
            max_flush_delay: Duration::from_micros(self.max_flush_delay_us),
        }
    }
}

impl Default for PackingLimits {
    fn default() -> PackingLimits {
        let limits = qos::Limits::default();
        PackingLimits {
            max_bytes: limits.max_bytes as u64,
            max_samples: (limits.max_samples != usize::MAX).then_some(limits.max_samples as u64),
            max_flush_delay_us: u64::try_from(limits.max_flush_delay.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reaches_the_writers_policy_and_survives_json() {
        let limits = PackingLimits { max_bytes: 8_000, max_samples: Some(64), max_flush_delay_us: 250 };
        let expect = qos::Limits { max_bytes: 8_000, max_samples: 64, max_flush_delay: Duration::from_micros(250) };
        for (method, expect) in [
            (PackingMethod::Auto, qos::Method::Auto),
            (PackingMethod::Immediate, qos::Method::Immediate),
            (PackingMethod::Coalesce(limits), qos::Method::Coalesce(expect)),
            (PackingMethod::Batch(PackingLimits::default()), qos::Method::batch()),
            (PackingMethod::Asynchronous { flow_controller: "slow".into() }, qos::Method::asynchronous("slow")),
        ] {
            let sending = Sending {
                destination: Addressing::Multicast,
                max_datagram_bytes: Some(1_400),
                heartbeat_period_us: Some(5_000),
                ..Sending::by(method)
            };
            assert_eq!(sending.to_qos().max_datagram_bytes, 1_400);
            assert_eq!(sending.to_qos().heartbeat_period, Duration::from_millis(5));
            assert_eq!(sending.to_qos().method, expect);
            assert_eq!(sending.to_qos().destination, qos::Destination::Multicast);
            let text = serde_json::to_string(&sending).expect("json");
            assert_eq!(serde_json::from_str::<Sending>(&text).expect(&text), sending);
        }
    }
}
