//! The histories of a participant that outlive their writers.

use thalweg_rtps::participant::{HistoryRefusal, KeptHistory, Participant};
use thalweg_rtps::qos::Durability;
use thalweg_rtps::types::Guid;

use super::DomainParticipant;
use crate::{Error, ErrorKind};

const DELETE: &str = "delete_history";

impl DomainParticipant {
    /// The histories of TRANSIENT and PERSISTENT writers that this participant keeps, also those that no writer uses now: retained ones,
    /// and those that its [store](crate::DomainParticipantBuilder::store) holds for its domain.
    pub fn histories(&self) -> Vec<KeptHistory> {
        self.runtime.view(Participant::histories)
    }

    /// Deletes a history that outlived its writer: its samples, its announcement to readers, and what the store holds of it. Returns what
    /// it was. `writer` is its GUID in [`DomainParticipant::histories`]. When this returns, it is gone from the disk, and a writer of the
    /// same topic and name begins a new one. Readers keep what they have got. The file stays as long as it is and is filled again.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] for a GUID under which there is none, [`ErrorKind::PreconditionNotMet`] while the application has a
    /// writer of it, [`ErrorKind::OutOfResources`] when the store cannot be written; then nothing was deleted.
    pub fn delete_history(&self, writer: Guid) -> Result<KeptHistory, Error> {
        let refused = |refusal| refused(writer, refusal);
        let find = || self.runtime.view(|participant| participant.unused_history(writer)).map_err(refused);
        let delete =
            || self.runtime.command(|now, participant| participant.delete_history(now, writer)).map_err(refused);
        match self.runtime.store() {
            Some(store) if find()?.durability == Durability::Persistent => {
                store.remove_history(|| find().map(|history| history.writer.entity), delete)
            }
            _ => delete(),
        }
    }
}

fn refused(writer: Guid, refusal: HistoryRefusal) -> Error {
    match refusal {
        HistoryRefusal::Unknown => {
            let cause = format!("failed: this participant keeps no history of a writer {writer}");
            Error::new(ErrorKind::BadParameter, DELETE, cause).advise("see DomainParticipant::histories")
        }
        HistoryRefusal::InUse { topic_name } => {
            let cause = format!("failed: the application has writer {writer} of this history");
            Error::new(ErrorKind::PreconditionNotMet, DELETE, cause)
                .on_topic(&topic_name)
                .advise("drop the writer first")
        }
    }
}
