//! Instructions: quantities that are driven.

use std::fmt;
use std::time::Duration;

use crate::device::{self, Command, Value, ValueKind};
use crate::link_format::WebLink;
use crate::resource::local::link_of;
use crate::resource::representation::{READING_FORMATS, to_value};
use crate::resource::{Get, Put, Resource, ResourceError, ResourceRepresentation};

/// A command to a device, given with PUT or POST.
#[derive(Clone)]
pub struct Instruction {
    path: String,
    link: WebLink,
    kind: ValueKind,
    handler: device::DeviceHandle,
    channel: usize,
    act_timeout: Duration,
}

impl Instruction {
    /// Drives `channel` of a linked device; an action that takes longer than `act_timeout` has failed.
    pub fn new(path: &str, handler: device::DeviceHandle, channel: usize, act_timeout: Duration) -> Instruction {
        let found = handler.description().channels.get(channel);
        let kind = found.map_or(ValueKind::Text, |channel| channel.kind);
        let quantity = found.map_or("", |channel| channel.quantity);
        let link = link_of(path, &handler.description().title, quantity, "core.a", &READING_FORMATS);
        Instruction { path: path.to_owned(), link, kind, handler, channel, act_timeout }
    }

    /// Drives the channel to a value.
    ///
    /// # Errors
    /// The device's error.
    pub fn act(&self, value: Value) -> Result<(), ResourceError> {
        self.handler.run(self.channel, Command::Act(value), self.act_timeout)?;
        Ok(())
    }
}

impl Resource for Instruction {
    fn path(&self) -> &str {
        &self.path
    }

    fn link(&self) -> WebLink {
        self.link.clone()
    }

    fn blocks(&self) -> bool {
        true
    }

    fn get(&self, _request: &Get<'_>) -> Result<ResourceRepresentation, ResourceError> {
        Err(ResourceError::NotAllowed(format!("/{} is an instruction and has no state", self.path)))
    }

    fn has_state(&self) -> bool {
        false
    }

    fn put(&self, request: &Put<'_>) -> Result<(), ResourceError> {
        self.act(to_value(request.content_format, request.payload, self.kind)?)
    }
}

impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({})", self.path)
    }
}
