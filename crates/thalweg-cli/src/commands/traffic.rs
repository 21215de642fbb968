//! `thalweg top`: the traffic of a running domain.

mod owned;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{IsTerminal, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use thalweg::discovery::PublicationData;
use thalweg::types::Guid;
use thalweg::{DataReader, Delivery, DomainParticipant, KeyOf, Raw};
use thalweg_recording::TopicSelection;
use thalweg_recording::demand::Demand;
use thalweg_report::figures::{grouped, rounded};
use thalweg_report::table::Table;

use super::topic::SelectionOptions;
use super::topic::find::shown_name;
use crate::interrupt::Interrupt;
use crate::network_options::MemberOptions;
use crate::outcome::{Failure, InLine, print_either, print_line};
use crate::screen::Screen;
use owned::{Instances, OwnedTypes};

#[derive(Args, Debug)]
#[command(after_help = crate::after_help!(
    "thalweg top",
    "thalweg top '/camera/*' --sort lost --every 5",
    "thalweg top --once --json"
))]
/// Shows the topics of a running domain, of any type and vendor, again and again: writers, readers, and the samples and bytes a second
/// that arrive here or are lost on the way. It reads each topic as one more reader, by best effort and from now on: writers send to
/// it, and never wait for it.
pub struct TrafficOptions {
    #[command(flatten)]
    /// The topics.
    pub selection: SelectionOptions,

    /// Put the topics in this order (default: bytes).
    #[arg(long, value_enum, value_name = "ORDER", default_value = "bytes", hide_default_value = true)]
    pub sort: SortName,

    /// Count for SECONDS before each screen (default: 1).
    #[arg(long, value_name = "SECONDS", default_value = "1", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub every: Duration,

    /// Show the first N topics (default: 40).
    #[arg(long, value_name = "N", default_value = "40", hide_default_value = true)]
    pub rows: usize,

    /// Look for topics for two seconds, count once, show all topics and end (default: go on until Ctrl-C).
    #[arg(long)]
    pub once: bool,

    /// Print one JSON object instead of a table; needs --once (default: a table).
    #[arg(long, requires = "once")]
    pub json: bool,

    #[command(flatten)]
    /// Membership in the domain.
    pub member: MemberOptions,
}

/// Orders of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortName {
    /// Most bytes a second first.
    Bytes,
    /// Most samples a second first.
    Rate,
    /// Most losses a second first.
    Lost,
    /// By name.
    Name,
}

/// What a period has shown.
#[derive(Serialize)]
struct Period {
    participants: usize,
    /// Seconds of counting.
    seconds: f64,
    topics: Vec<TopicTraffic>,
}

#[derive(Serialize)]
struct TopicTraffic {
    name: String,
    /// The name on the wire.
    dds_name: String,
    types: BTreeSet<String>,
    writers: usize,
    readers: usize,
    rate_hz: f64,
    /// Bytes of serialized samples.
    bytes_per_s: f64,
    /// Samples that were written and did not arrive here.
    lost_per_s: f64,
    /// Those since the command was started.
    lost: u64,
    /// Why its samples are not counted; null where all are.
    uncounted: Option<String>,
}

/// Shows the traffic until it is told to end.
///
/// # Errors
/// The domain cannot be joined, or the output cannot be written.
pub fn run(options: &TrafficOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    if options.every.is_zero() {
        return Err(Failure::Usage("--every must be longer than nothing".to_owned()));
    }
    let participant = options.member.participant()?;
    let mut traffic = Traffic::new(&participant, options.selection.selection());
    let screen = (stdout().is_terminal() && !options.once).then(Screen::open);
    if options.once {
        traffic.follow_until(Instant::now() + SETTLING, interrupt);
        traffic.count();
    }
    loop {
        traffic.follow_until(Instant::now() + options.every, interrupt);
        if interrupt.came() {
            return if options.once { Err(Failure::Interrupted) } else { Ok(()) };
        }
        let mut period = traffic.count();
        sort(&mut period.topics, options.sort);
        match &screen {
            Some(screen) => screen.show(&text(&period, options.rows))?,
            None if options.once => return print_either(options.json, &period, text(&period, usize::MAX).trim_end()),
            None => print_line(text(&period, options.rows))?,
        }
    }
}

fn sort(topics: &mut [TopicTraffic], by: SortName) {
    let figure = |topic: &TopicTraffic| match by {
        SortName::Bytes => topic.bytes_per_s,
        SortName::Rate => topic.rate_hz,
        SortName::Lost => topic.lost_per_s,
        SortName::Name => 0.0,
    };
    // Topics come by name, and stay so where the figures are the same.
    topics.sort_by(|one, other| figure(other).total_cmp(&figure(one)));
}

fn text(period: &Period, rows_max: usize) -> String {
    let sum = |of: fn(&TopicTraffic) -> f64| rounded(period.topics.iter().map(of).sum());
    let caption = format!(
        "{} participants, {} topics, {} samples/s, {} B/s, {} lost/s",
        period.participants,
        period.topics.len(),
        sum(|topic| topic.rate_hz),
        sum(|topic| topic.bytes_per_s),
        sum(|topic| topic.lost_per_s)
    );
    let mut table = Table::new(caption, &["topic", "writers", "readers", "Hz", "B/s", "lost/s", "lost", "type"]);
    table.words = vec![7];
    for topic in period.topics.iter().take(rows_max) {
        let types = topic.types.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        table.rows.push(vec![
            InLine(&topic.name).to_string(),
            topic.writers.to_string(),
            topic.readers.to_string(),
            rounded(topic.rate_hz),
            rounded(topic.bytes_per_s),
            rounded(topic.lost_per_s),
            grouped(topic.lost),
            match &topic.uncounted {
                None => InLine(types).to_string(),
                Some(why) => InLine(format_args!("{types}; not counted: {why}")).to_string(),
            },
        ]);
    }
    let hidden = period.topics.len().saturating_sub(rows_max);
    let more = if hidden > 0 { format!("  and {hidden} more\n") } else { String::new() };
    format!("{}{more}", table.to_text())
}

/// Readers of all topics that are meant, and what they have counted.
struct Traffic<'a> {
    participant: &'a DomainParticipant,
    selection: TopicSelection,
    topics: BTreeMap<String, CountedTopic>,
    demands: Demands,
    since: Instant,
}

/// A topic while somebody writes or reads it.
#[derive(Default)]
struct CountedTopic {
    types: BTreeSet<String>,
    writers: usize,
    readers: usize,
    /// A reader for each type and demand of its writers.
    own: Vec<(String, Demand, DataReader<Raw>)>,
    /// The types and demands that its writers have now.
    wanted: Vec<(String, Demand)>,
    /// What tells the instances of its EXCLUSIVE writers apart.
    owned: OwnedTypes,
    /// Losses of readers whose writers have changed or gone.
    lost_before: u64,
    counts: Arc<Counts>,
    /// Samples, bytes and losses before this period.
    before: [u64; 3],
    /// Why some of its writers found no reader in the last look, or are not heard by theirs.
    uncounted: Option<String>,
}

#[derive(Debug, Default)]
struct Counts {
    samples: AtomicU64,
    bytes: AtomicU64,
}

/// What the reader of each writer asks for.
#[derive(Clone, Default)]
struct Demands(Arc<Mutex<HashMap<Guid, Demand>>>);

impl Demands {
    fn lock(&self) -> MutexGuard<'_, HashMap<Guid, Demand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountedTopic {
    fn wants(&self, type_name: &str, demand: &Demand) -> bool {
        self.wanted.iter().any(|(of, same)| of == type_name && same == demand)
    }

    /// Lets go of readers that no writer matches as its own any more. What they lost stays counted.
    fn drop_unwanted(&mut self) {
        for (type_name, demand, reader) in std::mem::take(&mut self.own) {
            if self.wants(&type_name, &demand) {
                self.own.push((type_name, demand, reader));
            } else {
                self.lost_before += lost_of(&reader);
            }
        }
    }

    fn lost(&self) -> u64 {
        self.lost_before + self.own.iter().map(|(.., reader)| lost_of(reader)).sum::<u64>()
    }
}

fn lost_of(reader: &DataReader<Raw>) -> u64 {
    reader.sample_lost().losses.total() + reader.overwritten()
}

impl<'a> Traffic<'a> {
    fn new(participant: &'a DomainParticipant, selection: TopicSelection) -> Traffic<'a> {
        let (topics, demands) = (BTreeMap::new(), Demands::default());
        Traffic { participant, selection, topics, demands, since: Instant::now() }
    }

    /// Looks for topics until `end`, while their readers count.
    fn follow_until(&mut self, end: Instant, interrupt: &Interrupt) {
        loop {
            self.look();
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() || interrupt.came() {
                return;
            }
            std::thread::sleep(rest.min(LOOK_PERIOD));
        }
    }

    fn look(&mut self) {
        let own = self.participant.guid_prefix();
        for topic in self.topics.values_mut() {
            (topic.writers, topic.readers) = (0, 0);
            topic.types.clear();
            topic.wanted.clear();
            topic.owned.begin_look();
            topic.uncounted = None;
        }
        let (publications, subscriptions) = (self.participant.publications(), self.participant.subscriptions());
        let mut writers = HashSet::new();
        for data in publications.iter().map(|known| &known.data) {
            if data.guid.prefix != own && self.selection.has(&data.topic_name) {
                writers.insert(data.guid);
                self.topic(&data.topic_name, &data.type_name).writers += 1;
                self.read(data);
            }
        }
        for data in subscriptions.iter().map(|known| &known.data) {
            if data.guid.prefix != own && self.selection.has(&data.topic_name) {
                self.topic(&data.topic_name, &data.type_name).readers += 1;
            }
        }
        self.topics.retain(|_, topic| topic.writers + topic.readers > 0);
        self.demands.lock().retain(|writer, _| writers.contains(writer));
        for topic in self.topics.values_mut() {
            topic.drop_unwanted();
            topic.owned.end_look(self.participant);
            if topic.uncounted.is_none() {
                topic.uncounted = topic.owned.uncounted().map(str::to_owned);
            }
        }
    }

    fn topic(&mut self, name: &str, type_name: &str) -> &mut CountedTopic {
        let topic = self.topics.entry(name.to_owned()).or_default();
        if !topic.types.contains(type_name) {
            topic.types.insert(type_name.to_owned());
        }
        topic
    }

    /// Lets a reader match a writer, if none does.
    fn read(&mut self, data: &PublicationData) {
        // The least that can be asked for costs the writer least, and shows what is lost on the way.
        let demand = Demand { is_reliable: false, is_durable: false, ..Demand::of(data) };
        let Some(topic) = self.topics.get_mut(&data.topic_name) else { return };
        if !topic.wants(&data.type_name, &demand) {
            topic.wanted.push((data.type_name.clone(), demand.clone()));
        }
        let instances = topic.owned.add_writer(data);
        // One that changes its partition needs another reader.
        if self.demands.lock().insert(data.guid, demand.clone()).as_ref() == Some(&demand) {
            return;
        }
        let readers: usize = self.topics.values().map(|topic| topic.own.len()).sum();
        let Some(topic) = self.topics.get_mut(&data.topic_name) else { return };
        if topic.own.iter().any(|(of, same, _)| *of == data.type_name && *same == demand) {
            return;
        }
        let create = |key_of: Option<KeyOf>| {
            let created = create_reader(self.participant, data, &demand, key_of, (&topic.counts, &self.demands));
            created.map_err(|error| error.to_string())
        };
        let created = match instances {
            _ if readers >= READERS_MAX => Err(format!("{READERS_MAX} readers are there already")),
            Instances::Pending => Err("its type is looked for".to_owned()),
            Instances::One => create(None),
            Instances::ByKey(key_of) => create(Some(key_of)),
        };
        match created {
            Ok(reader) => topic.own.push((data.type_name.clone(), demand, reader)),
            Err(why) => {
                topic.uncounted = Some(why);
                // It is tried again.
                self.demands.lock().remove(&data.guid);
            }
        }
    }

    /// What was counted since the last call.
    fn count(&mut self) -> Period {
        let seconds = self.since.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        self.since = Instant::now();
        let topic = |(name, topic): (&String, &mut CountedTopic)| {
            let counts = &topic.counts;
            let now = [counts.samples.load(Ordering::Relaxed), counts.bytes.load(Ordering::Relaxed), topic.lost()];
            let [samples, bytes, lost] = [0, 1, 2].map(|at| now[at].saturating_sub(topic.before[at]) as f64 / seconds);
            topic.before = now;
            TopicTraffic {
                name: shown_name(name),
                dds_name: name.clone(),
                types: topic.types.clone(),
                writers: topic.writers,
                readers: topic.readers,
                rate_hz: samples,
                bytes_per_s: bytes,
                lost_per_s: lost,
                lost: now[2],
                uncounted: topic.uncounted.clone(),
            }
        };
        let participants = self.participant.discovered_participants().len();
        Period { participants, seconds, topics: self.topics.iter_mut().map(topic).collect() }
    }
}

fn create_reader(
    participant: &DomainParticipant,
    data: &PublicationData,
    demand: &Demand,
    key_of: Option<KeyOf>,
    (counts, demands): (&Arc<Counts>, &Demands),
) -> Result<DataReader<Raw>, thalweg::Error> {
    let (keyed, has_instances) = (data.guid.entity.keyed(), key_of.is_some());
    let topic = participant.create_raw_topic(&data.topic_name, &data.type_name, keyed, key_of);
    let topic = if has_instances { topic } else { topic.without_instances() };
    let (own, counts, demands) = (demand.clone(), Arc::clone(counts), demands.clone());
    let builder = participant.reader_builder(&topic).qos(demand.to_reader_qos()).ignore_own_publications();
    builder
        .hand_over_on_arrival()
        .on_data(Delivery::Inline, move |reader: &DataReader<Raw>| {
            let samples = reader.take(usize::MAX);
            let demands = demands.lock();
            // A writer may match several readers: it counts at the one that was made for it.
            let is_ours = |writer: &Guid| demands.get(writer).is_some_and(|demand| *demand == own);
            for sample in samples.iter().filter(|sample| sample.is_valid() && is_ours(&sample.info().writer)) {
                counts.samples.fetch_add(1, Ordering::Relaxed);
                counts.bytes.fetch_add(sample.bytes().len() as u64, Ordering::Relaxed);
            }
        })
        .create()
}

/// Time in which `--once` finds the topics.
const SETTLING: Duration = Duration::from_secs(2);
/// Interval at which topics are looked for.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// Readers, chosen by us: several times the topics of a large robot.
const READERS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use thalweg::qos::{WriterOwnership, WriterQos};
    use thalweg::types::Keyed;

    use super::*;

    #[test]
    fn what_could_not_be_counted_is_tried_again_and_said_until_it_is() {
        let tag = format!("uncounted-{}", std::process::id());
        let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
        let (here, one, other) = (create(), create(), create());
        let write = |participant: &DomainParticipant, type_name: &str| {
            let topic = participant.create_raw_topic("notes", type_name, Keyed::No, None);
            participant.create_writer(&topic, WriterQos::default()).expect("a writer")
        };
        let mut traffic = Traffic::new(&here, TopicSelection::new(vec!["notes".to_owned()], Vec::new()));
        let mut look_until = |what: &str, is_so: &dyn Fn(&[&str], Option<&str>) -> bool| {
            let until = Instant::now() + Duration::from_secs(30);
            loop {
                traffic.look();
                if let Some(topic) = traffic.topics.get("notes") {
                    let types: Vec<&str> = topic.own.iter().map(|(of, ..)| of.as_str()).collect();
                    if is_so(&types, topic.uncounted.as_deref()) {
                        return;
                    }
                }
                assert!(Instant::now() < until, "{what}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let first = write(&one, "One");
        look_until("the first is counted", &|types, uncounted| types == ["One"] && uncounted.is_none());
        let _second = write(&other, "Two");
        look_until("the second is not", &|types, uncounted| types == ["One"] && uncounted.is_some());
        for _ in 0..3 {
            let looks = std::cell::Cell::new(0);
            look_until("it says so each time", &|_, uncounted| {
                looks.set(looks.get() + 1);
                assert_eq!(looks.get(), 1);
                uncounted.is_some_and(|why| why.contains("One"))
            });
        }
        drop(first);
        look_until("the second is counted", &|types, uncounted| types == ["Two"] && uncounted.is_none());
    }

    #[test]
    fn of_exclusive_writers_whose_type_nobody_describes_one_counts_and_that_is_said() {
        let tag = format!("owned-{}", std::process::id());
        let create = || DomainParticipant::builder(0).loopback_only().domain_tag(&tag).create().expect("a participant");
        let (here, there) = (create(), create());
        let write = |strength: i32| {
            let topic = there.create_raw_topic("robots", "Robot", Keyed::Yes, None);
            let qos = WriterQos::default().ownership(WriterOwnership::Exclusive { strength });
            there.create_writer(&topic, qos).expect("a writer")
        };
        let mut traffic = Traffic::new(&here, TopicSelection::default());
        let mut look_until = |writers: usize, is_so: fn(Option<&str>) -> bool| {
            let until = Instant::now() + Duration::from_secs(30);
            let is_reached = |topic: &CountedTopic| topic.writers == writers && is_so(topic.uncounted.as_deref());
            while !traffic.topics.get("robots").is_some_and(is_reached) {
                assert!(Instant::now() < until, "{writers} writers");
                traffic.look();
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let _one = write(1);
        look_until(1, |uncounted| uncounted.is_none());
        let other = write(2);
        look_until(2, |uncounted| uncounted.is_some_and(|why| why.contains("only the strongest")));
        drop(other);
        look_until(1, |uncounted| uncounted.is_none());
    }
}
