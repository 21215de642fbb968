//! `thalweg pub`: writes values to a topic.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use thalweg::qos::WriterQos;
use thalweg::status::WriterStatus;
use thalweg::{DataWriter, Delivery, DomainParticipant, cdr};

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, remark};
use crate::qos_options::{EndpointKind, QosOptions};
use crate::sending_options::SendingOptions;
use crate::strangers::MismatchedEndpoints;
use crate::surroundings::{Lookaround, SurveyOptions};
use crate::values::{Bytes, ShapeType, Text, TextValue};

/// The types that `pub` and `sub` know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TypeName {
    /// A text; DDS type std_msgs::msg::dds_::String_, which ROS 2 knows.
    String,
    /// A sequence of octets; DDS type thalweg::Bytes.
    Bytes,
    /// A coloured shape with the colour as key, as in every vendor's shapes demonstration; DDS type ShapeType.
    #[value(name = "ShapeType", alias = "shape", alias = "shapetype")]
    Shape,
}

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg pub Square --type ShapeType BLUE,10,20,30 --rate 10 --count 100",
    "thalweg pub chatter hello --count 1"
))]
/// Writes values to a topic, then waits until the readers have acknowledged them.
pub struct PublishOptions {
    /// Name of the topic, such as Square.
    pub topic: String,

    /// The values, written one after the other and over again: text, or a JSON object with the type's members. A ShapeType may
    /// also be color,x,y,size; bytes may also be 0x… or @FILE. Without any, each line of standard input is one value.
    #[arg(value_name = "VALUE")]
    pub values: Vec<String>,

    /// Write samples of this type; the readers must use the same (default: string).
    #[arg(
        long = "type",
        value_enum,
        value_name = "TYPE",
        default_value = "string",
        hide_default_value = true,
        ignore_case = true
    )]
    pub type_name: TypeName,

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

/// Publishes as the options say.
///
/// # Errors
/// A value or option cannot be used, the readers do not appear or do not acknowledge in time, or a write finds no room.
pub fn run(options: &PublishOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match options.type_name {
        TypeName::String => publish::<Text>(options, interrupt),
        TypeName::Bytes => publish::<Bytes>(options, interrupt),
        TypeName::Shape => publish::<ShapeType>(options, interrupt),
    }
}

fn publish<T: TextValue + Clone>(options: &PublishOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if (options.dispose || options.unregister) && !T::KEYED {
        let what =
            "--dispose and --unregister end instances, and only a type with a key has those; use --type ShapeType";
        return Err(Failure::Usage(what.to_owned()));
    }
    let mut source = Source::new(&options.values)?;
    let mut qos = QosOptions::parse_for(&options.qos, EndpointKind::Writer).map_err(Failure::Usage)?.writer();
    let profile = options.sending.profile()?;
    if options.qos.is_empty() {
        qos = profile.apply_to_writer(options.sending.kind(0), qos);
    }
    let sending = options.sending.sending(&profile, 0)?;
    qos.transmission = sending.to_qos();
    let participant = options.survey.member.participant_with(&profile)?;
    if let Some(bucket) = profile.flow_controller(&sending) {
        bucket.create_on(&participant).map_err(Failure::from_cause)?;
    }
    let writer = create_writer::<T>(&participant, options, qos)?;
    wait_for_readers(&participant, &writer, options, interrupt)?;
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

fn create_writer<T: TextValue>(
    participant: &DomainParticipant,
    options: &PublishOptions,
    mut qos: WriterQos,
) -> Result<DataWriter<T>, Failure> {
    // `--dispose` and `--unregister` are two things here, as they are for the readers.
    qos.autodispose = false;
    let topic = participant.create_topic::<T>(&options.topic);
    let tell = |status| match status {
        WriterStatus::PublicationMatched(matched) => {
            let verb = if matched.current_change >= 0 { "matched" } else { "lost" };
            remark(format_args!("{verb} a reader, {} now", matched.current));
        }
        WriterStatus::OfferedIncompatibleQos(status) => {
            for mismatch in &status.mismatches {
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

fn wait_for_readers<T: TextValue>(
    participant: &DomainParticipant,
    writer: &DataWriter<T>,
    options: &PublishOptions,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    if options.readers == 0 {
        return Ok(());
    }
    let deadline = Instant::now() + options.match_timeout;
    let mut strangers = MismatchedEndpoints::of(participant, writer.guid());
    let mut lookaround = Lookaround::new(participant, &options.survey);
    while writer.matched_readers().len() < options.readers {
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() >= deadline {
            let (found, wanted, seconds) =
                (writer.matched_readers().len(), options.readers, options.match_timeout.as_secs_f64());
            let why = strangers.explain();
            if let Some(around) = lookaround.take(Some(&options.topic)).filter(|_| found == 0) {
                remark(around.to_text());
            }
            return Err(Failure::TimedOut(format!(
                "{found} of {wanted} readers of topic {:?} matched within {seconds} s; {why}; start them, wait longer with \
                 --match-timeout, or do not wait with --readers 0",
                options.topic
            )));
        }
        strangers.remark_new();
        lookaround.begin_late();
        std::thread::sleep(Duration::from_millis(5));
    }
    if !writer.qos().reliability.is_reliable() {
        // Best-effort samples from before the readers have matched us would be lost.
        std::thread::sleep(BEST_EFFORT_SETTLE);
    }
    Ok(())
}

/// The end of writing.
enum Ended {
    /// The count or the input is exhausted.
    Complete,
    Interrupted,
}

struct Session<'a, T: TextValue> {
    options: &'a PublishOptions,
    writer: DataWriter<T>,
    /// A value of each instance that was written, by its key hash.
    instances: HashMap<[u8; 16], T>,
    written: u64,
}

impl<T: TextValue + Clone> Session<'_, T> {
    /// Writes one value after the other at their times.
    fn write_all(&mut self, source: &mut Source<T>, interrupt: &Interrupt) -> Result<Ended, Failure> {
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
            self.writer.write(&value).map_err(Failure::from_cause)?;
            self.written += 1;
            if T::KEYED && (self.options.dispose || self.options.unregister) {
                let hash = cdr::key_hash(&value).map_err(Failure::from_cause)?;
                self.instances.insert(hash, value);
            }
        }
        Ok(Ended::Complete)
    }

    fn end_instances(&self) -> Result<(), Failure> {
        for value in self.instances.values() {
            if self.options.dispose {
                self.writer.dispose(value).map_err(Failure::from_cause)?;
            }
            if self.options.unregister {
                self.writer.unregister(value).map_err(Failure::from_cause)?;
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

/// The source of the values.
enum Source<T> {
    /// The command line, over and over.
    Given { values: Vec<T>, next: usize },
    /// Standard input, a line each, read by a thread so that Ctrl-C is heard meanwhile.
    Input(Receiver<std::io::Result<String>>),
}

/// The next input of a source.
enum Next<T> {
    Value(T),
    End,
    Interrupted,
}

impl<T: TextValue + Clone> Source<T> {
    fn new(texts: &[String]) -> Result<Source<T>, Failure> {
        if !texts.is_empty() {
            let values: Result<Vec<T>, String> = texts.iter().map(|text| T::parse(text)).collect();
            return Ok(Source::Given { values: values.map_err(Failure::Usage)?, next: 0 });
        }
        let (sender, lines) = sync_channel(LINES_AHEAD);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Source::Input(lines))
    }

    fn is_input(&self) -> bool {
        matches!(self, Source::Input(_))
    }

    fn next(&mut self, interrupt: &Interrupt) -> Result<Next<T>, Failure> {
        match self {
            Source::Given { values, next } => {
                let value = values[*next % values.len()].clone();
                *next += 1;
                Ok(Next::Value(value))
            }
            Source::Input(lines) => loop {
                match lines.recv_timeout(LOOK_PERIOD) {
                    Ok(line) => {
                        let line =
                            line.map_err(|error| Failure::Failed(format!("standard input cannot be read: {error}")))?;
                        return T::parse(&line).map(Next::Value).map_err(Failure::Failed);
                    }
                    Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
                    Err(RecvTimeoutError::Timeout) if interrupt.came() => return Ok(Next::Interrupted),
                    Err(RecvTimeoutError::Timeout) => {}
                }
            },
        }
    }
}

/// Samples a second where nothing else is asked for.
const RATE: f64 = 10.0;
/// Interval at which a wait checks for Ctrl-C.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Time for a best-effort reader to match us after we have matched it.
const BEST_EFFORT_SETTLE: Duration = Duration::from_millis(300);
/// Lines of standard input that are read before they are written.
const LINES_AHEAD: usize = 64;
