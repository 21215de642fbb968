//! The machines that take part in a study.

use std::net::{IpAddr, Ipv4Addr};
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

    /// Whether this machine is among them.
    pub(crate) fn is_here(&self) -> bool {
        self.0.iter().any(|place| matches!(place, Place::Here(_)))
    }

    /// The IPv4 address of each machine that its peers are told: the one by which agents were reached, and from which.
    ///
    /// # Errors
    /// One of them was not reached over IPv4, or others do not reach it by that address.
    pub(crate) fn addresses(&self) -> Result<Vec<Ipv4Addr>, LabError> {
        let first = self.agents().next();
        let place = |place: &Place| match (place, first) {
            (Place::There(connection), _) => v4(connection.name(), connection.ends().0.ip()),
            (Place::Here(_), Some(connection)) => v4(connection.name(), connection.ends().1.ip()),
            (Place::Here(_), None) => Ok(Ipv4Addr::LOCALHOST),
        };
        let addresses: Vec<Ipv4Addr> = self.0.iter().map(place).collect::<Result<_, _>>()?;
        let loopback = addresses.iter().filter(|address| address.is_loopback()).count();
        if loopback > 0 && loopback < addresses.len() {
            return Err(LabError::Here(
                "one machine was reached by the loopback address and another was not, so that the programs of other middleware would not \
                 meet: name every agent by its address on the link"
                    .to_owned(),
            ));
        }
        Ok(addresses)
    }

    /// Name and facts of each agent's host.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (&str, &HostFacts)> {
        self.agents().map(|connection| (connection.name(), connection.facts()))
    }
}

fn v4(agent: &str, address: IpAddr) -> Result<Ipv4Addr, LabError> {
    match address.to_canonical() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(address) => Err(LabError::Here(format!(
            "the agent {agent} was reached over IPv6 ({address}), and the programs of other middleware meet over IPv4: name it by an IPv4 \
             address"
        ))),
    }
}
