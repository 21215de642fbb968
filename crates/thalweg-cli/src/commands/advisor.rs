//! `thalweg advisor`: settings of a host for a stream, computed, applied, measured again and taken back.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use thalweg_advisor::{
    AdvisedStream, AppliedAdvice, AppliedFiles, ChangeOutcome, Departing, FileStore, ForeignChanges, HostAdvice,
    HostIdentity, HostPlaces, LiveProbes, NetworkFacts, PlantedProbes, Probes, RefusedSetting, RevertEnding, Reverted,
    StreamProfile, StreamVerification, UndoLog, apply_until, device_towards,
};
use thalweg_host::{HostFiles, may_make_namespaces};

use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_either, print_place};

/// Computes what this host should be set to for a stream, sets it with a way back, and measures whether it helps.
#[derive(Args, Debug)]
#[command(after_help = crate::after_help!("thalweg advisor advise --profile video"))]
pub struct AdvisorOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub action: AdvisorAction,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AdvisorAction {
    /// Measures, and prints for each setting: now, computed, why, what it should change, whether it has an effect here, and what is to be
    /// done. Changes nothing.
    #[command(after_help = crate::after_help!(
        "thalweg advisor advise --profile telemetry --rate 500 --size 400 --writers 20 --peer 192.0.2.7",
        "thalweg advisor advise --profile paper-2006 --json"
    ))]
    Advise(AdviseOptions),
    /// Writes what `advise` says: the profile for programs, and as root the settings of the kernel and of the interface. Each change is on
    /// disk in the undo file before it is made, is measured, and is taken back if it makes things worse. Ctrl-C ends it between two
    /// changes. Exit code 1 if something that should be changed was not, or cannot be here.
    #[command(after_help = crate::after_help!("thalweg advisor apply --profile video --out stream.toml"))]
    Apply(ApplyOptions),
    /// Measures whether this host does what the stream needs, and whether what was applied is still in place. Exit code 1 if not.
    #[command(after_help = crate::after_help!("thalweg advisor verify --profile video --watch 10"))]
    Verify(StreamVerifyOptions),
    /// Puts back everything that `apply` has changed; a second time does nothing.
    #[command(after_help = crate::after_help!("thalweg advisor revert"))]
    Revert(RevertOptions),
}

/// The stream, and how to measure for it.
#[derive(Args, Debug)]
pub struct AdvisedOptions {
    /// Take the usual figures of a kind of stream: video (1080 lines, 10 bits, 29.97 Hz), telemetry (10 writers of 256 bytes at 1000 Hz),
    /// bulk (1 MiB at 50 Hz), or paper-2006, the video of the paper with what became of its settings (default: video).
    #[arg(long, value_name = "KIND", default_value = "video", hide_default_value = true,
        value_parser = PossibleValuesParser::new(StreamProfile::ALL.map(|(name, _)| name)))]
    pub profile: String,

    /// Let each writer send HZ samples a second, such as 50 or 30000/1001 (default: that of the profile).
    #[arg(long, value_name = "HZ", value_parser = rate)]
    pub rate: Option<f64>,

    /// Let a sample have BYTES octets, 1 to 4294967296 (default: that of the profile).
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u64>,

    /// Let a sample arrive within TIME, with us, ms or s (default: that of the profile).
    #[arg(long, value_name = "TIME", value_parser = crate::parse::duration)]
    pub deadline: Option<Duration>,

    /// Let N writers send to this host, 1 to 100000 (default: that of the profile).
    #[arg(long, value_name = "N")]
    pub writers: Option<u32>,

    /// Let the datagrams of a sample leave paced over its time, or at-once (default: that of the profile).
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(["paced", "at-once"]))]
    pub departing: Option<String>,

    /// Let writers send datagrams of BYTES octets of payload, cut by IP where they exceed the MTU (default: as large as fits).
    #[arg(long, value_name = "BYTES")]
    pub datagram: Option<u32>,

    /// Try the path to the host at ADDRESS; no program has to run there, but its ICMP has to pass (default: the path is not tried).
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Option<IpAddr>,

    /// Advise on interface NAME (default: that towards the peer, else the first with hardware).
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// Take MBITS Mbit/s as the speed of the narrowest link (default: what the interface says).
    #[arg(long, value_name = "MBITS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub link: Option<u64>,

    /// Watch for SECONDS how late threads wake, 0.1 to 3600; rare stalls need long (default: 3).
    #[arg(long, value_name = "SECONDS", default_value = "3", hide_default_value = true, value_parser = watching)]
    pub watch: Duration,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// Options of `advisor advise`.
#[derive(Args, Debug)]
pub struct AdviseOptions {
    /// The stream.
    #[command(flatten)]
    pub stream: AdvisedOptions,

    /// Advise on a recorded machine: FOLDER holds its proc and sys, nic/INTERFACE.json and probes.json (default: this host).
    #[arg(long, value_name = "FOLDER")]
    pub recorded: Option<PathBuf>,
}

/// Options of `advisor apply`.
#[derive(Args, Debug)]
pub struct ApplyOptions {
    /// The stream.
    #[command(flatten)]
    pub stream: AdvisedOptions,

    /// Write the profile of the stream, which commands read by --profile, into FILE (default: stream.toml).
    #[arg(long, value_name = "FILE", default_value = "stream.toml", hide_default_value = true)]
    pub out: PathBuf,

    /// Write the kernel's settings for the next start into FILE (default: /etc/sysctl.d/60-thalweg.conf as root in the first network
    /// namespace of a system that starts by itself, else none).
    #[arg(long, value_name = "FILE", conflicts_with = "until_restart")]
    pub fragment: Option<PathBuf>,

    /// Leave the next start as it was: a restart then undoes every setting of the kernel (default: they are kept).
    #[arg(long)]
    pub until_restart: bool,

    /// Where the way back is kept.
    #[command(flatten)]
    pub undo: UndoOptions,
}

/// Options of `advisor verify`.
#[derive(Args, Debug)]
pub struct StreamVerifyOptions {
    /// The stream.
    #[command(flatten)]
    pub stream: AdvisedOptions,

    /// Where the way back is kept.
    #[command(flatten)]
    pub undo: UndoOptions,
}

/// Options of `advisor revert`.
#[derive(Args, Debug)]
pub struct RevertOptions {
    /// Put back what somebody else has changed since as well (default: their values stay, and the exit code is 1).
    #[arg(long)]
    pub force: bool,

    /// Where the way back is kept.
    #[command(flatten)]
    pub undo: UndoOptions,

    /// Print one JSON object instead of text (default: text).
    #[arg(long)]
    pub json: bool,
}

/// The undo file.
#[derive(Args, Debug)]
pub struct UndoOptions {
    /// Keep the values before in FILE (default: /var/lib/thalweg/undo.jsonl as root, else thalweg/undo.jsonl in $XDG_STATE_HOME or
    /// ~/.local/state).
    #[arg(long = "undo", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Carries out an action.
///
/// # Errors
/// The stream is impossible, files cannot be written, changes were refused, needs are not met, places could not be put back, or the
/// user interrupts changes.
pub fn run(options: &AdvisorOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    match &options.action {
        AdvisorAction::Advise(options) => {
            interrupt.end_at_once();
            advise(options)
        }
        AdvisorAction::Apply(options) => apply_advice(options, interrupt),
        AdvisorAction::Verify(options) => {
            interrupt.end_at_once();
            verify(options)
        }
        AdvisorAction::Revert(options) => revert(options),
    }
}

fn advise(options: &AdviseOptions) -> Result<(), Failure> {
    let advice = match &options.recorded {
        Some(folder) => {
            let path = folder.join("probes.json");
            let unreadable = |reason: &dyn std::fmt::Display| {
                Failure::Failed(format!("the answers in {} cannot be read: {reason}", path.display()))
            };
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
            let mut probes = PlantedProbes::parse(&text).map_err(|error| unreadable(&error))?;
            options.stream.advise(&HostPlaces::recorded(folder), &mut probes, options.stream.interface.as_deref())?
        }
        None => options.stream.advise_here(&HostPlaces::here(), &mut options.stream.probes())?,
    };
    print_either(options.stream.json, &advice, advice.to_text().trim_end())
}

fn apply_advice(options: &ApplyOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut places = HostPlaces::here();
    let mut undo = options.undo.open(&places)?;
    let mut probes = options.stream.probes();
    let advice = interrupt.end_at_once_during(|| options.stream.advise_here(&places, &mut probes))?;
    let usual = || (may_make_namespaces() && has_next_start(places.files())).then(|| PathBuf::from(FRAGMENT));
    let fragment = if options.until_restart { None } else { options.fragment.clone().or_else(usual) };
    let absolute = |path: &Path| std::path::absolute(path).map_err(Failure::from_cause);
    let files = AppliedFiles {
        profile: Some(absolute(&options.out)?),
        fragment: fragment.map(|path| absolute(&path)).transpose()?,
    };
    let applied = apply_until(&advice, &files, (&mut places, &mut probes), &mut undo, &|| interrupt.came());
    let applied = applied.map_err(Failure::from_cause)?;
    print_either(options.stream.json, &applied, told(&applied).trim_end())?;
    print_place(
        options.stream.json,
        format_args!("`thalweg advisor revert` puts back what is in {}", options.undo.path()?.display()),
    )?;
    if applied.is_stopped {
        return Err(Failure::Interrupted);
    }
    let missing = applied.missing();
    if missing > 0 {
        let all = applied.changes.len() + applied.refused.len();
        return Err(Failure::Failed(format!(
            "{missing} of {all} changes were not made or not kept; the list says why"
        )));
    }
    Ok(())
}

/// Whether the settings of this namespace come from files when the system starts: not in other network namespaces, nor in containers that
/// start a program alone.
fn has_next_start(files: &HostFiles) -> bool {
    files.is_first_network_namespace().unwrap_or(false) && files.has_init_system().unwrap_or(false)
}

fn told(applied: &AppliedAdvice) -> String {
    let mut out = String::new();
    for change in &applied.changes {
        let (verdict, detail) = match &change.outcome {
            ChangeOutcome::Written => ("written", ""),
            ChangeOutcome::WrittenAs(value) => ("written, and the system took", value.as_str()),
            ChangeOutcome::AlreadySo => ("as it was", ""),
            ChangeOutcome::Refused(reason) => ("REFUSED:", reason.as_str()),
            ChangeOutcome::RolledBack(reason) => ("TAKEN BACK:", reason.as_str()),
            ChangeOutcome::StillWorse(reason) => ("WORSE AND NOT TAKEN BACK:", reason.as_str()),
        };
        let value = |value: &str| if value.contains('\n') { "a file".to_owned() } else { value.to_owned() };
        let before = change.before.as_deref().map_or("nothing".to_owned(), value);
        let _ = writeln!(out, "{}: {before} -> {}  {verdict} {detail}", change.place, value(&change.asked));
    }
    for RefusedSetting { name, now, computed, reason } in &applied.refused {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "not shown".to_owned());
        let _ = writeln!(out, "{name}: {} -> {}  REFUSED: {reason}", shown(now), shown(computed));
    }
    out
}

fn verify(options: &StreamVerifyOptions) -> Result<(), Failure> {
    let places = HostPlaces::here();
    let undo = options.undo.open(&places)?;
    let advice = options.stream.advise_here(&places, &mut options.stream.probes())?;
    let found = StreamVerification::of(&advice).with_profile(&advice, &undo, &places);
    let found = found.with_drift(&undo, &places);
    print_either(options.stream.json, &found, found.to_text().trim_end())?;
    if found.is_met() {
        return Ok(());
    }
    Err(Failure::Failed(
        "this host does not do what the stream needs; `thalweg advisor advise` says what helps".to_owned(),
    ))
}

fn revert(options: &RevertOptions) -> Result<(), Failure> {
    let mut places = HostPlaces::here();
    let undo = options.undo.open(&places)?;
    let strangers = if options.force { ForeignChanges::Override } else { ForeignChanges::Respect };
    let reverted = undo.revert(&mut places, strangers).map_err(Failure::from_cause)?;
    let text = if reverted.is_empty() { "nothing is left to put back".to_owned() } else { restored(&reverted) };
    print_either(options.json, &reverted, text.trim_end())?;
    let left = reverted.iter().filter(|one| !one.ending.is_final()).count();
    if left > 0 {
        return Err(Failure::Failed(format!(
            "{left} of {} places were not put back; the list says why",
            reverted.len()
        )));
    }
    Ok(())
}

fn restored(reverted: &[Reverted]) -> String {
    let line = |one: &Reverted| {
        let before =
            one.before.as_deref().map_or("nothing", |value| if value.contains('\n') { "a file" } else { value });
        let ending = match &one.ending {
            RevertEnding::Restored => format!("{before} again"),
            RevertEnding::AlreadySo => format!("{before} already"),
            RevertEnding::Gone => "gone, or undone by a restart".to_owned(),
            RevertEnding::ChangedByOthers(now) => format!(
                "CHANGED by somebody else to {}, which stays; --force puts {before} back",
                now.as_deref().unwrap_or("nothing")
            ),
            RevertEnding::Elsewhere(namespace) => {
                format!("LEFT: it is of the network namespace {namespace}; run this there")
            }
            RevertEnding::Failed(reason) => format!("FAILED: {reason}"),
        };
        format!("{}: {ending}\n", one.place)
    };
    reverted.iter().map(line).collect()
}

impl AdvisedOptions {
    fn stream(&self) -> AdvisedStream {
        let profile = StreamProfile::ALL.iter().find(|(name, _)| *name == self.profile);
        let usual = profile.map_or(StreamProfile::Video, |(_, profile)| *profile).stream();
        let departing = self.departing.as_deref().map(|word| match word {
            "paced" => Departing::Paced,
            _ => Departing::AtOnce,
        });
        AdvisedStream {
            rate_hz: self.rate.unwrap_or(usual.rate_hz),
            sample_bytes: self.size.unwrap_or(usual.sample_bytes),
            writers: self.writers.unwrap_or(usual.writers),
            deadline: self.deadline.unwrap_or(usual.deadline),
            departing: departing.unwrap_or(usual.departing),
            datagram_bytes: self.datagram.or(usual.datagram_bytes),
            ..usual
        }
    }

    fn probes(&self) -> LiveProbes {
        LiveProbes { watching: self.watch }
    }

    /// Advice for this host.
    fn advise_here(&self, places: &HostPlaces, probes: &mut dyn Probes) -> Result<HostAdvice, Failure> {
        let towards = match (&self.interface, self.peer) {
            (None, Some(peer)) => device_towards(peer).map_err(|error| {
                Failure::Failed(format!("there is no way to {peer}: {error}; check address and routes"))
            })?,
            (named, _) => named.clone(),
        };
        self.advise(places, probes, towards.as_deref())
    }

    fn advise(
        &self,
        places: &HostPlaces,
        probes: &mut dyn Probes,
        device: Option<&str>,
    ) -> Result<HostAdvice, Failure> {
        let link_bits_per_second = self.link.map(|megabits| megabits * 1_000_000);
        let facts = NetworkFacts { device, peer: self.peer, link_bits_per_second };
        HostAdvice::make(&self.stream(), &facts, (places.files(), places.nics()), probes)
            .map_err(|error| Failure::Usage(error.to_string()))
    }
}

impl UndoOptions {
    fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.file {
            return std::path::absolute(path).map_err(Failure::from_cause);
        }
        if may_make_namespaces() {
            return Ok(PathBuf::from("/var/lib/thalweg/undo.jsonl"));
        }
        let state = crate::state_folder::of_user()
            .ok_or_else(|| Failure::Usage("there is no home for the undo file; name one by --undo".to_owned()))?;
        Ok(state.join("undo.jsonl"))
    }

    fn open(&self, places: &HostPlaces) -> Result<UndoLog<FileStore>, Failure> {
        let path = self.path()?;
        UndoLog::open(FileStore::at(&path), HostIdentity::read(places.files()))
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    }
}

/// Samples a second, also as a fraction.
fn rate(text: &str) -> Result<f64, String> {
    let wrong = || "not a rate; give one such as 50 or 30000/1001".to_owned();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    match text.split_once('/') {
        Some((above, below)) => Ok(number(above).ok_or_else(wrong)? / number(below).ok_or_else(wrong)?),
        None => number(text).ok_or_else(wrong),
    }
}

fn watching(text: &str) -> Result<Duration, String> {
    let time = crate::parse::seconds(text)?;
    let is_possible = (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&time);
    is_possible.then_some(time).ok_or_else(|| "give 0.1 to 3600 seconds".to_owned())
}

const FRAGMENT: &str = "/etc/sysctl.d/60-thalweg.conf";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn rates_are_numbers_or_fractions() {
        assert_eq!(rate("50"), Ok(50.0));
        assert_eq!(rate("30000/1001"), Ok(30_000.0 / 1001.0));
        assert!(rate("0").is_err() && rate("1/0").is_err() && rate("-5").is_err() && rate("fast").is_err());
        assert!(watching("0").is_err() && watching("3601").is_err() && watching("10").is_ok());
    }

    #[test]
    fn other_commands_read_the_profile() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-advisor/testdata/server-10g");
        let places = HostPlaces::recorded(&folder);
        let answers = std::fs::read_to_string(folder.join("probes.json")).expect("recorded");
        let mut probes = PlantedProbes::parse(&answers).expect("answers");
        let facts = NetworkFacts { device: Some("eno1"), ..NetworkFacts::default() };
        let stream = StreamProfile::Telemetry.stream();
        let advice = HostAdvice::make(&stream, &facts, (places.files(), places.nics()), &mut probes).expect("advice");
        let profile = thalweg_lab::profile::Profile::parse(&advice.to_profile()).expect("a profile");
        assert_eq!(profile.participant.receive_buffer_bytes, Some(advice.numbers.receive_buffer_ask()));
    }

    #[test]
    fn settings_that_cannot_be_changed_here_are_told_with_the_reason() {
        let refused = RefusedSetting {
            name: "eth0 root qdisc".to_owned(),
            now: Some("cake".to_owned()),
            computed: Some("fq".to_owned()),
            reason: "somebody configured cake".to_owned(),
        };
        let hidden = RefusedSetting { name: "net.core.rmem_max".to_owned(), now: None, ..refused.clone() };
        let applied = AppliedAdvice { changes: Vec::new(), refused: vec![refused, hidden], is_stopped: false };
        let lines = "eth0 root qdisc: cake -> fq  REFUSED: somebody configured cake\n\
                     net.core.rmem_max: not shown -> fq  REFUSED: somebody configured cake\n";
        assert_eq!((told(&applied).as_str(), applied.missing()), (lines, 2));
    }

    #[test]
    fn settings_are_kept_for_the_next_start_only_where_one_reads_them() {
        let root = std::env::temp_dir().join(format!("thalweg-next-start-{}", std::process::id()));
        for process in ["self", "1"] {
            std::fs::create_dir_all(root.join(format!("proc/{process}/ns"))).expect("made");
            symlink("net:[7]", root.join(format!("proc/{process}/ns/net"))).expect("linked");
        }
        symlink("pid:[9]", root.join("proc/self/ns/pid")).expect("linked");
        let of = |first: &str| {
            std::fs::write(root.join("proc/1/comm"), first).expect("written");
            has_next_start(&HostFiles::at(&root))
        };
        assert!(!of("sleep\n"), "a container that runs one program");
        assert!(of("systemd\n"));
        std::fs::remove_file(root.join("proc/1/ns/net")).expect("removed");
        symlink("net:[8]", root.join("proc/1/ns/net")).expect("linked");
        assert!(!of("systemd\n"), "another network namespace");
        std::fs::remove_dir_all(&root).expect("removed");
    }
}
