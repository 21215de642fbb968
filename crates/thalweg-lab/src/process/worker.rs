//! The worker's side: read the order, watch for the end, answer.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Message, Stop};
use crate::error::LabError;

/// A worker's way to its parent.
#[derive(Clone, Debug, Default)]
pub struct Link {
    stop: Stop,
}

impl Link {
    /// Set when the parent closed the worker's input: finish soon.
    pub fn stop(&self) -> &Stop {
        &self.stop
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
    let link = Link::default();
    let answer = read_order().and_then(|order| {
        watch_for_end(link.stop.clone());
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
    serde_json::from_str(&line).map_err(|error| LabError::Here(format!("the order is not understood: {error}")))
}

fn watch_for_end(stop: Stop) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            line.clear();
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

const GRACE: Duration = Duration::from_secs(3);
const EXIT_CUT_OFF: i32 = 75;
