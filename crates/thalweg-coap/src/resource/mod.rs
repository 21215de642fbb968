//! Resource management: the readings of this thing, representations of other things, and access to both.
//!
//! | part | duty |
//! |---|---|
//! | [`Property`] | a quantity that is measured: periodically, on demand, or pushed by a service |
//! | [`Instruction`] | a quantity that is driven |
//! | [`LocalStore`] | the resources of this thing, by their paths |
//! | [`NetworkStore`] | resources of other things, kept while they are fresh: the network cache |
//! | [`Sampler`] | the thread that samples periodic properties |
//!
//! **Collapsed reads**: one read is in flight per resource, and its outcome, value or failure, answers all who wait. The same
//! holds for requests to other things.

mod adaptive;
mod catalog;
mod devices;
mod error;
mod instruction;
mod local;
mod network;
mod property;
pub mod representation;
mod sampler;
mod state;

pub use adaptive::{AdaptivePolicy, SensingReport};
pub use catalog::{ResourceHandler, respond};
pub use devices::{ChannelPolicy, add_devices};
pub use error::ResourceError;
pub use instruction::Instruction;
pub(crate) use local::link_of;
pub use local::{ChangeListener, Get, HeldChanges, LocalStore, Put, Resource, StoreError, WatchGuard, Watcher};
pub use network::{
    Fetched, FlightId, NetworkStore, NetworkStoreCounters, RemoteAnswer, RemoteAsked, RemoteKey, RemoteName, Tagged,
};
pub use property::{Clock, DeviceChannel, Property, PropertyDescription, Source, system_clock};
pub use representation::ResourceRepresentation;
pub use sampler::Sampler;
pub use state::{Sampled, Sampling};

#[cfg(test)]
mod tests;
