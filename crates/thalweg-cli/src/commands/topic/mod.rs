//! `thalweg topic`: reads and measures any topic, whatever its type and vendor.

mod echo;
mod expression;
pub mod find;
mod list;
mod publish;
mod rates;
mod readers;
mod table;
pub mod text;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use thalweg_recording::TopicSelection;

use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::Failure;

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg topic list",
    "thalweg topic echo /scan --field ranges[0] --count 10",
    "thalweg topic hz Square"
))]
/// Lists, prints, measures and writes topics of any type: the type comes from a file, from installed ROS packages, or from the
/// participant that has the topic. Names are those of DDS, or as ROS 2 shows them: /scan for rt/scan.
pub struct TopicOptions {
    #[command(subcommand)]
    command: TopicCommand,
}

#[derive(Debug, Subcommand)]
enum TopicCommand {
    List(list::TopicListOptions),
    Type(find::TypeOptions),
    Echo(echo::EchoOptions),
    Hz(rates::HzOptions),
    Bw(rates::BwOptions),
    Delay(rates::DelayOptions),
    Pub(publish::PubOptions),
}

/// Which topics are meant.
#[derive(Args, Clone, Debug)]
pub struct SelectionOptions {
    /// Names of the topics, with wildcards * and ? (default: all, also those that come later).
    pub topics: Vec<String>,

    /// Leave out topics with this name, wildcards allowed; once for each (default: none).
    #[arg(long, value_name = "NAME")]
    pub exclude: Vec<String>,
}

impl SelectionOptions {
    /// The same for a look at a name.
    pub fn selection(&self) -> TopicSelection {
        TopicSelection::new(self.topics.clone(), self.exclude.clone())
    }
}

/// Where types come from before anybody in the domain is asked.
#[derive(Args, Clone, Debug)]
pub struct TypeFiles {
    /// Take types from this IDL file before any other, once for each file (default: none).
    #[arg(long, value_name = "FILE")]
    pub idl: Vec<PathBuf>,

    /// Take types from the ROS packages in this folder, such as /opt/ros/jazzy/share, once for each (default: the share folders
    /// of AMENT_PREFIX_PATH).
    #[arg(long, value_name = "FOLDER")]
    pub share: Vec<PathBuf>,
}

/// Where types come from, and the domain.
#[derive(Args, Clone, Debug)]
pub struct SourceOptions {
    #[command(flatten)]
    /// Files with types.
    pub files: TypeFiles,

    /// Wait SECONDS for the topic, and for its type (default: 5).
    #[arg(long, value_name = "SECONDS", default_value = "5", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub patience: Duration,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

/// Carries out one of the commands.
///
/// # Errors
/// An option cannot be used, the topic or its type is not found in time, or output cannot be written.
pub fn run(options: &TopicOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.command {
        TopicCommand::List(options) => {
            interrupt.end_at_once();
            list::run(options)
        }
        TopicCommand::Type(options) => find::run(options, interrupt),
        TopicCommand::Echo(options) => echo::run(options, interrupt),
        TopicCommand::Hz(options) => rates::hz(options, interrupt),
        TopicCommand::Bw(options) => rates::bw(options, interrupt),
        TopicCommand::Delay(options) => rates::delay(options, interrupt),
        TopicCommand::Pub(options) => publish::run(options, interrupt),
    }
}
