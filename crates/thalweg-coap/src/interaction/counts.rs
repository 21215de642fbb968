//! Counters of one loop.

use std::ops::AddAssign;

use thalweg_transport::batch::ReceiveCounts;

use crate::endpoint::Counters;
use crate::message::Code;

/// Counters of one event loop since the server started. All numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams that were too long to be received whole.
    pub truncated: u64,
    /// Datagrams that found the receive buffer full, as far as the kernel told.
    pub kernel_drops: u64,
    /// Non-confirmable requests that a filter in the kernel dropped, because they would have been dropped here for want of
    /// room in their pool. The kernel does not tell them from what finds the receive buffer full while there is a filter.
    pub filtered: u64,
    /// System calls to receive.
    pub receive_calls: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the kernel did not take.
    pub send_lost: u64,
    /// System calls to send.
    pub send_calls: u64,
    /// Requests answered on the loop itself.
    pub inline: u64,
    /// Requests sent to a pool.
    pub pooled: u64,
    /// Requests answered 5.03 Service Unavailable, because they would have waited too long.
    pub unavailable: u64,
    /// Non-confirmable requests dropped for the same reason.
    pub dropped: u64,
    /// Notifications that were put off, because they would have waited too long, or did.
    pub put_off: u64,
    /// Requests answered 4.29 Too Many Requests.
    pub limited: u64,
    /// Datagrams of peers for which there was no place.
    pub peers_refused: u64,
    /// Registrations answered without observation, because others have all places.
    pub observers_refused: u64,
    /// Registrations that ended because others needed their places.
    pub observers_evicted: u64,
    /// Requests answered 5.03 because handlers hold as many bytes as they may.
    pub bytes_refused: u64,
    /// Handlers moved to the pool, because they took too long inline.
    pub demoted: u64,
    /// Answers of handlers and refusals by their class: 2.xx, 4.xx, 5.xx.
    pub answers: AnswerCounts,
}

/// Requests of one kind that the filter in the kernel dropped: a part of [`LoopCounts::filtered`].
///
/// The kernel tells how many it dropped. Where it drops several kinds at a time, their shares follow from what it lets in of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilteredRequests {
    /// The method, such as `GET`. It is empty for those of all kinds beyond the first 32 together, as the path and the pool are.
    pub method: String,
    /// The path, such as `/a/b`.
    pub path: String,
    /// The reason: the pool that has no room for more of them.
    pub pool: String,
    /// How many.
    pub count: u64,
}

impl FilteredRequests {
    /// Counts `count` more of this kind among `kinds`.
    pub(super) fn add_to(&self, kinds: &mut Vec<FilteredRequests>, count: u64) {
        if count == 0 {
            return;
        }
        let name = (&self.method, &self.path, &self.pool);
        let known = kinds.iter().position(|one| (&one.method, &one.path, &one.pool) == name);
        let place = known.unwrap_or(kinds.len().min(KINDS_MAX));
        if place == kinds.len() {
            let is_named = place < KINDS_MAX;
            kinds.push(if is_named {
                FilteredRequests { count: 0, ..self.clone() }
            } else {
                FilteredRequests::default()
            });
        }
        kinds[place].count += count;
    }
}

/// Kinds that have names: paths come from strangers, and each is a time series.
const KINDS_MAX: usize = 32;

/// Answers by the class of their code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// 2.xx
    pub success: u64,
    /// 4.xx
    pub client_error: u64,
    /// 5.xx
    pub server_error: u64,
}

impl AnswerCounts {
    /// Counts an answer.
    #[inline]
    pub(super) fn note(&mut self, code: Code) {
        match code.class() {
            2 => self.success += 1,
            4 => self.client_error += 1,
            _ => self.server_error += 1,
        }
    }
}

impl LoopCounts {
    /// Takes over what the loop's socket counted.
    pub(super) fn set_received(&mut self, counts: &ReceiveCounts) {
        self.received = counts.datagrams + counts.truncated;
        self.truncated = counts.truncated;
        self.receive_calls = counts.calls;
    }

    /// Takes over what the loop's endpoint refused.
    pub(super) fn set_refused(&mut self, counters: &Counters) {
        self.peers_refused = counters.peers_refused;
        self.observers_refused = counters.observers_refused;
        self.observers_evicted = counters.observers_evicted;
        self.bytes_refused = counters.bytes_refused;
    }
}

impl AddAssign for LoopCounts {
    fn add_assign(&mut self, other: LoopCounts) {
        self.received += other.received;
        self.truncated += other.truncated;
        self.kernel_drops += other.kernel_drops;
        self.filtered += other.filtered;
        self.receive_calls += other.receive_calls;
        self.sent += other.sent;
        self.send_lost += other.send_lost;
        self.send_calls += other.send_calls;
        self.inline += other.inline;
        self.pooled += other.pooled;
        self.unavailable += other.unavailable;
        self.dropped += other.dropped;
        self.put_off += other.put_off;
        self.limited += other.limited;
        self.peers_refused += other.peers_refused;
        self.observers_refused += other.observers_refused;
        self.observers_evicted += other.observers_evicted;
        self.bytes_refused += other.bytes_refused;
        self.demoted += other.demoted;
        self.answers.success += other.answers.success;
        self.answers.client_error += other.answers.client_error;
        self.answers.server_error += other.answers.server_error;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_many_kinds_are_counted_under_a_bounded_number_of_names() {
        let mut kinds = Vec::new();
        for number in (0..100).chain(0..100) {
            let kind = FilteredRequests { path: format!("/{number}"), ..FilteredRequests::default() };
            kind.add_to(&mut kinds, 3);
        }
        assert_eq!((kinds.len(), kinds[31].path.as_str(), kinds[31].count), (KINDS_MAX + 1, "/31", 6));
        assert_eq!((kinds[32].path.as_str(), kinds[32].count), ("", 68 * 6));
        FilteredRequests::default().add_to(&mut kinds, 1);
        assert_eq!((kinds.len(), kinds[32].count), (KINDS_MAX + 1, 68 * 6 + 1), "those of another loop");
    }
}
