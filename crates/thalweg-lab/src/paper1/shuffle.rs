//! An order that chance gives and a recorded seed repeats.

/// A stream of numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Shuffle(u64);

impl Shuffle {
    pub(super) fn new(seed: u64) -> Shuffle {
        Shuffle(seed)
    }

    /// The numbers below `count` in an order that the next numbers of the stream give.
    pub(super) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut out: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let chosen = (self.next() % (last as u64 + 1)) as usize;
            out.swap(last, chosen);
        }
        out
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::Shuffle;

    #[test]
    fn a_seed_repeats_its_orders_and_no_other_does() {
        let orders = |seed| {
            let mut shuffle = Shuffle::new(seed);
            [(); 4].map(|()| shuffle.order(8))
        };
        assert_eq!(orders(7), orders(7));
        assert_ne!(orders(7), orders(8));
        for mut order in orders(7) {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7], "everybody has one turn");
        }
        assert!(Shuffle::new(1).order(0).is_empty());
    }
}
