//! The policies of a writer: what they are made of, and their changes.

use std::sync::Arc;

use thalweg_rtps::qos::{Presentation, WriterQos};

use super::{DataWriter, PublisherQos};
use crate::{Configuration, Error};

impl PublisherQos {
    /// `qos` as a writer of this topic has them: with what the configuration sets in their place, and the publisher's part where they
    /// name none of their own.
    pub(super) fn complete(&self, configuration: &Configuration, topic: &str, qos: &WriterQos) -> WriterQos {
        let mut qos = configuration.writer_qos(topic, qos);
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

impl<T> DataWriter<T> {
    /// Its policies now, its publisher's part and the configuration's included.
    pub fn qos(&self) -> Arc<WriterQos> {
        self.cell().qos()
    }

    /// Changes its policies and tells its peers: DEADLINE, LATENCY_BUDGET, LIFESPAN, the strength of OWNERSHIP, TRANSPORT_PRIORITY,
    /// `autodispose`, PARTITION, USER_DATA, TOPIC_DATA, GROUP_DATA and `reader_patience` may change (DDS 1.4 §2.2.3). Readers that fit
    /// no longer are unmatched, and others matched. A new LIFESPAN counts for samples that are written from now on, and a
    /// DEADLINE where there was none for each instance from its next sample on.
    ///
    /// As at creation, what the configuration sets for the topic comes first, and partition, group data and PRESENTATION are the
    /// publisher's, unless `qos` names its own. A history that outlives the writer is kept with the new policies: in other partitions,
    /// the next writer there goes on with it.
    ///
    /// # Errors
    /// [`ErrorKind::ImmutablePolicy`](crate::ErrorKind::ImmutablePolicy), naming the policy, when another one differs;
    /// [`ErrorKind::InconsistentPolicy`](crate::ErrorKind::InconsistentPolicy) or
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) as at creation, and for partitions in which the participant keeps
    /// another history; [`ErrorKind::OutOfResources`](crate::ErrorKind::OutOfResources) when the store of a PERSISTENT writer cannot
    /// take other partitions. Then nothing changes.
    pub fn set_qos(&self, qos: WriterQos) -> Result<(), Error> {
        let (cell, configuration) = (self.cell(), self.runtime().configuration());
        let (entity, topic) = (cell.guid().entity, self.topic_name());
        let qos = Arc::new(cell.publisher().complete(configuration, topic, &qos));
        let refused = |error| Error::qos("set_qos", topic, error).noting(&configuration.note(topic));
        let set = || {
            self.runtime().command(|now, participant| {
                participant.set_writer_qos(now, entity, Arc::clone(&qos)).map_err(refused)?;
                // While the participant is locked, so that both agree whichever of two calls comes first.
                cell.note_qos(Arc::clone(&qos));
                Ok::<_, Error>(())
            })
        };
        let Some(store) = cell.store() else { return set() };
        let check = || self.runtime().view(|participant| participant.check_writer_qos(entity, &qos)).map_err(refused);
        store.change_qos(entity, &qos, check, set)
    }
}
