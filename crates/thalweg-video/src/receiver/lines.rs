//! A set of lines of a frame.

use crate::format::HEIGHT_MAX;

/// Lines of a frame, without memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSet {
    words: [u64; HEIGHT_MAX as usize / 64],
}

impl Default for LineSet {
    fn default() -> LineSet {
        LineSet { words: [0; HEIGHT_MAX as usize / 64] }
    }
}

impl LineSet {
    /// Adds a line; those beyond [`HEIGHT_MAX`] are none.
    pub fn insert(&mut self, line: u16) {
        if let Some(word) = self.words.get_mut(usize::from(line / 64)) {
            *word |= 1 << (line % 64);
        }
    }

    /// The number of lines.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether a line is one of them.
    pub fn contains(&self, line: u16) -> bool {
        self.words.get(usize::from(line / 64)).is_some_and(|word| word >> (line % 64) & 1 != 0)
    }

    /// The lines from top to bottom.
    pub fn iter(&self) -> impl Iterator<Item = u16> {
        (0..HEIGHT_MAX).filter(|line| self.contains(*line))
    }
}
