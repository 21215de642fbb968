//! The participant's flow controllers, by name.

use super::Participant;
use crate::flow_control::{ControllerId, FlowControllerCounters, FlowControllerError, FlowControllerSettings};
use crate::qos::{Method, PolicyId, QosError, QosErrorKind, WriterQos};
use crate::time::Instant;
use crate::types::EntityId;

impl Participant {
    /// Creates a flow controller that asynchronous writers can name.
    ///
    /// # Errors
    /// When the settings would let nothing pass, the name is empty or too long, or a controller of this name exists.
    pub fn create_flow_controller(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        self.flow_controllers.create(now, name, settings)
    }

    /// Changes a flow controller; what waits goes on under the new settings, with the tokens that are there.
    ///
    /// # Errors
    /// When the settings would let nothing pass or there is no such controller.
    pub fn set_flow_controller(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        let id = self.flow_controllers.set(now, name, settings)?;
        self.make_controller_ready(id);
        Ok(())
    }

    /// Deletes a flow controller under which no writer sends.
    ///
    /// # Errors
    /// When writers use it, when it is [`BACKGROUND`](crate::qos::BACKGROUND), or when there is no such controller.
    pub fn delete_flow_controller(&mut self, name: &str) -> Result<(), FlowControllerError> {
        let id = self.flow_controllers.delete(name)?;
        self.schedule.make_controller_ready(id, None);
        Ok(())
    }

    /// The names of all flow controllers, sorted.
    pub fn flow_controllers(&self) -> impl Iterator<Item = &str> {
        self.flow_controllers.names()
    }

    /// What a flow controller works with.
    ///
    /// # Errors
    /// When there is no such controller.
    pub fn flow_controller_settings(&self, name: &str) -> Result<FlowControllerSettings, FlowControllerError> {
        let id = self.flow_controllers.id(name)?;
        Ok(self.flow_controllers.get(id).map(|controller| controller.settings()).unwrap_or_default())
    }

    /// How a flow controller stands at `now`.
    ///
    /// # Errors
    /// When there is no such controller.
    pub fn flow_controller_counters(
        &self,
        now: Instant,
        name: &str,
    ) -> Result<FlowControllerCounters, FlowControllerError> {
        let id = self.flow_controllers.id(name)?;
        let Some(controller) = self.flow_controllers.get(id) else { return Ok(FlowControllerCounters::default()) };
        let waiting = controller.waiting().filter_map(|entity| self.endpoints.writer(entity));
        let bytes = waiting.map(|writer| writer.lock().unsent_bytes()).sum();
        Ok(controller.counters(now, bytes))
    }

    /// The controller that an asynchronous writer names.
    pub(super) fn controller_for(&self, qos: &WriterQos) -> Result<Option<ControllerId>, QosError> {
        let method = &qos.transmission.method;
        let Method::Asynchronous { flow_controller } = method else { return Ok(None) };
        self.flow_controllers.id(flow_controller).map(Some).map_err(|_| {
            let existing: Vec<&str> = self.flow_controllers.names().collect();
            QosError {
                kind: QosErrorKind::Inconsistent,
                policy: PolicyId::TRANSMISSION,
                value: format!("{method}, while the participant's flow controllers are {existing:?},"),
                reason: "there is none of that name; create it first, or name one of these",
            }
        })
    }

    /// A writer is gone, and its claim on tokens with it.
    pub(super) fn leave_controller(&mut self, now: Instant, writer: EntityId, controller: Option<ControllerId>) {
        let Some(id) = controller else { return };
        if let Some(controller) = self.flow_controllers.get_mut(id) {
            controller.detach(now, writer);
        }
        self.make_controller_ready(id);
    }
}
