//! The content filter of a reader: as it is announced, as it is applied, and with other parameters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_cdr as cdr;
use thalweg_rtps::discovery::endpoint_data::ContentFilter;
use thalweg_rtps::participant::SampleFilter;

use super::DataReader;
use crate::filter::{Filter, FilterError};
use crate::{Error, ErrorKind, TopicType};

/// A content filter, and its application to serialized samples.
pub(super) struct AppliedFilter {
    announced: ContentFilter,
    accepts: SampleFilter,
}

impl AppliedFilter {
    pub(super) fn new<T: TopicType>(filter: Filter) -> AppliedFilter {
        let announced = ContentFilter {
            topic_name: String::new(),
            related_topic_name: String::new(),
            class_name: ContentFilter::SQL.to_owned(),
            expression: filter.expression().to_owned(),
            parameters: filter.parameters().to_vec(),
        };
        // A sample that cannot be read is handed over, so that the application learns of it. A decoder written by hand may panic.
        let judge = move |payload: &[u8]| cdr::decode::<T>(payload).map_or(true, |sample| filter.accepts(&sample));
        let accepts: SampleFilter =
            Arc::new(move |payload: &[u8]| catch_unwind(AssertUnwindSafe(|| judge(payload))).unwrap_or(true));
        AppliedFilter { announced, accepts }
    }

    /// The filter as a reader of this topic announces it.
    pub(super) fn of_topic(self, topic: &str) -> (Box<ContentFilter>, SampleFilter) {
        let (topic_name, related_topic_name) = (format!("{topic}_filtered"), topic.to_owned());
        (Box::new(ContentFilter { topic_name, related_topic_name, ..self.announced }), self.accepts)
    }
}

/// A filter cannot be used.
pub(super) fn unfit(operation: &'static str, topic: &str, error: FilterError) -> Error {
    Error::new(ErrorKind::BadParameter, operation, format!("failed: {error}")).on_topic(topic).because(error)
}

impl<T> DataReader<T> {
    /// The values of its filter's parameters (DDS 1.4 §2.2.2.3.3.4); `None` for a reader without filter.
    pub fn expression_parameters(&self) -> Option<Vec<String>> {
        let entity = self.guid().entity;
        self.runtime().view(|participant| participant.reader_filter(entity).map(|filter| filter.parameters.clone()))
    }
}

impl<T: TopicType> DataReader<T> {
    /// Gives other values to the parameters of the reader's filter (DDS 1.4 §2.2.2.3.3.5) and announces them, so that writers leave out
    /// other samples from then on: writers of this participant what they write after this has returned, those of others once they have
    /// learned of it. Samples that wait to be taken stay, and those refused before do not come any more.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] for a reader that was created without filter; [`ErrorKind::BadParameter`] when a parameter is
    /// missing, cannot be compared with its member or is too long: then the old ones hold.
    pub fn set_expression_parameters<P: AsRef<str>>(&self, parameters: &[P]) -> Result<(), Error> {
        const OPERATION: &str = "set_expression_parameters";
        let (reader, state) = (self.guid(), self.runtime().state());
        let entity = reader.entity;
        let without = || {
            let cause = "needs a filter, and the reader was created without one";
            Error::new(ErrorKind::PreconditionNotMet, OPERATION, cause).on_topic(self.topic_name())
        };
        let expression = |filter: &ContentFilter| filter.expression.clone();
        let expression = self.runtime().view(|participant| participant.reader_filter(entity).map(expression));
        let refused = |error| unfit(OPERATION, self.topic_name(), error);
        let filter = Filter::parse(&expression.ok_or_else(without)?, parameters).map_err(refused)?;
        filter.check::<T>().map_err(refused)?;
        let applied = AppliedFilter::new::<T>(filter).of_topic(self.topic_name());
        self.runtime().command(|now, participant| {
            participant.set_reader_filter(now, entity, applied);
            state.renew_filter(reader, participant);
        });
        Ok(())
    }
}
