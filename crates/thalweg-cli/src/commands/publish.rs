//! `thalweg pub`: writes values to a topic.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg::cdr::Representation;
use thalweg::qos::{Mismatch, PolicyId, WriterQos};
use thalweg::status::WriterStatus;
use thalweg::types::KeyHash;
use thalweg::{DataWriter, Delivery, DomainParticipant, Raw};
use thalweg_lab::profile::Profile;
use thalweg_lab::station::Sending;
use thalweg_types::document::Document;

use super::topic::find::{Side, spellings};
use crate::input_lines::{InputLines, NextLine};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, remark};
use crate::qos_options::{EndpointKind, QosOptions};
use crate::sending_options::SendingOptions;
use crate::strangers::MismatchedEndpoints;
use crate::surroundings::{Lookaround, SurveyOptions};
use crate::type_search::{SampleTypeSearch, TypeChoice};
use crate::value_type::{ValueType, representation};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg pub Square --type ShapeType BLUE,10,20,30 --rate 10 --count 100",
    "thalweg pub chatter hello --count 1"
))]
/// Writes values to a topic, then waits until the readers have acknowledged them.
pub struct PublishOptions {
    /// Name of the topic, such as Square or /cmd_vel.
    pub topic: String,

    /// The values, written one after the other and over again: a JSON object with the type's members, of which those left out have their
    /// default. A string may also be its text, a ShapeType color,x,y,size, and bytes text, 0x… or @FILE. Without any, each line of
    /// standard input is one value.
    #[arg(value_name = "VALUE")]
    pub values: Vec<String>,

    #[command(flatten)]
    /// The type of the samples.
    pub of: TypeChoice,

    /// Write HZ samples a second; 0 writes as fast as the readers acknowledge (default: 10; lines of standard input as they come).
    #[arg(long, value_name = "HZ", value_parser = crate::parse::rate)]
    pub rate: Option<f64>,

    /// Exit after N samples (default: go on until Ctrl-C, or to the end of standard input).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Policies of the endpoint.
    #[arg(long = "qos", value_name = "KEY=VALUE", help = crate::qos_options::help("writer"))]
    pub qos: Vec<String>,

    /// Before the first sample wait until N readers are matched; 0 starts at once (default: 1).
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    pub readers: usize,

    /// Give up with exit code 3 when the readers are not there after SECONDS (default: 10).
    #[arg(long, value_name = "SECONDS", default_value = "10", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub match_timeout: Duration,

    /// After the last sample wait at most SECONDS until all readers have acknowledged; 0 exits at once (default: 10).
    #[arg(long, value_name = "SECONDS", default_value = "10", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub acknowledge_timeout: Duration,

    /// At the end dispose every instance that was written: readers see NOT_ALIVE_DISPOSED (default: the instances stay).
    #[arg(long)]
    pub dispose: bool,

    /// At the end unregister every instance that was written, without disposing it: readers see NOT_ALIVE_NO_WRITERS (default:
    /// the instances stay).
    #[arg(long)]
    pub unregister: bool,

    #[command(flatten)]
    /// The way of samples.
    pub sending: SendingOptions,

    #[command(flatten)]
    /// Membership in the domain, and a survey where nobody is found.
    pub survey: SurveyOptions,
}

impl PublishOptions {
    /// Whether the values may be of a type that the readers have, where they are none of the type that is meant without one.
    fn may_have_another_type(&self) -> bool {
        let is_object =
            |value: &String| Document::from_json(value.as_bytes()).is_ok_and(|json| matches!(json, Document::Map(_)));
        self.of.type_name.is_none() && self.readers > 0 && self.values.iter().all(is_object)
    }

    /// The policies of a writer whose samples have up to `size` bytes, and how these travel: those of `--qos`, here `given`, and what the
    /// profile and the other options say.
    ///
    /// # Errors
    /// The options contradict each other or the profile.
    fn offer(&self, profile: &Profile, given: &WriterQos, size: u64) -> Result<(WriterQos, Sending), Failure> {
        let mut qos = given.clone();
        if self.qos.is_empty() {
            qos = profile.apply_to_writer(self.sending.kind(size), qos);
        }
        // `--dispose` and `--unregister` are two things here, as they are for the readers.
        qos.autodispose = false;
        let sending = self.sending.sending(profile, size)?;
        qos.transmission = sending.to_qos();
        Ok((qos, sending))
    }
}

/// Publishes as the options say.
///
/// # Errors
/// A value or option cannot be used, the type is not found, the readers do not appear or do not acknowledge in time, or a write finds no
/// room.
pub fn run(options: &PublishOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let qos = QosOptions::parse_for(&options.qos, EndpointKind::Writer).map_err(Failure::Usage)?.writer();
    let profile = options.sending.profile()?;
    let encoded = |of| EncodedValues::new(options, of, representation(&qos));
    let mut values = match options.of.known()?.map(encoded).transpose() {
        Err(_) if options.may_have_another_type() => None,
        other => other?,
    };
    // What cannot be used is told before anybody is waited for; without a profile the size of the samples does not matter.
    if values.is_some() || options.sending.profile.is_none() {
        options.offer(&profile, &qos, values.as_ref().map_or(0, EncodedValues::largest_bytes))?;
    }
    let participant = options.survey.member.participant_with(&profile)?;
    let topic = spellings(&options.topic).swap_remove(0);
    let deadline = Instant::now() + options.match_timeout;
    let mut search = Search {
        options,
        interrupt,
        participant: &participant,
        topic: &topic,
        deadline,
        types: SampleTypeSearch::new(&participant, &options.of, &topic, Side::Readers, Some(deadline), interrupt),
        lookaround: Lookaround::new(&participant, &options.survey),
    };
    let mut flow_controllers = HashSet::new();
    loop {
        let fitting = match values.take() {
            Some(values) => values,
            None => encoded(search.wait_for_type()?)?,
        };
        let (offered, sending) = options.offer(&profile, &qos, fitting.largest_bytes())?;
        if let Some(bucket) = profile.flow_controller(&sending)
            && flow_controllers.insert(&bucket.name)
        {
            bucket.create_on(&participant).map_err(Failure::from_cause)?;
        }
        let writer = create_writer(&participant, &topic, &fitting.of, offered, options.of.is_named())?;
        match search.wait_for_readers(&writer, &fitting.of)? {
            Some(of) => values = Some(encoded(of)?),
            None => return publish(options, interrupt, fitting, writer),
        }
    }
}

/// Writes the values, and waits until the readers have acknowledged them.
fn publish(
    options: &PublishOptions,
    interrupt: &Interrupt,
    values: EncodedValues,
    writer: DataWriter<Raw>,
) -> Result<(), Failure> {
    let mut source = Source::new(values);
    let mut session = Session { options, writer, instances: HashMap::new(), written: 0 };
    let ended = session.write_all(&mut source, interrupt);
    let finished = session.end_instances().and_then(|()| session.wait_for_acknowledgements(interrupt));
    remark(format_args!("wrote {} samples", session.written));
    // What ended the writing tells more than what followed from it.
    let ended = ended?;
    finished?;
    match ended {
        Ended::Complete => Ok(()),
        // Without a count, Ctrl-C is how the user says that it is enough.
        Ended::Interrupted if options.count.is_none() && !source.is_input() => Ok(()),
        Ended::Interrupted => Err(Failure::Interrupted),
    }
}

/// A writer that tells of its statuses; of types that differ where the user names one, since otherwise that of the readers is looked for.
fn create_writer(
    participant: &DomainParticipant,
    name: &str,
    of: &ValueType,
    qos: WriterQos,
    tells_types: bool,
) -> Result<DataWriter<Raw>, Failure> {
    let topic = of.topic(participant, name)?;
    let tell = move |status| match status {
        WriterStatus::PublicationMatched(matched) => {
            let verb = if matched.current_change >= 0 { "matched" } else { "lost" };
            remark(format_args!("{verb} a reader, {} now", matched.current));
        }
        WriterStatus::OfferedIncompatibleQos(status) => {
            let is_told = |mismatch: &&Mismatch| tells_types || mismatch.policy != PolicyId::TYPE_CONSISTENCY;
            for mismatch in status.mismatches.iter().filter(is_told) {
                remark(InLine(format_args!("a reader does not match: {mismatch}")));
            }
        }
        WriterStatus::ReadersGivenUp(status) => {
            let reader = status.last.map(|reader| reader.to_string()).unwrap_or_default();
            remark(format_args!("reader {reader} has made no progress for too long and is no longer waited for"));
        }
        _ => {}
    };
    let writer = participant.writer_builder(&topic).qos(qos).on_status(Delivery::Thread, tell);
    writer.create().map_err(Failure::from_cause)
}

/// Whom a writer waits for before it writes.
struct Search<'a> {
    options: &'a PublishOptions,
    interrupt: &'a Interrupt,
    participant: &'a DomainParticipant,
    /// The topic's name on the wire.
    topic: &'a str,
    deadline: Instant,
    types: SampleTypeSearch<'a>,
    lookaround: Lookaround<'a>,
}

impl Search<'_> {
    /// Waits until somebody describes the type that the user named, or that the values need.
    fn wait_for_type(&mut self) -> Result<ValueType, Failure> {
        loop {
            if let Some(of) = self.types.next(None)? {
                return Ok(of);
            }
            self.go_on(0, |search| search.types.missing())?;
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Waits until as many readers match as the options want; returns the type that they have, if that turns out to be another.
    fn wait_for_readers(&mut self, writer: &DataWriter<Raw>, of: &ValueType) -> Result<Option<ValueType>, Failure> {
        if self.options.readers == 0 {
            return Ok(None);
        }
        let mut strangers =
            MismatchedEndpoints::of(self.participant, writer.guid()).with_types_unless(self.options.of.is_named());
        loop {
            let matched = writer.matched_readers().len();
            if matched >= self.options.readers {
                break;
            }
            if matched == 0
                && let Some(next) = self.types.next(Some(of))?
            {
                return Ok(Some(next));
            }
            self.go_on(matched, |search| {
                let (wanted, topic, why) = (search.options.readers, &search.options.topic, strangers.explain());
                let seconds = search.options.match_timeout.as_secs_f64();
                format!(
                    "{matched} of {wanted} readers of topic {topic:?} matched within {seconds} s; {why}; start them, wait longer with \
                     --match-timeout, or do not wait with --readers 0"
                )
            })?;
            strangers.remark_new();
            std::thread::sleep(MATCH_PERIOD);
        }
        if !writer.qos().reliability.is_reliable() {
            // Best-effort samples from before the readers have matched us would be lost.
            std::thread::sleep(BEST_EFFORT_SETTLE);
        }
        Ok(None)
    }

    /// Fails once it has taken too long, in the words of `why`.
    fn go_on(&mut self, matched: usize, why: impl FnOnce(&Self) -> String) -> Result<(), Failure> {
        if self.interrupt.came() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() < self.deadline {
            self.lookaround.begin_late();
            return Ok(());
        }
        let why = why(self);
        if let Some(around) = self.lookaround.take(Some(self.topic)).filter(|_| matched == 0) {
            remark(around.to_text());
        }
        Err(Failure::TimedOut(why))
    }
}

/// The end of writing.
enum Ended {
    /// The count or the input is exhausted.
    Complete,
    Interrupted,
}

struct Session<'a> {
    options: &'a PublishOptions,
    writer: DataWriter<Raw>,
    /// The key of each instance that was written, where the options end them.
    instances: HashMap<KeyHash, Vec<u8>>,
    written: u64,
}

impl Session<'_> {
    /// Writes one value after the other at their times.
    fn write_all(&mut self, source: &mut Source, interrupt: &Interrupt) -> Result<Ended, Failure> {
        let started = Instant::now();
        let rate = self.options.rate.unwrap_or(if source.is_input() { 0.0 } else { RATE });
        while self.options.count.is_none_or(|count| self.written < count) {
            if rate > 0.0 {
                interrupt.wait_until(started + Duration::from_secs_f64(self.written as f64 / rate));
            }
            if interrupt.came() {
                return Ok(Ended::Interrupted);
            }
            let value = match source.next(interrupt)? {
                Next::Value(value) => value,
                Next::End => return Ok(Ended::Complete),
                Next::Interrupted => return Ok(Ended::Interrupted),
            };
            self.writer.write_serialized(&value.payload).map_err(Failure::from_cause)?;
            self.written += 1;
            if let Some((instance, key)) = &value.key {
                self.instances.entry(*instance).or_insert_with(|| key.clone());
            }
        }
        Ok(Ended::Complete)
    }

    fn end_instances(&self) -> Result<(), Failure> {
        for key in self.instances.values() {
            if self.options.dispose {
                self.writer.dispose_serialized(key, None).map_err(Failure::from_cause)?;
            }
            if self.options.unregister {
                self.writer.unregister_serialized(key, None).map_err(Failure::from_cause)?;
            }
        }
        Ok(())
    }

    fn wait_for_acknowledgements(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        let timeout = self.options.acknowledge_timeout;
        if timeout.is_zero() || !self.writer.qos().reliability.is_reliable() {
            return Ok(());
        }
        let deadline = Instant::now() + timeout;
        loop {
            let step = deadline.saturating_duration_since(Instant::now()).min(LOOK_PERIOD);
            match self.writer.wait_for_acknowledgments(step) {
                Ok(()) => return Ok(()),
                Err(error) if !error.is_timeout() => return Err(Failure::from_cause(error)),
                // A first Ctrl-C may have ended the writing; that one was answered before.
                Err(_) if interrupt.came() && self.options.count.is_some() => return Err(Failure::Interrupted),
                Err(error) if Instant::now() >= deadline => {
                    let seconds = timeout.as_secs_f64();
                    return Err(Failure::TimedOut(format!(
                        "not everything was acknowledged within {seconds} s: {error}"
                    )));
                }
                Err(_) => {}
            }
        }
    }
}

/// The values of the command line, and how those of standard input become bytes.
struct EncodedValues {
    of: ValueType,
    representation: Representation,
    /// The options end the instances that were written.
    ends_instances: bool,
    given: Vec<Arc<EncodedValue>>,
}

struct EncodedValue {
    payload: Vec<u8>,
    /// The instance and its key, where it is to be ended.
    key: Option<(KeyHash, Vec<u8>)>,
}

impl EncodedValues {
    /// The values of the options as samples of a type.
    ///
    /// # Errors
    /// When one is no value of the type, or has no instance that could be ended.
    fn new(options: &PublishOptions, of: ValueType, representation: Representation) -> Result<EncodedValues, Failure> {
        let ends_instances = options.dispose || options.unregister;
        if ends_instances && !of.is_keyed() {
            return Err(Failure::Usage(format!(
                "--dispose and --unregister end instances, and only a type with a key has those, such as --type ShapeType; {} has none",
                of.name()
            )));
        }
        let mut values = EncodedValues { of, representation, ends_instances, given: Vec::new() };
        let encoded: Result<_, String> = options.values.iter().map(|text| values.encode(text).map(Arc::new)).collect();
        values.given = encoded.map_err(Failure::Usage)?;
        Ok(values)
    }

    /// The size of the largest of them; 0 where they come from standard input.
    fn largest_bytes(&self) -> u64 {
        self.given.iter().map(|value| value.payload.len() as u64).max().unwrap_or_default()
    }

    fn encode(&self, text: &str) -> Result<EncodedValue, String> {
        let refused = |error| format!("{text:?} is no {}: {error}", self.of.name());
        let value = self.of.parse(text)?;
        let key = self.ends_instances.then(|| self.of.encode_key(&value, self.representation)).transpose();
        let key = key.map_err(refused)?;
        let payload = self.of.encode(value, self.representation).map_err(refused)?;
        Ok(EncodedValue { payload, key })
    }
}

/// The source of the values.
enum Source {
    /// The command line, over and over.
    Given { values: EncodedValues, next: usize },
    /// Standard input, a line each.
    Input { values: EncodedValues, lines: InputLines },
}

/// The next input of a source.
enum Next {
    Value(Arc<EncodedValue>),
    End,
    Interrupted,
}

impl Source {
    fn new(values: EncodedValues) -> Source {
        if !values.given.is_empty() {
            return Source::Given { values, next: 0 };
        }
        Source::Input { values, lines: InputLines::start() }
    }

    fn is_input(&self) -> bool {
        matches!(self, Source::Input { .. })
    }

    fn next(&mut self, interrupt: &Interrupt) -> Result<Next, Failure> {
        match self {
            Source::Given { values, next } => {
                let value = Arc::clone(&values.given[*next % values.given.len()]);
                *next += 1;
                Ok(Next::Value(value))
            }
            Source::Input { values, lines } => Ok(match lines.next(interrupt)? {
                NextLine::Line(line, number) => {
                    let value = values.encode(&line);
                    let value = value.map_err(|error| Failure::Failed(format!("line {number}: {error}")))?;
                    Next::Value(Arc::new(value))
                }
                NextLine::End => Next::End,
                NextLine::Interrupted => Next::Interrupted,
            }),
        }
    }
}

/// Samples a second where nothing else is asked for.
const RATE: f64 = 10.0;
/// Interval at which matched readers are counted.
const MATCH_PERIOD: Duration = Duration::from_millis(5);
/// Interval at which a wait checks for Ctrl-C.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Time for a best-effort reader to match us after we have matched it.
const BEST_EFFORT_SETTLE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests;
