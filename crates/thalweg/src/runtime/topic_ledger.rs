//! What the deleted endpoints of a participant did, by topic.

use std::collections::HashMap;

use crate::figures::{ReaderFigures, TopicFigures, WriterFigures};

/// The topics in the order of their first endpoints. One that has a name here keeps it.
#[derive(Default)]
pub(super) struct TopicLedger {
    named: Vec<TopicFigures>,
    places: HashMap<String, usize>,
    /// All topics beyond the bound.
    others: Option<TopicFigures>,
}

impl TopicLedger {
    /// An endpoint of this topic is created.
    pub(super) fn open(&mut self, topic: &str) {
        self.entry(topic);
    }

    /// A writer is deleted.
    pub(super) fn close_writer(&mut self, writer: &WriterFigures) {
        let entry = self.entry(&writer.topic);
        entry.writers += 1;
        entry.writer_counters += writer.counters;
    }

    /// A reader is deleted.
    pub(super) fn close_reader(&mut self, reader: &ReaderFigures) {
        let entry = self.entry(&reader.topic);
        entry.readers += 1;
        entry.reader_counters += reader.counters;
        entry.losses += reader.losses;
        entry.overwritten += reader.overwritten;
    }

    /// All of them, those without a name last.
    pub(super) fn topics(&self) -> Vec<TopicFigures> {
        self.named.iter().chain(&self.others).cloned().collect()
    }

    fn entry(&mut self, topic: &str) -> &mut TopicFigures {
        let place = match self.places.get(topic).copied() {
            Some(place) => place,
            None if self.named.len() >= NAMED_MAX => return self.others.get_or_insert_default(),
            None => {
                self.places.insert(topic.to_owned(), self.named.len());
                self.named.push(TopicFigures { topic: Some(topic.to_owned()), ..TopicFigures::default() });
                self.named.len() - 1
            }
        };
        &mut self.named[place]
    }
}

/// Topics with a name, chosen by us: names come from applications, and a server of metrics keeps a time series for each without effort.
const NAMED_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_keeps_its_name_and_one_that_had_none_gets_none() {
        let mut ledger = TopicLedger::default();
        for number in 0..=NAMED_MAX {
            ledger.open(&format!("t{number:03}"));
        }
        ledger.open("a");
        ledger.open("t000");
        let names = |ledger: &TopicLedger| ledger.topics().into_iter().map(|topic| topic.topic).collect::<Vec<_>>();
        let mut expected: Vec<Option<String>> = (0..NAMED_MAX).map(|number| Some(format!("t{number:03}"))).collect();
        expected.push(None);
        assert_eq!(names(&ledger), expected);
    }
}
