//! `thalweg config`: each setting that participants here start with, and where it came from.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use thalweg::Configuration;
use thalweg::configuration::EffectiveSetting;

use super::topic::find::spellings;
use crate::outcome::{Failure, print_either};

/// Prints each effective setting of participants that start here and where it came from: the file that THALWEG_CONFIG or --file names, a
/// variable of the environment, or the default.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg config", "thalweg config rt/map --json"))]
pub struct ConfigurationOptions {
    /// Print what applies to writers and readers of this topic, such as Square or /map, instead (default: the settings of participants,
    /// profiles and topics).
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
    /// The topic's name on the wire; null where no topic is named.
    topic: Option<String>,
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
    let shown = match &options.topic {
        Some(topic) => of_topic(&configuration, topic),
        None => Shown::new(None, configuration.settings()),
    };
    print_either(options.json, &shown, text(&shown, options.topic.as_deref()))
}

impl Shown {
    fn new(topic: Option<String>, settings: Vec<EffectiveSetting>) -> Shown {
        let shown = settings.into_iter().map(|setting| ShownSetting {
            key: setting.key,
            value: setting.value,
            origin: setting.origin.to_string(),
        });
        Shown { topic, settings: shown.collect() }
    }
}

/// The settings of the first of the names that a name may stand for which has some.
fn of_topic(configuration: &Configuration, given: &str) -> Shown {
    let names = spellings(given).into_iter();
    let told = names.map(|name| (configuration.topic_settings(&name), name)).find(|(settings, _)| !settings.is_empty());
    let (settings, name) = told.unwrap_or_else(|| (Vec::new(), given.to_owned()));
    Shown::new(Some(name), settings)
}

fn text(shown: &Shown, given: Option<&str>) -> String {
    let Shown { topic, settings } = shown;
    if let (Some(topic), true) = (topic, settings.is_empty()) {
        return format!("no profile is set for topic {topic:?}: programs decide");
    }
    let width = |of: fn(&ShownSetting) -> &str| settings.iter().map(|setting| of(setting).len()).max().unwrap_or(0);
    let (key_width, value_width) = (width(|setting| &setting.key), width(|setting| &setting.value));
    let mut text = String::new();
    if let Some(topic) = topic.as_deref().filter(|topic| Some(*topic) != given) {
        _ = writeln!(text, "# topic {topic}");
    }
    for ShownSetting { key, value, origin } in settings {
        _ = writeln!(text, "{key:key_width$} = {value:value_width$}  # {origin}");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_topic_are_found_by_its_name_as_ros_shows_it() {
        let profile = "[profile.kept]\ndurability = \"transient_local\"\n";
        let file = format!("{profile}\n[[topic]]\nname = \"rt/map*\"\nprofile = \"kept\"\n");
        let configuration = Configuration::parse(&file, "thalweg.toml").expect("a configuration");
        let shown = |given: &str| text(&of_topic(&configuration, given), Some(given));
        let wire = shown("rt/map");
        assert!(wire.starts_with("writer.durability = \"transient_local\""), "{wire}");
        for given in ["/map", "map"] {
            assert_eq!(shown(given), format!("# topic rt/map\n{wire}"));
        }
        assert_eq!(shown("/scan"), "no profile is set for topic \"/scan\": programs decide");
    }
}
