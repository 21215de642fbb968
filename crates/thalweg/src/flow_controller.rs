//! Flow controllers: asynchronous writers send in the background, as fast as a token bucket allows.
//!
//! ```no_run
//! use thalweg::flow_controller::FlowControllerSettings;
//! use thalweg::qos::{Method, Transmission, WriterQos};
//! # use thalweg::{DomainParticipant, Topic};
//! # #[derive(Topic)]
//! # struct Map { tiles: Vec<u8> }
//! # fn main() -> Result<(), thalweg::Error> {
//! # let participant = DomainParticipant::new(0)?;
//! # let topic = participant.create_topic::<Map>("map");
//! let maps = participant.create_flow_controller("maps", FlowControllerSettings::bytes_per_second(2_000_000))?;
//! let transmission = Transmission::by(Method::asynchronous("maps"));
//! let writer = participant.create_writer(&topic, WriterQos { transmission, ..WriterQos::default() })?;
//! writer.write(&Map { tiles: vec![0; 20_000_000] })?; // Returns at once; the bytes leave within ten seconds.
//! println!("{}", maps.counters()?);
//! maps.set(FlowControllerSettings::bytes_per_second(20_000_000))?; // Now within one.
//! # Ok(())
//! # }
//! ```
//!
//! `docs/flow-control.md` says when to use which, and how tokens are counted.

use std::fmt;
use std::sync::Arc;

use thalweg_rtps::participant::Participant;
use thalweg_transport::clock;

pub use thalweg_rtps::flow_control::{
    Amount, FlowControllerCounters, FlowControllerError, FlowControllerSettings, NAME_BYTES_MAX, PERIOD_MAX, Scheduling,
};

use crate::runtime::Runtime;
use crate::{DomainParticipant, Error, ErrorKind};

/// A flow controller of a participant, to watch and to change while transfers run.
///
/// A handle only: dropping it changes nothing, and there may be several of one controller.
#[derive(Clone)]
pub struct FlowController {
    runtime: Arc<Runtime>,
    name: String,
}

impl FlowController {
    /// The name that writers refer to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Changes it at once, also for waiting samples. Present tokens stay, as far as they fit.
    ///
    /// # Errors
    /// [`ErrorKind::InconsistentPolicy`] for settings under which nothing would ever be sent, [`ErrorKind::BadParameter`] when
    /// it was deleted.
    pub fn set(&self, settings: FlowControllerSettings) -> Result<(), Error> {
        let set = self.runtime.command(|now, participant| participant.set_flow_controller(now, &self.name, settings));
        set.map_err(|error| failed("set_flow_controller", error))
    }

    /// Its settings.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when it was deleted.
    pub fn settings(&self) -> Result<FlowControllerSettings, Error> {
        let settings = self.runtime.view(|participant| participant.flow_controller_settings(&self.name));
        settings.map_err(|error| failed("flow_controller_settings", error))
    }

    /// Its tokens, the samples that wait for them now, and its output since its creation.
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when it was deleted.
    pub fn counters(&self) -> Result<FlowControllerCounters, Error> {
        let counters = self.runtime.view(|participant| participant.flow_controller_counters(clock::now(), &self.name));
        counters.map_err(|error| failed("flow_controller_counters", error))
    }

    /// Deletes it.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionNotMet`] while writers send under it, and for the controller "background", which is always
    /// there; [`ErrorKind::BadParameter`] when it was deleted.
    pub fn delete(&self) -> Result<(), Error> {
        let deleted = self.runtime.command(|_, participant| participant.delete_flow_controller(&self.name));
        deleted.map_err(|error| failed("delete_flow_controller", error))
    }
}

impl DomainParticipant {
    /// Creates a flow controller, for writers that name it in [`Method::Asynchronous`](crate::qos::Method::Asynchronous).
    ///
    /// # Errors
    /// [`ErrorKind::InconsistentPolicy`] for settings under which nothing would ever be sent;
    /// [`ErrorKind::PreconditionNotMet`] when there is one of this name; [`ErrorKind::BadParameter`] for a name that is empty or
    /// longer than [`NAME_BYTES_MAX`].
    pub fn create_flow_controller(
        &self,
        name: &str,
        settings: FlowControllerSettings,
    ) -> Result<FlowController, Error> {
        let created =
            self.runtime().command(|now, participant| participant.create_flow_controller(now, name, settings));
        created.map_err(|error| failed("create_flow_controller", error))?;
        Ok(FlowController { runtime: Arc::clone(self.runtime()), name: name.to_owned() })
    }

    /// A flow controller that was created before, or [`BACKGROUND`](crate::qos::BACKGROUND).
    ///
    /// # Errors
    /// [`ErrorKind::BadParameter`] when there is none of this name, with the names of those there are.
    pub fn flow_controller(&self, name: &str) -> Result<FlowController, Error> {
        let known = self.runtime().view(|participant| participant.flow_controller_settings(name));
        known.map_err(|error| failed("flow_controller", error))?;
        Ok(FlowController { runtime: Arc::clone(self.runtime()), name: name.to_owned() })
    }

    /// The names of all flow controllers, sorted.
    pub fn flow_controllers(&self) -> Vec<String> {
        let names = |participant: &Participant| participant.flow_controllers().map(str::to_owned).collect();
        self.runtime().view(names)
    }
}

fn failed(operation: &'static str, error: FlowControllerError) -> Error {
    let kind = match error {
        FlowControllerError::Setting { .. } => ErrorKind::InconsistentPolicy,
        FlowControllerError::Name | FlowControllerError::Unknown { .. } => ErrorKind::BadParameter,
        FlowControllerError::Exists { .. } | FlowControllerError::InUse { .. } | FlowControllerError::Permanent => {
            ErrorKind::PreconditionNotMet
        }
        _ => ErrorKind::Error,
    };
    Error::new(kind, operation, format!("failed: {error}")).because(error)
}

impl fmt::Debug for FlowController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowController({:?})", self.name)
    }
}
