//! Messages between the controller and the processes of a run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_host::ProcessUsage;

use crate::channel::{Keep, SampleChannel};
use crate::closed_loop::ClosedLoop;
use crate::timetable::Timetable;

/// The first message to a process of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order<Setup> {
    /// Settings of the middleware.
    pub setup: Setup,
    /// QoS of the samples.
    pub qos: Qos,
    /// When samples are due.
    pub timetable: Timetable,
    /// The pace of the timetable.
    pub pace: TimetablePace,
    /// Publishers write as fast as they may, between the beginning and the end of the timetable; missing means when samples are due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoop>,
    /// The publishers that live in this process.
    pub publishers: Vec<PublisherPlace>,
    /// The subscribers that live in it.
    pub subscribers: Vec<SubscriberPlace>,
    /// Folder for the records of its endpoints.
    pub folder: PathBuf,
    /// What the process publishes for the samples that its only subscriber takes.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub onward: Option<Box<Onward<Setup>>>,
}

/// What a process publishes for the samples that it takes: one for each number that all its publishers have sent, with that number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Onward<Setup> {
    /// The order of its only publisher, whose timetable says when the samples were due that lead to its own.
    pub order: Order<Setup>,
    /// CPU time that the process spends on each sample before it publishes.
    #[serde(rename = "work_ns", with = "nanoseconds")]
    pub work: Duration,
}

/// Serde asks for a default of a type that need not have one itself.
fn none<T>() -> Option<T> {
    None
}

impl<Setup> Order<Setup> {
    /// Name of the process within a run: its first endpoint.
    pub fn process_name(&self) -> String {
        match (self.publishers.first(), self.subscribers.first()) {
            (Some(publisher), _) => format!("publisher-{:03}", publisher.index),
            (None, subscriber) => format!("subscriber-{:03}", subscriber.map_or(0, |one| one.index)),
        }
    }

    /// The same with all its folders within `root`.
    #[must_use]
    pub fn within(self, root: &Path) -> Order<Setup> {
        let onward = self.onward.map(|onward| {
            let Onward { order, work } = *onward;
            Box::new(Onward { order: order.within(root), work })
        });
        Order { folder: root.join(&self.folder).components().collect(), onward, ..self }
    }

    /// The channel of one of its topics.
    pub(crate) fn channel(&self, topic: &str) -> SampleChannel {
        SampleChannel {
            keep: match self.qos.history {
                HistorySetting::KeepLast(depth) => Keep::Last(depth),
                HistorySetting::KeepAll(room) => Keep::AllOf(room),
            },
            best_effort: self.qos.reliability == ReliabilitySetting::BestEffort,
            max_blocking: self.qos.max_blocking,
            is_measured: true,
            ..SampleChannel::reliable(topic)
        }
    }
}

/// QoS of the samples, at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qos {
    /// Whether lost samples are sent again. Default reliable.
    pub reliability: ReliabilitySetting,
    /// History of writers and readers. Default all, up to 256 samples.
    pub history: HistorySetting,
    /// Longest wait of a write for room. Default 10 s.
    #[serde(rename = "max_blocking_ns", with = "nanoseconds")]
    pub max_blocking: Duration,
}

/// Whether lost samples are sent again. Not DDS's own policy, which carries the blocking time as well, and which the programs of other
/// middleware that share this crate do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReliabilitySetting {
    /// BEST_EFFORT.
    BestEffort,
    /// RELIABLE.
    Reliable,
}

/// History of writers and readers. Not DDS's own policy, in which the room of KEEP_ALL is a policy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistorySetting {
    /// KEEP_LAST with this depth.
    KeepLast(u32),
    /// KEEP_ALL with room for so many samples; a write waits while there is none.
    KeepAll(u32),
}

/// The pace of a timetable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimetablePace {
    /// A sample that cannot be written within this time after it was due is not sent at all.
    #[serde(rename = "behind_max_ns", with = "nanoseconds")]
    pub behind_max: Duration,
    /// The way in which a publisher waits for the time of a sample.
    pub wake: Wake,
    /// Subscribers wait for missing samples until nothing came for so long.
    #[serde(rename = "drain_ns", with = "nanoseconds")]
    pub drain: Duration,
    /// Time limit for endpoints to match.
    #[serde(rename = "match_ns", with = "nanoseconds")]
    pub matching: Duration,
}

/// The way in which a publisher waits for the time of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// It sleeps to the end; the timer's lateness counts as schedule lag.
    Sleep,
    /// It looks at the clock for the last 200 µs: no lateness, for CPU time that others may miss.
    Spin,
}

/// A publisher: its CPU and its readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherPlace {
    /// Its number among the publishers, from 0.
    pub index: u32,
    /// The logical CPU it is bound to.
    pub cpu: Option<usize>,
    /// Its topic.
    pub topic: String,
    /// Readers that it waits for.
    pub readers: usize,
}

/// A subscriber: its CPU and its writers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberPlace {
    /// Its number among the subscribers, from 0.
    pub index: u32,
    /// The logical CPU it is bound to.
    pub cpu: Option<usize>,
    /// Its topics; of several topics the samples are handled one at a time, as by an executor of one thread.
    pub topics: Vec<String>,
    /// Numbers of the publishers that it hears.
    pub writers: Vec<u32>,
}

/// A later message to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StationCommand {
    /// The time zero of the schedule on the host's monotonic clock.
    Start {
        /// In nanoseconds.
        origin_ns: u64,
    },
    /// All publishers are through; so many samples of each were written, those of the warm-up included.
    Drain {
        /// By number of the publisher.
        written: Vec<u64>,
    },
    /// All subscribers are through.
    Finish,
}

/// Progress of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// All its endpoints found all their partners.
    Matched,
    /// Its publishers are through; of a process that publishes for the samples that it takes once more, after its subscriber is.
    Published(Vec<PublisherReport>),
    /// Its subscribers expect nothing more.
    Drained,
}

/// The result of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its subscribers.
    pub subscribers: Vec<SubscriberReport>,
    /// From the first measured sample to the last.
    pub usage: ProcessUsage,
}

/// Counts of a publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublisherReport {
    /// Its number.
    pub index: u32,
    /// Samples written, the warm-up included.
    pub written: u64,
    /// Writes that found no room in time.
    pub refused: u64,
    /// Whether all readers acknowledged everything in the end.
    pub acknowledged: bool,
    /// Its counters on the wire.
    pub effort: WriterEffort,
    /// What its ways cost by the middleware's own account, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_costs: Option<LinkCosts>,
}

/// What a writer's ways cost by the middleware's own account: nanoseconds for which links are busy for each byte of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCosts {
    /// A copy for each reader, in thousandths.
    pub unicast_milli: u64,
    /// The group of all readers, in thousandths.
    pub multicast_milli: u64,
}

/// Counts of a subscriber besides its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// Its number.
    pub index: u32,
    /// Samples that newer ones took the place of before they were taken.
    pub overwritten: u64,
    /// Best-effort samples that arrived and found the reader's history full, those of the warm-up included: they are lost
    /// there.
    #[serde(default)]
    pub rejected: u64,
    /// Arrivals beyond those that were kept.
    pub unkept: u64,
}

/// Counters of a writer on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterEffort {
    /// Submessages with samples or fragments, sent for the first time.
    pub transmitted: u64,
    /// The same, sent again.
    pub repaired: u64,
    /// HEARTBEATs.
    pub heartbeats: u64,
    /// Acknowledgements handled.
    pub acknacks: u64,
    /// Samples that KEEP_LAST overwrote before every reader had acknowledged them.
    pub overwritten: u64,
}

/// Durations as whole nanoseconds.
mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{HistorySetting, Order, Qos, ReliabilitySetting, StationCommand, Word};
    use crate::channel::Keep;

    /// The order that `peers/README.md` shows.
    const DOCUMENTED: &str = r#"{"setup":{"domain":20},"qos":{"reliability":"reliable","history":{"keep_last":10},"max_blocking_ns":10000000000},"timetable":{"rate_hz":100.0,"publishers":1,"phase":"spread","first":100,"count":2000},"pace":{"behind_max_ns":1000000000,"wake":"sleep","drain_ns":1000000000,"match_ns":30000000000},"publishers":[],"subscribers":[{"index":0,"cpu":1,"topics":["thalweg_lab_scenario"],"writers":[0]}],"folder":"/tmp/run"}"#;

    #[test]
    fn an_order_is_what_the_documentation_shows() {
        let order: Order<serde_json::Value> = serde_json::from_str(DOCUMENTED).expect("an order");
        assert_eq!(serde_json::to_string(&order).expect("JSON"), DOCUMENTED);
    }

    #[test]
    fn delivery_is_what_the_order_says() {
        let check = |reliability, history, keep: Keep, best_effort: bool| {
            let mut order: Order<serde_json::Value> = serde_json::from_str(DOCUMENTED).expect("an order");
            order.qos = Qos { reliability, history, max_blocking: Duration::from_millis(5) };
            let channel = order.channel("t");
            assert_eq!((channel.keep, channel.best_effort), (keep, best_effort));
            assert_eq!((channel.topic.as_str(), channel.max_blocking), ("t", Duration::from_millis(5)));
        };
        check(ReliabilitySetting::Reliable, HistorySetting::KeepLast(10), Keep::Last(10), false);
        check(ReliabilitySetting::BestEffort, HistorySetting::KeepAll(7), Keep::AllOf(7), true);
    }

    #[track_caller]
    fn check(value: &impl serde::Serialize, expect: &str) {
        assert_eq!(serde_json::to_string(value).expect("JSON"), expect);
    }

    #[test]
    fn commands_and_words_are_what_the_documentation_shows() {
        check(&StationCommand::Start { origin_ns: 7 }, r#"{"start":{"origin_ns":7}}"#);
        check(&StationCommand::Drain { written: vec![5] }, r#"{"drain":{"written":[5]}}"#);
        check(&StationCommand::Finish, r#""finish""#);
        check(&Word::Matched, r#""matched""#);
        check(&Word::Published(Vec::new()), r#"{"published":[]}"#);
        check(&Word::Drained, r#""drained""#);
    }
}
