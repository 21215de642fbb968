//! UDP for Thalweg on Linux: sockets, vectored sending and receiving, interfaces, clock, entropy, host identity.
//!
//! The crate sends the datagrams of an [`Outbox`](thalweg_base::outbox::Outbox) and turns
//! arriving ones into [`Payload`](thalweg_base::payload::Payload)s; no RTPS is interpreted.

#[forbid(unsafe_code)]
pub mod batch;
#[cfg(any(feature = "v4l2", all(test, target_pointer_width = "64")))]
#[forbid(unsafe_code)]
pub mod camera;
#[forbid(unsafe_code)]
pub mod clock;
#[forbid(unsafe_code)]
mod counters;
#[forbid(unsafe_code)]
mod earliest;
#[forbid(unsafe_code)]
pub mod entropy;
#[forbid(unsafe_code)]
pub mod filter;
#[forbid(unsafe_code)]
pub mod frames;
#[forbid(unsafe_code)]
pub mod host;
#[forbid(unsafe_code)]
mod intake;
#[forbid(unsafe_code)]
pub mod interfaces;
#[forbid(unsafe_code)]
pub mod memory;
#[forbid(unsafe_code)]
pub mod nic;
#[forbid(unsafe_code)]
mod outgo;
#[forbid(unsafe_code)]
pub mod poll_flag;
#[forbid(unsafe_code)]
pub mod ports;
#[forbid(unsafe_code)]
pub mod probes;
#[forbid(unsafe_code)]
pub mod queueing;
#[forbid(unsafe_code)]
mod socket;
#[forbid(unsafe_code)]
pub mod stream;
#[forbid(unsafe_code)]
pub mod survey;
mod sys;
#[forbid(unsafe_code)]
pub mod tcp;
#[forbid(unsafe_code)]
pub mod thread;
#[forbid(unsafe_code)]
pub mod tuning;
#[forbid(unsafe_code)]
pub mod udp;
