//! The paper's interaction layer: datagrams in, handlers, datagrams out.
//!
//! - [`handler`] says what answers requests and where it runs, [`routes`] which handler a path leads to.

pub mod handler;
pub mod rate_limit;
pub mod routes;
