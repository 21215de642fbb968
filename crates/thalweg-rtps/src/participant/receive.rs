//! Handling of datagrams: message context, submessages, and their way to the endpoints (RTPS 2.5 §8.3.4).

use std::net::{IpAddr, SocketAddr};

use super::inbound::{Answered, Instances};
use super::origin::{LastOrigin, Origin};
use super::{Event, KeySource, LostReason, Participant};
use crate::payload::Payload;
use crate::reader::{CoherentSets, Reader, ReaderOutcome, StatusNews};
use crate::time::{Instant, Timestamp};
use crate::trace::{self, Mark};
use crate::types::{EntityId, Guid, GuidPrefix, Keyed};
use crate::wire::{Heartbeat, Message, Submessage};
use crate::writer::{Writer, WriterOutcome};

/// The interpreter's state within one message (RTPS 2.5 §8.3.4.1).
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub now: Instant,
    pub from: SocketAddr,
    pub source: GuidPrefix,
    /// Whether `from` is an address of `source`.
    origin: Origin,
    /// Whether the submessages that follow are for this participant.
    addressed: bool,
    pub timestamp: Option<Timestamp>,
}

impl Participant {
    /// Handles a datagram. Malformed bytes are counted and end the datagram; they change nothing else.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Payload, from: SocketAddr) {
        self.handle_datagrams(now, std::iter::once((datagram, from)));
    }

    /// As [`Participant::handle_datagram`] for several that were received together: neighbouring samples of one writer reach its
    /// readers together.
    pub fn handle_datagrams<'a>(&mut self, now: Instant, datagrams: impl Iterator<Item = (&'a Payload, SocketAddr)>) {
        let mut last: Option<LastOrigin> = None;
        for (datagram, from) in datagrams {
            self.inbound.next_datagram();
            self.reports.counters.datagrams += 1;
            let Ok(message) = Message::parse(datagram) else {
                self.reports.counters.malformed += 1;
                continue;
            };
            let source = message.header.prefix;
            if self.company.is_banned(source) {
                continue;
            }
            let ip = from.ip();
            let origin = match last {
                Some(last) if last.prefix == source && last.ip == ip => last.origin,
                _ => self.note_origin(now, source, ip),
            };
            let mut context = Context { now, from, source, origin, addressed: true, timestamp: None };
            for submessage in message.submessages() {
                match submessage {
                    Ok(submessage) => self.handle_submessage(&mut context, datagram, submessage),
                    Err(_) => self.reports.counters.malformed += 1,
                }
            }
            self.judge_answered();
            last = Some(LastOrigin { prefix: context.source, ip, origin: context.origin });
        }
        self.flush_inbound(now);
    }

    /// Judges the source address of a datagram in the name of `prefix`.
    fn note_origin(&mut self, now: Instant, prefix: GuidPrefix, ip: IpAddr) -> Origin {
        Origin::note(self.database.participants.get_mut(&prefix), &self.config.addresses, now, ip)
    }

    /// Refuses a submessage in the name of a participant that came from an address which is not its own. Only an answer that proves
    /// that the participant has moved there counts.
    fn refuse_foreign(&mut self, context: &Context, submessage: &Submessage<'_>) {
        self.reports.counters.foreign_source += 1;
        if let Submessage::AckNack(acknack) = submessage {
            self.judge_stranger(context.now, context.source, context.from, acknack);
        }
    }

    fn handle_submessage(&mut self, context: &mut Context, datagram: &Payload, submessage: Submessage<'_>) {
        match submessage {
            Submessage::InfoTimestamp(timestamp) => context.timestamp = timestamp,
            Submessage::InfoDestination(prefix) => {
                context.addressed = prefix == self.config.prefix || prefix == GuidPrefix::UNKNOWN;
            }
            Submessage::InfoSource { prefix, .. } => {
                context.source = prefix;
                context.origin = self.note_origin(context.now, prefix, context.from.ip());
                context.timestamp = None;
            }
            _ if !context.addressed => {}
            Submessage::Data(data) if data.writer == EntityId::SPDP_WRITER => {
                self.flush_inbound(context.now);
                self.handle_participant_data(context.now, (context.source, context.from), datagram, &data);
                context.origin = self.note_origin(context.now, context.source, context.from.ip());
            }
            other if context.origin == Origin::Foreign => self.refuse_foreign(context, &other),
            Submessage::Data(data) => {
                self.note_stranger_speaks(context.source, context.from, data.writer);
                if self.open_inbound(context, datagram, data.writer, data.reader) {
                    self.inbound.push_data(&data, context.timestamp);
                }
            }
            Submessage::DataBatch(batch) => {
                if self.open_inbound(context, datagram, batch.writer, batch.reader) {
                    self.inbound.push_batch(&batch);
                }
            }
            other => {
                self.flush_inbound(context.now);
                self.handle_other(context, datagram, other);
            }
        }
    }

    /// Handles a submessage that is neither context nor a whole sample. The samples in front of it have reached their readers.
    fn handle_other(&mut self, context: &Context, datagram: &Payload, submessage: Submessage<'_>) {
        let now = context.now;
        match submessage {
            Submessage::DataFrag(fragments) => self.handle_data_frag(context, datagram, &fragments),
            Submessage::Gap(gap) => {
                let writer = Guid::new(context.source, gap.writer);
                self.for_each_reader(now, writer, gap.reader, |reader| reader.handle_gap(now, writer, &gap));
            }
            Submessage::Heartbeat(heartbeat) => self.handle_heartbeat(context, &heartbeat),
            Submessage::GroupHeartbeat(heartbeat, info) => {
                self.handle_heartbeat(context, &heartbeat);
                self.note_group_info(now, Guid::new(context.source, heartbeat.writer), &heartbeat, info);
            }
            Submessage::HeartbeatBatch(batch) => {
                let writer = Guid::new(context.source, batch.heartbeat.writer);
                if batch.heartbeat.liveliness {
                    self.note_asserted(now, writer);
                }
                self.for_each_reader(now, writer, batch.heartbeat.reader, |reader| {
                    reader.handle_heartbeat_batch(now, writer, &batch)
                });
            }
            Submessage::HeartbeatFrag(heartbeat) => {
                let writer = Guid::new(context.source, heartbeat.writer);
                self.for_each_reader(now, writer, heartbeat.reader, |reader| {
                    reader.handle_heartbeat_frag(now, writer, &heartbeat)
                });
            }
            Submessage::AckNack(acknack) => {
                self.judge_stranger(now, context.source, context.from, &acknack);
                let reader = Guid::new(context.source, acknack.reader);
                self.tell_writer(acknack.writer, reader, now, |writer| writer.handle_acknack(now, reader, &acknack));
            }
            Submessage::AckNackBatch(acknack) => {
                let reader = Guid::new(context.source, acknack.reader);
                self.tell_writer(acknack.writer, reader, now, |writer| {
                    writer.handle_acknack_batch(now, reader, &acknack)
                });
            }
            Submessage::NackFrag(nack) => {
                let reader = Guid::new(context.source, nack.reader);
                self.tell_writer(nack.writer, reader, now, |writer| writer.handle_nack_frag(now, reader, &nack));
            }
            Submessage::Lost(lost) => {
                let reader = Guid::new(context.source, lost.reader);
                self.tell_writer(lost.writer, reader, now, |writer| {
                    writer.handle_lost(now, reader, &lost.numbers);
                    WriterOutcome::default()
                });
            }
            Submessage::LostFrag(lost) => {
                let reader = Guid::new(context.source, lost.reader);
                self.tell_writer(lost.writer, reader, now, |writer| {
                    writer.handle_lost_frag(now, reader, &lost);
                    WriterOutcome::default()
                });
            }
            Submessage::Echo(echo) => {
                let reader = Guid::new(context.source, echo.reader);
                self.tell_writer(echo.writer, reader, now, |writer| {
                    writer.handle_echo(now, reader, &echo);
                    WriterOutcome::default()
                });
            }
            // Answers go to announced addresses only.
            Submessage::InfoReply { .. } | Submessage::InfoReplyIp4 { .. } => {}
            Submessage::Pad | Submessage::Unknown { .. } => {}
            // Handled by the caller.
            Submessage::Data(_) | Submessage::DataBatch(_) => {}
            Submessage::InfoTimestamp(_) | Submessage::InfoDestination(_) | Submessage::InfoSource { .. } => {}
        }
    }

    fn handle_heartbeat(&mut self, context: &Context, heartbeat: &Heartbeat) {
        let (now, writer) = (context.now, Guid::new(context.source, heartbeat.writer));
        self.note_stranger_heartbeat(now, context.source, context.from, heartbeat);
        if heartbeat.liveliness {
            self.note_asserted(now, writer);
        }
        let mut begun_anew = false;
        self.for_each_reader(now, writer, heartbeat.reader, |reader| {
            let outcome = reader.handle_heartbeat(now, writer, heartbeat);
            begun_anew |= outcome.begun_anew;
            outcome
        });
        if begun_anew && writer.entity.is_builtin() {
            // So has all of its participant: what it announced in its old life is gone, and nobody else would tell so.
            self.remove_participant(now, writer.prefix, LostReason::Left);
        }
    }

    fn tell_writer(
        &mut self,
        writer: EntityId,
        reader: Guid,
        now: Instant,
        handle: impl FnOnce(&mut Writer) -> WriterOutcome,
    ) {
        if self.inbound.answered.is_some_and(|answered| (answered.writer, answered.reader) != (writer, reader)) {
            self.judge_answered();
        }
        if let Some(shared) = self.endpoints.writer(writer) {
            let outcome = handle(&mut shared.lock());
            self.note_writer_outcome(writer, outcome);
            if outcome.tells_of_path {
                self.inbound.answered = Some(Answered { writer, reader, now });
            }
        }
    }

    /// What a reader told in one datagram is judged as a whole: of one large sample it may lack parts, and the next ones altogether.
    fn judge_answered(&mut self) {
        if let Some(Answered { writer, reader, now }) = self.inbound.answered.take()
            && let Some(shared) = self.endpoints.writer(writer)
        {
            shared.lock().judge_path(now, reader);
        }
    }

    /// Prepares for a sample of `writer`: samples gathered of another one go to their readers first. False when no local reader is
    /// matched.
    fn open_inbound(&mut self, context: &Context, datagram: &Payload, writer: EntityId, addressed: EntityId) -> bool {
        let writer = Guid::new(context.source, writer);
        if !self.inbound.goes_with(writer, addressed) {
            self.flush_inbound(context.now);
            let mut readers = std::mem::take(&mut self.inbound.readers);
            self.find_readers(writer, &mut readers);
            self.inbound.readers = readers;
            if self.inbound.readers.is_empty() {
                return false;
            }
            (self.inbound.writer, self.inbound.addressed) = (writer, addressed);
            self.note_asserted(context.now, writer);
        }
        self.inbound.open(datagram);
        true
    }

    /// Hands the gathered samples to every reader that they concern.
    fn flush_inbound(&mut self, now: Instant) {
        if self.inbound.is_empty() {
            return;
        }
        self.inbound.pack();
        let (writer, addressed) = (self.inbound.writer, self.inbound.addressed);
        let by_driver = writer.entity.keyed() != Keyed::No && self.identify_inbound();
        let (gathered, readers) = self.inbound.give_out();
        trace::pass(|| Mark::Parsed);
        if by_driver || self.endpoints.any_is_particular() || gathered.is_any_directed() {
            for entity in &readers {
                let local = self.endpoints.local_reader(*entity);
                let instances = local.map_or(Instances::Told, |local| Instances::for_reader(&local.keys));
                let filter = local.and_then(|local| local.filter.as_ref());
                // A coherent set would lack the samples that are for others.
                let heeds_direction = gathered.is_any_directed()
                    && local.is_some_and(|one| one.shared.lock().wants_coherent_sets() == CoherentSets::Ignored);
                let directed_for = heeds_direction.then(|| Guid::new(self.config.prefix, *entity));
                let refused = gathered.refused_by(directed_for, filter);
                self.tell_readers(now, std::slice::from_ref(entity), addressed, |reader| {
                    let sets = reader.wants_coherent_sets();
                    if !gathered.marks().is_empty() {
                        reader.note_group_marks(writer, gathered.marks());
                    }
                    reader.handle_arrivals(now, writer, gathered.arrivals_without(instances, &refused, sets))
                });
            }
        } else {
            self.tell_readers(now, &readers, addressed, |reader| {
                reader.handle_arrivals(now, writer, gathered.arrivals(Instances::Told))
            });
        }
        self.inbound.take_back(gathered, readers);
    }

    /// Finds the instances of the gathered samples. True when there is a reader whose driver does that.
    fn identify_inbound(&mut self) -> bool {
        let locals = self.inbound.readers.iter().filter_map(|entity| self.endpoints.local_reader(*entity));
        let (mut function, mut by_driver, mut by_participant) = (None, false, false);
        for local in locals {
            match &local.keys {
                KeySource::Driver => by_driver = true,
                KeySource::Wire => by_participant = true,
                KeySource::Function(key_of) => (function, by_participant) = (Some(key_of), true),
            }
        }
        let keyless = self.inbound.identify(function);
        self.reports.counters.keyless += if by_participant { keyless } else { 0 };
        by_driver
    }

    /// Turns the outcome of a writer's input into events and pending output.
    pub(super) fn note_writer_outcome(&mut self, writer: EntityId, outcome: WriterOutcome) {
        self.order.schedule.make_ready(writer);
        if outcome.space {
            self.reports.tell(Event::SpaceAvailable { writer });
        }
        if outcome.all_acknowledged && !writer.is_builtin() {
            self.reports.tell(Event::Acknowledged { writer });
        }
        if let Some(reader) = outcome.given_up {
            self.reports.tell(Event::ReaderGivenUp { writer, reader });
        }
        if outcome.deadline_missed {
            self.reports.append(Event::OfferedDeadlineMissed { writer });
        }
        if outcome.liveliness_lost {
            self.reports.append(Event::LivelinessLost { writer });
        }
    }

    /// Calls `handle` for each local reader that a submessage of `writer` concerns.
    fn for_each_reader(
        &mut self,
        now: Instant,
        writer: Guid,
        addressed: EntityId,
        handle: impl FnMut(&mut Reader) -> ReaderOutcome,
    ) {
        let mut readers = std::mem::take(&mut self.inbound.concerned);
        self.find_readers(writer, &mut readers);
        self.tell_readers(now, &readers, addressed, handle);
        self.inbound.concerned = readers;
    }

    pub(super) fn tell_readers(
        &mut self,
        now: Instant,
        readers: &[EntityId],
        addressed: EntityId,
        mut handle: impl FnMut(&mut Reader) -> ReaderOutcome,
    ) {
        for &entity in readers {
            if addressed != EntityId::UNKNOWN && addressed != entity {
                continue;
            }
            let Some(shared) = self.endpoints.reader(entity) else { continue };
            let (outcome, news, armed) = {
                let mut reader = shared.lock();
                reader.set_epoch(self.endpoints.epoch());
                let outcome = handle(&mut reader);
                if reader.has_group_arrivals() {
                    self.access.note_arrivals(entity, reader.take_group_arrivals());
                }
                (outcome, reader.take_news(), reader.newly_armed())
            };
            self.note_status_news(entity, news);
            self.note_reader_outcome(now, entity, outcome, armed);
        }
        self.settle_access(now);
    }

    /// Puts the local readers that are matched with a writer into `into`.
    pub(super) fn find_readers(&self, writer: Guid, into: &mut Vec<EntityId>) {
        into.clear();
        if writer.entity.is_builtin() {
            into.extend(self.endpoints.builtin().of_writer(writer.entity).map(|topic| topic.reader));
        } else if let Some(known) = self.database.publications.get(writer) {
            into.extend_from_slice(&known.matched);
        }
    }

    /// Turns changed statuses of a reader into events.
    #[inline]
    pub(super) fn note_status_news(&mut self, reader: EntityId, news: StatusNews) {
        if news != StatusNews::default() && !reader.is_builtin() {
            if news.lost {
                self.reports.tell(Event::SampleLost { reader });
            }
            if news.rejected {
                self.reports.tell(Event::SampleRejected { reader });
            }
        }
    }

    pub(super) fn note_reader_outcome(
        &mut self,
        now: Instant,
        entity: EntityId,
        outcome: ReaderOutcome,
        armed: Option<Instant>,
    ) {
        if outcome.answer_due {
            self.order.schedule.make_ready(entity);
        }
        if outcome.keys_due {
            self.reports.tell(Event::KeysDue { reader: entity });
        }
        if outcome.deadline_missed {
            self.reports.append(Event::RequestedDeadlineMissed { reader: entity });
        }
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
        if outcome.data_available {
            if entity.is_builtin() {
                self.handle_builtin_data(now, entity);
            } else {
                self.reports.tell(Event::DataAvailable { reader: entity });
            }
        }
    }
}
