//! The hosts of a study, made or found before its first run.

use crate::agent::{HostFacts, Machines};
use crate::error::LabError;
use crate::host::HostEnvironment;
use crate::network::Hosts;
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
    /// The namespaces cannot be made, or an agent does not work for this controller.
    pub(crate) fn prepare(scenario: &Scenario, launcher: &Launcher, stop: &Stop) -> Result<Option<Ground>, LabError> {
        let Some(plan) = &scenario.hosts else { return Ok(None) };
        match &plan.kind {
            HostKind::Namespaces => Hosts::new(plan.count, &scenario.link).map(Ground::Namespaces).map(Some),
            HostKind::Machines(machines) => Machines::connect(machines, launcher, stop).map(Ground::Machines).map(Some),
        }
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
