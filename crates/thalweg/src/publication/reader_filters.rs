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
        let mut refusing = Vec::new();
        for (reader, filter, fit) in self.filters().iter_mut() {
            if *fit == Fit::Unknown {
                *fit = if filter.check::<T>().is_ok() { Fit::Fits } else { Fit::Unfit };
            }
            if *fit == Fit::Fits && !filter.accepts(sample) {
                refusing.push(*reader);
            }
        }
        refusing
    }

    fn filters(&self) -> MutexGuard<'_, Vec<(Guid, Filter, Fit)>> {
        self.filters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
