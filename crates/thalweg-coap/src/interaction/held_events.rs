//! Events of other requests that come while a client waits for one answer.

use std::collections::VecDeque;

use crate::endpoint::{EndpointEvent, RequestId};

/// Events that wait for the next call of a client's `next`. Who only ever waits for one answer at a time takes none of them, so
/// their number and their bytes have a bound.
#[derive(Debug, Default)]
pub(super) struct HeldEvents {
    events: VecDeque<EndpointEvent>,
}

impl HeldEvents {
    /// Holds an event of a request, and drops older ones where there is no room: a response of the same request first, which a later
    /// one makes old if the request is an observation, then the oldest response, then the oldest event. Events without a body make no
    /// room for one. Other events are for servers and are dropped.
    pub fn push(&mut self, event: EndpointEvent) {
        let Some(request) = request_of(&event) else { return };
        let bytes = bytes_of(&event);
        while self.events.len() >= EVENTS_MAX
            || (bytes > 0 && self.holds_responses() && self.bytes() + bytes > BYTES_MAX)
        {
            let is_of_same = |held: &EndpointEvent| is_response(held) && request_of(held) == Some(request);
            let place = self.events.iter().position(is_of_same);
            let place = place.or_else(|| self.events.iter().position(is_response)).unwrap_or(0);
            _ = self.events.remove(place);
        }
        self.events.push_back(event);
    }

    /// The oldest event.
    pub fn pop(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Drops the events of a request that its owner has ended.
    pub fn forget(&mut self, request: RequestId) {
        self.events.retain(|held| request_of(held) != Some(request));
    }

    fn holds_responses(&self) -> bool {
        self.events.iter().any(is_response)
    }

    fn bytes(&self) -> usize {
        self.events.iter().map(bytes_of).sum()
    }
}

/// The own request that an event is about.
fn request_of(event: &EndpointEvent) -> Option<RequestId> {
    match event {
        EndpointEvent::Response { request, .. }
        | EndpointEvent::Failed { request, .. }
        | EndpointEvent::Finished { request }
        | EndpointEvent::Pong { request, .. } => Some(*request),
        EndpointEvent::Request { .. } | EndpointEvent::Observers { .. } => None,
    }
}

fn is_response(event: &EndpointEvent) -> bool {
    matches!(event, EndpointEvent::Response { .. })
}

/// Bytes of the body in an event.
fn bytes_of(event: &EndpointEvent) -> usize {
    match event {
        EndpointEvent::Response { response, .. } => response.payload.len(),
        _ => 0,
    }
}

/// Most events that are held.
const EVENTS_MAX: usize = 256;
/// Most bytes of bodies in them, but for a single one.
const BYTES_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use thalweg_base::time::Instant;

    use super::*;
    use crate::endpoint::{Config, Confirmability, Endpoint, Peer, RequestError};
    use crate::message::{RequestBuf, Response};

    fn peer() -> Peer {
        Peer::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 5683)))
    }

    fn two_requests() -> (RequestId, RequestId) {
        let mut endpoint = Endpoint::new(Config::default(), [7, 11]);
        let now = Instant::from_nanos(1 << 40);
        let mut ask = || {
            let asked = endpoint.request(now, peer(), RequestBuf::get("/a"), Confirmability::Confirmable);
            asked.unwrap()
        };
        (ask(), ask())
    }

    fn told(request: RequestId, bytes: usize) -> EndpointEvent {
        EndpointEvent::Response { request, peer: peer(), response: Response::content(vec![0_u8; bytes], 0) }
    }

    #[test]
    fn what_nobody_takes_has_a_bound_and_the_end_of_an_observation_stays() {
        let (one, other) = two_requests();
        let mut held = HeldEvents::default();
        held.push(told(one, 1));
        held.push(EndpointEvent::Failed { request: one, peer: peer(), error: RequestError::TimedOut });
        (0..2 * EVENTS_MAX).for_each(|number| held.push(told(other, number)));
        assert_eq!(held.events.len(), EVENTS_MAX);
        assert_eq!(held.pop(), Some(told(one, 1)), "the one with many drops its own");
        assert!(matches!(held.pop(), Some(EndpointEvent::Failed { .. })));
        assert_eq!(held.pop(), Some(told(other, EVENTS_MAX + 2)));
        held.push(EndpointEvent::Finished { request: one });
        held.push(told(other, BYTES_MAX + 1));
        held.push(EndpointEvent::Failed { request: one, peer: peer(), error: RequestError::TimedOut });
        assert_eq!((held.events.len(), held.bytes()), (3, BYTES_MAX + 1), "an end frees no room and takes none");
        held.forget(one);
        held.forget(other);
        assert_eq!(held.pop(), None);
    }
}
