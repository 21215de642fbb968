//! The machines that take part in a study.

use std::sync::Arc;

use super::connection::Connection;
use super::message::HostFacts;
use crate::error::LabError;
use crate::process::{Launcher, Stop};
use crate::scenario::Machine;

/// The machines of a scenario, in its order.
#[derive(Debug)]
pub(crate) struct Machines(Vec<Place>);

/// Where a process of a run lives.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine, in whatever network the launcher leads to.
    Here(Launcher),
    /// On an agent's host.
    There(Arc<Connection>),
}

impl Machines {
    /// Comes to every agent.
    ///
    /// # Errors
    /// There is no key, or an agent does not work for this controller; the text says why.
    pub(crate) fn connect(machines: &[Machine], launcher: &Launcher, stop: &Stop) -> Result<Machines, LabError> {
        let key = launcher.agent_key()?;
        let place = |machine: &Machine| match machine {
            Machine::Here => Ok(Place::Here(launcher.clone())),
            Machine::Agent(name) => Ok(Place::There(Arc::new(Connection::open(name, &key, stop)?))),
        };
        machines.iter().map(place).collect::<Result<_, _>>().map(Machines)
    }

    /// Each machine, in the scenario's order.
    pub(crate) fn places(&self) -> &[Place] {
        &self.0
    }

    /// The agents among them.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.0.iter().filter_map(|place| match place {
            Place::Here(_) => None,
            Place::There(connection) => Some(connection),
        })
    }

    /// Name and facts of each agent's host.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (&str, &HostFacts)> {
        self.agents().map(|connection| (connection.name(), connection.facts()))
    }
}
