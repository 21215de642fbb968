//! What a host should be set to for a stream, why, and how it is set safely.
#![forbid(unsafe_code)]

mod figures;
mod numbers;
mod probes;
mod stream;

pub use numbers::{Computed, FiveNumbers, Measured};
pub use probes::{
    Answers, Charge, GrantedBuffer, LiveProbes, PacingEffect, PacketCost, PathMtu, PlantedProbes, Probe, ProbePlan,
    Probes, Segmentation, WakeUps,
};
pub use stream::{BATCH_DATAGRAMS, DatagramPlan, Departing, ImpossibleStream, Stream, StreamProfile};
