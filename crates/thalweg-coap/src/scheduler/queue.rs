//! The bounded queue before a pool of threads.

use std::collections::VecDeque;
use std::time::Duration;

use thalweg_base::time::Instant;

use super::admission::{Admission, AdmissionRank, Forecast, Patience};
use super::observer::WaitHistogram;

/// Jobs that wait, in the order of their arrival.
#[derive(Debug)]
pub struct Queue<J> {
    kept: VecDeque<Entry<J>>,
    droppable: VecDeque<Entry<J>>,
    admission: Admission,
    /// Number of the last job.
    last: u64,
    /// Bytes of the jobs, and how many they may be.
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Entry<J> {
    number: u64,
    since: Instant,
    bytes: usize,
    /// It is done, however long it waits.
    is_owed: bool,
    job: J,
}

/// A job for a queue.
#[derive(Debug)]
pub struct JobOffer<J> {
    /// Whether it may be dropped for others.
    pub rank: AdmissionRank,
    /// Memory that it holds.
    pub bytes: usize,
    /// The job.
    pub job: J,
}

/// A job that will not be done.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<J> {
    /// The job.
    pub job: J,
    /// When it is worth trying again: how long the backlog will last.
    pub retry_after: Duration,
}

/// Jobs taken from a queue at once.
#[derive(Debug)]
pub struct Taken<J> {
    /// To be done.
    pub jobs: Vec<J>,
    /// Waited too long to be worth doing.
    pub expired: Vec<Refused<J>>,
    /// Sum of the waits of both.
    pub waited: Duration,
    /// The longest wait.
    pub waited_max: Duration,
    /// All waits.
    pub waits: WaitHistogram,
}

impl<J> Default for Taken<J> {
    fn default() -> Taken<J> {
        let (waited, waited_max) = (Duration::ZERO, Duration::ZERO);
        Taken { jobs: Vec::new(), expired: Vec::new(), waited, waited_max, waits: WaitHistogram::default() }
    }
}

impl<J> Queue<J> {
    /// An empty queue.
    pub fn new(patience: Patience) -> Queue<J> {
        let admission = Admission::new(patience);
        let bytes_max = patience.bytes_max;
        Queue { kept: VecDeque::new(), droppable: VecDeque::new(), admission, last: 0, bytes: 0, bytes_max }
    }

    /// Jobs that wait.
    pub fn len(&self) -> usize {
        self.kept.len() + self.droppable.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a backlog stands.
    pub fn is_standing(&self) -> bool {
        self.admission.is_standing()
    }

    /// Sets the capacity of the threads from now on.
    pub fn set_forecast(&mut self, forecast: Forecast) {
        self.admission.set_forecast(forecast);
    }

    /// Droppable jobs that may still come to wait.
    pub fn room(&self) -> usize {
        self.admission.room(AdmissionRank::Droppable, self.len())
    }

    /// Takes into account that a droppable job was dropped for want of room, without being offered.
    pub fn handle_drop(&mut self) {
        self.admission.handle_drop();
    }

    /// Lets a job wait. Where there is no room for one that shall be kept, the oldest droppable one goes: that is what `Ok`
    /// may hold.
    ///
    /// # Errors
    /// The job itself, when it would wait too long, or those that wait hold as many bytes as they may.
    pub fn push(&mut self, now: Instant, offer: JobOffer<J>) -> Result<Option<Refused<J>>, Refused<J>> {
        let JobOffer { rank, bytes, job } = offer;
        let fits = |others: usize| others + bytes <= self.bytes_max;
        let admitted = self.admission.admit(rank, self.len());
        let mut evicted = None;
        if admitted.is_err() || !fits(self.bytes) {
            let retry_after = admitted.err().unwrap_or_else(|| self.admission.predicted_wait(self.len()));
            let makes_room = |oldest: &Entry<J>| rank == AdmissionRank::Kept && fits(self.bytes - oldest.bytes);
            if !self.droppable.front().is_some_and(makes_room) {
                return Err(Refused { job, retry_after });
            }
            if let Some(oldest) = self.droppable.pop_front() {
                self.bytes -= oldest.bytes;
                evicted = Some(Refused { job: oldest.job, retry_after });
            }
        }
        let entry = self.create_entry(now, bytes, job);
        match rank {
            AdmissionRank::Kept => self.kept.push_back(entry),
            AdmissionRank::Droppable => self.droppable.push_back(entry),
        }
        Ok(evicted)
    }

    /// Lets a job wait that is neither refused nor given back, however many others wait and however long it does. Whoever offers
    /// such jobs bounds their number.
    pub fn push_owed(&mut self, now: Instant, bytes: usize, job: J) {
        let entry = self.create_entry(now, bytes, job);
        self.kept.push_back(Entry { is_owed: true, ..entry });
    }

    /// A job that waits from now on.
    fn create_entry(&mut self, now: Instant, bytes: usize, job: J) -> Entry<J> {
        self.bytes += bytes;
        self.last += 1;
        Entry { number: self.last, since: now, bytes, is_owed: false, job }
    }

    /// Takes up to `count` jobs to be done, and those before them that waited too long.
    pub fn take(&mut self, now: Instant, count: usize, into: &mut Taken<J>) {
        while into.jobs.len() < count {
            let Some((rank, entry)) = self.pop() else { break };
            self.bytes -= entry.bytes;
            let waited = now.since(entry.since);
            into.waited += waited;
            into.waited_max = into.waited_max.max(waited);
            into.waits.note(waited);
            self.admission.handle_wait(now, waited);
            if waited > self.admission.wait_max(rank) && !entry.is_owed {
                let retry_after = self.admission.predicted_wait(self.len());
                into.expired.push(Refused { job: entry.job, retry_after });
            } else {
                into.jobs.push(entry.job);
            }
        }
        if self.is_empty() {
            self.admission.handle_empty();
        }
    }

    fn pop(&mut self) -> Option<(AdmissionRank, Entry<J>)> {
        let number = |entries: &VecDeque<Entry<J>>| entries.front().map_or(u64::MAX, |entry| entry.number);
        if number(&self.kept) <= number(&self.droppable) {
            self.kept.pop_front().map(|entry| (AdmissionRank::Kept, entry))
        } else {
            self.droppable.pop_front().map(|entry| (AdmissionRank::Droppable, entry))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    fn queue(length_max: usize) -> Queue<u32> {
        Queue::new(Patience { length_max, ..Patience::default() })
    }

    fn kept(job: u32) -> JobOffer<u32> {
        JobOffer { rank: AdmissionRank::Kept, bytes: 10, job }
    }

    fn droppable(job: u32) -> JobOffer<u32> {
        JobOffer { rank: AdmissionRank::Droppable, bytes: 10, job }
    }

    #[test]
    fn jobs_leave_in_the_order_of_their_arrival_whatever_their_rank() {
        let mut queue = queue(10);
        for offer in [kept(1), droppable(2), droppable(3), kept(4)] {
            assert_eq!(queue.push(at(0), offer), Ok(None));
        }
        let mut taken = Taken::default();
        queue.take(at(3), 3, &mut taken);
        assert_eq!((taken.jobs, queue.len()), (vec![1, 2, 3], 1));
        assert_eq!((taken.waited, taken.waited_max), (Duration::from_millis(9), Duration::from_millis(3)));
        assert_eq!(taken.waits.0, [0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0], "above 2.5 ms, below 5");
    }

    #[test]
    fn the_oldest_droppable_job_goes_before_one_to_be_kept_is_refused() {
        let mut queue = queue(3);
        for offer in [droppable(1), droppable(2), kept(3)] {
            assert_eq!(queue.push(at(0), offer), Ok(None));
        }
        let refused = |job| Refused { job, retry_after: Duration::ZERO };
        assert_eq!(queue.push(at(1), droppable(4)), Err(refused(4)));
        assert_eq!(queue.push(at(1), kept(5)), Ok(Some(refused(1))));
        assert_eq!(queue.push(at(1), kept(6)), Ok(Some(refused(2))));
        assert_eq!(queue.push(at(1), kept(7)), Err(refused(7)));
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn jobs_that_wait_hold_no_more_bytes_than_they_may() {
        let mut queue = Queue::new(Patience { bytes_max: 35, ..Patience::default() });
        for offer in [droppable(1), kept(2), kept(3)] {
            assert_eq!(queue.push(at(0), offer), Ok(None));
        }
        let refused = |job| Refused { job, retry_after: Duration::ZERO };
        assert_eq!(queue.push(at(0), droppable(4)), Err(refused(4)));
        assert_eq!(
            queue.push(at(0), JobOffer { bytes: 16, ..kept(5) }),
            Err(refused(5)),
            "one for another is not enough"
        );
        assert_eq!(queue.push(at(0), JobOffer { bytes: 15, ..kept(6) }), Ok(Some(refused(1))));
        assert_eq!(queue.push(at(0), JobOffer { bytes: 1, ..kept(7) }), Err(refused(7)));
        queue.take(at(1), 1, &mut Taken::default());
        assert_eq!(queue.push(at(1), kept(8)), Ok(None), "what was taken holds nothing here");
    }

    #[test]
    fn what_is_owed_is_done_however_full_the_queue_and_however_late_it_is() {
        let mut queue = Queue::new(Patience { length_max: 1, bytes_max: 10, ..Patience::default() });
        queue.push(at(0), kept(1)).unwrap();
        queue.push_owed(at(0), 10, 2);
        assert!(queue.push(at(0), kept(3)).is_err(), "it takes room like any other");
        let mut taken = Taken::default();
        queue.take(at(3000), 2, &mut taken);
        assert_eq!((taken.jobs, taken.expired.len()), (vec![2], 1));
        assert_eq!(queue.push(at(3000), kept(4)), Ok(None), "it holds nothing any more");
    }

    #[test]
    fn what_waited_too_long_is_not_done() {
        let mut queue = queue(10);
        queue.set_forecast(Forecast { rate: Some(10.0), can_grow: true });
        queue.push(at(0), kept(1)).unwrap();
        queue.push(at(1500), droppable(2)).unwrap();
        queue.push(at(1500), droppable(3)).unwrap();
        let mut taken = Taken::default();
        queue.take(at(2001), 1, &mut taken);
        assert_eq!(taken.jobs, [2]);
        assert_eq!(taken.expired, [Refused { job: 1, retry_after: Duration::from_millis(200) }]);
    }
}
