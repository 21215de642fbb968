//! The endpoints of each topic.

use std::collections::BTreeMap;

use crate::types::{EntityId, Guid, GuidPrefix};

/// GUIDs by the name of their topic, so that a new endpoint is compared with those of its own topic only. The names come from
/// peers, hence a tree: its cost does not depend on how they were chosen.
#[derive(Debug, Default)]
pub(super) struct TopicIndex {
    /// In the order of GUIDs; no list is empty.
    topics: BTreeMap<Box<str>, Vec<Guid>>,
}

impl TopicIndex {
    pub(super) fn insert(&mut self, topic: &str, guid: Guid) {
        match self.topics.get_mut(topic) {
            Some(guids) => {
                if let Err(place) = guids.binary_search(&guid) {
                    guids.insert(place, guid);
                }
            }
            None => {
                self.topics.insert(topic.into(), vec![guid]);
            }
        }
    }

    pub(super) fn remove(&mut self, topic: &str, guid: Guid) {
        let Some(guids) = self.topics.get_mut(topic) else { return };
        if let Ok(place) = guids.binary_search(&guid) {
            guids.remove(place);
        }
        if guids.is_empty() {
            self.topics.remove(topic);
        }
    }

    /// All endpoints on a topic.
    pub(super) fn of_topic(&self, topic: &str) -> &[Guid] {
        self.topics.get(topic).map_or(&[], Vec::as_slice)
    }

    /// The endpoints of one participant on a topic.
    pub(super) fn of_participant(&self, topic: &str, participant: GuidPrefix) -> &[Guid] {
        let guids = self.of_topic(topic);
        let first = guids.partition_point(|guid| *guid < Guid::new(participant, EntityId([0; 4])));
        let end = guids.partition_point(|guid| *guid <= Guid::new(participant, EntityId([0xff; 4])));
        &guids[first..end]
    }

    /// Bytes of memory for an endpoint on a topic of this name, shared with no other.
    pub(super) fn bytes_for(topic: &str) -> usize {
        topic.len() + size_of::<(Box<str>, Vec<Guid>)>() + GUIDS_MIN * size_of::<Guid>()
    }

    #[cfg(test)]
    pub(super) fn topics(&self) -> usize {
        self.topics.len()
    }
}

/// Places for which the first allocation of a list has room.
const GUIDS_MIN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn guid(participant: u8, key: u32) -> Guid {
        let key = key.to_be_bytes();
        Guid::new(GuidPrefix([participant; 12]), EntityId([key[1], key[2], key[3], 2]))
    }

    #[test]
    fn endpoints_are_found_by_topic_and_participant_and_nothing_stays_of_an_empty_topic() {
        let mut index = TopicIndex::default();
        for (topic, guid) in
            [("a", guid(2, 7)), ("a", guid(1, 9)), ("b", guid(2, 8)), ("a", guid(2, 1)), ("a", guid(3, 0))]
        {
            index.insert(topic, guid);
            index.insert(topic, guid);
        }
        assert_eq!(index.of_topic("a"), [guid(1, 9), guid(2, 1), guid(2, 7), guid(3, 0)]);
        assert_eq!(index.of_participant("a", GuidPrefix([2; 12])), [guid(2, 1), guid(2, 7)]);
        assert_eq!(index.of_participant("b", GuidPrefix([3; 12])), []);
        assert_eq!(index.of_topic("c"), []);
        index.remove("b", guid(2, 8));
        index.remove("c", guid(2, 8));
        assert_eq!(index.topics(), 1);
    }
}
