//! The limit on requests of one peer.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use thalweg_base::time::Instant;

use crate::endpoint::{Peer, PeerHost};

/// The limit on requests of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRate {
    /// Requests a second in the long run, at least 1.
    pub requests_per_second: u32,
    /// Requests at once after a pause, at least 1.
    pub burst: u32,
}

/// A token bucket for each address, in a table of fixed size. Addresses that fall on the same place take turns there, and
/// each begins with a full bucket: crowding makes the limit weaker, never stricter.
///
/// A peer is a host here, not a port or an address of its network: else a client would get around the limit by another one.
#[derive(Debug)]
pub struct RateLimit {
    rate: PeerRate,
    buckets: Vec<Bucket>,
    hasher: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    host: Option<PeerHost>,
    /// When the bucket will be full again if nothing is taken.
    full_at: Instant,
}

impl RateLimit {
    /// Full buckets for all peers.
    pub fn new(rate: PeerRate) -> RateLimit {
        let empty = Bucket { host: None, full_at: Instant::ZERO };
        RateLimit { rate, buckets: vec![empty; BUCKETS], hasher: RandomState::new() }
    }

    /// Takes a token of `address`.
    ///
    /// # Errors
    /// When it has none left; the error is when it has one again.
    pub fn take(&mut self, now: Instant, address: IpAddr) -> Result<(), Duration> {
        let host = Peer::from((address, 0)).host();
        let place = self.hasher.hash_one(host) as usize % BUCKETS;
        let token = Duration::from_secs(1) / self.rate.requests_per_second.max(1);
        let bucket = &mut self.buckets[place];
        if bucket.host != Some(host) {
            *bucket = Bucket { host: Some(host), full_at: now };
        }
        let full_at = bucket.full_at.max(now) + token;
        let over = full_at.since(now).saturating_sub(token * self.rate.burst.max(1));
        if over.is_zero() {
            bucket.full_at = full_at;
            Ok(())
        } else {
            Err(over)
        }
    }
}

/// 4,096 places of 32 bytes.
const BUCKETS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn a_peer_gets_its_burst_and_then_its_rate_and_others_do_not_notice() {
        let mut limit = RateLimit::new(PeerRate { requests_per_second: 10, burst: 3 });
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..3 {
            assert_eq!(limit.take(at(0), one), Ok(()));
        }
        assert_eq!(limit.take(at(0), one), Err(Duration::from_millis(100)));
        assert_eq!(limit.take(at(40), one), Err(Duration::from_millis(60)));
        assert_eq!(limit.take(at(40), other), Ok(()));
        assert_eq!(limit.take(at(100), one), Ok(()));
        assert!(limit.take(at(100), one).is_err());
        for _ in 0..3 {
            assert_eq!(limit.take(at(5000), one), Ok(()));
        }
        assert!(limit.take(at(5000), one).is_err());
    }

    #[test]
    fn a_host_has_one_bucket_whatever_address_of_its_network_it_takes() {
        let mut limit = RateLimit::new(PeerRate { requests_per_second: 1, burst: 1 });
        let address = |network: u16, last: u16| IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, last]);
        assert_eq!(limit.take(at(0), address(1, 1)), Ok(()));
        assert!(limit.take(at(0), address(1, 2)).is_err());
        assert_eq!(limit.take(at(0), address(2, 1)), Ok(()));
    }

    #[test]
    fn an_address_that_loses_its_place_is_not_punished() {
        let mut limit = RateLimit::new(PeerRate { requests_per_second: 1, burst: 1 });
        let addresses = |third: u8| (0..=255u8).map(move |last| IpAddr::from([10, 0, third, last]));
        let granted = (0..=255).flat_map(addresses).filter(|address| limit.take(at(0), *address).is_ok()).count();
        assert_eq!(granted, 65_536);
    }
}
