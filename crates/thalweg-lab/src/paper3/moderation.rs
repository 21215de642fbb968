//! Moderation of an interface, set from within its network namespace.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_host::HostFiles;
use thalweg_transport::nic::{FeatureState, Nic};

use super::cell::ReceiveModeration;
use crate::error::LabError;
use crate::process::{Launcher, Stop, Supervised, WorkerMessage};
use crate::worker::Order;

/// The order of a process that sets an interface and ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModerationOrder {
    device: String,
    moderation: ReceiveModeration,
}

/// Sets the interface of a host, which `launcher` reaches; returns what was refused, in words.
pub(super) fn set(
    launcher: &Launcher,
    device: &str,
    moderation: ReceiveModeration,
    stop: &Stop,
) -> Result<Vec<String>, LabError> {
    if matches!(moderation, ReceiveModeration::AsItIs | ReceiveModeration::Gathered(_)) {
        return Ok(Vec::new());
    }
    let order = Order::Moderation(ModerationOrder { device: device.to_owned(), moderation });
    let mut worker = Supervised::start(launcher, "process that sets the interface", &order)?;
    match worker.hear(PATIENCE, stop)? {
        WorkerMessage::Done(refused) => serde_json::from_value(refused).map_err(LabError::here),
        _ => Err(LabError::Unexpected { process: worker.name().to_owned() }),
    }
}

/// Sets the interface in this process's network; returns what was refused.
pub(crate) fn moderate(order: &ModerationOrder) -> Result<Vec<String>, LabError> {
    let (files, device) = (HostFiles::here(), order.device.as_str());
    let mut refused = Vec::new();
    let mut note = |what: String, outcome: std::io::Result<()>| {
        refused.extend(outcome.err().map(|error| format!("{what}: {error}")));
    };
    match order.moderation {
        ReceiveModeration::Polling(us) => {
            let nic = Nic::open(device).map_err(LabError::here)?;
            // Without it a veth does not poll at all.
            note("rx-gro on".to_owned(), nic.set_feature("rx-gro", FeatureState::On));
            let nanos = Duration::from_micros(us.into()).as_nanos().to_string();
            for (entry, value) in [("napi_defer_hard_irqs", EMPTY_POLLS), ("gro_flush_timeout", nanos.as_str())] {
                note(format!("{entry} {value}"), files.write_device_entry(device, entry, value));
            }
        }
        ReceiveModeration::AsItIs | ReceiveModeration::Gathered(_) => {}
    }
    Ok(refused)
}

/// Polls that may find nothing before the device interrupts again.
const EMPTY_POLLS: &str = "10";
const PATIENCE: Duration = Duration::from_secs(20);
