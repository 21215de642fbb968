//! A worker on an agent's host, to be used as one of this host.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_lab_station::{StationCommand, WorkerMessage};

use super::connection::Connection;
use super::message::{Event, Request, WorkerOrder};
use crate::error::LabError;

/// A worker on an agent's host; dropping it ends the process.
#[derive(Debug)]
pub(crate) struct RemoteWorker {
    connection: Arc<Connection>,
    worker: u32,
    waiting: VecDeque<Event>,
}

impl RemoteWorker {
    /// Has a worker started with this number, which is unique on this connection, and this order.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn start(
        connection: &Arc<Connection>,
        worker: u32,
        name: &str,
        order: WorkerOrder,
    ) -> Result<RemoteWorker, LabError> {
        connection.say(&Request::Start { worker, name: name.to_owned(), order: Box::new(order) })?;
        Ok(RemoteWorker { connection: Arc::clone(connection), worker, waiting: VecDeque::new() })
    }

    /// Hands the worker one more line.
    ///
    /// # Errors
    /// The agent is lost.
    pub(crate) fn send(&mut self, command: &StationCommand) -> Result<(), LabError> {
        self.connection.say(&Request::Tell { worker: self.worker, command: command.clone() })
    }

    /// The next message where one is there already.
    ///
    /// # Errors
    /// The worker failed or died, or the agent is lost.
    pub(crate) fn try_hear(&mut self) -> Result<Option<WorkerMessage>, LabError> {
        self.check_alive()?;
        Ok(match self.waiting.pop_front() {
            Some(Event::Said { message, .. }) => Some(message),
            _ => None,
        })
    }

    /// Whether the worker has neither failed nor died and its agent is there.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn check_alive(&mut self) -> Result<(), LabError> {
        while let Some(event) = self.connection.told_of(self.worker)? {
            match event {
                Event::Failed { reason, .. } => return Err(self.failed(&reason)),
                Event::Said { message: WorkerMessage::Failed(reason), .. } => return Err(self.failed(&reason)),
                event => self.waiting.push_back(event),
            }
        }
        Ok(())
    }

    /// Ends the worker in peace and waits until it is gone.
    ///
    /// # Errors
    /// It exits with an error or not at all, or the agent is lost.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.connection.say(&Request::Finish { worker: self.worker })?;
        let deadline = Instant::now() + FINISH_PATIENCE;
        loop {
            self.check_alive()?;
            if self.waiting.iter().any(|event| matches!(event, Event::Finished { .. })) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.failed("it does not exit"));
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    fn failed(&self, reason: &str) -> LabError {
        LabError::Here(format!("on {}: {reason}", self.connection.name()))
    }
}

impl Drop for RemoteWorker {
    fn drop(&mut self) {
        // An agent that is lost has ended it already.
        let _ = self.connection.say(&Request::Kill { worker: self.worker });
    }
}

/// Longer than an agent waits for a worker to exit.
const FINISH_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_PERIOD: Duration = Duration::from_millis(2);
