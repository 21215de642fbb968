//! `thalweg topic pub`: writes samples of any type.

mod offer;
mod samples;
mod session;
#[cfg(test)]
mod tests;

use std::time::Duration;

use clap::Args;
use thalweg::{DomainParticipant, Type};
use thalweg_types::Types;

use super::SourceOptions;
use super::find::{Side, find, spellings, type_of, type_of_files};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, remark};
use crate::qos_options::{EndpointKind, QosOptions};
use crate::value_type::{ValueType, wire_name};
use samples::SampleSource;
use session::{PublishedTopic, Session};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    r#"thalweg topic pub /cmd_vel '{"linear":{"x":0.5}}' --rate 10"#,
    r#"thalweg topic pub Square '{"color":"RED"}' --dispose"#,
    "thalweg topic echo Square --json | thalweg topic pub Circle - --type ShapeType"
))]
/// Writes samples that are given as JSON, of the type that the readers or writers of the topic have. Members that a sample leaves out
/// have the default of their type; those of the key must be there.
pub struct PubOptions {
    /// Name of the topic, such as Square or /cmd_vel.
    pub topic: String,

    /// The sample, as `thalweg topic echo --json` prints it; - takes each line of standard input for a sample.
    #[arg(value_name = "SAMPLE")]
    pub sample: String,

    /// Write samples of this type, with its modules, such as geometry_msgs::msg::dds_::Twist_, where the topic has none yet or several
    /// (default: that of the topic).
    #[arg(long = "type", value_name = "NAME")]
    pub type_name: Option<String>,

    /// Write one sample (default: so without --count and --rate; all lines of standard input).
    #[arg(long, conflicts_with_all = ["count", "rate"])]
    pub once: bool,

    /// Write N samples (default: one; with --rate, go on until Ctrl-C; all lines of standard input).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Write HZ samples a second; 0 writes as fast as the readers acknowledge (default: 1; lines of standard input as they come).
    #[arg(long, value_name = "HZ", value_parser = crate::parse::rate)]
    pub rate: Option<f64>,

    /// Write nothing, and dispose the instance that the key members of each sample name: readers see NOT_ALIVE_DISPOSED (default:
    /// samples are written).
    #[arg(long, conflicts_with = "unregister")]
    pub dispose: bool,

    /// Behind each sample unregister its instance, without disposing it: readers see NOT_ALIVE_NO_WRITERS (default: the instances
    /// stay).
    #[arg(long)]
    pub unregister: bool,

    /// Before the first sample wait until N readers match; 0 starts at once. Exit code 3 when they are not there after --patience
    /// (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub wait_matching: usize,

    /// Policies of the writer.
    #[arg(long = "qos", value_name = "KEY=VALUE", help = qos_help())]
    pub qos: Vec<String>,

    #[command(flatten)]
    /// Where types come from.
    pub source: SourceOptions,
}

/// The help of `--qos`, whose defaults follow the readers here.
fn qos_help() -> String {
    crate::qos_options::help("writer").replace(
        "default: reliable, keep-all, volatile",
        "default: reliable, keep-all, and what the readers of the topic ask for, which is printed",
    )
}

impl PubOptions {
    /// The number of samples; `None` for no end but that of the input.
    fn limit(&self) -> Option<u64> {
        let is_one = self.once || (self.rate.is_none() && self.sample != "-");
        self.count.or(is_one.then_some(1))
    }

    /// Time between two samples.
    fn period(&self) -> Duration {
        let usual = if self.sample == "-" { 0.0 } else { 1.0 };
        match self.rate.unwrap_or(usual) {
            0.0 => Duration::ZERO,
            rate => Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX),
        }
    }
}

/// Writes samples.
///
/// # Errors
/// The type is not found, a sample does not fit it, too few readers match in time, or a write fails.
pub fn run(options: &PubOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = QosOptions::parse_for(&options.qos, EndpointKind::Writer).map_err(Failure::Usage)?;
    let samples = SampleSource::new(&options.sample)?;
    let participant = options.source.member.participant()?;
    let destination = destination(&participant, options, interrupt)?;
    if (options.dispose || options.unregister) && !destination.of.is_keyed() {
        return Err(Failure::Usage(format!(
            "--dispose and --unregister end instances, and the type {} has no key that names one",
            destination.of.name()
        )));
    }
    let mut session = Session::new(&participant, options, &qos, &destination)?;
    if let SampleSource::Given(sample) = &samples {
        session.check(sample)?;
    }
    session.wait_for_readers(interrupt)?;
    session.run(samples, interrupt)
}

/// Finds the topic's name on the wire and its type.
fn destination(
    participant: &DomainParticipant,
    options: &PubOptions,
    interrupt: &Interrupt,
) -> Result<PublishedTopic, Failure> {
    let wanted = options.type_name.as_deref().map(wire_name);
    let known = match wanted {
        Some(type_name) => named(type_name, options)?.map(|of| (type_name, of)),
        None => None,
    };
    if let Some((type_name, of)) = known {
        // Nobody needs to have the topic yet: the first spelling is the name on the wire.
        let name = spellings(&options.topic).swap_remove(0);
        // ROS packages know a type by several spellings, of which the wire has one.
        let of = ValueType::new(of.name().unwrap_or(type_name), of.clone())?;
        return Ok(PublishedTopic { name, of });
    }
    let found = find(participant, &options.topic, Side::Readers, options.source.patience, interrupt);
    let found = found.map_err(|failure| match failure {
        Failure::TimedOut(text) => Failure::TimedOut(format!("{text}; {NOBODY_HAS_IT}")),
        other => other,
    })?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != found.type_name) {
        return Err(Failure::Failed(format!(
            "the type {wanted} is not known, and the topic {} has the type {}; give it by --idl FILE or --share FOLDER",
            found.name,
            InLine(&found.type_name)
        )));
    }
    let (of, origin) = type_of(participant, &found, &options.source.files, options.source.patience, interrupt)?;
    remark(InLine(format_args!("{} of {}, from {origin}", found.type_name, found.name)));
    Ok(PublishedTopic { of: ValueType::new(&found.type_name, of)?, name: found.name })
}

/// The type of this name in files, in ROS packages, or among those that this command knows.
fn named(type_name: &str, options: &PubOptions) -> Result<Option<Type>, Failure> {
    if let Some((of, origin)) = type_of_files(type_name, &options.source.files)? {
        remark(format_args!("{type_name}, from {origin}"));
        return Ok(Some(of));
    }
    Ok(Types::default().find_type(type_name).cloned())
}

/// What helps where nobody has the topic.
const NOBODY_HAS_IT: &str =
    "start a reader of it, or name its type with --type NAME, and give that by --idl FILE or --share FOLDER";
/// Interval at which Ctrl-C and readers are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
