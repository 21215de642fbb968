//! The content filters of a writer's readers: a sample that all of them refuse is not sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_cdr::Encode;
use thalweg_rtps::discovery::endpoint_data::ContentFilter;
use thalweg_rtps::types::Guid;

use crate::filter::Filter;

/// Readers whose filters are evaluated before a sample is written; samples are sent to others whether they want them or not. Chosen by
/// Thalweg: a filter costs each write some time.
const FILTERS_MAX: usize = 64;
/// Most steps of the comparisons of all filters before a sample is written: a few milliseconds, whatever others announce. Readers for
/// which it is not known by then get the sample. Chosen by Thalweg.
const STEPS_MAX: u64 = 1 << 20;

/// Filters that matched readers announce in DDS's own language.
#[derive(Debug, Default)]
pub(crate) struct ReaderFilters {
    any: AtomicBool,
    filters: Mutex<Vec<(Guid, Filter, Fit)>>,
}

/// Whether a filter can be applied to the writer's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Unknown,
    Fits,
    /// Its reader gets everything.
    Unfit,
}

impl ReaderFilters {
    /// A reader has announced this filter, or none.
    pub(crate) fn set(&self, reader: Guid, announced: Option<&ContentFilter>) {
        self.replace(&mut self.filters(), reader, announced);
    }

    /// A reader whose filter is known here announces another one. One that is not known yet gets everything until it is told of.
    pub(crate) fn renew(&self, reader: Guid, announced: Option<&ContentFilter>) {
        let mut filters = self.filters();
        if filters.iter().any(|(other, ..)| *other == reader) {
            self.replace(&mut filters, reader, announced);
        }
    }

    fn replace(&self, filters: &mut Vec<(Guid, Filter, Fit)>, reader: Guid, announced: Option<&ContentFilter>) {
        let announced = announced.filter(|filter| filter.class_name == ContentFilter::SQL);
        let filter = announced.and_then(|filter| Filter::parse(&filter.expression, &filter.parameters).ok());
        filters.retain(|(other, ..)| *other != reader);
        if let Some(filter) = filter.filter(|_| filters.len() < FILTERS_MAX) {
            filters.push((reader, filter, Fit::Unknown));
        }
        self.any.store(!filters.is_empty(), Ordering::Release);
    }

    /// Whether some reader has a filter.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The readers that do not want the sample.
    pub(crate) fn refusing<T: Encode>(&self, sample: &T) -> Vec<Guid> {
        let (mut refusing, mut steps) = (Vec::new(), STEPS_MAX);
        for (reader, filter, fit) in self.filters().iter_mut() {
            if *fit == Fit::Unknown {
                *fit = if filter.check::<T>().is_ok() { Fit::Fits } else { Fit::Unfit };
            }
            if *fit == Fit::Fits && filter.accepts_within(sample, &mut steps) == Some(false) {
                refusing.push(*reader);
            }
        }
        refusing
    }

    fn filters(&self) -> MutexGuard<'_, Vec<(Guid, Filter, Fit)>> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_rtps::types::{EntityId, GuidPrefix, Keyed};

    use super::*;
    use crate::Topic;

    #[derive(Topic)]
    #[topic(crate = "thalweg_cdr")]
    struct Note {
        text: String,
    }

    fn reader(key: u32) -> Guid {
        Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(key, Keyed::No))
    }

    fn announced(expression: &str, parameter: String) -> ContentFilter {
        ContentFilter {
            topic_name: "filtered".to_owned(),
            related_topic_name: "notes".to_owned(),
            class_name: ContentFilter::SQL.to_owned(),
            expression: expression.to_owned(),
            parameters: vec![parameter],
        }
    }

    #[test]
    fn comparisons_of_strangers_take_a_bounded_time_of_a_write() {
        let filters = ReaderFilters::default();
        let many = format!("{}text = %0", "text = text AND ".repeat(40));
        for (key, expression) in [(1, "text = %0"), (2, many.as_str()), (3, "text = %0")] {
            filters.set(reader(key), Some(&announced(expression, "'b'".to_owned())));
        }
        let long = Note { text: "a".repeat(1 << 20) };
        assert_eq!(filters.refusing(&long), [1, 3].map(reader), "the second is not known in so many steps");
        let short = Note { text: "a".repeat(1 << 10) };
        assert_eq!(filters.refusing(&short), [1, 2, 3].map(reader), "texts of usual length are judged");
    }

    #[test]
    fn patterns_of_strangers_take_a_bounded_time_of_a_write() {
        let filters = ReaderFilters::default();
        for (key, pattern) in [(1, "b%".to_owned()), (2, format!("%{}b", "a".repeat(8_000))), (3, "c%".to_owned())] {
            filters.set(reader(key), Some(&announced("text LIKE %0", pattern)));
        }
        let long = Note { text: "a".repeat(1 << 20) };
        assert_eq!(filters.refusing(&long), [reader(1)], "the second takes all steps, and nobody knows of the third");
        let short = Note { text: "a".to_owned() };
        assert_eq!(filters.refusing(&short), [1, 2, 3].map(reader), "each write has steps of its own");
    }
}
