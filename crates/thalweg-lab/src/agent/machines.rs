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

/// The machine of a process of a run.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On this machine, in whatever network the launcher leads to.
    Here(Launcher),
    /// On an agent's host.
    There(Arc<Connection>),
}

impl Machines {
    /// Starts every agent.
    ///
    /// # Errors
    /// A machine is not reached or has no agent of this version; the text says why.
    pub(crate) fn connect(machines: &[Machine], launcher: &Launcher, stop: &Stop) -> Result<Machines, LabError> {
        let place = |machine: &Machine| match machine {
            Machine::Here => Ok(Place::Here(launcher.clone())),
            Machine::Ssh(machine) => Ok(Place::There(Arc::new(Connection::open(launcher.ssh(), machine, stop)?))),
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

    /// The IPv4 address of each machine for peers.
    ///
    /// # Errors
    /// One of them has another kind of address, or others do not reach it by that address.
    pub(crate) fn addresses(&self) -> Result<Vec<Ipv4Addr>, LabError> {
        let first = self.agents().next();
        let reached = self.0.iter().map(|place| match (place, first) {
            (Place::There(agent), _) => (agent.name(), agent.ends().0),
            (Place::Here(_), Some(agent)) => (agent.name(), agent.ends().1),
            (Place::Here(_), None) => ("here", Ipv4Addr::LOCALHOST.into()),
        });
        on_one_network(&reached.collect::<Vec<_>>())
    }

    /// Name and facts of each agent's host.
    pub(crate) fn facts(&self) -> impl Iterator<Item = (&str, &HostFacts)> {
        self.agents().map(|connection| (connection.name(), connection.facts()))
    }
}

/// The addresses, of which each belongs to the way to the agent of this name.
fn on_one_network(reached: &[(&str, IpAddr)]) -> Result<Vec<Ipv4Addr>, LabError> {
    let v4 = |(agent, address): &(&str, IpAddr)| match address.to_canonical() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(address) => Err(LabError::Here(format!(
            "the way to {agent} is IPv6 ({address}), and the programs of other middleware meet over IPv4: name its IPv4 address on the \
             measured link by address = \"…\""
        ))),
    };
    let addresses: Vec<Ipv4Addr> = reached.iter().map(v4).collect::<Result<_, _>>()?;
    let own = addresses.iter().position(Ipv4Addr::is_loopback);
    match own.filter(|_| !addresses.iter().all(Ipv4Addr::is_loopback)) {
        Some(index) => Err(LabError::Here(format!(
            "the way to {} is the loopback interface, on which the programs of other middleware do not find those of the other machines: \
             name its address on their link by address = \"…\"",
            reached[index].0
        ))),
        None => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reached: &[(&str, &str)], expect: Result<&[&str], &str>) {
        let ip = |text: &&str| text.parse::<IpAddr>().expect("an address");
        let reached: Vec<(&str, IpAddr)> = reached.iter().map(|(agent, text)| (*agent, ip(text))).collect();
        match (on_one_network(&reached), expect) {
            (Ok(addresses), Ok(expect)) => {
                assert_eq!(addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>(), expect);
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, _) => panic!("{got:?}"),
        }
    }

    #[test]
    fn peers_are_told_addresses_by_which_all_machines_reach_each_other() {
        check(&[("a", "10.0.0.1"), ("a", "10.0.0.2")], Ok(&["10.0.0.1", "10.0.0.2"]));
        check(&[("a", "::ffff:10.0.0.1"), ("b", "10.0.0.2")], Ok(&["10.0.0.1", "10.0.0.2"]));
        check(&[("a", "127.0.0.1"), ("b", "127.0.0.1")], Ok(&["127.0.0.1", "127.0.0.1"]));
        check(&[("a", "10.0.0.1"), ("b", "fd00::2")], Err("the way to b is IPv6 (fd00::2)"));
        check(&[("a", "10.0.0.1"), ("b", "127.0.0.1")], Err("the way to b is the loopback interface"));
    }
}
