//! Sets of sequence and fragment numbers within a window of 256 (RTPS 2.5 §9.4.2.6 and §9.4.2.8).

use std::fmt;

use super::WireError;
use super::cursor::Cursor;
use crate::types::SequenceNumber;

/// Widest window that the format can express, in numbers.
const BITS_MAX: u32 = 256;
const WORDS_MAX: usize = 8;

/// The window as it travels: bit 0 is the most significant bit of the first word.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Bitmap {
    bits: u32,
    words: [u32; WORDS_MAX],
}

impl Bitmap {
    fn insert(&mut self, index: u32) -> bool {
        if index >= BITS_MAX {
            return false;
        }
        self.words[(index / 32) as usize] |= mask(index);
        self.bits = self.bits.max(index + 1);
        true
    }

    fn contains(&self, index: u32) -> bool {
        index < self.bits && self.words[(index / 32) as usize] & mask(index) != 0
    }

    fn iter(&self) -> Indices {
        Indices { words: self.words, word: 0 }
    }

    fn last(&self) -> Option<u32> {
        let word = self.words.iter().rposition(|word| *word != 0)?;
        Some(word as u32 * 32 + 31 - self.words[word].trailing_zeros())
    }

    /// The words that travel.
    fn used_words(&self) -> &[u32] {
        &self.words[..self.bits.div_ceil(32) as usize]
    }

    fn parse(cursor: &mut Cursor<'_>) -> Result<Bitmap, WireError> {
        let error = cursor.error("numBits of at most 256");
        let bits = cursor.u32("numBits")?;
        if bits > BITS_MAX {
            return Err(error);
        }
        let mut bitmap = Bitmap { bits, words: [0; WORDS_MAX] };
        for word in &mut bitmap.words[..bits.div_ceil(32) as usize] {
            *word = cursor.u32("word of a bitmap")?;
        }
        // Bits behind numBits say nothing; peers leave garbage there.
        if !bits.is_multiple_of(32) {
            bitmap.words[(bits / 32) as usize] &= !(u32::MAX >> (bits % 32));
        }
        Ok(bitmap)
    }
}

/// Positions of the bits that are set, ascending.
#[derive(Clone, Debug)]
struct Indices {
    words: [u32; WORDS_MAX],
    word: usize,
}

impl Iterator for Indices {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while let Some(word) = self.words.get_mut(self.word) {
            if *word != 0 {
                let bit = word.leading_zeros();
                *word &= !mask(bit);
                return Some(self.word as u32 * 32 + bit);
            }
            self.word += 1;
        }
        None
    }
}

fn mask(index: u32) -> u32 {
    0x8000_0000 >> (index % 32)
}

/// Sequence numbers out of the 256 from a base on: the missing ones of an ACKNACK or the irrelevant ones of a GAP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SequenceSet {
    base: SequenceNumber,
    bitmap: Bitmap,
}

impl SequenceSet {
    /// The empty set whose window starts at `base`.
    pub fn new(base: SequenceNumber) -> SequenceSet {
        SequenceSet { base, bitmap: Bitmap::default() }
    }

    /// As [`SequenceSet::new`], with a base that can be written: from 0 up to 256 below the highest sequence number.
    pub fn at(base: SequenceNumber) -> SequenceSet {
        SequenceSet::new(base.clamp(SequenceNumber::ZERO, SequenceNumber(i64::MAX - i64::from(BITS_MAX))))
    }

    /// First number of the window; in an ACKNACK everything below it is acknowledged.
    pub fn base(&self) -> SequenceNumber {
        self.base
    }

    /// Numbers that a set can hold.
    pub(crate) const NUMBERS_MAX: i64 = BITS_MAX as i64;

    /// Width of the window that travels (`numBits`), 0 to 256.
    pub fn bits(&self) -> u32 {
        self.bitmap.bits
    }

    /// Adds `number` and widens the window to it; false, with nothing changed, when it is below the base or 256 or more above.
    pub fn insert(&mut self, number: SequenceNumber) -> bool {
        u32::try_from(number - self.base).is_ok_and(|index| self.bitmap.insert(index))
    }

    /// True when `number` is a member.
    pub fn contains(&self, number: SequenceNumber) -> bool {
        u32::try_from(number - self.base).is_ok_and(|index| self.bitmap.contains(index))
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = SequenceNumber> + use<> {
        let base = self.base;
        self.bitmap.iter().map(move |index| base + i64::from(index))
    }

    /// True without members, however wide the window is.
    pub fn is_empty(&self) -> bool {
        self.last().is_none()
    }

    /// The highest member.
    pub fn last(&self) -> Option<SequenceNumber> {
        self.bitmap.last().map(|index| self.base + i64::from(index))
    }

    /// Accepts base 0 as well: pre-emptive ACKNACKs of RTI and Fast DDS carry it.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<SequenceSet, WireError> {
        let error = cursor.error("set base from 0 up to 256 below the highest sequence number");
        let base = cursor.sequence_number()?;
        if base < SequenceNumber::ZERO || base.0 > i64::MAX - i64::from(BITS_MAX) {
            return Err(error);
        }
        Ok(SequenceSet { base, bitmap: Bitmap::parse(cursor)? })
    }

    /// Words of the bitmap that travel.
    pub(super) fn words(&self) -> &[u32] {
        self.bitmap.used_words()
    }
}

/// Fragment numbers out of the 256 from a base on: the missing ones of a NACK_FRAG. Fragments count from 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FragmentSet {
    base: u32,
    bitmap: Bitmap,
}

impl FragmentSet {
    /// Numbers that a set can hold.
    pub(crate) const NUMBERS_MAX: u32 = BITS_MAX;

    /// The empty set whose window starts at fragment `base`.
    pub fn new(base: u32) -> FragmentSet {
        FragmentSet { base, bitmap: Bitmap::default() }
    }

    /// First number of the window.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// Width of the window that travels (`numBits`), 0 to 256.
    pub fn bits(&self) -> u32 {
        self.bitmap.bits
    }

    /// Adds `number` and widens the window to it; false, with nothing changed, when it is below the base or 256 or more above.
    pub fn insert(&mut self, number: u32) -> bool {
        number.checked_sub(self.base).is_some_and(|index| self.bitmap.insert(index))
    }

    /// Widens the window to `number` without making it a member; false, with nothing changed, where it does not reach.
    pub fn widen_to(&mut self, number: u32) -> bool {
        let index = number.checked_sub(self.base).filter(|index| *index < BITS_MAX);
        self.bitmap.bits = index.map_or(self.bitmap.bits, |index| self.bitmap.bits.max(index + 1));
        index.is_some()
    }

    /// True when `number` is a member.
    pub fn contains(&self, number: u32) -> bool {
        number.checked_sub(self.base).is_some_and(|index| self.bitmap.contains(index))
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let base = self.base;
        self.bitmap.iter().map(move |index| base.saturating_add(index))
    }

    /// True without members, however wide the window is.
    pub fn is_empty(&self) -> bool {
        self.last().is_none()
    }

    /// The highest member.
    pub fn last(&self) -> Option<u32> {
        self.bitmap.last().map(|index| self.base.saturating_add(index))
    }

    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<FragmentSet, WireError> {
        let error = cursor.error("set base from 1 up to 256 below the highest fragment number");
        let base = cursor.u32("fragment set base")?;
        if base == 0 || base > u32::MAX - BITS_MAX {
            return Err(error);
        }
        Ok(FragmentSet { base, bitmap: Bitmap::parse(cursor)? })
    }

    /// Words of the bitmap that travel.
    pub(super) fn words(&self) -> &[u32] {
        self.bitmap.used_words()
    }
}

impl fmt::Debug for SequenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ", self.base, self.bits())?;
        f.debug_set().entries(self.iter()).finish()
    }
}

impl fmt::Debug for FragmentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ", self.base, self.bits())?;
        f.debug_set().entries(self.iter()).finish()
    }
}
