//! Which message IDs may be used for a peer.

use std::time::Duration;

use thalweg_base::time::Instant;

use crate::message::MessageId;

/// IDs are freed in groups: one time for each is exact enough and small.
const GROUPS: usize = 16;
const GROUP_BITS: u32 = 12;

/// Message IDs in order; each group of 4096 comes back when the lifetime has passed since it was left.
#[derive(Debug)]
pub struct MessageIds {
    next: u16,
    /// Seconds (from 1) when each group was used last; 0 for never.
    left: [u32; GROUPS],
}

impl MessageIds {
    /// IDs from `first`, which should be random (RFC 7252 §4.4).
    pub fn new(first: u16) -> MessageIds {
        MessageIds { next: first, left: [0; GROUPS] }
    }

    /// When the next ID may be used; `None` for now.
    pub fn blocked_until(&self, now: Instant, lifetime: Duration) -> Option<Instant> {
        let group = self.next >> GROUP_BITS;
        let left = self.left[usize::from(group)];
        if left == 0 || self.next != group << GROUP_BITS {
            return None;
        }
        // The second was rounded down when it was noted.
        let until = Instant::ZERO + Duration::from_secs(u64::from(left)) + lifetime;
        (now < until).then_some(until)
    }

    /// The next ID, whether or not the lifetime allows it.
    pub fn next(&mut self, now: Instant) -> MessageId {
        let id = self.next;
        self.next = id.wrapping_add(1);
        if self.next.trailing_zeros() >= GROUP_BITS {
            self.left[usize::from(id >> GROUP_BITS)] = seconds(now) + 1;
        }
        MessageId(id)
    }
}

/// Whole seconds of an instant.
pub fn seconds(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn no_id_comes_back_within_its_lifetime() {
        let lifetime = Duration::from_secs(247);
        let mut ids = MessageIds::new(70);
        let mut used = HashMap::new();
        let mut now = Instant::from_nanos(5_300_000_000);
        let mut waits = 0;
        for _ in 0..200_000 {
            now += Duration::from_millis(1);
            if let Some(until) = ids.blocked_until(now, lifetime) {
                assert!(until > now);
                now = until;
                waits += 1;
            }
            if let Some(before) = used.insert(ids.next(now), now) {
                assert!(now.since(before) >= lifetime, "an ID came back after {:?}", now.since(before));
            }
        }
        assert!((2..=48).contains(&waits), "it waits when it has gone round, at most once a group: {waits}");
    }

    #[test]
    fn slow_traffic_never_waits() {
        let mut ids = MessageIds::new(65_000);
        let mut now = Instant::ZERO;
        for _ in 0..200_000 {
            now += Duration::from_millis(4);
            assert_eq!(ids.blocked_until(now, Duration::from_secs(240)), None);
            ids.next(now);
        }
    }
}
