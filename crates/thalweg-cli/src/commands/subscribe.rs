//! `thalweg sub`: prints what arrives on a topic.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use thalweg::qos::{Mismatch, PolicyId, ReaderQos};
use thalweg::status::ReaderStatus;
use thalweg::{DataReader, Delivery, DomainParticipant, InstanceState, Raw, Sample};
use thalweg_lab::profile::Profile;
use thalweg_types::document::Document;

use super::topic::find::{Side, spellings};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, Lines, remark};
use crate::qos_options::{EndpointKind, QosOptions};
use crate::strangers::MismatchedEndpoints;
use crate::surroundings::{Lookaround, SurveyOptions};
use crate::type_search::{SampleTypeSearch, TypeChoice};
use crate::value_type::ValueType;

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg sub Square --type ShapeType --json --count 10 --timeout 30",
    "thalweg sub chatter"
))]
/// Prints one line for each sample of a topic; matches, why others do not match, and in the end how many samples came, were lost
/// and found no room, go to standard error.
pub struct SubscribeOptions {
    /// Name of the topic, such as Square or /scan.
    pub topic: String,

    #[command(flatten)]
    /// The type of the samples.
    pub of: TypeChoice,

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
/// An option cannot be used, the type is not found, output cannot be written, or `--count` is not reached in time.
pub fn run(options: &SubscribeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = QosOptions::parse_for(&options.qos, EndpointKind::Reader).map_err(Failure::Usage)?.reader();
    let profile = options.profile.as_deref().map_or_else(|| Ok(Profile::empty()), Profile::load);
    let profile = profile.map_err(|error| Failure::Usage(error.to_string()))?;
    let mut of = options.of.known()?;
    let participant = options.survey.member.participant_with(&profile)?;
    let topic = spellings(&options.topic).swap_remove(0);
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut subscription = Subscription {
        options,
        interrupt,
        participant: &participant,
        topic: &topic,
        qos,
        deadline,
        printed: 0,
        types: SampleTypeSearch::new(&participant, &options.of, &topic, Side::Writers, deadline, interrupt),
        lookaround: Lookaround::new(&participant, &options.survey),
    };
    loop {
        let next = match &of {
            Some(of) => subscription.read(of)?,
            None => subscription.wait_for_type()?,
        };
        match next {
            Next::Type(next) => of = Some(next),
            Next::End => return Ok(()),
        }
    }
}

/// What comes after a reader.
enum Next {
    /// Another one, of this type.
    Type(ValueType),
    /// The end of the command.
    End,
}

/// A topic that is read, by one reader after the other until the type is known.
struct Subscription<'a> {
    options: &'a SubscribeOptions,
    interrupt: &'a Interrupt,
    participant: &'a DomainParticipant,
    /// Its name on the wire.
    topic: &'a str,
    qos: ReaderQos,
    deadline: Option<Instant>,
    printed: u64,
    types: SampleTypeSearch<'a>,
    lookaround: Lookaround<'a>,
}

impl Subscription<'_> {
    /// Waits until somebody describes the type that the user named.
    fn wait_for_type(&mut self) -> Result<Next, Failure> {
        loop {
            if let Some(of) = self.types.next(None)? {
                return Ok(Next::Type(of));
            }
            if self.conclude(|subscription| subscription.types.missing())? {
                return Ok(Next::End);
            }
            self.look_around(false);
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Reads samples of a type, until there are enough or the writers turn out to have another one.
    fn read(&mut self, of: &ValueType) -> Result<Next, Failure> {
        let topic = of.topic(self.participant, self.topic)?;
        let tell = status_teller(self.options.of.is_named());
        let reader = self.participant.reader_builder(&topic).qos(self.qos.clone()).on_status(Delivery::Thread, tell);
        let reader = reader.create().map_err(Failure::from_cause)?;
        let result = self.follow(of, &reader);
        // A reader of our output that closed the pipe is not listening any more.
        if !matches!(result, Err(Failure::ClosedPipe) | Ok(Next::Type(_))) {
            remark(closing_line(&reader));
        }
        result
    }

    /// Prints samples until the requested number has come.
    fn follow(&mut self, of: &ValueType, reader: &DataReader<Raw>) -> Result<Next, Failure> {
        let mut strangers =
            MismatchedEndpoints::of(self.participant, reader.guid()).with_types_unless(self.options.of.is_named());
        let mut lines = Lines::default();
        loop {
            for sample in reader.take(TAKEN_MAX) {
                if self.options.count == Some(self.printed) {
                    break;
                }
                self.printed += u64::from(add(&mut lines, of, &sample, self.options.json)?);
            }
            lines.print()?;
            let is_over = self.conclude(|subscription| match subscription.printed {
                0 => strangers.explain(),
                _ => "the writers sent no more".to_owned(),
            })?;
            if is_over {
                return Ok(Next::End);
            }
            let has_matched = self.printed > 0 || !reader.matched_writers().is_empty();
            if !has_matched && let Some(next) = self.types.next(Some(of))? {
                return Ok(Next::Type(next));
            }
            strangers.remark_new();
            self.look_around(has_matched);
            let rest = self.deadline.map_or(LOOK_PERIOD, |deadline| deadline.saturating_duration_since(Instant::now()));
            reader.wait(rest.min(LOOK_PERIOD));
        }
    }

    /// Whether the command has done what it was asked for; `why` tells the reason where samples are missing.
    fn conclude(&mut self, why: impl FnOnce(&Self) -> String) -> Result<bool, Failure> {
        let count = self.options.count;
        if count == Some(self.printed) {
            return Ok(true);
        }
        if self.interrupt.came() {
            // Without a count, Ctrl-C is how the user says that it is enough.
            return if count.is_none() { Ok(true) } else { Err(Failure::Interrupted) };
        }
        if self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return Ok(false);
        }
        let Some(count) = count else { return Ok(true) };
        let why = why(self);
        if let Some(found) = self.lookaround.take(Some(self.topic)) {
            remark(found.to_text());
        }
        let (printed, topic) = (self.printed, &self.options.topic);
        let seconds = self.options.timeout.unwrap_or_default().as_secs_f64();
        Err(Failure::TimedOut(format!(
            "{printed} of {count} samples of topic {topic:?} arrived within {seconds} s; {why}"
        )))
    }

    /// Tells once why there are no writers.
    fn look_around(&mut self, has_matched: bool) {
        if has_matched {
            return self.lookaround.end();
        }
        self.lookaround.begin_late();
        if let Some(found) = self.lookaround.take_when_due(Some(self.topic)) {
            remark(format_args!("no writer of {:?} was found yet\n{}", self.options.topic, found.to_text()));
        }
    }
}

/// The counts of all samples, such as `received 10, lost 2 (2 never arrived), rejected 0`.
fn closing_line(reader: &DataReader<Raw>) -> String {
    let (received, lost, rejected) = (reader.counters().received, reader.sample_lost(), reader.sample_rejected());
    let why_lost = if lost.total > 0 { format!(" ({})", lost.losses) } else { String::new() };
    let why_rejected = rejected.last_reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let expired = match reader.counters().expired {
        0 => String::new(),
        expired => format!(", expired {expired}"),
    };
    format!("received {received}, lost {}{why_lost}, rejected {}{why_rejected}{expired}", lost.total, rejected.total)
}

/// Tells of statuses; of types that differ where the user names one, since otherwise that of the writers is looked for.
fn status_teller(tells_types: bool) -> impl Fn(ReaderStatus) + Send + Sync + 'static {
    move |status| match status {
        ReaderStatus::SubscriptionMatched(matched) => {
            let verb = if matched.current_change >= 0 { "matched" } else { "lost" };
            remark(format_args!("{verb} a writer, {} now", matched.current));
        }
        ReaderStatus::RequestedIncompatibleQos(status) => {
            let is_told = |mismatch: &&Mismatch| tells_types || mismatch.policy != PolicyId::TYPE_CONSISTENCY;
            for mismatch in status.mismatches.iter().filter(is_told) {
                remark(InLine(format_args!("a writer does not match: {mismatch}")));
            }
        }
        _ => {}
    }
}

/// Adds the line of a sample; false when it cannot be decoded, which is reported on standard error.
fn add(lines: &mut Lines, of: &ValueType, sample: &Sample<Raw>, json: bool) -> Result<bool, Failure> {
    let value = match of.value_of(sample) {
        Ok(value) => value,
        Err(error) => {
            lines.print()?;
            remark(InLine(format_args!("a sample of {} is not shown: {error}", sample.info().writer)));
            return Ok(false);
        }
    };
    if json {
        lines.push(serde_json::to_string(&Line::new(sample, value)).map_err(Failure::from_cause)?);
    } else if sample.is_valid() {
        lines.push(value.map(|value| of.to_text(&value)).unwrap_or_default());
    } else {
        let key = value.and_then(|key| key.to_json().ok());
        let key =
            key.map_or_else(|| sample.info().instance.to_string(), |json| String::from_utf8_lossy(&json).into_owned());
        lines.push(format_args!("{key} {}", state_name(sample.info().instance_state)));
    }
    Ok(true)
}

/// One sample as `--json` prints it.
#[derive(Serialize)]
struct Line {
    /// The value; of an invalid sample the key, or null when that is not known.
    value: Option<Document>,
    /// False for the news that an instance was disposed or lost its writers.
    valid: bool,
    instance_state: &'static str,
    /// Nanoseconds since 1970; null when the writer sent no time stamp.
    source_timestamp_ns: Option<u64>,
    writer: String,
    sequence: i64,
}

impl Line {
    fn new(sample: &Sample<Raw>, value: Option<Document>) -> Line {
        let info = sample.info();
        Line {
            value,
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
