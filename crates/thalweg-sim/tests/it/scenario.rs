//! Worlds that are built by hand.

use std::time::Duration;

use thalweg_rtps::qos::{Durability, History, ReaderQos, Reliability, ResourceLimits, WriterQos};
use thalweg_rtps::time::Instant;
use thalweg_sim::plan::{Cut, Plan, ReaderPlan, SplitPlan, TopicPlan, WriterPlan};
use thalweg_sim::trace::Detail;
use thalweg_sim::{WorldOutcome, run};

/// Reliable KEEP_ALL with at most so many samples.
pub fn keep_all(samples_max: Option<u32>) -> WriterQos {
    WriterQos { history: History::KeepAll, resource_limits: at_most(samples_max), ..WriterQos::default() }
}

/// A reader to go with it.
pub fn reads_all(samples_max: Option<u32>) -> ReaderQos {
    ReaderQos {
        reliability: Reliability::RELIABLE,
        history: History::KeepAll,
        resource_limits: at_most(samples_max),
        ..ReaderQos::default()
    }
}

/// The same for readers that want what was written before they came.
pub fn durable(writer: WriterQos, reader: ReaderQos) -> (WriterQos, ReaderQos) {
    let durability = Durability::TransientLocal;
    (WriterQos { durability, ..writer }, ReaderQos { durability, ..reader })
}

pub fn writer(process: usize, qos: WriterQos) -> WriterPlan {
    WriterPlan { qos, ..WriterPlan::new(process) }
}

pub fn reader(process: usize, qos: ReaderQos) -> ReaderPlan {
    ReaderPlan { qos, ..ReaderPlan::new(process) }
}

/// One topic in a world of so many hosts, each with one process.
pub fn plan(hosts: usize, writers: Vec<WriterPlan>, readers: Vec<ReaderPlan>) -> Plan {
    let topic = TopicPlan { writers, readers, ..TopicPlan::new("topic") };
    Plan { topics: vec![topic], ..Plan::new(1, hosts) }
}

/// Cuts one host off from the others.
pub fn cut_off(host: usize, from_ms: u64, until_ms: u64) -> SplitPlan {
    SplitPlan { from: at_ms(from_ms), until: at_ms(until_ms), hosts: 1 << host, cut: Cut::BothWays }
}

pub fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

/// Lets it happen and checks every law.
#[track_caller]
pub fn check(plan: Plan) -> WorldOutcome {
    let outcome = run(plan, Detail::Tail);
    outcome.check_all();
    outcome
}

fn at_most(samples_max: Option<u32>) -> ResourceLimits {
    ResourceLimits { max_samples: samples_max, ..ResourceLimits::default() }
}
