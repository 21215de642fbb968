//! CoAP (RFC 7252) for small devices beside the data space: a server whose handlers run where they cost least.
#![forbid(unsafe_code)]

pub mod scheduler;
