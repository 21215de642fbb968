//! Proxies of matched endpoints, found by GUID, and what they have in common, kept ready: a thousand of them cost what one costs.

#[cfg(test)]
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix};

/// What an endpoint knows of one that it is matched with.
pub(crate) trait Proxy {
    /// What several have in common exactly.
    type Summary: Summary;
    /// What several have at least.
    type Bounds: Summary;

    fn guid(&self) -> Guid;

    /// What it adds to the summary of all.
    fn summary(&self) -> Self::Summary;

    /// What it adds to the bounds of all: joined with others they only fall.
    fn bounds(&self) -> Self::Bounds;
}

/// What some proxies have in common. The default is that of none.
pub(crate) trait Summary: Copy + Debug + Default + PartialEq {
    /// That of both together.
    fn join(self, other: Self) -> Self;
}

impl Summary for () {
    fn join(self, (): ()) {}
}

/// The proxies under a tree of summaries: a change of one costs the summaries above it, O(log n), the summary of all is there without
/// a look at any, and those for which something holds are found without a look at the others.
///
/// Beside the summaries lie bounds, which are what the proxies had or lower: a change that raises them, as most do, costs nothing, and
/// a search that finds them too low has looked at the proxy and corrects them.
///
/// A proxy is changed through [`ProxyMut`] or [`ProxySet::change`], which bring the summaries up to date.
#[derive(Debug)]
pub(crate) struct ProxySet<P: Proxy> {
    proxies: Vec<P>,
    places: BTreeMap<Guid, usize>,
    /// The summary of all at 1, those of the halves of what `n` summarizes at `2n` and `2n + 1`, that of the proxy at place `p` at
    /// `leaves + p`.
    summaries: Vec<P::Summary>,
    /// In the same order.
    bounds: Vec<P::Bounds>,
    /// A power of two: as many places as the tree has.
    leaves: usize,
    /// How often a proxy was looked at.
    #[cfg(test)]
    pub looks: Cell<usize>,
}

impl<P: Proxy> ProxySet<P> {
    /// No proxies.
    pub fn new() -> ProxySet<P> {
        ProxySet {
            proxies: Vec::new(),
            places: BTreeMap::new(),
            summaries: vec![P::Summary::default(); 2],
            bounds: vec![P::Bounds::default(); 2],
            leaves: 1,
            #[cfg(test)]
            looks: Cell::new(0),
        }
    }

    pub fn len(&self) -> usize {
        self.proxies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.proxies.is_empty()
    }

    /// All of them; costs a look at each.
    pub fn iter(&self) -> std::slice::Iter<'_, P> {
        self.note_looks(self.len());
        self.proxies.iter()
    }

    /// All of them, to be changed in what no summary tells.
    pub fn iter_mut_unsummarized(&mut self) -> std::slice::IterMut<'_, P> {
        self.note_looks(self.len());
        self.proxies.iter_mut()
    }

    /// What all have in common.
    pub fn summary(&self) -> &P::Summary {
        &self.summaries[1]
    }

    /// Where a proxy is, below [`ProxySet::len`]; places change when proxies go.
    pub fn place(&self, guid: Guid) -> Option<usize> {
        self.places.get(&guid).copied()
    }

    /// Where the proxies of one participant's endpoints are.
    pub fn places_of(&self, prefix: GuidPrefix) -> impl Iterator<Item = usize> {
        let from = Guid::new(prefix, EntityId::UNKNOWN);
        self.places.range(from..).take_while(move |(guid, _)| guid.prefix == prefix).map(|(_, place)| *place)
    }

    /// The proxy of an endpoint, for one look.
    pub fn get(&self, guid: Guid) -> Option<&P> {
        Some(self.at(self.place(guid)?))
    }

    /// The proxy of an endpoint, to be changed; the summaries above it are brought up to date when the reference goes.
    pub fn get_mut(&mut self, guid: Guid) -> Option<ProxyMut<'_, P>> {
        let place = self.place(guid)?;
        Some(self.at_mut(place))
    }

    /// The proxy at a place.
    ///
    /// # Panics
    /// When the place is not below [`ProxySet::len`].
    #[inline]
    pub fn at(&self, place: usize) -> &P {
        self.note_looks(1);
        &self.proxies[place]
    }

    /// As [`ProxySet::get_mut`] for the proxy at a place.
    pub fn at_mut(&mut self, place: usize) -> ProxyMut<'_, P> {
        self.note_looks(1);
        ProxyMut { set: self, place, is_changed: false }
    }

    /// One to be changed, whose summaries [`ProxySet::settle`] brings up to date.
    #[inline]
    pub fn open(&mut self, place: usize) -> &mut P {
        self.note_looks(1);
        &mut self.proxies[place]
    }

    /// The first place from `from` on for whose summary and bounds `wanted` holds. It must hold for those of several if it holds for one of
    /// them. A caller that goes by the bounds has to look at the proxy.
    pub fn next(&self, from: usize, wanted: impl Fn(&P::Summary, &P::Bounds) -> bool) -> Option<usize> {
        if from >= self.proxies.len() {
            return None;
        }
        let wanted = |node: usize| wanted(&self.summaries[node], &self.bounds[node]);
        let mut node = self.leaves + from;
        loop {
            while node < self.leaves && wanted(node) {
                node *= 2;
            }
            if wanted(node) {
                return Some(node - self.leaves);
            }
            // On to the right neighbour, of the lowest subtree that has one.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
    }

    /// The first proxy for which `exact` holds, among those for whose summary and bounds `wanted` holds, as for [`ProxySet::next`].
    pub fn find(
        &mut self,
        wanted: impl Fn(&P::Summary, &P::Bounds) -> bool,
        exact: impl Fn(&P) -> bool,
    ) -> Option<ProxyMut<'_, P>> {
        let mut from = 0;
        loop {
            let place = self.next(from, &wanted)?;
            if exact(self.at(place)) {
                return Some(self.at_mut(place));
            }
            from = place + 1;
        }
    }

    /// Changes those for whose summary and bounds `wanted` holds, as for [`ProxySet::next`], and corrects their bounds.
    pub fn change(&mut self, wanted: impl Fn(&P::Summary, &P::Bounds) -> bool, mut change: impl FnMut(&mut P)) {
        self.change_below(1, &wanted, &mut change);
    }

    fn change_below(
        &mut self,
        node: usize,
        wanted: &impl Fn(&P::Summary, &P::Bounds) -> bool,
        change: &mut impl FnMut(&mut P),
    ) {
        if !wanted(&self.summaries[node], &self.bounds[node]) {
            return;
        }
        if node < self.leaves {
            let (left, right) = (2 * node, 2 * node + 1);
            self.change_below(left, wanted, change);
            self.change_below(right, wanted, change);
            self.summaries[node] = self.summaries[left].join(self.summaries[right]);
            self.bounds[node] = self.bounds[left].join(self.bounds[right]);
        } else if node - self.leaves < self.len() {
            let proxy = self.open(node - self.leaves);
            change(proxy);
            let (summary, bounds) = (proxy.summary(), proxy.bounds());
            (self.summaries[node], self.bounds[node]) = (summary, bounds);
        }
    }

    /// The earliest of what `exact` tells of each proxy; what `bound` tells of a summary with its bounds must not be later for any below.
    /// Corrects the bounds of those that it looks at.
    pub fn earliest(
        &mut self,
        bound: impl Fn(&P::Summary, &P::Bounds) -> Instant,
        exact: impl Fn(&P) -> Instant,
    ) -> Instant {
        let mut found = Instant::NEVER;
        self.search(1, &bound, &exact, &mut found);
        found
    }

    fn search(
        &mut self,
        node: usize,
        bound: &impl Fn(&P::Summary, &P::Bounds) -> Instant,
        exact: &impl Fn(&P) -> Instant,
        found: &mut Instant,
    ) {
        let bound_of = |set: &ProxySet<P>, node: usize| bound(&set.summaries[node], &set.bounds[node]);
        if bound_of(self, node) >= *found {
            return;
        }
        if node >= self.leaves {
            let proxy = self.at(node - self.leaves);
            let (told, bounds) = (exact(proxy), proxy.bounds());
            *found = told.min(*found);
            self.bounds[node] = bounds;
            return;
        }
        let (left, right) = (2 * node, 2 * node + 1);
        let is_left_first = bound_of(self, left) <= bound_of(self, right);
        for child in if is_left_first { [left, right] } else { [right, left] } {
            self.search(child, bound, exact, found);
        }
        self.bounds[node] = self.bounds[left].join(self.bounds[right]);
    }

    /// Adds one that it does not know.
    pub fn insert(&mut self, proxy: P) {
        let place = self.proxies.len();
        self.places.insert(proxy.guid(), place);
        self.proxies.push(proxy);
        match place < self.leaves {
            true => self.settle(place),
            false => self.settle_all(),
        }
    }

    /// Takes one out; the last one takes its place.
    pub fn remove(&mut self, guid: Guid) -> Option<P> {
        let place = self.places.remove(&guid)?;
        let gone = self.proxies.swap_remove(place);
        if let Some(moved) = self.proxies.get(place) {
            self.places.insert(moved.guid(), place);
            self.settle(place);
        }
        // Bounds only fall, but nobody could look at one that is not there and correct it.
        let vacated = self.proxies.len();
        self.bounds[self.leaves + vacated] = P::Bounds::default();
        match vacated * 4 < self.leaves {
            true => self.settle_all(),
            false => self.settle(vacated),
        }
        Some(gone)
    }

    /// Brings the summaries above a place up to date, as far as they change, and lowers the bounds as far as they have to.
    pub fn settle(&mut self, place: usize) {
        let proxy = self.proxies.get(place);
        let (summary, bounds) = proxy.map(|proxy| (proxy.summary(), proxy.bounds())).unwrap_or_default();
        let leaf = self.leaves + place;
        let (mut node, mut summary) = (leaf, summary);
        while self.summaries[node] != summary {
            self.summaries[node] = summary;
            if node == 1 {
                break;
            }
            summary = self.summaries[node & !1].join(self.summaries[node | 1]);
            node /= 2;
        }
        let mut node = leaf;
        while node > 0 {
            let lower = self.bounds[node].join(bounds);
            if self.bounds[node] == lower {
                break;
            }
            self.bounds[node] = lower;
            node /= 2;
        }
    }

    fn settle_all(&mut self) {
        self.leaves = self.proxies.len().next_power_of_two();
        tree(&mut self.summaries, self.leaves, self.proxies.iter().map(Proxy::summary));
        tree(&mut self.bounds, self.leaves, self.proxies.iter().map(Proxy::bounds));
    }

    #[cfg(test)]
    fn note_looks(&self, count: usize) {
        self.looks.set(self.looks.get() + count);
    }

    #[cfg(not(test))]
    #[inline]
    fn note_looks(&self, _count: usize) {}
}

/// Fills `nodes` anew: `leaves` of which the first are given, and what they have in common above them.
fn tree<S: Summary>(nodes: &mut Vec<S>, leaves: usize, given: impl Iterator<Item = S>) {
    nodes.clear();
    nodes.resize(leaves, S::default());
    nodes.extend(given);
    nodes.resize(2 * leaves, S::default());
    for node in (1..leaves).rev() {
        nodes[node] = nodes[2 * node].join(nodes[2 * node + 1]);
    }
}

/// A proxy that is being changed.
pub(crate) struct ProxyMut<'a, P: Proxy> {
    set: &'a mut ProxySet<P>,
    place: usize,
    is_changed: bool,
}

impl<P: Proxy> Deref for ProxyMut<'_, P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.set.proxies[self.place]
    }
}

impl<P: Proxy> DerefMut for ProxyMut<'_, P> {
    fn deref_mut(&mut self) -> &mut P {
        self.is_changed = true;
        &mut self.set.proxies[self.place]
    }
}

impl<P: Proxy> Drop for ProxyMut<'_, P> {
    fn drop(&mut self) {
        if self.is_changed {
            self.set.settle(self.place);
        }
    }
}
