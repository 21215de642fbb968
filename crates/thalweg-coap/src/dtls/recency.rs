//! The order in which things were used last, among all and among those of a host, at a constant cost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::endpoint::PeerHost;

/// Places in the order of their use, of all hosts and of each.
#[derive(Debug, Default)]
pub struct Recency {
    all: Ends,
    hosts: HashMap<PeerHost, Ends>,
    of_all: Chain,
    of_hosts: Chain,
}

/// Where an order begins and ends.
#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: usize,
}

/// The neighbours of places; orders without common places share one.
#[derive(Debug, Default)]
struct Chain(Vec<Links>);

#[derive(Clone, Copy, Debug)]
struct Links {
    newer: u32,
    older: u32,
}

const NONE: u32 = u32::MAX;

impl Recency {
    /// How many places are in the order.
    pub fn len(&self) -> usize {
        self.all.len
    }

    /// How many of them are of a host.
    pub fn len_of(&self, host: PeerHost) -> usize {
        self.hosts.get(&host).map_or(0, |ends| ends.len)
    }

    /// The place that was not used for the longest time.
    pub fn oldest(&self) -> Option<u32> {
        self.all.oldest()
    }

    /// The same among those of a host.
    pub fn oldest_of(&self, host: PeerHost) -> Option<u32> {
        self.hosts.get(&host)?.oldest()
    }

    /// Adds a place of a host that is not in the order.
    pub fn insert(&mut self, host: PeerHost, place: u32) {
        self.of_all.append(&mut self.all, place);
        self.of_hosts.append(self.hosts.entry(host).or_default(), place);
    }

    /// Takes a place of a host that is in the order out of it.
    pub fn remove(&mut self, host: PeerHost, place: u32) {
        self.of_all.unlink(&mut self.all, place);
        let Entry::Occupied(mut ends) = self.hosts.entry(host) else { return };
        self.of_hosts.unlink(ends.get_mut(), place);
        if ends.get().len == 0 {
            ends.remove();
        }
    }

    /// A place of a host that is in the order is used.
    #[inline]
    pub fn touch(&mut self, host: PeerHost, place: u32) {
        if self.all.newest == place {
            return; // Then it is the newest of its host as well.
        }
        self.of_all.unlink(&mut self.all, place);
        self.of_all.append(&mut self.all, place);
        if let Some(ends) = self.hosts.get_mut(&host).filter(|ends| ends.newest != place) {
            self.of_hosts.unlink(ends, place);
            self.of_hosts.append(ends, place);
        }
    }
}

impl Ends {
    fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

/// Those of an order without places.
impl Default for Ends {
    fn default() -> Ends {
        Ends { newest: NONE, oldest: NONE, len: 0 }
    }
}

impl Chain {
    fn append(&mut self, ends: &mut Ends, place: u32) {
        if self.0.len() <= place as usize {
            self.0.resize(place as usize + 1, Links { newer: NONE, older: NONE });
        }
        self.0[place as usize] = Links { newer: NONE, older: ends.newest };
        match ends.newest {
            NONE => ends.oldest = place,
            newest => self.0[newest as usize].newer = place,
        }
        ends.newest = place;
        ends.len += 1;
    }

    fn unlink(&mut self, ends: &mut Ends, place: u32) {
        let Links { newer, older } = self.0[place as usize];
        match newer {
            NONE => ends.newest = older,
            newer => self.0[newer as usize].older = older,
        }
        match older {
            NONE => ends.oldest = newer,
            older => self.0[older as usize].newer = newer,
        }
        ends.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Peer;

    fn host(number: u8) -> PeerHost {
        Peer::from(([192, 0, 2, number], 5684)).host()
    }

    #[test]
    fn the_oldest_is_the_one_that_was_not_touched() {
        let mut order = Recency::default();
        (0..4).for_each(|place| order.insert(host(1), place));
        order.touch(host(1), 0);
        order.touch(host(1), 1);
        order.remove(host(1), 2);
        let mut drained = Vec::new();
        while let Some(place) = order.oldest() {
            drained.push(place);
            order.remove(host(1), place);
        }
        assert_eq!(drained, [3, 0, 1]);
        order.insert(host(1), 2);
        assert_eq!(order.oldest(), Some(2));
    }

    #[test]
    fn each_host_has_an_order_of_its_own() {
        let mut order = Recency::default();
        for place in 0..6 {
            order.insert(host(place as u8 % 2), place);
        }
        order.touch(host(0), 0);
        assert_eq!((order.oldest(), order.oldest_of(host(0)), order.oldest_of(host(1))), (Some(1), Some(2), Some(1)));
        order.remove(host(0), 2);
        assert_eq!((order.len(), order.len_of(host(0)), order.oldest_of(host(0))), (5, 2, Some(4)));
        for place in [1, 3, 5] {
            order.remove(host(1), place);
        }
        assert_eq!((order.len_of(host(1)), order.oldest_of(host(1)), order.oldest()), (0, None, Some(4)));
        assert_eq!(order.len(), 2);
    }
}
