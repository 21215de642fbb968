//! `thalweg replay --info`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;
use thalweg_recording::contents::{Contents, read_contents};
use thalweg_recording::read::ReadChannel;
use thalweg_recording::{RecordingSummary, TopicSelection};

use super::replay::tell_idle;
use crate::outcome::{Failure, InLine, print_either};

/// One file.
#[derive(Serialize)]
struct FileView {
    file: String,
    /// Seconds from the first message to the last.
    duration_s: f64,
    channels: Vec<ChannelView>,
    instance_ends: u64,
    /// Why the file ends before its end; null when it does not.
    cut_off: Option<String>,
    /// The recorder's counts; null in files of others and in cut-off ones.
    counts: Option<RecordingSummary>,
}

#[derive(Serialize)]
struct ChannelView {
    topic: String,
    type_name: Option<String>,
    /// The encoding of its type's definition; null without one.
    schema: Option<String>,
    writer: Option<String>,
    messages: u64,
    /// Why it cannot be replayed; null when it can.
    refusal: Option<String>,
    /// Why it is replayed where --topics names it only; null when it always is.
    withheld: Option<String>,
}

/// Prints what files have, of these topics.
///
/// # Errors
/// A file cannot be read, or output cannot be written.
pub fn print(files: &[PathBuf], topics: &TopicSelection, json: bool) -> Result<(), Failure> {
    let (mut views, mut names) = (Vec::new(), BTreeSet::new());
    for path in files {
        let contents = read_contents(path).map_err(Failure::from_cause)?;
        let channels = contents.channels.values().filter_map(|counted| counted.channel.as_ref());
        names.extend(
            channels.filter(|channel| !channel.has_instance_ends()).map(|channel| topic_of(channel).to_owned()),
        );
        views.push(view(path.display().to_string(), contents, topics));
    }
    tell_idle(&topics.idle_patterns(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    print_either(json, &views, views.iter().map(text).collect::<Vec<_>>().join("\n"))
}

/// The topic of a channel on the wire, or its name where that is not known.
fn topic_of(channel: &ReadChannel) -> &str {
    channel.writer.as_ref().map_or(channel.name.as_str(), |writer| writer.topic.as_str())
}

fn view(file: String, contents: Contents, topics: &TopicSelection) -> FileView {
    let channels = contents.channels.into_values().filter_map(|counted| {
        let channel = counted.channel.filter(|channel| !channel.has_instance_ends())?;
        let topic = topic_of(&channel);
        if !topics.has(topic) {
            return None;
        }
        let withheld = topics.withheld(topic);
        let writer = channel.writer.as_ref().ok();
        Some(ChannelView {
            topic: channel.name.clone(),
            type_name: writer.map(|writer| writer.type_name.clone()),
            schema: writer.and_then(|writer| writer.schema.as_ref()).map(|schema| schema.encoding.clone()),
            writer: writer.map(|writer| writer.writer.clone()).filter(|writer| !writer.is_empty()),
            messages: counted.messages,
            refusal: channel.writer.as_ref().err().cloned(),
            withheld: withheld.map(|withheld| withheld.to_string()),
        })
    });
    let first = contents.first_ns.unwrap_or(contents.last_ns);
    FileView {
        file,
        duration_s: contents.last_ns.saturating_sub(first) as f64 / 1e9,
        channels: channels.collect(),
        instance_ends: contents.instance_ends,
        cut_off: contents.cut_off,
        counts: contents.summary,
    }
}

fn text(view: &FileView) -> String {
    let mut lines = vec![format!("{}: {:.3} s", view.file, view.duration_s)];
    for channel in &view.channels {
        let of = channel.type_name.as_deref().unwrap_or("an unknown type");
        let writer = channel.writer.as_deref().map(|writer| format!(" by {writer}")).unwrap_or_default();
        let refusal = channel.refusal.as_deref().map(|why| format!(", not to be replayed: {why}")).unwrap_or_default();
        let withheld = channel.withheld.as_deref().map(|why| format!(", replayed by name only: {why}"));
        let withheld = withheld.unwrap_or_default();
        let (topic, messages) = (&channel.topic, channel.messages);
        let line =
            InLine(format_args!("  {topic}  {messages} messages of {of}{writer}{refusal}{withheld}")).to_string();
        lines.push(line);
    }
    if view.instance_ends > 0 {
        lines.push(format!("  {} ends of instances", view.instance_ends));
    }
    if let Some(counts) = &view.counts {
        lines.push(format!("  since the recording began: {counts}"));
    }
    if let Some(reason) = &view.cut_off {
        lines.push(format!("  {reason}"));
    }
    lines.join("\n")
}
