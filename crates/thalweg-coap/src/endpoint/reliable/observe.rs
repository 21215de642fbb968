//! Observation over connections: who is told of which resource, and when.

use thalweg_base::time::Instant;

use super::connection::Observation;
use super::serve::{JoinedBlocks, ReliableExchange};
use super::{ConnectionId, ReliableEndpoint};
use crate::endpoint::asked::Asked;
use crate::endpoint::observers::{NOTIFY_AGAIN_AFTER, NotifiedFormat, REGISTRATION_BYTES_MAX};
use crate::endpoint::peer::PeerHost;
use crate::endpoint::pending::PendingRegistration;
use crate::endpoint::{EndpointEvent, ExchangeId};
use crate::message::{Code, Response, Token};

/// A registration that is about to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewObservation {
    /// The number of the answer.
    pub number: u32,
    /// The resource changed since its handler was asked.
    pub is_outdated: bool,
}

impl ReliableEndpoint {
    /// The resource at `path` (such as `/a/b`) changed: asks for its state on behalf of each observer.
    pub fn notify(&mut self, now: Instant, path: &str) {
        self.now = now;
        self.serving.pending.note_change(path);
        for (id, token) in self.serving.by_path.get(path).cloned().unwrap_or_default() {
            self.ask_for_observation(id, token);
        }
    }

    /// Registers the client of an exchange if it wants to and the handler accepts.
    pub(super) fn register(
        &mut self,
        now: Instant,
        exchange: &mut ReliableExchange,
        response: &Response,
    ) -> Option<NewObservation> {
        let PendingRegistration { request, path, is_outdated, .. } = *exchange.registration.take()?;
        let (id, token) = (exchange.connection, exchange.token);
        self.forget_observation(id, token);
        if !response.code.is_success() || response.observe.is_none() {
            return None;
        }
        let connection = self.connections.get_mut(id.0)?;
        let is_full = connection.observations.len() >= self.limits.observers_per_connection_max;
        // A bound on their number bounds their memory only together with one on each.
        if is_full || request.capacity() > REGISTRATION_BYTES_MAX || !self.make_place(now, id) {
            return None;
        }
        let connection = self.connections.get_mut(id.0)?;
        let asked = Asked { observe: None, ..exchange.asked };
        let mut format = NotifiedFormat::default();
        format.handle_answer(response);
        self.serving.registrations += 1;
        let (serial, is_asked, is_stale, is_queued) = (self.serving.registrations, false, false, false);
        let observation =
            Observation { serial, path: path.clone(), request, asked, format, is_asked, is_stale, is_queued };
        connection.observations.insert(token, observation);
        let host = connection.peer.host();
        self.serving.recount(host, |count| count + 1);
        self.serving.observers += 1;
        let of_path = self.serving.by_path.entry(path.clone()).or_default();
        of_path.insert((id, token));
        if of_path.len() == 1 {
            self.events.push_back(EndpointEvent::Observers { path, count: 1 });
        }
        Some(NewObservation { number: self.next_number(), is_outdated })
    }

    /// Whether there is a place for one more registration of a connection: a free one, or that of a host which has more than its own.
    /// Connections cost a host little, so that there are places for others whatever one does.
    fn make_place(&mut self, now: Instant, id: ConnectionId) -> bool {
        if self.serving.observers < self.limits.observers_max {
            return true;
        }
        let Some(host) = self.connections.get(id.0).map(|one| one.peer.host()) else { return false };
        let own = self.serving.hosts.get(&host).copied().unwrap_or(0);
        let heaviest = self.serving.by_count.last().copied();
        let Some((_, heaviest)) = heaviest.filter(|(count, _)| *count > own + 1) else { return false };
        let of_heaviest = self.connections.iter().filter(|(_, one)| one.peer.host() == heaviest);
        let Some((id, most)) = of_heaviest.max_by_key(|(id, one)| (one.observations.len(), *id)) else { return false };
        let newest = most.observations.iter().max_by_key(|(_, observation)| observation.serial);
        let Some((token, observation)) = newest.map(|(token, observation)| (*token, observation.asked)) else {
            return false;
        };
        self.end_observation(now, ConnectionId(id), token, observation);
        true
    }

    /// Ends a registration that has to make room, which its client is told (RFC 7641 §4.2).
    fn end_observation(&mut self, now: Instant, connection: ConnectionId, token: Token, asked: Asked) {
        self.forget_observation(connection, token);
        let (code, blocks) = (Code::GET, JoinedBlocks::default());
        let exchange = ReliableExchange { connection, token, asked, code, blocks, registration: None, notifies: None };
        let response = Response::error(Code::SERVICE_UNAVAILABLE, "others need the places of this host's observations");
        self.push(now, &exchange, response, None);
    }

    /// Notifications arrive in their order; the number is for whoever passes them on.
    fn next_number(&mut self) -> u32 {
        self.serving.number = (self.serving.number + 1) & 0x00ff_ffff;
        self.serving.number
    }

    pub(super) fn forget_observation(&mut self, id: ConnectionId, token: Token) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if let Some(observation) = connection.observations.remove(&token) {
            if observation.is_queued {
                connection.stale.retain(|other| *other != token);
            }
            let host = connection.peer.host();
            self.forget_place(host, (id, token), &observation.path);
        }
    }

    /// Gives the place of a registration of this host back.
    pub(super) fn forget_place(&mut self, host: PeerHost, (id, token): (ConnectionId, Token), path: &str) {
        self.serving.observers -= 1;
        self.serving.recount(host, |count| count.saturating_sub(1));
        let Some(of_path) = self.serving.by_path.get_mut(path) else { return };
        of_path.remove(&(id, token));
        if of_path.is_empty() {
            self.serving.by_path.remove(path);
            self.events.push_back(EndpointEvent::Observers { path: path.to_owned(), count: 0 });
        }
    }

    /// Asks the handler for the state that an observer should know; later, while the other end takes nothing.
    pub(super) fn ask_for_observation(&mut self, id: ConnectionId, token: Token) {
        let Some(has_room) = self.connections.get(id.0).map(|connection| self.has_room(connection)) else { return };
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let Some(observation) = connection.observations.get_mut(&token) else { return };
        if observation.is_asked || !has_room {
            observation.is_stale = true;
            // The answer to the one who was asked asks again by itself.
            if !observation.is_asked && !std::mem::replace(&mut observation.is_queued, true) {
                connection.stale.push_back(token);
            }
            return;
        }
        observation.is_asked = true;
        observation.is_stale = false;
        let (asked, notifies, view) = (observation.asked, Some(observation.serial), observation.request.view());
        let (code, mut request) = (view.code, self.serving.spare.request());
        request.refill(view.code, view.options, view.payload);
        let blocks = JoinedBlocks::default();
        let exchange = ReliableExchange { connection: id, token, asked, code, blocks, registration: None, notifies };
        self.ask(exchange, request);
    }

    /// Asks for the states that were left out while the other end took nothing, or that were put off, when it is time.
    pub(super) fn ask_stale_observations(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.times.notify_again.is_some_and(|at| now < at) {
            return;
        }
        connection.times.notify_again = None;
        while self.connections.get(id.0).is_some_and(|connection| self.has_room(connection)) {
            let Some(connection) = self.connections.get_mut(id.0) else { return };
            let Some(token) = connection.stale.pop_front() else { return };
            let Some(observation) = connection.observations.get_mut(&token) else { continue };
            observation.is_queued = false;
            if observation.is_stale && !observation.is_asked {
                self.ask_for_observation(id, token);
            }
        }
    }

    /// Puts a notification off, for which its handler has no time.
    pub(super) fn put_off(&mut self, now: Instant, exchange: ExchangeId) {
        self.now = now;
        let Some(exchange) = self.take_exchange(exchange) else { return };
        let (id, token) = (exchange.connection, exchange.token);
        let Some(connection) = self.connections.get(id.0) else { return };
        let was_full = !self.has_room(connection);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let observation = connection.observations.get_mut(&token);
        if let Some(observation) = observation.filter(|one| Some(one.serial) == exchange.notifies) {
            (observation.is_asked, observation.is_stale) = (false, true);
            if !std::mem::replace(&mut observation.is_queued, true) {
                connection.stale.push_back(token);
            }
            connection.times.notify_again.get_or_insert(now + NOTIFY_AGAIN_AFTER);
        }
        self.settle(now, id, was_full);
        self.plan(id);
    }

    /// Sends the handler's answer about a change to the registration with this serial number.
    pub(super) fn finish_notification(
        &mut self,
        now: Instant,
        exchange: &ReliableExchange,
        serial: u64,
        response: Response,
    ) {
        let (id, token) = (exchange.connection, exchange.token);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let observation = connection.observations.get_mut(&token);
        let Some(observation) = observation.filter(|one| one.serial == serial) else { return };
        observation.is_asked = false;
        let is_stale = observation.is_stale;
        let response = observation.format.checked(response);
        let goes_on = response.code.is_success() && response.observe.is_some();
        let number = goes_on.then(|| self.next_number());
        self.push(now, exchange, response, number);
        match (goes_on, is_stale) {
            (false, _) => self.forget_observation(id, token),
            (true, true) => self.ask_for_observation(id, token),
            (true, false) => {}
        }
    }
}
