//! Which pixels of a frame have arrived.

use std::ops::Range;

use crate::format::VideoFormat;

/// A bit for each pixel group of a frame, line after line.
#[derive(Debug)]
pub(super) struct Coverage {
    words: Box<[u64]>,
    line_groups: usize,
    groups: usize,
    covered: usize,
}

impl Coverage {
    pub(super) fn new(format: VideoFormat) -> Coverage {
        let line_groups = usize::from(format.width() / format.pixels().group().pixels);
        let groups = line_groups * usize::from(format.height());
        Coverage { words: vec![0; groups.div_ceil(64)].into(), line_groups, groups, covered: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.covered = 0;
    }

    /// Marks groups of a line as arrived; tells how many were missing before.
    pub(super) fn cover(&mut self, line: usize, groups: Range<usize>) -> usize {
        let mut new = 0;
        for (word, mask) in masks(self.absolute(line, groups)) {
            let word = &mut self.words[word];
            // Most are: counting bits takes a dozen instructions where the processor may not be asked to.
            let is_whole = *word == 0 && mask == u64::MAX;
            new += if is_whole { 64 } else { (mask & !*word).count_ones() as usize };
            *word |= mask;
        }
        self.covered += new;
        new
    }

    pub(super) fn is_complete(&self) -> bool {
        self.covered == self.groups
    }

    /// Groups that are missing.
    pub(super) fn missing(&self) -> usize {
        self.groups - self.covered
    }

    /// Whether all these groups of a line have arrived.
    pub(super) fn is_covered(&self, line: usize, groups: Range<usize>) -> bool {
        masks(self.absolute(line, groups)).all(|(word, mask)| self.words[word] & mask == mask)
    }

    /// The runs of missing groups of a line, from left to right.
    pub(super) fn missing_runs(&self, line: usize) -> impl Iterator<Item = Range<usize>> {
        let base = line * self.line_groups;
        let end = base + self.line_groups;
        let mut at = base;
        std::iter::from_fn(move || {
            let start = self.find(at..end, Bit::Missing).filter(|start| *start < end)?;
            at = self.find(start..end, Bit::Covered).unwrap_or(end);
            Some(start - base..at - base)
        })
    }

    fn absolute(&self, line: usize, groups: Range<usize>) -> Range<usize> {
        line * self.line_groups + groups.start..line * self.line_groups + groups.end
    }

    /// The first bit of a kind in a range.
    fn find(&self, range: Range<usize>, wanted: Bit) -> Option<usize> {
        masks(range).find_map(|(word, mask)| {
            let bits = match wanted {
                Bit::Covered => self.words[word] & mask,
                Bit::Missing => !self.words[word] & mask,
            };
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

#[derive(Clone, Copy)]
enum Bit {
    Covered,
    Missing,
}

/// The words that a range of bits lies in, each with the bits of it.
fn masks(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = if range.is_empty() { 0..0 } else { range.start / 64..(range.end - 1) / 64 + 1 };
    words.map(move |word| {
        let low = range.start.saturating_sub(word * 64);
        let high = (range.end - word * 64).min(64);
        (word, (u64::MAX >> (64 - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FrameRate, PixelFormat, Scan};

    #[test]
    fn runs_are_what_a_list_of_flags_says() {
        let mut rng = thalweg_base::rng::Rng::new(1);
        for width in [1, 63, 64, 65, 200] {
            let format = VideoFormat::new(PixelFormat::Rgb8, (width, 5), FrameRate::PAL, Scan::Progressive).unwrap();
            let groups = usize::from(width);
            let mut coverage = Coverage::new(format);
            let mut flags = vec![false; 5 * groups];
            for _ in 0..60 {
                let line = rng.below(5) as usize;
                let start = rng.below(u64::from(width) + 1) as usize;
                let end = (start + rng.below(70) as usize).min(groups);
                let range = &mut flags[line * groups + start..line * groups + end];
                let new = range.iter().filter(|flag| !**flag).count();
                let was_covered = new == 0;
                range.fill(true);
                assert_eq!(coverage.is_covered(line, start..end), was_covered);
                assert_eq!(coverage.cover(line, start..end), new);
                assert_eq!(coverage.missing(), flags.iter().filter(|flag| !**flag).count());
                for line in 0..5 {
                    let mut missing = vec![false; groups];
                    let mut last_end = None;
                    for run in coverage.missing_runs(line) {
                        assert!(!run.is_empty() && last_end < Some(run.start), "runs are apart");
                        last_end = Some(run.end);
                        missing[run].fill(true);
                    }
                    assert!(missing.iter().zip(&flags[line * groups..]).all(|(missing, flag)| missing != flag));
                }
            }
            for line in 0..5 {
                coverage.cover(line, 0..groups);
            }
            assert!(coverage.is_complete());
            coverage.clear();
            assert_eq!((coverage.missing(), coverage.is_complete()), (5 * groups, false));
        }
    }
}
