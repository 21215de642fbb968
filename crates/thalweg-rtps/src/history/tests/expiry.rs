//! Samples that expire, against a list of them.

use super::*;
use crate::payload::Payload;
use crate::qos::{History, ResourceLimits};
use crate::rng::Rng;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed, SequenceNumber};

fn sample(rng: &mut Rng, number: i64, expires: Instant) -> CachedSample {
    let writer = EntityId::user_writer(rng.below(2) as u32, Keyed::Yes);
    CachedSample {
        coherent_set: crate::types::SequenceNumber::ZERO,
        related: None,
        payload: Payload::from(&b"\0\x01\0\0x"[..]),
        payload_kind: PayloadKind::Data,
        valid: true,
        writer: Guid::new(GuidPrefix([1; 12]), writer),
        sequence: SequenceNumber(number),
        source_timestamp: None,
        received: Instant::ZERO,
        expires,
        instance: KeyHash([rng.below(3) as u8; 16]),
        change: ChangeKind::Write,
    }
}

/// Samples with one life span, or with many that are mixed with samples that last for ever.
#[test]
fn what_has_expired_goes_and_nothing_else() {
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let keyed = if seed % 2 == 0 { Keyed::No } else { Keyed::Yes };
        let mixed = seed % 3 == 0;
        let mut cache = SampleCache::new(History::KeepAll, ResourceLimits::default(), keyed);
        let mut held: Vec<(i64, Instant)> = Vec::new();
        let mut now = 1_000;
        for number in 1..200 {
            now += rng.below(20);
            let lives = if mixed { rng.below(200) } else { 100 };
            let expires = if mixed && rng.chance(0.1) { Instant::NEVER } else { Instant::from_nanos(now + 1 + lives) };
            assert_eq!(cache.insert(sample(&mut rng, number, expires)), Insert::Stored);
            held.push((number, expires));
            if rng.chance(0.2) {
                let takes = rng.chance(0.5);
                let filter = ReadFilter::ALL;
                let (max, mut got) = (rng.below(4) as usize, Vec::new());
                match takes {
                    true => cache.take(max, &filter, &mut got),
                    false => cache.read(max, &filter, &mut got),
                };
                let got: Vec<i64> = got.iter().map(|sample| sample.info.sequence.0).collect();
                let first: Vec<i64> = held.iter().take(max).map(|(number, _)| *number).collect();
                assert_eq!(got, first, "seed {seed}");
                held.retain(|(number, _)| !takes || !got.contains(number));
            }
            if rng.chance(0.1) && !held.is_empty() {
                let (number, _) = held[rng.below(held.len() as u64) as usize];
                let chosen = |writer| (Guid::new(GuidPrefix([1; 12]), writer), SequenceNumber(number));
                let writers = [0, 1].map(|writer| EntityId::user_writer(writer, Keyed::Yes));
                assert_eq!(cache.read_chosen(&writers.map(chosen).into(), &mut Vec::new()), 1, "seed {seed}");
            }
            let earliest = held.iter().map(|(_, expires)| *expires).min().unwrap_or(Instant::NEVER);
            assert!(cache.next_expiry() <= earliest, "seed {seed}: it would sleep through");
            if rng.chance(0.4) {
                let at = Instant::from_nanos(now);
                let before = held.len();
                held.retain(|(_, expires)| *expires > at);
                assert_eq!(cache.expire(at), (before - held.len()) as u64, "seed {seed}");
                assert!(cache.next_expiry() > at, "seed {seed}: it would never sleep");
                assert_eq!(cache.len(), held.len());
            }
        }
        cache.expire(Instant::from_nanos(now + 1_000));
        let lasting = held.iter().filter(|(_, expires)| *expires == Instant::NEVER).count();
        assert_eq!((cache.len(), cache.next_expiry()), (lasting, Instant::NEVER));
        if lasting == 0 {
            assert_eq!(cache.bytes(), 0);
        }
    }
}
