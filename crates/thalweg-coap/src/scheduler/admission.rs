//! Admission: a queue admits no request that would leave it later than its sender waits.

use std::time::Duration;

use thalweg_base::time::Instant;

use super::controller::REPEAT_AFTER;

/// Bounds on the wait in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest wait. Default 2 s: then a client repeats its request (RFC 7252 §4.8) or has given up.
    pub wait_max: Duration,
    /// The longest wait while the queue does not get shorter than that by itself. Default 25 ms. A backlog after a burst
    /// may be worked off; one that stands only makes everything late.
    pub standing_max: Duration,
    /// Entries of the queue, whatever they would wait; bounds its memory. Default 65,536.
    pub length_max: usize,
    /// Bytes of the entries of the queue. Default 32 MiB.
    pub bytes_max: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            wait_max: REPEAT_AFTER,
            standing_max: Duration::from_millis(25),
            length_max: 65_536,
            bytes_max: 32 << 20,
        }
    }
}

/// The rank of a request: droppable ones make room first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionRank {
    /// Its sender counts on losses: a non-confirmable request.
    Droppable,
    /// Its sender wants an answer and repeats what gets none: a confirmable request.
    Kept,
}

/// The capacity of the threads behind a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// Requests that all of them together finish a second; `None` before anything was finished.
    pub rate: Option<f64>,
    /// Whether the law may still add threads.
    pub can_grow: bool,
}

/// The law of one queue's entrance and exit.
#[derive(Clone, Debug)]
pub struct Admission {
    patience: Patience,
    forecast: Forecast,
    /// The shortest wait of the interval that runs.
    least: Option<Duration>,
    interval_start: Option<Instant>,
    standing: bool,
    /// Whether a request was refused in this interval.
    has_refused: bool,
}

impl Admission {
    /// An entrance through which everything may go until something is known.
    pub fn new(patience: Patience) -> Admission {
        let forecast = Forecast { rate: None, can_grow: true };
        Admission { patience, forecast, least: None, interval_start: None, standing: false, has_refused: false }
    }

    /// Sets the capacity of the threads from now on.
    pub fn set_forecast(&mut self, forecast: Forecast) {
        self.forecast = forecast;
    }

    /// Whether a backlog stands: no request waited less than allowed for a whole interval.
    pub fn is_standing(&self) -> bool {
        self.standing
    }

    /// Whether a request may wait behind `length` others.
    ///
    /// # Errors
    /// When it would wait too long; the error is how long the backlog needs to be worked off.
    pub fn admit(&mut self, rank: AdmissionRank, length: usize) -> Result<(), Duration> {
        let predicted = self.predicted_wait(length);
        let fits = length < self.patience.length_max && predicted <= self.wait_max(rank);
        self.has_refused |= !fits;
        if fits { Ok(()) } else { Err(predicted) }
    }

    /// Number of further requests of this rank that may wait behind `length` others.
    pub fn room(&self, rank: AdmissionRank, length: usize) -> usize {
        let rate = self.forecast.rate.filter(|rate| *rate > 0.0);
        let in_time = rate.map_or(usize::MAX, |rate| (self.wait_max(rank).as_secs_f64() * rate) as usize);
        in_time.saturating_add(1).min(self.patience.length_max).saturating_sub(length)
    }

    /// Takes into account that a request was dropped before it came to the entrance, for want of room.
    pub fn handle_drop(&mut self) {
        self.has_refused = true;
    }

    /// Time for which `length` requests keep the threads busy; zero while their rate is not known.
    pub fn predicted_wait(&self, length: usize) -> Duration {
        let rate = self.forecast.rate.filter(|rate| *rate > 0.0);
        let seconds = rate.map_or(0.0, |rate| length as f64 / rate);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Longest permitted wait of a request of this rank at present.
    pub fn wait_max(&self, rank: AdmissionRank) -> Duration {
        match (self.standing, rank) {
            (false, _) => self.patience.wait_max,
            (true, AdmissionRank::Droppable) => self.patience.standing_max,
            (true, AdmissionRank::Kept) => (self.patience.standing_max * 2).min(self.patience.wait_max),
        }
    }

    /// Takes into account that a request left the queue after `waited`.
    ///
    /// The shortest wait of an interval tells a standing backlog from a burst (RFC 8289 §3.1). The interval is a tenth of a
    /// second, or a whole one while more threads may still come to help. Once it stands, short waits are owed to the
    /// refusals; it is over when an interval needs none.
    pub fn handle_wait(&mut self, now: Instant, waited: Duration) {
        self.least = Some(self.least.map_or(waited, |least| least.min(waited)));
        let interval = if self.forecast.can_grow { GROWING_INTERVAL } else { INTERVAL };
        if now.since(*self.interval_start.get_or_insert(now)) >= interval {
            let is_late = self.least > Some(self.patience.standing_max);
            self.standing = is_late || (self.standing && self.has_refused);
            (self.least, self.has_refused) = (None, false);
            self.interval_start = Some(now);
        }
    }

    /// Takes into account that the queue is empty.
    pub fn handle_empty(&mut self) {
        self.least = Some(Duration::ZERO);
    }
}

const INTERVAL: Duration = Duration::from_millis(100);
const GROWING_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    fn admission(rate: f64, can_grow: bool) -> Admission {
        let mut admission = Admission::new(Patience::default());
        admission.set_forecast(Forecast { rate: Some(rate), can_grow });
        admission
    }

    #[test]
    fn who_would_wait_longer_than_a_client_does_is_refused() {
        let mut admission = admission(1000.0, true);
        assert_eq!(admission.admit(AdmissionRank::Kept, 2000), Ok(()));
        assert_eq!(admission.admit(AdmissionRank::Kept, 2001), Err(Duration::from_millis(2001)));
    }

    #[test]
    fn room_is_what_would_be_let_in() {
        let mut admission = admission(1000.0, false);
        run(&mut admission, 0, 150, 60);
        let unknown = Admission::new(Patience { length_max: 10, ..Patience::default() });
        for admission in [&mut admission, &mut unknown.clone()] {
            for rank in [AdmissionRank::Droppable, AdmissionRank::Kept] {
                let room = admission.room(rank, 3);
                assert!(admission.admit(rank, 3 + room - 1).is_ok() && admission.admit(rank, 3 + room).is_err());
                assert_eq!(admission.room(rank, 3 + room + 1), 0);
            }
        }
    }

    #[test]
    fn memory_is_bounded_where_no_rate_is_known() {
        let mut admission = Admission::new(Patience { length_max: 10, ..Patience::default() });
        assert_eq!(
            (admission.admit(AdmissionRank::Kept, 9), admission.admit(AdmissionRank::Kept, 10)),
            (Ok(()), Err(Duration::ZERO))
        );
    }

    /// Lets requests leave every 10 ms after `waited`, for `millis`.
    fn run(admission: &mut Admission, start: u64, millis: u64, waited: u64) {
        for step in (0..=millis).step_by(10) {
            admission.handle_wait(at(start + step), Duration::from_millis(waited));
        }
    }

    #[test]
    fn a_backlog_that_stands_shortens_the_wait_and_hits_droppable_requests_first() {
        let mut admission = admission(1000.0, false);
        run(&mut admission, 0, 150, 60);
        assert!(admission.is_standing());
        assert_eq!(
            (admission.admit(AdmissionRank::Droppable, 25), admission.admit(AdmissionRank::Kept, 50)),
            (Ok(()), Ok(()))
        );
        assert!(
            admission.admit(AdmissionRank::Droppable, 26).is_err() && admission.admit(AdmissionRank::Kept, 51).is_err()
        );
    }

    #[test]
    fn a_standing_backlog_is_over_when_nobody_had_to_be_refused_for_a_while() {
        let mut admission = admission(1000.0, false);
        run(&mut admission, 0, 150, 60);
        for step in 0..50 {
            assert!(admission.admit(AdmissionRank::Droppable, 26).is_err(), "{step}");
            admission.handle_wait(at(160 + step * 10), Duration::from_millis(20));
        }
        run(&mut admission, 660, 210, 20);
        assert!(!admission.is_standing());
    }

    #[test]
    fn a_standing_backlog_goes_on_while_requests_are_dropped_before_the_entrance() {
        let mut admission = admission(1000.0, false);
        run(&mut admission, 0, 150, 60);
        for start in (160..660).step_by(100) {
            admission.handle_drop();
            run(&mut admission, start, 90, 20);
            assert!(admission.is_standing(), "{start}");
        }
        run(&mut admission, 660, 210, 20);
        assert!(!admission.is_standing());
    }

    #[test]
    fn a_burst_is_no_standing_backlog() {
        let mut burst = admission(1000.0, false);
        run(&mut burst, 0, 90, 60);
        run(&mut burst, 95, 100, 20);
        assert!(!burst.is_standing());
        let mut emptied = admission(1000.0, false);
        run(&mut emptied, 0, 90, 60);
        emptied.handle_empty();
        run(&mut emptied, 100, 0, 60);
        assert!(!emptied.is_standing());
    }

    #[test]
    fn a_pool_that_can_grow_gets_a_second() {
        let mut admission = admission(1000.0, true);
        run(&mut admission, 0, 950, 60);
        assert!(!admission.is_standing());
        run(&mut admission, 960, 100, 60);
        assert!(admission.is_standing());
    }
}
