//! The worker's side: read the order, watch for the end, answer.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Message, Stop};
use crate::error::LabError;

/// A worker's way to its parent.
#[derive(Clone, Debug, Default)]
pub struct Link {
    stop: Stop,
    /// Lines that came after the order.
    further: Arc<Mutex<Option<Receiver<String>>>>,
}

impl Link {
    /// Set when the parent closed the worker's input: finish soon.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Waits for what the parent says after the order; `None` once it closed the worker's input.
    ///
    /// # Errors
    /// It says something else than was expected.
    pub fn next<Order: DeserializeOwned>(&self) -> Result<Option<Order>, LabError> {
        let further = self.further.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = further.as_ref() else { return Ok(None) };
        loop {
            match lines.recv_timeout(LOOK_PERIOD) {
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
    pub fn progress(&self, content: &impl Serialize) -> Result<(), LabError> {
        say(&Message::Progress(serde_json::to_value(content).map_err(LabError::here)?))
    }
}

/// Runs one order from standard input and answers on standard output; returns the process's exit code.
///
/// `work` gets the order and the way back; its result becomes [`Message::Done`], its error [`Message::Failed`]. While it runs, the end
/// of standard input requests a stop; work that does not heed it within three seconds is cut off.
pub fn serve<Order, Outcome>(work: impl FnOnce(Order, &Link) -> Result<Outcome, LabError>) -> ExitCode
where
    Order: DeserializeOwned,
    Outcome: Serialize,
{
    die_with_parent();
    let (heard, further) = sync_channel(ORDERS_MAX);
    let link = Link { stop: Stop::default(), further: Arc::new(Mutex::new(Some(further))) };
    let answer = read_order().and_then(|order| {
        watch_for_end(link.stop.clone(), heard);
        work(order, &link).and_then(|outcome| serde_json::to_value(outcome).map_err(LabError::here))
    });
    let (message, code) = match answer {
        Ok(outcome) => (Message::Done(outcome), ExitCode::SUCCESS),
        Err(error) => (Message::Failed(error.to_string()), ExitCode::FAILURE),
    };
    // A parent that is gone needs no answer.
    if say(&message).is_ok() { code } else { ExitCode::FAILURE }
}

fn read_order<Order: DeserializeOwned>() -> Result<Order, LabError> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(LabError::here)?;
    parse(&line)
}

fn parse<Order: DeserializeOwned>(line: &str) -> Result<Order, LabError> {
    serde_json::from_str(line).map_err(|error| LabError::Here(format!("the order is not understood: {error}")))
}

fn watch_for_end(stop: Stop, further: SyncSender<String>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            // A parent that says more than anybody listens to is told nothing and loses nothing it could use.
            let _ = further.try_send(std::mem::take(&mut line));
        }
        stop.request();
        std::thread::sleep(GRACE);
        std::process::exit(EXIT_CUT_OFF);
    });
}

fn say(message: &Message) -> Result<(), LabError> {
    let mut line = serde_json::to_vec(message).map_err(LabError::here)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(LabError::here)
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
