//! Clocks that disagree: each host counts from its own zero at its own pace.

use thalweg_rtps::time::Instant;

/// Monotonic clock of one host as a function of the world's time.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// Its time at the world's zero, in nanoseconds.
    pub offset_nanos: u64,
    /// Microseconds that it gains in each second; negative when it is slow.
    pub drift_ppm: i32,
}

const MILLION: i128 = 1_000_000;

impl HostClock {
    /// A clock that shows the world's time.
    pub const EXACT: HostClock = HostClock { offset_nanos: 0, drift_ppm: 0 };

    /// The time of the clock at `world`.
    pub fn local(&self, world: Instant) -> Instant {
        let passed = i128::from(world.as_nanos());
        let shown = passed + passed * i128::from(self.drift_ppm) / MILLION;
        Instant::from_nanos(self.offset_nanos.saturating_add(to_nanos(shown)))
    }

    /// The earliest time of the world at which the clock shows at least `local`.
    pub fn world(&self, local: Instant) -> Instant {
        if local == Instant::NEVER {
            return Instant::NEVER;
        }
        let shown = i128::from(local.as_nanos().saturating_sub(self.offset_nanos));
        let pace = MILLION + i128::from(self.drift_ppm);
        let mut world = Instant::from_nanos(to_nanos(shown * MILLION / pace));
        // Both divisions round: a step or two is missing at most.
        while self.local(world) < local {
            world = Instant::from_nanos(world.as_nanos() + 1);
        }
        world
    }
}

fn to_nanos(nanos: i128) -> u64 {
    u64::try_from(nanos).unwrap_or(if nanos < 0 { 0 } else { u64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_in_local_time_is_never_reached_early() {
        for drift_ppm in [-500, -1, 0, 1, 300] {
            let clock = HostClock { offset_nanos: 12_345, drift_ppm };
            for nanos in [0, 1, 999, 1_000_003, 5_000_000_000, 86_400_000_000_007] {
                let local = Instant::from_nanos(12_345 + nanos);
                let world = clock.world(local);
                assert!(clock.local(world) >= local, "{nanos} ns at {drift_ppm} ppm");
                let before = Instant::from_nanos(world.as_nanos().saturating_sub(3));
                assert!(world < Instant::from_nanos(4) || clock.local(before) < local, "{nanos} ns at {drift_ppm} ppm");
            }
            assert_eq!(clock.world(Instant::NEVER), Instant::NEVER);
        }
    }

    #[test]
    fn a_fast_clock_gains() {
        let clock = HostClock { offset_nanos: 0, drift_ppm: 100 };
        assert_eq!(clock.local(Instant::from_nanos(1_000_000_000)).as_nanos(), 1_000_100_000);
    }
}
