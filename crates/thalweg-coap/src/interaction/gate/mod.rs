//! The kernel drops requests that a pool would refuse, before it queues them.

mod filter;

use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::filter::FilterInstruction;

use super::counts::FilteredRequests;
use filter::Shape;

/// Whether the kernel drops what a server would drop for want of room in a pool: most of the plain non-confirmable requests of
/// kinds that come too often, before they are queued. What it dropped is in
/// [`ServerSnapshot::filtered`](super::server::ServerSnapshot::filtered).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelFilter {
    /// While there is an overload; it costs a fraction of the time that the server would need.
    #[default]
    On,
    /// Never: every request comes as far as the server.
    Off,
}

/// Decides which share of the requests that a loop drops on arrival a filter of its socket shall drop instead, at a
/// fraction of the cost. Some always come as far as the loop: by them it sees that the pool is still short.
#[derive(Default)]
pub(super) struct Gate {
    entries: Vec<Entry>,
    is_disabled: bool,
    /// Requests that the filter dropped and that have no name yet.
    unnamed: u64,
    /// Those that have one.
    filtered: Vec<FilteredRequests>,
    /// The kind that the filter dropped last and lets in now: drops of it may still be told.
    opened: Option<FilteredRequests>,
}

/// Requests that are alike but for message ID, token and payload.
struct Entry {
    shape: Shape,
    kind: FilteredRequests,
    /// The share of them that the filter lets in; 1 while there is none.
    share: f64,
    /// Since when they are counted.
    since: Instant,
    kept: u32,
    dropped: u32,
}

impl Gate {
    /// For a kernel that takes no filter, or is to have none.
    pub(super) fn disabled() -> Gate {
        Gate { is_disabled: true, ..Gate::default() }
    }

    /// Takes the filter away for good; what it dropped stays counted.
    pub(super) fn disable(&mut self) {
        self.name_filtered();
        self.entries.clear();
        self.is_disabled = true;
    }

    /// What the filter dropped since the start, by kind.
    pub(super) fn filtered(&self) -> &[FilteredRequests] {
        &self.filtered
    }

    /// Takes into account that the filter dropped some, as the kernel told.
    pub(super) fn handle_filtered(&mut self, count: u64) {
        self.unnamed += count;
    }

    /// Counts what the filter dropped under the kinds that it drops now, each with its part.
    fn name_filtered(&mut self) {
        let count = std::mem::take(&mut self.unnamed);
        if count == 0 {
            return;
        }
        let shut: Vec<&Entry> = self.entries.iter().filter(|entry| entry.is_shut()).collect();
        let total: f64 = shut.iter().map(|entry| entry.filtered()).sum();
        let mut left = count;
        for entry in &shut {
            let part = ((count as f64 * entry.filtered() / total) as u64).min(left);
            left -= part;
            entry.kind.add_to(&mut self.filtered, part);
        }
        // What rounding leaves.
        let heaviest = shut.iter().max_by(|one, other| one.filtered().total_cmp(&other.filtered()));
        let kind = heaviest.map(|entry| &entry.kind).or(self.opened.as_ref());
        kind.unwrap_or(&FilteredRequests::default()).add_to(&mut self.filtered, left);
    }

    /// Whether there is a filter.
    pub(super) fn is_shut(&self) -> bool {
        self.entries.iter().any(Entry::is_shut)
    }

    /// Takes into account that the loop dropped this plain non-confirmable request for want of room in its `pool`.
    pub(super) fn handle_drop(&mut self, now: Instant, bytes: &[u8], pool: impl FnOnce() -> String) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.shape.matches(bytes)) {
            entry.dropped += 1;
        } else if !self.is_disabled
            && self.entries.len() < ENTRIES_MAX
            && let Some(shape) = Shape::of(bytes)
        {
            let kind = shape.kind(pool());
            self.entries.push(Entry { shape, kind, share: 1.0, since: now, kept: 0, dropped: 1 });
        }
    }

    /// Takes into account that the loop did not drop this datagram.
    #[inline]
    pub(super) fn handle_kept(&mut self, bytes: &[u8]) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.shape.matches(bytes)) {
            entry.kept += 1;
        }
    }

    /// When [`handle_turn`](Self::handle_turn) is to be called although nothing arrives, so that no filter outlives the load.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.entries.iter().filter(|entry| entry.is_shut()).map(|entry| entry.since + PERIOD).min()
    }

    /// Ends the periods that are over; the filter's new program if it changes, empty for none.
    pub(super) fn handle_turn(&mut self, now: Instant) -> Option<Vec<FilterInstruction>> {
        self.name_filtered();
        let mut has_changed = false;
        let opened = &mut self.opened;
        self.entries.retain_mut(|entry| {
            let passed = now.since(entry.since);
            if passed < PERIOD {
                return true;
            }
            let share = entry.next_share(passed);
            has_changed |= share != entry.share;
            let was_shut = entry.is_shut();
            (entry.share, entry.since, entry.kept, entry.dropped) = (share, now, 0, 0);
            if was_shut && !entry.is_shut() {
                *opened = Some(std::mem::take(&mut entry.kind));
            }
            entry.is_shut()
        });
        has_changed.then(|| {
            let shut = self.entries.iter().filter(|entry| entry.is_shut());
            filter::program(shut.map(|entry| (&entry.shape, entry.share)))
        })
    }
}

impl Entry {
    fn is_shut(&self) -> bool {
        self.share < 1.0
    }

    /// How many the filter drops, in proportion to other kinds; one that nothing has passed yet counts as if one had.
    fn filtered(&self) -> f64 {
        (1.0 / self.share - 1.0) * (1.0 + f64::from(self.kept) + f64::from(self.dropped))
    }

    /// The share for the time to come, after a period of this length.
    fn next_share(&self, passed: Duration) -> f64 {
        let (kept, dropped) = (f64::from(self.kept), f64::from(self.dropped));
        let arrived = kept + dropped;
        let excess_per_s = (arrived / self.share - kept) / passed.as_secs_f64();
        if dropped == 0.0 || excess_per_s < EXCESS_MIN_PER_S {
            return 1.0;
        }
        let refused = dropped / arrived;
        if self.is_shut() && KEEP.contains(&refused) || !self.is_shut() && refused < SHUT_FROM {
            return self.share;
        }
        let share = self.share * ((1.0 - refused) / (1.0 - AIM)).max(STEP_MIN);
        if share > OPEN_FROM { 1.0 } else { share.max(SHARE_MIN) }
    }
}

/// Some hundred requests of a load for which a filter is worth its while. Requests that a filter drops wrongly after the load fell
/// drops for up to two periods.
const PERIOD: Duration = Duration::from_millis(20);
/// Kinds of requests that are told apart.
const ENTRIES_MAX: usize = 4;
/// From this share of requests dropped by the loop on there is a filter,
const SHUT_FROM: f64 = 0.25;
/// which lets in so many that the loop drops this share of them,
const AIM: f64 = 0.08;
/// and is left alone within these bounds, since the kernel checks and translates each new program.
const KEEP: std::ops::RangeInclusive<f64> = 0.03..=0.15;
/// A share beyond this is all.
const OPEN_FROM: f64 = 0.9;
const SHARE_MIN: f64 = 0.001;
/// A pool that took nothing for a period is not dead.
const STEP_MIN: f64 = 0.25;
/// Fewer are dropped by the loop at the cost of 0.4 % of a processor, 1.7 µs each.
const EXCESS_MIN_PER_S: f64 = 2_000.0;

#[cfg(test)]
mod tests {
    use super::filter::tests::{NON, message};
    use super::*;

    /// A load before a gate and a pool.
    struct Model {
        gate: Gate,
        now: Instant,
        changes: u32,
    }

    impl Model {
        fn new() -> Model {
            Model { gate: Gate::default(), now: Instant::from_nanos(1_000_000_000), changes: 0 }
        }

        /// `rate` requests a second before a pool that takes `capacity` of them, for `millis`. What the pool took, and what the
        /// filter dropped.
        fn run(&mut self, millis: u32, rate: f64, capacity: f64) -> (f64, f64) {
            let bytes = message(NON, "busy", b"");
            let (mut taken, mut filtered) = (0.0, 0.0);
            let (mut arrived_rest, mut room) = (0.0, 0.0_f64);
            for _ in 0..millis {
                let share = self.gate.entries.first().map_or(1.0, |entry| entry.share);
                filtered += rate / 1e3 * (1.0 - share);
                arrived_rest += rate / 1e3 * share;
                // Unused room is lost after 25 ms.
                room = (room + capacity / 1e3).min(capacity / 40.0);
                while arrived_rest >= 1.0 {
                    arrived_rest -= 1.0;
                    if room >= 1.0 {
                        room -= 1.0;
                        taken += 1.0;
                        self.gate.handle_kept(&bytes);
                    } else {
                        self.gate.handle_drop(self.now, &bytes, || "blocking".to_owned());
                    }
                }
                self.now += Duration::from_millis(1);
                self.changes += u32::from(self.gate.handle_turn(self.now).is_some());
            }
            (taken, filtered)
        }
    }

    #[test]
    fn most_of_an_excess_is_filtered_and_the_pool_has_always_work() {
        for excess in [1.5, 2.0, 5.0, 100.0] {
            let mut model = Model::new();
            model.run(200, 40_000.0 * excess, 40_000.0);
            model.changes = 0;
            let (taken, filtered) = model.run(1000, 40_000.0 * excess, 40_000.0);
            assert!(taken > 39_900.0, "{taken}");
            assert!(filtered > 0.75 * 40_000.0 * (excess - 1.0), "{filtered} with {excess}");
            assert!(model.changes < 5, "{} changes under a load that does not", model.changes);
        }
    }

    #[test]
    fn when_the_load_falls_the_filter_goes_with_the_period() {
        let mut model = Model::new();
        model.run(200, 80_000.0, 40_000.0);
        assert!(model.gate.is_shut());
        // The first period may still see requests of the time before.
        let (_, filtered) = model.run(2 * PERIOD.as_millis() as u32, 10_000.0, 40_000.0);
        assert!(filtered < 10_000.0 * 2.0 * PERIOD.as_secs_f64());
        assert!(!model.gate.is_shut());
        assert_eq!(model.gate.poll_timeout(), None);
    }

    #[test]
    fn what_the_filter_drops_is_counted_under_its_method_path_and_pool() {
        let mut model = Model::new();
        model.run(200, 80_000.0, 40_000.0);
        model.gate.handle_filtered(100);
        model.run(1, 80_000.0, 40_000.0);
        let kind = |count: u64| FilteredRequests {
            method: "POST".to_owned(),
            path: "/busy".to_owned(),
            pool: "blocking".to_owned(),
            count,
        };
        assert_eq!(model.gate.filtered(), [kind(100)]);
        // With the next datagram after the filter is gone the kernel tells what it dropped before.
        model.run(100, 10_000.0, 40_000.0);
        assert!(!model.gate.is_shut());
        model.gate.handle_filtered(11);
        model.run(1, 10_000.0, 40_000.0);
        assert_eq!(model.gate.filtered(), [kind(111)]);
    }

    #[test]
    fn of_several_kinds_each_is_counted_for_its_part_and_none_is_left_out() {
        let mut gate = Gate::default();
        for (path, share, kept) in [("often", 0.1, 99), ("seldom", 0.5, 9)] {
            let shape = Shape::of(&message(NON, path, b"")).unwrap();
            let kind = shape.kind(String::new());
            gate.entries.push(Entry { shape, kind, share, since: Instant::ZERO, kept, dropped: 0 });
        }
        gate.handle_filtered(911);
        gate.handle_turn(Instant::ZERO);
        let told: Vec<(&str, u64)> = gate.filtered().iter().map(|one| (one.path.as_str(), one.count)).collect();
        assert_eq!(told, [("/often", 901), ("/seldom", 10)], "as 900 to 10");
    }

    #[test]
    fn a_silence_removes_the_filter() {
        let mut model = Model::new();
        model.run(200, 80_000.0, 40_000.0);
        let timeout = model.gate.poll_timeout().unwrap();
        assert!(timeout <= model.now + PERIOD);
        // The period with the last requests, and one without any.
        model.gate.handle_turn(timeout);
        let timeout = model.gate.poll_timeout().unwrap_or(timeout);
        model.gate.handle_turn(timeout);
        assert!(!model.gate.is_shut());
    }

    #[test]
    fn no_filter_for_a_small_or_a_slow_excess() {
        for (rate, capacity) in [(44_000.0, 40_000.0), (2_000.0, 1_000.0)] {
            let mut model = Model::new();
            let (_, filtered) = model.run(1000, rate, capacity);
            assert!(filtered == 0.0 && model.changes == 0, "{rate}");
        }
    }

    #[test]
    fn a_pool_that_takes_nothing_for_a_while_finds_requests_when_it_is_back() {
        let mut model = Model::new();
        model.run(1000, 80_000.0, 0.0);
        assert!(model.gate.is_shut());
        model.run(100, 80_000.0, 40_000.0);
        let (taken, _) = model.run(1000, 80_000.0, 40_000.0);
        assert!(taken > 39_000.0, "{taken}");
    }
}
