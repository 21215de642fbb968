//! Where a run takes place: this host alone, or hosts of their own with a switch between them.

use std::collections::BTreeMap;

use super::controller::RunContext;
use super::places::Share;
use crate::error::LabError;
use crate::host::Layers;
use crate::network::{Hosts, Relay};
use crate::process::Launcher;
use crate::scenario::{Cell, HostPlan};

/// The hosts of a run and what joins them.
pub(super) struct Site<'a> {
    launcher: &'a Launcher,
    hosts: Option<&'a Hosts>,
    relay: Option<Relay>,
}

/// What the layers below the middleware counted so far.
#[derive(Debug, Default)]
pub(super) struct SiteCounters {
    /// Of each host.
    hosts: Vec<Layers>,
    /// Of what lies between them.
    between: Layers,
}

impl<'a> Site<'a> {
    pub(super) fn start(context: RunContext<'a>) -> Result<Site<'a>, LabError> {
        let relay = context.hosts.map(|hosts| hosts.relay(context.launcher, context.chance)).transpose()?.flatten();
        Ok(Site { launcher: context.launcher, hosts: context.hosts, relay })
    }

    /// How a process is started on the host `index`.
    pub(super) fn launcher(&self, index: u32) -> Launcher {
        self.hosts.map_or_else(|| self.launcher.clone(), |hosts| hosts.launcher(self.launcher, index))
    }

    /// Lets what impairs the links begin.
    pub(super) fn begin(&mut self) -> Result<(), LabError> {
        self.relay.as_mut().map_or(Ok(()), Relay::begin)
    }

    /// Whether everything lives that lies between the hosts.
    pub(super) fn check_alive(&mut self) -> Result<(), LabError> {
        self.relay.as_mut().map_or(Ok(()), Relay::check_alive)
    }

    /// The system's numbers of the processes between the hosts.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.relay.iter().map(Relay::id).collect()
    }

    /// The counters of now; `workers` are hosts and numbers of the endpoints' processes.
    pub(super) fn counters(&mut self, workers: &[(u32, u32)]) -> Result<SiteCounters, LabError> {
        let Some(hosts) = self.hosts else {
            return Ok(SiteCounters { hosts: vec![Layers::read()], between: Layers::default() });
        };
        let mut out = SiteCounters::default();
        for index in 0..hosts.len() as u32 {
            // A host without endpoints moves nothing.
            let worker = workers.iter().find(|(host, _)| *host == index);
            out.hosts.push(worker.map_or_else(Layers::default, |(_, process)| Layers::read_of(*process)));
            out.between = out.between.plus(&hosts.queues(index)?);
        }
        if let Some(relay) = &mut self.relay {
            out.between = out.between.plus(&relay.counters()?);
        }
        Ok(out)
    }
}

impl SiteCounters {
    /// What was counted since `before`: by all together, and by each host where there are several. The relay counts from the beginning
    /// of the schedule whatever `before` is.
    pub(super) fn since(&self, before: &SiteCounters) -> (Layers, Vec<Layers>) {
        let hosts: Vec<Layers> = self.hosts.iter().zip(&before.hosts).map(|(now, before)| now.since(before)).collect();
        let mut all = Layers::default();
        for (index, host) in hosts.iter().enumerate() {
            all = all.plus(&if index == 0 { host.clone() } else { host.clone().without_softnet() });
        }
        let relay: Layers = self.between.iter().filter(|(name, _)| name.starts_with("relay.")).map(owned).collect();
        let rest: Layers = self.between.iter().filter(|(name, _)| !name.starts_with("relay.")).map(owned).collect();
        let all = all.plus(&rest.since(&before.between)).plus(&relay);
        (all, if hosts.len() > 1 { hosts } else { Vec::new() })
    }
}

fn owned((name, value): (&str, u64)) -> (String, u64) {
    (name.to_owned(), value)
}

/// The part of a process's endpoints that lives on each host.
pub(super) fn by_host(share: Share, cell: &Cell, plan: Option<&HostPlan>) -> Vec<(u32, Share)> {
    let Some(plan) = plan else { return vec![(0, share)] };
    let mut out: BTreeMap<u32, Share> = BTreeMap::new();
    for one in share.publishers {
        out.entry(plan.of_publisher(one.index)).or_default().publishers.push(one);
    }
    for one in share.subscribers {
        out.entry(plan.of_subscriber(cell.publishers, one.index)).or_default().subscribers.push(one);
    }
    let named = |(host, part): (u32, Share)| (host, Share { name: format!("{} on host {host}", share.name), ..part });
    out.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::trial::places::shares;

    #[test]
    fn a_process_of_several_hosts_becomes_one_on_each() {
        let text = "schema = \"thalweg.scenario/1\"\nname = \"x\"\n[matrix]\npayload_bytes = 1\nrate_hz = 1\nendpoints = \"2-3\"\n\
                    [process]\nmodel = \"single\"\n[schedule]\nseconds = 1\nruns = 1\n";
        let scenario = Scenario::parse("x", text).unwrap_or_else(|error| panic!("{error}"));
        let (cell, share) = (&scenario.cells[0], shares(&scenario.process, &scenario.cells[0]).remove(0));
        let plan = HostPlan { count: 3, publishers: None, subscribers: None };
        let parts = by_host(share.clone(), cell, Some(&plan));
        let shown: Vec<_> = parts.iter().map(|(host, share)| (*host, share.name.as_str())).collect();
        let name = |host: u32| (host, format!("process of all endpoints on host {host}"));
        let expect: Vec<_> = (0..3).map(name).collect();
        assert_eq!(shown, expect.iter().map(|(host, name)| (*host, name.as_str())).collect::<Vec<_>>());
        let numbers = |share: &Share| {
            let publishers = share.publishers.iter().map(|place| place.index).collect::<Vec<_>>();
            (publishers, share.subscribers.iter().map(|place| place.index).collect::<Vec<_>>())
        };
        assert_eq!((numbers(&parts[0].1), numbers(&parts[2].1)), ((vec![0], vec![1]), (vec![], vec![0])));
        assert_eq!(by_host(share.clone(), cell, None), [(0, share)]);
    }

    #[test]
    fn counters_of_hosts_are_added_and_those_of_the_relay_taken_as_they_are() {
        let of =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Layers>();
        let host = |datagrams| of(&[("udp.InDatagrams", datagrams), ("softnet.packets", datagrams)]);
        let before = SiteCounters {
            hosts: vec![host(1), host(2)],
            between: of(&[("queue.from_host0.dropped", 5), ("relay.host0-host1.dropped", 1)]),
        };
        let after = SiteCounters {
            hosts: vec![host(11), host(22)],
            between: of(&[("queue.from_host0.dropped", 7), ("relay.host0-host1.dropped", 3)]),
        };
        let (all, hosts) = after.since(&before);
        assert_eq!(hosts, [host(10), host(20)]);
        let expect = [
            ("queue.from_host0.dropped", 2),
            ("relay.host0-host1.dropped", 3),
            ("softnet.packets", 10),
            ("udp.InDatagrams", 30),
        ];
        assert_eq!(all, of(&expect));
    }
}
