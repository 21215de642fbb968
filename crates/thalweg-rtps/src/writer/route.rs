//! Where first transmissions go: the addresses of all matched readers, each participant once.

use super::MatchedReader;
use crate::history::Change;
use crate::qos::Destination;
use crate::types::{ETHERNET_V4_DATAGRAM_BYTES, EntityId, GuidPrefix, Locator, VendorId};
use crate::wire::write;

/// What stands around a fragment: header, INFO_DST, INFO_TS, DATA_FRAG with the inline QoS of a dispose, HEARTBEAT.
const FRAGMENT_OVERHEAD_BYTES: usize = write::HEADER_LEN
    + write::INFO_DST_LEN
    + write::INFO_TS_LEN
    + write::DATA_FRAG_HEAD_LEN
    + 48
    + write::HEARTBEAT_LEN;

/// Participants on other hosts from which on one multicast datagram replaces unicast ones.
const MULTICAST_MIN_PARTICIPANTS: usize = 3;

#[derive(Debug)]
pub(super) struct Route {
    choice: Destination,
    destinations: Vec<Locator>,
    /// The part of `destinations` behind which every reader understands DATA_BATCH, and the rest.
    batch_destinations: Vec<Locator>,
    plain_destinations: Vec<Locator>,
    datagram_bytes: usize,
    /// The only reader, or UNKNOWN for all.
    reader: EntityId,
    only_thalweg: bool,
}

/// Fragment size for datagrams of `datagram_bytes`: a multiple of 8, so that no fragment but the last needs padding.
pub(super) fn fragment_bytes_in(datagram_bytes: usize) -> u16 {
    let bytes = (datagram_bytes - FRAGMENT_OVERHEAD_BYTES) & !7;
    u16::try_from(bytes).unwrap_or(u16::MAX - 7)
}

impl Route {
    pub(super) fn new(choice: Destination) -> Route {
        Route {
            choice,
            destinations: Vec::new(),
            batch_destinations: Vec::new(),
            plain_destinations: Vec::new(),
            datagram_bytes: ETHERNET_V4_DATAGRAM_BYTES,
            reader: EntityId::UNKNOWN,
            only_thalweg: true,
        }
    }

    pub(super) fn destinations(&self) -> &[Locator] {
        &self.destinations
    }

    /// Destinations behind which every reader understands DATA_BATCH.
    pub(super) fn batch_destinations(&self) -> &[Locator] {
        &self.batch_destinations
    }

    /// Destinations behind which a reader needs DATA; with [`Route::batch_destinations`] all of them, each once.
    pub(super) fn plain_destinations(&self) -> &[Locator] {
        &self.plain_destinations
    }

    /// True when first transmissions go to a multicast group.
    pub(super) fn uses_group(&self) -> bool {
        self.destinations.iter().any(Locator::is_multicast)
    }

    pub(super) fn datagram_bytes(&self) -> usize {
        self.datagram_bytes
    }

    pub(super) fn reader(&self) -> EntityId {
        self.reader
    }

    /// Fragment size of a sample with `payload_bytes`; `None` when it fits one datagram.
    ///
    /// Thalweg's readers get fragments of equal size, so that the last one does not come late and small. For readers of other
    /// vendors the size stays the same from sample to sample, as RTPS 2.5 §8.4.14.1 asks.
    pub(super) fn fragment_bytes(&self, payload_bytes: usize) -> Option<u16> {
        let largest = fragment_bytes_in(self.datagram_bytes);
        if payload_bytes <= usize::from(largest) {
            return None;
        }
        let even = payload_bytes.div_ceil(payload_bytes.div_ceil(usize::from(largest)));
        let even = u16::try_from(even.next_multiple_of(8)).unwrap_or(largest);
        Some(if self.only_thalweg { even.min(largest) } else { largest })
    }

    /// Fragment size for a change that was written before readers with a narrower path came.
    pub(super) fn narrower_fragment_bytes(&self, change: &Change) -> Option<u16> {
        let fitting = self.fragment_bytes(change.payload.len())?;
        change.fragment_bytes.is_none_or(|bytes| bytes > fitting).then_some(fitting)
    }

    pub(super) fn update<'a>(&mut self, readers: impl ExactSizeIterator<Item = &'a MatchedReader> + Clone) {
        self.reader = match readers.clone().next() {
            Some(only) if readers.len() == 1 => only.guid.entity,
            _ => EntityId::UNKNOWN,
        };
        self.only_thalweg = readers.clone().all(|reader| reader.vendor == VendorId::THALWEG);
        self.datagram_bytes =
            readers.clone().map(|reader| reader.datagram_bytes).min().unwrap_or(ETHERNET_V4_DATAGRAM_BYTES);
        let mut by_participant: Vec<(GuidPrefix, &MatchedReader)> =
            readers.map(|reader| (reader.guid.prefix, reader)).collect();
        by_participant.sort_by_key(|(prefix, _)| *prefix);
        by_participant.dedup_by_key(|(prefix, _)| *prefix);
        let remote = by_participant.iter().filter(|(_, reader)| !reader.on_this_host && reader.multicast.is_some());
        let multicast = match self.choice {
            Destination::Auto => remote.count() >= MULTICAST_MIN_PARTICIPANTS,
            Destination::Unicast => false,
            Destination::Multicast => true,
        };
        self.destinations.clear();
        let mut plain = Vec::new();
        for (_, reader) in by_participant {
            let off_host = !reader.on_this_host || self.choice == Destination::Multicast;
            let group = reader.multicast.filter(|_| multicast && off_host);
            for locator in group.as_ref().map_or(&reader.unicast[..], std::slice::from_ref) {
                if !self.destinations.contains(locator) {
                    self.destinations.push(*locator);
                }
                if !reader.batches {
                    plain.push(*locator);
                }
            }
        }
        (self.plain_destinations, self.batch_destinations) =
            self.destinations.iter().partition(|locator| plain.contains(locator));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Guid, ON_HOST_DATAGRAM_BYTES};

    fn reader(host: u8, on_this_host: bool) -> MatchedReader {
        let locator = |last: u8| {
            let address = std::net::SocketAddr::from(([10, 0, 0, last], 7411));
            Locator::from(address)
        };
        MatchedReader {
            guid: Guid::new(GuidPrefix([host; 12]), EntityId([0, 0, host, 4])),
            vendor: VendorId::THALWEG,
            reliable: true,
            wants_history: false,
            unicast: vec![locator(host)],
            multicast: Some(Locator::from(std::net::SocketAddr::from(([239, 255, 0, 1], 7401)))),
            on_this_host,
            datagram_bytes: 1472,
            batches: true,
            receive_buffer_bytes: None,
        }
    }

    #[track_caller]
    fn check(choice: Destination, readers: &[MatchedReader], expect: &[&str]) {
        let mut route = Route::new(choice);
        route.update(readers.iter());
        let got: Vec<String> = route.destinations().iter().map(ToString::to_string).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn auto_uses_multicast_from_three_remote_participants_on() {
        let two = [reader(1, false), reader(2, false)];
        check(Destination::Auto, &two, &["udp/10.0.0.1:7411", "udp/10.0.0.2:7411"]);
        let four = [reader(1, false), reader(2, false), reader(3, false), reader(4, true)];
        check(Destination::Auto, &four, &["udp/239.255.0.1:7401", "udp/10.0.0.4:7411"]);
        check(Destination::Multicast, &two, &["udp/239.255.0.1:7401"]);
    }

    #[test]
    fn a_group_carries_batches_only_if_all_behind_it_understand_them() {
        let mut foreign = reader(3, false);
        foreign.batches = false;
        let check = |choice, batch: &[&str], plain: &[&str]| {
            let mut route = Route::new(choice);
            route.update([reader(1, false), reader(2, true), foreign.clone()].iter());
            let text = |list: &[Locator]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
            assert_eq!((text(route.batch_destinations()), text(route.plain_destinations())), {
                let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
                (owned(batch), owned(plain))
            });
        };
        check(Destination::Unicast, &["udp/10.0.0.1:7411", "udp/10.0.0.2:7411"], &["udp/10.0.0.3:7411"]);
        check(Destination::Multicast, &[], &["udp/239.255.0.1:7401"]);
    }

    #[test]
    fn readers_of_one_participant_get_one_copy() {
        let mut second = reader(1, false);
        second.guid.entity = EntityId([9, 9, 9, 4]);
        let mut route = Route::new(Destination::Auto);
        route.update([reader(1, false), second].iter());
        assert_eq!(route.destinations().len(), 1);
        assert_eq!(route.reader(), EntityId::UNKNOWN);
    }

    #[test]
    fn fragments_fit_their_datagram() {
        assert_eq!(fragment_bytes_in(ETHERNET_V4_DATAGRAM_BYTES), 1304);
        assert!(usize::from(fragment_bytes_in(ON_HOST_DATAGRAM_BYTES)) > 64_000);
        let route = Route::new(Destination::Auto);
        assert_eq!(route.fragment_bytes(1304), None);
        assert_eq!(route.fragment_bytes(1305), Some(656));
        let mut foreign = reader(1, false);
        foreign.vendor = VendorId::CYCLONE;
        let mut route = Route::new(Destination::Auto);
        route.update([foreign].iter());
        assert_eq!(route.fragment_bytes(1305), Some(1304));
    }
}
