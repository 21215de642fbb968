//! What a host should be set to for a stream, why, and how it is set safely.
//!
//! A [`Stream`] and measurements ([`Probes`]) give five numbers ([`FiveNumbers`]); the numbers and the settings of now ([`System`])
//! give [`Advice`]. [`apply`] carries it out over an [`UndoLog`], by which every change can be undone; [`Verification`] measures again.
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

pub use advice::{Advice, Effect, Setting, Step, Surroundings};
pub use apply::{Application, AppliedFiles, Change, Outcome, apply};
pub use numbers::{Computed, FiveNumbers, Measured};
pub use place::{CoalescingKnob, HostPlaces, Place, Places};
pub use probes::{
    Answers, Charge, GrantedBuffer, LiveProbes, PacingEffect, PacketCost, PathMtu, PlantedProbes, Probe, ProbePlan,
    Probes, Segmentation, WakeUps,
};
pub use rules::PaperSetting;
pub use stream::{BATCH_DATAGRAMS, DatagramPlan, Departing, ImpossibleStream, Stream, StreamProfile};
pub use system::{
    KernelSetting, LiveNics, NicChange, NicCoalescing, NicFeatureSetting, NicQueue, NicQueueCounts, NicRings,
    NicSettings, Nics, RecordedNics, System,
};
pub use undo::{Ending, FileStore, HostIdentity, Past, Reverted, Strangers, UndoError, UndoLog, UndoStore, read_any};
pub use verify::{Check, Drift, Verification};
