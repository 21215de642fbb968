//! Confirmable messages of this endpoint: repeated until they are acknowledged (RFC 7252 §4.2).

use std::time::Duration;

use thalweg_base::time::Instant;

use super::in_flight::{Backoff, Owner, PendingConfirmable, Use};
use super::{Due, Endpoint, EndpointEvent, RequestError, RequestId};
use crate::message::MessageId;

impl Endpoint {
    /// The pauses of a message that is sent for the first time: ACK_TIMEOUT and up to half of it more.
    pub(super) fn first_backoff(&mut self) -> Backoff {
        let timeout = self.config.times.ack_timeout;
        let more = self.rng.below(timeout.as_nanos() as u64 / 2 + 1);
        Backoff { pause: timeout + Duration::from_nanos(more), left: self.config.retransmit_max }
    }

    /// Repeats the last datagram until it is acknowledged.
    pub(super) fn repeat_until_acknowledged(
        &mut self,
        now: Instant,
        place: u32,
        id: MessageId,
        owner: Owner,
        backoff: Backoff,
    ) -> u64 {
        let mut bytes = self.spare.bytes();
        bytes.extend_from_slice(self.outbox.last());
        self.peers.hold_again(place);
        let timers = &mut self.timers;
        let set_timer = |id| timers.set(now + backoff.pause, Due::Repeat(id));
        self.in_flight.insert(PendingConfirmable { peer: place, id, owner, bytes, backoff, timer: None }, set_timer)
    }

    /// Forgets a message; returns its owner.
    pub(super) fn stop_repeating(&mut self, id: u64) -> Option<Owner> {
        let transmission = self.in_flight.remove(id)?;
        if let Some(timer) = transmission.timer {
            self.timers.cancel(timer);
        }
        self.spare.put_bytes(transmission.bytes);
        self.peers.release(transmission.peer);
        Some(transmission.owner)
    }

    /// A message ID for a response; used again before its time rather than keeping the response back.
    pub(super) fn next_id(&mut self, now: Instant, place: u32) -> MessageId {
        let ids = &mut self.peers.get_mut(place).ids;
        if ids.blocked_until(now, self.config.times.message_id_lifetime).is_some() {
            self.counters.message_ids_reused += 1;
        }
        ids.next(now)
    }

    /// A message was not acknowledged for a whole pause.
    pub(super) fn handle_silence(&mut self, now: Instant, id: u64) {
        let Some(transmission) = self.in_flight.transmissions.get_mut(id) else { return };
        let (owner, place) = (transmission.owner, transmission.peer);
        if transmission.backoff.left == 0 {
            self.stop_repeating(id);
            return self.give_up(now, owner, RequestError::TimedOut);
        }
        let backoff = Backoff { pause: transmission.backoff.pause * 2, left: transmission.backoff.left - 1 };
        if let Owner::Observer(observer) = owner
            && self.supersede(now, observer, backoff)
        {
            return;
        }
        let peer = self.peers.get(place).peer;
        let Some(transmission) = self.in_flight.transmissions.get_mut(id) else { return };
        self.outbox.push(peer, |out| out.extend_from_slice(&transmission.bytes));
        self.counters.repetitions += 1;
        transmission.backoff = backoff;
        transmission.timer = Some(self.timers.set(now + backoff.pause, Due::Repeat(id)));
    }

    pub(super) fn handle_acknowledgement(&mut self, now: Instant, place: u32, message: MessageId) {
        let Some(Use::Transmission(id)) = self.in_flight.find(place, message) else {
            self.peers.get_mut(place).guesses.note(now);
            return;
        };
        let state = self.peers.get_mut(place);
        state.end_silence();
        // It knows an ID that was sent to its address, unless it tries them all: there are no more than 65,536. A host without a
        // request would answer by a RST.
        state.verified |= state.guesses.are_few(now);
        match self.stop_repeating(id) {
            Some(Owner::Observer(observer)) => self.confirm_observer(now, observer),
            Some(Owner::Request(request)) => self.handle_request_acknowledged(now, request),
            // A ping is answered by a RST; an acknowledgement proves the same.
            Some(Owner::Ping(request)) => self.finish_ping(now, request),
            Some(Owner::Response) | None => {}
        }
    }

    pub(super) fn handle_reset(&mut self, now: Instant, place: u32, message: MessageId) {
        let owner = match self.in_flight.find(place, message) {
            Some(Use::Transmission(id)) => self.stop_repeating(id),
            Some(Use::Unacknowledged(owner)) => {
                self.in_flight.forget_use(place, message);
                Some(owner)
            }
            None => None,
        };
        if owner.is_some() {
            self.peers.get_mut(place).end_silence();
        }
        match owner {
            Some(Owner::Ping(request)) => self.finish_ping(now, request),
            Some(owner) => self.give_up(now, owner, RequestError::Reset),
            None => {}
        }
    }

    fn give_up(&mut self, now: Instant, owner: Owner, error: RequestError) {
        match owner {
            Owner::Observer(observer) => self.remove_observer(observer),
            Owner::Request(request) | Owner::Ping(request) => self.fail(now, request, error),
            Owner::Response => {}
        }
    }

    fn finish_ping(&mut self, now: Instant, id: u64) {
        if let Some(peer) = self.close_request(now, id) {
            self.events.push_back(EndpointEvent::Pong { request: RequestId(id), peer });
        }
    }
}
