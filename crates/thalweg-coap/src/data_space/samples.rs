//! What is known of a topic's samples.

use std::collections::{BTreeMap, BTreeSet};

use thalweg::types::{Guid, KeyHash, SequenceNumber};
use thalweg_types::document::Document;

/// The newest sample of each instance.
#[derive(Default)]
pub(super) struct Samples {
    pub(super) instances: BTreeMap<KeyHash, Kept>,
    pub(super) arrivals: u64,
    /// Arrivals up to this number came from earlier readers. Of their instances the present one may know nothing, and tell no end.
    inherited: u64,
    /// The fault of the last sample, if it could not be decoded.
    pub(super) failure: Option<String>,
}

/// The newest sample of one instance.
pub(super) struct Kept {
    /// The number of its arrival.
    pub(super) arrival: u64,
    writer: Guid,
    pub(super) document: Document,
}

/// What has been taken of one writer.
#[derive(Default)]
pub(super) struct Progress {
    last: SequenceNumber,
    /// The last number that an earlier reader gave. A reader that asks for history repeats what came up to it.
    known: Option<SequenceNumber>,
}

impl Samples {
    pub(super) fn insert(&mut self, instance: KeyHash, writer: Guid, document: Document) {
        self.arrivals += 1;
        self.failure = None;
        self.instances.insert(instance, Kept { arrival: self.arrivals, writer, document });
        if self.instances.len() <= INSTANCES_MAX {
            return;
        }
        let oldest = self.instances.iter().min_by_key(|(_, kept)| kept.arrival).map(|(key, _)| *key);
        if let Some(oldest) = oldest {
            self.instances.remove(&oldest);
        }
    }

    /// Another reader takes the place of the one that gave all of them.
    pub(super) fn change_reader(&mut self) {
        self.inherited = self.arrivals;
    }

    /// Forgets samples of earlier readers whose writers are not among these; true when there was one.
    pub(super) fn forget_ended(&mut self, writers: &BTreeSet<Guid>) -> bool {
        let (inherited, before) = (self.inherited, self.instances.len());
        self.instances.retain(|_, kept| kept.arrival > inherited || writers.contains(&kept.writer));
        self.instances.len() < before
    }
}

impl Progress {
    /// A sample of this number was taken. Returns whether it is news; false for one that an earlier reader gave.
    pub(super) fn note(&mut self, sequence: SequenceNumber) -> bool {
        let is_news = self.known.is_none_or(|known| sequence > known);
        // The numbers of a writer rise, unless it begins anew: a lower one that comes later is no repetition.
        self.known = self.known.filter(|known| sequence < *known);
        if is_news {
            self.last = sequence;
        }
        is_news
    }

    /// Another reader takes the place of the one that gave all of it.
    pub(super) fn change_reader(&mut self) {
        self.known = Some(self.last);
    }
}

/// Instances kept of a topic; the one that was silent for longest makes room.
const INSTANCES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(number: u8) -> Guid {
        Guid::from_bytes([number; 16])
    }

    #[test]
    fn what_an_earlier_reader_gave_is_no_news_until_the_writer_goes_on() {
        let mut progress = Progress::default();
        assert!([1, 2, 5].into_iter().all(|number| progress.note(SequenceNumber(number))));
        progress.change_reader();
        assert!(![2, 5].into_iter().any(|number| progress.note(SequenceNumber(number))));
        assert!(progress.note(SequenceNumber(6)));
        assert!(progress.note(SequenceNumber(1)), "of a writer that begins anew under its GUID");
    }

    #[test]
    fn a_writer_that_goes_on_at_once_repeats_nothing_later() {
        let mut progress = Progress::default();
        assert!(progress.note(SequenceNumber(5)));
        progress.change_reader();
        assert!(progress.note(SequenceNumber(7)));
        assert!(progress.note(SequenceNumber(3)));
    }

    #[test]
    fn what_an_earlier_reader_gave_ends_with_its_writer() {
        let mut samples = Samples::default();
        let key = |number: u8| KeyHash([number; 16]);
        samples.insert(key(1), writer(1), Document::Null);
        samples.insert(key(2), writer(2), Document::Null);
        assert!(!samples.forget_ended(&BTreeSet::new()), "the reader tells the end of what it gave");
        samples.change_reader();
        samples.insert(key(3), writer(3), Document::Null);
        assert!(samples.forget_ended(&BTreeSet::from([writer(2)])));
        assert!(samples.instances.keys().eq(&[key(2), key(3)]));
        assert!(!samples.forget_ended(&BTreeSet::from([writer(2)])));
    }
}
