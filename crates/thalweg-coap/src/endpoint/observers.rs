//! The server's side of observation: the observers of each resource (RFC 7641 §4).

use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::asked::Asked;
use super::echo::header_bytes;
use super::encode::{Head, ResponsePart};
use super::exchange::{Exchange, Kind};
use super::ids::seconds;
use super::in_flight::{Backoff, Owner, Use};
use super::pending::PendingRegistration;
use super::registrations::{Applicant, PlaceFate, Standing};
use super::response::NUMBER_HALF;
use super::timers::TimerId;
use super::{Due, Endpoint, EndpointEvent};
use crate::message::{Code, MessageId, MessageType, RequestBuf, Response, Token};
use crate::oscore::ServerAssociation;

/// Bytes of a registration that is kept: path, query, and what FETCH says of it. A longer one gets a plain answer.
pub(super) const REGISTRATION_BYTES_MAX: usize = 1024;
/// Registrations of a resource among which one is looked for that asks for the same: clients of one kind come one after the other.
const ALIKE_AMONG: usize = 4;
/// After this a notification that was put off is tried again.
pub(super) const NOTIFY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A client that is told about a resource.
#[derive(Debug)]
pub(super) struct Observer {
    /// Place of the peer, which is held.
    pub peer: u32,
    pub token: Token,
    /// Shared by observers that ask for the same: of a thousand clients of one kind it is there once.
    observed: Arc<ObservedRequest>,
    pub standing: Standing,
    format: NotifiedFormat,
    /// Length of the registration, to which the bound on bytes to an unproved address relates.
    request_bytes: u32,
    /// Bytes on the wire of the answer to it.
    spent_bytes: u32,
    /// The number of the last response or notification.
    number: u32,
    progress: Progress,
    timer: Option<TimerId>,
    /// The protection of notifications.
    protection: Option<Box<ServerAssociation>>,
}

/// What an observer asked for.
#[derive(Debug, PartialEq, Eq)]
struct ObservedRequest {
    request: RequestBuf,
    asked: Asked,
    path: String,
}

impl Observer {
    /// The resource that it observes.
    pub fn path(&self) -> &str {
        &self.observed.path
    }

    /// Whether the handler works on a notification.
    pub fn is_asked(&self) -> bool {
        self.progress.is_asked
    }

    /// The number of the next notification: of the time, so that it also rises for a client that registers again, and so slowly that no
    /// client takes a new one for old (RFC 7641 §4.4).
    fn count(&mut self, now: Instant) -> u32 {
        let of_time = number_at(now);
        let is_ahead = (1..NUMBER_HALF).contains(&(of_time.wrapping_sub(self.number) & NUMBER_MASK));
        self.number = if is_ahead { of_time } else { (self.number + 1) & NUMBER_MASK };
        self.number
    }

    /// Whether an exchange has the protection of the registration: knowledge of the token alone must not end or renew it.
    fn is_of(&self, exchange: &Exchange) -> bool {
        match (&self.protection, &exchange.protection) {
            (None, None) => true,
            (Some(own), Some(other)) => own.is_of_same_context(other),
            _ => false,
        }
    }
}

/// The format of the latest answer to a registration, or of the first notification where that had no content: all further
/// notifications keep it (RFC 7641 §4.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotifiedFormat(Option<Option<u16>>);

impl NotifiedFormat {
    /// Takes the format of the answer to a registration, also to one that renews another. An answer without content leaves the
    /// format that there was.
    pub fn handle_answer(&mut self, response: &Response) {
        if response.code == Code::CONTENT {
            self.0 = Some(response.content_format);
        }
    }

    /// The notification, or in its place the error that ends the registration if its format is another one.
    pub fn checked(&mut self, response: Response) -> Response {
        let is_content = response.code == Code::CONTENT;
        if is_content && *self.0.get_or_insert(response.content_format) != response.content_format {
            return Response::error(Code::NOT_ACCEPTABLE, "the format of the resource has changed");
        }
        response
    }
}

/// Periods of 1/32768 s, of which 2^24 are 512 s: half of them is twice the time in which a client compares numbers.
fn number_at(now: Instant) -> u32 {
    ((u128::from(now.as_nanos()) << 15) / 1_000_000_000) as u32 & NUMBER_MASK
}

/// Numbers have 24 bits (RFC 7641 §2).
const NUMBER_MASK: u32 = 0xff_ffff;

/// A registration that is about to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered {
    pub observer: u64,
    /// The number of the answer.
    pub number: u32,
    /// The resource changed since its handler was asked.
    pub is_outdated: bool,
}

/// The state that the client knows, and the one under way.
#[derive(Debug, Default)]
struct Progress {
    /// The handler works on a notification.
    is_asked: bool,
    /// The resource changed since the handler was asked.
    is_stale: bool,
    /// The next notification is to be confirmed.
    must_confirm: bool,
    /// A notification left that is not confirmed; the timer runs for it.
    is_unconfirmed: bool,
    /// When a notification was acknowledged last.
    confirmed_at: Option<Instant>,
    /// A confirmable notification that is not acknowledged.
    transmission: Option<u64>,
    /// Its remaining repetitions, when a newer state takes its place.
    backoff: Option<Backoff>,
    /// The ID of the last non-confirmable notification.
    unacknowledged: Option<MessageId>,
}

impl Endpoint {
    /// The resource at `path` (such as `/a/b`) changed: asks for its state on behalf of each observer, by
    /// [`EndpointEvent::Request`]. An observer that is being told waits, and then gets the latest state only.
    pub fn notify(&mut self, now: Instant, path: &str) {
        self.server.pending.note_change(path);
        let ids = self.server.observers.of_path(path).to_vec();
        ids.into_iter().for_each(|id| self.ask_for_observer(now, id));
    }

    /// Number of clients that observe a path.
    pub fn observers(&self, path: &str) -> usize {
        self.server.observers.of_path(path).len()
    }

    /// Registers the client of an exchange if it wants to and the handler accepts.
    pub(super) fn register(
        &mut self,
        now: Instant,
        exchange: &mut Exchange,
        response: &Response,
    ) -> Option<Registered> {
        let PendingRegistration { request, path, is_outdated, .. } = *exchange.registration.take()?;
        if !response.code.is_success() || response.observe.is_none() {
            self.forget_registration(exchange);
            return None;
        }
        let serial = self.peers.get(exchange.peer).serial;
        if let Some(id) = self.server.observers.of_token(serial, exchange.token) {
            let known = self.server.observers.observers.get_mut(id)?;
            if !known.is_of(exchange) {
                return None;
            }
            // Notifications are bound to the latest registration if it is protected (RFC 8613 §4.1.3.5.1).
            let before = known.observed.asked;
            let is_same = before.representation == exchange.asked.representation && exchange.protection.is_none();
            if is_same && request.capacity() <= REGISTRATION_BYTES_MAX {
                // The client may know other entity tags by now (RFC 7641 §3.3.2).
                let asked = Asked { payload: exchange.asked.payload, ..before };
                let observed = ObservedRequest { request, asked, path };
                if *known.observed != observed {
                    known.observed = Arc::new(observed);
                }
                known.format.handle_answer(response);
                return Some(Registered { observer: id, number: known.count(now), is_outdated });
            }
            self.forget_registration(exchange);
        }
        if request.capacity() > REGISTRATION_BYTES_MAX {
            self.counters.observers_refused += 1;
            return None;
        }
        let applicant = self.apply(exchange.peer)?;
        let mut format = NotifiedFormat::default();
        format.handle_answer(response);
        let asked = Asked { observe: None, ..exchange.asked };
        let observer = Observer {
            peer: exchange.peer,
            token: exchange.token,
            observed: self.observed(ObservedRequest { request, asked, path }),
            standing: Standing::default(),
            format,
            request_bytes: exchange.request_bytes as u32,
            spent_bytes: 0,
            number: number_at(now),
            progress: Progress::default(),
            timer: None,
            protection: exchange.protection.as_ref().map(|association| Box::new(association.for_notifications())),
        };
        self.peers.hold_again(exchange.peer);
        self.peers.get_mut(exchange.peer).observers += 1;
        let (number, observed) = (observer.number, Arc::clone(&observer.observed));
        let (id, count) = self.server.observers.insert(serial, applicant, observer);
        if count == 1 {
            self.events.push_back(EndpointEvent::Observers { path: observed.path.clone(), count });
        }
        Some(Registered { observer: id, number, is_outdated })
    }

    /// What a new observer asks for, shared with another one of the resource where that asks for the same.
    fn observed(&self, observed: ObservedRequest) -> Arc<ObservedRequest> {
        let observers = &self.server.observers;
        let others = observers.of_path(&observed.path).iter().rev().take(ALIKE_AMONG);
        let mut others = others.filter_map(|id| observers.observers.get(*id));
        match others.find(|other| *other.observed == observed) {
            Some(other) => Arc::clone(&other.observed),
            None => Arc::new(observed),
        }
    }

    /// Finds a place for one more registration of a peer.
    fn apply(&mut self, place: u32) -> Option<Applicant> {
        // Two others may have to leave: one for the bound on forged addresses, one for that on all.
        for _ in 0..3 {
            let state = self.peers.get(place);
            let (host, is_proved, is_new) = (state.peer.host(), state.verified, state.observers == 0);
            let applicant = Applicant { host, is_proved, is_new };
            match self.server.observers.place(applicant) {
                PlaceFate::Free => return Some(applicant),
                PlaceFate::InPlaceOf(id) => {
                    self.counters.observers_evicted += 1;
                    self.remove_observer(id);
                }
                PlaceFate::Refused => break,
            }
        }
        self.counters.observers_refused += 1;
        None
    }

    /// Ends the registration that the client of an exchange has under the exchange's token.
    pub(super) fn forget_registration(&mut self, exchange: &Exchange) {
        let serial = self.peers.get(exchange.peer).serial;
        let Some(id) = self.server.observers.of_token(serial, exchange.token) else { return };
        if self.server.observers.observers.get(id).is_some_and(|observer| observer.is_of(exchange)) {
            self.remove_observer(id);
        }
    }

    /// Ends a registration: its client rejected a notification, or does not answer.
    pub(super) fn remove_observer(&mut self, id: u64) {
        let Some(place) = self.server.observers.observers.get(id).map(|observer| observer.peer) else { return };
        let state = self.peers.get_mut(place);
        state.observers -= 1;
        let (serial, host, is_last) = (state.serial, state.peer.host(), state.observers == 0);
        let Some((observer, left)) = self.server.observers.remove(serial, host, is_last, id) else { return };
        if let Some(timer) = observer.timer {
            self.timers.cancel(timer);
        }
        if let Some(id) = observer.progress.unacknowledged {
            self.in_flight.forget_use(observer.peer, id);
        }
        if let Some(transmission) = observer.progress.transmission {
            self.stop_repeating(transmission);
        }
        self.peers.release(observer.peer);
        if left == 0 {
            self.events.push_back(EndpointEvent::Observers { path: observer.path().to_owned(), count: 0 });
        }
    }

    /// Asks the handler for the state that an observer should know.
    pub(super) fn ask_for_observer(&mut self, now: Instant, id: u64) {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        if observer.protection.as_ref().is_some_and(|association| association.context().is_retired()) {
            return self.remove_observer(id);
        }
        if observer.progress.is_asked || observer.progress.transmission.is_some() {
            observer.progress.is_stale = true;
            return;
        }
        observer.progress.is_asked = true;
        observer.progress.is_stale = false;
        let mut request = self.spare.request();
        let view = observer.observed.request.view();
        request.refill(view.code, view.options, view.payload);
        let exchange = Exchange {
            peer: observer.peer,
            id: MessageId(0),
            token: observer.token,
            code: view.code,
            kind: Kind::Notification(id),
            asked: observer.observed.asked,
            request_bytes: observer.request_bytes as usize,
            spent_bytes: observer.spent_bytes,
            held_bytes: 0,
            is_refused: false,
            timer: None,
            registration: None,
            protection: observer.protection.as_ref().map(|association| Box::new(association.for_notifications())),
            asked_at: seconds(now),
        };
        self.peers.hold_again(exchange.peer);
        self.ask(now, exchange, request);
    }

    /// Puts a notification off, for which its handler has no time: the client is to know the state in the end (RFC 7641 §1.3).
    pub(super) fn put_off(&mut self, now: Instant, place: u32, id: u64) {
        match self.server.observers.observers.get_mut(id) {
            Some(observer) => {
                observer.progress.is_asked = false;
                if let Some(timer) = observer.timer.take() {
                    self.timers.cancel(timer);
                }
                observer.timer = Some(self.timers.set(now + NOTIFY_AGAIN_AFTER, Due::Observer(id)));
            }
            None => self.server.observers.forget_orphan(),
        }
        self.peers.release(place);
    }

    /// Sends the handler's answer about a change.
    pub(super) fn finish_notification(
        &mut self,
        now: Instant,
        mut exchange: Exchange,
        id: u64,
        mut response: Response,
    ) {
        let place = exchange.peer;
        if let Some(observer) = self.server.observers.observers.get_mut(id) {
            response = observer.format.checked(response);
        }
        let part = self.part(now, &exchange, &mut response, self.config.block_exponent);
        let Some(observer) = self.server.observers.observers.get_mut(id) else {
            self.server.observers.forget_orphan();
            return self.peers.release(place);
        };
        observer.progress.is_asked = false;
        let number = observer.count(now);
        let goes_on = response.code.is_success() && response.observe.is_some();
        let interval = self.config.observe.confirm_interval;
        if response.is_confirmed == Some(false) && self.peers.get(place).verified {
            observer.progress.confirmed_at.get_or_insert(now);
            observer.progress.must_confirm = false;
        }
        let is_due = observer.progress.confirmed_at.is_none_or(|at| now.since(at) >= interval);
        let is_wanted = observer.progress.must_confirm || response.is_confirmed == Some(true);
        let is_confirmable = is_due || is_wanted || !goes_on;
        let (token, is_stale) = (observer.token, observer.progress.is_stale);
        let message_type = if is_confirmable { MessageType::Confirmable } else { MessageType::NonConfirmable };
        let head = Head { message_type, id: self.next_id(now, place), token };
        let mut part = ResponsePart { observe: goes_on.then_some(number), ..part };
        let len = self.push_response(&mut exchange, &head, &response, &part);
        if self.is_amplified(&exchange, &part, len) {
            self.shrink(now, &mut exchange, &head, &mut response, &mut part);
        }
        if !goes_on {
            self.remove_observer(id);
            let backoff = self.backoff_for(&exchange);
            self.repeat_until_acknowledged(now, place, head.id, Owner::Response, backoff);
        } else if is_confirmable {
            let backoff = self.backoff_for(&exchange);
            self.confirm(now, id, place, head.id, backoff);
        } else {
            let is_chosen = response.is_confirmed == Some(false);
            let confirm_after = if is_chosen { interval } else { self.config.observe.confirm_after };
            self.note_unacknowledged(now, id, head.id, confirm_after);
        }
        self.peers.release(place);
        if is_stale {
            self.ask_for_observer(now, id);
        }
    }

    /// Whether the answer to a registration is to bring the proof of its client's address: others may need the place.
    pub(super) fn is_to_prove(&self, place: u32, id: u64) -> bool {
        let is_idle = |observer: &Observer| observer.progress.transmission.is_none();
        !self.peers.get(place).verified
            && self.server.observers.wants_proof()
            && self.server.observers.observers.get(id).is_some_and(is_idle)
    }

    /// Notes the length of the answer to a registration, which just left.
    pub(super) fn note_answered(&mut self, id: u64) {
        let len = self.outbox.last().len();
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        observer.spent_bytes = (len + header_bytes(self.peers.get(observer.peer).peer)) as u32;
    }

    /// Waits for the acknowledgement of a notification that just left.
    pub(super) fn confirm(&mut self, now: Instant, id: u64, place: u32, message: MessageId, first: Backoff) {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        observer.progress.must_confirm = false;
        observer.progress.is_unconfirmed = false;
        if let Some(timer) = observer.timer.take() {
            self.timers.cancel(timer);
        }
        let backoff = observer.progress.backoff.take().unwrap_or(first);
        let transmission = self.repeat_until_acknowledged(now, place, message, Owner::Observer(id), backoff);
        if let Some(observer) = self.server.observers.observers.get_mut(id) {
            observer.progress.transmission = Some(transmission);
        }
    }

    /// A non-confirmable notification left: a RST may come, and after a while the state is confirmed.
    fn note_unacknowledged(&mut self, now: Instant, id: u64, message: MessageId, confirm_after: Duration) {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        let place = observer.peer;
        if let Some(before) = observer.progress.unacknowledged.replace(message) {
            self.in_flight.forget_use(place, before);
        }
        self.in_flight.set_use(place, message, Use::Unacknowledged(Owner::Observer(id)));
        // Not later than this after the first one that is not confirmed, however many follow.
        if !std::mem::replace(&mut observer.progress.is_unconfirmed, true) {
            if let Some(timer) = observer.timer.take() {
                self.timers.cancel(timer);
            }
            let at = now + confirm_after;
            observer.timer = Some(self.timers.set(at, Due::Observer(id)));
        }
    }

    /// An observer acknowledged a notification.
    pub(super) fn confirm_observer(&mut self, now: Instant, id: u64) {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        let state = self.peers.get(observer.peer);
        if state.verified {
            self.server.observers.prove(state.peer.host(), id);
        }
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        observer.progress.transmission = None;
        observer.progress.confirmed_at = Some(now);
        if let Some(timer) = observer.timer.take() {
            self.timers.cancel(timer);
        }
        let at = now + self.config.observe.confirm_interval;
        observer.timer = Some(self.timers.set(at, Due::Observer(id)));
        if observer.progress.is_stale {
            self.ask_for_observer(now, id);
        }
    }

    /// A pause of a confirmable notification is over; true when a newer state takes its place (RFC 7641 §4.5.2).
    pub(super) fn supersede(&mut self, now: Instant, id: u64, backoff: Backoff) -> bool {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return false };
        if !observer.progress.is_stale {
            return false;
        }
        if let Some(transmission) = observer.progress.transmission.take() {
            observer.progress.backoff = Some(backoff);
            observer.progress.must_confirm = true;
            self.stop_repeating(transmission);
        }
        self.ask_for_observer(now, id);
        true
    }

    /// It is time to confirm the latest state.
    pub(super) fn handle_observer_timeout(&mut self, now: Instant, id: u64) {
        let Some(observer) = self.server.observers.observers.get_mut(id) else { return };
        observer.timer = None;
        observer.progress.must_confirm = true;
        self.ask_for_observer(now, id);
    }
}
