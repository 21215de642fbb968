//! Endpoints that change their PARTITION while they live (DDS 1.4 §2.2.3.13).

use thalweg_rtps::time::Instant;

use crate::plan::{ReaderPlan, WriterPlan};
use crate::simulation::Simulation;

/// The partitions of an endpoint before those of its QoS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierPartition {
    /// Their names.
    pub names: Vec<String>,
    /// When the application sets the others.
    pub until: Instant,
}

impl EarlierPartition {
    /// The partitions of an endpoint at a time, which has `later` ones in the end.
    pub(crate) fn at(now: Instant, earlier: Option<&EarlierPartition>, later: &[String]) -> Vec<String> {
        earlier.filter(|earlier| now < earlier.until).map_or(later, |earlier| &earlier.names).to_vec()
    }
}

impl WriterPlan {
    /// The same with the partitions that it has first, if they are others.
    pub fn before(&self) -> Option<WriterPlan> {
        let mut before = self.clone();
        before.qos.partition = self.earlier.clone()?.names;
        Some(before)
    }
}

impl ReaderPlan {
    /// The same with the partitions that it has first, if they are others.
    pub fn before(&self) -> Option<ReaderPlan> {
        let mut before = self.clone();
        before.qos.partition = self.earlier.clone()?.names;
        Some(before)
    }
}

impl Simulation {
    pub(crate) fn set_writer_qos(&mut self, number: usize) {
        let (index, process) = (self.writers[number].record.index, self.writers[number].record.process);
        let Some(handle) = &self.writers[number].handle else { return };
        let entity = handle.lock().guid().entity;
        let now = self.processes[process].local(self.now);
        let qos = self.plan.topics[index.topic].writers[index.place].qos.clone();
        self.note(process, format!("moves writer {number} to partition {:?}", qos.partition));
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
        self.note(process, format!("moves reader {number} to partition {:?}", qos.partition));
        let Some(participant) = self.processes[process].participant.as_mut() else { return };
        if let Err(error) = participant.set_reader_qos(now, entity, qos.into()) {
            self.breach(format!("reader {number} may not change: {error}"));
        }
        self.drive(process);
    }
}
