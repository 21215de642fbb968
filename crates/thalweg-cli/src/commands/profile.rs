//! `thalweg lab profile`: settings for a topic, from measurements.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use thalweg_host::may_make_namespaces;
use thalweg_lab::Scenario;
use thalweg_lab::process::Stop;
use thalweg_lab::profile_maker::{self, LossTolerance, MeasuringPlace, ProfileChoice, ProfileGoal, StudyForm, WAYS};
use thalweg_report::figures::about;

use super::laboratory::{from_lab, not_written};
use super::run::write;
use super::study;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_place, remark};

/// Options of `lab profile`.
#[derive(Args, Debug)]
pub struct ProfileOptions {
    /// Let the publisher send HZ samples a second, 0.1 to 100000 (default: none, it has to be given).
    #[arg(long, value_name = "HZ", value_parser = within::<1, 1_000_000>)]
    pub rate: f64,

    /// Let a sample have BYTES octets, up to 67108864 (default: none, it has to be given).
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=64 << 20))]
    pub size: u32,

    /// Let 99 of 100 samples arrive within MS milliseconds after they were due, 0.1 to 3600000 (default: none, it has to be given).
    #[arg(long, value_name = "MS", value_parser = within::<1, 36_000_000>)]
    pub deadline: f64,

    /// Let N subscribers read every sample, 1 to 100 (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub subscribers: u32,

    /// Let at most MBITS Mbit/s leave all hosts together, headers and acknowledgements included; needs a link, see --to (default: any
    /// number).
    #[arg(long, value_name = "MBITS", value_parser = within::<1, 1_000_000>)]
    pub budget: Option<f64>,

    /// Let publisher and subscribers together use at most PCT per cent of one CPU (default: any share).
    #[arg(long, value_name = "PCT", value_parser = within::<1, 1_000_000>)]
    pub cpu: Option<f64>,

    /// Say whether samples may be lost (default: none).
    #[arg(long, value_enum, value_name = "LOSS", default_value = "none", hide_default_value = true)]
    pub loss: LossName,

    /// Judge the runs in DIRECTORY, made by this command (its folder study) or by `thalweg lab run FILE`, and measure nothing; may be given
    /// several times (default: measure).
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["to", "runs", "only", "others"])]
    pub from: Vec<PathBuf>,

    /// Measure between processes of this host (loopback), between two network namespaces (netns), or from here to another machine
    /// (ssh:HOST) (default: netns as root, else loopback).
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub to: Option<MeasuringPlace>,

    /// Make N runs of each method, 8 to 1000; fewer than the default prove nothing where many are compared (default: as many as verdicts
    /// need).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..=1_000))]
    pub runs: Option<u32>,

    /// Measure only these ways, with commas between (default: all that could serve).
    #[arg(long, value_name = "LIST", value_delimiter = ',', num_args = 1, value_parser = PossibleValuesParser::new(WAYS))]
    pub only: Vec<String>,

    /// Repeat a run of whose CPU time other programs and the hypervisor took more than PCT per cent; raise it where your own load belongs
    /// to the measurement (default: 1).
    #[arg(long, value_name = "PCT", default_value_t = 1.0, hide_default_value = true, value_parser = within::<0, 1_000>)]
    pub others: f64,

    /// Write the profiles and the runs into FOLDER, which is made if it is missing; runs that are there are not made again (default:
    /// profile).
    #[arg(long, value_name = "FOLDER", default_value = "profile", hide_default_value = true)]
    pub out: PathBuf,

    /// Print the verdicts as one JSON object instead of a table (default: a table).
    #[arg(long)]
    pub json: bool,
}

/// Whether samples may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LossName {
    /// Every sample has to arrive.
    None,
    /// Fewer than one of 100 may be lost.
    Some,
}

/// Measures, judges and writes the profiles.
///
/// # Errors
/// Nothing can be measured, nothing serves, or files cannot be written.
pub fn run(options: &ProfileOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let goal = options.goal();
    let directories =
        if options.from.is_empty() { vec![measure(options, &goal, interrupt)?] } else { options.from.clone() };
    let choice = ProfileChoice::from_directories(&goal, &directories).map_err(from_lab)?;
    print_either(options.json, &choice, choice.to_text().trim_end())?;
    if let Some(reason) = choice.shortcoming() {
        return Err(Failure::Failed(reason));
    }
    std::fs::create_dir_all(&options.out).map_err(|error| not_written(&options.out, &error))?;
    for (name, text) in profile_maker::files(&choice).map_err(from_lab)? {
        let path = options.out.join(name);
        write(&path, &text)?;
        print_place(options.json, format_args!("Profile: {}", path.display()))?;
    }
    Ok(())
}

fn measure(options: &ProfileOptions, goal: &ProfileGoal, interrupt: &Interrupt) -> Result<PathBuf, Failure> {
    let usual = if may_make_namespaces() { MeasuringPlace::Namespaces } else { MeasuringPlace::Loopback };
    let form = StudyForm {
        place: options.to.clone().unwrap_or(usual),
        runs: options.runs,
        only: options.only.clone(),
        others_pct: options.others,
    };
    let text = goal.scenario(&form).map_err(Failure::Usage)?;
    let scenario = Scenario::parse("the scenario of these options", &text);
    let scenario = scenario.map_err(|error| Failure::Usage(error.to_string()))?;
    remark(format_args!(
        "{} ways, {} runs each; this takes {}.",
        scenario.cells.len(),
        scenario.schedule.runs.min,
        about(scenario.duration())
    ));
    std::fs::create_dir_all(&options.out).map_err(|error| not_written(&options.out, &error))?;
    let launcher = study::launcher(None, None)?;
    profile_maker::measure(&text, &options.out, (&launcher, &Stop::watching(interrupt.flag()))).map_err(from_lab)
}

impl ProfileOptions {
    fn goal(&self) -> ProfileGoal {
        ProfileGoal {
            rate_hz: self.rate,
            sample_bytes: self.size,
            deadline_ms: self.deadline,
            subscribers: self.subscribers,
            wire_mbit: self.budget,
            cpu_pct: self.cpu,
            loss: match self.loss {
                LossName::None => LossTolerance::None,
                LossName::Some => LossTolerance::Some,
            },
        }
    }
}

/// A number within these bounds, which are given in tenths.
fn within<const LEAST: u32, const MOST: u32>(text: &str) -> Result<f64, String> {
    let (least, most) = (f64::from(LEAST) / 10.0, f64::from(MOST) / 10.0);
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("not a number from {least} to {most}"))
}

fn place(text: &str) -> Result<MeasuringPlace, String> {
    match text.strip_prefix("ssh:") {
        Some("") => Err("ssh: needs a host, such as ssh:user@lab2".to_owned()),
        Some(host) => Ok(MeasuringPlace::Machine(host.to_owned())),
        None if text == "loopback" => Ok(MeasuringPlace::Loopback),
        None if text == "netns" => Ok(MeasuringPlace::Namespaces),
        None => Err("not a place; give loopback, netns or ssh:HOST".to_owned()),
    }
}
