//! What a participant reports to its driver: events, and counts of what it refused.

use std::collections::VecDeque;

use super::{Event, ParticipantExplanation};
use crate::discovery::database::{DiscoveryLimit, Learned};
use crate::history::TakenSample;
use crate::types::{Guid, GuidPrefix};

/// Counts of what a participant handled, refused or ignored; all start at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantCounters {
    /// Datagrams handled.
    pub datagrams: u64,
    /// Datagrams or submessages that are not RTPS or are cut short.
    pub malformed: u64,
    /// Discovery data and samples of services that cannot be read or must not be used.
    pub unusable_announcements: u64,
    /// Announcements beyond [`DiscoveryLimits`](crate::discovery::DiscoveryLimits), and peers and samples of services beyond their
    /// bounds.
    pub over_limit: u64,
    /// Of these, announcements of participants.
    pub participants_over_limit: u64,
    /// Of these, announcements of endpoints.
    pub endpoints_over_limit: u64,
    /// Announcements of participants that are ignored because of their communication groups.
    pub other_groups: u64,
    /// Datagrams or submessages in the name of a known participant that came from an address which is not its own.
    pub foreign_source: u64,
    /// Samples of keyed topics whose key cannot be determined.
    pub keyless: u64,
    /// Participants that had not proved their address and had to make room for others.
    pub strangers_evicted: u64,
    /// Announcements of participants that cannot prove their address: they have no reader of endpoint discovery.
    pub unprovable: u64,
    /// Answers in the name of participants without a proved address that carry other numbers than their challenge asked for.
    pub wrong_proofs: u64,
    /// Addresses of endpoints that are not used because they have not answered.
    pub unproved_locators: u64,
}

/// Events that were not fetched yet, and the counters.
#[derive(Debug, Default)]
pub(super) struct Reports {
    events: VecDeque<Event>,
    pub counters: ParticipantCounters,
}

impl Reports {
    /// Appends an event unless the newest one is the same.
    pub(super) fn tell(&mut self, event: Event) {
        if self.events.back() != Some(&event) {
            self.append(event);
        }
    }

    /// Appends an event even if the newest one is the same.
    pub(super) fn append(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// The oldest event.
    pub(super) fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Counts of what the participant refused of others.
    pub(super) fn explain(&self, guid_prefix: GuidPrefix) -> ParticipantExplanation {
        let counters = &self.counters;
        ParticipantExplanation {
            guid_prefix,
            foreign_source: counters.foreign_source,
            wrong_proofs: counters.wrong_proofs,
            unprovable: counters.unprovable,
            unproved_locators: counters.unproved_locators,
            participants_over_limit: counters.participants_over_limit,
            endpoints_over_limit: counters.endpoints_over_limit,
        }
    }

    /// The endpoint whose end a participant announces. One of another participant is refused and counted.
    pub(super) fn note_end(&mut self, prefix: GuidPrefix, sample: &TakenSample) -> Option<Guid> {
        let guid = Guid::from_bytes(sample.info.instance.0);
        if guid.prefix != prefix {
            self.counters.unusable_announcements += 1;
            return None;
        }
        Some(guid)
    }

    /// Counts what was refused; returns the endpoint that is new or has changed.
    pub(super) fn note_learned(&mut self, prefix: GuidPrefix, learned: Learned) -> Option<Guid> {
        match learned {
            Learned::News(guid) => return Some(guid),
            Learned::Nothing => {}
            Learned::Unusable => self.counters.unusable_announcements += 1,
            Learned::OverLimit(limit) => self.note_over_limit(prefix, limit),
        }
        None
    }

    /// Counts a refusal by a limit of discovery. The first one and each that doubles the count are events, so that a peer that
    /// fills the table does not fill the log as well.
    pub(super) fn note_over_limit(&mut self, participant: GuidPrefix, limit: DiscoveryLimit) {
        self.counters.over_limit += 1;
        let count = match limit {
            DiscoveryLimit::Participants => &mut self.counters.participants_over_limit,
            DiscoveryLimit::Endpoints | DiscoveryLimit::Memory => &mut self.counters.endpoints_over_limit,
        };
        *count += 1;
        let refused = *count;
        if refused.is_power_of_two() {
            self.tell(Event::OverLimit { participant, limit, refused });
        }
    }
}
