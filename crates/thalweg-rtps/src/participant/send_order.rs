//! The order in which output leaves: endpoints by rank and deadline, asynchronous writers as their flow controllers' tokens allow.

use super::schedule::{Schedule, Source};
use crate::flow_control::{
    ControllerId, FlowControllerCounters, FlowControllerError, FlowControllerSettings, FlowControllers, Waiting,
};
use crate::qos::{Method, PolicyId, QosError, QosErrorKind, TrafficClass, WriterQos};
use crate::time::Instant;
use crate::types::EntityId;

/// Endpoints and controllers that have output or a deadline.
pub(super) struct SendOrder {
    pub schedule: Schedule,
    pub controllers: FlowControllers,
    /// Traffic class of the datagrams in the last outbox.
    pub class: TrafficClass,
}

impl SendOrder {
    pub(super) fn new(now: Instant) -> SendOrder {
        let (schedule, controllers) = (Schedule::default(), FlowControllers::new(now));
        SendOrder { schedule, controllers, class: TrafficClass::DEFAULT }
    }

    /// Changes a flow controller; waiting writers continue under the new settings.
    pub(super) fn set_controller(
        &mut self,
        now: Instant,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<(), FlowControllerError> {
        let id = self.controllers.set(now, name, settings)?;
        self.make_controller_ready(id);
        Ok(())
    }

    /// Deletes a flow controller that no writer uses.
    pub(super) fn delete_controller(&mut self, name: &str) -> Result<(), FlowControllerError> {
        let id = self.controllers.delete(name)?;
        self.schedule.make_controller_ready(id, None);
        Ok(())
    }

    /// The settings of a flow controller.
    pub(super) fn settings(&self, name: &str) -> Result<FlowControllerSettings, FlowControllerError> {
        let id = self.controllers.id(name)?;
        Ok(self.controllers.get(id).map(|controller| controller.settings()).unwrap_or_default())
    }

    /// The counters of a flow controller, given the unsent bytes of each of its writers.
    pub(super) fn counters(
        &self,
        now: Instant,
        name: &str,
        unsent_bytes: impl Fn(EntityId) -> u64,
    ) -> Result<FlowControllerCounters, FlowControllerError> {
        let id = self.controllers.id(name)?;
        let Some(controller) = self.controllers.get(id) else { return Ok(FlowControllerCounters::default()) };
        Ok(controller.counters(now, controller.waiting().map(unsent_bytes).sum()))
    }

    /// The controller that an asynchronous writer names.
    pub(super) fn controller_for(&self, qos: &WriterQos) -> Result<Option<ControllerId>, QosError> {
        let method = &qos.transmission.method;
        let Method::Asynchronous { flow_controller } = method else { return Ok(None) };
        self.controllers.id(flow_controller).map(Some).map_err(|_| {
            let existing: Vec<&str> = self.controllers.names().collect();
            QosError {
                kind: QosErrorKind::Inconsistent,
                policy: PolicyId::TRANSMISSION,
                value: format!("{method}, while the participant's flow controllers are {existing:?},"),
                reason: "there is none of that name; create it first, or name one of these",
            }
        })
    }

    /// Registers a new writer.
    pub(super) fn attach(&mut self, writer: EntityId, qos: &WriterQos, controller: Option<ControllerId>) {
        self.schedule.set_priority(writer, qos.transport_priority);
        if let Some(controller) = controller.and_then(|id| self.controllers.get_mut(id)) {
            controller.attach();
        }
    }

    /// Removes a writer, with its claim on tokens.
    pub(super) fn detach(&mut self, now: Instant, writer: EntityId, controller: Option<ControllerId>) {
        let Some(id) = controller else { return };
        if let Some(controller) = self.controllers.get_mut(id) {
            controller.detach(now, writer);
        }
        self.make_controller_ready(id);
    }

    /// The endpoint whose datagrams a source would append next; for a controller, the writer whose turn it is.
    pub(super) fn next_of(&self, source: Source) -> Option<EntityId> {
        match source {
            Source::Endpoint(entity) => Some(entity),
            Source::Controller(id) => self.controllers.get(id)?.next_writer(),
        }
    }

    /// Files the controllers that have enough tokens again.
    pub(super) fn resume_controllers(&mut self, now: Instant) {
        while let Some(id) = self.controllers.pop_due(now) {
            self.make_controller_ready(id);
        }
    }

    /// Tells its controller what an asynchronous writer has to send.
    pub(super) fn queue_under(&mut self, now: Instant, id: ControllerId, entity: EntityId, waiting: Option<Waiting>) {
        let Some(controller) = self.controllers.get_mut(id) else { return };
        match waiting {
            Some(waiting) => controller.enqueue(now, waiting),
            None => controller.dequeue(now, entity),
        }
        self.make_controller_ready(id);
    }

    /// Files a controller that has writers to serve, unless it waits for tokens.
    pub(super) fn make_controller_ready(&mut self, id: ControllerId) {
        let controller = self.controllers.get(id).filter(|controller| controller.resume_at().is_none());
        self.schedule.make_controller_ready(id, controller.and_then(|controller| controller.priority()));
    }
}
