//! Costs of reaching the readers behind one multicast group, by the group and one by one.
//!
//! Costs are link time: how long the links are kept busy for each byte of a sample.
//!
//! ```text
//! unicast   = sum over addresses of        1 / rate(link of the address)
//! multicast = sum over links of  (1 + bystanders * DROP_COST) / group rate(link)
//! ```

use std::collections::BTreeMap;

use super::explanation::{GroupExplanation, LinkExplanation};
use crate::qos::Destination;
use crate::types::{GuidPrefix, Locator};
use crate::writer::neighbourhood::{Link, Neighbourhood, WIRED_BYTES_PER_SECOND};

/// Cost of a bystander's work to receive and drop a datagram, in thousandths of sending it: about 5 µs of its processor, as
/// measured, against the 12 µs that a full frame takes on a link of 1 Gbit/s.
pub const DROP_COST_PER_MILLE: u64 = 400;

/// A group is taken when it costs less than this much of unicast, in percent: it must promise to save more than half, because
/// it brings losses that unicast does not know.
const TAKEN_BELOW_PERCENT: u64 = 50;
/// A group in use is left when it costs more than this much of unicast, in percent. The gap between both keeps readers that
/// come and go from switching the route back and forth.
const LEFT_ABOVE_PERCENT: u64 = 80;

/// Picoseconds in a second: costs are whole numbers of these for each byte.
const PICOSECONDS: u64 = 1_000_000_000_000;

/// A group that matched readers listen to.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) used: bool,
    /// Addresses that unicast would need, with the readers behind each and its cost, and what they cost together.
    addresses: BTreeMap<Locator, (usize, u64)>,
    unicast: u64,
    /// Participants with readers, and on which link.
    participants: BTreeMap<GuidPrefix, (usize, Option<usize>)>,
    /// Participants with readers on each link.
    on_link: Vec<u32>,
    /// Readers that have no other address.
    only_way: usize,
}

fn cost(bytes_per_second: u64) -> u64 {
    PICOSECONDS / bytes_per_second.max(1)
}

/// Links of unknown speed are behind routers.
fn unicast_cost(link: Option<&Link>) -> u64 {
    cost(link.map_or(WIRED_BYTES_PER_SECOND, |link| link.bytes_per_second))
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.participants.is_empty()
    }

    /// Whether a reader cannot be reached otherwise.
    pub(super) fn is_needed(&self) -> bool {
        self.only_way > 0
    }

    pub(super) fn add(&mut self, around: &Neighbourhood, reader: GuidPrefix, link: Option<usize>, unicast: &[Locator]) {
        self.on_link.resize(around.links().len(), 0);
        let cost = unicast_cost(link.map(|link| &around.links()[link]));
        for address in unicast {
            let (readers, cost) = self.addresses.entry(*address).or_insert((0, cost));
            *readers += 1;
            if *readers == 1 {
                self.unicast += *cost;
            }
        }
        self.only_way += usize::from(unicast.is_empty());
        let (readers, _) = self.participants.entry(reader).or_insert((0, link));
        *readers += 1;
        if *readers == 1
            && let Some(link) = link
        {
            self.on_link[link] += 1;
        }
    }

    /// Takes back what [`Group::add`] was told of a reader.
    pub(super) fn remove(&mut self, reader: GuidPrefix, unicast: &[Locator]) {
        for address in unicast {
            if let Some((readers, cost)) = self.addresses.get_mut(address) {
                *readers -= 1;
                if *readers == 0 {
                    self.unicast -= *cost;
                    self.addresses.remove(address);
                }
            }
        }
        self.only_way -= usize::from(unicast.is_empty());
        if let Some((readers, place)) = self.participants.get_mut(&reader) {
            *readers -= 1;
            if *readers == 0 {
                if let Some(link) = *place {
                    self.on_link[link] -= 1;
                }
                self.participants.remove(&reader);
            }
        }
    }

    /// Whether to send to the group; what is in use already decides within the hysteresis.
    pub(super) fn is_chosen(&self, choice: Destination, around: &Neighbourhood, group: &Locator) -> bool {
        if self.is_empty() {
            return false;
        }
        let auto = || {
            let percent = if self.used { LEFT_ABOVE_PERCENT } else { TAKEN_BELOW_PERCENT };
            let multicast = self.multicast(around, group);
            multicast.is_some_and(|multicast| multicast * 100 < self.unicast * percent)
        };
        self.is_needed()
            || match choice {
                Destination::Auto => auto(),
                Destination::Unicast => false,
                Destination::Multicast => true,
            }
    }

    /// Cost of a copy by every link that carries the group; `None` when none does.
    fn multicast(&self, around: &Neighbourhood, group: &Locator) -> Option<u64> {
        let ip = group.socket_address()?.ip();
        let links = around.links().iter().enumerate().filter(|(_, link)| link.carries_group(ip));
        let costs = links.map(|(index, link)| {
            let weight = 1_000 + u64::from(self.bystanders(around, group, index)) * DROP_COST_PER_MILLE;
            cost(link.group_bytes_per_second()) * weight / 1_000
        });
        costs.reduce(u64::saturating_add)
    }

    /// Participants that a copy on this link reaches for nothing.
    fn bystanders(&self, around: &Neighbourhood, group: &Locator, link: usize) -> u32 {
        around.listeners(group, link).saturating_sub(self.on_link.get(link).copied().unwrap_or(0))
    }

    pub(super) fn explain(&self, choice: Destination, around: &Neighbourhood, group: &Locator) -> GroupExplanation {
        let multicast = self.multicast(around, group);
        let ip = group.socket_address().map(|address| address.ip());
        let links = around.links().iter().enumerate();
        let carrying = links.filter(|(_, link)| ip.is_some_and(|ip| link.carries_group(ip)));
        GroupExplanation {
            group: *group,
            used: self.used,
            participants: self.participants.len(),
            unicast_addresses: self.addresses.len(),
            unicast_nanos_per_byte: nanos(self.unicast),
            multicast_nanos_per_byte: multicast.map(nanos),
            links: carrying
                .map(|(index, link)| LinkExplanation {
                    name: link.name.clone(),
                    medium: link.medium,
                    bytes_per_second: link.bytes_per_second,
                    group_bytes_per_second: link.group_bytes_per_second(),
                    participants: self.on_link.get(index).copied().unwrap_or(0),
                    bystanders: self.bystanders(around, group, index),
                })
                .collect(),
            why: self.reason(choice, multicast),
        }
    }

    fn reason(&self, choice: Destination, multicast: Option<u64>) -> String {
        let Some(multicast) = multicast else { return "no link carries the group".to_owned() };
        let percent = multicast * 100 / self.unicast.max(1);
        match (self.only_way, choice, self.used) {
            (1.., ..) => "a reader behind it announces no other address".to_owned(),
            (_, Destination::Unicast | Destination::Multicast, _) => format!("configured: {choice}"),
            (_, Destination::Auto, true) => format!(
                "multicast costs {percent} % of unicast; it is chosen below {TAKEN_BELOW_PERCENT} % and then kept below \
                 {LEFT_ABOVE_PERCENT} %"
            ),
            (_, Destination::Auto, false) => {
                format!("multicast would cost {percent} % of unicast; it is chosen below {TAKEN_BELOW_PERCENT} %")
            }
        }
    }
}

fn nanos(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e3
}
