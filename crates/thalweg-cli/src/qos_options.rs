//! `--qos key=value`: policies by name, with the nearest allowed word when one is mistyped.

use std::collections::BTreeMap;
use std::time::Duration;

use thalweg::qos::{
    DestinationOrder, Durability, History, LivelinessKind, Ownership, ReaderQos, Reliability, Representation,
    ResourceLimits, WriterOwnership, WriterQos,
};

use thalweg_lab::nearest::nearest;

/// The policies that writers and readers share, as the command line gave them; `None` keeps the command's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QosOptions {
    reliability: Option<Reliability>,
    max_blocking: Option<Duration>,
    durability: Option<Durability>,
    history: Option<History>,
    limits: ResourceLimits,
    latency_budget: Option<Duration>,
    partition: Vec<String>,
    representation: Vec<Representation>,
    transport_priority: Option<i32>,
    reader_patience: Option<Duration>,
    writers: WritersPolicies,
    /// The keys that were given.
    given: Vec<String>,
}

/// A kind of endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointKind {
    /// It writes.
    Writer,
    /// It reads.
    Reader,
}

/// A key with a value beside which another key has no sense.
const CONTRADICTIONS: [(&str, &str, &str); 3] = [
    ("history", "keep-all", "depth"),
    ("ownership", "shared", "strength"),
    ("reliability", "best-effort", "max_blocking_ms"),
];
/// Keys of policies that readers do not have.
const OF_WRITERS: [&str; 5] =
    ["max_blocking_ms", "reader_patience_ms", "transport_priority", "lifespan_ms", "strength"];
/// And that writers do not have.
const OF_READERS: [&str; 1] = ["time_filter_ms"];

/// Policies about several writers of a topic, and about time.
#[derive(Clone, Debug, Default, PartialEq)]
struct WritersPolicies {
    deadline: Option<Duration>,
    lifespan: Option<Duration>,
    minimum_separation: Option<Duration>,
    exclusive: Option<bool>,
    strength: Option<i32>,
    liveliness: Option<LivelinessKind>,
    lease: Option<Duration>,
    order: Option<DestinationOrder>,
}

/// Every key with its allowed values, for help and errors.
const KEYS: [(&str, &str); 21] = [
    ("reliability", "reliable | best-effort"),
    ("max_blocking_ms", "milliseconds that a write waits for room, default 10000"),
    (
        "reader_patience_ms",
        "of a writer: milliseconds without progress after which a reader is given up, default never",
    ),
    ("durability", "volatile | transient-local"),
    ("history", "keep-all | keep-last"),
    ("depth", "samples of an instance that keep-last keeps; implies keep-last"),
    ("max_samples", "samples kept at most"),
    ("max_instances", "instances kept at most"),
    ("max_samples_per_instance", "samples of an instance kept at most"),
    ("latency_budget_ms", "milliseconds that a sample may wait for others"),
    ("partition", "names with commas between, wildcards * and ? allowed"),
    (
        "transport_priority",
        "of a writer: 0 to 63 is the DSCP of its datagrams, below 0 less than best effort, default 0",
    ),
    ("deadline_ms", "milliseconds in which each instance is written at least once, default no deadline"),
    ("lifespan_ms", "of a writer: milliseconds for which a sample is worth something, default for ever"),
    ("time_filter_ms", "of a reader: milliseconds between two samples of an instance at least, default 0"),
    ("ownership", "shared | exclusive"),
    ("strength", "of a writer: rank where ownership is exclusive, highest wins; implies exclusive"),
    ("liveliness", "automatic | manual-by-participant | manual-by-topic; writing is a sign of life"),
    (
        "lease_ms",
        "milliseconds without a sign of life after which a writer counts as gone, at least 10, default for ever",
    ),
    ("destination_order", "by-reception | by-source"),
    ("representation", "xcdr1 | xcdr2; a reader may take both: xcdr1,xcdr2"),
];

/// The keys as one paragraph of help for a `writer` or `reader`.
pub fn help(endpoint: &str) -> String {
    let keys: Vec<String> = KEYS.iter().map(|(key, values)| format!("  {key}={values}")).collect();
    let keys = keys.join("\n");
    format!(
        "Set a policy of the {endpoint}; may be given several times (default: reliable, keep-all, volatile). Keys:\n{keys}"
    )
}

impl QosOptions {
    /// Collects all `key=value` arguments; a later one replaces an earlier one of the same key.
    ///
    /// # Errors
    /// A key or value that is not allowed: names the nearest one and lists all.
    pub fn parse(arguments: &[String]) -> Result<QosOptions, String> {
        let mut options = QosOptions::default();
        let mut given: BTreeMap<String, String> = BTreeMap::new();
        for argument in arguments {
            let (key, value) = argument.split_once('=').ok_or_else(|| {
                format!("--qos {argument}: expected key=value; {}", allowed("keys", &keys(), argument))
            })?;
            options.set(key.trim(), value.trim()).map_err(|reason| format!("--qos {argument}: {reason}"))?;
            given.insert(key.trim().replace('-', "_"), value.trim().to_lowercase().replace('_', "-"));
        }
        for (key, value, other) in CONTRADICTIONS {
            if given.get(key).is_some_and(|given| given == value) && given.contains_key(other) {
                return Err(format!("--qos {key}={value} leaves nothing for {other} to say: leave out one of them"));
            }
        }
        options.given = given.into_keys().collect();
        Ok(options)
    }

    /// As [`QosOptions::parse`] for one kind of endpoint.
    ///
    /// # Errors
    /// As [`QosOptions::parse`], and for a policy that endpoints of this kind do not have.
    pub fn parse_for(arguments: &[String], side: EndpointKind) -> Result<QosOptions, String> {
        let options = QosOptions::parse(arguments)?;
        let (foreign, own) = match side {
            EndpointKind::Writer => (&OF_READERS[..], "readers"),
            EndpointKind::Reader => (&OF_WRITERS[..], "writers"),
        };
        match options.given.iter().find(|key| foreign.contains(&key.as_str())) {
            Some(key) => Err(format!("--qos {key}: only {own} have this policy; leave it out")),
            None => Ok(options),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key.replace('-', "_").as_str() {
            "reliability" => {
                let choices = [("reliable", Reliability::RELIABLE), ("best-effort", Reliability::BestEffort)];
                self.reliability = Some(choose(value, &choices)?);
            }
            "durability" => {
                let choices = [
                    ("volatile", Durability::Volatile),
                    ("transient-local", Durability::TransientLocal),
                    ("transient", Durability::Transient),
                    ("persistent", Durability::Persistent),
                ];
                self.durability = Some(choose(value, &choices)?);
            }
            "history" => {
                let depth = self.history.and_then(|history| match history {
                    History::KeepLast(depth) => Some(depth),
                    History::KeepAll => None,
                });
                let choices = [("keep-all", History::KeepAll), ("keep-last", History::KeepLast(depth.unwrap_or(1)))];
                self.history = Some(choose(value, &choices)?);
            }
            "depth" => self.history = Some(History::KeepLast(count(value)?)),
            "max_blocking_ms" => self.max_blocking = Some(millis(value)?),
            "reader_patience_ms" => self.reader_patience = Some(millis(value)?),
            "latency_budget_ms" => self.latency_budget = Some(millis(value)?),
            "max_samples" => self.limits.max_samples = Some(count(value)?),
            "max_instances" => self.limits.max_instances = Some(count(value)?),
            "max_samples_per_instance" => self.limits.max_samples_per_instance = Some(count(value)?),
            "partition" => self.partition = value.split(',').map(|name| name.trim().to_owned()).collect(),
            "transport_priority" => {
                let priority = value.parse().ok().filter(|priority| *priority < 64);
                self.transport_priority =
                    Some(priority.ok_or_else(|| format!("{value:?} is no priority; give a number up to 63"))?);
            }
            "deadline_ms" => self.writers.deadline = Some(millis(value)?),
            "lifespan_ms" => self.writers.lifespan = Some(millis(value)?),
            "time_filter_ms" => self.writers.minimum_separation = Some(millis(value)?),
            "ownership" => self.writers.exclusive = Some(choose(value, &[("shared", false), ("exclusive", true)])?),
            "strength" => {
                let strength = value.parse().map_err(|_| format!("{value:?} is no strength; give a whole number"))?;
                (self.writers.strength, self.writers.exclusive) = (Some(strength), Some(true));
            }
            "liveliness" => {
                let choices = [
                    ("automatic", LivelinessKind::Automatic),
                    ("manual-by-participant", LivelinessKind::ManualByParticipant),
                    ("manual-by-topic", LivelinessKind::ManualByTopic),
                ];
                self.writers.liveliness = Some(choose(value, &choices)?);
            }
            "lease_ms" => self.writers.lease = Some(millis(value)?),
            "destination_order" => {
                let choices =
                    [("by-reception", DestinationOrder::ByReception), ("by-source", DestinationOrder::BySource)];
                self.writers.order = Some(choose(value, &choices)?);
            }
            "representation" => {
                let choices = [("xcdr1", Representation::Xcdr1), ("xcdr2", Representation::Xcdr2)];
                self.representation =
                    value.split(',').map(|name| choose(name.trim(), &choices)).collect::<Result<_, _>>()?;
            }
            _ if NOT_EFFECTIVE.contains(&key) => {
                return Err(format!(
                    "the policy {key:?} is not effective in this version: an endpoint with another value than the default \
                     is refused; leave it out"
                ));
            }
            _ => return Err(format!("there is no policy {key:?}; {}", allowed("keys", &keys(), key))),
        }
        Ok(())
    }

    /// The QoS of a writer: the options over `pub`'s defaults, which are reliable and keep-all, so that no sample is lost.
    pub fn writer(&self) -> WriterQos {
        self.writer_over(WriterQos { history: History::KeepAll, ..WriterQos::default() })
    }

    /// The QoS of a writer that has these policies where the options say nothing; it waits longer for room than DDS's default.
    pub fn writer_over(&self, mut qos: WriterQos) -> WriterQos {
        if self.reliability.is_some() || qos.reliability.is_reliable() {
            qos.reliability = self.reliability();
        }
        qos.history = self.history.unwrap_or(qos.history);
        qos.durability = self.durability.unwrap_or(qos.durability);
        qos.resource_limits = self.limits;
        qos.timing.latency_budget = self.latency_budget.unwrap_or(qos.timing.latency_budget);
        if !self.partition.is_empty() {
            qos.partition = self.partition.clone();
        }
        if !self.representation.is_empty() {
            qos.data_representation = self.representation.clone();
        }
        qos.transport_priority = self.transport_priority.unwrap_or(qos.transport_priority);
        qos.reader_patience = self.reader_patience.unwrap_or(qos.reader_patience);
        let WritersPolicies { deadline, lifespan, exclusive, strength, liveliness, lease, order, .. } = self.writers;
        qos.timing.deadline = deadline.unwrap_or(qos.timing.deadline);
        qos.timing.lifespan = lifespan.unwrap_or(qos.timing.lifespan);
        match exclusive {
            Some(true) => qos.ownership = WriterOwnership::Exclusive { strength: strength.unwrap_or(0) },
            Some(false) => qos.ownership = WriterOwnership::Shared,
            None => {}
        }
        qos.liveliness.kind = liveliness.unwrap_or(qos.liveliness.kind);
        qos.liveliness.lease = lease.unwrap_or(qos.liveliness.lease);
        qos.destination_order = order.unwrap_or(qos.destination_order);
        qos
    }

    /// The QoS of a reader: the options over `sub`'s defaults, which are reliable and keep-all.
    pub fn reader(&self) -> ReaderQos {
        let mut qos = ReaderQos { history: self.history.unwrap_or(History::KeepAll), ..ReaderQos::default() };
        qos.reliability = self.reliability();
        qos.durability = self.durability.unwrap_or(qos.durability);
        qos.resource_limits = self.limits;
        qos.timing.latency_budget = self.latency_budget.unwrap_or(qos.timing.latency_budget);
        qos.partition = self.partition.clone();
        if !self.representation.is_empty() {
            qos.data_representation = self.representation.clone();
        }
        let WritersPolicies { deadline, minimum_separation, exclusive, liveliness, lease, order, .. } = self.writers;
        qos.timing.deadline = deadline.unwrap_or(qos.timing.deadline);
        qos.timing.minimum_separation = minimum_separation.unwrap_or(qos.timing.minimum_separation);
        if exclusive == Some(true) {
            qos.ownership = Ownership::Exclusive;
        }
        qos.liveliness.kind = liveliness.unwrap_or(qos.liveliness.kind);
        qos.liveliness.lease = lease.unwrap_or(qos.liveliness.lease);
        qos.destination_order = order.unwrap_or(qos.destination_order);
        qos
    }

    fn reliability(&self) -> Reliability {
        match self.reliability {
            Some(Reliability::BestEffort) => Reliability::BestEffort,
            _ => Reliability::Reliable { max_blocking_time: self.max_blocking.unwrap_or(MAX_BLOCKING) },
        }
    }
}

/// A person who waits for a command prefers to wait for a slow reader as well; DDS's default is 100 ms.
const MAX_BLOCKING: Duration = Duration::from_secs(10);

fn keys() -> Vec<&'static str> {
    KEYS.iter().map(|(key, _)| *key).collect()
}

fn choose<T: Copy>(value: &str, choices: &[(&'static str, T)]) -> Result<T, String> {
    let normal = value.to_lowercase().replace('_', "-");
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    choices
        .iter()
        .find(|(name, _)| *name == normal)
        .map(|(_, choice)| *choice)
        .ok_or_else(|| format!("there is no value {value:?}; {}", allowed("values", &names, value)))
}

fn count(value: &str) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("{value:?} is not a count; give a whole number from 1"))
}

fn millis(value: &str) -> Result<Duration, String> {
    let millis: f64 = value.parse().map_err(|_| format!("{value:?} is not a number of milliseconds"))?;
    Duration::try_from_secs_f64(millis / 1e3).map_err(|_| format!("{value} ms is not a possible duration"))
}

fn allowed(what: &str, words: &[&str], given: &str) -> String {
    let guess =
        nearest(given, words.iter().copied()).map(|word| format!("did you mean {word:?}? ")).unwrap_or_default();
    format!("{guess}Allowed {what}: {}", words.join(", "))
}

/// Policies of DDS 1.4 that every endpoint of these commands has with their default value.
const NOT_EFFECTIVE: [&str; 2] = ["presentation", "durability_service"];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<QosOptions, String> {
        QosOptions::parse(&arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check_error(argument: &str, expect: &[&str]) {
        let error = parse(&[argument]).expect_err("an error");
        for part in expect {
            assert!(error.contains(part), "{part:?} not in {error:?}");
        }
    }

    #[test]
    fn policies_reach_the_endpoints() {
        let options = parse(&[
            "reliability=best-effort",
            "durability=TRANSIENT_LOCAL",
            "depth=7",
            "max_samples=9",
            "partition=a, b*",
            "representation=xcdr2",
        ]);
        let options = options.expect("allowed");
        let (writer, reader) = (options.writer(), options.reader());
        assert_eq!((writer.reliability, reader.reliability), (Reliability::BestEffort, Reliability::BestEffort));
        assert_eq!((writer.durability, writer.history), (Durability::TransientLocal, History::KeepLast(7)));
        assert_eq!(reader.resource_limits.max_samples, Some(9));
        assert_eq!(reader.partition, ["a", "b*"]);
        assert_eq!(writer.data_representation, [Representation::Xcdr2]);
    }

    #[test]
    fn policies_about_several_writers_and_time_reach_the_endpoints() {
        let options = parse(&[
            "deadline_ms=100",
            "lifespan_ms=50",
            "time_filter_ms=10",
            "strength=-3",
            "liveliness=manual-by-topic",
            "lease_ms=20",
            "destination_order=by-source",
        ]);
        let options = options.expect("allowed");
        let (writer, reader) = (options.writer(), options.reader());
        assert_eq!(
            (writer.ownership, reader.ownership),
            (WriterOwnership::Exclusive { strength: -3 }, Ownership::Exclusive)
        );
        assert_eq!(
            (writer.timing.deadline, reader.timing.deadline),
            (Duration::from_millis(100), Duration::from_millis(100))
        );
        assert_eq!(
            (writer.timing.lifespan, reader.timing.minimum_separation),
            (Duration::from_millis(50), Duration::from_millis(10))
        );
        assert_eq!((writer.liveliness, writer.destination_order), (reader.liveliness, reader.destination_order));
        assert_eq!((writer.check(), reader.check()), (Ok(()), Ok(())));
        check_error("strength=high", &["whole number"]);
    }

    #[test]
    fn policies_that_are_not_effective_are_refused_as_such() {
        check_error("presentation=topic", &["presentation", "not effective", "leave it out"]);
    }

    #[test]
    fn blocking_time_and_depth_do_not_depend_on_the_order_of_arguments() {
        let expect = Reliability::Reliable { max_blocking_time: Duration::from_millis(250) };
        for arguments in
            [["max_blocking_ms=250", "reliability=reliable"], ["reliability=reliable", "max_blocking_ms=250"]]
        {
            assert_eq!(parse(&arguments).expect("allowed").writer().reliability, expect);
        }
        for arguments in [["depth=5", "history=keep-last"], ["history=keep-last", "depth=5"]] {
            assert_eq!(parse(&arguments).expect("allowed").writer().history, History::KeepLast(5));
        }
    }

    #[test]
    fn mistyped_words_lead_to_the_allowed_ones() {
        check_error("relyability=reliable", &["did you mean \"reliability\"", "durability", "max_blocking_ms"]);
        check_error("reliability=relable", &["did you mean \"reliable\"", "best-effort"]);
        check_error("depth=0", &["whole number from 1"]);
        check_error("history", &["expected key=value", "did you mean \"history\""]);
        check_error("max_blocking_ms=-3", &["-3 ms is not a possible duration"]);
    }

    #[test]
    fn without_options_nothing_may_be_lost() {
        let options = parse(&[]).expect("nothing");
        assert!(options.writer().reliability.is_reliable() && options.reader().reliability.is_reliable());
        assert_eq!((options.writer().history, options.reader().history), (History::KeepAll, History::KeepAll));
    }

    #[test]
    fn what_contradicts_itself_or_is_of_the_other_end_is_refused() {
        for (arguments, expect) in [
            (["history=keep-all", "depth=5"], "leaves nothing for depth"),
            (["depth=5", "history=KEEP_ALL"], "leaves nothing for depth"),
            (["strength=1", "ownership=shared"], "leaves nothing for strength"),
            (["reliability=best-effort", "max-blocking-ms=5"], "leaves nothing for max_blocking_ms"),
        ] {
            let error = parse(&arguments).expect_err("an error");
            assert!(error.contains(expect), "{error}");
        }
        let of = |key: &str, side| QosOptions::parse_for(&[format!("{key}=5")], side).map(drop);
        for key in OF_WRITERS {
            assert_eq!(of(key, EndpointKind::Writer), Ok(()), "{key}");
            assert!(of(key, EndpointKind::Reader).is_err_and(|error| error.contains("only writers")), "{key}");
        }
        assert_eq!(of("time_filter_ms", EndpointKind::Reader), Ok(()));
        assert!(of("time_filter_ms", EndpointKind::Writer).is_err_and(|error| error.contains("only readers")));
    }
}
