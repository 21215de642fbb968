//! The addresses that a participant sends from.

use std::net::IpAddr;

use super::participant_data::ParticipantData;
use crate::types::Locator;

/// The source addresses of one remote participant's datagrams: those that it announces, and those that its answers to challenges
/// came from, since behind a translation of addresses nothing else is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Senders {
    announced: Vec<IpAddr>,
    /// Sources of answers and addresses of single endpoints, the latest first; at most [`FURTHER_MAX`].
    further: Vec<IpAddr>,
}

/// Addresses kept besides the announced ones. Chosen for the interfaces of a large host.
const FURTHER_MAX: usize = 8;

impl Senders {
    /// The addresses of a participant that announced `data`.
    pub fn new(data: &ParticipantData) -> Senders {
        let locators = data.locators.metatraffic_unicast.iter().chain(&data.locators.default_unicast);
        let mut announced: Vec<IpAddr> = locators.filter_map(ip_of).collect();
        announced.sort_unstable();
        announced.dedup();
        Senders { announced, further: Vec::new() }
    }

    /// Adds the further addresses known before, when the participant announces others.
    pub(super) fn keep_further_of(&mut self, before: &Senders) {
        for ip in before.further.iter().rev() {
            if self.further.len() < FURTHER_MAX && !self.contains(*ip) {
                self.further.push(*ip);
            }
        }
    }

    /// Whether the participant sends from `ip`.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.announced.contains(&ip) || self.further.contains(&ip)
    }

    /// Whether one of the announced addresses fulfils `condition`.
    pub(super) fn any_announced(&self, condition: impl Fn(IpAddr) -> bool) -> bool {
        self.announced.iter().any(|ip| condition(*ip))
    }

    /// Adds addresses that the participant's endpoints announce for themselves.
    pub fn add_locators(&mut self, locators: &[Locator]) {
        locators.iter().filter_map(ip_of).for_each(|ip| self.add(ip));
    }

    /// Adds an address that an answer came from.
    pub fn add(&mut self, ip: IpAddr) {
        let ip = ip.to_canonical();
        if !self.contains(ip) {
            self.further.insert(0, ip);
            self.further.truncate(FURTHER_MAX);
        }
    }
}

fn ip_of(locator: &Locator) -> Option<IpAddr> {
    locator.socket_address().map(|address| address.ip().to_canonical()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::types::GuidPrefix;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn senders(announced: &[&str]) -> Senders {
        let mut data = ParticipantData::new(GuidPrefix([1; 12]));
        let locator = |text: &&str| Locator::from(SocketAddr::new(ip(text), 7411));
        data.locators.default_unicast = announced.iter().map(locator).collect();
        Senders::new(&data)
    }

    #[test]
    fn announced_addresses_and_sources_of_answers_count() {
        let mut senders = senders(&["10.0.0.1", "10.1.0.1"]);
        senders.add(ip("192.168.0.1"));
        for (from, expect) in [
            ("10.0.0.1", true),
            ("10.1.0.1", true),
            ("192.168.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("10.0.0.2", false),
        ] {
            assert_eq!(senders.contains(ip(from)), expect, "{from}");
        }
    }

    #[test]
    fn no_more_than_a_few_addresses_are_kept() {
        let mut senders = senders(&["10.0.0.1"]);
        for last in 0..200 {
            senders.add(IpAddr::from([10, 9, 9, last]));
        }
        assert_eq!(senders.further.len(), FURTHER_MAX);
        assert!(senders.contains(ip("10.0.0.1")) && senders.contains(ip("10.9.9.199")));
    }
}
