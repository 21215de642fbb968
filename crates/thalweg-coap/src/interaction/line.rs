//! The way from one loop to the pool of one resource class.

use thalweg_base::time::Instant;

use super::handler_pool::Job;
use crate::scheduler::pool::Pool;
use crate::scheduler::queue::{JobOffer, Refused};

/// Requests of a batch for one pool.
pub(super) struct Line {
    /// `None` for a class whose handlers run inline whatever they say.
    pool: Option<Pool<Job>>,
    offers: Vec<JobOffer<Job>>,
    refused: Vec<Refused<Job>>,
    /// Droppable requests that the pool has room for; known while it refuses some.
    room: Option<usize>,
    /// Requests of this batch that were dropped for want of room.
    drops: u64,
    has_refused: bool,
}

impl Line {
    pub(super) fn new(pool: Option<Pool<Job>>) -> Line {
        Line { pool, offers: Vec::new(), refused: Vec::new(), room: None, drops: 0, has_refused: false }
    }

    pub(super) fn has_pool(&self) -> bool {
        self.pool.is_some()
    }

    /// The name of the pool; empty where there is none.
    pub(super) fn pool_name(&self) -> &str {
        self.pool.as_ref().map_or("", Pool::name)
    }

    /// Whether the pool had no room for all of the last batch.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused
    }

    /// Whether the room is known because it was too little.
    pub(super) fn is_short(&self) -> bool {
        self.room.is_some()
    }

    /// Asks the pool for its room if that was too little for the batch before; else the question would cost more than it
    /// saves.
    pub(super) fn begin_batch(&mut self) {
        self.room = self.pool.as_ref().filter(|_| self.has_refused).map(Pool::room);
    }

    /// Gives a place to one more droppable request; true when there is none.
    pub(super) fn drops(&mut self) -> bool {
        match &mut self.room {
            None => false,
            Some(0) => {
                self.drops += 1;
                true
            }
            Some(room) => {
                *room -= 1;
                false
            }
        }
    }

    /// Notes a request for the pool.
    pub(super) fn offer(&mut self, offer: JobOffer<Job>) {
        self.offers.push(offer);
    }

    /// Whether there is something to do at the end of a batch.
    pub(super) fn is_busy(&self) -> bool {
        self.has_refused || self.drops > 0 || !self.offers.is_empty()
    }

    /// Hands the batch over; returns the requests that the pool refuses.
    pub(super) fn end_batch(&mut self, now: Instant) -> impl Iterator<Item = Refused<Job>> {
        if let Some(pool) = &self.pool {
            if !self.offers.is_empty() {
                pool.push(now, &mut self.offers, &mut self.refused);
            }
            if self.drops > 0 {
                pool.handle_drops(self.drops);
            }
        }
        self.has_refused = std::mem::take(&mut self.drops) > 0 || !self.refused.is_empty();
        self.refused.drain(..)
    }
}
