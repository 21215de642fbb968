//! QoS by topic: profiles that inherit from each other, and the topics that use them.

use std::collections::BTreeMap;

use thalweg_base::wildcards::fits_wildcards;
use thalweg_rtps::qos::{
    Destination, DestinationOrder, Durability, History, LivelinessKind, MAX_BLOCKING_TIME, Method, Ownership,
    ReaderQos, Reliability, Representation, ResourceLimits, WriterOwnership, WriterQos,
};

use super::document::{Value, duration};
use super::{EffectiveSetting, SettingOrigin, Sourced};

/// The keys of a profile, in the order in which they are applied: some qualify an earlier one.
pub(super) const QOS_KEYS: &[&str] = &[
    "reliability",
    "max_blocking_time",
    "durability",
    "service_cleanup_delay",
    "service_history",
    "service_depth",
    "service_max_samples",
    "service_max_instances",
    "service_max_samples_per_instance",
    "history",
    "depth",
    "max_samples",
    "max_instances",
    "max_samples_per_instance",
    "deadline",
    "latency_budget",
    "lifespan",
    "minimum_separation",
    "liveliness",
    "liveliness_lease",
    "ownership",
    "ownership_strength",
    "destination_order",
    "transport_priority",
    "representation",
    "partition",
    "autodispose",
    "autopurge_nowriter_samples_delay",
    "autopurge_disposed_samples_delay",
    "method",
    "flow_controller",
    "destination",
    "max_datagram_bytes",
    "heartbeat_period",
    "reader_patience",
];

/// All profiles, and the topics that use them.
#[derive(Clone, Debug, Default)]
pub(super) struct Profiles {
    pub(super) profiles: BTreeMap<String, Profile>,
    /// In the order of the file: the first that fits a topic counts.
    pub(super) topics: Vec<TopicRule>,
}

/// One profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    /// Later ones come before earlier ones, own keys before all.
    pub(super) inherits: Vec<ProfileName>,
    pub(super) keys: BTreeMap<&'static str, Sourced<Value>>,
}

/// The profiles of the topics whose name fits a pattern.
#[derive(Clone, Debug)]
pub(super) struct TopicRule {
    pub(super) name: String,
    pub(super) writer: Option<ProfileName>,
    pub(super) reader: Option<ProfileName>,
    pub(super) origin: SettingOrigin,
}

/// A profile's name where a file gives it.
#[derive(Clone, Debug)]
pub(super) struct ProfileName {
    pub(super) name: String,
    /// Its first byte in the file's text.
    pub(super) offset: usize,
}

/// The policies of one side.
enum Side<'a> {
    Writer(&'a mut WriterQos),
    Reader(&'a mut ReaderQos),
}

impl Profiles {
    /// Gives each profile the keys that it inherits. Fails with the offset of a name that no profile has, or that leads in a circle.
    pub(super) fn resolve(&mut self) -> Result<(), (usize, String)> {
        let names = self.topics.iter().flat_map(|rule| [&rule.writer, &rule.reader]).flatten();
        for ProfileName { name, offset } in names.chain(self.profiles.values().flat_map(|profile| &profile.inherits)) {
            if !self.profiles.contains_key(name) {
                let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
                return Err((*offset, format!("no profile is named {name:?}; there are: {}", known.join(", "))));
            }
        }
        let mut done = BTreeMap::<String, Profile>::new();
        while done.len() < self.profiles.len() {
            let is_next = |(name, profile): &(&String, &Profile)| {
                !done.contains_key(*name) && profile.inherits.iter().all(|from| done.contains_key(&from.name))
            };
            let Some((name, profile)) = self.profiles.iter().find(is_next) else {
                let circular = self.profiles.iter().find(|(name, _)| !done.contains_key(*name));
                let offset = circular.and_then(|(_, profile)| profile.inherits.first()).map_or(0, |from| from.offset);
                return Err((offset, "profiles inherit from each other in a circle".to_owned()));
            };
            let mut resolved = Profile::default();
            for from in &profile.inherits {
                resolved.keys.extend(done[&from.name].keys.clone());
            }
            resolved.keys.extend(profile.keys.clone());
            done.insert(name.clone(), resolved);
        }
        self.profiles = done;
        Ok(())
    }

    pub(super) fn writer_qos(&self, topic: &str, qos: &WriterQos) -> WriterQos {
        let mut qos = qos.clone();
        for (key, value) in self.keys_for(topic, |rule| rule.writer.as_ref()) {
            // Each value was accepted when it was read.
            _ = apply(key, &value.value, Side::Writer(&mut qos));
        }
        qos
    }

    pub(super) fn reader_qos(&self, topic: &str, qos: &ReaderQos) -> ReaderQos {
        let mut qos = qos.clone();
        for (key, value) in self.keys_for(topic, |rule| rule.reader.as_ref()) {
            _ = apply(key, &value.value, Side::Reader(&mut qos));
        }
        qos
    }

    /// The keys for one side of a topic, in the order in which they are applied.
    fn keys_for(
        &self,
        topic: &str,
        side: impl Fn(&TopicRule) -> Option<&ProfileName>,
    ) -> Vec<(&'static str, &Sourced<Value>)> {
        let mut fitting = self.topics.iter().filter(|rule| fits_wildcards(&rule.name, topic));
        let profile = fitting.find_map(side).and_then(|used| self.profiles.get(&used.name));
        let Some(profile) = profile else { return Vec::new() };
        QOS_KEYS.iter().filter_map(|key| Some((*key, profile.keys.get(key)?))).collect()
    }

    pub(super) fn settings(&self) -> Vec<EffectiveSetting> {
        let of_profile = |(name, profile): (&String, &Profile)| {
            let name = name.clone();
            let told =
                move |(key, value): (&&'static str, &Sourced<Value>)| setting(&format!("profile.{name}.{key}"), value);
            profile.keys.iter().map(told).collect::<Vec<_>>()
        };
        let of_topic = |rule: &TopicRule| {
            let sides = [("writer_profile", &rule.writer), ("reader_profile", &rule.reader)];
            let told = |(side, profile): (&str, &Option<ProfileName>)| {
                let key = format!("topic.{:?}.{side}", rule.name);
                profile.as_ref().map(|ProfileName { name, .. }| EffectiveSetting {
                    key,
                    value: format!("{name:?}"),
                    origin: rule.origin.clone(),
                })
            };
            sides.into_iter().filter_map(told).collect::<Vec<_>>()
        };
        self.profiles.iter().flat_map(of_profile).chain(self.topics.iter().flat_map(of_topic)).collect()
    }

    pub(super) fn topic_settings(&self, topic: &str) -> Vec<EffectiveSetting> {
        let writer = self.keys_for(topic, |rule| rule.writer.as_ref()).into_iter().map(|key| ("writer", key));
        let reader = self.keys_for(topic, |rule| rule.reader.as_ref()).into_iter().map(|key| ("reader", key));
        let applies = |side: &str, key: &str, value: &Value| {
            let (mut offered, mut requested) = (WriterQos::default(), ReaderQos::default());
            let side = if side == "writer" { Side::Writer(&mut offered) } else { Side::Reader(&mut requested) };
            apply(key, value, side) == Ok(true)
        };
        let told = |(side, (key, value)): (&str, (&str, &Sourced<Value>))| {
            applies(side, key, &value.value).then(|| setting(&format!("{side}.{key}"), value))
        };
        writer.chain(reader).filter_map(told).collect()
    }
}

fn setting(key: &str, value: &Sourced<Value>) -> EffectiveSetting {
    let text = match &value.value {
        Value::Text(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Texts(texts) => format!("{texts:?}"),
    };
    EffectiveSetting { key: key.to_owned(), value: text, origin: value.origin.clone() }
}

/// Refuses a value that a key cannot have, and says why.
pub(super) fn check(key: &str, value: &Value) -> Result<(), String> {
    apply(key, value, Side::Writer(&mut WriterQos::default()))?;
    apply(key, value, Side::Reader(&mut ReaderQos::default()))?;
    Ok(())
}

/// Sets a policy. False when the side does not have it.
fn apply(key: &str, value: &Value, side: Side<'_>) -> Result<bool, String> {
    match side {
        Side::Writer(qos) => apply_to_writer(key, value, qos),
        Side::Reader(qos) => apply_to_reader(key, value, qos),
    }
}

fn apply_to_writer(key: &str, value: &Value, qos: &mut WriterQos) -> Result<bool, String> {
    match key {
        "reliability" => qos.reliability = of_kind(&qos.reliability, reliability(value)?),
        "max_blocking_time" => {
            let max_blocking_time = time(value)?;
            if qos.reliability.is_reliable() {
                qos.reliability = Reliability::Reliable { max_blocking_time };
            }
        }
        "durability" => qos.durability = durability(value)?,
        "service_cleanup_delay" => qos.durability_service.cleanup_delay = time(value)?,
        "service_history" | "service_depth" => {
            let key = key.trim_start_matches("service_");
            qos.durability_service.history = history(key, value, qos.durability_service.history)?;
        }
        "service_max_samples" | "service_max_instances" | "service_max_samples_per_instance" => {
            limit(key.trim_start_matches("service_"), value, &mut qos.durability_service.resource_limits)?;
        }
        "history" | "depth" => qos.history = history(key, value, qos.history)?,
        "max_samples" | "max_instances" | "max_samples_per_instance" => limit(key, value, &mut qos.resource_limits)?,
        "deadline" => qos.timing.deadline = time(value)?,
        "latency_budget" => qos.timing.latency_budget = time(value)?,
        "lifespan" => qos.timing.lifespan = time(value)?,
        "liveliness" => qos.liveliness.kind = liveliness(value)?,
        "liveliness_lease" => qos.liveliness.lease = time(value)?,
        "ownership" => {
            qos.ownership = match (ownership(value)?, qos.ownership) {
                (Ownership::Shared, _) => WriterOwnership::Shared,
                (Ownership::Exclusive, exclusive @ WriterOwnership::Exclusive { .. }) => exclusive,
                (Ownership::Exclusive, WriterOwnership::Shared) => WriterOwnership::Exclusive { strength: 0 },
            };
        }
        "ownership_strength" => {
            let strength = number(value)?;
            if qos.ownership != WriterOwnership::Shared {
                qos.ownership = WriterOwnership::Exclusive { strength };
            }
        }
        "destination_order" => qos.destination_order = destination_order(value)?,
        "transport_priority" => qos.transport_priority = number(value)?,
        "representation" => qos.data_representation = representations(value)?,
        "partition" => qos.partition = texts(value)?,
        "autodispose" => qos.autodispose = flag(value)?,
        "method" => qos.transmission.method = of_kind(&qos.transmission.method, method(value)?),
        "flow_controller" => {
            let flow_controller = text(value)?.to_owned();
            if matches!(qos.transmission.method, Method::Asynchronous { .. }) {
                qos.transmission.method = Method::Asynchronous { flow_controller };
            }
        }
        "destination" => qos.transmission.destination = destination(value)?,
        "max_datagram_bytes" => qos.transmission.max_datagram_bytes = number::<u32>(value)? as usize,
        "heartbeat_period" => qos.transmission.heartbeat_period = time(value)?,
        "reader_patience" => qos.reader_patience = time(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn apply_to_reader(key: &str, value: &Value, qos: &mut ReaderQos) -> Result<bool, String> {
    match key {
        "reliability" => qos.reliability = of_kind(&qos.reliability, reliability(value)?),
        "durability" => qos.durability = durability(value)?,
        "history" | "depth" => qos.history = history(key, value, qos.history)?,
        "max_samples" | "max_instances" | "max_samples_per_instance" => limit(key, value, &mut qos.resource_limits)?,
        "deadline" => qos.timing.deadline = time(value)?,
        "latency_budget" => qos.timing.latency_budget = time(value)?,
        "minimum_separation" => qos.timing.minimum_separation = time(value)?,
        "autopurge_nowriter_samples_delay" => qos.lifecycle.autopurge_nowriter_samples_delay = time(value)?,
        "autopurge_disposed_samples_delay" => qos.lifecycle.autopurge_disposed_samples_delay = time(value)?,
        "liveliness" => qos.liveliness.kind = liveliness(value)?,
        "liveliness_lease" => qos.liveliness.lease = time(value)?,
        "ownership" => qos.ownership = ownership(value)?,
        "destination_order" => qos.destination_order = destination_order(value)?,
        "representation" => qos.data_representation = representations(value)?,
        "partition" => qos.partition = texts(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The value that a word stands for.
fn word<R: Clone>(value: &Value, words: &[(&str, R)]) -> Result<R, String> {
    let given = text(value)?;
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = words.iter().find(|(word, _)| *word == given).map(|(_, meaning)| meaning.clone());
    found.ok_or_else(|| format!("{given:?} is no choice; allowed: {}", known()))
}

/// What a word names; if that is the kind which is set already, as it is set: the word says nothing of its times, limits and names.
fn of_kind<P: Clone>(set: &P, named: P) -> P {
    if std::mem::discriminant(set) == std::mem::discriminant(&named) { set.clone() } else { named }
}

fn reliability(value: &Value) -> Result<Reliability, String> {
    let reliable = Reliability::Reliable { max_blocking_time: MAX_BLOCKING_TIME };
    word(value, &[("best_effort", Reliability::BestEffort), ("reliable", reliable)])
}

fn durability(value: &Value) -> Result<Durability, String> {
    let (local, transient) = (Durability::TransientLocal, Durability::Transient);
    let (volatile, persistent) = (Durability::Volatile, Durability::Persistent);
    word(
        value,
        &[("volatile", volatile), ("transient_local", local), ("transient", transient), ("persistent", persistent)],
    )
}

fn history(key: &str, value: &Value, now: History) -> Result<History, String> {
    if key == "depth" {
        let depth = at_least_one(value)?;
        return Ok(if now == History::KeepAll { now } else { History::KeepLast(depth) });
    }
    let last = if now == History::KeepAll { History::KeepLast(1) } else { now };
    word(value, &[("keep_last", last), ("keep_all", History::KeepAll)])
}

fn limit(key: &str, value: &Value, limits: &mut ResourceLimits) -> Result<(), String> {
    let limit = Some(at_least_one(value)?);
    match key {
        "max_samples" => limits.max_samples = limit,
        "max_instances" => limits.max_instances = limit,
        _ => limits.max_samples_per_instance = limit,
    }
    Ok(())
}

fn liveliness(value: &Value) -> Result<LivelinessKind, String> {
    let kinds = [
        ("automatic", LivelinessKind::Automatic),
        ("manual_by_participant", LivelinessKind::ManualByParticipant),
        ("manual_by_topic", LivelinessKind::ManualByTopic),
    ];
    word(value, &kinds)
}

fn ownership(value: &Value) -> Result<Ownership, String> {
    word(value, &[("shared", Ownership::Shared), ("exclusive", Ownership::Exclusive)])
}

fn destination_order(value: &Value) -> Result<DestinationOrder, String> {
    word(value, &[("by_reception", DestinationOrder::ByReception), ("by_source", DestinationOrder::BySource)])
}

fn representations(value: &Value) -> Result<Vec<Representation>, String> {
    const WORDS: [(&str, Representation); 2] = [("xcdr1", Representation::Xcdr1), ("xcdr2", Representation::Xcdr2)];
    texts(value)?.into_iter().map(|name| word(&Value::Text(name), &WORDS)).collect()
}

fn method(value: &Value) -> Result<Method, String> {
    let methods = [
        ("auto", Method::Auto),
        ("immediate", Method::Immediate),
        ("coalesce", Method::coalesce()),
        ("batch", Method::batch()),
        ("asynchronous", Method::asynchronous(thalweg_rtps::qos::BACKGROUND)),
    ];
    word(value, &methods)
}

fn destination(value: &Value) -> Result<Destination, String> {
    let (auto, unicast, multicast) = (Destination::Auto, Destination::Unicast, Destination::Multicast);
    word(value, &[("auto", auto), ("unicast", unicast), ("multicast", multicast)])
}

fn time(value: &Value) -> Result<std::time::Duration, String> {
    duration(text(value)?)
}

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err("a text is needed".to_owned()),
    }
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Texts(texts) => Ok(texts.clone()),
        _ => Err("a list of texts is needed".to_owned()),
    }
}

fn flag(value: &Value) -> Result<bool, String> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        _ => Err("true or false is needed".to_owned()),
    }
}

fn number<N: TryFrom<i64>>(value: &Value) -> Result<N, String> {
    match value {
        Value::Integer(number) => N::try_from(*number).map_err(|_| format!("{number} is out of range")),
        _ => Err("a whole number is needed".to_owned()),
    }
}

fn at_least_one(value: &Value) -> Result<u32, String> {
    let number = number(value)?;
    if number == 0 { Err("0 is given; the least is 1".to_owned()) } else { Ok(number) }
}
