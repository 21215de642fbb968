//! Service management: applications that use resources of this thing and of others through one API.
//!
//! An application gets a [`Things`]: it requests, controls and observes resources by name, `/path` for those of this thing
//! and `coap://host/path` for those of others, and publishes its own. [`Services`] runs each application on a thread of its
//! own, in the application group of the scheduler.

mod client;
mod name;
mod neighbours;
mod observation;
mod remote;
mod resolver;
mod services;
mod things;

pub use client::CoapRemote;
pub use name::{NameError, ResourceName};
pub use observation::Observation;
pub(crate) use remote::with_host;
pub use remote::{Remote, RemoteObservation, ResponseCompletion, ResponseListener};
pub use services::{ServiceStop, Services};
pub use things::{PublishedResource, Things};

#[cfg(test)]
mod tests;
