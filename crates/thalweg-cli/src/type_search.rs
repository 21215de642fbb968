//! The type of what `pub` and `sub` exchange: what the user names, or what the others of the topic have.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg::DomainParticipant;
use thalweg_lab::nearest::nearest;

use crate::commands::topic::TypeFiles;
use crate::commands::topic::find::{Side, announced, type_of, type_of_files};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, remark};
use crate::value_type::{SHORT_NAMES, ValueType, wire_name};

/// The type as the command line has it.
#[derive(Args, Clone, Debug)]
pub struct TypeChoice {
    /// Exchange samples of this type: string, bytes, ShapeType, or another by its name with modules, such as
    /// geometry_msgs::msg::dds_::Twist_, that --idl, --share or a participant with the topic describes (default: string, unless the
    /// others of the topic have another one).
    #[arg(long = "type", value_name = "TYPE")]
    pub type_name: Option<String>,

    #[command(flatten)]
    /// Files with types.
    pub files: TypeFiles,
}

impl TypeChoice {
    /// Whether the user names the type.
    pub fn is_named(&self) -> bool {
        self.type_name.is_some()
    }

    /// The type where nobody has to be asked for it.
    ///
    /// # Errors
    /// When a file is not understood, or the type is neither structure nor union.
    pub fn known(&self) -> Result<Option<ValueType>, Failure> {
        let Some(given) = &self.type_name else { return Ok(Some(ValueType::text())) };
        let name = wire_name(given);
        match type_of_files(name, &self.files)? {
            Some((of, origin)) => {
                remark(format_args!("{name}, from {origin}"));
                // ROS packages know a type by several spellings, of which the wire has one.
                ValueType::new(of.name().unwrap_or(name), of.clone()).map(Some)
            }
            None => Ok(ValueType::known(name)),
        }
    }
}

/// A look-out for the type that the others of a topic have.
pub struct SampleTypeSearch<'a> {
    participant: &'a DomainParticipant,
    choice: &'a TypeChoice,
    /// The topic's name on the wire.
    topic: &'a str,
    /// Whose type counts where the user names none.
    side: Side,
    /// When the command gives up.
    deadline: Option<Instant>,
    interrupt: &'a Interrupt,
    looked: Option<Instant>,
    /// Types that nobody could describe.
    unknown: HashSet<String>,
}

impl<'a> SampleTypeSearch<'a> {
    /// One that has not looked yet.
    pub fn new(
        participant: &'a DomainParticipant,
        choice: &'a TypeChoice,
        topic: &'a str,
        side: Side,
        deadline: Option<Instant>,
        interrupt: &'a Interrupt,
    ) -> SampleTypeSearch<'a> {
        SampleTypeSearch {
            participant,
            choice,
            topic,
            side,
            deadline,
            interrupt,
            looked: None,
            unknown: HashSet::new(),
        }
    }

    /// The type to have from now on, if that is another than `now`; looks five times a second at most, and asks whoever has the type for
    /// up to five seconds, unless the user interrupts it.
    ///
    /// # Errors
    /// When nobody can describe the type that the user named, or it is neither structure nor union.
    pub fn next(&mut self, now: Option<&ValueType>) -> Result<Option<ValueType>, Failure> {
        let is_settled = now.is_some() && self.choice.type_name.is_some();
        let is_full = self.unknown.len() >= UNKNOWN_MAX;
        if is_settled || is_full || self.looked.is_some_and(|looked| looked.elapsed() < LOOK_PERIOD) {
            return Ok(None);
        }
        self.looked = Some(Instant::now());
        let wanted = self.choice.type_name.as_deref().map(wire_name);
        let side = if wanted.is_some() { Side::Either } else { self.side };
        if now.is_some_and(|now| announced(self.participant, self.topic, side, |name| name == now.name()).is_some()) {
            return Ok(None);
        }
        let unknown = &self.unknown;
        let admits = |name: &str| wanted.map_or_else(|| !unknown.contains(name), |wanted| name == wanted);
        let Some(found) = announced(self.participant, self.topic, side, admits) else { return Ok(None) };
        let rest = self.deadline.map_or(ANSWER_PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
        match type_of(self.participant, &found, &self.choice.files, rest.min(ANSWER_PATIENCE), self.interrupt) {
            Ok((of, origin)) => {
                remark(InLine(format_args!("{} of {}, from {origin}", found.type_name, found.name)));
                ValueType::new(&found.type_name, of).map(Some)
            }
            Err(Failure::Failed(why)) if wanted.is_none() => {
                remark(format_args!("others of the topic are not understood: {why}"));
                self.unknown.insert(found.type_name);
                Ok(None)
            }
            // The command looks at interruptions itself, and some end by them in order.
            Err(Failure::Interrupted) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// What is waited for, and a guess at what was meant instead.
    pub fn missing(&self) -> String {
        let Some(given) = &self.choice.type_name else {
            return "nobody has the topic, whose type the values would need".to_owned();
        };
        let meant = nearest(given, SHORT_NAMES.iter().map(|(short, _)| *short));
        let hint = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        format!("nobody with the topic describes the type {given}: give it by --idl FILE or --share FOLDER{hint}")
    }
}

/// Interval at which discovery is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Time that whoever has a type is given to describe it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Types that nobody could describe after which no more are asked for, chosen by us: a stranger who announces many and answers nothing
/// would hold the command up for five seconds each.
const UNKNOWN_MAX: usize = 8;
