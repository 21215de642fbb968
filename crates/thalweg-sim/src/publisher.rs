//! Publishers whose writers write coherent sets together (PRESENTATION of GROUP scope).

use std::time::Duration;

use thalweg_rtps::time::Instant;

use crate::application::stamp;
use crate::calls::Then;
use crate::record::SetRecord;
use crate::simulation::{Happening, Simulation};

/// When the application of a process begins and ends coherent sets of all its writers of GROUP scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetTimes {
    /// When the first one begins; the writers are there by then.
    pub from: Instant,
    /// Time from the beginning of a set to its end.
    pub lasts: Duration,
    /// Time from the end of a set to the beginning of the next one.
    pub pause: Duration,
    /// None begins later.
    pub until: Instant,
}

impl Simulation {
    pub(crate) fn begin_set(&mut self, process: usize) {
        let Some(times) = self.plan.processes[process].sets else { return };
        let Some((group, _)) = self.processes[process].group() else { return };
        let sets = &mut self.processes[process].record.sets;
        let number = sets.len() as u32;
        sets.push(SetRecord { began: self.now, ended: None });
        let id = group.last().next();
        for writer in self.writers_in_sets(process) {
            if let Some(handle) = self.writers[writer].handle.clone() {
                handle.lock().begin_group_set(id);
                self.writers[writer].publishers_set = Some(number);
            }
        }
        self.note(process, format!("begins set {number}"));
        self.queue.plan(self.now + times.lasts, Happening::EndSet(process));
    }

    pub(crate) fn end_set(&mut self, process: usize) {
        let Some(times) = self.plan.processes[process].sets else { return };
        if self.processes[process].participant.is_none() {
            return;
        }
        self.note(process, "ends its set".to_string());
        let now = self.processes[process].local(self.now);
        for writer in self.writers_in_sets(process) {
            let began = self.writers[writer].publishers_set.take();
            let Some(handle) = self.writers[writer].handle.clone().filter(|_| began.is_some()) else { continue };
            let ended = handle.lock().end_group_set(now, stamp(now));
            if ended {
                self.transmit(writer, Then::EndSet);
            }
        }
        if let Some(set) = self.processes[process].record.sets.last_mut() {
            set.ended = Some(self.now);
        }
        let next = self.now + times.pause;
        if next <= times.until {
            self.queue.plan(next, Happening::BeginSet(process));
        }
    }

    fn writers_in_sets(&self, process: usize) -> Vec<usize> {
        let belongs = |writer: &&usize| {
            let index = self.writers[**writer].record.index;
            let presentation = self.plan.topics[index.topic].writers[index.place].qos.presentation;
            presentation.spans_group() && presentation.coherent
        };
        self.processes[process].writers.iter().filter(belongs).copied().collect()
    }
}
