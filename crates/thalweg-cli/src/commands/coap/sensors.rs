//! The sensors of this host as resources.

use std::time::Duration;

use thalweg_coap::device::drivers::{Simulated, Simulation, System, Thermal};
use thalweg_coap::device::{Finder, Linker};
use thalweg_coap::interaction::server::Server;
use thalweg_coap::resource::{ChannelPolicy, LocalStore, Sampler, add_devices, system_clock};

use crate::outcome::{Failure, remark};

/// Thermal zones, load and process of this host and a simulated thermometer, measured on request or while observed.
pub struct Sensors {
    paths: Vec<String>,
    _sampler: Sampler,
}

impl Sensors {
    /// Finds and links what there is, and puts it into the store.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(store: &LocalStore, server: &Server) -> Result<Sensors, Failure> {
        let simulated = Simulated::new(Simulation::default());
        let finder = Finder::new().with(Thermal::default()).with(System::default()).with(simulated);
        let found = finder.find(FIND_PATIENCE);
        let linker = Linker::new(server.devices().clone());
        let failures = add_devices(store, &found, &linker, &ChannelPolicy::default(), &system_clock());
        for (device, reason) in failures {
            remark(format_args!("{device} is no resource: {reason}"));
        }
        let paths = store.paths();
        let sampler =
            Sampler::start(store.clone(), system_clock(), server.scheduler().manager()).map_err(Failure::from_cause)?;
        Ok(Sensors { paths, _sampler: sampler })
    }

    /// The paths of their resources.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }
}

/// Time limit of the search for devices.
const FIND_PATIENCE: Duration = Duration::from_secs(2);
