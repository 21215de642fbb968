//! The listener of participants, which the copies of one builder share.

use std::fmt;
use std::sync::Arc;

use crate::conditions::StatusKinds;
use crate::runtime::{Delivery, ParticipantSlot, ParticipantStatusListener, STATUS_BACKLOG_MAX};
use crate::status::ParticipantStatus;

/// A participant's listener, and the statuses of endpoints that it is told of.
#[derive(Clone, Debug, Default)]
pub(super) struct Listening {
    listener: Option<SharedListener>,
    endpoint_kinds: StatusKinds,
}

impl Listening {
    pub(super) fn set_listener(&mut self, delivery: Delivery, listener: Box<ParticipantStatusListener>) {
        self.listener = Some(SharedListener::new(delivery, listener));
    }

    pub(super) fn set_endpoint_kinds(&mut self, kinds: StatusKinds) {
        self.endpoint_kinds = kinds;
    }

    /// What a participant calls, if it has a listener, and for which statuses of its endpoints.
    pub(super) fn into_callback(self) -> Option<(Delivery, Box<ParticipantStatusListener>, StatusKinds)> {
        let (delivery, callback) = self.listener?.into_callback();
        Some((delivery, callback, self.endpoint_kinds))
    }
}

/// A participant's listener, shared by the copies of its settings.
#[derive(Clone)]
struct SharedListener {
    delivery: Delivery,
    slot: Arc<ParticipantSlot>,
}

impl fmt::Debug for SharedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedListener({:?})", self.delivery)
    }
}

impl SharedListener {
    fn new(delivery: Delivery, listener: Box<ParticipantStatusListener>) -> SharedListener {
        let slot = ParticipantSlot::new(STATUS_BACKLOG_MAX);
        slot.set(delivery, listener);
        SharedListener { delivery, slot: Arc::new(slot) }
    }

    /// The callback of one of the participants. News that come while the listener runs for another one wait for the end of that call, on
    /// its thread: no participant waits for another.
    fn into_callback(self) -> (Delivery, Box<ParticipantStatusListener>) {
        let SharedListener { delivery, slot } = self;
        let tell = move |status: ParticipantStatus| {
            let mut next = slot.tell(delivery, status, |listener, status| listener(status));
            while let Some(thread) = next {
                next = slot.run(thread, |listener, status| listener(status));
            }
            if slot.delivery().is_none() {
                // It has panicked, which was told: each participant removes it as if in its own call.
                std::panic::resume_unwind(Box::new("the listener was removed"));
            }
        };
        (delivery, Box::new(tell))
    }
}
