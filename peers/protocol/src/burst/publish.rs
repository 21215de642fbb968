//! The publisher's side: answers the requests on standard input.

use std::io::{BufRead, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;

use super::{ANNOUNCEMENT, COMPLETE, ENQUIRY, Number, echoes, samples};
use crate::middleware::{Middleware, Reader, Sink, Writer};
use crate::options::BurstOptions;
use crate::process;

/// How long a run may take.
const RUN_MAX: Duration = Duration::from_secs(20);
/// How long the subscriber may take to appear, and to say how much of a run has arrived.
const MATCH_MAX: Duration = Duration::from_secs(20);
const ENQUIRY_MAX: Duration = Duration::from_secs(2);
/// How often an unanswered question of the first handshake is repeated.
const HELLO_PERIOD: Duration = Duration::from_millis(100);

/// One line on standard input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Samples a run.
    n: u32,
    /// Bytes a sample.
    size: usize,
    #[serde(default = "one")]
    runs: u32,
}

fn one() -> u32 {
    1
}

struct Echo {
    number: Number,
    at: Instant,
    bytes: Vec<u8>,
}

/// Notes when an echo arrives.
struct Echoes(Sender<Echo>);

impl Sink for Echoes {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let at = Instant::now();
        // Nobody listens any more when the process is about to end.
        let _ = self.0.send(Echo { number: Number::from_wire(number), at, bytes: bytes.to_vec() });
    }
}

/// Says that it is ready, then answers requests until standard input ends.
pub fn serve<M: Middleware>(middleware: &M, options: &BurstOptions) -> Result<(), String> {
    let (sender, echoes_in) = mpsc::channel();
    let writer = middleware.writer(&samples())?;
    let reader = middleware.reader(&echoes(), Echoes(sender))?;
    let mut publisher = Publisher { writer, echoes: echoes_in, run: 0, bytes: Vec::new() };
    if !process::wait_until(MATCH_MAX, || publisher.writer.matched() > 0 && reader.matched() > 0) {
        return Err(format!("no subscriber within {} s", MATCH_MAX.as_secs()));
    }
    publisher.greet()?;
    let profile = options.profile.name();
    say(&json!({"ready": true, "peer": M::PEER, "version": M::VERSION, "profile": profile}))?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        if line.trim().is_empty() {
            continue;
        }
        say(&match publisher.answer(&line, options.max_size) {
            Ok(times) => json!({ "runs_ms": times }),
            Err(error) => json!({ "error": error }),
        })?;
    }
    Ok(())
}

fn say(value: &serde_json::Value) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{value}").and_then(|()| output.flush()).map_err(|error| error.to_string())
}

struct Publisher<W> {
    writer: W,
    echoes: Receiver<Echo>,
    run: u32,
    bytes: Vec<u8>,
}

impl<W: Writer> Publisher<W> {
    /// Asks until the subscriber answers: both directions are matched then, on both sides.
    fn greet(&self) -> Result<(), String> {
        let hello = Number::new(0, ANNOUNCEMENT);
        let end = Instant::now() + MATCH_MAX;
        while Instant::now() < end {
            self.ask(hello, &[0; 8])?;
            if self.echo(hello, Instant::now() + HELLO_PERIOD).is_some() {
                return Ok(());
            }
        }
        Err(format!("the subscriber is matched but does not answer within {} s", MATCH_MAX.as_secs()))
    }

    fn ask(&self, number: Number, bytes: &[u8]) -> Result<(), String> {
        self.writer.write(number.on_wire(), bytes)?;
        self.writer.flush()
    }

    /// The echo with that number, unless the time runs out; others are of runs that were given up.
    fn echo(&self, number: Number, end: Instant) -> Option<Echo> {
        loop {
            let echo = self.echoes.recv_timeout(end.saturating_duration_since(Instant::now())).ok()?;
            if echo.number == number {
                return Some(echo);
            }
        }
    }

    /// The milliseconds of each run that a line asks for.
    fn answer(&mut self, line: &str, size_max: usize) -> Result<Vec<f64>, String> {
        let request: Request = serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
        if request.n == 0 || request.n >= ENQUIRY {
            return Err(format!("n is {}; it must lie between 1 and {}", request.n, ENQUIRY - 1));
        }
        if request.size > size_max {
            return Err(format!("size is {}; --max-size allows {size_max}", request.size));
        }
        (0..request.runs).map(|_| self.measure(&request)).collect()
    }

    fn measure(&mut self, request: &Request) -> Result<f64, String> {
        self.run += 1;
        let run = self.run;
        let announcement = Number::new(run, ANNOUNCEMENT);
        let mut description = request.n.to_le_bytes().to_vec();
        description.extend_from_slice(&(request.size as u32).to_le_bytes());
        self.ask(announcement, &description)?;
        if self.echo(announcement, Instant::now() + RUN_MAX).is_none() {
            return Err(format!("run {run}: its announcement was not answered in {} s", RUN_MAX.as_secs()));
        }
        self.bytes.resize(request.size, 0x5a);
        let start = Instant::now();
        self.send(request, start)?;
        let Some(echo) = self.echo(Number::new(run, COMPLETE), start + RUN_MAX) else {
            return Err(self.incomplete(request));
        };
        if !echo.bytes.is_empty() {
            return Err(format!("run {run}: {}", String::from_utf8_lossy(&echo.bytes)));
        }
        Ok((echo.at - start).as_secs_f64() * 1e3)
    }

    fn send(&mut self, request: &Request, start: Instant) -> Result<(), String> {
        for index in 0..request.n {
            let number = Number::new(self.run, index);
            if let [first, .., last] = self.bytes.as_mut_slice() {
                (*first, *last) = (number.check_byte(), number.check_byte());
            } else if let [only] = self.bytes.as_mut_slice() {
                *only = number.check_byte();
            }
            self.writer.write(number.on_wire(), &self.bytes).map_err(|error| {
                format!("run {}: sample {index} of {}: {}", self.run, request.n, String::from(error))
            })?;
            if index.is_multiple_of(1024) && start.elapsed() > RUN_MAX {
                return Err(self.incomplete(request));
            }
        }
        self.writer.flush()
    }

    /// What to say of a run that did not end: how many samples the subscriber has.
    fn incomplete(&self, request: &Request) -> String {
        let enquiry = Number::new(self.run, ENQUIRY);
        let asked = self.ask(enquiry, &[]);
        let echo = asked.ok().and_then(|()| self.echo(enquiry, Instant::now() + ENQUIRY_MAX));
        let arrived = echo.and_then(|echo| echo.bytes.first_chunk::<4>().copied().map(u32::from_le_bytes));
        let arrived = arrived.map_or_else(|| "an unknown number".to_owned(), |count| count.to_string());
        let seconds = RUN_MAX.as_secs();
        format!("run {}: {arrived} of {} samples of {} B arrived in {seconds} s", self.run, request.n, request.size)
    }
}
