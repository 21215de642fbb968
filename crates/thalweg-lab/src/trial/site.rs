//! The hosts of a run: this host alone, or hosts of their own with a switch between them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::clocks::{Clocks, RunClocks};
use super::controller::RunContext;
use super::ground::{Ground, Watch};
use super::places::Share;
use crate::error::LabError;
use crate::host::{HostFiles, Layers};
use crate::network::Relay;
use crate::process::Stop;
use crate::scenario::{Cell, HostPlan};

/// The hosts of a run and what joins them.
pub(super) struct Site<'a> {
    pub(super) ground: &'a Ground,
    relay: Option<Relay>,
    clocks: Option<Clocks>,
}

/// Counters of the layers below the middleware so far.
#[derive(Debug, Default)]
pub(super) struct SiteCounters {
    /// Of each host.
    hosts: Vec<Layers>,
    /// Of what lies between them.
    between: Layers,
    /// Whether each host is a machine of its own.
    are_machines: bool,
}

impl<'a> Site<'a> {
    pub(super) fn start(context: RunContext<'a>) -> Result<Site<'a>, LabError> {
        let ground = context.ground;
        let relay =
            ground.namespaces().map(|hosts| hosts.relay(context.launcher, context.chance)).transpose()?.flatten();
        ground.agents().try_for_each(|agent| agent.clear())?;
        let span = context.scenario.hosts.as_ref().map_or(Duration::ZERO, |plan| plan.clock_span);
        let is_apart = ground.agents().next().is_some();
        let clocks = is_apart.then(|| Clocks::open(ground.places(), span)).transpose()?;
        Ok(Site { ground, relay, clocks })
    }

    /// Lets what impairs the links begin, and asks the clocks of other machines.
    pub(super) fn begin(&mut self, stop: &Stop) -> Result<(), LabError> {
        self.relay.as_mut().map_or(Ok(()), Relay::begin)?;
        self.clocks.as_mut().map_or(Ok(()), |clocks| clocks.ask_often(stop))?;
        // A lost agent has no clock either; the user has to know its loss.
        self.check_alive()
    }

    /// Time for a process to hear when the schedule begins.
    pub(super) fn start_delay(&self) -> Duration {
        if self.clocks.is_some() { START_DELAY_MACHINES } else { START_DELAY }
    }

    /// Decides when the schedule begins by each host's clock, if it begins at `origin_ns` by this machine's.
    pub(super) fn begin_clocks(&mut self, origin_ns: u64) -> Result<(), LabError> {
        self.clocks.as_mut().map_or(Ok(()), |clocks| clocks.begin(origin_ns))
    }

    /// When the schedule begins by the clock of the host `index`; `None` where all hosts share this machine's.
    pub(super) fn origin(&self, index: u32) -> Option<u64> {
        self.clocks.as_ref().and_then(|clocks| clocks.origin(index))
    }

    /// Asks the clocks of other machines once more, and tells how they ran; `crossings` are the hosts of each pair.
    pub(super) fn end(&mut self, crossings: &[(u32, u32)], stop: &Stop) -> Result<Option<RunClocks>, LabError> {
        self.clocks.as_mut().map(|clocks| clocks.end(crossings, stop)).transpose()
    }

    /// Begins to watch the machines.
    pub(super) fn watch(&self) -> Result<Vec<Watch>, LabError> {
        self.ground.watch()
    }

    /// Copies what processes on other machines wrote into `folder`.
    pub(super) fn collect(&self, folder: &Path) -> Result<(), LabError> {
        self.ground.agents().try_for_each(|agent| agent.collect(folder))
    }

    /// Whether everything lives that lies between the hosts, and every agent is there.
    pub(super) fn check_alive(&mut self) -> Result<(), LabError> {
        self.relay.as_mut().map_or(Ok(()), Relay::check_alive)?;
        self.ground.check_alive()
    }

    /// The counters of now; `workers` are hosts and numbers of the endpoints' processes.
    pub(super) fn counters(&mut self, workers: &[(u32, u32)]) -> Result<SiteCounters, LabError> {
        let (here, namespaces) = (HostFiles::here(), self.ground.namespaces());
        let mut out = SiteCounters { are_machines: namespaces.is_none(), ..SiteCounters::default() };
        for (index, place) in (0..).zip(self.ground.places()) {
            let worker = workers.iter().find(|(host, _)| *host == index);
            out.hosts.push(match (place.agent(), namespaces) {
                (Some(agent), _) => agent.counters()?,
                (None, None) => Layers::read(&here),
                // A namespace without endpoints moves nothing.
                (None, Some(_)) => worker.map_or_else(Layers::default, |(_, process)| Layers::read_of(&here, *process)),
            });
            if let Some(hosts) = namespaces {
                out.between = out.between.plus(&hosts.queues(index)?);
            }
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
            let is_counted_once = index > 0 && !self.are_machines;
            all = all.plus(&if is_counted_once { host.clone().without_softnet() } else { host.clone() });
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
    if share.onward.is_some() {
        let host = share.subscribers.first().map_or(0, |one| plan.of_subscriber(cell.publishers, one.index));
        return vec![(host, share)];
    }
    let mut out: BTreeMap<u32, Share> = BTreeMap::new();
    for one in share.publishers {
        out.entry(plan.of_publisher(one.index)).or_default().publishers.push(one);
    }
    for one in share.subscribers {
        out.entry(plan.of_subscriber(cell.publishers, one.index)).or_default().subscribers.push(one);
    }
    let named = |(host, part): (u32, Share)| {
        (host, Share { name: format!("{} on host {host}", share.name), flow: share.flow, ..part })
    };
    out.into_iter().map(named).collect()
}

/// The host of a publisher of `cell`, one of the flows `cells` of a run: a process that hears another flow has its place among that one's
/// subscribers.
pub(super) fn host_of_publisher(plan: Option<&HostPlan>, cells: &[Cell], cell: &Cell, index: u32) -> u32 {
    let stage = cell.flow.as_ref().and_then(|flow| flow.after.as_ref());
    plan.map_or(0, |plan| match stage {
        Some(stage) => plan.of_subscriber(cells[stage.source as usize].publishers, stage.subscriber),
        None => plan.of_publisher(index),
    })
}

const START_DELAY: Duration = Duration::from_millis(200);
/// A word to another machine takes longer.
const START_DELAY_MACHINES: Duration = Duration::from_millis(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::scenario::Scenario;
    use crate::trial::places::shares;

    #[test]
    fn a_process_of_several_hosts_becomes_one_on_each() {
        let process = "[process]\nmodel = \"single\"";
        let scenario = fixtures::scenario(&format!("payload_bytes = 1\nrate_hz = 1\nendpoints = \"2-3\"\n{process}"));
        let (cell, share) = (&scenario.cells[0], shares(&scenario.process, &scenario.cells).remove(0));
        let plan = HostPlan::namespaces(3);
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
    fn a_process_that_hears_a_flow_publishes_where_it_hears() {
        let text = "schema = \"thalweg.scenario/1\"\nname = \"x\"\n[[flow]]\nname = \"a\"\npayload_bytes = 1\nrate_hz = 1\nsubscribers = 2\n\
                    [[flow]]\nname = \"b\"\nafter = \"a\"\npayload_bytes = 1\n[schedule]\nseconds = 1\nruns = 1\n";
        let cells = Scenario::parse("x", text).unwrap_or_else(|error| panic!("{error}")).cells;
        let (plan, host) = (HostPlan::namespaces(3), |cell, plan| host_of_publisher(plan, &cells, &cells[cell], 0));
        assert_eq!((host(0, Some(&plan)), host(1, Some(&plan)), host(1, None)), (0, 0, 0));
        let plan = HostPlan { subscribers: Some(vec![1, 0, 2]), ..HostPlan::namespaces(3) };
        assert_eq!((host(0, Some(&plan)), host(1, Some(&plan))), (0, 2), "the third subscriber of the first flow");
    }

    #[test]
    fn counters_of_hosts_are_added_and_those_of_the_relay_taken_as_they_are() {
        let of =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Layers>();
        let host = |datagrams| of(&[("udp.InDatagrams", datagrams), ("softnet.packets", datagrams)]);
        let before = SiteCounters {
            hosts: vec![host(1), host(2)],
            between: of(&[("queue.from_host0.dropped", 5), ("relay.host0-host1.dropped", 1)]),
            are_machines: false,
        };
        let after = SiteCounters {
            hosts: vec![host(11), host(22)],
            between: of(&[("queue.from_host0.dropped", 7), ("relay.host0-host1.dropped", 3)]),
            are_machines: false,
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
        let machines = SiteCounters { are_machines: true, ..after };
        assert_eq!(machines.since(&before).0.get("softnet.packets"), 30, "each machine has its own");
    }
}
