//! What each connection may have of a turn of the driver, and of the memory of all.

use thalweg_base::time::Instant;

use super::connection::{Connection, ConnectionShare, ConnectionStage};
use super::{ConnectionId, ReliableEndpoint};

impl ReliableEndpoint {
    /// A turn of the driver begins: each connection may bring [`messages_per_turn_max`] again, and those that had more go on
    /// with it.
    ///
    /// [`messages_per_turn_max`]: super::ReliableLimits::messages_per_turn_max
    pub fn begin_turn(&mut self, now: Instant) {
        (self.turn, self.now) = (self.turn + 1, now);
        for id in std::mem::take(&mut self.waiting) {
            self.handle_room(now, id);
        }
    }

    /// Whether connections have brought more than their part of the turn: then another one should follow at once.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the transport should give more bytes: not while the other end leaves ours, too many of its requests are
    /// under way, or it has had its part of this turn.
    pub fn wants_input(&self, id: ConnectionId) -> bool {
        let may = |one: &Connection| {
            one.share.turn != self.turn || one.share.taken < self.limits.messages_per_turn_max.max(1)
        };
        self.connections.get(id.0).is_some_and(|connection| self.has_room(connection) && may(connection))
    }

    /// Whether one more request may be passed to a handler: what its answer and those under way may need is reckoned with.
    pub(super) fn has_room(&self, connection: &Connection) -> bool {
        let owed = connection.exchanges.saturating_mul(connection.share.answer_bytes);
        !connection.stage.is_over()
            && connection.exchanges < self.limits.exchanges_per_connection_max
            && connection.unsent_bytes().saturating_add(owed) < self.limits.outbound_bytes_max
    }

    /// A layer of the transport has had a message of its own, which counts as one of this turn.
    pub fn handle_control(&mut self, id: ConnectionId) {
        self.note_taken(id);
    }

    /// A connection has brought a message.
    pub(super) fn note_taken(&mut self, id: ConnectionId) {
        let (turn, max) = (self.turn, self.limits.messages_per_turn_max.max(1));
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let share = &mut connection.share;
        if share.turn != turn {
            (share.turn, share.taken) = (turn, 0);
        }
        share.taken += 1;
        if share.taken == max {
            self.waiting.push(id);
        }
    }

    /// A layer of the transport took this many of the [`outgoing`](ReliableEndpoint::outgoing) bytes, which wait there;
    /// [`ReliableEndpoint::handle_layered`] is told what became of them.
    pub fn handle_wrapped(&mut self, id: ConnectionId, count: usize) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let had = connection.outbound.len();
        connection.outbound.handle_sent(count);
        connection.share.layered_bytes += had - connection.outbound.len();
    }

    /// Layers of the transport hold so many bytes that the other end has not taken, and it took so many since they were told last.
    /// What they hold has the bounds of what waits here: [`outbound_bytes_max`], [`outbound_bytes_all_max`] and
    /// [`message_time_max`].
    ///
    /// [`outbound_bytes_max`]: super::ReliableLimits::outbound_bytes_max
    /// [`outbound_bytes_all_max`]: super::ReliableLimits::outbound_bytes_all_max
    /// [`message_time_max`]: super::ReliableLimits::message_time_max
    pub fn handle_layered(&mut self, now: Instant, id: ConnectionId, waiting_bytes: usize, taken_bytes: usize) {
        let Some(was_full) = self.connections.get(id.0).map(|connection| !self.has_room(connection)) else { return };
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let has_waited = connection.unsent_bytes() > 0;
        let before = std::mem::replace(&mut connection.share.layered_bytes, waiting_bytes);
        self.counts.outbound_bytes = self.counts.outbound_bytes - before + waiting_bytes;
        if taken_bytes > 0 || !has_waited {
            connection.times.sent = now;
        }
        if was_full && self.connections.get(id.0).is_some_and(|connection| self.has_room(connection)) {
            self.handle_room(now, id);
        }
        self.plan(id);
    }

    /// Bytes wait for a connection. Where all leave too much, the one ends that has taken nothing for the longest time.
    pub(super) fn note_pushed(&mut self, id: ConnectionId, bytes: usize) {
        let now = self.now;
        self.counts.outbound_bytes += bytes;
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let share = &mut connection.share;
        share.answer_bytes = bytes.max(share.answer_bytes - share.answer_bytes / 8);
        if connection.unsent_bytes() == bytes {
            // Nothing has waited until now.
            connection.times.sent = now;
        }
        if self.counts.outbound_bytes <= self.limits.outbound_bytes_all_max {
            return;
        }
        let own_max = self.limits.outbound_bytes_max;
        let meant = self.connections.iter().filter(|(_, one)| one.unsent_bytes() > own_max);
        if let Some((id, _)) = meant.min_by_key(|(_, one)| one.times.sent) {
            self.counts.aborted += 1;
            self.lose(ConnectionId(id));
        }
    }

    /// Bytes have arrived that are no whole message yet. Where all have brought too many, the one ends that has most.
    pub(super) fn bound_inbound(&mut self) {
        if self.counts.inbound_bytes <= self.limits.inbound_bytes_max {
            return;
        }
        let most = self.connections.iter().max_by_key(|(_, one)| one.inbound_bytes()).map(|(id, _)| ConnectionId(id));
        if let Some(id) = most {
            self.abort(id, "too many unfinished messages", None);
        }
    }

    /// Gives a connection up whose other end takes nothing: it would not take an ABORT either.
    pub(super) fn lose(&mut self, id: ConnectionId) {
        self.mark_over(id);
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.stage = ConnectionStage::Lost;
        self.counts.outbound_bytes -= connection.drop_unsent();
    }
}

impl ConnectionShare {
    /// That of a connection which has brought nothing yet.
    pub(super) const NEW: ConnectionShare =
        ConnectionShare { answer_bytes: ANSWER_BYTES, turn: 0, taken: 0, held_bytes: 0, layered_bytes: 0 };
}

/// What an answer is reckoned with before there was one: 64 of them may be under way.
const ANSWER_BYTES: usize = 1024;
