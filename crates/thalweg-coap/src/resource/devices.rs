//! The resource manager: makes resources of linked devices.

use std::sync::Arc;
use std::time::Duration;

use crate::device::{DeviceHandle, FoundDevices, Linker};
use crate::resource::{
    Clock, DeviceChannel, Instruction, LocalStore, Property, PropertyDescription, Resource, Sampling, StoreError,
};

/// Settings of the resources of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelPolicy {
    /// The first part of the paths. Default `sensors`.
    pub root: String,
    /// When sensors are measured. Default on demand, at most once a second.
    pub sampling: Sampling,
    /// Time limit of a read or an action. Default 2 s.
    pub timeout: Duration,
}

impl Default for ChannelPolicy {
    fn default() -> Self {
        let sampling = Sampling::OnDemand { max_age: Duration::from_secs(1) };
        ChannelPolicy { root: "sensors".to_owned(), sampling, timeout: Duration::from_secs(2) }
    }
}

/// Links the devices that were found and puts their channels into the store, as `root/device/channel`. Tells which devices
/// could not be linked or stored, and why; they cost the others nothing.
pub fn add_devices(
    store: &LocalStore,
    found: &FoundDevices,
    linker: &Linker,
    policy: &ChannelPolicy,
    clock: &Clock,
) -> Vec<(String, String)> {
    let mut failures: Vec<(String, String)> =
        found.failures.iter().map(|(driver, error)| (driver.clone(), error.to_string())).collect();
    for device in &found.devices {
        let added = match linker.link(device) {
            Ok(handler) => add_channels(store, &handler, policy, clock).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        failures.extend(added.err().map(|reason| (device.description.name.clone(), reason)));
    }
    failures
}

fn add_channels(
    store: &LocalStore,
    handler: &DeviceHandle,
    policy: &ChannelPolicy,
    clock: &Clock,
) -> Result<(), StoreError> {
    let description = handler.description();
    for (index, channel) in description.channels.iter().enumerate() {
        let path = format!("{}/{}/{}", policy.root, description.name, channel.name);
        let instruction =
            channel.access.acts().then(|| Instruction::new(&path, handler.clone(), index, policy.timeout));
        let resource: Arc<dyn Resource> = match instruction {
            Some(instruction) if !channel.access.reads() => Arc::new(instruction),
            instruction => {
                let mut property = PropertyDescription::new(path, channel.quantity, channel.unit, policy.sampling);
                property.title = description.title.clone();
                property.read_timeout = policy.timeout;
                let source = DeviceChannel { handler: handler.clone(), channel: index };
                Arc::new(Property::measured(property, source, instruction, Arc::clone(clock)))
            }
        };
        store.insert(resource)?;
    }
    Ok(())
}
