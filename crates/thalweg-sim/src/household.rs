//! Participants that share a household: they tell each other of their endpoints in memory, and refuse announcements that all of them
//! know.

use std::time::Duration;

use thalweg_rtps::wire::write::{HEADER_LEN, PAD};

use crate::simulation::{Happening, Simulation};

/// Time until the thread of another participant of the process runs.
const WAKE_LATENCY: Duration = Duration::from_micros(20);

impl Simulation {
    /// Lets the housemates of `process` look at what it has told, those that are paused later.
    pub(crate) fn wake_housemates(&mut self, process: usize) {
        for other in (0..self.processes.len()).filter(|other| self.plan.are_housemates(process, *other)) {
            let participant = self.processes[other].participant.as_ref();
            if participant.is_some_and(|participant| participant.household_news().is_set()) {
                self.queue.plan(self.now + WAKE_LATENCY, Happening::HearHousemates(other));
            }
        }
    }

    pub(crate) fn hear_housemates(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let now = process.local(self.now);
        let Some(participant) = process.participant.as_mut() else { return };
        participant.handle_household(now);
        self.drive(number);
    }

    /// Whether the filter on the sockets of `process` drops a datagram: an announcement of its household, marked as a repetition.
    pub(crate) fn is_refused_repetition(&self, process: usize, bytes: &[u8]) -> bool {
        let marked = bytes.get(HEADER_LEN..).is_some_and(|submessages| submessages.starts_with(&PAD));
        let is_sender = |other: &usize| bytes[..HEADER_LEN].ends_with(&self.processes[*other].record.prefix.0);
        marked && (0..self.processes.len()).any(|other| self.plan.are_housemates(process, other) && is_sender(&other))
    }
}
