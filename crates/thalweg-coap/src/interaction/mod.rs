//! The paper's interaction layer: datagrams in, handlers, datagrams out.
//!
//! - [`handler`] says what answers requests and where it runs, [`routes`] which handler a path leads to.
//! - [`rate_limit`] bounds what one host may ask for.

pub mod handler;
pub mod rate_limit;
pub mod routes;
