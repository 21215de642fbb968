//! Datagrams in: message context, submessages, and the way to the endpoints (RTPS 2.5 §8.3.4).

use std::net::SocketAddr;

use super::{Event, LostReason, Participant};
use crate::discovery::participant_data::ParticipantData;
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::reader::{ReaderOutcome, Received};
use crate::time::{Instant, Timestamp};
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash, Keyed};
use crate::wire::parameters::ParameterList;
use crate::wire::{Content, Data, DataFrag, Gap, Message, SequenceSet, Submessage};
use crate::writer::WriterOutcome;

/// The interpreter's state within one message (RTPS 2.5 §8.3.4.1).
#[derive(Clone, Copy)]
struct Context {
    now: Instant,
    from: SocketAddr,
    source: GuidPrefix,
    /// The submessages that follow are for us.
    addressed: bool,
    timestamp: Option<Timestamp>,
}

impl Participant {
    /// Takes a datagram into account. Malformed bytes are counted and end the datagram; they change nothing else.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &Payload, from: SocketAddr) {
        self.counters.datagrams += 1;
        let Ok(message) = Message::parse(datagram) else {
            self.counters.malformed += 1;
            return;
        };
        if message.header.version.major != 2 || self.ignored.contains(&message.header.prefix) {
            return;
        }
        let mut context = Context { now, from, source: message.header.prefix, addressed: true, timestamp: None };
        self.renew_lease(&context);
        for submessage in message.submessages() {
            match submessage {
                Ok(submessage) => self.handle_submessage(&mut context, datagram, submessage),
                Err(_) => self.counters.malformed += 1,
            }
        }
    }

    /// Every datagram of a participant is a sign of life.
    fn renew_lease(&mut self, context: &Context) {
        if let Some(known) = self.database.participants.get_mut(&context.source) {
            let until = context.now + known.data.lease_duration;
            known.lease_until = known.lease_until.max(until);
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
                context.timestamp = None;
            }
            _ if !context.addressed => {}
            Submessage::Data(data) => self.handle_data(context, datagram, &data),
            Submessage::DataFrag(fragments) => self.handle_data_frag(context, datagram, &fragments),
            Submessage::Gap(gap) => {
                let now = context.now;
                self.for_each_reader(context, gap.writer, gap.reader, |reader, writer| {
                    reader.handle_gap(now, writer, &gap)
                });
            }
            Submessage::Heartbeat(heartbeat) => {
                let now = context.now;
                self.for_each_reader(context, heartbeat.writer, heartbeat.reader, |reader, writer| {
                    reader.handle_heartbeat(now, writer, &heartbeat)
                });
            }
            Submessage::HeartbeatFrag(heartbeat) => {
                let now = context.now;
                self.for_each_reader(context, heartbeat.writer, heartbeat.reader, |reader, writer| {
                    reader.handle_heartbeat_frag(now, writer, &heartbeat)
                });
            }
            Submessage::AckNack(acknack) => {
                let reader = Guid::new(context.source, acknack.reader);
                if let Some(writer) = self.endpoints.writer(acknack.writer) {
                    let outcome = writer.lock().handle_acknack(context.now, reader, &acknack);
                    self.note_writer_outcome(acknack.writer, outcome);
                }
            }
            Submessage::NackFrag(nack) => {
                let reader = Guid::new(context.source, nack.reader);
                if let Some(writer) = self.endpoints.writer(nack.writer) {
                    let outcome = writer.lock().handle_nack_frag(context.now, reader, &nack);
                    self.note_writer_outcome(nack.writer, outcome);
                }
            }
            // We answer to announced addresses only.
            Submessage::InfoReply { .. } | Submessage::InfoReplyIp4 { .. } => {}
            Submessage::Pad | Submessage::Unknown { .. } => {}
        }
    }

    /// What a writer's input changed, as events and pending output.
    pub(super) fn note_writer_outcome(&mut self, writer: EntityId, outcome: WriterOutcome) {
        self.schedule.make_ready(writer);
        if outcome.space {
            self.push_event(Event::SpaceAvailable { writer });
        }
        if outcome.all_acknowledged && !writer.is_builtin() {
            self.push_event(Event::Acknowledged { writer });
        }
        if let Some(reader) = outcome.given_up {
            self.push_event(Event::ReaderGivenUp { writer, reader });
        }
    }

    /// The local readers that a submessage of `writer` concerns, one after the other.
    fn for_each_reader(
        &mut self,
        context: &Context,
        writer: EntityId,
        addressed: EntityId,
        mut handle: impl FnMut(&mut crate::reader::Reader, Guid) -> ReaderOutcome,
    ) {
        let guid = Guid::new(context.source, writer);
        let mut index = 0;
        while let Some(entity) = self.reader_of(guid, index) {
            index += 1;
            if addressed != EntityId::UNKNOWN && addressed != entity {
                continue;
            }
            let Some(shared) = self.endpoints.reader(entity) else { continue };
            let (outcome, armed) = {
                let mut reader = shared.lock();
                let outcome = handle(&mut reader, guid);
                (outcome, reader.newly_armed())
            };
            self.note_reader_outcome(context.now, entity, outcome, armed);
        }
    }

    /// Number `index` of the local readers matched with a writer.
    fn reader_of(&self, writer: Guid, index: usize) -> Option<EntityId> {
        if writer.entity.is_builtin() {
            let mut pairs = super::builtin::PAIRS.iter().chain(&super::inquiry::PAIRS);
            let pair = pairs.find(|(builtin, _)| *builtin == writer.entity);
            return pair.filter(|_| index == 0).map(|(_, reader)| *reader);
        }
        self.database.publications.get(writer)?.matched.get(index).copied()
    }

    fn note_reader_outcome(&mut self, now: Instant, entity: EntityId, outcome: ReaderOutcome, armed: Option<Instant>) {
        if outcome.answer_due {
            self.schedule.make_ready(entity);
        }
        if let Some(at) = armed {
            self.schedule.arm(entity, at);
        }
        if outcome.data_available {
            if entity.is_builtin() {
                self.handle_builtin_data(now, entity);
            } else {
                self.push_event(Event::DataAvailable { reader: entity });
            }
        }
    }

    fn handle_data(&mut self, context: &Context, datagram: &Payload, data: &Data<'_>) {
        if data.writer == EntityId::SPDP_WRITER {
            return self.handle_participant_data(context, datagram, data);
        }
        let writer = Guid::new(context.source, data.writer);
        let (content, content_kind) = match &data.content {
            Content::Data(range) => (datagram.slice(range.clone()), PayloadKind::Data),
            Content::Key(range) => (datagram.slice(range.clone()), PayloadKind::Key),
            Content::None => (datagram.slice(0..0), PayloadKind::Key),
        };
        let mut sample = Received {
            writer,
            sequence: data.sequence,
            timestamp: context.timestamp,
            kind: kind_of(data.inline_qos.as_ref(), content_kind),
            instance: KeyHash::default(),
            content,
            content_kind,
        };
        let hint = data.inline_qos.as_ref().and_then(ParameterList::key_hash);
        let says_nothing = data.content == Content::None && hint.is_none();
        self.deliver(context, data.reader, &mut sample, hint, says_nothing);
    }

    /// Hands a sample to every reader it concerns.
    fn deliver(
        &mut self,
        context: &Context,
        addressed: EntityId,
        sample: &mut Received,
        hint: Option<KeyHash>,
        says_nothing: bool,
    ) {
        let now = context.now;
        let writer = sample.writer;
        if says_nothing || !self.identify(sample, hint) {
            // The number is used up all the same.
            let gap = Gap {
                reader: addressed,
                writer: writer.entity,
                start: sample.sequence,
                list: SequenceSet::new(sample.sequence.next()),
            };
            self.for_each_reader(context, writer.entity, addressed, |reader, guid| reader.handle_gap(now, guid, &gap));
            return;
        }
        let sample = &*sample;
        self.for_each_reader(context, writer.entity, addressed, |reader, _| reader.handle_data(now, sample));
    }

    /// Finds the sample's instance: from the key, else from the hint. False when the topic is keyed and neither tells.
    fn identify(&mut self, sample: &mut Received, hint: Option<KeyHash>) -> bool {
        if sample.writer.entity.keyed() == Keyed::No {
            return true;
        }
        let local = self.reader_of(sample.writer, 0).and_then(|entity| self.endpoints.local_reader(entity));
        let Some(local) = local else { return true };
        let computed = match &local.key_of {
            Some(key_of) if !sample.content.is_empty() => key_of(&sample.content, sample.content_kind),
            _ => None,
        };
        match computed.or(hint) {
            Some(instance) => sample.instance = instance,
            None => {
                self.counters.keyless += 1;
                return false;
            }
        }
        true
    }

    fn handle_data_frag(&mut self, context: &Context, datagram: &Payload, fragments: &DataFrag<'_>) {
        let writer = Guid::new(context.source, fragments.writer);
        let content_kind = if fragments.key { PayloadKind::Key } else { PayloadKind::Data };
        let head = Received {
            writer,
            sequence: fragments.sequence,
            timestamp: context.timestamp,
            kind: kind_of(fragments.inline_qos.as_ref(), content_kind),
            instance: KeyHash::default(),
            content: datagram.slice(0..0),
            content_kind,
        };
        let bytes = &datagram[fragments.bytes.clone()];
        let hint = fragments.inline_qos.as_ref().and_then(ParameterList::key_hash);
        let mut index = 0;
        while let Some(entity) = self.reader_of(writer, index) {
            index += 1;
            if fragments.reader != EntityId::UNKNOWN && fragments.reader != entity {
                continue;
            }
            let Some(shared) = self.endpoints.reader(entity) else { continue };
            let (complete, outcome, armed) = {
                let mut reader = shared.lock();
                let (complete, outcome) = reader.handle_data_frag(context.now, fragments, bytes, &head);
                (complete, outcome, reader.newly_armed())
            };
            self.note_reader_outcome(context.now, entity, outcome, armed);
            if let Some(mut sample) = complete {
                self.deliver(context, entity, &mut sample, hint, false);
            }
        }
    }

    fn handle_participant_data(&mut self, context: &Context, datagram: &Payload, data: &Data<'_>) {
        match &data.content {
            Content::Data(range) => match ParticipantData::decode(&datagram[range.clone()]) {
                Ok(announced) if announced.guid_prefix == context.source => {
                    self.handle_announcement(context.now, context.from, announced);
                }
                _ => self.counters.unusable_announcements += 1,
            },
            Content::Key(range) => match ParticipantData::decode_key(&datagram[range.clone()]) {
                Ok(prefix) if prefix == context.source => {
                    self.remove_participant(context.now, prefix, LostReason::Left);
                }
                _ => self.counters.unusable_announcements += 1,
            },
            Content::None => {
                let status = data.inline_qos.as_ref().map_or(0, ParameterList::status_info);
                if ChangeKind::from_status_info(status).disposes() {
                    self.remove_participant(context.now, context.source, LostReason::Left);
                }
            }
        }
    }
}

/// What the inline QoS says that the change does; a key without status can only end its instance.
fn kind_of(inline_qos: Option<&ParameterList<'_>>, content: PayloadKind) -> ChangeKind {
    let kind = ChangeKind::from_status_info(inline_qos.map_or(0, ParameterList::status_info));
    if kind == ChangeKind::Write && content == PayloadKind::Key { ChangeKind::Dispose } else { kind }
}
