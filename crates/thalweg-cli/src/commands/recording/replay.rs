//! `thalweg replay`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use thalweg_recording::bag::recording_files;
use thalweg_recording::player::{Player, PlayerCounts, PlayerOptions, ReplayClock};
use thalweg_recording::{RecordingError, TopicSelection, Withheld};

use super::{contents, type_source};
use crate::commands::topic::TypeFiles;
use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, InLine, print_either, remark};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg replay run.mcap --rate 2 --loop",
    "thalweg replay run_0.mcap run_1.mcap --topics /scan --remap /scan=/old/scan",
    "thalweg replay run.mcap --start 90",
    "thalweg replay bag --info"
))]
/// Writes the samples of MCAP files, ours or those of ROS 2's rosbag2 (the folder of a bag stands for its files), to their topics: at the recorded distances, with the recorded
/// types and QoS, one writer for each recorded one. A file that was cut off is replayed up to its last whole chunk. Requests and replies of
/// ROS 2's services and actions, and what its nodes tell of themselves (ros_discovery_info), are left out unless --topics names them.
pub struct ReplayOptions {
    /// The files, or folders with a metadata.yaml of rosbag2, in this order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Say what the files have of the topics that --topics and --exclude choose, and write nothing (default: replay them).
    #[arg(long, conflicts_with_all = ["again", "remap", "rate", "clock", "start", "wait", "acknowledge_timeout"])]
    pub info: bool,

    /// Print the counts, or with --info what the files have, as JSON (default: text).
    #[arg(long)]
    pub json: bool,

    /// Replay, or with --info tell, topics with this recorded name only, wildcards * and ? allowed, such as 'rq/*' for requests; once for
    /// each (default: all but those of services, actions and nodes).
    #[arg(long, value_name = "NAME")]
    pub topics: Vec<String>,

    /// Leave out topics with this name, wildcards allowed; once for each (default: none).
    #[arg(long, value_name = "NAME")]
    pub exclude: Vec<String>,

    /// Replay FACTOR times as fast; below 1, the DEADLINE, the LIFESPAN and the lease of manual LIVELINESS of a writer grow as the
    /// distances of its samples do, and above it they stay as recorded (default: 1).
    #[arg(long, value_name = "FACTOR", default_value = "1", hide_default_value = true, value_parser = factor)]
    pub rate: f64,

    /// Begin again at the end, ten times a second at most, until Ctrl-C (default: once).
    #[arg(long = "loop")]
    pub again: bool,

    /// Write the topic OLD under the name NEW, such as /scan=/old/scan; once for each (default: the recorded names).
    #[arg(long, value_name = "OLD=NEW", value_parser = renaming)]
    pub remap: Vec<(String, String)>,

    /// Take the distances of samples from these time stamps (default: source).
    #[arg(long, value_enum, value_name = "CLOCK", default_value = "source", hide_default_value = true)]
    pub clock: ClockName,

    /// Begin SECONDS behind the beginning of the recording, in recorded time; what durable writers keep for late readers by then, the last
    /// samples of each instance as far as the history of the writer goes, is written first, at once (default: 0).
    #[arg(long, value_name = "SECONDS", default_value = "0", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub start: Duration,

    /// Before the first sample wait until each writer has a reader, at most SECONDS (default: 2).
    #[arg(long, value_name = "SECONDS", default_value = "2", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub wait: Duration,

    /// After the last sample wait at most SECONDS until all readers have acknowledged (default: 10).
    #[arg(long, value_name = "SECONDS", default_value = "10", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub acknowledge_timeout: Duration,

    #[command(flatten)]
    /// Where types come from that a file does not describe.
    pub types: TypeFiles,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

/// Whose time stamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClockName {
    /// The writers'; what was kept for late readers comes at the beginning, and nothing later than it was received.
    Source,
    /// The recorder's.
    Reception,
}

/// Replays files.
///
/// # Errors
/// A file cannot be read, one of its topics cannot be written, or readers do not acknowledge in time.
pub fn replay(options: &ReplayOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let files = recording_files(&options.files).map_err(Failure::from_cause)?;
    let topics = TopicSelection::new(options.topics.clone(), options.exclude.clone());
    if options.info {
        interrupt.end_at_once();
        return contents::print(&files, &topics, options.json);
    }
    let first = Cell::new(Some(options.member.participant()?));
    // Counts are told of the first one; there are further ones where a topic has several definitions of its type.
    let join = || match first.take() {
        Some(participant) => Ok(participant),
        None => options.member.builder().create().map_err(RecordingError::new),
    };
    let types = type_source(&options.types);
    let player_options = PlayerOptions {
        topics,
        rate: options.rate,
        clock: match options.clock {
            ClockName::Source => ReplayClock::Source,
            ClockName::Reception => ReplayClock::Reception,
        },
        start: options.start,
        renamed: options.remap.iter().cloned().collect::<BTreeMap<String, String>>(),
    };
    let mut player = Player::open(&join, &files, player_options, &types).map_err(Failure::from_cause)?;
    tell_idle(player.idle_patterns());
    for (topic, why) in player.withheld() {
        remark(InLine(format_args!("leaves out {topic} ({why}), as --topics does not name it")));
    }
    let stop = interrupt.flag();
    let matched = player.wait_for_readers(options.wait, &stop);
    remark(InLine(format_args!("replays {}; {matched} writers have a reader", player.topics().join(", "))));
    loop {
        let begun = Instant::now();
        match player.play(&files, &stop) {
            Ok(cut_off) => cut_off.iter().for_each(remark),
            Err(error) => {
                // What was written is still on its way.
                let _ = player.finish(options.acknowledge_timeout);
                return Err(Failure::from_cause(error));
            }
        }
        if !options.again || interrupt.came() {
            break;
        }
        // The writes of a recording without duration would take all of the network.
        std::thread::sleep(TURN_LEAST.saturating_sub(begun.elapsed()));
    }
    let was_interrupted = interrupt.came();
    let counts = player.counts();
    let outcome = OutcomeView::new(counts, player.withheld());
    let patience = if was_interrupted { Duration::ZERO } else { options.acknowledge_timeout };
    let first_refusal = player.first_refusal().map(str::to_owned);
    let finished = player.finish(patience);
    print_either(options.json, &outcome, &outcome)?;
    match (was_interrupted, finished) {
        (true, _) if options.again => Ok(()),
        (true, _) => Err(Failure::Interrupted),
        (false, Err(error)) => Err(Failure::TimedOut(error.to_string())),
        (false, Ok(_)) => first_refusal
            .map_or(Ok(()), |why| Err(Failure::Failed(format!("{} samples were not written: {why}", counts.refused)))),
    }
}

/// Remarks on names and patterns of topics that fit none: most likely they are misspelled.
pub(super) fn tell_idle(patterns: &[String]) {
    for pattern in patterns {
        remark(format_args!("{pattern:?} fits none of the files' topics"));
    }
}

/// What was replayed, and what was not.
#[derive(Serialize)]
struct OutcomeView {
    written: u64,
    /// Those of them from before --start.
    latched: u64,
    refused: u64,
    keyless: u64,
    disordered: u64,
    lateness_most_ms: f64,
    /// Recorded time that was left out, of silences of more than an hour.
    skipped_s: f64,
    /// Topics that are replayed where --topics names them only, with the reason.
    withheld: BTreeMap<String, String>,
    #[serde(skip)]
    counts: PlayerCounts,
}

impl OutcomeView {
    fn new(counts: PlayerCounts, withheld: &BTreeMap<String, Withheld>) -> OutcomeView {
        let PlayerCounts { written, latched, refused, keyless, disordered, lateness_most, skipped } = counts;
        OutcomeView {
            written,
            latched,
            refused,
            keyless,
            disordered,
            lateness_most_ms: lateness_most.as_secs_f64() * 1e3,
            skipped_s: skipped.as_secs_f64(),
            withheld: withheld.iter().map(|(topic, why)| (topic.clone(), why.to_string())).collect(),
            counts,
        }
    }
}

/// The counts in words.
impl fmt::Display for OutcomeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.counts)?;
        match self.withheld.len() {
            0 => Ok(()),
            1 => f.write_str(", 1 topic left out"),
            count => write!(f, ", {count} topics left out"),
        }
    }
}

/// Least time of a turn, chosen by us.
const TURN_LEAST: Duration = Duration::from_millis(100);

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "not a number above 0; give one such as 2 or 0.5".to_owned())
}

fn renaming(text: &str) -> Result<(String, String), String> {
    // ROS 2 writes :=
    let pair = text.split_once(":=").or_else(|| text.split_once('='));
    let pair = pair.filter(|(old, new)| !old.is_empty() && !new.is_empty());
    pair.map(|(old, new)| (old.to_owned(), new.to_owned())).ok_or_else(|| "not OLD=NEW, such as /scan=/old".to_owned())
}
