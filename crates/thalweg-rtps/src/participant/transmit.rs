//! Sending: control before samples, higher TRANSPORT_PRIORITY first, turns among equals, and asynchronous writers as the tokens of
//! their flow controllers allow.

use std::time::Duration;

use super::Event;
use super::Participant;
use super::schedule::{Rank, Source};
use crate::flow_control::{ControllerId, Spent, Waiting};
use crate::outbox::Outbox;
use crate::qos::TrafficClass;
use crate::time::Instant;
use crate::trace::{self, Mark};
use crate::types::EntityId;
use crate::wire::write::HEADER_LEN;
use crate::writer::{Backlog, Paid};

/// Datagrams of several endpoints collected before they are sent.
const OUTBOX_DATAGRAMS_MAX: usize = 64;
/// Datagrams of built-in endpoints collected before those to one participant are joined.
const DISCOVERY_DATAGRAMS_MAX: usize = 256;
/// Most bytes of a joined datagram of discovery: it fits every path of IPv6.
const DISCOVERY_BYTES_MAX: usize = 1_200;

/// After how long a writer with something to send is looked at again while a thread of the application sends for it.
const LEFT_FOR: Duration = Duration::from_millis(1);

impl Participant {
    /// Appends datagrams, all of one [`Participant::traffic_class`], to the empty `outbox`. True when more is waiting: send,
    /// clear and call again.
    ///
    /// A writer fills at most one outbox at a time and then goes behind those of its priority.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut Outbox) -> bool {
        self.order.class = TrafficClass::DEFAULT;
        self.announcer.greet_silent(now, &self.endpoints);
        self.announcer.poll_transmit(now, &self.config, &self.database, &self.housemates, outbox);
        self.housemates.poll_transmit(&self.database, outbox);
        self.transmit_to_strangers(now, outbox);
        self.order.resume_controllers(now);
        // Datagrams of built-in endpoints to one participant leave together, behind its greeting.
        let mut joins = true;
        while let Some((rank, source)) = self.order.schedule.pop_ready() {
            if joins && !matches!(source, Source::Endpoint(entity) if entity.is_builtin()) {
                joins = false;
                outbox.join(HEADER_LEN, DISCOVERY_BYTES_MAX);
            }
            if !outbox.is_empty() && self.class_of(source) != Some(self.order.class) {
                self.order.schedule.put_back(rank, source);
                break;
            }
            self.order.class = self.class_of(source).unwrap_or_default();
            match source {
                Source::Controller(id) => self.transmit_controlled(now, id, outbox),
                Source::Endpoint(entity) if self.endpoints.writer(entity).is_some() => {
                    self.transmit_writer(now, rank, entity, outbox);
                }
                Source::Endpoint(entity) => self.transmit_reader(now, entity, outbox),
            }
            let limit = if joins && !self.order.schedule.is_ready(source) {
                DISCOVERY_DATAGRAMS_MAX
            } else {
                OUTBOX_DATAGRAMS_MAX
            };
            if outbox.len() >= limit {
                break;
            }
        }
        if joins {
            outbox.join(HEADER_LEN, DISCOVERY_BYTES_MAX);
        }
        self.order.schedule.has_ready() || self.strangers.has_queued()
    }

    /// Traffic class of the datagrams that a source would append.
    fn class_of(&self, source: Source) -> Option<TrafficClass> {
        self.order.next_of(source).map(|entity| self.endpoints.traffic_class(entity))
    }

    fn transmit_reader(&mut self, now: Instant, entity: EntityId, outbox: &mut Outbox) {
        let Some(shared) = self.endpoints.reader(entity) else { return };
        let (refilled, news, armed) = {
            let mut reader = shared.lock();
            reader.poll_transmit(now, outbox);
            (reader.take_refilled(), reader.take_news(), reader.newly_armed())
        };
        if refilled {
            self.reports.append(Event::DataAvailable { reader: entity });
        }
        self.note_status_news(entity, news);
        if let Some(at) = armed {
            self.order.schedule.arm(entity, at);
        }
    }

    fn transmit_writer(&mut self, now: Instant, rank: Rank, entity: EntityId, outbox: &mut Outbox) {
        let Some(local) = self.endpoints.local_writer(entity) else { return };
        let mut writer = local.shared.lock();
        if local.controller.is_none() && writer.leave_to_holder() {
            // The holder tells of pauses only; the next HEARTBEAT may be due by a timer that has just run out. What is to be sent already
            // waits for the holder, however long that takes.
            if let Some(at) = writer.newly_armed_where_sending_waits(now + LEFT_FOR) {
                self.order.schedule.arm(entity, at);
            }
            return;
        }
        let samples_apart = local.controller.is_some() || rank == Rank::Control && !entity.is_builtin();
        let Paid { more, more_control, .. } = if samples_apart {
            writer.poll_transmit_within(now, 0, outbox)
        } else {
            Paid { spent: 0, more: writer.poll_transmit(now, outbox), more_control: false }
        };
        if writer.poll_space() {
            self.reports.append(Event::SpaceAvailable { writer: entity });
        }
        if let Some(at) = writer.newly_armed() {
            self.order.schedule.arm(entity, at);
        }
        if more_control {
            self.order.schedule.make_control_ready(entity);
        }
        match local.controller {
            None if more => self.order.schedule.make_ready(entity),
            None => {}
            Some(id) => {
                let waiting = writer.backlog(now).map(|backlog| local.waiting(entity, backlog));
                drop(writer);
                self.order.queue_under(now, id, entity, waiting);
            }
        }
    }

    /// Lets the writer whose turn it is send what the tokens pay for.
    fn transmit_controlled(&mut self, now: Instant, id: ControllerId, outbox: &mut Outbox) {
        let Some(controller) = self.order.controllers.get_mut(id) else { return };
        let Some(grant) = controller.poll(now) else { return };
        trace::pass(|| Mark::Granted);
        let Some(local) = self.endpoints.local_writer(grant.writer) else {
            controller.dequeue(now, grant.writer);
            return self.order.make_controller_ready(id);
        };
        let before = outbox.len();
        self.order.class = self.endpoints.traffic_class(grant.writer);
        let mut writer = local.shared.lock();
        let paid = writer.poll_transmit_within(now, grant.bytes, outbox);
        let left = writer.backlog(now).map(|backlog| local.waiting(grant.writer, backlog));
        if writer.poll_space() {
            self.reports.append(Event::SpaceAvailable { writer: grant.writer });
        }
        if let Some(at) = writer.newly_armed() {
            self.order.schedule.arm(grant.writer, at);
        }
        if paid.more_control {
            self.order.schedule.make_control_ready(grant.writer);
        }
        drop(writer);
        controller.record(now, grant.writer, spent_in(outbox, before, paid.spent), left);
        self.order.make_controller_ready(id);
    }
}

impl super::endpoints::LocalWriter {
    fn waiting(&self, writer: EntityId, backlog: Backlog) -> Waiting {
        Waiting {
            writer,
            priority: self.qos.transport_priority,
            deadline: backlog.since + self.qos.timing.latency_budget,
            next_cost: backlog.next_cost,
        }
    }
}

/// What `bytes` tokens paid for: the datagrams from number `from` on, until they have as many bytes. Datagrams of control messages
/// alone follow them and are free.
fn spent_in(outbox: &Outbox, from: usize, bytes: u64) -> Spent {
    let mut spent = Spent { bytes, ..Spent::default() };
    let mut seen = 0;
    for datagram in outbox.datagrams().skip(from) {
        if seen >= bytes {
            break;
        }
        spent.destinations = datagram.destinations().len() as u64;
        spent.copies += spent.destinations;
        seen += datagram.len() as u64 * spent.destinations;
    }
    spent
}
