//! Code that the protocols (RTPS, CoAP) and the transport share, so that none depends on another: instants, seeded random numbers,
//! addresses, payloads, datagrams to be sent, their class in the network, the points of a sample's way, names with wildcards, and the word that
//! a mistyped one was meant to be.
//!
//! No I/O, no clock, no entropy, no threads of its own.
#![forbid(unsafe_code)]

pub mod locator;
pub mod nearest;
pub mod outbox;
pub mod payload;
pub mod point;
pub mod rng;
pub mod time;
pub mod traffic_class;
pub mod wildcards;
