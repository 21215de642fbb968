//! What keeps a writer and a reader of two participants apart.

use std::collections::HashMap;
use std::time::Duration;

use thalweg::DomainParticipant;
use thalweg::discovery::{Groups, PublicationData, SubscriptionData};
use thalweg::types::{GuidPrefix, VendorId};

/// Compares endpoints of the participants that one knows.
pub struct EndpointComparison<'a> {
    participant: &'a DomainParticipant,
    members: HashMap<GuidPrefix, Member>,
}

/// A participant with its communication groups.
struct Member {
    groups: Groups,
    /// Other vendors know no groups.
    heeds_groups: bool,
}

impl<'a> EndpointComparison<'a> {
    /// One between the participants that this one knows by now.
    pub fn new(participant: &'a DomainParticipant) -> EndpointComparison<'a> {
        let members = participant.discovered_participants().into_iter().map(|data| {
            let member = Member { groups: Groups::of(&data), heeds_groups: data.vendor == VendorId::THALWEG };
            (data.guid_prefix, member)
        });
        EndpointComparison { participant, members: members.collect() }
    }

    /// Why a writer and a reader do not match, in a sentence; `None` where they do. Their participants have `patience` to tell their types;
    /// then the names decide.
    pub fn mismatch(&self, writer: &PublicationData, reader: &SubscriptionData, patience: Duration) -> Option<String> {
        self.separation(writer.guid.prefix, reader.guid.prefix).or_else(|| {
            let result = self.participant.compare(writer, reader, patience);
            (!result.is_match()).then(|| result.to_string())
        })
    }

    /// Why the participants of a writer and a reader take no notice of each other, if they do not.
    fn separation(&self, writer: GuidPrefix, reader: GuidPrefix) -> Option<String> {
        let (of_writer, of_reader) = (self.members.get(&writer)?, self.members.get(&reader)?);
        let is_heeded = of_writer.heeds_groups || of_reader.heeds_groups;
        (is_heeded && !of_writer.groups.meet(&of_reader.groups)).then(|| {
            format!(
                "their participants share no communication group: the writer's is in {}, the reader's in {}",
                listed(&of_writer.groups),
                listed(&of_reader.groups)
            )
        })
    }
}

/// The groups by their names.
fn listed(groups: &Groups) -> String {
    if groups.is_empty() { "default".to_owned() } else { groups.to_string() }
}
