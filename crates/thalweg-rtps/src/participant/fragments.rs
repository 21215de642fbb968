//! Large samples: their fragments on the way to the readers that put them together (RTPS 2.5 §8.4.14.1).

use super::beside::{change_of, directed_to, related_of};
use super::receive::Context;
use super::{KeySource, Participant};
use crate::history::{ChangeKind, PayloadKind};
use crate::payload::Payload;
use crate::reader::{Arrival, CoherentSets, FragmentedSample, GroupMark, WholeSample};
use crate::time::Instant;
use crate::trace::{self, Mark};
use crate::types::{EntityId, Guid, Keyed, SequenceNumber};
use crate::wire::DataFrag;
use crate::wire::parameters::ParameterList;

impl Participant {
    pub(super) fn handle_data_frag(&mut self, context: &Context, datagram: &Payload, fragments: &DataFrag<'_>) {
        let now = context.now;
        let writer = Guid::new(context.source, fragments.writer);
        let inline_qos = fragments.inline_qos.as_ref();
        let content_kind = if fragments.key { PayloadKind::Key } else { PayloadKind::Data };
        let (kind, hint) = change_of(inline_qos, content_kind);
        let head = FragmentedSample {
            timestamp: context.timestamp,
            kind: kind.unwrap_or(ChangeKind::Dispose),
            hint,
            content_kind,
            coherent_set: inline_qos.map(ParameterList::coherent_set).unwrap_or_default(),
            related: related_of(inline_qos, writer),
        };
        let changes_nothing = kind.is_none() && head.coherent_set == SequenceNumber::ZERO;
        let directed_to = directed_to(inline_qos);
        let place = inline_qos.and_then(ParameterList::group_place);
        let mark = place.map(|place| GroupMark { sequence: fragments.sequence, place, is_empty_part: false });
        let bytes = &datagram[fragments.bytes.clone()];
        trace::pass(|| Mark::Parsed);
        self.note_asserted(now, writer);
        let mut readers = std::mem::take(&mut self.inbound.concerned);
        self.find_readers(writer, &mut readers);
        for &entity in &readers {
            if fragments.reader != EntityId::UNKNOWN && fragments.reader != entity {
                continue;
            }
            let Some(shared) = self.endpoints.reader(entity) else { continue };
            let guid = Guid::new(self.config.prefix, entity);
            // A coherent set would lack the samples that are for others.
            let is_for_others = directed_to.as_ref().is_some_and(|readers| readers.binary_search(&guid).is_err())
                && shared.lock().wants_coherent_sets() == CoherentSets::Ignored;
            if changes_nothing || is_for_others {
                shared.lock().note_group_marks(writer, mark.as_slice());
                self.hand_over_arrival(now, writer, entity, Arrival::Unwanted(fragments.sequence));
                continue;
            }
            let (complete, outcome, news, armed) = {
                let mut reader = shared.lock();
                reader.note_group_marks(writer, mark.as_slice());
                let (complete, outcome) = reader.handle_data_frag(now, writer, fragments, bytes, head);
                (complete, outcome, reader.take_news(), reader.newly_armed())
            };
            self.note_status_news(entity, news);
            self.note_reader_outcome(now, entity, outcome, armed);
            if let Some(whole) = complete {
                self.deliver_assembled(now, writer, entity, whole);
            }
        }
        self.inbound.concerned = readers;
    }

    /// Hands a large sample to the reader that assembled it.
    fn deliver_assembled(&mut self, now: Instant, writer: Guid, reader: EntityId, whole: WholeSample) {
        let WholeSample { mut sample, hint } = whole;
        let local = self.endpoints.local_reader(reader);
        let filter = local.and_then(|local| local.filter.as_ref());
        let is_refused = filter.is_some_and(|filter| sample.kind == ChangeKind::Write && !filter(&sample.content));
        let keys = local.map_or(&KeySource::Wire, |local| &local.keys);
        let computed = match keys {
            KeySource::Function(key_of) => key_of(&sample.content, sample.content_kind),
            KeySource::Wire | KeySource::Driver => None,
        };
        let arrival = match computed {
            _ if is_refused => Arrival::Unwanted(sample.sequence),
            _ if writer.entity.keyed() == Keyed::No => Arrival::Sample(sample),
            None if matches!(keys, KeySource::Driver) => Arrival::AwaitsKey { sample, hint },
            computed => match computed.or(hint) {
                Some(instance) => {
                    sample.instance = instance;
                    Arrival::Sample(sample)
                }
                None => {
                    self.reports.counters.keyless += 1;
                    Arrival::Unidentified(sample.sequence)
                }
            },
        };
        self.hand_over_arrival(now, writer, reader, arrival);
    }

    fn hand_over_arrival(&mut self, now: Instant, writer: Guid, reader: EntityId, arrival: Arrival) {
        let mut arrival = Some(arrival);
        self.tell_readers(now, &[reader], reader, |reader| {
            reader.handle_arrivals(now, writer, arrival.take().into_iter())
        });
    }
}
