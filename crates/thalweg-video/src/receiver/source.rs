//! The sender that is listened to.

use std::time::Duration;

use thalweg_base::time::Instant;

/// After this silence another sender is taken: a restarted one has another source, and two at once would mix.
const SILENCE: Duration = Duration::from_secs(1);

/// Which synchronization source is taken.
#[derive(Debug)]
pub(super) struct Source {
    wanted: Option<u32>,
    current: Option<u32>,
    last_arrival: Instant,
}

/// Whether a packet is of the sender that is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is.
    Own,
    /// It is of a sender that takes the place of a silent one: begin anew.
    Successor,
    /// It is not.
    Foreign,
}

impl Source {
    pub(super) fn new(wanted: Option<u32>) -> Source {
        Source { wanted, current: wanted, last_arrival: Instant::ZERO }
    }

    pub(super) fn current(&self) -> Option<u32> {
        self.current
    }

    pub(super) fn judge(&mut self, now: Instant, ssrc: u32) -> Origin {
        let origin = match self.current {
            Some(current) if current == ssrc => Origin::Own,
            None => Origin::Own,
            Some(_) if self.wanted.is_none() && now.since(self.last_arrival) >= SILENCE => Origin::Successor,
            Some(_) => Origin::Foreign,
        };
        if origin != Origin::Foreign {
            (self.current, self.last_arrival) = (Some(ssrc), now);
        }
        origin
    }
}
