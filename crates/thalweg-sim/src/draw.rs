//! Draws a plan from a seed, as far as a test has not fixed it.

use std::time::Duration;

use thalweg_rtps::qos::{
    BACKGROUND, Durability, History, Limits, Method, ReaderQos, Reliability, ResourceLimits, WriterQos,
};
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{Keyed, SequenceNumber};

use crate::clock::HostClock;
use crate::draw_changing::{CHANGING_SEEDS_FROM, draw_changing};
use crate::draw_policies::{POLICY_SEEDS_FROM, draw_with_policies};
use crate::draw_wide::{WIDE_SEEDS_FROM, draw_crowd, draw_troubles};
use crate::network::{GroupFilter, IpVersion, Weather};
use crate::plan::{
    Cut, Ending, Habits, InstanceSharing, Pace, Plan, ProcessPlan, ReaderPlan, SendTimes, SplitPlan, Stamps, TopicPlan,
    WriterPlan,
};

/// Properties of a world that a test fixes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) hosts: Option<usize>,
    pub(crate) processes: Option<usize>,
    pub(crate) topics: Option<usize>,
    pub(crate) writers: Option<usize>,
    pub(crate) readers: Option<usize>,
    pub(crate) samples: Option<u32>,
    pub(crate) payload_bytes: Option<usize>,
    pub(crate) reliable: Option<bool>,
    pub(crate) durable: Option<bool>,
    pub(crate) history: Option<History>,
    pub(crate) method: Option<Method>,
    pub(crate) loss: Option<f64>,
    pub(crate) weather: Option<Weather>,
    pub(crate) calm: bool,
}

/// The lease of every process: longer than any split, so that no live process is taken for dead.
const LEASE: Duration = Duration::from_secs(20);
/// The lease in worlds in which a process ends: others wait no longer for it.
const SHORT_LEASE: Duration = Duration::from_secs(10);

pub(crate) fn draw(seed: u64, fixed: &Fixed) -> Plan {
    if seed >= CHANGING_SEEDS_FROM {
        return draw_changing(seed);
    }
    if seed >= POLICY_SEEDS_FROM {
        return draw_with_policies(seed);
    }
    let mut rng = Rng::new(seed ^ 0x7e57_5eed);
    let mut wide = (seed >= WIDE_SEEDS_FROM && !fixed.calm).then(|| Rng::new(seed ^ 0x7769_6465));
    let processes = fixed.processes.unwrap_or_else(|| match &mut wide {
        Some(wide) => draw_crowd(wide),
        None => 2 + rng.below(4) as usize,
    });
    let hosts = fixed.hosts.unwrap_or_else(|| 1 + rng.below(processes as u64) as usize);
    let mut plan = Plan {
        seed,
        hosts: (0..hosts).map(|_| draw_clock(&mut rng)).collect(),
        links: Vec::new(),
        processes: (0..processes).map(|number| draw_process(&mut rng, number, hosts)).collect(),
        topics: Vec::new(),
        family: if rng.chance(0.2) { IpVersion::V6 } else { IpVersion::V4 },
        weather: draw_weather(&mut rng, fixed),
        splits: Vec::new(),
        pauses: Vec::new(),
        moves: Vec::new(),
        paths: Vec::new(),
        intruders: Vec::new(),
        group_filter: if rng.chance(0.8) { GroupFilter::Nothing } else { GroupFilter::Everything },
        patience: Duration::from_secs(60),
    };
    let topics = fixed.topics.unwrap_or_else(|| 1 + rng.below(3) as usize);
    plan.topics = (0..topics).map(|number| draw_topic(&mut rng, number, processes, fixed)).collect();
    if !fixed.calm {
        draw_trouble(&mut rng, &mut plan);
    }
    // From a source of their own, so that a seed's world is else the same whatever the methods are.
    let mut rng = Rng::new(seed ^ 0x6d65_7468);
    for writer in plan.topics.iter_mut().flat_map(|topic| &mut topic.writers) {
        let drawn = draw_method(&mut rng);
        writer.qos.transmission.method = fixed.method.clone().unwrap_or(drawn);
    }
    if let Some(wide) = &mut wide {
        draw_troubles(wide, &mut plan);
    }
    if !fixed.calm {
        draw_households(&mut Rng::new(seed ^ 0x726f_6f66), &mut plan);
    }
    if wide.is_some() {
        draw_sends(&mut Rng::new(seed ^ 0x7365_6e64), &mut plan);
    }
    plan
}

/// In a few worlds most participants of a host share a household.
pub(crate) fn draw_households(rng: &mut Rng, plan: &mut Plan) {
    if rng.chance(0.05) {
        for process in &mut plan.processes {
            process.household = rng.chance(0.8).then_some(process.host);
        }
    }
}

/// In some worlds other threads of a process act while one of its applications sends.
pub(crate) fn draw_sends(rng: &mut Rng, plan: &mut Plan) {
    if rng.chance(0.15) {
        let [datagram, interruption] = [pick(rng, [5, 50, 500]), pick(rng, [1_000, 30_000, 100_000])];
        let (datagram, interruption) = (Duration::from_micros(datagram), Duration::from_micros(interruption));
        let sends = SendTimes { datagram, interrupted: pick(rng, [0.01, 0.1, 0.5]), interruption };
        plan.processes.iter_mut().for_each(|process| process.sends = sends);
    }
}

pub(crate) fn draw_method(rng: &mut Rng) -> Method {
    let limits = Limits {
        max_bytes: pick(rng, [500, 5_000, 60_000]),
        max_samples: pick(rng, [3, 20, usize::MAX]),
        max_flush_delay: pick(rng, [100, 1_000, 50_000].map(Duration::from_micros)),
    };
    match rng.below(6) {
        0 => Method::Immediate,
        1 => Method::Coalesce(limits),
        2 | 3 => Method::Batch(limits),
        4 => Method::asynchronous(BACKGROUND),
        _ => Method::Auto,
    }
}

fn draw_clock(rng: &mut Rng) -> HostClock {
    HostClock { offset_nanos: rng.below(1 << 45), drift_ppm: 200 - rng.below(401) as i32 }
}

fn draw_process(rng: &mut Rng, number: usize, hosts: usize) -> ProcessPlan {
    let latest = if rng.chance(0.7) { 100 } else { 3_000 };
    ProcessPlan {
        host: number % hosts,
        starts: milliseconds(rng.below(latest)),
        ends: None,
        receive_buffer_bytes: pick(rng, [65_536, 212_992, 1 << 20, 4 << 20]),
        datagram_cost: Duration::from_nanos(pick(rng, [500, 3_000, 20_000, 100_000])),
        lease_duration: LEASE,
        succeeds: None,
        groups: Vec::new(),
        first_count: 1,
        household: None,
        controller: None,
        sends: SendTimes::NONE,
        sets: None,
        store: None,
    }
}

pub(crate) fn draw_weather(rng: &mut Rng, fixed: &Fixed) -> Weather {
    let drawn = Weather {
        loss: if rng.chance(0.4) { 0.0 } else { rng.below(300) as f64 / 1000.0 },
        loss_run: 1,
        duplication: if rng.chance(0.5) { 0.0 } else { rng.below(100) as f64 / 1000.0 },
        reordering: if rng.chance(0.5) { 0.0 } else { rng.below(100) as f64 / 1000.0 },
        corruption: 0.0,
        latency: Duration::from_micros(pick(rng, [30, 200, 2_000, 20_000])),
        jitter: Duration::from_micros(pick(rng, [0, 10, 500, 5_000])),
    };
    let weather = fixed.weather.unwrap_or(drawn);
    Weather { loss: fixed.loss.unwrap_or(weather.loss), ..weather }
}

/// QoS common to a topic's endpoints.
struct Kind {
    reliable: bool,
    durable: bool,
    history: History,
}

fn draw_topic(rng: &mut Rng, number: usize, processes: usize, fixed: &Fixed) -> TopicPlan {
    let kind = Kind {
        reliable: fixed.reliable.unwrap_or_else(|| rng.chance(0.8)),
        durable: fixed.durable.unwrap_or_else(|| rng.chance(0.4)),
        history: fixed.history.unwrap_or_else(|| match rng.below(10) {
            0..6 => History::KeepAll,
            depth => History::KeepLast([1, 1, 3, 10][depth as usize - 6]),
        }),
    };
    let keyed = if rng.chance(0.5) { Keyed::Yes } else { Keyed::No };
    let writers = fixed.writers.unwrap_or_else(|| 1 + rng.below(2) as usize);
    let readers = fixed.readers.unwrap_or_else(|| 1 + rng.below(3) as usize);
    TopicPlan {
        name: format!("topic{number}"),
        keyed,
        instances: if rng.chance(0.2) { InstanceSharing::Shared } else { InstanceSharing::Own },
        writers: (0..writers).map(|_| draw_writer(rng, &kind, processes, fixed)).collect(),
        readers: (0..readers).map(|_| draw_reader(rng, &kind, processes, fixed)).collect(),
    }
}

fn draw_writer(rng: &mut Rng, kind: &Kind, processes: usize, fixed: &Fixed) -> WriterPlan {
    let large = rng.chance(0.15);
    let payload_bytes = match large {
        true => 1_000 + rng.below(150_000) as usize,
        false => {
            let most = pick(rng, [50, 500, 2_000]);
            16 + rng.below(most) as usize
        }
    };
    let max_samples = rng.chance(0.5).then(|| 10 + rng.below(50) as u32);
    let blocking = Duration::from_millis(pick(rng, [100, 1_000]));
    let qos = WriterQos {
        reliability: match kind.reliable {
            true => Reliability::Reliable { max_blocking_time: blocking },
            false => Reliability::BestEffort,
        },
        durability: if kind.durable { Durability::TransientLocal } else { Durability::Volatile },
        history: kind.history,
        resource_limits: ResourceLimits {
            // A durable KEEP_ALL writer with a limit is full for ever once it is full.
            max_samples: max_samples.filter(|_| kind.history == History::KeepAll && !kind.durable),
            ..ResourceLimits::default()
        },
        ..WriterQos::default()
    };
    let first_write = 200 + rng.below(1_500);
    let burst = if rng.chance(0.3) { 1 + rng.below(40) as u32 } else { 1 };
    let samples = if large { 2 + rng.below(8) } else { 10 + rng.below(120) };
    WriterPlan {
        process: rng.below(processes as u64) as usize,
        created: milliseconds(rng.below(first_write)),
        deleted: None,
        qos,
        earlier: None,
        first_write: milliseconds(first_write),
        samples: fixed.samples.unwrap_or(samples as u32),
        period: Duration::from_micros(500 + rng.below(40_000)) * burst.div_ceil(4),
        burst,
        payload_bytes: fixed.payload_bytes.unwrap_or(payload_bytes),
        instances: 1 + rng.below(5) as u8,
        endings: if rng.chance(0.3) { 0.1 } else { 0.0 },
        stamps: Stamps::Absent,
        first: SequenceNumber::FIRST,
        habits: Habits::default(),
    }
}

fn draw_reader(rng: &mut Rng, kind: &Kind, processes: usize, fixed: &Fixed) -> ReaderPlan {
    // A few readers request QoS that their writers may not offer.
    let bold = !fixed.calm && rng.chance(0.08);
    let reliable = if bold { rng.chance(0.5) } else { kind.reliable && rng.chance(0.85) };
    let durable = if bold { rng.chance(0.5) } else { kind.durable && rng.chance(0.8) };
    let history = if reliable && rng.chance(0.85) { kind.history } else { History::KeepLast(1 + rng.below(5) as u32) };
    let limited = history == History::KeepAll && rng.chance(0.3);
    let pace = match rng.below(10) {
        0..8 => Pace::Eager(Duration::from_micros(pick(rng, [0, 50, 1_000]))),
        _ => {
            Pace::Polling { period: Duration::from_millis(1 + rng.below(50)), samples_max: pick(rng, [5, usize::MAX]) }
        }
    };
    ReaderPlan {
        process: rng.below(processes as u64) as usize,
        created: milliseconds(if rng.chance(0.6) { rng.below(200) } else { rng.below(4_000) }),
        deleted: None,
        qos: ReaderQos {
            reliability: if reliable { Reliability::RELIABLE } else { Reliability::BestEffort },
            durability: if durable { Durability::TransientLocal } else { Durability::Volatile },
            history,
            resource_limits: ResourceLimits {
                max_samples: limited.then(|| 3 + rng.below(20) as u32),
                ..ResourceLimits::default()
            },
            ..ReaderQos::default()
        },
        earlier: None,
        pace,
        filter: None,
    }
}

/// Splits, ends, deleted endpoints, partitions and hanging applications.
fn draw_trouble(rng: &mut Rng, plan: &mut Plan) {
    if plan.hosts.len() > 1 && rng.chance(0.3) {
        let from = 300 + rng.below(2_500);
        let hosts = 1 + rng.below((1 << plan.hosts.len()) - 2);
        let length = pick(rng, [200, 1_000, 8_000]);
        let until = milliseconds(from + 100 + rng.below(length));
        plan.splits.push(SplitPlan { from: milliseconds(from), until, hosts, cut: Cut::BothWays });
    }
    // The farewell of a process that ends in a split is lost: the others would wait for its lease.
    if plan.processes.len() > 2 && plan.splits.is_empty() && rng.chance(0.4) {
        let process = rng.below(plan.processes.len() as u64) as usize;
        let at = plan.processes[process].starts + Duration::from_millis(500 + rng.below(2_000));
        let ending = if rng.chance(0.5) { Ending::Leaves } else { Ending::Vanishes };
        plan.processes[process].ends = Some((at, ending));
        plan.processes.iter_mut().for_each(|process| process.lease_duration = SHORT_LEASE);
    }
    for topic in &mut plan.topics {
        draw_topic_trouble(rng, topic);
        // The others must be able to go on: a writer whose only reliable reader hangs has to wait.
        let somebody_ends = plan.processes.iter().any(|process| process.ends.is_some());
        let staying = |reader: &&ReaderPlan| reader.qos.reliability.is_reliable() && reader.deleted.is_none();
        let others = topic.readers.iter().skip(1).filter(staying).count();
        if rng.chance(0.07) && others > 0 && !somebody_ends && !topic.has_partitions() {
            topic.readers[0].pace = Pace::Never;
            topic.writers.iter_mut().for_each(|writer| writer.qos.reader_patience = HANGING_PATIENCE);
        }
    }
}

fn draw_topic_trouble(rng: &mut Rng, topic: &mut TopicPlan) {
    if rng.chance(0.1) {
        let names = ["", "a", "ab", "a*", "[ab]", "b?"];
        let mut draw = || if rng.chance(0.5) { Vec::new() } else { vec![pick(rng, names).to_string()] };
        topic.writers.iter_mut().for_each(|writer| writer.qos.partition = draw());
        topic.readers.iter_mut().for_each(|reader| reader.qos.partition = draw());
    }
    if rng.chance(0.1) {
        let place = rng.below(topic.writers.len() as u64) as usize;
        topic.writers[place].deleted = Some(milliseconds(1_000 + rng.below(3_000)));
    }
    if rng.chance(0.1) {
        let place = rng.below(topic.readers.len() as u64) as usize;
        topic.readers[place].deleted = Some(milliseconds(1_000 + rng.below(4_000)));
    }
}

pub(crate) fn pick<T: Copy, const N: usize>(rng: &mut Rng, from: [T; N]) -> T {
    from[rng.below(N as u64) as usize]
}

/// Patience of writers with a reader whose application hangs; without an end they would wait for ever.
const HANGING_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn milliseconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(count)
}
