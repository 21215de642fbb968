//! The resource directory of a network: who has which resources (RFC 9176), as server and as client.
//!
//! [`ResourceDirectory`] is the registrations alone, without clock and network; [`DirectoryHandler`] serves one, and
//! [`Registration`] keeps the resources of this thing registered at another's.

mod client;
mod lookup;
mod registrations;
mod server;
#[cfg(test)]
mod tests;

pub use client::{Registration, RegistrationPlan};
pub use registrations::{DirectoryCounts, DirectoryError, EndpointName, ResourceDirectory};
pub use server::DirectoryHandler;
