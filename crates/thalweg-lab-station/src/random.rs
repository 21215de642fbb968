//! Chance that a recorded seed repeats.

/// A stream of numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The numbers below `count` in an order that the next numbers of the stream give.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut out: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            out.swap(last, self.below(last + 1));
        }
        out
    }

    /// A number below `count`; 0 where `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        // The remainder favours small numbers by less than one in 2^32 for any count that occurs.
        (self.draw() % (count as u64).max(1)) as usize
    }

    /// A number from 0 to just below 1.
    pub fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts the next numbers of the stream into `octets`.
    pub fn fill(&mut self, octets: &mut [u8]) {
        for chunk in octets.chunks_mut(size_of::<u64>()) {
            chunk.copy_from_slice(&self.draw().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Whether something happens that does with this probability (0 to 1).
    pub fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.share() < probability
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_repeats_its_orders_and_no_other_does() {
        let orders = |seed| {
            let mut random = Random::new(seed);
            [(); 4].map(|()| random.order(8))
        };
        assert_eq!(orders(7), orders(7));
        assert_ne!(orders(7), orders(8));
        for mut order in orders(7) {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7], "everybody has one turn");
        }
        assert!(Random::new(1).order(0).is_empty());
    }
    #[test]
    fn octets_follow_from_the_seed_whatever_their_number() {
        let filled = |seed, count| {
            let mut octets = vec![0; count];
            Random::new(seed).fill(&mut octets);
            octets
        };
        let long = filled(7, 65_536);
        assert_eq!(filled(7, 13), long[..13]);
        assert_ne!(filled(8, 13), filled(7, 13));
        let mut counts = [0_u32; 256];
        long.iter().for_each(|octet| counts[usize::from(*octet)] += 1);
        assert!(
            counts.iter().all(|count| (150..400).contains(count)),
            "each of 256 values about 256 times: {counts:?}"
        );
    }
}
