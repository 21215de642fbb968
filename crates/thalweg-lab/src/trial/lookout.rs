//! Other load on the machines of a run, second by second.

use std::sync::Arc;

use crate::agent::{Connection, Machines, Place};
use crate::error::LabError;
use crate::host::{HostFiles, SecondConditions, SecondWatch};

/// Watches every machine of a run, in the scenario's order.
pub(super) struct Lookout(Vec<Watch>);

enum Watch {
    Here(SecondWatch),
    There(Arc<Connection>),
}

impl Lookout {
    /// Begins now; `processes` are those of the run on this machine.
    ///
    /// # Errors
    /// An agent is lost.
    pub(super) fn start(machines: Option<&Machines>, processes: &[u32]) -> Result<Lookout, LabError> {
        let here = || Watch::Here(SecondWatch::start(HostFiles::here(), processes.to_vec()));
        let Some(machines) = machines else { return Ok(Lookout(vec![here()])) };
        let watch = |place: &Place| match place {
            Place::Here(_) => Ok(here()),
            Place::There(connection) => connection.watch().map(|()| Watch::There(Arc::clone(connection))),
        };
        machines.places().iter().map(watch).collect::<Result<_, _>>().map(Lookout)
    }

    /// What happened since the last look on each machine.
    ///
    /// # Errors
    /// An agent is lost.
    pub(super) fn look(&mut self) -> Result<Vec<SecondConditions>, LabError> {
        let look = |watch: &mut Watch| match watch {
            Watch::Here(watch) => Ok(watch.look()),
            Watch::There(connection) => connection.look(),
        };
        self.0.iter_mut().map(look).collect()
    }
}
