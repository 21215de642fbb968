//! Histories that are deleted.

use thalweg_rtps::types::{EntityId, SequenceNumber};

use super::{History, Store, lock};
use crate::Error;

impl Store {
    /// Lets `check` look for the history of a writer, removes what it has from the file, and lets `delete` delete it. No writer is
    /// created meanwhile.
    pub(crate) fn remove_history<H>(
        &self,
        check: impl FnOnce() -> Result<EntityId, Error>,
        delete: impl FnOnce() -> Result<H, Error>,
    ) -> Result<H, Error> {
        let _one_at_a_time = lock(&self.creating);
        let entity = check()?;
        {
            let mut histories = lock(&self.histories);
            if let Some(place) = histories.iter().position(|history| history.is_of(entity)) {
                let removed = self.with_file(|file| file.remove(histories[place].number));
                if let Err(error) = removed {
                    histories[place].doubt();
                    return Err(self.error("delete_history", &error.to_string()));
                }
                histories.remove(place);
            }
        }
        delete()
    }
}

impl History {
    /// It may be gone from the file, where what is written next needs it: all of it is stored anew.
    fn doubt(&mut self) {
        (self.is_changed, self.is_doubtful, self.reserved) = (true, true, SequenceNumber::ZERO);
        if let Some(writer) = &self.writer {
            writer.lock().retell_records();
        }
    }
}
