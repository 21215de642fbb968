//! `thalweg sub`: prints what arrives on a topic.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use thalweg::status::ReaderStatus;
use thalweg::{DataReader, Delivery, InstanceState, Sample};
use thalweg_lab::profile::Profile;

use super::publish::TypeName;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, Lines, remark};
use crate::qos_options::{EndpointKind, QosOptions};
use crate::strangers::MismatchedEndpoints;
use crate::surroundings::{Lookaround, SurveyOptions};
use crate::values::{Bytes, ShapeType, Text, TextValue};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg sub Square --type ShapeType --json --count 10 --timeout 30",
    "thalweg sub chatter"
))]
/// Prints one line for each sample of a topic; matches, why others do not match, and in the end how many samples came, were lost
/// and found no room, go to standard error.
pub struct SubscribeOptions {
    /// Name of the topic, such as Square.
    pub topic: String,

    /// Read samples of this type; the writers must use the same (default: string).
    #[arg(
        long = "type",
        value_enum,
        value_name = "TYPE",
        default_value = "string",
        hide_default_value = true,
        ignore_case = true
    )]
    pub type_name: TypeName,

    /// Print each sample as a JSON object with its value, instance state, source timestamp and writer (default: text).
    #[arg(long)]
    pub json: bool,

    /// Exit after N lines (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Give up with exit code 3 when --count is not reached after SECONDS; without --count, exit then (default: no limit).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub timeout: Option<Duration>,

    /// Policies of the endpoint.
    #[arg(long = "qos", value_name = "KEY=VALUE", help = crate::qos_options::help("reader"))]
    pub qos: Vec<String>,

    /// Take the receive buffer from the tuned profile in FILE, which `thalweg lab run paper1` writes (default: none).
    #[arg(long, value_name = "FILE")]
    pub profile: Option<std::path::PathBuf>,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

/// Subscribes as the options say.
///
/// # Errors
/// An option cannot be used, output cannot be written, or `--count` is not reached in time.
pub fn run(options: &SubscribeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match options.type_name {
        TypeName::String => subscribe::<Text>(options, interrupt),
        TypeName::Bytes => subscribe::<Bytes>(options, interrupt),
        TypeName::Shape => subscribe::<ShapeType>(options, interrupt),
    }
}

fn subscribe<T: TextValue>(options: &SubscribeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = QosOptions::parse_for(&options.qos, EndpointKind::Reader).map_err(Failure::Usage)?.reader();
    let profile = options.profile.as_deref().map_or_else(|| Ok(Profile::empty()), Profile::load);
    let profile = profile.map_err(|error| Failure::Usage(error.to_string()))?;
    let participant = options.survey.member.participant_with(&profile)?;
    let topic = participant.create_topic::<T>(&options.topic);
    let reader = participant.reader_builder(&topic).qos(qos).on_status(Delivery::Thread, tell);
    let reader = reader.create().map_err(Failure::from_cause)?;
    let mut search = Search {
        strangers: MismatchedEndpoints::of(&participant, reader.guid()),
        lookaround: Lookaround::new(&participant, &options.survey),
    };
    let result = follow(options, interrupt, &reader, &mut search);
    // A reader of our output that closed the pipe is not listening any more.
    if !matches!(result, Err(Failure::ClosedPipe)) {
        remark(closing_line(&reader));
    }
    result
}

/// Prints samples until the requested number has come.
fn follow<T: TextValue>(
    options: &SubscribeOptions,
    interrupt: &Interrupt,
    reader: &DataReader<T>,
    search: &mut Search<'_>,
) -> Result<(), Failure> {
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut printed = 0;
    let mut lines = Lines::default();
    loop {
        for sample in reader.take(TAKEN_MAX) {
            if options.count == Some(printed) {
                break;
            }
            printed += u64::from(add(&mut lines, &sample, options.json)?);
        }
        lines.print()?;
        if options.count == Some(printed) {
            return Ok(());
        }
        if interrupt.came() {
            // Without a count, Ctrl-C is how the user says that it is enough.
            return if options.count.is_none() { Ok(()) } else { Err(Failure::Interrupted) };
        }
        let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match (rest, options.count) {
            (Some(Duration::ZERO), None) => return Ok(()),
            (Some(Duration::ZERO), Some(count)) => return Err(too_few(options, printed, count, search)),
            _ => {}
        }
        search.go_on(options, printed > 0 || !reader.matched_writers().is_empty());
        reader.wait(rest.unwrap_or(LOOK_PERIOD).min(LOOK_PERIOD));
    }
}

/// Whom a reader waits for, until it has been matched.
struct Search<'a> {
    strangers: MismatchedEndpoints<'a>,
    lookaround: Lookaround<'a>,
}

impl Search<'_> {
    /// Tells of writers that do not match, and once why there are none.
    fn go_on(&mut self, options: &SubscribeOptions, has_matched: bool) {
        self.strangers.remark_new();
        if has_matched {
            return self.lookaround.end();
        }
        self.lookaround.begin_late();
        if let Some(found) = self.lookaround.take_when_due(Some(&options.topic)) {
            remark(format_args!("no writer of {:?} was found yet\n{}", options.topic, found.to_text()));
        }
    }
}

fn too_few(options: &SubscribeOptions, printed: u64, count: u64, search: &mut Search<'_>) -> Failure {
    let seconds = options.timeout.unwrap_or_default().as_secs_f64();
    let why = if printed > 0 { "the writers sent no more".to_owned() } else { search.strangers.explain() };
    if let Some(found) = search.lookaround.take(Some(&options.topic)) {
        remark(found.to_text());
    }
    Failure::TimedOut(format!(
        "{printed} of {count} samples of topic {:?} arrived within {seconds} s; {why}",
        options.topic
    ))
}

/// The counts of all samples, such as `received 10, lost 2 (2 never arrived), rejected 0`.
fn closing_line<T>(reader: &DataReader<T>) -> String {
    let (received, lost, rejected) = (reader.counters().received, reader.sample_lost(), reader.sample_rejected());
    let why_lost = if lost.total > 0 { format!(" ({})", lost.losses) } else { String::new() };
    let why_rejected = rejected.last_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let expired = match reader.counters().expired {
        0 => String::new(),
        expired => format!(", expired {expired}"),
    };
    format!("received {received}, lost {}{why_lost}, rejected {}{why_rejected}{expired}", lost.total, rejected.total)
}

fn tell(status: ReaderStatus) {
    match status {
        ReaderStatus::SubscriptionMatched(matched) => {
            let verb = if matched.current_change >= 0 { "matched" } else { "lost" };
            remark(format_args!("{verb} a writer, {} now", matched.current));
        }
        ReaderStatus::RequestedIncompatibleQos(status) => {
            for mismatch in &status.mismatches {
                remark(InLine(format_args!("a writer does not match: {mismatch}")));
            }
        }
        _ => {}
    }
}

/// Adds the line of a sample; false when it cannot be decoded, which is reported on standard error.
fn add<T: TextValue>(lines: &mut Lines, sample: &Sample<T>, json: bool) -> Result<bool, Failure> {
    let decoded = if sample.is_valid() { sample.data().map(Some) } else { Ok(sample.key().ok()) };
    let value = match decoded {
        Ok(value) => value,
        Err(error) => {
            lines.print()?;
            remark(format_args!("a sample of {} is not shown: {error}", sample.info().writer));
            return Ok(false);
        }
    };
    if json {
        lines.push(serde_json::to_string(&Line::new(sample, value.as_ref())).map_err(Failure::from_cause)?);
    } else if sample.is_valid() {
        lines.push(value.map(|value| value.to_text()).unwrap_or_default());
    } else {
        let key = value.map_or_else(|| sample.info().instance.to_string(), |value| value.key_json().to_string());
        lines.push(format_args!("{key} {}", state_name(sample.info().instance_state)));
    }
    Ok(true)
}

/// One sample as `--json` prints it.
#[derive(Serialize)]
struct Line {
    /// The value; of an invalid sample the key, or null when that is not known.
    value: serde_json::Value,
    /// False for the news that an instance was disposed or lost its writers.
    valid: bool,
    instance_state: &'static str,
    /// Nanoseconds since 1970; null when the writer sent no time stamp.
    source_timestamp_ns: Option<u64>,
    writer: String,
    sequence: i64,
}

impl Line {
    fn new<T: TextValue>(sample: &Sample<T>, value: Option<&T>) -> Line {
        let info = sample.info();
        let json = |value: &T| if sample.is_valid() { value.to_json() } else { value.key_json() };
        Line {
            value: value.map_or(serde_json::Value::Null, json),
            valid: sample.is_valid(),
            instance_state: state_name(info.instance_state),
            source_timestamp_ns: info.source_timestamp.and_then(|time| u64::try_from(time.to_unix().as_nanos()).ok()),
            writer: info.writer.to_string(),
            sequence: info.sequence.0,
        }
    }
}

/// The state's name in the DDS specification.
fn state_name(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Alive => "ALIVE",
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS",
    }
}

/// Samples taken at once, so that a fast writer does not delay Ctrl-C.
const TAKEN_MAX: usize = 256;
/// Interval at which a wait checks for Ctrl-C.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
