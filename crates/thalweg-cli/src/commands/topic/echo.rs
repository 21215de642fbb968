//! `thalweg topic echo`: prints the samples of any topic.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg::{InstanceState, Raw, Sample, Type};
use thalweg_types::codec::{self, SampleType};
use thalweg_types::document::{Document, MapKey};

use super::expression::{FieldPath, SampleCondition};
use super::find::{Side, find, sample_type, type_of};
use super::readers::{ReadingOptions, TopicReaders};
use super::table::CommaTable;
use super::{SourceOptions, text};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, Lines, remark};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg topic echo Square --filter 'x>3' --json --count 10",
    "thalweg topic echo /imu --field orientation.w --flow",
    "thalweg topic echo Square --csv --field x --field y"
))]
/// Prints the samples of a topic: one member a line with a line of --- behind each sample, or as the options say. It hears every writer
/// of the topic's type, whatever its QoS and partitions, and with DURABILITY what it has kept.
pub struct EchoOptions {
    /// Name of the topic, such as Square or /scan.
    pub topic: String,

    /// Print each sample as a JSON object (default: text).
    #[arg(long)]
    pub json: bool,

    /// Print each sample in one line (default: one member a line).
    #[arg(long, conflicts_with = "json")]
    pub flow: bool,

    /// Print comma-separated values with a header (RFC 4180): a column for each --field, else for each member of the first sample,
    /// sequences as JSON (default: text).
    #[arg(long, conflicts_with_all = ["json", "flow"])]
    pub csv: bool,

    /// Print this part of each sample only, such as `pose.position[2]`; several make an object by their paths (default: all).
    #[arg(long, value_name = "PATH")]
    pub field: Vec<FieldPath>,

    /// Print samples that fulfil this condition only, such as "x > 3 && color == 'RED'" (default: all).
    #[arg(long, value_name = "CONDITION")]
    pub filter: Option<SampleCondition>,

    /// Exit after N samples were printed (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Give up with exit code 3 when --count is not reached after SECONDS; without --count, exit then (default: no limit).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub timeout: Option<Duration>,

    #[command(flatten)]
    /// Where types come from.
    pub source: SourceOptions,
}

/// Prints samples until there are enough.
///
/// # Errors
/// The topic or its type is not found, no sample of it has what `--field` or `--filter` name, output cannot be written, or `--count` is
/// not reached in time.
pub fn run(options: &EchoOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let participant = options.source.member.participant()?;
    let found = find(&participant, &options.topic, Side::Writers, options.source.patience, interrupt)?;
    let (of, origin) = type_of(&participant, &found, &options.source.files, options.source.patience, interrupt)?;
    remark(InLine(format_args!("{} of {}, from {origin}", found.type_name, found.name)));
    let sampled = sample_type(&of)?;
    check_paths(options, &of)?;
    let reading = ReadingOptions { takes_history: true, depth: DEPTH, may_gather: true };
    let mut readers = TopicReaders::new(&participant, &found.topic(&participant), Some(&of), reading)?;
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut printed = 0;
    let table = options.csv.then(|| CommaTable::new(&options.field));
    let mut printer = Printer { of: sampled, options, table, lines: Lines::default() };
    loop {
        readers.follow();
        let taken = readers.take(TAKEN_MAX);
        let rest = options.count.map_or(u64::MAX, |count| count - printed);
        printed += printer.print(&taken.samples, rest)?;
        if options.count == Some(printed) {
            return Ok(());
        }
        if interrupt.came() {
            return if options.count.is_none() { Ok(()) } else { Err(Failure::Interrupted) };
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return match options.count {
                None => Ok(()),
                Some(count) => Err(Failure::TimedOut(format!("{printed} of {count} samples were printed in time"))),
            };
        }
        match (taken.is_all, taken.samples.is_empty()) {
            (false, _) => {}
            (true, true) => readers.wait(WAIT),
            // Nobody reads faster: a fast topic gathers what is printed at once.
            (true, false) => std::thread::sleep(GATHERING),
        }
    }
}

/// Refuses parts that no sample has: nothing would ever be printed.
fn check_paths(options: &EchoOptions, of: &Type) -> Result<(), Failure> {
    options
        .field
        .iter()
        .try_for_each(|path| path.check(of))
        .map_err(|problem| Failure::Usage(format!("--field {problem}")))?;
    let checked = options.filter.as_ref().map_or(Ok(()), |filter| filter.check(of));
    checked.map_err(|problem| Failure::Usage(format!("--filter {problem}")))
}

/// Prints samples as the options say.
struct Printer<'a> {
    of: SampleType<'a>,
    options: &'a EchoOptions,
    table: Option<CommaTable>,
    lines: Lines,
}

impl Printer<'_> {
    /// Prints up to `count_max` of the samples, and returns how many it did not leave out.
    fn print(&mut self, samples: &[Sample<Raw>], count_max: u64) -> Result<u64, Failure> {
        let mut count = 0;
        for sample in samples {
            if count == count_max {
                break;
            }
            count += u64::from(self.add(sample)?);
        }
        self.lines.print()?;
        Ok(count)
    }

    /// Adds the lines of a sample; false for one that is left out.
    fn add(&mut self, sample: &Sample<Raw>) -> Result<bool, Failure> {
        if !sample.is_valid() {
            self.lines.print()?;
            remark(format_args!("an instance of {} {}", sample.info().writer, ended(sample.info().instance_state)));
            return Ok(false);
        }
        let document = match codec::decode(self.of, sample.bytes()) {
            Ok(document) => document,
            Err(error) => {
                self.lines.print()?;
                remark(InLine(format_args!("a sample of {} is not shown: {error}", sample.info().writer)));
                return Ok(false);
            }
        };
        if self.options.filter.as_ref().is_some_and(|filter| !filter.admits(&document)) {
            return Ok(false);
        }
        if let Some(table) = &mut self.table {
            self.lines.push(table.row(&document));
            return Ok(true);
        }
        let Some(part) = chosen(document, &self.options.field) else { return Ok(false) };
        match shown(&part, self.options) {
            Ok(text) => self.lines.push(text),
            Err(error) => {
                self.lines.print()?;
                return Err(error);
            }
        }
        Ok(true)
    }
}

/// The parts of a sample; `None` where it has not all of them.
fn chosen(sample: Document, fields: &[FieldPath]) -> Option<Document> {
    match fields {
        [] => Some(sample),
        [path] => path.find(&sample).map(Cow::into_owned),
        paths => {
            let part =
                |path: &FieldPath| Some((MapKey::Text(path.to_string().into()), path.find(&sample)?.into_owned()));
            paths.iter().map(part).collect::<Option<Vec<_>>>().map(Document::Map)
        }
    }
}

fn shown(part: &Document, options: &EchoOptions) -> Result<String, Failure> {
    if options.json {
        return part.to_json().map(|json| String::from_utf8_lossy(&json).into_owned()).map_err(Failure::from_cause);
    }
    Ok(if options.flow { text::flow(part) } else { format!("{}\n---", text::lines(part)) })
}

fn ended(state: InstanceState) -> &'static str {
    match state {
        InstanceState::Alive => "is alive",
        InstanceState::NotAliveDisposed => "was disposed",
        InstanceState::NotAliveNoWriters => "has no writer any more",
    }
}

/// Samples taken at once.
const TAKEN_MAX: usize = 256;
/// Samples that wait for a slow terminal.
const DEPTH: u32 = 1_000;
/// Time in which samples gather after some were printed.
const GATHERING: Duration = Duration::from_millis(20);
/// Time without samples after which Ctrl-C and new writers are looked for.
const WAIT: Duration = Duration::from_millis(50);
