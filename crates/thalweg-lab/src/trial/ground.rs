//! The hosts of a study, made or found before its first run: this machine, network namespaces of it, or machines with agents.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use crate::agent::{Connection, WorkerOrder};
use crate::error::LabError;
use crate::host::{HostEnvironment, HostFiles, SecondConditions, SecondWatch};
use crate::network::Hosts;
use crate::peers::PeerProgram;
use crate::process::{Launcher, Stop, Supervised};
use crate::scenario::{HostKind, Machine, Scenario};

/// The hosts of a study.
#[derive(Debug)]
pub(crate) struct Ground {
    /// Each host, in the scenario's order.
    places: Vec<Place>,
    /// What joins them where they are network namespaces of this machine.
    namespaces: Option<Hosts>,
}

/// A host of a run.
#[derive(Debug)]
pub(crate) enum Place {
    /// On this machine, in whatever network the launcher leads to.
    Here(Launcher),
    /// An agent's.
    There(Arc<Connection>),
}

/// Watches how quiet a machine is, second by second.
pub(super) enum Watch {
    Here(SecondWatch),
    There(Arc<Connection>),
}

impl Ground {
    /// What the scenario wants, before anything is written: what cannot be had is told at once.
    ///
    /// # Errors
    /// The namespaces cannot be made, or a machine has no agent of this version.
    pub(crate) fn prepare(scenario: &Scenario, launcher: &Launcher, stop: &Stop) -> Result<Ground, LabError> {
        let Some(plan) = &scenario.hosts else {
            return Ok(Ground { places: vec![Place::Here(launcher.clone())], namespaces: None });
        };
        match &plan.kind {
            HostKind::Namespaces => {
                let hosts = Hosts::new(plan.count, &scenario.link)?;
                let places = (0..plan.count).map(|index| Place::Here(hosts.launcher(launcher, index))).collect();
                Ok(Ground { places, namespaces: Some(hosts) })
            }
            HostKind::Machines(machines) => {
                let place = |machine: &Machine| match machine {
                    Machine::Here => Ok(Place::Here(launcher.clone())),
                    Machine::Ssh(machine) => {
                        Connection::open(launcher.ssh(), machine, stop).map(Arc::new).map(Place::There)
                    }
                };
                Ok(Ground { places: machines.iter().map(place).collect::<Result<_, LabError>>()?, namespaces: None })
            }
        }
    }

    /// Each host, in the scenario's order.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// What joins the hosts where they are network namespaces of this machine.
    pub(super) fn namespaces(&self) -> Option<&Hosts> {
        self.namespaces.as_ref()
    }

    /// The agents among the hosts.
    pub(super) fn agents(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.places.iter().filter_map(Place::agent)
    }

    /// Whether processes of a run may live on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.places.iter().any(|place| place.agent().is_none())
    }

    /// Begins to watch each machine.
    ///
    /// # Errors
    /// An agent is lost.
    pub(super) fn watch(&self) -> Result<Vec<Watch>, LabError> {
        let machines = if self.namespaces.is_some() { &self.places[..1] } else { &self.places };
        let watch = |place: &Place| match place {
            Place::Here(_) => Ok(Watch::Here(SecondWatch::start(HostFiles::here()))),
            Place::There(agent) => agent.watch().map(|()| Watch::There(Arc::clone(agent))),
        };
        machines.iter().map(watch).collect()
    }

    /// The IPv4 address of each host on the links between them.
    ///
    /// # Errors
    /// A machine has another kind of address, or others do not reach it by that address.
    pub(super) fn addresses(&self) -> Result<Vec<Ipv4Addr>, LabError> {
        if let Some(hosts) = &self.namespaces {
            return Ok(hosts.addresses());
        }
        let first = self.agents().next();
        let reached = self.places.iter().map(|place| match (place, first) {
            (Place::There(agent), _) => (agent.name(), agent.ends().0),
            (Place::Here(_), Some(agent)) => (agent.name(), agent.ends().1),
            (Place::Here(_), None) => (HERE, Ipv4Addr::LOCALHOST.into()),
        });
        on_one_network(&reached.collect::<Vec<_>>())
    }

    /// Name and checksum of the programs of `peer` on the machines beside this one.
    ///
    /// # Errors
    /// One of them has none, the peer would not find its way there, or an agent is lost.
    pub(crate) fn programs_of(&self, peer: PeerProgram) -> Result<Vec<(String, String)>, LabError> {
        self.addresses()?;
        let program =
            |agent: &Arc<Connection>| Ok((format!("program of {peer} of {}", agent.name()), agent.program_of(peer)?));
        self.agents().map(program).collect()
    }

    /// Whether every agent is there.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
        self.agents().try_for_each(|agent| agent.check_alive())
    }

    /// The machines beside this one.
    pub(crate) fn environments(&self) -> Vec<HostEnvironment> {
        let environment = |agent: &Arc<Connection>| HostEnvironment {
            name: agent.name().to_owned(),
            environment: agent.facts().environment.clone(),
        };
        self.agents().map(environment).collect()
    }

    /// Name and value of what a result depends on at the machines beside this one.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        let of_agent = |agent: &Arc<Connection>| {
            let named = |(part, value): (&String, &String)| (format!("{part} of {}", agent.name()), value.clone());
            agent.facts().fingerprint.iter().map(named).collect::<Vec<_>>()
        };
        self.agents().flat_map(of_agent).collect()
    }
}

impl Place {
    /// Its agent, where it is another machine.
    pub(super) fn agent(&self) -> Option<&Arc<Connection>> {
        match self {
            Place::Here(_) => None,
            Place::There(agent) => Some(agent),
        }
    }

    /// As the scenario names the machine.
    pub(super) fn name(&self) -> &str {
        self.agent().map_or(HERE, |agent| agent.name())
    }

    /// Starts a process, called `name` in messages to the user, of a run whose folder here is `folder`; here by another build of its program
    /// where one is given.
    ///
    /// # Errors
    /// It cannot be started here, or the agent is lost.
    pub(super) fn start(
        &self,
        name: &str,
        order: WorkerOrder,
        (folder, build): (&Path, Option<&Path>),
    ) -> Result<Supervised, LabError> {
        match self {
            Place::Here(launcher) => {
                let other = build.map(|program| launcher.of_other_build(program));
                order.start(other.as_ref().unwrap_or(launcher), name, folder)
            }
            Place::There(agent) => Supervised::start_at(agent, name, order),
        }
    }
}

impl Watch {
    /// What happened since the last look.
    ///
    /// # Errors
    /// The agent is lost.
    pub(super) fn look(&mut self) -> Result<SecondConditions, LabError> {
        match self {
            Watch::Here(watch) => Ok(watch.look()),
            Watch::There(agent) => agent.look(),
        }
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

/// How scenarios name this machine.
const HERE: &str = "here";

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
