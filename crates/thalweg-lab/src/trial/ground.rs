//! The hosts of a study, made or found before its first run.

use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::agent::{Connection, HostFacts, Machines};
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::network::Hosts;
use crate::peers::PeerProgram;
use crate::process::{Launcher, Stop};
use crate::scenario::{HostKind, Scenario};

/// The hosts of a study, where it has more than this machine.
#[derive(Debug)]
pub(crate) enum Ground {
    /// Network namespaces of this machine.
    Namespaces(Hosts),
    /// Machines with agents.
    Machines(Machines),
}

impl Ground {
    /// What the scenario wants, before anything is written: what cannot be had is told at once.
    ///
    /// # Errors
    /// The namespaces cannot be made, or a machine has no agent.
    pub(crate) fn prepare(scenario: &Scenario, launcher: &Launcher, stop: &Stop) -> Result<Option<Ground>, LabError> {
        let Some(plan) = &scenario.hosts else { return Ok(None) };
        match &plan.kind {
            HostKind::Namespaces => Hosts::new(plan.count, &scenario.link).map(Ground::Namespaces).map(Some),
            HostKind::Machines(machines) => Machines::connect(machines, launcher, stop).map(Ground::Machines).map(Some),
        }
    }

    /// Whether processes of a run may live on this machine.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Ground::Namespaces(_) => true,
            Ground::Machines(machines) => machines.is_here(),
        }
    }

    /// The IPv4 address of each host on the links between them.
    ///
    /// # Errors
    /// A machine has none that the others reach.
    pub(super) fn addresses(&self) -> Result<Vec<Ipv4Addr>, LabError> {
        match self {
            Ground::Namespaces(hosts) => Ok(hosts.addresses()),
            Ground::Machines(machines) => machines.addresses(),
        }
    }

    /// Name and checksum of the programs of `peer` on the machines beside this one.
    ///
    /// # Errors
    /// One of them has none, the peer would not find its way there, or an agent is lost.
    pub(crate) fn programs_of(&self, peer: PeerProgram) -> Result<Vec<(String, String)>, LabError> {
        self.addresses()?;
        let Ground::Machines(machines) = self else { return Ok(Vec::new()) };
        let program =
            |agent: &Arc<Connection>| Ok((format!("program of {peer} of {}", agent.name()), agent.program_of(peer)?));
        machines.agents().map(program).collect()
    }

    /// Whether every agent is there.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
        let Ground::Machines(machines) = self else { return Ok(()) };
        machines.agents().try_for_each(|agent| agent.check_alive())
    }

    /// The machines beside this one.
    pub(crate) fn environments(&self) -> Vec<HostEnvironment> {
        let Ground::Machines(machines) = self else { return Vec::new() };
        let environment = |(name, facts): (&str, &HostFacts)| HostEnvironment {
            name: name.to_owned(),
            environment: facts.environment.clone(),
        };
        machines.facts().map(environment).collect()
    }

    /// Name and value of what a result depends on at the machines beside this one.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        let Ground::Machines(machines) = self else { return Vec::new() };
        let of_host = |(name, facts): (&str, &HostFacts)| {
            let named = |(part, value): (&String, &String)| (format!("{part} of {name}"), value.clone());
            facts.fingerprint.iter().map(named).collect::<Vec<_>>()
        };
        machines.facts().flat_map(of_host).collect()
    }
}
