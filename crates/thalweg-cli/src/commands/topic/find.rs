//! Finds a topic by the name that the user gives, and its type.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg::discovery::{PublicationData, SubscriptionData};
use thalweg::qos::Ownership;
use thalweg::types::{Guid, GuidPrefix, Keyed};
use thalweg::{DomainParticipant, Error, ErrorKind, Raw, Topic, Type};
use thalweg_types::codec::SampleType;
use thalweg_types::ros::RosPackages;
use thalweg_types::{Types, idl};

use super::{SourceOptions, TypeFiles};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, print_line, remark};
use crate::surroundings::similar_topics;

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg topic type Square"))]
/// Prints the type of a topic as IDL, and on standard error where it came from.
pub struct TypeOptions {
    /// Name of the topic, such as Square or /scan.
    pub topic: String,

    #[command(flatten)]
    /// Where types come from.
    pub source: SourceOptions,
}

/// Prints a topic's type.
///
/// # Errors
/// The topic or its type is not found, or output cannot be written.
pub fn run(options: &TypeOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let participant = options.source.member.participant()?;
    let found = find(&participant, &options.topic, Side::Either, options.source.patience, interrupt)?;
    let (of, origin) = type_of(&participant, &found, &options.source.files, options.source.patience, interrupt)?;
    remark(InLine(format_args!("{} of {}, from {origin}", found.type_name, found.name)));
    print_line(idl::to_idl([&of]).trim_end())
}

/// A topic as others announce it.
pub struct FoundTopic {
    pub name: String,
    pub type_name: String,
    pub keyed: Keyed,
    /// Who describes the type, and how; `None` where nobody does.
    information: Option<(GuidPrefix, Arc<[u8]>)>,
    /// Whether instances of some writer have an owner.
    pub is_exclusive: bool,
}

impl FoundTopic {
    /// The topic, for readers of serialized samples.
    pub fn topic(&self, participant: &DomainParticipant) -> Topic<Raw> {
        participant.create_raw_topic(&self.name, &self.type_name, self.keyed, None)
    }
}

/// The ends of a topic that a command deals with; their type counts where writers and readers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Writers, which are waited for where there are only readers: their type is what can be read.
    Writers,
    /// Readers, or writers where there are none.
    Readers,
    /// Writers, or readers where there are none.
    Either,
}

/// Waits for a topic of this name, as DDS or ROS 2 has it.
///
/// # Errors
/// When none is discovered in time; the message names similar ones.
pub fn find(
    participant: &DomainParticipant,
    given: &str,
    side: Side,
    patience: Duration,
    interrupt: &Interrupt,
) -> Result<FoundTopic, Failure> {
    let deadline = Instant::now() + patience;
    let names = spellings(given);
    loop {
        let writers: Vec<PublicationData> =
            participant.publications().into_iter().map(|known| (*known.data).clone()).collect();
        let readers: Vec<SubscriptionData> =
            participant.subscriptions().into_iter().map(|known| (*known.data).clone()).collect();
        let own = participant.guid_prefix();
        for name in &names {
            let of_topic: Vec<&PublicationData> =
                writers.iter().filter(|data| data.topic_name == *name && data.guid.prefix != own).collect();
            let reading: Vec<&SubscriptionData> =
                readers.iter().filter(|data| data.topic_name == *name && data.guid.prefix != own).collect();
            let is_late = Instant::now() >= deadline;
            if of_topic.is_empty() && side == Side::Writers && !is_late {
                continue;
            }
            if let Some(found) = found(name, side, &of_topic, &reading) {
                return Ok(found);
            }
        }
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        if Instant::now() >= deadline {
            let writers: Vec<String> = writers.into_iter().map(|data| data.topic_name).collect();
            let readers: Vec<String> = readers.into_iter().map(|data| data.topic_name).collect();
            return Err(nothing_found(given, patience, &writers, &readers));
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

/// The topic of this name on the wire, as those of its ends on this side announce it now whose type's name is admitted.
pub fn announced(
    participant: &DomainParticipant,
    name: &str,
    side: Side,
    admits: impl Fn(&str) -> bool,
) -> Option<FoundTopic> {
    let own = participant.guid_prefix();
    let is_meant = |guid: Guid, topic: &str, of: &str| topic == name && guid.prefix != own && admits(of);
    let writers = participant.publications().into_iter().map(|known| known.data);
    let writers: Vec<_> = writers.filter(|data| is_meant(data.guid, &data.topic_name, &data.type_name)).collect();
    let readers = participant.subscriptions().into_iter().map(|known| known.data);
    let readers: Vec<_> = readers.filter(|data| is_meant(data.guid, &data.topic_name, &data.type_name)).collect();
    let writers: Vec<&PublicationData> = writers.iter().filter(|_| side != Side::Readers).map(|data| &**data).collect();
    let readers: Vec<&SubscriptionData> =
        readers.iter().filter(|_| side != Side::Writers).map(|data| &**data).collect();
    found(name, side, &writers, &readers)
}

/// What an endpoint says of its topic's type.
struct Announced<'a> {
    guid: Guid,
    type_name: &'a str,
    information: Option<&'a Arc<[u8]>>,
}

fn found(name: &str, side: Side, writers: &[&PublicationData], readers: &[&SubscriptionData]) -> Option<FoundTopic> {
    let of_writers = writers.iter().map(|data| Announced {
        guid: data.guid,
        type_name: &data.type_name,
        information: data.type_information.as_ref(),
    });
    let of_readers = readers.iter().map(|data| Announced {
        guid: data.guid,
        type_name: &data.type_name,
        information: data.type_information.as_ref(),
    });
    let announced: Vec<Announced<'_>> = match side {
        Side::Writers | Side::Either => of_writers.chain(of_readers).collect(),
        Side::Readers => of_readers.chain(of_writers).collect(),
    };
    let first = announced.first()?;
    let others: BTreeSet<&str> = announced.iter().map(|one| one.type_name).filter(|n| *n != first.type_name).collect();
    // Whoever reads the topic tells which writers are not heard.
    if !others.is_empty() && (side != Side::Writers || writers.is_empty()) {
        let others: Vec<&str> = others.into_iter().collect();
        remark(InLine(format_args!("the topic has other types, too: {}", others.join(", "))));
    }
    let same = announced.iter().filter(|one| one.type_name == first.type_name);
    let information = same.filter_map(|one| Some((one.guid.prefix, Arc::clone(one.information?)))).next();
    Some(FoundTopic {
        name: name.to_owned(),
        type_name: first.type_name.to_owned(),
        keyed: first.guid.entity.keyed(),
        information,
        is_exclusive: writers.iter().any(|data| data.qos.ownership.kind() == Ownership::Exclusive),
    })
}

fn nothing_found(given: &str, patience: Duration, writers: &[String], readers: &[String]) -> Failure {
    let similar = similar_topics(given, writers, readers).into_iter();
    let similar: Vec<String> = similar.map(|similar| InLine(shown_name(&similar.name)).to_string()).collect();
    let hint = if similar.is_empty() { String::new() } else { format!("; did you mean {}?", similar.join(" or ")) };
    Failure::TimedOut(format!("no topic {given:?} was found within {} s{hint}", patience.as_secs_f64()))
}

/// The names on the wire that a name may stand for.
pub fn spellings(given: &str) -> Vec<String> {
    match given.strip_prefix('/') {
        Some(ros) => vec![format!("rt/{ros}"), given.to_owned(), ros.to_owned()],
        None => vec![given.to_owned(), format!("rt/{given}")],
    }
}

/// The first of the names that a name may stand for which some endpoint of others has; the name itself where none has one.
pub fn used_name(participant: &DomainParticipant, given: &str) -> String {
    let own = participant.guid_prefix();
    let writers = participant.publications().into_iter().map(|known| known.data);
    let writers = writers.filter(|data| data.guid.prefix != own).map(|data| data.topic_name.clone());
    let readers = participant.subscriptions().into_iter().map(|known| known.data);
    let readers = readers.filter(|data| data.guid.prefix != own).map(|data| data.topic_name.clone());
    let used: BTreeSet<String> = writers.chain(readers).collect();
    spellings(given).into_iter().find(|name| used.contains(name)).unwrap_or_else(|| given.to_owned())
}

/// The name as ROS 2 shows it, if it is one of its topics.
pub fn shown_name(name: &str) -> String {
    name.strip_prefix("rt/").map_or_else(|| name.to_owned(), |ros| format!("/{ros}"))
}

/// The type of a topic, and where it came from: files first, then ROS packages, the participant that has the topic, which is asked for
/// as long as `patience`, and the types that this command knows.
///
/// # Errors
/// When a file is not understood, nobody knows the type, or the user interrupts the question.
pub fn type_of(
    participant: &DomainParticipant,
    found: &FoundTopic,
    files: &TypeFiles,
    patience: Duration,
    interrupt: &Interrupt,
) -> Result<(Type, String), Failure> {
    let name = &found.type_name;
    if let Some(known) = type_of_files(name, files)? {
        return Ok(known);
    }
    let mut refusal = "nobody describes it".to_owned();
    if let Some((owner, information)) = &found.information {
        let is_silence = |error: &Error| error.kind() == ErrorKind::Timeout;
        let ask = |wait| participant.type_of(*owner, information, wait);
        match ask_until(patience, interrupt, is_silence, ask) {
            Ok(of) => return Ok((of, format!("participant {owner}"))),
            Err(_) if interrupt.came() => return Err(Failure::Interrupted),
            Err(error) => refusal = error.to_string(),
        }
    }
    if let Some(of) = Types::default().find_type(name) {
        return Ok((of.clone(), "the types that this command knows".to_owned()));
    }
    let unknown = InLine(format_args!("the type {name} is not known: {refusal}")).to_string();
    Err(Failure::Failed(format!("{unknown}; give it by --idl FILE or --share FOLDER")))
}

/// What `ask` is told in one of the waits that it is given, in all as long as `patience`, unless the user interrupts them; `is_silence` tells
/// which answers are none.
fn ask_until<T, E>(
    patience: Duration,
    interrupt: &Interrupt,
    is_silence: impl Fn(&E) -> bool,
    mut ask: impl FnMut(Duration) -> Result<T, E>,
) -> Result<T, E> {
    let mut rest = patience;
    loop {
        let wait = rest.min(ASK_PERIOD);
        rest -= wait;
        match ask(wait) {
            Err(error) if is_silence(&error) && !rest.is_zero() && !interrupt.came() => {}
            told => return told,
        }
    }
}

/// The type of this name in the files and folders that the user names, and where it was.
///
/// # Errors
/// When a file is not understood.
pub fn type_of_files(name: &str, files: &TypeFiles) -> Result<Option<(Type, String)>, Failure> {
    for path in &files.idl {
        let types =
            idl::parse_file(path, &idl::Reading::default()).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(of) = types.find(name) {
            return Ok(Some((of.clone(), path.display().to_string())));
        }
    }
    let mut packages = match &files.share[..] {
        [] => RosPackages::of_prefixes(&std::env::var("AMENT_PREFIX_PATH").unwrap_or_default()),
        shares => RosPackages::new(shares.to_vec()),
    };
    let of = packages.find(name).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(of.map(|of| (of, "installed ROS packages".to_owned())))
}

/// The type as one that samples have.
///
/// # Errors
/// When it is no structure or union.
pub fn sample_type(of: &Type) -> Result<SampleType<'_>, Failure> {
    SampleType::of(of).ok_or_else(|| Failure::Failed("the type of the topic is neither structure nor union".to_owned()))
}

/// Interval at which discovery is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// How long a participant is asked for a type before it is seen whether the user still waits.
const ASK_PERIOD: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_nothing_is_asked_until_time_is_up_or_the_user_interrupts() {
        let interrupt = Interrupt::watch();
        let mut waits = Vec::new();
        let mut ask = |answers_at: usize, patience_ms| {
            waits.clear();
            ask_until(
                Duration::from_millis(patience_ms),
                &interrupt,
                |silent| *silent,
                |wait| {
                    waits.push(wait.as_millis());
                    if waits.len() == answers_at { Ok(waits.len()) } else { Err(true) }
                },
            )
        };
        assert_eq!(ask(9, 600), Err(true));
        assert_eq!(ask(2, 600), Ok(2));
        assert_eq!(ask(2, 0), Err(true), "once in any case");
        assert_eq!(ask(9, 600), Err(true));
        assert_eq!(waits, [250, 250, 100]);
        interrupt.end_at_once();
        let silent = ask_until(Duration::from_secs(60), &interrupt, |silent| *silent, |_| Err::<(), bool>(true));
        assert_eq!(silent, Err(true));
        let refused =
            ask_until(Duration::from_secs(60), &Interrupt::watch(), |silent| *silent, |_| Err::<(), bool>(false));
        assert_eq!(refused, Err(false), "a refusal is an answer");
    }

    #[test]
    fn a_name_as_ros_shows_it_stands_for_the_one_that_others_use() {
        let tag = format!("used-name-{}", std::process::id());
        let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
        let (here, there) = (create(), create());
        assert_eq!(used_name(&here, "/scan"), "/scan", "nobody has any");
        let topic = there.create_raw_topic("rt/scan", "Scan", Keyed::No, None);
        let _writer = there.create_writer(&topic, thalweg::qos::WriterQos::default()).expect("a writer");
        let until = Instant::now() + Duration::from_secs(30);
        while used_name(&here, "/scan") != "rt/scan" {
            assert!(Instant::now() < until, "it is not discovered");
            std::thread::sleep(LOOK_PERIOD);
        }
        assert_eq!((used_name(&here, "scan"), used_name(&here, "map")), ("rt/scan".to_owned(), "map".to_owned()));
    }

    #[test]
    fn names_are_those_of_dds_or_as_ros_shows_them() {
        assert_eq!(spellings("/scan"), ["rt/scan", "/scan", "scan"]);
        assert_eq!(spellings("Square"), ["Square", "rt/Square"]);
        assert_eq!((shown_name("rt/a/scan").as_str(), shown_name("Square").as_str()), ("/a/scan", "Square"));
    }
}
