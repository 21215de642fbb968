//! Events of participants, and their handling by the applications and the record.

use thalweg_rtps::participant::Event;
use thalweg_rtps::types::{EntityId, Guid, SequenceNumber};

use crate::network::MTU_BYTES;
use crate::plan::Pace;
use crate::record::MatchRecord;
use crate::simulation::{Happening, Simulation};

impl Simulation {
    pub(crate) fn handle_event(&mut self, process: usize, event: Event) {
        match &event {
            Event::DataAvailable { reader } => return self.data_available(process, *reader),
            Event::SpaceAvailable { writer } => {
                if let Some(number) = self.endpoints.get(&(process, *writer)) {
                    self.writers[*number].told_of_room = true;
                    self.queue.plan(self.now, Happening::Retry(*number));
                }
                return;
            }
            Event::ParticipantDiscovered(prefix) => {
                self.processes[process].record.discovered.entry(*prefix).or_insert(self.now);
            }
            Event::AddressesChosen(prefix) if self.network.mtu_known(self.processes[process].host) < MTU_BYTES => {
                self.measure_path(process, *prefix);
            }
            Event::ParticipantLost { prefix, .. } => {
                self.processes[process].record.lost.push((*prefix, self.now));
            }
            Event::PublicationMatched { writer, reader } => self.match_begins(process, *writer, *reader),
            Event::PublicationUnmatched { writer, reader } => self.match_ends(process, *writer, *reader),
            Event::SubscriptionMatched { reader, writer } => self.match_begins(process, *reader, *writer),
            Event::SubscriptionUnmatched { reader, writer } => self.match_ends(process, *reader, *writer),
            Event::HousematesTold => self.wake_housemates(process),
            Event::ReaderGivenUp { writer, reader } => {
                if let Some(number) = self.endpoints.get(&(process, *writer)) {
                    self.writers[*number].record.given_up.push(*reader);
                }
            }
            event => self.note_told(process, event),
        }
        self.note(process, format!("{event:?}"));
    }

    /// Notes what endpoints tell of their policies.
    fn note_told(&mut self, process: usize, event: &Event) {
        let (Event::OfferedDeadlineMissed { writer: entity }
        | Event::RequestedDeadlineMissed { reader: entity }
        | Event::LivelinessLost { writer: entity }
        | Event::WriterAlive { reader: entity, .. }
        | Event::WriterNotAlive { reader: entity, .. }) = event
        else {
            return;
        };
        let (now, Some(number)) = (self.now, self.endpoints.get(&(process, *entity)).copied()) else { return };
        match event {
            Event::OfferedDeadlineMissed { .. } => {
                let writer = &mut self.writers[number];
                let total = writer.handle.as_ref().map(|handle| handle.lock().deadline_missed().total);
                writer.record.told.missed.extend(total.map(|total| (now, total)));
            }
            Event::RequestedDeadlineMissed { .. } => {
                let reader = &mut self.readers[number];
                let total = reader.handle.as_ref().map(|handle| handle.lock().deadline_missed().total);
                reader.record.told.missed.extend(total.map(|total| (now, total)));
            }
            Event::LivelinessLost { .. } => self.writers[number].record.told.lost.push(now),
            Event::WriterAlive { writer, .. } => self.readers[number].record.told.alive.push((now, *writer, true)),
            Event::WriterNotAlive { writer, .. } => {
                self.readers[number].record.told.alive.push((now, *writer, false));
            }
            _ => {}
        }
    }

    pub(crate) fn data_available(&mut self, process: usize, reader: EntityId) {
        let Some(number) = self.endpoints.get(&(process, reader)).copied() else { return };
        let index = self.readers[number].record.index;
        if let Pace::Eager(delay) = self.plan.topics[index.topic].readers[index.place].pace
            && !self.readers[number].take_planned
        {
            self.readers[number].take_planned = true;
            self.queue.plan(self.now + delay, Happening::Take(number));
        }
    }

    pub(crate) fn match_begins(&mut self, process: usize, local: EntityId, peer: Guid) {
        let Some(number) = self.endpoints.get(&(process, local)).copied() else { return };
        let writer = match local.is_writer() {
            true => Some(&self.writers[number]),
            false => self.writers.iter().find(|one| one.record.guid == Some(peer)),
        };
        let last = writer.map_or(SequenceNumber::ZERO, |writer| match &writer.handle {
            Some(handle) => handle.lock().last(),
            // Its history outlives it.
            None => writer.record.written.last().map_or(SequenceNumber::ZERO, |written| written.sequence),
        });
        let mut one = MatchRecord { peer, from: self.now, until: None, after: SequenceNumber::ZERO, last };
        if local.is_writer() {
            let writer = &mut self.writers[number];
            // A writer that goes on with its history tells its readers anew.
            if writer.record.matches.iter().any(|before| before.peer == peer && before.until.is_none()) {
                return;
            }
            one.after = writer.record.written.last().map_or(SequenceNumber::ZERO, |written| written.sequence);
            writer.promised = SequenceNumber::ZERO;
            writer.record.matches.push(one);
        } else {
            self.readers[number].record.matches.push(one);
        }
    }

    pub(crate) fn match_ends(&mut self, process: usize, local: EntityId, peer: Guid) {
        let Some(number) = self.endpoints.get(&(process, local)).copied() else { return };
        let matches = match local.is_writer() {
            true => &mut self.writers[number].record.matches,
            false => &mut self.readers[number].record.matches,
        };
        for one in matches.iter_mut().filter(|one| one.peer == peer && one.until.is_none()) {
            one.until = Some(self.now);
        }
    }
}
