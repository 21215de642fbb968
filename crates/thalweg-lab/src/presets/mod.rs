//! Presets: scenarios that follow from what is known of a paper and of this machine.

mod driving;
mod paper4;

pub use driving::driving;
pub use paper4::{MachineSize, paper4};

/// A scenario that was computed, and what it does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The scenario file; the same list stands in its `notes`, so that results and report carry it.
    pub text: String,
    /// What was left out, and why.
    pub left_out: Vec<String>,
}
