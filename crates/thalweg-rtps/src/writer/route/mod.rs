//! Where first transmissions go: the addresses of all matched readers, each once, or the group that costs less.
//!
//! Kept up to date reader by reader: matching the three-hundredth costs as much as matching the first.

mod explanation;
mod group;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use explanation::{GroupExplanation, LinkExplanation, RouteExplanation};
pub use group::DROP_COST_PER_MILLE;

use super::neighbourhood::Neighbourhood;
use super::transmit::Form;
use super::{MatchedReader, Writer};
use crate::qos::Destination;
use crate::types::{DATAGRAM_MIN_BYTES, ETHERNET_V4_DATAGRAM_BYTES, EntityId, Guid, Locator, VendorId};
use crate::wire::write;
use group::Group;

/// Bytes around a fragment: header, INFO_DST, INFO_TS, DATA_FRAG with the inline QoS of a dispose, HEARTBEAT.
const FRAGMENT_OVERHEAD_BYTES: usize = write::HEADER_LEN
    + write::INFO_DST_LEN
    + write::INFO_TS_LEN
    + write::DATA_FRAG_HEAD_LEN
    + 48
    + write::HEARTBEAT_LEN;

#[derive(Debug)]
pub(super) struct Route {
    choice: Destination,
    around: Arc<Neighbourhood>,
    legs: BTreeMap<Guid, Leg>,
    groups: BTreeMap<Locator, Group>,
    /// How many readers have a path of which width.
    widths: BTreeMap<usize, usize>,
    /// The least of these widths.
    datagram_bytes: usize,
    /// Readers for which fragments keep their size.
    fixed_sizes: usize,
    /// Readers that get nothing but repairs.
    spared: usize,
    addresses: Addresses,
}

/// How one reader is reached.
#[derive(Debug, PartialEq, Eq)]
struct Leg {
    vendor: VendorId,
    unicast: Vec<Locator>,
    multicast: Option<Locator>,
    on_this_host: bool,
    datagram_bytes: usize,
    batches: bool,
    /// The link that its address is on; `None` behind a router.
    link: Option<usize>,
    /// The group that may be used for it.
    group: Option<Locator>,
    /// It gets nothing but repairs, unless a group reaches it.
    spared: bool,
}

impl Leg {
    fn new(reader: &MatchedReader, choice: Destination, around: &Neighbourhood) -> Leg {
        let mut leg = Leg {
            vendor: reader.vendor,
            unicast: reader.unicast.clone(),
            multicast: reader.multicast,
            on_this_host: reader.on_this_host,
            datagram_bytes: reader.datagram_bytes,
            batches: reader.batches,
            link: None,
            group: None,
            spared: false,
        };
        leg.locate(choice, around);
        leg
    }

    /// Finds out which link it uses and whether a group may serve it.
    fn locate(&mut self, choice: Destination, around: &Neighbourhood) {
        self.link = self.unicast.first().and_then(|locator| around.link_of(locator));
        let group = self.multicast.and_then(|group| group.socket_address()).map(|address| address.ip());
        let carries = |link: usize| group.is_some_and(|group| around.links()[link].carries_group(group));
        let by_choice = match choice {
            Destination::Auto => !self.on_this_host && self.link.is_some_and(carries),
            Destination::Unicast => false,
            Destination::Multicast => true,
        };
        self.group = self.multicast.filter(|_| by_choice || self.unicast.is_empty());
    }

    fn describes(&self, reader: &MatchedReader) -> bool {
        self.vendor == reader.vendor
            && self.unicast == reader.unicast
            && self.multicast == reader.multicast
            && self.on_this_host == reader.on_this_host
            && self.datagram_bytes == reader.datagram_bytes
            && self.batches == reader.batches
    }

    /// The addresses in use for it now.
    fn targets<'a>(&'a self, groups: &BTreeMap<Locator, Group>) -> &'a [Locator] {
        match &self.group {
            Some(group) if groups.get(group).is_some_and(|state| state.used) => std::slice::from_ref(group),
            _ if self.spared => &[],
            _ => &self.unicast,
        }
    }
}

/// The addresses in use, each with the readers behind it.
#[derive(Debug, Default)]
struct Addresses {
    /// Readers behind each address, and how many of them need DATA.
    behind: BTreeMap<Locator, (usize, usize)>,
    all: Vec<Locator>,
    batch: Vec<Locator>,
    plain: Vec<Locator>,
}

impl Addresses {
    fn add(&mut self, targets: &[Locator], batches: bool) {
        for target in targets {
            let (readers, plain) = self.behind.entry(*target).or_default();
            *readers += 1;
            *plain += usize::from(!batches);
            let (readers, plain) = (*readers, *plain);
            if readers == 1 {
                self.all.push(*target);
                if batches { self.batch.push(*target) } else { self.plain.push(*target) }
            } else if plain == 1 && !batches {
                self.batch.retain(|address| address != target);
                self.plain.push(*target);
            }
        }
    }

    fn remove(&mut self, targets: &[Locator], batches: bool) {
        for target in targets {
            let Some((readers, plain)) = self.behind.get_mut(target) else { continue };
            *readers -= 1;
            *plain -= usize::from(!batches);
            let gone = *readers == 0;
            let batches_now = *plain == 0 && !batches;
            if gone {
                self.behind.remove(target);
                for list in [&mut self.all, &mut self.batch, &mut self.plain] {
                    list.retain(|address| address != target);
                }
            } else if batches_now {
                self.plain.retain(|address| address != target);
                self.batch.push(*target);
            }
        }
    }
}

/// Fragment size for datagrams of `datagram_bytes`: a multiple of 8, so that no fragment but the last needs padding.
pub(super) fn fragment_bytes_in(datagram_bytes: usize) -> u16 {
    let bytes = (datagram_bytes - FRAGMENT_OVERHEAD_BYTES) & !7;
    u16::try_from(bytes).unwrap_or(u16::MAX - 7)
}

/// Fragment size of a sample that was collected with others and does not fit a path. Frames do not keep how their samples were cut, so
/// the size depends on nothing: it is what every path takes.
pub(super) fn collected_fragment_bytes() -> u16 {
    fragment_bytes_in(DATAGRAM_MIN_BYTES)
}

impl Route {
    pub(super) fn new(choice: Destination) -> Route {
        Route {
            choice,
            around: Arc::default(),
            legs: BTreeMap::new(),
            groups: BTreeMap::new(),
            widths: BTreeMap::new(),
            datagram_bytes: ETHERNET_V4_DATAGRAM_BYTES,
            fixed_sizes: 0,
            spared: 0,
            addresses: Addresses::default(),
        }
    }

    /// Where a datagram for all readers goes to.
    pub(super) fn destinations(&self) -> &[Locator] {
        &self.addresses.all
    }

    /// Those of the destinations that get this form: DATA_BATCH those behind which every reader understands it, DATA the others.
    pub(super) fn destinations_in(&self, form: Form) -> &[Locator] {
        match form {
            Form::Batch => &self.addresses.batch,
            Form::Plain => &self.addresses.plain,
        }
    }

    /// True when first transmissions go to a multicast group.
    pub(super) fn uses_group(&self) -> bool {
        self.groups.values().any(|group| group.used)
    }

    /// The largest UDP payload that reaches every reader in one packet.
    pub(super) fn datagram_bytes(&self) -> usize {
        self.datagram_bytes
    }

    /// The only reader, or UNKNOWN for all.
    pub(super) fn reader(&self) -> EntityId {
        match self.legs.first_key_value() {
            Some((guid, _)) if self.legs.len() == 1 => guid.entity,
            _ => EntityId::UNKNOWN,
        }
    }

    /// Fragment size of a sample with `payload_bytes`; `None` when it fits one datagram.
    ///
    /// Thalweg's readers get fragments of equal size, so that the last one does not come late and small. For readers of other
    /// vendors the size stays the same from sample to sample, as RTPS 2.5 §8.4.14.1 asks.
    pub(super) fn fragment_bytes(&self, payload_bytes: usize) -> Option<u16> {
        let largest = fragment_bytes_in(self.datagram_bytes());
        if payload_bytes <= usize::from(largest) {
            return None;
        }
        let even = payload_bytes.div_ceil(payload_bytes.div_ceil(usize::from(largest)));
        let even = u16::try_from(even.next_multiple_of(8)).unwrap_or(largest);
        Some(if self.fixed_sizes == 0 { even.min(largest) } else { largest })
    }

    /// Fragment size for a change that was written before readers with a narrower path came.
    pub(super) fn narrower_fragment_bytes(&self, payload_bytes: usize, fixed: Option<u16>) -> Option<u16> {
        let fitting = self.fragment_bytes(payload_bytes)?;
        fixed.is_none_or(|bytes| bytes > fitting).then_some(fitting)
    }

    /// Adds a reader, or replaces its data.
    pub(super) fn insert(&mut self, reader: &MatchedReader) {
        if self.legs.get(&reader.guid).is_some_and(|leg| leg.describes(reader)) {
            return;
        }
        let spared = self.legs.get(&reader.guid).is_some_and(|leg| leg.spared);
        self.remove(reader.guid);
        let leg = Leg { spared, ..Leg::new(reader, self.choice, &self.around) };
        self.spared += usize::from(spared);
        *self.widths.entry(leg.datagram_bytes).or_default() += 1;
        self.note_widths();
        self.fixed_sizes += usize::from(leg.vendor.traits().keeps_fragment_size);
        if let Some(group) = leg.group {
            let state = self.groups.entry(group).or_default();
            state.add(&self.around, reader.guid.prefix, leg.link, &leg.unicast);
        }
        self.addresses.add(leg.targets(&self.groups), leg.batches);
        let group = leg.group;
        self.legs.insert(reader.guid, leg);
        self.settle(group);
    }

    /// Forgets a reader.
    pub(super) fn remove(&mut self, guid: Guid) {
        let Some(leg) = self.legs.remove(&guid) else { return };
        self.addresses.remove(leg.targets(&self.groups), leg.batches);
        if let Some(count) = self.widths.get_mut(&leg.datagram_bytes) {
            *count -= 1;
            if *count == 0 {
                self.widths.remove(&leg.datagram_bytes);
            }
        }
        self.note_widths();
        self.fixed_sizes -= usize::from(leg.vendor.traits().keeps_fragment_size);
        self.spared -= usize::from(leg.spared);
        if let Some(group) = leg.group
            && let Some(state) = self.groups.get_mut(&group)
        {
            state.remove(guid.prefix, &leg.unicast);
        }
        self.settle(leg.group);
    }

    /// How many readers get nothing but repairs.
    pub(super) fn spared(&self) -> usize {
        self.spared
    }

    /// Whether first transmissions spare a reader from now on, which those to a group cannot. Returns whether that can be.
    pub(super) fn spare(&mut self, guid: Guid, spared: bool) -> bool {
        let Some(leg) = self.legs.get_mut(&guid) else { return false };
        let by_group =
            |leg: &Leg| leg.group.is_some_and(|group| self.groups.get(&group).is_some_and(|group| group.used));
        if spared && by_group(leg) {
            return false;
        }
        self.addresses.remove(leg.targets(&self.groups), leg.batches);
        self.spared = self.spared + usize::from(spared) - usize::from(leg.spared);
        leg.spared = spared;
        self.addresses.add(leg.targets(&self.groups), leg.batches);
        true
    }

    fn note_widths(&mut self) {
        self.datagram_bytes = self.widths.keys().next().copied().unwrap_or(ETHERNET_V4_DATAGRAM_BYTES);
    }

    /// Judges a group anew after a change of what is behind it. Whether it is worth taking is judged later, when the bystanders
    /// are counted: readers and bystanders are discovered in any order, and the first few would decide for the rest.
    fn settle(&mut self, group: Option<Locator>) {
        let Some(group) = group else { return };
        let Some(state) = self.groups.get(&group) else { return };
        let may_change = state.used || state.is_needed() || self.choice != Destination::Auto || state.is_empty();
        if may_change {
            self.judge(group);
        }
    }

    fn judge(&mut self, group: Locator) {
        let Some(state) = self.groups.get_mut(&group) else { return };
        let used = state.is_chosen(self.choice, &self.around, &group);
        if state.is_empty() {
            self.groups.remove(&group);
        } else if used != state.used {
            state.used = used;
            self.readdress();
        }
    }

    fn readdress(&mut self) {
        self.addresses = Addresses::default();
        for leg in self.legs.values() {
            self.addresses.add(leg.targets(&self.groups), leg.batches);
        }
    }

    /// Updates the links and their listeners, and judges every group anew.
    pub(super) fn set_neighbourhood(&mut self, around: Arc<Neighbourhood>) {
        let links_changed = around.links() != self.around.links();
        self.around = around;
        if links_changed {
            let used: Vec<Locator> =
                self.groups.iter().filter(|(_, group)| group.used).map(|(group, _)| *group).collect();
            self.groups.clear();
            for (guid, leg) in &mut self.legs {
                leg.locate(self.choice, &self.around);
                if let Some(group) = leg.group {
                    let state = self.groups.entry(group).or_default();
                    state.used = used.contains(&group);
                    state.add(&self.around, guid.prefix, leg.link, &leg.unicast);
                }
            }
            self.readdress();
        }
        let groups: Vec<Locator> = self.groups.keys().copied().collect();
        groups.into_iter().for_each(|group| self.judge(group));
    }

    /// Where datagrams go to and the computation behind it.
    pub(super) fn explain(&self) -> RouteExplanation {
        let elsewhere = self.legs.values().filter(|leg| !leg.on_this_host);
        RouteExplanation {
            configured: self.choice,
            destinations: self.addresses.all.clone(),
            destination_count: self.addresses.all.len(),
            batch_destinations: self.addresses.batch.len(),
            readers_on_this_host: self.legs.len() - elsewhere.clone().count(),
            readers_without_group: elsewhere.filter(|leg| leg.group.is_none()).count(),
            groups: self
                .groups
                .iter()
                .map(|(locator, group)| group.explain(self.choice, &self.around, locator))
                .collect(),
        }
    }
}

impl Writer {
    /// Updates the links and their listeners, and chooses between unicast and multicast.
    pub(crate) fn set_neighbourhood(&mut self, around: Arc<Neighbourhood>) {
        self.route.set_neighbourhood(around);
    }
}
