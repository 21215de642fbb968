//! A route in numbers that people can follow.

use crate::qos::Destination;
use crate::types::Locator;
use crate::writer::Medium;

/// Where a writer's first transmissions go, and the computation behind it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RouteExplanation {
    /// The TRANSMISSION policy.
    pub configured: Destination,
    /// Where every datagram goes to; of what another participant tells, the first 32.
    pub destinations: Vec<Locator>,
    /// How many destinations there are.
    pub destination_count: usize,
    /// How many of these understand DATA_BATCH, all readers behind them.
    pub batch_destinations: usize,
    /// Matched readers on this host: never reached by a group, unless that is configured.
    pub readers_on_this_host: usize,
    /// Matched readers elsewhere that no group reaches: none announced, given up for its losses, or behind a router.
    pub readers_without_group: usize,
    /// The groups that readers listen to, with both costs.
    pub groups: Vec<GroupExplanation>,
}

/// Costs of the readers behind one group, by the group and one by one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GroupExplanation {
    /// The group.
    pub group: Locator,
    /// Whether it is in use.
    pub used: bool,
    /// Participants with matched readers behind it.
    pub participants: usize,
    /// Addresses that unicast needs in its place.
    pub unicast_addresses: usize,
    /// Link time for each byte of a sample sent one by one; 8 is one copy at 1 Gbit/s.
    pub unicast_nanos_per_byte: f64,
    /// Link time for each byte of a sample sent to the group; `None` when no link carries it.
    pub multicast_nanos_per_byte: Option<f64>,
    /// The links that a datagram to the group leaves by.
    pub links: Vec<LinkExplanation>,
    /// Why the group is used or not, in a sentence.
    pub why: String,
}

/// One link's share in the cost of a group.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LinkExplanation {
    /// The interface's name.
    pub name: String,
    /// Its medium.
    pub medium: Medium,
    /// Its speed to one receiver.
    pub bytes_per_second: u64,
    /// Its speed to groups.
    pub group_bytes_per_second: u64,
    /// Participants on it with matched readers.
    pub participants: u32,
    /// Participants on it, or on this host, that receive the group's datagrams and drop them.
    pub bystanders: u32,
}

impl GroupExplanation {
    /// A group of which nothing is told yet.
    pub fn of(group: Locator) -> GroupExplanation {
        GroupExplanation {
            group,
            used: false,
            participants: 0,
            unicast_addresses: 0,
            unicast_nanos_per_byte: 0.0,
            multicast_nanos_per_byte: None,
            links: Vec::new(),
            why: String::new(),
        }
    }
}
