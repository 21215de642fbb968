//! Thalweg's program against other vendors' programs, between hosts of its own, and before a packet dissector.
//!
//! These tests need programs that a toolchain does not bring, so cargo leaves them out: `cargo xtask test` sets them up and
//! runs them.

mod advisor;
mod bursts;
mod capture;
mod coap;
mod cyclone;
mod dissector;
mod groups;
mod host;
mod namespaces;
mod oscore;
mod paper3;
mod peer;
mod probe;
mod prometheus;
mod recording;
mod shells;
mod sound;
mod ssh;
mod sshd;
mod thalweg;
mod vendors;
mod view;

use thalweg_testing::program;
