//! DURABILITY_SERVICE: what is kept for readers that come after samples were acknowledged (DDS 1.4 §2.2.3.5).

use std::time::Duration;

use super::{History, ResourceLimits};

/// What a TRANSIENT or PERSISTENT writer keeps for late readers of samples that the present ones have acknowledged. HISTORY and
/// RESOURCE_LIMITS of the writer bound the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurabilityService {
    /// Time from an instance's dispose and unregistration until its samples go. Default 0.
    pub cleanup_delay: Duration,
    /// How many samples of an instance are kept. Default KEEP_LAST 1; KEEP_ALL keeps what the limits allow, the newest first.
    pub history: History,
    /// Upper bounds on what is kept. Beyond them the oldest samples go. Default none.
    pub resource_limits: ResourceLimits,
}

impl Default for DurabilityService {
    fn default() -> DurabilityService {
        DurabilityService {
            cleanup_delay: Duration::ZERO,
            history: History::KeepLast(1),
            resource_limits: ResourceLimits::default(),
        }
    }
}
