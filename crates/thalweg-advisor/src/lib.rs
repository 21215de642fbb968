//! What a host should be set to for a stream, why, and how it is set safely.
#![forbid(unsafe_code)]

mod figures;
mod numbers;
mod probes;
mod stream;
mod system;

pub use numbers::{Computed, FiveNumbers, Measured};
pub use probes::{
    Answers, Charge, GrantedBuffer, LiveProbes, PacingEffect, PacketCost, PathMtu, PlantedProbes, Probe, ProbePlan,
    Probes, Segmentation, WakeUps,
};
pub use stream::{BATCH_DATAGRAMS, DatagramPlan, Departing, ImpossibleStream, Stream, StreamProfile};
pub use system::{
    KernelSetting, LiveNics, NicChange, NicCoalescing, NicFeatureSetting, NicQueue, NicQueueCounts, NicRings,
    NicSettings, Nics, RecordedNics, System,
};
