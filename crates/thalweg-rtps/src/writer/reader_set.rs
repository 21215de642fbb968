//! The matched readers of a writer, and what they have in common.

use std::time::Duration;

use super::congestion::Congestion;
use super::flow::{Position, RECEIVE_BUFFER_ASSUMED_BYTES};
use super::lowest;
use super::reader_proxy::{Owed, ReaderProxy};
use super::timers::TimerBounds;
use crate::proxies::{Proxy, ProxySet, Summary};
use crate::types::{Guid, SequenceNumber};

/// The readers, under the tree of their summaries.
pub(super) type ReaderSet = ProxySet<ReaderProxy>;

/// What some readers have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReaderSummary {
    /// The last sample that all reliable readers have acknowledged, given up or not; `None` where there is none.
    pub reliable: Option<SequenceNumber>,
    /// How far all awaited readers have acknowledged; `None` where none is awaited.
    pub slowest: Option<Position>,
    /// How far one of them has, at most.
    pub furthest: Option<Position>,
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
    /// The smallest receive buffer of one that is up to date, in bytes.
    pub following_buffer: Option<u32>,
    /// The smallest receive buffer of a reader that does not acknowledge, in bytes.
    pub unacknowledged_buffer: Option<u32>,
    /// The smallest receive buffer of a reader that was given up, in bytes.
    pub given_up_buffer: Option<u32>,
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
    /// It gets nothing else until it has caught up.
    pub repairs_only: bool,
    /// It must prove itself before it is told of samples.
    pub unproved: bool,
    pub given_up: bool,
    /// It is awaited and has not answered yet.
    pub unheard: bool,
    /// It is awaited and has to be told again where it starts.
    pub untold: bool,
    /// It is awaited and asked although it has acknowledged more than it has.
    pub relapsed: bool,
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
    /// Some path is sent to at a rate.
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
            repairs_only: self.repairs_only | other.repairs_only,
            unproved: self.unproved | other.unproved,
            given_up: self.given_up | other.given_up,
            unheard: self.unheard | other.unheard,
            untold: self.untold | other.untold,
            relapsed: self.relapsed | other.relapsed,
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
        let round_trip = if awaited { reader.round_trip.estimate() } else { Duration::ZERO };
        ReaderSummary {
            reliable: matched.reliable.then_some(acknowledged.sample),
            slowest: awaited.then_some(acknowledged),
            furthest: awaited.then_some(acknowledged),
            following: follows.then_some(acknowledged),
            round_trip,
            paths,
            following_paths: if follows { paths } else { PathBounds::default() },
            receive_buffer: awaited.then_some(buffer),
            following_buffer: follows.then_some(buffer),
            unacknowledged_buffer: (!matched.reliable).then_some(buffer),
            given_up_buffer: reader.is_given_up().then_some(buffer),
            awaited_count: u32::from(awaited),
            any: AnyReader {
                owed: reader.owed != Owed::Nothing,
                repairs: !reader.repairs.is_empty(),
                repairs_only: reader.repairs_only.is_some(),
                unproved: reader.must_prove_itself(),
                given_up: reader.is_given_up(),
                unheard: awaited && !reader.proven,
                untold: awaited && reader.is_to_be_told_again(),
                relapsed: awaited && reader.relapse.is_open(),
                elsewhere: awaited && !matched.on_this_host,
                whole_only: awaited && !matched.vendor.traits().confirms_fragments,
            },
        }
    }

    /// The last sample that all awaited readers have acknowledged; `None` where none is awaited.
    pub(super) fn awaited(&self) -> Option<SequenceNumber> {
        self.slowest.map(|acknowledged| acknowledged.sample)
    }

    /// The paths that what is sent for the first time has to respect: those of readers that are up to date. Where none is, all are
    /// behind for what their links have lost, and what is new meets the same links.
    pub(super) fn shared_paths(&self) -> PathBounds {
        if self.following.is_some() { self.following_paths } else { self.paths }
    }

    /// The receive buffer, in bytes, that what is sent for the first time has to respect, likewise; `None` where none is awaited.
    pub(super) fn shared_buffer(&self) -> Option<u32> {
        self.following_buffer.or(self.receive_buffer)
    }
}

impl Summary for ReaderSummary {
    fn join(self, other: ReaderSummary) -> ReaderSummary {
        ReaderSummary {
            reliable: lowest(self.reliable, other.reliable),
            slowest: lowest(self.slowest, other.slowest),
            furthest: self.furthest.max(other.furthest),
            following: lowest(self.following, other.following),
            round_trip: self.round_trip.max(other.round_trip),
            paths: self.paths.join(other.paths),
            following_paths: self.following_paths.join(other.following_paths),
            receive_buffer: lowest(self.receive_buffer, other.receive_buffer),
            following_buffer: lowest(self.following_buffer, other.following_buffer),
            unacknowledged_buffer: lowest(self.unacknowledged_buffer, other.unacknowledged_buffer),
            given_up_buffer: lowest(self.given_up_buffer, other.given_up_buffer),
            awaited_count: self.awaited_count + other.awaited_count,
            any: self.any.join(other.any),
        }
    }
}

impl Proxy for ReaderProxy {
    type Summary = ReaderSummary;
    type Bounds = TimerBounds;

    fn guid(&self) -> Guid {
        self.matched.guid
    }

    fn summary(&self) -> ReaderSummary {
        ReaderSummary::of(self)
    }

    fn bounds(&self) -> TimerBounds {
        TimerBounds::of(self)
    }
}

impl ReaderSet {
    /// The paths to the readers that count for [`ReaderSummary::shared_paths`], to be charged: what may leave on them now is in no summary.
    pub(super) fn shared_paths_mut(&mut self) -> impl Iterator<Item = &mut Congestion> {
        let any_follows = self.summary().following.is_some();
        let counts = move |reader: &&mut ReaderProxy| reader.is_awaited() && (!any_follows || reader.is_up_to_date());
        self.iter_mut_unsummarized().filter(counts).filter_map(|reader| reader.congestion.as_deref_mut())
    }

    /// The first place from `from` on for whose reader `wanted` holds.
    pub(super) fn next_with(&self, from: usize, wanted: impl Fn(&AnyReader) -> bool) -> Option<usize> {
        self.next(from, |summary, _| wanted(&summary.any))
    }
}
