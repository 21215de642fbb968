//! The matched readers of a writer, and what they have in common, kept ready: a thousand readers cost a write what one costs.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::congestion::Congestion;
use super::flow::{Position, RECEIVE_BUFFER_ASSUMED_BYTES};
use super::lowest;
use super::reader_proxy::{Owed, ReaderProxy};
use crate::types::{Guid, SequenceNumber};

/// The readers, found by GUID, under a tree of summaries: a change of one costs the summaries above it, O(log n), and the summary of
/// all is there without a look at any.
///
/// A reader is changed through [`ReaderMut`] or [`AllReadersMut`] alone, which bring the summaries up to date when they are dropped.
#[derive(Debug)]
pub(super) struct ReaderSet {
    readers: Vec<ReaderProxy>,
    places: BTreeMap<Guid, usize>,
    /// The summary of all at 1, those of the halves of what `n` summarizes at `2n` and `2n + 1`, that of the reader at place `p` at
    /// `leaves + p`.
    summaries: Vec<ReaderSummary>,
    /// A power of two: as many places as the tree has.
    leaves: usize,
}

/// What some readers have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReaderSummary {
    /// The last sample that all reliable readers have acknowledged, given up or not; `None` where there is none.
    pub reliable: Option<SequenceNumber>,
    /// The last sample that all awaited readers have acknowledged; `None` where none is awaited.
    pub awaited: Option<SequenceNumber>,
    /// How far all have acknowledged that are awaited and up to date.
    pub following: Option<Position>,
    /// The longest estimate of a round trip to an awaited reader.
    pub round_trip: Duration,
    /// The paths to awaited readers.
    pub paths: PathBounds,
    /// The paths to those that are up to date.
    pub following_paths: PathBounds,
    /// The smallest receive buffer of an awaited reader, in bytes.
    pub receive_buffer: Option<u32>,
    /// The smallest receive buffer of a reader that does not acknowledge, in bytes.
    pub unacknowledged_buffer: Option<u32>,
    /// Awaited readers.
    pub awaited_count: u32,
    pub any: AnyReader,
}

/// What holds for at least one of some readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnyReader {
    /// It is owed a HEARTBEAT.
    pub owed: bool,
    /// It has asked for something that was not sent again yet.
    pub repairs: bool,
    /// It must prove itself before it is told of samples.
    pub unproved: bool,
    pub given_up: bool,
    /// It is awaited and runs on another host.
    pub elsewhere: bool,
    /// It is awaited and does not acknowledge parts of a sample.
    pub whole_only: bool,
}

/// What the narrowest of some paths lets out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathBounds {
    /// Bytes on their way, at most; `u64::MAX` where nothing bounds them.
    pub window: u64,
    /// After how many bytes an acknowledgement is asked for, at the latest.
    pub interval: u64,
    /// What leaves on some path leaves at a rate.
    pub paced: bool,
}

impl Default for PathBounds {
    fn default() -> PathBounds {
        PathBounds { window: u64::MAX, interval: u64::MAX, paced: false }
    }
}

impl PathBounds {
    fn of(path: &Congestion) -> PathBounds {
        PathBounds { window: path.window(), interval: path.interval(), paced: path.is_paced() }
    }

    fn join(self, other: PathBounds) -> PathBounds {
        PathBounds {
            window: self.window.min(other.window),
            interval: self.interval.min(other.interval),
            paced: self.paced | other.paced,
        }
    }
}

impl AnyReader {
    fn join(self, other: AnyReader) -> AnyReader {
        AnyReader {
            owed: self.owed | other.owed,
            repairs: self.repairs | other.repairs,
            unproved: self.unproved | other.unproved,
            given_up: self.given_up | other.given_up,
            elsewhere: self.elsewhere | other.elsewhere,
            whole_only: self.whole_only | other.whole_only,
        }
    }
}

impl ReaderSummary {
    fn of(reader: &ReaderProxy) -> ReaderSummary {
        let matched = &reader.matched;
        let (awaited, follows) = (reader.is_awaited(), reader.is_up_to_date());
        let acknowledged = reader.acknowledged;
        let paths = reader.congestion.as_deref().filter(|_| awaited).map(PathBounds::of).unwrap_or_default();
        let buffer = matched.receive_buffer_bytes.unwrap_or(RECEIVE_BUFFER_ASSUMED_BYTES);
        ReaderSummary {
            reliable: matched.reliable.then_some(acknowledged.sample),
            awaited: awaited.then_some(acknowledged.sample),
            following: follows.then_some(acknowledged),
            round_trip: if awaited { reader.round_trip.estimate() } else { Duration::ZERO },
            paths,
            following_paths: if follows { paths } else { PathBounds::default() },
            receive_buffer: awaited.then_some(buffer),
            unacknowledged_buffer: (!matched.reliable).then_some(buffer),
            awaited_count: u32::from(awaited),
            any: AnyReader {
                owed: reader.owed != Owed::Nothing,
                repairs: !reader.repairs.is_empty(),
                unproved: reader.must_prove_itself(),
                given_up: reader.is_given_up(),
                elsewhere: awaited && !matched.on_this_host,
                whole_only: awaited && !matched.vendor.traits().confirms_fragments,
            },
        }
    }

    fn join(self, other: ReaderSummary) -> ReaderSummary {
        ReaderSummary {
            reliable: lowest(self.reliable, other.reliable),
            awaited: lowest(self.awaited, other.awaited),
            following: lowest(self.following, other.following),
            round_trip: self.round_trip.max(other.round_trip),
            paths: self.paths.join(other.paths),
            following_paths: self.following_paths.join(other.following_paths),
            receive_buffer: lowest(self.receive_buffer, other.receive_buffer),
            unacknowledged_buffer: lowest(self.unacknowledged_buffer, other.unacknowledged_buffer),
            awaited_count: self.awaited_count + other.awaited_count,
            any: self.any.join(other.any),
        }
    }

    /// The paths that what is sent for the first time has to respect: those of readers that are up to date. Where none is, all are
    /// behind for what their links have lost, and what is new meets the same links.
    pub(super) fn shared_paths(&self) -> PathBounds {
        if self.following.is_some() { self.following_paths } else { self.paths }
    }
}

impl ReaderSet {
    /// No readers.
    pub(super) fn new() -> ReaderSet {
        ReaderSet {
            readers: Vec::new(),
            places: BTreeMap::new(),
            summaries: vec![ReaderSummary::default(); 2],
            leaves: 1,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.readers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, ReaderProxy> {
        self.readers.iter()
    }

    /// What all readers have in common.
    pub(super) fn summary(&self) -> &ReaderSummary {
        &self.summaries[1]
    }

    pub(super) fn get(&self, reader: Guid) -> Option<&ReaderProxy> {
        Some(&self.readers[*self.places.get(&reader)?])
    }

    pub(super) fn get_mut(&mut self, reader: Guid) -> Option<ReaderMut<'_>> {
        let place = *self.places.get(&reader)?;
        Some(self.at_mut(place))
    }

    /// The reader at a place below [`ReaderSet::len`]; places change when readers go.
    pub(super) fn at(&self, place: usize) -> &ReaderProxy {
        &self.readers[place]
    }

    pub(super) fn at_mut(&mut self, place: usize) -> ReaderMut<'_> {
        ReaderMut { set: self, place }
    }

    /// All readers, to be changed; costs a look at each of them.
    pub(super) fn all_mut(&mut self) -> AllReadersMut<'_> {
        AllReadersMut { set: self }
    }

    /// The paths to the readers that count for [`ReaderSummary::shared_paths`], to be charged: what may leave on them now is in no summary.
    pub(super) fn shared_paths_mut(&mut self) -> impl Iterator<Item = &mut Congestion> {
        let any_follows = self.summary().following.is_some();
        let counts = move |reader: &&mut ReaderProxy| reader.is_awaited() && (!any_follows || reader.is_up_to_date());
        self.readers.iter_mut().filter(counts).filter_map(|reader| reader.congestion.as_deref_mut())
    }

    /// The first place from `from` on for whose reader `wanted` holds, which holds for the summary of readers where it holds for one.
    pub(super) fn next(&self, from: usize, wanted: impl Fn(&AnyReader) -> bool) -> Option<usize> {
        if from >= self.readers.len() {
            return None;
        }
        let mut node = self.leaves + from;
        while !wanted(&self.summaries[node].any) {
            // On to the right neighbour, of the lowest subtree that has one.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            node += usize::from(!wanted(&self.summaries[node].any));
        }
        Some(node - self.leaves)
    }

    /// Adds a reader that it does not know.
    pub(super) fn insert(&mut self, reader: ReaderProxy) {
        let place = self.readers.len();
        self.places.insert(reader.matched.guid, place);
        self.readers.push(reader);
        match place < self.leaves {
            true => self.summarize(place),
            false => self.summarize_all(),
        }
    }

    /// Takes a reader out; the last one takes its place.
    pub(super) fn remove(&mut self, reader: Guid) -> Option<ReaderProxy> {
        let place = self.places.remove(&reader)?;
        let gone = self.readers.swap_remove(place);
        if let Some(moved) = self.readers.get(place) {
            self.places.insert(moved.matched.guid, place);
            self.summarize(place);
        }
        match self.readers.len() * 4 < self.leaves {
            true => self.summarize_all(),
            false => self.summarize(self.readers.len()),
        }
        Some(gone)
    }

    /// Brings the summaries above a place up to date, as far as they change.
    fn summarize(&mut self, place: usize) {
        let mut node = self.leaves + place;
        let mut summary = self.readers.get(place).map(ReaderSummary::of).unwrap_or_default();
        while self.summaries[node] != summary {
            self.summaries[node] = summary;
            if node == 1 {
                return;
            }
            summary = self.summaries[node & !1].join(self.summaries[node | 1]);
            node /= 2;
        }
    }

    fn summarize_all(&mut self) {
        self.leaves = self.readers.len().next_power_of_two();
        self.summaries.clear();
        self.summaries.resize(self.leaves, ReaderSummary::default());
        self.summaries.extend(self.readers.iter().map(ReaderSummary::of));
        self.summaries.resize(2 * self.leaves, ReaderSummary::default());
        for node in (1..self.leaves).rev() {
            self.summaries[node] = self.summaries[2 * node].join(self.summaries[2 * node + 1]);
        }
    }
}

/// A reader that is being changed.
pub(super) struct ReaderMut<'a> {
    set: &'a mut ReaderSet,
    place: usize,
}

impl Deref for ReaderMut<'_> {
    type Target = ReaderProxy;

    fn deref(&self) -> &ReaderProxy {
        &self.set.readers[self.place]
    }
}

impl DerefMut for ReaderMut<'_> {
    fn deref_mut(&mut self) -> &mut ReaderProxy {
        &mut self.set.readers[self.place]
    }
}

impl Drop for ReaderMut<'_> {
    fn drop(&mut self) {
        self.set.summarize(self.place);
    }
}

/// All readers while they are being changed.
pub(super) struct AllReadersMut<'a> {
    set: &'a mut ReaderSet,
}

impl Deref for AllReadersMut<'_> {
    type Target = [ReaderProxy];

    fn deref(&self) -> &[ReaderProxy] {
        &self.set.readers
    }
}

impl DerefMut for AllReadersMut<'_> {
    fn deref_mut(&mut self) -> &mut [ReaderProxy] {
        &mut self.set.readers
    }
}

impl Drop for AllReadersMut<'_> {
    fn drop(&mut self) {
        self.set.summarize_all();
    }
}
