//! Ping-pong: one end writes a sample, the other sends it back, again and again.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::channel::ProcessEnd;
use crate::fault::Fault;
use crate::latencies::Latencies;
use crate::link::{Stop, lock};
use crate::middleware::{ArrivedSample, Middleware, NumberedSample, SampleReader, SampleSink, SampleWriter, Work};
use crate::order::ReliabilitySetting;
use crate::perf_options::{ANSWER_PATIENCE, Limit, PEER_PATIENCE, PerfOptions, check_size};
use crate::round_trips::RoundTripFigures;
use crate::station::wait_until;

/// The measuring end: returns when the limit is reached.
///
/// # Errors
/// No answer comes, an answer is wrong, or `stop` was requested.
pub fn ping<M: Middleware<Sample: NumberedSample>>(
    options: &PerfOptions<M::Setup>,
    stop: &Stop,
) -> Result<RoundTripFigures, Fault> {
    let middleware: M = options.open(&ProcessEnd::PUBLISHER)?;
    let mut writer = middleware.writer(&options.channel(PING))?;
    let game = Arc::new(SharedGame { game: Mutex::new(Game::<M>::new(options)?), news: Condvar::new() });
    let reader = middleware.reader(&options.channel(PONG), Returns(Arc::clone(&game)))?;
    if !wait_until(PEER_PATIENCE, stop, || writer.matched() > 0 && reader.matched() > 0)? {
        let patience = PEER_PATIENCE.as_secs();
        return Err(Fault::Here(format!(
            "no other end appeared within {patience} s; start the same measurement with --role sub and the same options"
        )));
    }
    game.greet(&mut writer, stop)?;
    let patience = match options.reliability {
        ReliabilitySetting::Reliable => ANSWER_PATIENCE,
        ReliabilitySetting::BestEffort => LOSS_PATIENCE,
    };
    lock(&game.game).begin(writer)?;
    let mut heard = (0, Instant::now());
    loop {
        let mut state = game.wait(LOOK_PERIOD);
        if stop.is_requested() {
            return Err(Fault::Interrupted);
        }
        if let Some(over) = state.over.take() {
            return over.map(|()| state.figures(M::work(&options.setup)));
        }
        if heard.0 != state.number {
            heard = (state.number, Instant::now());
        } else if heard.1.elapsed() >= patience {
            if options.reliability == ReliabilitySetting::Reliable || reader.matched() == 0 {
                let (number, patience) = (state.number, patience.as_secs_f64());
                return Err(Fault::Here(format!("sample {number} was not answered within {patience} s")));
            }
            state.handle_loss(Instant::now())?;
        }
    }
}

/// The answering end: sends back what arrives until the other end leaves or `stop` is requested.
///
/// # Errors
/// The other end does not appear, or an answer cannot be sent.
pub fn pong<M: Middleware<Sample: NumberedSample>>(options: &PerfOptions<M::Setup>, stop: &Stop) -> Result<(), Fault> {
    let middleware: M = options.open(&ProcessEnd::subscriber())?;
    let writer = middleware.writer(&options.channel(PONG))?;
    let failure = Arc::new(Mutex::new(None));
    let answer = Answer::<M> { writer, failure: Arc::clone(&failure) };
    let reader = middleware.reader(&options.channel(PING), answer)?;
    if !wait_until(PEER_PATIENCE, stop, || reader.matched() > 0)? {
        return Err(Fault::Here(format!("no other end appeared within {} s", PEER_PATIENCE.as_secs())));
    }
    while !stop.is_requested() && reader.matched() > 0 {
        if let Some(fault) = lock(&failure).take() {
            return Err(fault);
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    Ok(())
}

/// Writes back what arrives.
struct Answer<M: Middleware> {
    writer: M::Writer,
    failure: Arc<Mutex<Option<Fault>>>,
}

impl<M: Middleware> SampleSink<M> for Answer<M> {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let sent = self.writer.send_back(arrival).map_err(Fault::from).and_then(|()| self.writer.flush());
        if let Err(fault) = sent {
            self.fail(fault);
        }
    }

    fn fail(&mut self, fault: Fault) {
        *lock(&self.failure) = Some(fault);
    }
}

/// The game, played in the thread that brings the answers while the main thread waits for its end.
struct SharedGame<M: Middleware> {
    game: Mutex<Game<M>>,
    news: Condvar,
}

impl<M: Middleware<Sample: NumberedSample>> SharedGame<M> {
    fn wait(&self, patience: Duration) -> MutexGuard<'_, Game<M>> {
        let waited = self.news.wait_timeout_while(lock(&self.game), patience, |game| game.over.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sends greetings until one comes back: from then on both sides have matched in both directions.
    fn greet(&self, writer: &mut M::Writer, stop: &Stop) -> Result<(), Fault> {
        let mut greeting = M::Sample::of(Vec::new());
        greeting.set_number(GREETING);
        let deadline = Instant::now() + ANSWER_PATIENCE;
        while Instant::now() < deadline {
            writer.write(&greeting)?;
            writer.flush()?;
            if wait_until(GREETING_PERIOD, stop, || lock(&self.game).is_greeted)? {
                return Ok(());
            }
        }
        let patience = ANSWER_PATIENCE.as_secs();
        Err(Fault::Here(format!("the other end matched but did not answer within {patience} s")))
    }
}

struct Returns<M: Middleware>(Arc<SharedGame<M>>);

impl<M: Middleware<Sample: NumberedSample>> SampleSink<M> for Returns<M> {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let now = Instant::now();
        let mut game = lock(&self.0.game);
        if let Err(fault) = game.handle_return(now, &arrival) {
            game.over = Some(Err(fault));
        }
        if game.over.is_some() {
            self.0.news.notify_one();
        }
    }

    fn fail(&mut self, fault: Fault) {
        lock(&self.0.game).over = Some(Err(fault));
        self.0.news.notify_one();
    }
}

/// The measuring end's side of the game.
struct Game<M: Middleware> {
    options: GameOptions,
    /// There once the game has begun.
    writer: Option<M::Writer>,
    sample: M::Sample,
    number: u64,
    sent: Instant,
    warm_up: u64,
    end: Option<Instant>,
    latencies: Latencies,
    /// Best-effort samples that never came back, those of the warm-up left out.
    lost: u64,
    /// Whether any sample came back while it was awaited.
    has_returned: bool,
    is_greeted: bool,
    over: Option<Result<(), Fault>>,
}

/// What the game goes by.
struct GameOptions {
    size: u64,
    limit: Limit,
    reliability: ReliabilitySetting,
}

impl<M: Middleware<Sample: NumberedSample>> Game<M> {
    fn new(options: &PerfOptions<M::Setup>) -> Result<Game<M>, Fault> {
        let PerfOptions { size, limit, reliability, .. } = *options;
        Ok(Game {
            options: GameOptions { size, limit, reliability },
            writer: None,
            sample: options.sample()?,
            number: 0,
            sent: Instant::now(),
            warm_up: if size > 100_000 { WARM_UP_LARGE } else { WARM_UP },
            end: None,
            latencies: Latencies::new(),
            lost: 0,
            has_returned: false,
            is_greeted: false,
            over: None,
        })
    }

    fn begin(&mut self, writer: M::Writer) -> Result<(), Fault> {
        self.writer = Some(writer);
        self.serve_next()
    }

    fn serve_next(&mut self) -> Result<(), Fault> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.number += 1;
        self.sample.set_number(self.number);
        self.sent = Instant::now();
        writer.write(&self.sample)?;
        writer.flush()
    }

    /// Notes the time and serves again, or ends the game.
    fn handle_return(&mut self, now: Instant, arrival: &M::Arrival<'_>) -> Result<(), Fault> {
        let number = arrival.number();
        if number == GREETING {
            self.is_greeted = true;
            return Ok(());
        }
        if self.over.is_some() {
            return Ok(());
        }
        if number != self.number {
            // An answer of a round that was given up.
            if self.options.reliability == ReliabilitySetting::BestEffort {
                return Ok(());
            }
            let expected = self.number;
            return Err(Fault::Here(format!("sample {number} came back where {expected} was expected")));
        }
        check_size(arrival.bytes(), self.options.size)?;
        self.has_returned = true;
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.latencies.record(now - self.sent);
            if self.check_limit(now) {
                self.over = Some(Ok(()));
                return Ok(());
            }
        }
        self.serve_next()
    }

    /// Gives a round trip up and serves again, or ends the game.
    fn handle_loss(&mut self, now: Instant) -> Result<(), Fault> {
        if !self.has_returned && self.number >= UNANSWERED_MAX {
            let (number, patience) = (self.number, LOSS_PATIENCE.as_secs_f64());
            return Err(Fault::Here(format!("none of {number} samples came back, each within {patience} s")));
        }
        // A warm-up that only answers end would have none where nothing is answered any more.
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else {
            self.lost += 1;
            if self.check_limit(now) {
                self.over = Some(Ok(()));
                return Ok(());
            }
        }
        self.serve_next()
    }

    fn figures(&self, work: Work) -> RoundTripFigures {
        RoundTripFigures::of(self.options.size, work, (&self.latencies, self.lost))
    }

    /// Whether the game is long enough; its time begins with the first round trip that counts.
    fn check_limit(&mut self, now: Instant) -> bool {
        match self.options.limit {
            Limit::Samples(count) => self.latencies.count() + self.lost >= count,
            Limit::Time(duration) => now >= *self.end.get_or_insert(now + duration),
        }
    }
}

/// The topic of the samples.
pub const PING: &str = "thalweg_perf_ping";
/// The topic of their echoes.
pub const PONG: &str = "thalweg_perf_pong";
/// Number of the samples that are no part of the game.
const GREETING: u64 = u64::MAX;
const GREETING_PERIOD: Duration = Duration::from_millis(50);
/// After this long a best-effort sample counts as lost and the next one is served.
const LOSS_PATIENCE: Duration = Duration::from_millis(500);
/// A game of which so many first samples are lost, ten seconds long, has no other end.
const UNANSWERED_MAX: u64 = 20;
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// Round trips before the measured ones: caches, branch predictors and RTT estimates settle.
const WARM_UP: u64 = 500;
const WARM_UP_LARGE: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middleware::OctetArrival;
    use crate::perf_options::Measurement;
    use crate::stub::{Stub, StubEnd};

    /// A best-effort game of three samples that has begun.
    fn game() -> Game<Stub> {
        let options = PerfOptions {
            measurement: Measurement::Latency,
            size: 1,
            limit: Limit::Samples(3),
            reliability: ReliabilitySetting::BestEffort,
            history: None,
            readers: 1,
            reader: 0,
            writer_cpu: None,
            reader_cpus: Vec::new(),
            setup: (),
        };
        let mut game = Game::<Stub>::new(&options).expect("a game");
        game.begin(StubEnd).expect("served");
        game
    }

    #[test]
    fn a_game_of_which_nothing_comes_back_ends_with_the_reason() {
        let mut game = game();
        let fault = (0..100).find_map(|_| game.handle_loss(Instant::now()).err()).expect("an end");
        assert_eq!(fault.to_string(), "none of 20 samples came back, each within 0.5 s");
    }

    #[test]
    fn samples_that_are_lost_end_the_warm_up_too() {
        let mut game = game();
        game.handle_return(Instant::now(), &OctetArrival { number: 1, bytes: &[0] }).expect("served again");
        for _ in 0..WARM_UP + 2 {
            assert!(game.over.is_none());
            game.handle_loss(Instant::now()).expect("served again");
        }
        assert_eq!((game.lost, game.over.take()), (3, Some(Ok(()))));
    }
}
