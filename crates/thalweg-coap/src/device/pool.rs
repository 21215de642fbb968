//! The resource group's threads, which read and drive devices.

use std::fmt;
use std::io;
use std::sync::Arc;

use thalweg_transport::clock;

use super::handler::Seat;
use crate::scheduler::admission::AdmissionRank;
use crate::scheduler::controller::ControlLaw;
use crate::scheduler::pool::{Crew, Pool};
use crate::scheduler::queue::{JobOffer, Refused};
use crate::scheduler::{PoolConfig, Scheduler};

/// The threads for devices. A device with commands waits for one of them and keeps it for some commands, so each device
/// does one thing at a time. The law of the pool gives more threads while devices block, so that some that hang do not
/// hold up the others. A clone is the same pool.
#[derive(Clone)]
pub struct DevicePool {
    pool: Pool<Arc<Seat>>,
}

impl DevicePool {
    /// Adds the pool to a scheduler, under this law.
    ///
    /// # Errors
    /// When the law runs work inline, or the system gives no thread.
    pub fn start(scheduler: &Scheduler, law: ControlLaw) -> io::Result<DevicePool> {
        DevicePool::with_config(scheduler, PoolConfig::for_resources(law))
    }

    /// The same with other bounds.
    pub(super) fn with_config(scheduler: &Scheduler, config: PoolConfig) -> io::Result<DevicePool> {
        Ok(DevicePool { pool: scheduler.add_pool(config, Box::new(DeviceCrew))? })
    }

    /// Lets a device wait for a thread.
    pub(super) fn schedule(&self, seat: Arc<Seat>) {
        let mut refused = Vec::new();
        let offer = JobOffer { rank: AdmissionRank::Kept, bytes: size_of::<Seat>(), job: seat };
        self.pool.push(clock::now(), &mut vec![offer], &mut refused);
        refused.into_iter().for_each(|Refused { job, .. }| job.refuse());
    }

    /// Lets a device that nobody has any more wait for a thread, which leaves it in a safe state: no others that wait keep it from
    /// one. It waits once, so that these are no more than the devices that were linked.
    pub(super) fn schedule_closing(&self, seat: Arc<Seat>) {
        self.pool.push_owed(clock::now(), size_of::<Seat>(), seat);
    }
}

impl fmt::Debug for DevicePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DevicePool")
    }
}

struct DeviceCrew;

impl Crew<Arc<Seat>> for DeviceCrew {
    fn work(&self, seat: Arc<Seat>) {
        seat.work();
    }

    fn expire(&self, refused: Refused<Arc<Seat>>) {
        refused.job.refuse();
    }
}
