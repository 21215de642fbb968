//! Settings files that people write: TOML whose errors name file, line, column and the nearest allowed word.
//!
//! ```
//! let text = "name = \"roof\"\nperiod_ms = 500\n";
//! let period = thalweg_settings::read("roof.toml", text, (&["name", "period_ms"], &[]), |file| {
//!     file.require("period_ms")?.integer(1, 60_000)
//! });
//! assert_eq!(period, Ok(500));
//! let wrong = thalweg_settings::read("roof.toml", "nmae = 1", (&["name"], &[]), |_| Ok(()));
//! assert_eq!(wrong.unwrap_err().to_string(), "roof.toml:1:1: \"nmae\" is unknown: did you mean \"name\"? allowed: name");
//! ```
#![forbid(unsafe_code)]

mod fields;

pub use fields::{SettingsError, SettingsTable, SettingsValue, read};
pub use thalweg_base::nearest;
