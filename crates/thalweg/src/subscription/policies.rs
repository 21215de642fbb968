//! The policies of a reader: what they are made of, and their changes.

use std::sync::Arc;

use thalweg_rtps::qos::{Presentation, ReaderQos};

use super::{DataReader, SubscriberQos};
use crate::{Configuration, Error};

impl SubscriberQos {
    /// `qos` as a reader of this topic has them: with what the configuration sets in their place, and the subscriber's part where they
    /// name none of their own.
    pub(super) fn complete(&self, configuration: &Configuration, topic: &str, qos: &ReaderQos) -> ReaderQos {
        let mut qos = configuration.reader_qos(topic, qos);
        if qos.partition.is_empty() {
            qos.partition.clone_from(&self.partition);
        }
        if qos.attached.group.is_empty() {
            qos.attached.group.clone_from(&self.group_data);
        }
        if qos.presentation == Presentation::default() {
            qos.presentation = self.presentation;
        }
        qos
    }
}

impl<T> DataReader<T> {
    /// Its policies now, its subscriber's part and the configuration's included.
    pub fn qos(&self) -> Arc<ReaderQos> {
        self.cell().qos()
    }

    /// Changes its policies and tells its peers: DEADLINE, LATENCY_BUDGET, TIME_BASED_FILTER, PARTITION, USER_DATA, TOPIC_DATA and
    /// GROUP_DATA may change (DDS 1.4 §2.2.3). Writers that fit no longer are unmatched, and others matched.
    ///
    /// As at creation, what the configuration sets for the topic comes first, and partition, group data and PRESENTATION are the
    /// subscriber's, unless `qos` names its own.
    ///
    /// # Errors
    /// [`ErrorKind::ImmutablePolicy`](crate::ErrorKind::ImmutablePolicy), naming the policy, when another one differs;
    /// [`ErrorKind::InconsistentPolicy`](crate::ErrorKind::InconsistentPolicy) or
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) as at creation. Then nothing changes.
    pub fn set_qos(&self, qos: ReaderQos) -> Result<(), Error> {
        let (cell, configuration) = (self.cell(), self.runtime().configuration());
        let (entity, topic) = (cell.guid().entity, self.topic_name());
        // A reader of a built-in topic was created without them.
        let (qos, note) = match cell.subscriber() {
            Some(subscriber) => (subscriber.complete(configuration, topic, &qos), configuration.note(topic)),
            None => (qos, String::new()),
        };
        let qos = Arc::new(qos);
        self.runtime().command(|now, participant| {
            let set = participant.set_reader_qos(now, entity, Arc::clone(&qos));
            set.map_err(|error| Error::qos("set_qos", topic, error).noting(&note))?;
            // While the participant is locked, so that both agree whichever of two calls comes first.
            cell.note_qos(qos);
            Ok(())
        })
    }
}
