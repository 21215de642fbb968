//! A page of a store: many changes of one history in one value of the file, so that a change costs no search of its own.
//!
//! The changes come first, one behind the other; then an entry for each, with its number less that of the page and the place where it
//! ends; then how many there are. All little endian, four bytes each.

use thalweg_rtps::history::StoredChange;
use thalweg_rtps::types::SequenceNumber;

use super::record;

/// Most bytes of a page, unless one change alone has more. Chosen by Thalweg: together with what `redb` adds to it just below 64 KiB,
/// as it gives powers of two out.
pub(super) const PAGE_BYTES_MAX: usize = (64 << 10) - 64;

const ENTRY_BYTES: usize = 8;
const COUNT_BYTES: usize = 4;

/// Where the changes of a page are, and which of them are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    first: SequenceNumber,
    entries: Vec<Entry>,
    /// A bit for each entry, the lowest first; empty while nothing is gone.
    gone: Vec<u8>,
    live: usize,
    live_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Number of the change, less that of the page.
    offset: u32,
    /// Where its bytes end in the page.
    end: u32,
}

/// What is to be done with a page of which changes are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remains {
    /// It holds nothing any more.
    Nothing,
    /// Less than half of its bytes: it is to be written anew without those that are gone.
    Little,
    /// More: it is noted which are gone.
    Much,
}

impl Page {
    fn new(first: SequenceNumber, entries: Vec<Entry>) -> Page {
        let (live, live_bytes) = (entries.len(), entries.last().map_or(0, |last| last.end as usize));
        Page { first, entries, gone: Vec::new(), live, live_bytes }
    }

    /// Reads the entries of a page; `None` where they contradict each other.
    pub(super) fn read(first: SequenceNumber, bytes: &[u8]) -> Option<Page> {
        let (rest, count) = bytes.split_last_chunk::<COUNT_BYTES>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let body = rest.len().checked_sub(count.checked_mul(ENTRY_BYTES)?)?;
        let (pairs, _) = rest[body..].as_chunks::<ENTRY_BYTES>();
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let entry = |pair: &[u8; ENTRY_BYTES]| Entry { offset: number(&pair[..4]), end: number(&pair[4..]) };
        let entries: Vec<Entry> = pairs.iter().map(entry).collect();
        let in_order = entries.is_sorted_by(|one, next| one.offset < next.offset && one.end < next.end);
        let is_whole = entries.last().is_some_and(|last| last.end as usize == body);
        let has_numbers = entries.last().is_some_and(|last| first.0.checked_add(i64::from(last.offset)).is_some());
        (in_order && is_whole && has_numbers).then(|| Page::new(first, entries))
    }

    /// Notes which changes are gone; false where that is of another page.
    pub(super) fn read_gone(&mut self, gone: &[u8]) -> bool {
        if gone.len() != self.entries.len().div_ceil(8) {
            return false;
        }
        for place in 0..self.entries.len() {
            if gone[place / 8] & 1 << (place % 8) != 0 {
                self.take(place);
            }
        }
        self.gone == gone
    }

    /// Which changes are gone, as [`Page::read_gone`] reads it.
    pub(super) fn gone(&self) -> &[u8] {
        &self.gone
    }

    pub(super) fn first(&self) -> SequenceNumber {
        self.first
    }

    /// The greatest number that it ever held.
    pub(super) fn last(&self) -> SequenceNumber {
        self.first + self.entries.last().map_or(0, |last| i64::from(last.offset))
    }

    fn number(&self, place: usize) -> SequenceNumber {
        self.first + i64::from(self.entries[place].offset)
    }

    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.entries[before].end as usize)
    }

    fn is_gone(&self, place: usize) -> bool {
        self.gone.get(place / 8).is_some_and(|byte| byte & 1 << (place % 8) != 0)
    }

    fn take(&mut self, place: usize) {
        if self.is_gone(place) {
            return;
        }
        self.gone.resize(self.entries.len().div_ceil(8), 0);
        self.gone[place / 8] |= 1 << (place % 8);
        self.live -= 1;
        self.live_bytes -= self.entries[place].end as usize - self.start(place);
    }

    /// Changes are gone, whose numbers are in order. Numbers that it does not hold are passed over. False where it held none of them.
    pub(super) fn remove(&mut self, numbers: &[SequenceNumber]) -> bool {
        let before = self.live;
        let mut place = 0;
        for number in numbers {
            place += self.entries[place..].partition_point(|entry| self.first + i64::from(entry.offset) < *number);
            if place == self.entries.len() {
                break;
            }
            if self.number(place) == *number {
                self.take(place);
            }
        }
        self.live < before
    }

    /// Bytes of all its changes, those that are gone included.
    pub(super) fn bytes(&self) -> usize {
        self.entries.last().map_or(0, |last| last.end as usize)
    }

    pub(super) fn remains(&self) -> Remains {
        match self.live_bytes {
            0 => Remains::Nothing,
            live if live <= self.bytes() / 2 => Remains::Little,
            _ => Remains::Much,
        }
    }

    /// Appends to `out` what is left of this page, whose bytes are `bytes`, and returns the page that this makes; `None` where they are
    /// too few.
    pub(super) fn rewrite(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<Page> {
        let begin = out.len();
        let mut entries = Vec::with_capacity(self.live);
        for place in (0..self.entries.len()).filter(|place| !self.is_gone(*place)) {
            let entry = self.entries[place];
            out.extend_from_slice(bytes.get(self.start(place)..entry.end as usize)?);
            entries.push(Entry { end: (out.len() - begin) as u32, ..entry });
        }
        write_entries(&entries, out);
        Some(Page::new(self.first, entries))
    }

    /// The changes that are not gone, of a page whose bytes are `bytes`; `None` for one that cannot be read.
    pub(super) fn changes(&self, bytes: &[u8]) -> impl Iterator<Item = Option<StoredChange>> {
        (0..self.entries.len()).filter(|place| !self.is_gone(*place)).map(move |place| {
            let range = self.start(place)..self.entries[place].end as usize;
            record::read_change(self.number(place), &bytes[range])
        })
    }
}

fn write_entries(entries: &[Entry], out: &mut Vec<u8>) {
    for Entry { offset, end } in entries {
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&end.to_le_bytes());
    }
    out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
}

/// Packs as many of `changes` into a page as fit, at least one, and returns it with the number of them. `out` gets the bytes.
pub(super) fn pack(changes: &[StoredChange], out: &mut Vec<u8>) -> Option<(Page, usize)> {
    out.clear();
    let first = changes.first()?.sequence;
    let mut entries = Vec::new();
    for change in changes {
        let with_it = out.len() + record::change_bytes(change) + (entries.len() + 1) * ENTRY_BYTES + COUNT_BYTES;
        let Ok(offset) = u32::try_from(change.sequence - first) else { break };
        if with_it > PAGE_BYTES_MAX && !entries.is_empty() {
            break;
        }
        record::write_change(change, out);
        entries.push(Entry { offset, end: out.len() as u32 });
    }
    write_entries(&entries, out);
    let count = entries.len();
    Some((Page::new(first, entries), count))
}
