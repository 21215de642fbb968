//! Flow controllers: token buckets that limit what asynchronous writers send, so that bulk data does not disturb the rest.
//!
//! Pure arithmetic and order: the participant asks a controller which of its waiting writers may send how much, lets it send,
//! and says what that cost.

mod bucket;
mod controller;
mod queue;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use controller::FlowControllerCounters;
pub(crate) use controller::{FlowController, Spent};
pub(crate) use queue::Waiting;
pub use settings::{Amount, FlowControllerError, FlowControllerSettings, NAME_BYTES_MAX, PERIOD_MAX, Scheduling};

use crate::qos::BACKGROUND;
use crate::time::Instant;
use bucket::Demand;

/// Names a flow controller within its participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ControllerId(u32);

/// The flow controllers of a participant.
#[derive(Debug)]
pub(crate) struct FlowControllers {
    ids: BTreeMap<String, ControllerId>,
    /// By increasing id; few, and looked through in every turn.
    controllers: Vec<(ControllerId, FlowController)>,
    next_id: u32,
}

impl FlowControllers {
    /// [`BACKGROUND`] alone.
    pub(crate) fn new(now: Instant) -> FlowControllers {
        let mut controllers = FlowControllers { ids: BTreeMap::new(), controllers: Vec::new(), next_id: 0 };
        controllers.insert(now, BACKGROUND, FlowControllerSettings::background());
        controllers
    }

    fn insert(&mut self, now: Instant, name: &str, settings: FlowControllerSettings) {
        let id = ControllerId(self.next_id);
        self.next_id += 1;
        self.ids.insert(name.to_owned(), id);
        self.controllers.push((id, FlowController::new(now, settings)));
    }

    pub(crate) fn create(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        settings.check()?;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(FlowControllerError::Name);
        }
        if self.ids.contains_key(name) {
            return Err(FlowControllerError::Exists { name: name.to_owned() });
        }
        self.insert(now, name, settings);
        Ok(())
    }

    pub(crate) fn set(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<ControllerId, FlowControllerError> {
        settings.check()?;
        let id = self.id(name)?;
        if let Some(controller) = self.get_mut(id) {
            controller.set(now, settings);
        }
        Ok(id)
    }

    pub(crate) fn delete(&mut self, name: &str) -> Result<ControllerId, FlowControllerError> {
        let id = self.id(name)?;
        let writers = self.get(id).map_or(0, |controller| controller.users);
        if name == BACKGROUND {
            return Err(FlowControllerError::Permanent);
        }
        if writers > 0 {
            return Err(FlowControllerError::InUse { name: name.to_owned(), writers });
        }
        self.ids.remove(name);
        self.controllers.retain(|(known, _)| *known != id);
        Ok(id)
    }

    pub(crate) fn id(&self, name: &str) -> Result<ControllerId, FlowControllerError> {
        let unknown =
            || FlowControllerError::Unknown { name: name.to_owned(), existing: self.ids.keys().cloned().collect() };
        self.ids.get(name).copied().ok_or_else(unknown)
    }

    pub(crate) fn get(&self, id: ControllerId) -> Option<&FlowController> {
        self.controllers.iter().find(|(known, _)| *known == id).map(|(_, controller)| controller)
    }

    pub(crate) fn get_mut(&mut self, id: ControllerId) -> Option<&mut FlowController> {
        self.controllers.iter_mut().find(|(known, _)| *known == id).map(|(_, controller)| controller)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.ids.keys().map(String::as_str)
    }

    /// A controller whose tokens have come; the next call names another one.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<ControllerId> {
        let due = |controller: &FlowController| controller.resume_at().is_some_and(|at| at <= now);
        let (id, controller) = self.controllers.iter_mut().find(|(_, controller)| due(controller))?;
        controller.resume();
        Some(*id)
    }

    /// When the first of those that wait has its tokens.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.controllers.iter().filter_map(|(_, controller)| controller.resume_at()).min()
    }
}
