//! `thalweg config`: each setting that participants here start with, and where it came from.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thalweg::Configuration;

use crate::outcome::{Failure, print_either};

/// Prints each effective setting of participants that start here and where it came from: the file that THALWEG_CONFIG or --file names, a
/// variable of the environment, or the default.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg config", "thalweg config rt/map --json"))]
pub struct ConfigurationOptions {
    /// Print what applies to writers and readers of this topic instead (default: the settings of participants, profiles and topics).
    pub topic: Option<String>,

    /// Read FILE instead of the one that THALWEG_CONFIG names; use it to check a file before it is used (default: THALWEG_CONFIG).
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// The settings, for output.
#[derive(Serialize)]
struct Shown {
    settings: Vec<ShownSetting>,
}

#[derive(Serialize)]
struct ShownSetting {
    key: String,
    value: String,
    origin: String,
}

/// Prints the settings.
///
/// # Errors
/// The file or a variable cannot be used, or output cannot be written.
pub fn run(options: &ConfigurationOptions) -> Result<(), Failure> {
    let configuration = match &options.file {
        Some(file) => Configuration::load(file).and_then(Configuration::with_environment),
        None => Configuration::from_environment(),
    };
    let configuration = configuration.map_err(Failure::from_cause)?;
    let settings = match &options.topic {
        Some(topic) => configuration.topic_settings(topic),
        None => configuration.settings(),
    };
    let shown = settings.into_iter().map(|setting| ShownSetting {
        key: setting.key,
        value: setting.value,
        origin: setting.origin.to_string(),
    });
    let shown = Shown { settings: shown.collect() };
    print_either(options.json, &shown, text(&shown.settings, options.topic.as_deref()))
}

fn text(settings: &[ShownSetting], topic: Option<&str>) -> String {
    if let (Some(topic), true) = (topic, settings.is_empty()) {
        return format!("no profile is set for topic {topic:?}: programs decide");
    }
    let width = |of: fn(&ShownSetting) -> &str| settings.iter().map(|setting| of(setting).len()).max().unwrap_or(0);
    let (key_width, value_width) = (width(|setting| &setting.key), width(|setting| &setting.value));
    let mut text = String::new();
    for ShownSetting { key, value, origin } in settings {
        _ = writeln!(text, "{key:key_width$} = {value:value_width$}  # {origin}");
    }
    text.trim_end().to_owned()
}
