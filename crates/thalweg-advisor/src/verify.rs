//! Whether a host does what a stream needs, by measurement, and whether what was applied is still in place.

use std::time::Duration;

use serde::Serialize;

use crate::advice::HostAdvice;
use crate::figures::{grouped, time};
use crate::place::{SettingPlace, SettingPlaces};
use crate::stream::Departing;
use crate::undo::{UndoLog, UndoStore};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamVerification {
    /// Needs of the stream.
    pub checks: Vec<Check>,
    /// Places that no longer have the value that was applied.
    pub drifted: Vec<Drift>,
}

/// One need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What the stream needs.
    pub wanted: String,
    /// What was measured.
    pub seen: String,
    /// Whether it is enough; `None` where it could not be measured.
    pub is_met: Option<bool>,
}

/// A place that somebody else has changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The place.
    pub place: SettingPlace,
    /// Its value now.
    pub now: Option<String>,
}

impl StreamVerification {
    /// Judges fresh advice.
    pub fn of(advice: &HostAdvice) -> StreamVerification {
        let checks = vec![buffer(advice), stall(advice), path(advice), lateness(advice), batches(advice), load(advice)];
        StreamVerification { checks, drifted: Vec::new() }
    }

    /// The same, with the places that were applied and have other values by now.
    pub fn with_drift<Store: UndoStore>(
        mut self,
        undo: &UndoLog<Store>,
        places: &dyn SettingPlaces,
    ) -> StreamVerification {
        let drift = |past: &crate::undo::PastChange| {
            let now = places.read(&past.place).ok()?;
            (!past.is_ours(&now) && now != past.before).then(|| Drift { place: past.place.clone(), now })
        };
        self.drifted = undo.past_here().filter_map(drift).collect();
        self
    }

    /// The same, with what the profile that was applied asks for: the need may have grown since.
    pub fn with_profile<Store: UndoStore>(
        mut self,
        advice: &HostAdvice,
        undo: &UndoLog<Store>,
        places: &dyn SettingPlaces,
    ) -> StreamVerification {
        let asked = |past: &crate::undo::PastChange| {
            let text = matches!(past.place, SettingPlace::File { .. }).then(|| places.read(&past.place).ok())???;
            let line = text.lines().find_map(|line| line.strip_prefix("receive_buffer_bytes = "))?;
            line.trim().parse::<u64>().ok()
        };
        let asked = undo.past().find_map(asked);
        self.checks.extend(asked.map(|asked| buffer_for(advice, "profile", Some(asked))));
        self
    }

    /// Whether every need that could be measured is met, and nothing has drifted.
    pub fn is_met(&self) -> bool {
        self.checks.iter().all(|check| check.is_met != Some(false)) && self.drifted.is_empty()
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let line = |check: &Check| {
            let verdict = match check.is_met {
                Some(true) => "met",
                Some(false) => "NOT MET",
                None => "unknown",
            };
            format!("{verdict:<8} {:<15} wanted {}; seen {}\n", check.name, check.wanted, check.seen)
        };
        let drift = |drift: &Drift| {
            let now = drift.now.as_deref().unwrap_or("gone");
            format!("CHANGED  {} is {now} by now, which somebody else has set\n", drift.place)
        };
        self.checks.iter().map(line).chain(self.drifted.iter().map(drift)).collect()
    }
}

fn check(name: &'static str, wanted: String, seen: Option<(String, bool)>) -> Check {
    let (seen, is_met) = seen.map_or(("nothing".to_owned(), None), |(seen, is_met)| (seen, Some(is_met)));
    Check { name, wanted, seen, is_met }
}

fn buffer(advice: &HostAdvice) -> Check {
    let ask = advice.numbers.receive_buffer_ask();
    let seen = advice
        .answers
        .granted_buffer
        .map(|granted| (format!("{} B granted", grouped(granted.best_bytes())), granted.best_bytes() >= ask));
    check("receive buffer", format!("{} B", grouped(ask)), seen)
}

/// Whether the granted buffer lasts for the worst stall that was seen.
fn stall(advice: &HostAdvice) -> Check {
    buffer_for(advice, "stall", advice.answers.granted_buffer.map(|granted| granted.best_bytes()))
}

/// Whether a buffer for which a program asks like this lasts for the worst stall that was seen.
fn buffer_for(advice: &HostAdvice, name: &'static str, asked_bytes: Option<u64>) -> Check {
    let worst = advice.answers.wake_ups.map(|late| late.worst);
    let wanted = worst.map_or("the worst stall".to_owned(), time);
    let seen = asked_bytes.zip(worst).map(|(asked, worst)| match lasting(advice, asked) {
        Some(lasting) => (format!("a buffer for {}", time(lasting)), lasting >= worst),
        None => ("a buffer for less than one sample of all writers".to_owned(), false),
    });
    check(name, wanted, seen)
}

/// How long nobody has to read a buffer for which a program asks like this; `None` where what comes at once does not fit.
fn lasting(advice: &HostAdvice, asked_bytes: u64) -> Option<Duration> {
    let stream = &advice.stream;
    let held = 2.0 * asked_bytes as f64;
    match stream.departing {
        Departing::Paced => {
            let share = held / advice.numbers.receive_buffer.value.max(1) as f64;
            // The need has a quarter to spare, which a verdict must not count.
            Some(advice.stall.mul_f64((share * 1.25).min(1e6)))
        }
        Departing::AtOnce => {
            let datagrams = stream.datagrams(advice.mtu_bytes).count * u64::from(stream.writers);
            let samples = (held / (datagrams as f64 * advice.charge_bytes.max(1) as f64)).floor();
            // One comes at the beginning, and the first one too many a period after the last that fits.
            (samples >= 1.0).then(|| Duration::from_secs_f64((samples / stream.rate_hz).min(LASTING_MAX_S)))
        }
    }
}

fn path(advice: &HostAdvice) -> Check {
    let plan = advice.stream.datagrams(advice.mtu_bytes);
    // Of datagrams that IP cuts no packet is larger than the path.
    let wanted = match plan.fragments {
        0 | 1 => plan.payload_bytes + advice.stream.network.header_bytes(),
        _ => u64::from(advice.mtu_bytes),
    };
    let seen = advice.answers.path.filter(|path| path.is_confirmed).map(|path| {
        let words = format!("{} B answered in {}", path.bytes, time(path.round_trip.unwrap_or_default()));
        (words, u64::from(path.bytes) >= wanted)
    });
    check("path", format!("packets of {} B", grouped(wanted)), seen)
}

fn lateness(advice: &HostAdvice) -> Check {
    let bound = advice.stream.deadline / 10;
    let seen = advice.answers.wake_ups.map(|late| (format!("p99 {}", time(late.p99)), late.p99 <= bound));
    check("wake-ups", format!("p99 at most {}, a tenth of the deadline", time(bound)), seen)
}

fn batches(advice: &HostAdvice) -> Check {
    let seen = advice
        .answers
        .segmentation
        .map(|seen| (format!("{} datagrams in {}", seen.datagrams, seen.messages), seen.messages < seen.datagrams));
    check("batches", "datagrams that travel joined".to_owned(), seen)
}

fn load(advice: &HostAdvice) -> Check {
    let packets = advice.stream.packets_per_second(advice.mtu_bytes);
    let seen = advice.numbers.packet_budget.as_ref().map(|budget| {
        let share = packets / budget.value.max(1) as f64;
        (format!("{:.0} % of one processor", 100.0 * share), share <= 0.5)
    });
    check("packets", format!("{packets:.0}/s in half of one processor"), seen)
}

/// More than any stall.
const LASTING_MAX_S: f64 = 1e9;
