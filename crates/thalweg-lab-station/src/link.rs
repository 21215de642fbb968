//! A worker's way to its parent: read the order, watch for the end, answer.
//!
//! Orders and answers are JSON, one a line. A worker stops when its standard input ends and dies with its parent, so that neither
//! Ctrl-C nor a killed parent leaves one behind.

use std::fmt::Display;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::Fault;

/// A message of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerMessage {
    /// A part of the work is done; the content is the order's own affair.
    Progress(Value),
    /// The work is done and this is its result. Nothing follows.
    Done(Value),
    /// The work cannot go on, and why. Nothing follows.
    Failed(String),
}

/// A request to stop that any thread can make and every loop of an experiment looks at.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Shares a flag that is set from elsewhere, for example by a signal.
    pub fn watching(flag: Arc<AtomicBool>) -> Stop {
        Stop(flag)
    }

    /// Asks all holders of this request to stop soon.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The flag itself, for loops that know nothing of experiments.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The output of a worker.
pub type Output = Box<dyn Write + Send>;

/// The content of a mutex, whatever became of threads that held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's way to its parent.
#[derive(Clone)]
pub struct ParentPipe {
    stop: Stop,
    /// Lines that came after the order.
    further: Arc<Mutex<Receiver<String>>>,
    output: Arc<Mutex<Output>>,
}

impl ParentPipe {
    /// Set when the parent closed the worker's input: finish soon.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Waits for the parent's next message after the order; `None` once it closed the worker's input.
    ///
    /// # Errors
    /// It says something else than was expected.
    pub fn next<Order: DeserializeOwned>(&self) -> Result<Option<Order>, Fault> {
        let further = lock(&self.further);
        loop {
            match further.recv_timeout(LOOK_PERIOD) {
                Ok(line) => return parse(&line).map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if self.stop.is_requested() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Tells the parent that a part of the work is done.
    ///
    /// # Errors
    /// The parent is gone.
    pub fn progress(&self, content: &impl Serialize) -> Result<(), Fault> {
        self.say(&WorkerMessage::Progress(serde_json::to_value(content).map_err(Fault::here)?))
    }

    fn say(&self, message: &WorkerMessage) -> Result<(), Fault> {
        let mut line = serde_json::to_vec(message).map_err(Fault::here)?;
        line.push(b'\n');
        let mut output = lock(&self.output);
        output.write_all(&line).and_then(|()| output.flush()).map_err(Fault::here)
    }
}

/// Runs one order from standard input and answers on `output`; returns the process's exit code.
///
/// `work` gets the order and the way back; its result becomes [`WorkerMessage::Done`], its error [`WorkerMessage::Failed`]. While it runs, the end
/// of standard input requests a stop; work that does not heed it within three seconds is cut off.
pub fn serve<Order, Outcome, Failure>(
    output: Output,
    work: impl FnOnce(Order, &ParentPipe) -> Result<Outcome, Failure>,
) -> ExitCode
where
    Order: DeserializeOwned,
    Outcome: Serialize,
    Failure: Display + From<Fault>,
{
    die_with_parent();
    let (heard, further) = sync_channel(ORDERS_MAX);
    let link = ParentPipe {
        stop: Stop::default(),
        further: Arc::new(Mutex::new(further)),
        output: Arc::new(Mutex::new(output)),
    };
    let answer = read_order().map_err(Failure::from).and_then(|order| {
        watch_for_end(link.stop.clone(), heard);
        let outcome = work(order, &link)?;
        serde_json::to_value(outcome).map_err(|error| Failure::from(Fault::here(error)))
    });
    let (message, code) = match answer {
        Ok(outcome) => (WorkerMessage::Done(outcome), ExitCode::SUCCESS),
        Err(error) => (WorkerMessage::Failed(error.to_string()), ExitCode::FAILURE),
    };
    // A parent that is gone needs no answer.
    if link.say(&message).is_ok() { code } else { ExitCode::FAILURE }
}

fn read_order<Order: DeserializeOwned>() -> Result<Order, Fault> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Fault::here)?;
    parse(&line)
}

fn parse<Order: DeserializeOwned>(line: &str) -> Result<Order, Fault> {
    serde_json::from_str(line).map_err(|error| Fault::Here(format!("the order is not understood: {error}")))
}

fn watch_for_end(stop: Stop, further: SyncSender<String>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            // Further messages of the parent have no receiver and are dropped.
            let _ = further.try_send(std::mem::take(&mut line));
        }
        stop.request();
        std::thread::sleep(GRACE);
        std::process::exit(EXIT_CUT_OFF);
    });
}

/// A parent killed without a chance to say so takes its workers along even while they are stuck in a system call.
fn die_with_parent() {
    // Where the kernel refuses, the end of standard input still stops the worker.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Orders that may wait; a parent sends the next one when it has the answer to the last.
const ORDERS_MAX: usize = 64;
const LOOK_PERIOD: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(3);
const EXIT_CUT_OFF: i32 = 75;
