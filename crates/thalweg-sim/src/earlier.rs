//! Endpoints that change policies that decide whether they match: PARTITION and LATENCY_BUDGET (DDS 1.4 §2.2.3).

use std::time::Duration;

use thalweg_rtps::qos::{ReaderQos, WriterQos};
use thalweg_rtps::time::Instant;

use crate::plan::{ReaderPlan, WriterPlan};
use crate::simulation::Simulation;

/// The policies of an endpoint before those of its QoS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierPolicies {
    /// The names of its partitions.
    pub partition: Vec<String>,
    /// Its LATENCY_BUDGET.
    pub latency_budget: Duration,
    /// When the application sets the others.
    pub until: Instant,
}

impl WriterPlan {
    /// The same with the policies that it has first, if they change.
    pub fn before(&self) -> Option<WriterPlan> {
        let earlier = self.earlier.clone()?;
        let mut before = self.clone();
        (before.qos.partition, before.qos.timing.latency_budget) = (earlier.partition, earlier.latency_budget);
        Some(before)
    }

    /// Its QoS at a time.
    pub(crate) fn qos_at(&self, now: Instant) -> WriterQos {
        let changes = self.earlier.as_ref().is_some_and(|earlier| now < earlier.until);
        self.before().filter(|_| changes).map_or_else(|| self.qos.clone(), |before| before.qos)
    }
}

impl ReaderPlan {
    /// The same with the policies that it has first, if they change.
    pub fn before(&self) -> Option<ReaderPlan> {
        let earlier = self.earlier.clone()?;
        let mut before = self.clone();
        (before.qos.partition, before.qos.timing.latency_budget) = (earlier.partition, earlier.latency_budget);
        Some(before)
    }

    /// Its QoS at a time.
    pub(crate) fn qos_at(&self, now: Instant) -> ReaderQos {
        let changes = self.earlier.as_ref().is_some_and(|earlier| now < earlier.until);
        self.before().filter(|_| changes).map_or_else(|| self.qos.clone(), |before| before.qos)
    }
}

impl Simulation {
    pub(crate) fn set_writer_qos(&mut self, number: usize) {
        let (index, process) = (self.writers[number].record.index, self.writers[number].record.process);
        let Some(handle) = &self.writers[number].handle else { return };
        let entity = handle.lock().guid().entity;
        let now = self.processes[process].local(self.now);
        let qos = self.plan.topics[index.topic].writers[index.place].qos.clone();
        self.note(process, format!("gives writer {number} {}", told(&qos.partition, qos.timing.latency_budget)));
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        if let Err(error) = participant.set_writer_qos(now, entity, qos.into()) {
            self.breach(format!("writer {number} may not change: {error}"));
        }
        self.drive(process);
    }

    pub(crate) fn set_reader_qos(&mut self, number: usize) {
        let (index, process) = (self.readers[number].record.index, self.readers[number].record.process);
        let Some(handle) = &self.readers[number].handle else { return };
        let entity = handle.lock().guid().entity;
        let now = self.processes[process].local(self.now);
        let qos = self.plan.topics[index.topic].readers[index.place].qos.clone();
        self.note(process, format!("gives reader {number} {}", told(&qos.partition, qos.timing.latency_budget)));
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        if let Err(error) = participant.set_reader_qos(now, entity, qos.into()) {
            self.breach(format!("reader {number} may not change: {error}"));
        }
        self.drive(process);
    }
}

/// The policies that change, in a few words.
pub(crate) fn told(partition: &[String], latency_budget: Duration) -> String {
    match latency_budget {
        Duration::ZERO => format!("partition {partition:?}"),
        budget => format!("partition {partition:?} and a budget of {budget:?}"),
    }
}
