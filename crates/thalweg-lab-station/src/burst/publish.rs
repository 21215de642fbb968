//! The publisher's side: makes runs as it is asked to.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::content::{Announcement, BurstContent};
use super::{ANNOUNCEMENT, BurstNumber, COMPLETE, ENQUIRY, echoes, samples};
use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::link::Stop;
use crate::middleware::{ArrivedSample, Middleware, NumberedSample, SampleReader, SampleSink, SampleWriter, Work};
use crate::station::{pin, receive, wait_until};

/// A series of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstRequest {
    /// Samples a run.
    pub n: u32,
    /// Octets of each.
    pub size: u32,
    /// Runs; one if missing.
    #[serde(default = "one")]
    pub runs: u32,
    /// The application packs samples into larger ones of so many octets; 0 for none of this.
    #[serde(default)]
    pub wrap_bytes: u64,
    /// Microseconds that the application waits between two writes.
    #[serde(default)]
    pub pause_us: u64,
}

fn one() -> u32 {
    1
}

/// The publisher's word that it has met the subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstReady {
    /// Always true.
    pub ready: bool,
    /// The middleware.
    pub peer: String,
    /// Its version.
    pub version: String,
    /// The set of settings: a profile, or a transmission method.
    pub profile: String,
    /// The work of both ends for each sample.
    #[serde(default)]
    pub work: Work,
}

/// The publisher's answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BurstAnswer {
    /// The series was made.
    Runs {
        /// The time of each run in milliseconds.
        runs_ms: Vec<f64>,
    },
    /// It was not.
    Refused {
        /// Why.
        error: String,
    },
}

/// The writing end of a series of bursts.
pub struct BurstPublisher<M: Middleware> {
    writer: M::Writer,
    echoes: Receiver<Echo>,
    stop: Stop,
    run: u32,
    sample: M::Sample,
    size_max: u32,
    run_max: Duration,
    _reader: M::Reader,
    // Goes after its endpoints.
    _middleware: M,
}

impl<M: Middleware<Sample: NumberedSample>> BurstPublisher<M> {
    /// Joins on this CPU and waits until the subscriber answers. Samples may have up to `size_max` octets.
    ///
    /// # Errors
    /// The middleware refuses an endpoint, no subscriber appears, or `stop` was requested.
    pub fn open(setup: &M::Setup, cpu: Option<usize>, size_max: u32, stop: &Stop) -> Result<Self, Fault> {
        pin(cpu)?;
        let middleware = M::open(setup, &ProcessEnd::PUBLISHER)?;
        let writer = middleware.writer(&samples())?;
        BurstPublisher::on(middleware, writer, &echoes(), (size_max, RUN_MAX), stop)
    }

    /// As [`BurstPublisher::open`], with this participant, this writer and the channel of its echoes; a run may take up to `run_max`.
    ///
    /// # Errors
    /// As [`BurstPublisher::open`].
    pub fn on(
        middleware: M,
        writer: M::Writer,
        channel_back: &SampleChannel,
        (size_max, run_max): (u32, Duration),
        stop: &Stop,
    ) -> Result<Self, Fault> {
        let (heard, echoes_in) = channel();
        let reader = middleware.reader(channel_back, Echoes(heard))?;
        if !wait_until(MATCH_MAX, stop, || writer.matched() > 0 && reader.matched() > 0)? {
            return Err(Fault::Here(format!("no subscriber within {} s", MATCH_MAX.as_secs())));
        }
        let mut publisher = BurstPublisher {
            writer,
            echoes: echoes_in,
            stop: stop.clone(),
            run: 0,
            sample: M::Sample::of(Vec::new()),
            size_max,
            run_max,
            _reader: reader,
            _middleware: middleware,
        };
        publisher.greet()?;
        Ok(publisher)
    }

    /// That it is ready, with its settings: `profile`, or the transmission method where that is empty.
    pub fn ready(&self, setup: &M::Setup, profile: &str) -> BurstReady {
        let profile = if profile.is_empty() { self.writer.way().0 } else { profile.to_owned() };
        let (peer, version) = (M::NAME.to_owned(), M::VERSION.to_owned());
        BurstReady { ready: true, peer, version, profile, work: M::work(setup) }
    }

    /// Makes the runs of a request.
    ///
    /// # Errors
    /// `stop` was requested; everything else is an answer.
    pub fn answer(&mut self, request: &BurstRequest) -> Result<BurstAnswer, Fault> {
        match self.runs(request) {
            Ok(runs_ms) => Ok(BurstAnswer::Runs { runs_ms }),
            Err(Fault::Interrupted) => Err(Fault::Interrupted),
            Err(Fault::Here(error)) => Ok(BurstAnswer::Refused { error }),
        }
    }

    /// The milliseconds of each run of a request.
    ///
    /// # Errors
    /// A run did not end, a sample was damaged, or `stop` was requested.
    pub fn runs(&mut self, request: &BurstRequest) -> Result<Vec<f64>, Fault> {
        if request.size > self.size_max {
            return Err(Fault::Here(format!("size is {}; --max-size allows {}", request.size, self.size_max)));
        }
        let content = BurstContent::new(request)?;
        let pause = Duration::from_micros(request.pause_us);
        (0..request.runs).map(|_| self.measure(&content, pause)).collect()
    }

    /// Asks until the subscriber answers: both directions are matched then, on both sides.
    fn greet(&mut self) -> Result<(), Fault> {
        let hello = BurstNumber::new(0, ANNOUNCEMENT);
        let end = Instant::now() + MATCH_MAX;
        while Instant::now() < end {
            self.ask(hello, Announcement::default().on_wire())?;
            if self.echo(hello, Instant::now() + HELLO_PERIOD)?.is_some() {
                return Ok(());
            }
        }
        Err(Fault::Here(format!("the subscriber is matched but does not answer within {} s", MATCH_MAX.as_secs())))
    }

    fn ask(&mut self, number: BurstNumber, bytes: Vec<u8>) -> Result<(), Fault> {
        let mut question = M::Sample::of(bytes);
        question.set_number(number.on_wire());
        self.writer.write(&question)?;
        self.writer.flush()
    }

    /// The echo with that number, unless the time runs out; others are of runs that were given up.
    fn echo(&self, number: BurstNumber, end: Instant) -> Result<Option<Echo>, Fault> {
        while let Some(echo) = receive(&self.echoes, end, &self.stop)? {
            if echo.number == number {
                return Ok(Some(echo));
            }
        }
        Ok(None)
    }

    fn measure(&mut self, content: &BurstContent, pause: Duration) -> Result<f64, Fault> {
        self.run += 1;
        let run = self.run;
        let announcement = BurstNumber::new(run, ANNOUNCEMENT);
        self.ask(announcement, content.announcement.on_wire())?;
        if self.echo(announcement, Instant::now() + self.run_max)?.is_none() {
            let seconds = self.run_max.as_secs();
            return Err(Fault::Here(format!("run {run}: its announcement was not answered in {seconds} s")));
        }
        content.begin(self.sample.bytes_mut());
        let start = Instant::now();
        self.send(content, pause, start)?;
        let Some(echo) = self.echo(BurstNumber::new(run, COMPLETE), start + self.run_max)? else {
            return Err(self.incomplete(content));
        };
        if !echo.bytes.is_empty() {
            return Err(Fault::Here(format!("run {run}: {}", String::from_utf8_lossy(&echo.bytes))));
        }
        Ok((echo.at - start).as_secs_f64() * 1e3)
    }

    fn send(&mut self, content: &BurstContent, pause: Duration, start: Instant) -> Result<(), Fault> {
        let count = content.announcement.count;
        for index in 0..count {
            let number = BurstNumber::new(self.run, index);
            content.prepare(number, self.sample.bytes_mut());
            self.sample.set_number(number.on_wire());
            self.writer.write(&self.sample).map_err(|error| {
                let run = self.run;
                Fault::Here(format!("run {run}: sample {index} of {count}: {}", Fault::from(error)))
            })?;
            if !pause.is_zero() && index + 1 < count {
                let written = Instant::now();
                while written.elapsed() < pause {
                    std::hint::spin_loop();
                }
            }
            if index.is_multiple_of(1024) && start.elapsed() > self.run_max {
                return Err(self.incomplete(content));
            }
        }
        self.writer.flush()
    }

    /// What to say of a run that did not end: how many samples the subscriber has.
    fn incomplete(&mut self, content: &BurstContent) -> Fault {
        let enquiry = BurstNumber::new(self.run, ENQUIRY);
        let asked = self.ask(enquiry, Vec::new()).and_then(|()| self.echo(enquiry, Instant::now() + ENQUIRY_MAX));
        let echo = match asked {
            Err(Fault::Interrupted) => return Fault::Interrupted,
            asked => asked.ok().flatten(),
        };
        let arrived = echo.and_then(|echo| echo.bytes.first_chunk::<4>().copied().map(u32::from_le_bytes));
        let arrived = arrived.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
        let Announcement { count, size, .. } = content.announcement;
        let (run, seconds) = (self.run, self.run_max.as_secs());
        Fault::Here(format!("run {run}: {arrived} of {count} samples of {size} B arrived in {seconds} s"))
    }
}

/// An answer of the subscriber.
struct Echo {
    number: BurstNumber,
    at: Instant,
    bytes: Vec<u8>,
}

/// Notes when an echo arrives.
struct Echoes(Sender<Echo>);

impl<M: Middleware> SampleSink<M> for Echoes {
    fn take(&mut self, arrival: M::Arrival<'_>) {
        let at = Instant::now();
        let number = BurstNumber::from_wire(arrival.number());
        // Nobody listens any more when the process is about to end.
        let _ = self.0.send(Echo { number, at, bytes: arrival.bytes().to_vec() });
    }
}

/// Says on `output` that `publisher` is ready, then answers each line of `input` until that ends or `stop` is requested.
///
/// # Errors
/// `output` is closed, or `stop` was requested.
pub fn serve_bursts<M: Middleware<Sample: NumberedSample>>(
    mut publisher: BurstPublisher<M>,
    ready: &BurstReady,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    stop: &Stop,
) -> Result<(), Fault> {
    let mut say = |line: String| writeln!(output, "{line}").and_then(|()| output.flush()).map_err(Fault::here);
    say(serde_json::to_string(ready).map_err(Fault::here)?)?;
    let lines = lines(input);
    while !stop.is_requested() {
        let line = match lines.recv_timeout(LOOK_PERIOD) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let answer = match serde_json::from_str::<BurstRequest>(&line) {
            Ok(request) => publisher.answer(&request)?,
            Err(error) => BurstAnswer::Refused { error: format!("{line}: {error}") },
        };
        say(serde_json::to_string(&answer).map_err(Fault::here)?)?;
    }
    Err(Fault::Interrupted)
}

/// A condition that holds from the end of `input` on.
pub fn until_input_ends(input: impl BufRead + Send + 'static) -> impl Fn() -> bool {
    let lines = lines(input);
    move || {
        loop {
            match lines.try_recv() {
                Ok(_) => {}
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }
}

/// The lines of `input`, read in a thread so that nobody waits for them for long; blank ones are left out.
fn lines(input: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(LINES_MAX);
    std::thread::spawn(move || {
        for line in input.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Requests that may wait; who asks more waits as well.
const LINES_MAX: usize = 64;
/// How long a run may take.
const RUN_MAX: Duration = Duration::from_secs(20);
/// How long the subscriber may take to appear, and to say how much of a run has arrived.
const MATCH_MAX: Duration = Duration::from_secs(20);
const ENQUIRY_MAX: Duration = Duration::from_secs(2);
/// How often an unanswered question of the first handshake is repeated.
const HELLO_PERIOD: Duration = Duration::from_millis(100);
const LOOK_PERIOD: Duration = Duration::from_millis(50);
