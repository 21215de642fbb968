//! The bridge to the data space: a resource is a topic and a topic is a resource.
//!
//! | CoAP | data space |
//! |---|---|
//! | GET | the newest sample |
//! | observe | subscription |
//! | PUT, POST | write |
//! | `/.well-known/core` | discovery |
//! | JSON, CBOR | a type of DDS-XTypes 1.3, encoded as XCDR1 or XCDR2 |
//!
//! Types are described in IDL; see [`thalweg_types::Types`]. Discovery does not carry them, so the bridge offers the topics whose types it has.

mod backlog;
mod bridge;
mod export;
mod samples;
mod topic;

pub use bridge::{Bridge, Changes, RESOURCES_ROOT};
pub use export::{Exporter, TOPICS_ROOT};
pub use thalweg_types::Types;
pub use topic::{Offered, TopicResource};
