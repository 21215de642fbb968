//! Requests that their handlers never answer.

use thalweg_base::time::Instant;

use super::exchange::Kind;
use super::ids::seconds;
use super::{Due, Endpoint, ExchangeId};
use crate::message::{Code, Response};

/// Checks within the time limit of a handler. One timer for all requests costs each of them nothing.
const LOOKS: u32 = 4;

impl Endpoint {
    /// Looks for old requests later, unless that is planned.
    #[inline]
    pub(super) fn plan_sweep(&mut self, now: Instant) {
        if !self.server.is_sweeping {
            self.server.is_sweeping = true;
            self.timers.set(now + self.config.times.exchange_lifetime / LOOKS, Due::Sweep);
        }
    }

    /// Ends requests whose clients do not wait any more. The client of an acknowledged one gets 5.04; for others silence is
    /// the same as a datagram that was lost.
    pub(super) fn sweep(&mut self, now: Instant) {
        self.server.is_sweeping = false;
        let lifetime = self.config.times.exchange_lifetime.as_secs() as u32;
        let is_old = |asked_at: u32| seconds(now).saturating_sub(asked_at) >= lifetime;
        let old = self.server.exchanges.iter().filter(|(_, exchange)| is_old(exchange.asked_at));
        let old: Vec<(ExchangeId, Kind)> = old.map(|(id, exchange)| (ExchangeId(id), exchange.kind)).collect();
        for (exchange, kind) in old {
            self.counters.expired += 1;
            let is_told = matches!(kind, Kind::Confirmable | Kind::Acknowledged);
            let response = Response::error(Code::GATEWAY_TIMEOUT, "the handler did not answer in time");
            if !is_told || self.respond(now, exchange, response).is_err() {
                self.abandon(now, exchange);
            }
        }
        if self.server.exchanges.len() > 0 {
            self.plan_sweep(now);
        }
    }
}
