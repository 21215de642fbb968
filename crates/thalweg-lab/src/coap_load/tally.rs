//! Counts what becomes of requests. Times are nanoseconds since the start of the run.

use std::time::Duration;

use thalweg_coap::message::Code;

use super::plan::LoadPlan;
use super::request::Verdict;
use super::result::{LoadCounts, ResponseTimes, Window};
use crate::statistics::Latencies;

/// Outcomes of the requests that were due in the counted part of a run.
pub(super) struct Tally {
    start: u64,
    end: u64,
    window: Option<u64>,
    /// What is counted besides [`Outcomes`].
    pub(super) counts: LoadCounts,
    /// First answers by the byte of their code.
    codes: [u64; 256],
    resets: u64,
    slips: Latencies,
    whole: Outcomes,
    windows: Vec<Outcomes>,
}

/// Outcomes of the requests that were due within some time.
#[derive(Clone, Default)]
struct Outcomes {
    offered: u64,
    served: u64,
    rejected: u64,
    lost: u64,
    /// Right answers that came within that time, whenever their requests were due.
    answered: u64,
    latencies: Latencies,
}

impl Tally {
    pub(super) fn new(plan: &LoadPlan) -> Tally {
        let start = plan.warm_up.as_nanos() as u64;
        let end = start + plan.counted().as_nanos() as u64;
        let window = plan.window.map(|window| window.as_nanos() as u64);
        let windows = window.map_or(0, |window| (end - start).div_ceil(window));
        Tally {
            start,
            end,
            window,
            counts: LoadCounts::default(),
            codes: [0; 256],
            resets: 0,
            slips: Latencies::new(),
            whole: Outcomes::default(),
            windows: vec![Outcomes::default(); windows as usize],
        }
    }

    /// Whether something at this time counts.
    pub(super) fn is_counted(&self, time: u64) -> bool {
        (self.start..self.end).contains(&time)
    }

    /// When counting ends, and with it the load.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Notes something of a request that was due at a counted time, for the whole run and for its window.
    fn note(&mut self, due: u64, note: impl Fn(&mut Outcomes)) {
        note(&mut self.whole);
        let index = self.window.map(|window| (due - self.start) / window);
        index.and_then(|index| self.windows.get_mut(index as usize)).map(note);
    }

    /// A request was due, and left at `now` unless the system refused it.
    pub(super) fn handle_request(&mut self, due: u64, now: u64, is_taken: bool) {
        if self.is_counted(due) {
            *if is_taken { &mut self.counts.sent } else { &mut self.counts.unsent } += 1;
            self.slips.record(Duration::from_nanos(now.saturating_sub(due)));
            self.note(due, |outcomes| outcomes.offered += 1);
        }
    }

    /// The system refused a request of a closed loop, which is tried again and offered once it leaves.
    pub(super) fn handle_refusal(&mut self, due: u64) {
        self.counts.unsent += u64::from(self.is_counted(due));
    }

    /// The first answer to a request came in time.
    pub(super) fn handle_answer(&mut self, due: u64, now: u64, code: Code, verdict: Verdict) {
        if verdict == Verdict::Right && self.is_counted(now) {
            self.note(now, |outcomes| outcomes.answered += 1);
        }
        if !self.is_counted(due) {
            return;
        }
        self.codes[usize::from(code.byte())] += 1;
        let latency = Duration::from_nanos(now.saturating_sub(due));
        match verdict {
            Verdict::Right => self.note(due, |outcomes| {
                outcomes.served += 1;
                outcomes.latencies.record(latency);
            }),
            Verdict::Rejected => self.note(due, |outcomes| outcomes.rejected += 1),
            Verdict::Wrong => self.counts.wrong += 1,
        }
    }

    /// A request was reset.
    pub(super) fn handle_reset(&mut self, due: u64) {
        if self.is_counted(due) {
            self.resets += 1;
            self.note(due, |outcomes| outcomes.rejected += 1);
        }
    }

    /// A request has no answer in time.
    pub(super) fn handle_lost(&mut self, due: u64) {
        if self.is_counted(due) {
            self.note(due, |outcomes| outcomes.lost += 1);
        }
    }

    /// An answer to a lost request came.
    pub(super) fn handle_late(&mut self, due: u64) {
        self.counts.late += u64::from(self.is_counted(due));
    }

    /// Outcomes of all requests.
    pub(super) fn counts(&self) -> LoadCounts {
        let Outcomes { offered, served, rejected, lost, answered, .. } = self.whole;
        let answered = Some(answered);
        let mut counts = LoadCounts { offered, served, answered, rejected, lost, ..self.counts.clone() };
        let seen = self.codes.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.codes.extend(seen.map(|(byte, count)| {
            let code = Code::from_byte(byte as u8);
            (format!("{}.{:02}", code.class(), code.detail()), *count)
        }));
        if self.resets > 0 {
            counts.codes.insert("RST".to_owned(), self.resets);
        }
        counts
    }

    pub(super) fn response_times(&self) -> ResponseTimes {
        ResponseTimes::of(&self.whole.latencies, self.whole.offered)
    }

    /// Delays of sending after the scheduled time.
    pub(super) fn slips(&self) -> &Latencies {
        &self.slips
    }

    pub(super) fn windows(&self) -> Vec<Window> {
        let Some(length) = self.window else { return Vec::new() };
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let windows = self.windows.iter().zip(0..).map(|(window, index)| {
            let start = index * length;
            Window {
                start_s: seconds(start),
                seconds: seconds(length.min(self.end - self.start - start)),
                offered: window.offered,
                served: window.served,
                rejected: window.rejected,
                lost: window.lost,
                answered: window.answered,
                latency: ResponseTimes::of(&window.latencies, window.offered),
            }
        });
        windows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_a_verified_answer_are_infinitely_late() {
        let plan = LoadPlan { warm_up: Duration::ZERO, ..LoadPlan::new(([127, 0, 0, 1], 5683).into()) };
        let mut tally = Tally::new(&plan);
        let ms = |count: u64| count * 1_000_000;
        // Of 1,000 requests 600 are answered after 1 ms; 200 are lost, 100 refused by the server and 100 by the system.
        for number in 0..1_000 {
            tally.handle_request(number, number, number < 900);
        }
        let code = |verdict| if verdict == Verdict::Right { Code::CONTENT } else { Code::SERVICE_UNAVAILABLE };
        (0..600).for_each(|due| tally.handle_answer(due, due + ms(1), code(Verdict::Right), Verdict::Right));
        (600..700).for_each(|due| tally.handle_answer(due, due + ms(1), code(Verdict::Rejected), Verdict::Rejected));
        (700..900).for_each(|due| tally.handle_lost(due));
        let times = tally.response_times();
        assert!(times.p50_us.is_some_and(|us| (us - 1_000.0).abs() < 2.0), "{times:?}");
        assert_eq!((times.p90_us, times.p99_us, times.p999_us), (Some(f64::INFINITY), Some(f64::INFINITY), None));
        let text = serde_json::to_string(&times).expect("JSON");
        assert!(text.contains(r#""p99_us":"never""#) && text.contains(r#""p999_us":null"#), "{text}");
        assert_eq!(serde_json::from_str::<ResponseTimes>(&text).expect("JSON"), times);
    }

    #[test]
    fn an_answer_after_the_counted_time_serves_its_request_and_is_none_of_the_rate() {
        let plan = LoadPlan {
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(5),
            ..LoadPlan::new(([127, 0, 0, 1], 5683).into())
        };
        let mut tally = Tally::new(&plan);
        let ms = |count: u64| count * 1_000_000;
        let requests = [
            (500, 1_500, Verdict::Right),
            (2_000, 3_000, Verdict::Right),
            (5_000, 5_999, Verdict::Right),
            (5_500, 6_000, Verdict::Right),
            (5_900, 7_500, Verdict::Right),
            (2_000, 3_000, Verdict::Wrong),
            (2_000, 3_000, Verdict::Rejected),
        ];
        for (due, answered, verdict) in requests {
            tally.handle_request(ms(due), ms(due), true);
            tally.handle_answer(ms(due), ms(answered), Code::CONTENT, verdict);
        }
        let counts = tally.counts();
        assert_eq!((counts.offered, counts.served, counts.wrong, counts.rejected, counts.lost), (6, 4, 1, 1, 0));
        assert_eq!((counts.answered, counts.right_answers()), (Some(3), 3));
        assert_eq!(LoadCounts { answered: None, ..counts }.right_answers(), 4, "an older result");
    }
}
