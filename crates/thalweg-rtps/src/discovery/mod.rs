//! Discovery: what participants and endpoints tell each other about themselves (RTPS 2.5 §8.5).

pub mod endpoint_data;
mod parameters;
pub mod participant_data;

pub use parameters::LOCATORS_MAX;
