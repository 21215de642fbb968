//! Discovery: what participants and endpoints tell each other about themselves (RTPS 2.5 §8.5).

pub mod challenge;
pub mod database;
pub mod endpoint_data;
pub mod groups;
mod neighbourhood;
mod parameters;
pub mod participant_data;
pub mod reach;
pub mod senders;
pub mod strangers;
mod topic_index;

pub use database::{Database, DiscoveryLimits, Known, KnownParticipant};
pub use neighbourhood::neighbourhood;
pub use parameters::LOCATORS_MAX;
pub use reach::{LocalAddresses, Reach};
