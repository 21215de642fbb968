//! The `thalweg` command: publish, subscribe, list, explain, look around, advise, measure, simulate, experiment, show.
#![forbid(unsafe_code)]

mod commands;
#[cfg(test)]
mod documented;
mod input_lines;
mod interrupt;
mod network_options;
mod outcome;
mod parse;
mod qos_options;
mod refusals;
mod screen;
mod sending_options;
mod state_folder;
mod strangers;
mod surroundings;
mod type_search;
mod usage;
mod value_type;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use interrupt::Interrupt;
use outcome::Failure;

/// Data distribution on the OMG wire (DDS/RTPS).
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, max_term_width = 100, after_help = after_help!("thalweg lab quick", "thalweg sub chatter & thalweg pub chatter hello --count 3"))]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Pub(commands::publish::PublishOptions),
    Sub(commands::subscribe::SubscribeOptions),
    Ls(commands::list::ListOptions),
    Topic(commands::topic::TopicOptions),
    Idl(commands::idl::IdlOptions),
    Why(commands::why::WhyOptions),
    Doctor(commands::doctor::DoctorOptions),
    Config(commands::configuration::ConfigurationOptions),
    Advisor(commands::advisor::AdvisorOptions),
    Perf(commands::measure::MeasureOptions),
    Shapes(commands::shapes::ShapesOptions),
    Sim(commands::simulate::SimulateOptions),
    Lab(commands::laboratory::LaboratoryOptions),
    Coap(commands::coap::CoapOptions),
    Video(commands::video::VideoOptions),
    Record(commands::recording::RecordOptions),
    Replay(commands::recording::ReplayOptions),
    View(commands::view::ViewerOptions),
    Top(commands::traffic::TrafficOptions),
    Completions(commands::shell::CompletionsOptions),
    Man(commands::shell::ManOptions),
    /// A process of an experiment; takes its orders from standard input.
    #[command(hide = true)]
    Worker,
}

fn main() -> ExitCode {
    let words = commands::shapes::words(std::env::args_os().collect());
    let program = match Program::try_parse_from(&words) {
        Ok(program) => program,
        Err(error) => return usage::explain(&error, &Program::command(), words.into_iter().skip(1)).into(),
    };
    if matches!(program.command, Command::Worker) {
        return thalweg_lab::run_worker();
    }
    let interrupt = Interrupt::watch();
    match run(&program.command, &interrupt) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: &Command, interrupt: &Interrupt) -> Result<(), Failure> {
    match command {
        Command::Pub(options) => commands::publish::run(options, interrupt),
        Command::Sub(options) => commands::subscribe::run(options, interrupt),
        Command::Ls(options) => commands::list::run(options, interrupt),
        Command::Topic(options) => commands::topic::run(options, interrupt),
        Command::Idl(options) => commands::idl::run(options),
        Command::Why(options) => commands::why::run(options, interrupt),
        Command::Doctor(options) => commands::doctor::run(options, interrupt),
        Command::Config(options) => commands::configuration::run(options),
        Command::Advisor(options) => commands::advisor::run(options, interrupt),
        Command::Perf(options) => commands::measure::run(options, interrupt),
        Command::Shapes(options) => commands::shapes::run(options, interrupt),
        Command::Sim(options) => commands::simulate::run(options, interrupt),
        Command::Lab(options) => commands::laboratory::run(options, interrupt),
        Command::Coap(options) => commands::coap::run(options, interrupt),
        Command::Video(options) => commands::video::run(options, interrupt),
        Command::Record(options) => commands::recording::record(options, interrupt),
        Command::Replay(options) => commands::recording::replay(options, interrupt),
        Command::View(options) => commands::view::run(options, interrupt),
        Command::Top(options) => commands::traffic::run(options, interrupt),
        Command::Completions(options) => commands::shell::completions(options, &Program::command()),
        Command::Man(options) => commands::shell::man(options, &Program::command()),
        Command::Worker => Ok(()),
    }
}

/// The end of a command's help: examples that run, and the exit codes.
#[macro_export]
macro_rules! after_help {
    ($($example:literal),+) => {
        format!("Example:\n{}\n{}", concat!($("  ", $example, "\n"),+), $crate::outcome::EXIT_CODES)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command with its sub-commands.
    fn all(command: &clap::Command) -> Vec<clap::Command> {
        let mut out = vec![command.clone()];
        out.extend(command.get_subcommands().flat_map(all));
        out
    }

    /// The words of a command line, as a shell splits it at blanks outside single quotes.
    fn shell_words(line: &str) -> Vec<String> {
        let pieces = line.split('\'').enumerate();
        let words = pieces.flat_map(|(place, piece)| match place % 2 {
            0 => piece.split_whitespace().map(str::to_owned).collect(),
            _ => vec![piece.to_owned()],
        });
        words.collect()
    }

    #[test]
    fn the_examples_of_every_command_are_understood() {
        Program::command().debug_assert();
        for command in all(&Program::command()).iter().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  thalweg ")).collect();
            assert!(!examples.is_empty(), "{}", command.get_name());
            for example in
                examples.iter().flat_map(|line| line.split(" & thalweg ")).flat_map(|line| line.split(" | thalweg "))
            {
                let words = ["thalweg".to_owned()].into_iter().chain(shell_words(example));
                if let Err(error) = Program::try_parse_from(words) {
                    panic!("{example}: {error}");
                }
            }
        }
    }
}
