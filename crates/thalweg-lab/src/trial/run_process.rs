//! A process of a run, on whatever host it lives.

use thalweg_lab_station::{StationCommand, WorkerMessage};

use crate::agent::RemoteWorker;
use crate::error::LabError;
use crate::process::Supervised;

/// A process of a run; dropping it ends it.
pub(super) enum RunProcess {
    /// On this machine.
    Here(Supervised),
    /// On an agent's host.
    There(RemoteWorker),
}

impl RunProcess {
    /// The system's number of it, where it is one of this machine's.
    pub(super) fn id(&self) -> Option<u32> {
        match self {
            RunProcess::Here(worker) => Some(worker.id()),
            RunProcess::There(_) => None,
        }
    }

    pub(super) fn send(&mut self, command: &StationCommand) -> Result<(), LabError> {
        match self {
            RunProcess::Here(worker) => worker.send(command),
            RunProcess::There(worker) => worker.send(command),
        }
    }

    /// The next message where one is there already.
    pub(super) fn try_hear(&mut self) -> Result<Option<WorkerMessage>, LabError> {
        match self {
            RunProcess::Here(worker) => worker.try_hear(),
            RunProcess::There(worker) => worker.try_hear(),
        }
    }

    pub(super) fn check_alive(&mut self) -> Result<(), LabError> {
        match self {
            RunProcess::Here(worker) => worker.check_alive(),
            RunProcess::There(worker) => worker.check_alive(),
        }
    }

    /// Ends it in peace.
    pub(super) fn finish(self) -> Result<(), LabError> {
        match self {
            RunProcess::Here(worker) => worker.finish(),
            RunProcess::There(worker) => worker.finish(),
        }
    }
}
