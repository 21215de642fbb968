//! The finder: which devices are there.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::device::{Description, DeviceError, Driver};

/// Asks drivers for their devices, all at once, so that one that hangs costs the others nothing.
#[derive(Clone, Default)]
pub struct Finder {
    drivers: Vec<Arc<dyn Driver>>,
}

/// A device and the driver that can open it.
#[derive(Clone)]
pub struct FoundDevice {
    /// The driver that opens it.
    pub driver: Arc<dyn Driver>,
    /// Its description.
    pub description: Description,
}

/// The result of a search, in the order of the drivers.
#[derive(Default)]
pub struct FoundDevices {
    /// The devices.
    pub devices: Vec<FoundDevice>,
    /// Drivers that could not look, by name, and why.
    pub failures: Vec<(String, DeviceError)>,
}

impl Finder {
    /// A finder without drivers.
    pub fn new() -> Finder {
        Finder::default()
    }

    /// Adds a driver.
    #[must_use]
    pub fn with(mut self, driver: impl Driver + 'static) -> Finder {
        self.drivers.push(Arc::new(driver));
        self
    }

    /// Looks for devices, for no longer than `patience`; a driver that takes longer is listed among the failures.
    pub fn find(&self, patience: Duration) -> FoundDevices {
        let deadline = Instant::now() + patience;
        let searches: Vec<_> = self.drivers.iter().map(|driver| (driver, search(Arc::clone(driver)))).collect();
        let mut found = FoundDevices::default();
        for (driver, search) in searches {
            let rest = deadline.saturating_duration_since(Instant::now());
            let outcome = search.and_then(|results| match results.recv_timeout(rest) {
                Ok(outcome) => outcome,
                Err(mpsc::RecvTimeoutError::Timeout) => Err(DeviceError::TimedOut(patience)),
                Err(mpsc::RecvTimeoutError::Disconnected) => Err(DeviceError::Failed("the driver panicked".to_owned())),
            });
            match outcome {
                Ok(descriptions) => found.devices.extend(
                    descriptions.into_iter().map(|description| FoundDevice { driver: Arc::clone(driver), description }),
                ),
                Err(error) => found.failures.push((driver.name().to_owned(), error)),
            }
        }
        found
    }
}

type Outcome = Result<Vec<Description>, DeviceError>;

fn search(driver: Arc<dyn Driver>) -> Result<mpsc::Receiver<Outcome>, DeviceError> {
    let (sender, results) = mpsc::sync_channel(1);
    let name = format!("find-{}", driver.name());
    let started = std::thread::Builder::new().name(name).spawn(move || {
        // The receiver is gone when the search took too long.
        let _ = sender.send(driver.find());
    });
    started.map_err(|error| DeviceError::Failed(format!("no thread to search with: {error}")))?;
    Ok(results)
}
