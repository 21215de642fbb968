//! Marks of consecutive numbers, the newest of them.

/// A ring of bits for consecutive numbers.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Box<[u64]>,
}

impl Bits {
    pub(super) fn new(capacity: usize) -> Bits {
        Bits { words: vec![0; capacity / 64].into() }
    }

    pub(super) fn capacity(&self) -> u64 {
        64 * self.words.len() as u64
    }

    /// The word and the bit of a number.
    fn place(&self, number: u64) -> (usize, u64) {
        ((number / 64) as usize & (self.words.len() - 1), 1 << (number % 64))
    }

    pub(super) fn get(&self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        self.words[word] & bit != 0
    }

    pub(super) fn set(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.words[word] |= bit;
    }

    /// Clears a bit and tells what it was.
    pub(super) fn take(&mut self, number: u64) -> bool {
        let (word, bit) = self.place(number);
        let was_set = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        was_set
    }

    pub(super) fn clear_all(&mut self) {
        self.words.fill(0);
    }
}
