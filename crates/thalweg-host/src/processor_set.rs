//! Sets of processors, in the words of the kernel.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Logical processors, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorSet(BTreeSet<usize>);

impl ProcessorSet {
    /// Reads a list such as `0-3,8`; `None` where it is none.
    pub fn parse(list: &str) -> Option<ProcessorSet> {
        let mut processors = BTreeSet::new();
        for part in list.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last > PROCESSOR_MAX {
                return None;
            }
            processors.extend(first..=last);
        }
        Some(ProcessorSet(processors))
    }

    /// As a mask in words of 32 bits, the highest first, such as `f` or `1,00000003`.
    pub fn to_mask(&self) -> String {
        let word = |number: usize| {
            let is_in = |bit: &usize| self.0.contains(&(32 * number + bit));
            (0..32).filter(is_in).fold(0_u32, |word, bit| word | (1_u32 << bit))
        };
        let highest = self.0.last().map_or(0, |last| last / 32);
        let mut mask = format!("{:x}", word(highest));
        for number in (0..highest).rev() {
            mask.push_str(&format!(",{:08x}", word(number)));
        }
        mask
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this processor is one of them.
    pub fn has(&self, processor: usize) -> bool {
        self.0.contains(&processor)
    }

    /// Whether all of them are among `others`.
    pub fn is_within(&self, others: &ProcessorSet) -> bool {
        self.0.is_subset(&others.0)
    }

    /// Those that are not among `others`.
    pub fn without(&self, others: &ProcessorSet) -> ProcessorSet {
        self.iter().filter(|processor| !others.has(*processor)).collect()
    }

    /// Their numbers, the lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().copied()
    }
}

impl FromIterator<usize> for ProcessorSet {
    fn from_iter<Numbers: IntoIterator<Item = usize>>(numbers: Numbers) -> ProcessorSet {
        ProcessorSet(numbers.into_iter().collect())
    }
}

impl fmt::Display for ProcessorSet {
    /// As a list such as `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for processor in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == processor => *last = processor,
                _ => ranges.push((processor, processor)),
            }
        }
        let range = |(first, last): &(usize, usize)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        f.write_str(&ranges.iter().map(range).collect::<Vec<_>>().join(","))
    }
}

/// Far more than the kernel has room for (8192).
const PROCESSOR_MAX: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks_are_those_of_the_kernel() {
        let check = |list: &str, mask: &str| {
            let set = ProcessorSet::parse(list).unwrap_or_else(|| panic!("{list} is no list"));
            assert_eq!((set.to_string().as_str(), set.to_mask().as_str()), (list, mask));
        };
        check("0", "1");
        check("0,2-3", "d");
        check("0-31", "ffffffff");
        check("0-1,32", "1,00000003");
        check("64", "1,00000000,00000000");
        for text in ["", "3-1", "a", "0-", "0-4294967295"] {
            assert_eq!(ProcessorSet::parse(text), None, "{text:?}");
        }
        assert_eq!(ProcessorSet::default().to_mask(), "0");
    }

    #[test]
    fn a_set_without_another_has_the_rest() {
        let of = |list: &str| ProcessorSet::parse(list).expect("a list");
        assert_eq!(of("0-3").without(&of("1,7")), of("0,2-3"));
        assert!(of("1,3").is_within(&of("0-3")) && !of("1,4").is_within(&of("0-3")));
        assert!(of("2").has(2) && !of("2").has(0) && of("2").without(&of("2")).is_empty());
        assert_eq!((of("0-3,8").len(), of("3,1").iter().next()), (5, Some(1)));
    }
}
