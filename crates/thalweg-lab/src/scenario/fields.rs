//! Typed access to TOML tables with errors that name the place.

pub use thalweg_settings::SettingsError as ScenarioError;
pub(super) use thalweg_settings::{SettingsTable as Fields, SettingsValue as Field};
