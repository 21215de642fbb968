//! `thalweg topic list`: the topics of a domain.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::find::shown_name;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, InLine, Lines, print_either};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg topic list", "thalweg topic list --json --wait 3"))]
/// Lists the topics that other participants write or read, with their types and the number of writers and readers.
pub struct TopicListOptions {
    /// Listen for SECONDS (default: 2).
    #[arg(long, value_name = "SECONDS", default_value = "2", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub wait: Duration,

    /// Print one JSON array (default: text).
    #[arg(long)]
    pub json: bool,

    /// Print names alone, one on each line, as for the completions of a shell (default: with types, writers and readers).
    #[arg(long, conflicts_with = "json")]
    pub names: bool,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

#[derive(Default, Serialize)]
struct Listed {
    name: String,
    /// The name on the wire.
    dds_name: String,
    types: BTreeSet<String>,
    writers: usize,
    readers: usize,
    /// Whether one of the endpoints describes its type.
    described: bool,
}

/// Lists topics.
///
/// # Errors
/// The domain cannot be joined, or output cannot be written.
pub fn run(options: &TopicListOptions) -> Result<(), Failure> {
    let participant = options.member.participant()?;
    std::thread::sleep(options.wait);
    let own = participant.guid_prefix();
    let mut topics: BTreeMap<String, Listed> = BTreeMap::new();
    let mut entry = |name: &str, type_name: &str, is_described: bool, is_writer: bool| {
        let listed = topics.entry(name.to_owned()).or_default();
        listed.types.insert(type_name.to_owned());
        listed.described |= is_described;
        *(if is_writer { &mut listed.writers } else { &mut listed.readers }) += 1;
    };
    for known in participant.publications().iter().filter(|known| known.data.guid.prefix != own) {
        entry(&known.data.topic_name, &known.data.type_name, known.data.type_information.is_some(), true);
    }
    for known in participant.subscriptions().iter().filter(|known| known.data.guid.prefix != own) {
        entry(&known.data.topic_name, &known.data.type_name, known.data.type_information.is_some(), false);
    }
    let listed: Vec<Listed> =
        topics.into_iter().map(|(name, listed)| Listed { name: shown_name(&name), dds_name: name, ..listed }).collect();
    if options.names {
        let mut lines = Lines::default();
        listed.iter().for_each(|topic| lines.push(InLine(&topic.name)));
        return lines.print();
    }
    print_either(options.json, &listed, text(&listed))
}

fn text(topics: &[Listed]) -> String {
    if topics.is_empty() {
        return "no topics".to_owned();
    }
    let names: Vec<String> = topics.iter().map(|topic| InLine(&topic.name).to_string()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let line = |(topic, name): (&Listed, &String)| {
        let types: Vec<&str> = topic.types.iter().map(String::as_str).collect();
        let types = InLine(types.join(", "));
        format!("{name:width$}  {} writers, {} readers  {types}", topic.writers, topic.readers)
    };
    topics.iter().zip(&names).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_one_line_whatever_it_is_called() {
        let listed = |name: &str, of: &str| Listed {
            name: name.to_owned(),
            types: BTreeSet::from([of.to_owned()]),
            writers: 1,
            ..Listed::default()
        };
        let told = text(&[listed("a\nb", "T\nU"), listed("/scan", "T")]);
        assert_eq!(told, "a\\u000ab  1 writers, 0 readers  T\\u000aU\n/scan     1 writers, 0 readers  T");
    }
}
