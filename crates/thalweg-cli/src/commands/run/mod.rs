//! `thalweg lab run`: presets, each with options of its own, and scenario files.

mod driving;
mod extent;
mod options;
mod paper1;
mod paper2;
mod paper3;
mod paper4;
mod paper5;

use std::path::Path;

use clap::{Args, Subcommand};
use thalweg_lab::Length;
use thalweg_lab::nearest::nearest;

pub use extent::{Extent, PresetOutline};
pub use options::{PresetOptions, write};

use super::study::{self, ScenarioOptions};
use super::top;
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Options of `lab run`: a preset with its own, or a scenario.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    subcommand_value_name = "PRESET",
    subcommand_help_heading = "Presets"
)]
pub struct RunOptions {
    /// The preset.
    #[command(subcommand)]
    pub preset: Option<PresetCommand>,

    /// The scenario, where no preset is named.
    #[command(flatten)]
    pub scenario: ScenarioOptions,
}

/// The presets, each with its options.
#[derive(Debug, Subcommand)]
pub enum PresetCommand {
    /// Repeats the tables and figures of a paper on transmission methods beside other vendors' programs, searches every method's best
    /// parameters first and writes them as a profile.
    #[command(after_help = crate::after_help!(
        "thalweg lab run paper1 --quick --peers none --out /tmp/paper1",
        "thalweg lab run paper1 --peers cyclone,zenoh",
        "thalweg perf throughput --size 256 --profile paper1/profile.toml"
    ))]
    Paper1(paper1::Paper1Options),
    /// Compares unicast and multicast with many participants, on network namespaces; needs root.
    #[command(after_help = crate::after_help!(
        "thalweg lab run paper2 --quick --out /tmp/paper2",
        "thalweg lab run paper2 --counts 10,75 --runs 8"
    ))]
    Paper2(paper2::Paper2Options),
    /// Repeats the figures and tables of a paper on uncompressed HDTV over 10-gigabit Ethernet, on network namespaces, with other programs
    /// and with topics beside it; needs root.
    #[command(after_help = crate::after_help!(
        "thalweg lab run paper3 --quick --out /tmp/paper3",
        "thalweg lab run paper3 --parts mtu,peers --peers gstreamer"
    ))]
    Paper3(paper3::Paper3Options),
    /// Repeats the messages, rates and topologies of a paper on ROS 2, with every middleware in turns.
    #[command(after_help = crate::after_help!(
        "thalweg lab run paper4 --quick --peers cyclone,fastdds",
        "thalweg lab run paper4 --parts vendors,layers"
    ))]
    Paper4(paper4::Paper4Options),
    /// Moves the traffic of an automated vehicle, from LIDARs and cameras to the actuators, in one run with every middleware in turns.
    #[command(after_help = crate::after_help!("thalweg lab run driving --quick --peers none", "thalweg lab run driving --peers cyclone"))]
    Driving(driving::DrivingOptions),
    /// Repeats the figures of a paper on adaptive handler pools, with CoAP servers of other projects beside Thalweg's.
    #[command(after_help = crate::after_help!(
        "thalweg lab run paper5 --quick --peers libcoap,californium",
        "thalweg lab run paper5 --quick --figures ramp --laws vta,fixed:4"
    ))]
    Paper5(Box<paper5::Paper5Options>),
}

/// Runs a preset or a scenario, prints its tables and writes its files.
///
/// # Errors
/// It is neither, it has no result, its files cannot be written, one of Thalweg's own methods failed, or an expectation does not hold.
pub fn run(options: &RunOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.preset {
        Some(PresetCommand::Paper1(options)) => paper1::run(options, interrupt),
        Some(PresetCommand::Paper2(options)) => paper2::run(options, interrupt),
        Some(PresetCommand::Paper3(options)) => paper3::run(options, interrupt),
        Some(PresetCommand::Paper4(options)) => paper4::run(options, interrupt),
        Some(PresetCommand::Driving(options)) => driving::run(options, interrupt),
        Some(PresetCommand::Paper5(options)) => paper5::run(options, interrupt),
        None => {
            check_file(options.scenario.file())?;
            if options.scenario.live {
                return top::run_live(&options.scenario, interrupt);
            }
            study::run(&options.scenario, interrupt)
        }
    }
}

/// Refuses words that are no file and look like a preset's name.
fn check_file(file: &Path) -> Result<(), Failure> {
    if file.extension().is_some() || file.is_file() {
        return Ok(());
    }
    let word = file.display().to_string();
    if PRESETS.contains(&word.as_str()) {
        return Err(Failure::Usage(format!(
            "name the preset before its options: thalweg lab run {word} --out DIRECTORY"
        )));
    }
    let guess = nearest(&word, PRESETS).map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
    Err(Failure::Usage(format!("{word} is no file and no preset: {guess}Presets: {}", PRESETS.join(", "))))
}

/// What each preset makes on this machine.
pub fn outlines() -> Result<Vec<PresetOutline>, Failure> {
    type Of = fn(Length) -> Result<Extent, Failure>;
    let all: [(&str, &str, Of); 6] = [
        ("paper1", "transmission methods, beside other vendors' programs", paper1::extent),
        ("paper2", "unicast and multicast with many participants", paper2::extent),
        ("paper3", "uncompressed video, and the settings it needs", paper3::extent),
        ("paper4", "messages, rates and topologies of a ROS 2 system", paper4::extent),
        ("driving", "the traffic of an automated vehicle, in one run", driving::extent),
        ("paper5", "CoAP servers with adaptive handler pools", paper5::extent),
    ];
    let outline = |(name, about, of): (&'static str, &'static str, Of)| {
        Ok(PresetOutline { name, about, quick: of(Length::Quick)?, usual: of(Length::Usual)? })
    };
    all.into_iter().map(outline).collect()
}

const PRESETS: [&str; 6] = ["paper1", "paper2", "paper3", "paper4", "driving", "paper5"];
