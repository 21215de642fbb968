//! What a host should be set to for a stream, why, and how it is set safely.
//!
//! An [`AdvisedStream`] and measurements ([`Probes`]) give five numbers ([`FiveNumbers`]); the numbers and the settings
//! of now ([`HostSettings`]) give [`HostAdvice`]. [`apply`] carries it out over an [`UndoLog`], by which every change
//! can be undone; [`StreamVerification`] measures again.
#![forbid(unsafe_code)]

mod advice;
mod apply;
mod figures;
mod numbers;
mod place;
mod probes;
mod rules;
mod stream;
mod system;
mod undo;
mod verify;

pub use advice::{AdviceStep, Effect, HostAdvice, NetworkFacts, Setting};
pub use apply::{AppliedAdvice, AppliedFiles, ChangeOutcome, HostChange, RefusedSetting, apply, apply_until};
pub use numbers::{Computed, FiveNumbers, Measured};
pub use place::{CoalescingKnob, HostPlaces, SettingPlace, SettingPlaces};
pub use probes::{
    DatagramCharge, GrantedBuffer, LiveProbes, PacingEffect, PacketCost, PathMtu, PlantedProbes, ProbeAnswers,
    ProbeKind, ProbePlan, Probes, Segmentation, WakeUps, device_towards,
};
pub use rules::PaperSetting;
pub use stream::{
    AdvisedStream, BATCH_DATAGRAMS, DatagramPlan, Departing, ImpossibleStream, StreamNetwork, StreamProfile,
};
pub use system::{
    HostSettings, KernelSetting, LiveNics, NicChange, NicCoalescing, NicFeatureSetting, NicQueue, NicQueueCounts,
    NicRings, NicSettings, Nics, RecordedNics,
};
pub use undo::{
    FileStore, ForeignChanges, HostIdentity, PastChange, RevertEnding, Reverted, UndoError, UndoLog, UndoStore,
    read_any,
};
pub use verify::{Check, Drift, StreamVerification};
