//! Which requests of a peer were accepted before (RFC 8613 §7.4).

use super::partial_iv::PartialIv;

/// A sliding window over the sequence numbers of a peer: numbers below it count as used.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplayWindow {
    size: u32,
    /// One more than the highest number accepted.
    end: u64,
    /// Bit `i` stands for the number `end - 1 - i`.
    used: u64,
}

impl ReplayWindow {
    /// The largest size.
    pub const SIZE_MAX: u32 = u64::BITS;

    /// A window of a peer that has sent nothing. `size` is 1 to [`ReplayWindow::SIZE_MAX`].
    pub fn new(size: u32) -> ReplayWindow {
        ReplayWindow { size: size.clamp(1, ReplayWindow::SIZE_MAX), end: 0, used: 0 }
    }

    /// A window for which all numbers up to `latest` are used.
    pub fn above(size: u32, latest: PartialIv) -> ReplayWindow {
        ReplayWindow { end: latest.number() + 1, used: u64::MAX, ..ReplayWindow::new(size) }
    }

    /// Whether a number was neither accepted before nor is too old to tell.
    pub fn is_free(&self, partial_iv: PartialIv) -> bool {
        let number = partial_iv.number();
        number >= self.end || {
            let age = self.end - 1 - number;
            age < u64::from(self.size) && self.used >> age & 1 == 0
        }
    }

    /// Accepts a number; false when it is not free.
    pub fn accept(&mut self, partial_iv: PartialIv) -> bool {
        if !self.is_free(partial_iv) {
            return false;
        }
        let number = partial_iv.number();
        if number >= self.end {
            let shift = u32::try_from(number + 1 - self.end).unwrap_or(u32::MAX);
            self.used = self.used.checked_shl(shift).unwrap_or(0);
            self.end = number + 1;
        }
        self.used |= 1 << (self.end - 1 - number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iv(number: u64) -> PartialIv {
        PartialIv::new(number).unwrap()
    }

    #[test]
    fn each_number_is_accepted_once_whatever_the_order() {
        for size in [1, 2, 31, 32, 64] {
            let mut window = ReplayWindow::new(size);
            // A fixed walk that jumps ahead, falls behind and repeats itself.
            let mut accepted = std::collections::HashSet::new();
            let mut highest: Option<u64> = None;
            let mut number: u64 = 7;
            for step in 0..20_000_u64 {
                number = (number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step)) >> 3;
                let candidate = step / 4 + number % 80;
                let is_new = !accepted.contains(&candidate)
                    && highest.is_none_or(|highest| candidate + u64::from(size) > highest);
                assert_eq!(window.is_free(iv(candidate)), is_new, "{candidate} after {highest:?}, size {size}");
                assert_eq!(window.accept(iv(candidate)), is_new);
                if is_new {
                    accepted.insert(candidate);
                    highest = highest.max(Some(candidate));
                }
            }
        }
    }

    #[test]
    fn what_is_below_a_known_number_is_used() {
        let mut window = ReplayWindow::above(32, iv(100));
        assert!((0..=100).all(|number| !window.is_free(iv(number))));
        assert!(window.accept(iv(101)) && !window.accept(iv(101)) && !window.accept(iv(100)));
        assert!(window.accept(iv(PartialIv::END - 1)) && window.accept(iv(PartialIv::END - 2)));
        assert!(!window.accept(iv(102)));
    }
}
