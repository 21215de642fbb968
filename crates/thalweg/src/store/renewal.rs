//! Policies that change while a history is written.

use std::sync::Arc;

use thalweg_rtps::history::Records;
use thalweg_rtps::participant::WriterConfig;
use thalweg_rtps::qos::WriterQos;
use thalweg_rtps::types::EntityId;

use super::file::HistoryChange;
use super::{Store, lock};
use crate::Error;

impl Store {
    /// Lets `set` change the policies of the writer `entity` to `qos`, once `check` has found that it may, and keeps them with its
    /// history. Other partitions are on the disk before: a new history in those of before is not to be found there beside this one.
    ///
    /// # Errors
    /// Those of `check` and `set`, and [`ErrorKind::OutOfResources`](crate::ErrorKind::OutOfResources) when other partitions cannot be
    /// stored.
    pub(crate) fn change_qos(
        &self,
        entity: EntityId,
        qos: &Arc<WriterQos>,
        check: impl FnOnce() -> Result<(), Error>,
        set: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _one_at_a_time = lock(&self.creating);
        check()?;
        let before = self.describe(entity, qos)?;
        let outcome = set();
        if let (Err(_), Some(before)) = (&outcome, before) {
            self.describe(entity, &before)?;
        }
        outcome
    }

    /// Keeps these policies with the history of a writer; returns those of before, if they differ.
    fn describe(&self, entity: EntityId, qos: &Arc<WriterQos>) -> Result<Option<Arc<WriterQos>>, Error> {
        let mut histories = lock(&self.histories);
        let Some(place) = histories.iter().position(|history| history.is_of(entity)) else { return Ok(None) };
        let known = &histories[place].description;
        if known.publication.qos == *qos {
            return Ok(None);
        }
        let config = WriterConfig { qos: Arc::clone(qos), ..known.config() };
        let stays = known.is_of(self.domain_id, &config);
        if histories.iter().any(|other| !other.is_of(entity) && other.description.is_of(self.domain_id, &config)) {
            return Err(self.error("set_qos", "it has a history in these partitions that could not be removed yet"));
        }
        let history = &mut histories[place];
        let before = std::mem::replace(&mut history.description.publication.qos, Arc::clone(qos));
        history.is_changed = true;
        if !stays {
            let (number, description) = (history.number, Some(history.description.clone()));
            let records = Records::default();
            let change = HistoryChange { number, description, records, reserved: None, is_whole: false };
            if let Err(error) = self.with_file(|file| file.commit(&[change])) {
                // They may have reached the disk: those of before are written again.
                history.description.publication.qos = before;
                return Err(self.error("set_qos", &error.to_string()));
            }
            history.is_changed = false;
        }
        drop(histories);
        self.wake();
        Ok(Some(before))
    }
}
