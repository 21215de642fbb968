//! The writers that wait for tokens, and which of them goes next.

use std::cmp::Reverse;

use super::bucket::Cost;
use super::{Demand, Scheduling};
use crate::time::Instant;
use crate::types::EntityId;

/// A writer with something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Which writer.
    pub writer: EntityId,
    /// Its TRANSPORT_PRIORITY.
    pub priority: i32,
    /// When its oldest waiting sample has to arrive.
    pub deadline: Instant,
    /// Bytes that its next datagram costs, all destinations together.
    pub next_cost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    waiting: Waiting,
    /// Destinations of the datagram that it sent last; 1 before it sent any.
    copies: u64,
    /// Among equals the smaller number goes first.
    turn: u64,
}

/// Every waiting writer once.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    next_turn: u64,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn demand(&self) -> Demand {
        if self.entries.is_empty() { Demand::Idle } else { Demand::Waiting }
    }

    pub(super) fn writers(&self) -> impl Iterator<Item = EntityId> {
        self.entries.iter().map(|entry| entry.waiting.writer)
    }

    /// Adds a writer behind all others, or updates the output of an already waiting one; that does not make it less
    /// urgent.
    pub(super) fn insert(&mut self, mut waiting: Waiting) {
        match self.entries.iter_mut().find(|entry| entry.waiting.writer == waiting.writer) {
            Some(entry) => {
                waiting.deadline = waiting.deadline.min(entry.waiting.deadline);
                entry.waiting = waiting;
            }
            None => {
                let turn = self.draw_turn();
                self.entries.push(Entry { waiting, copies: 1, turn });
            }
        }
    }

    /// Returns whether the writer waited.
    pub(super) fn remove(&mut self, writer: EntityId) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.waiting.writer != writer);
        self.entries.len() < before
    }

    /// The writer whose turn it is, and the cost of its next datagram.
    pub(super) fn first(&self, scheduling: Scheduling) -> Option<(Waiting, Cost)> {
        let entries = self.entries.iter();
        let first = match scheduling {
            Scheduling::HighestPriorityFirst => entries.min_by_key(|one| (Reverse(one.waiting.priority), one.turn)),
            Scheduling::EarliestDeadlineFirst => {
                entries.min_by_key(|one| (one.waiting.deadline, Reverse(one.waiting.priority), one.turn))
            }
            Scheduling::RoundRobin => entries.min_by_key(|one| one.turn),
        }?;
        let cost = Cost { bytes: first.waiting.next_cost, copies: first.copies };
        Some((first.waiting, cost))
    }

    /// True when no other writer competes for the grant.
    pub(super) fn is_alone(&self, writer: &Waiting, scheduling: Scheduling) -> bool {
        let equal = |entry: &&Entry| match scheduling {
            Scheduling::HighestPriorityFirst => entry.waiting.priority == writer.priority,
            Scheduling::EarliestDeadlineFirst | Scheduling::RoundRobin => true,
        };
        self.entries.iter().filter(equal).count() == 1
    }

    /// The writer has sent something and has this left: it goes behind its equals.
    pub(super) fn served(&mut self, left: Waiting, copies: u64) {
        let turn = self.draw_turn();
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.waiting.writer == left.writer) {
            entry.waiting = left;
            entry.turn = turn;
            entry.copies = copies.max(1);
        }
    }

    fn draw_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }
}
