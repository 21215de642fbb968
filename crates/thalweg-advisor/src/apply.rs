//! Applying advice: each change with its way back, measured before and after, and taken back where it made things worse.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::advice::{AdviceStep, HostAdvice, Setting};
use crate::figures::{grouped, time};
use crate::place::{SettingPlace, SettingPlaces};
use crate::probes::{ProbeAnswers, ProbeKind, Probes};
use crate::undo::{UndoError, UndoLog, UndoStore};

/// Files that `apply` writes beside the settings of now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedFiles {
    /// The profile for programs, by `--profile`; needs no rights.
    pub profile: Option<PathBuf>,
    /// Settings of the kernel for the next start, below `/etc/sysctl.d`; `None` leaves them to the restart.
    pub fragment: Option<PathBuf>,
}

/// Everything that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AppliedAdvice {
    /// Changes, in their order.
    pub changes: Vec<HostChange>,
    /// Settings that should be changed and cannot be here; nothing was tried.
    pub refused: Vec<RefusedSetting>,
    /// Whether it was told to stop before all changes were made.
    pub is_stopped: bool,
}

/// A setting that should be changed and cannot be here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedSetting {
    /// Its name, as in [`Setting::name`].
    pub name: String,
    /// Its value now; `None` where the host does not show it.
    pub now: Option<String>,
    /// The value that was computed.
    pub computed: Option<String>,
    /// Why, and what remains.
    pub reason: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostChange {
    /// Where.
    pub place: SettingPlace,
    /// The value before.
    pub before: Option<String>,
    /// The value that was asked for.
    pub asked: String,
    /// What came of it.
    pub outcome: ChangeOutcome,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "detail")]
pub enum ChangeOutcome {
    /// The place has the value, and no measurement is worse.
    Written,
    /// The system took this value instead.
    WrittenAs(String),
    /// The place had the value already.
    AlreadySo,
    /// The system refused; the place is as it was.
    Refused(String),
    /// A measurement got worse by this; the place is as it was.
    RolledBack(String),
    /// A measurement got worse by this, and the place could not be put back; `revert` tries again.
    StillWorse(String),
}

/// Applies advice.
///
/// Changes that are refused are told and do not keep out the others. A profile whose receive buffer is refused is not written.
///
/// # Errors
/// The undo file cannot be written; nothing was changed after that.
pub fn apply<Store: UndoStore>(
    advice: &HostAdvice,
    files: &AppliedFiles,
    (places, probes): (&mut dyn SettingPlaces, &mut dyn Probes),
    undo: &mut UndoLog<Store>,
) -> Result<AppliedAdvice, UndoError> {
    apply_until(advice, files, (places, probes), undo, &|| false)
}

/// As [`apply`], and stops before the next setting of the host once `is_told_to_stop` says so; what was changed stays, and nothing is
/// written for the next start.
///
/// # Errors
/// As [`apply`].
pub fn apply_until<Store: UndoStore>(
    advice: &HostAdvice,
    files: &AppliedFiles,
    (places, probes): (&mut dyn SettingPlaces, &mut dyn Probes),
    undo: &mut UndoLog<Store>,
    is_told_to_stop: &dyn Fn() -> bool,
) -> Result<AppliedAdvice, UndoError> {
    let (mut changes, mut is_stopped) = (Vec::new(), false);
    if let Some(path) = &files.profile {
        let change = planned(places, &SettingPlace::File { path: path.clone() }, &advice.to_profile())?;
        changes.push(match &advice.receive_buffer_refusal {
            Some(reason) => HostChange { outcome: ChangeOutcome::Refused(reason.clone()), ..change },
            None => write(places, undo, change)?,
        });
    }
    let yardstick = Yardstick::of(advice);
    let writes: Vec<_> = advice.writes().collect();
    // Neighbours that the same measurement shows are changed together, and measured once.
    for group in writes.chunk_by(|one, next| one.0.probe.is_some() && one.0.probe == next.0.probe) {
        if is_told_to_stop() {
            is_stopped = true;
            break;
        }
        let group: Vec<(&Setting, HostChange)> = group
            .iter()
            .map(|(setting, place, value)| Ok((*setting, planned(places, place, value)?)))
            .collect::<Result<_, UndoError>>()?;
        changes.extend(write_measured(group, (places, probes), undo, &yardstick)?);
    }
    if let Some(path) = files.fragment.as_ref().filter(|_| !is_stopped) {
        let kept = changes.iter().filter(|change| change.is_kept()).filter_map(|change| match &change.place {
            SettingPlace::Sysctl { name } => Some((name.clone(), change.asked.clone())),
            _ => None,
        });
        let kept: BTreeMap<String, String> = kept.collect();
        if !kept.is_empty() {
            let place = SettingPlace::File { path: path.clone() };
            let text = fragment(places.read(&place)?.as_deref().unwrap_or_default(), &kept);
            let change = planned(places, &place, &text)?;
            changes.push(write(places, undo, change)?);
        }
    }
    let refused = advice.settings.iter().filter_map(RefusedSetting::of).collect();
    Ok(AppliedAdvice { changes, refused, is_stopped })
}

impl AppliedAdvice {
    /// How many changes and settings the host does not have as they were computed.
    pub fn missing(&self) -> usize {
        self.changes.iter().filter(|change| !change.is_kept()).count() + self.refused.len()
    }
}

impl RefusedSetting {
    fn of(setting: &Setting) -> Option<RefusedSetting> {
        let AdviceStep::Refused { reason } = &setting.step else { return None };
        Some(RefusedSetting {
            name: setting.name.clone(),
            now: setting.now.clone(),
            computed: setting.computed.clone(),
            reason: reason.clone(),
        })
    }
}

impl HostChange {
    /// Whether the place has the value that was asked for, or what the system made of it.
    pub fn is_kept(&self) -> bool {
        matches!(self.outcome, ChangeOutcome::Written | ChangeOutcome::WrittenAs(_) | ChangeOutcome::AlreadySo)
    }
}

/// A change that has not been made.
fn planned(places: &dyn SettingPlaces, place: &SettingPlace, value: &str) -> Result<HostChange, UndoError> {
    let before = places.read(place)?;
    Ok(HostChange { place: place.clone(), before, asked: value.to_owned(), outcome: ChangeOutcome::AlreadySo })
}

/// Makes a change, unless the place has the value already.
fn write<Store: UndoStore>(
    places: &mut dyn SettingPlaces,
    undo: &mut UndoLog<Store>,
    mut change: HostChange,
) -> Result<HostChange, UndoError> {
    if change.before.as_deref() == Some(change.asked.as_str()) {
        return Ok(change);
    }
    change.outcome = match undo.change(places, &change.place, Some(&change.asked)) {
        Ok(actual) if actual.as_deref() == Some(change.asked.as_str()) => ChangeOutcome::Written,
        Ok(actual) if actual == change.before => {
            ChangeOutcome::Refused("the system accepted the value and did not take it".to_owned())
        }
        Ok(actual) => ChangeOutcome::WrittenAs(actual.unwrap_or_else(|| "nothing".to_owned())),
        Err(error @ (UndoError::Refused { .. } | UndoError::TooLarge(_))) => ChangeOutcome::Refused(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(change)
}

/// Makes changes that one measurement shows, and takes them back if it gets worse.
fn write_measured<Store: UndoStore>(
    group: Vec<(&Setting, HostChange)>,
    (places, probes): (&mut dyn SettingPlaces, &mut dyn Probes),
    undo: &mut UndoLog<Store>,
    yardstick: &Yardstick,
) -> Result<Vec<HostChange>, UndoError> {
    let is_so = group.iter().all(|(_, change)| change.before.as_deref() == Some(change.asked.as_str()));
    let probe = group.first().and_then(|(setting, _)| setting.probe).filter(|_| !is_so);
    let before = probe.map(|probe| (probe, yardstick.measure(probes, probe)));
    let mut changes = Vec::new();
    for (_, change) in group {
        changes.push(write(places, undo, change)?);
    }
    let is_written =
        |change: &HostChange| matches!(change.outcome, ChangeOutcome::Written | ChangeOutcome::WrittenAs(_));
    let Some((probe, before)) = before.filter(|_| changes.iter().any(is_written)) else { return Ok(changes) };
    // A link that starts anew answers after some seconds only, and a single bad measurement proves nothing.
    let again = (0..MEASUREMENTS).map_while(|_| yardstick.worse(&before, &yardstick.measure(probes, probe)));
    let worse: Vec<String> = again.collect();
    let Some(reason) = worse.get(MEASUREMENTS - 1) else { return Ok(changes) };
    for change in changes.iter_mut().rev().filter(|change| is_written(change)) {
        roll_back(places, undo, change, reason)?;
    }
    Ok(changes)
}

/// Puts a place back. The undo file is told of that as of any other change: an earlier application may have changed the place, and its
/// way back leads on from here.
fn roll_back<Store: UndoStore>(
    places: &mut dyn SettingPlaces,
    undo: &mut UndoLog<Store>,
    change: &mut HostChange,
    reason: &str,
) -> Result<(), UndoError> {
    change.outcome = match undo.change(places, &change.place, change.before.as_deref()) {
        Ok(actual) if actual == change.before => ChangeOutcome::RolledBack(reason.to_owned()),
        Ok(_) => ChangeOutcome::StillWorse(format!("{reason}; the system did not take the value before")),
        Err(UndoError::Refused { source, .. }) => {
            ChangeOutcome::StillWorse(format!("{reason}; putting it back failed: {source}"))
        }
        Err(error) => {
            // An undo file that cannot be written is no reason to leave the host worse.
            let _ = places.write(&change.place, change.before.as_deref());
            return Err(error);
        }
    };
    Ok(())
}

/// By what measurements of one stream are compared.
struct Yardstick {
    payload_bytes: u64,
    buffer_bytes: u64,
    peer: Option<IpAddr>,
    mtu_bytes: u32,
    deadline: Duration,
}

impl Yardstick {
    fn of(advice: &HostAdvice) -> Yardstick {
        Yardstick {
            payload_bytes: advice.stream.datagrams(advice.mtu_bytes).payload_bytes,
            buffer_bytes: advice.numbers.receive_buffer_ask(),
            peer: advice.peer,
            mtu_bytes: advice.mtu_bytes,
            deadline: advice.stream.deadline,
        }
    }

    /// One measurement; nothing where it cannot be made.
    fn measure(&self, probes: &mut dyn Probes, probe: ProbeKind) -> ProbeAnswers {
        let mut answers = ProbeAnswers::default();
        match (probe, self.peer) {
            (ProbeKind::GrantedBuffer, _) => answers.granted_buffer = probes.granted_buffer(self.buffer_bytes).ok(),
            (ProbeKind::Charge, _) => answers.charges.extend(probes.charge(self.payload_bytes).ok()),
            (ProbeKind::Segmentation, _) => answers.segmentation = probes.segmentation(self.payload_bytes).ok(),
            (ProbeKind::Path, Some(peer)) => answers.path = probes.path(peer, self.mtu_bytes).ok(),
            (ProbeKind::Path, None) => {}
            (ProbeKind::WakeUps, _) => answers.wake_ups = probes.wake_ups().ok(),
            (ProbeKind::Pacing, peer) => answers.pacing = probes.pacing(peer).ok(),
            (ProbeKind::PacketCost, _) => answers.packet_cost = probes.packet_cost(self.payload_bytes).ok(),
        }
        answers
    }

    /// What got worse; `None` where nothing did, beyond what chance does.
    fn worse(&self, before: &ProbeAnswers, after: &ProbeAnswers) -> Option<String> {
        if let (Some(was), Some(is)) = (before.granted_buffer, after.granted_buffer)
            && is.best_bytes() < was.best_bytes()
        {
            return Some(format!(
                "{} B of receive buffer are granted, {} B before",
                grouped(is.best_bytes()),
                grouped(was.best_bytes())
            ));
        }
        if let (Some(was), Some(is)) = (before.charges.first(), after.charges.first())
            && is.charged_bytes > was.charged_bytes
        {
            return Some(format!(
                "a datagram is charged {} B, {} B before",
                grouped(is.charged_bytes),
                grouped(was.charged_bytes)
            ));
        }
        if let (Some(was), Some(is)) = (before.segmentation, after.segmentation)
            && is.messages > was.messages
        {
            return Some(format!(
                "{} datagrams come in {} messages, {} before",
                is.datagrams, is.messages, was.messages
            ));
        }
        if let Some(was) = before.path.filter(|path| path.is_confirmed) {
            let Some(is) = after.path.filter(|path| path.is_confirmed) else {
                return Some("the peer no longer answers".to_owned());
            };
            if is.bytes < was.bytes {
                return Some(format!("the path carries {} B, {} B before", is.bytes, was.bytes));
            }
            let (was, is) = (was.round_trip.unwrap_or_default(), is.round_trip.unwrap_or_default());
            if is > was.mul_f64(CLEARLY) && is > self.deadline / 10 {
                return Some(format!(
                    "the round trip is {}, {} before, more than a tenth of the deadline",
                    time(is),
                    time(was)
                ));
            }
        }
        if let (Some(was), Some(is)) = (before.wake_ups, after.wake_ups)
            && is.p99 > was.p99.mul_f64(CLEARLY) + LATENESS_OF_CHANCE
        {
            return Some(format!("wake-ups are late by {}, {} before", time(is.p99), time(was.p99)));
        }
        if let (Some(was), Some(is)) = (before.pacing, after.pacing)
            && was.is_effective()
            && !is.is_effective()
        {
            return Some("the queue no longer paces".to_owned());
        }
        if let (Some(was), Some(is)) = (before.packet_cost, after.packet_cost)
            && is.each > was.each.mul_f64(CLEARLY)
        {
            return Some(format!("a datagram costs {} of a processor, {} before", time(is.each), time(was.each)));
        }
        None
    }
}

/// A file for `/etc/sysctl.d` with these settings and those of an earlier one of ours.
fn fragment(earlier: &str, settings: &BTreeMap<String, String>) -> String {
    let lines = earlier.lines().filter(|line| !line.trim_start().starts_with(['#', ';']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let mut all: BTreeMap<String, String> =
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    all.extend(settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    let lines: Vec<String> = all.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    format!("# By `thalweg advisor apply`; `thalweg advisor revert` removes it.\n{}", lines.concat())
}

/// A measurement counts as worse only if all of these are.
const MEASUREMENTS: usize = 3;
const CLEARLY: f64 = 1.5;
const LATENESS_OF_CHANCE: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{FileStore, HostIdentity, HostPlaces, NetworkFacts, PlantedProbes, StreamProfile};

    #[test]
    fn who_is_told_to_stop_changes_no_further_setting() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/server-10g");
        let mut places = HostPlaces::recorded(&folder);
        let answers = std::fs::read_to_string(folder.join("probes.json")).expect("recorded");
        let mut probes = PlantedProbes::parse(&answers).expect("answers");
        let facts = NetworkFacts { device: Some("eno1"), ..NetworkFacts::default() };
        let stream = StreamProfile::Video.stream();
        let advice = HostAdvice::make(&stream, &facts, (places.files(), places.nics()), &mut probes).expect("advice");
        assert!(advice.writes().next().is_some());
        let path = std::env::temp_dir().join(format!("thalweg-stopped-{}.jsonl", std::process::id()));
        let mut undo = UndoLog::open(FileStore::at(&path), HostIdentity::default()).expect("none yet");
        let files = AppliedFiles { profile: None, fragment: Some("/etc/sysctl.d/60-thalweg.conf".into()) };
        let applied = apply_until(&advice, &files, (&mut places, &mut probes), &mut undo, &|| true).expect("stopped");
        assert!(applied.is_stopped && applied.changes.is_empty() && !path.exists(), "{applied:?}");
    }

    #[test]
    fn a_fragment_keeps_what_an_earlier_one_set() {
        let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let first = fragment("", &settings(&[("b", "1"), ("a", "4096 2 3")]));
        assert!(first.ends_with("a = 4096 2 3\nb = 1\n"), "{first}");
        let second = fragment(&first, &settings(&[("b", "2"), ("c", "3")]));
        assert!(second.ends_with("revert` removes it.\na = 4096 2 3\nb = 2\nc = 3\n"), "{second}");
    }
}
