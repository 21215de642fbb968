//! The listeners on each link and group that discovery knows.

use super::Database;
use crate::writer::neighbourhood::{Link, Medium, Neighbourhood};

/// Counts listeners on each link and group. Participants of this host, ourselves included, hear every link's copy of our datagrams.
pub fn neighbourhood(links: &[Link], database: &Database) -> Neighbourhood {
    let mut gathered = Neighbourhood::new(links);
    for known in database.participants.values() {
        let places: Vec<usize> = (0..gathered.links().len())
            .filter(|index| {
                let locators = &known.data.locators.default_unicast;
                // Every participant announces a loopback address, which means a different host for each.
                let within = gathered.links()[*index].medium == Medium::Loopback;
                let hears = || !within && locators.iter().any(|locator| gathered.is_on(*index, locator));
                known.reach.on_this_host || hears()
            })
            .collect();
        for group in &known.data.locators.default_multicast {
            gathered.count(*group, &places);
        }
    }
    gathered
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::discovery::participant_data::ParticipantData;
    use crate::discovery::{KnownParticipant, Reach};
    use crate::types::GuidPrefix;
    use crate::types::Locator;
    use crate::writer::neighbourhood::WIRED_BYTES_PER_SECOND;

    fn locator(text: &str) -> Locator {
        Locator::from(text.parse::<SocketAddr>().unwrap())
    }

    fn link(name: &str, address: &str, medium: Medium) -> Link {
        let addresses = vec![(address.parse().unwrap(), 24)];
        Link { name: name.into(), addresses, medium, multicast: true, bytes_per_second: WIRED_BYTES_PER_SECOND }
    }

    #[test]
    fn listeners_are_counted_on_the_links_that_reach_them() {
        let links = [link("lo", "127.0.0.1", Medium::Loopback), link("eth0", "10.0.0.1", Medium::Wired)];
        let mut database = Database::default();
        let group = locator("239.255.0.1:7401");
        for (number, address, on_this_host) in
            [(1, "10.0.0.1:1", true), (2, "10.0.0.2:1", false), (3, "192.168.7.7:1", false)]
        {
            let mut data = ParticipantData::new(GuidPrefix([number; 12]));
            data.locators.default_unicast = vec![locator(address), locator("127.0.0.1:1")];
            data.locators.default_multicast = vec![group];
            let mut reach = Reach::default();
            reach.on_this_host = on_this_host;
            let known = KnownParticipant::new(data, reach);
            database.participants.insert(GuidPrefix([number; 12]), known);
        }
        let gathered = neighbourhood(&links, &database);
        assert_eq!([0, 1].map(|link| gathered.listeners(&group, link)), [1, 2], "one is behind a router");
        assert_eq!(gathered.link_of(&locator("10.0.0.9:1")), Some(1));
        assert_eq!(gathered.link_of(&locator("192.168.7.7:1")), None);
        assert_eq!(neighbourhood(&[], &database).link_of(&locator("192.168.7.7:1")), Some(0));
    }
}
