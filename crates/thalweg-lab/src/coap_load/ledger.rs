//! Every request by its number, until nothing about it can come any more. Times are nanoseconds since the start of the run.

use std::collections::VecDeque;

/// The requests that were sent, in the order of their numbers and, but for those that the system refused at first, of the times they were
/// due.
pub(super) struct Ledger {
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    /// Number of the first request that is not known to be answered or lost.
    unsettled: u64,
    time_limit: u64,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The start of its latency.
    pub(super) due: u64,
    /// The client.
    pub(super) client: u32,
    /// Its message ID.
    pub(super) id: u16,
    pub(super) state: State,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// An empty acknowledgement came: the answer will come by itself.
    Acknowledged,
    Answered,
    Lost,
}

/// The request of an answer with some token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No request of this client.
    Nothing,
    /// A request without an answer so far.
    First(Entry),
    /// A request that was given up.
    Late(Entry),
    /// A request that has its answer, or was given up long ago.
    Again,
}

impl Ledger {
    pub(super) fn new(time_limit: u64) -> Ledger {
        Ledger { entries: VecDeque::new(), first: 0, unsettled: 0, time_limit }
    }

    /// The number that the next request gets.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Notes a request.
    pub(super) fn open(&mut self, due: u64, client: u32, id: u16) {
        self.entries.push_back(Entry { due, client, id, state: State::Open });
    }

    /// The request with this number, unless it is forgotten.
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Entry> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(place)
    }

    /// Settles the request with this number, which an answer to `client` named.
    pub(super) fn answer(&mut self, number: u64, client: u32) -> Found {
        if number < self.first {
            return Found::Again;
        }
        let Some(entry) = self.get_mut(number).filter(|entry| entry.client == client) else { return Found::Nothing };
        let before = *entry;
        entry.state = State::Answered;
        match before.state {
            State::Open | State::Acknowledged => Found::First(before),
            State::Lost => Found::Late(before),
            State::Answered => Found::Again,
        }
    }

    /// Takes the next request that has waited for the time limit, as lost.
    pub(super) fn expire(&mut self, now: u64) -> Option<Entry> {
        self.forget(now);
        loop {
            let time_limit = self.time_limit;
            let number = self.unsettled.max(self.first);
            self.unsettled = number;
            let entry = self.get_mut(number)?;
            let is_open = matches!(entry.state, State::Open | State::Acknowledged);
            if is_open && entry.due + time_limit > now {
                return None;
            }
            let lost = *entry;
            if is_open {
                entry.state = State::Lost;
            }
            self.unsettled += 1;
            if is_open {
                return Some(lost);
            }
        }
    }

    /// Whether every request is answered or lost; true only after [`Ledger::expire`] has run.
    pub(super) fn is_settled(&self) -> bool {
        self.unsettled >= self.next()
    }

    /// Lost requests are remembered for as long again, so that a late answer is known as one.
    fn forget(&mut self, now: u64) {
        while let Some(entry) = self.entries.front() {
            let is_over = match entry.state {
                State::Answered => true,
                State::Lost => entry.due + 2 * self.time_limit <= now,
                State::Open | State::Acknowledged => false,
            };
            if !is_over {
                return;
            }
            self.entries.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_answered_once_or_lost_once() {
        let mut ledger = Ledger::new(10);
        (0..4).for_each(|number| ledger.open(number, number as u32, 0));
        let entry = |number: u64, state| Entry { due: number, client: number as u32, id: 0, state };
        assert_eq!(ledger.answer(1, 1), Found::First(entry(1, State::Open)));
        assert_eq!(ledger.answer(1, 1), Found::Again);
        assert_eq!((ledger.answer(2, 3), ledger.answer(4, 0)), (Found::Nothing, Found::Nothing));
        assert_eq!(ledger.expire(9), None);
        assert_eq!(ledger.expire(12), Some(entry(0, State::Open)));
        assert_eq!(ledger.expire(12), Some(entry(2, State::Open)));
        assert_eq!(ledger.expire(12), None);
        assert!(!ledger.is_settled());
        assert_eq!(ledger.answer(3, 3), Found::First(entry(3, State::Open)));
        assert_eq!(ledger.expire(12), None);
        assert!(ledger.is_settled());
        assert_eq!(ledger.answer(0, 0), Found::Late(entry(0, State::Lost)));
        assert_eq!(ledger.answer(0, 0), Found::Again);
        assert_eq!(ledger.expire(100), None);
        assert_eq!((ledger.answer(2, 2), ledger.next()), (Found::Again, 4), "it is forgotten");
        ledger.open(100, 7, 0);
        assert_eq!(ledger.answer(4, 7), Found::First(Entry { due: 100, client: 7, id: 0, state: State::Open }));
    }
}
