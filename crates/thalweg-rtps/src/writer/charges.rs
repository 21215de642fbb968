//! What samples that are not cut cost on their way. One that leaves alone costs a datagram of its own, however small it is; those that
//! leave together cost their share of one.

use super::pack::SAMPLE_OVERHEAD_BYTES;
use crate::wire::write;

/// What the last ones were charged, beside what their bytes are worth in full datagrams; older ones count less and less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charges {
    charged: u64,
    worth: u64,
}

impl Charges {
    /// A sample of so many bytes was charged with `cost`.
    pub(super) fn note(&mut self, bytes: usize, cost: u64) {
        let faded = |sum: u64| sum - sum / 32;
        self.charged = faded(self.charged) + cost;
        self.worth = faded(self.worth) + worth(bytes);
    }

    /// What one of so many bytes costs, most likely.
    pub(super) fn of(&self, bytes: usize) -> u64 {
        let worth = worth(bytes);
        let alone = kernel_cost(bytes + SAMPLE_OVERHEAD_BYTES + write::HEADER_LEN);
        (worth * self.charged).checked_div(self.worth).unwrap_or(worth).min(alone)
    }

    /// Those of others where nothing was charged yet.
    pub(super) fn or(self, others: Charges) -> Charges {
        if self.worth > 0 { self } else { others }
    }
}

/// Kernel memory of so many bytes in datagrams that fill Ethernet frames, with their submessages.
pub(super) fn worth(bytes: usize) -> u64 {
    (bytes as u64 + 64) * 7 / 4
}

/// Memory that Linux charges a receive queue for one datagram of `bytes` (socket buffer, shared info, rounding).
pub(super) fn kernel_cost(bytes: usize) -> u64 {
    let data = if bytes < 3_400 { (bytes + 384).next_power_of_two() } else { bytes + bytes / 16 };
    data as u64 + 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_cost_what_the_last_ones_did() {
        let mut charges = Charges::default();
        assert_eq!(charges.of(100), 287, "nothing is known");
        (0..200).for_each(|_| charges.note(100, 1_536));
        assert!((1_400..=1_536).contains(&charges.of(100)), "{}: alone", charges.of(100));
        assert_eq!(charges.of(2_000), 4_608, "no more than a datagram");
        assert_eq!(Charges::default().or(charges).of(100), charges.of(100));
        for round in 0..40 {
            (0..10).for_each(|number| charges.note(100, if number == 0 { 1_536 } else { 148 }));
            assert!(round < 20 || (200..400).contains(&charges.of(100)), "{}: ten in a datagram", charges.of(100));
        }
    }
}
