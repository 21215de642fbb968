//! Hosts of an experiment on this machine: network namespaces, each with a link into a switch, which stands in a namespace of its own.
//!
//! All of them share the machine's monotonic clock, so that latencies between them need no synchronization.

mod pair;
mod queues;
mod relay;

pub(crate) use pair::{HostPair, MarkedShare, pair_addresses};
pub(crate) use relay::{Relay, RelayOrder, RelayedStream, work};

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_host::{Layers, Namespace, NamespaceError, NamespaceRemover, may_make_namespaces};

use crate::error::LabError;
use crate::process::Launcher;
use crate::scenario::{LinkPlan, Switch};

/// Hosts and the switch between them; removed when dropped.
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Vec<Namespace>,
    switch: Namespace,
    link: LinkPlan,
    // Dropped last: it removes the others where this process cannot.
    _remover: NamespaceRemover,
}

impl Hosts {
    /// Makes the hosts and their links, after removing what processes that are gone left behind.
    ///
    /// # Errors
    /// This process is not root, `ip` or `tc` is missing, or the kernel cannot do it; the text says which.
    pub(crate) fn new(count: u32, link: &LinkPlan) -> Result<Hosts, LabError> {
        if !may_make_namespaces() {
            return Err(NamespaceError::NotRoot.into());
        }
        Namespace::remove_abandoned();
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let role = |place: String| format!("lab{serial}-{place}");
        let places = (0..count).map(|index| index.to_string()).chain(["switch".to_owned()]);
        let names: Vec<String> = places.map(|place| Namespace::name_of(&role(place))).collect();
        let remover = NamespaceRemover::start(&names)
            .map_err(|source| LabError::NotStarted { process: "remover of hosts".to_owned(), source })?;
        let switch = Namespace::new(&role("switch".to_owned()))?;
        if link.switch == Switch::Bridge {
            // Without snooping a switch does not look into group memberships, as the simplest ones: every host hears every group.
            let snooping = u8::from(link.snooping);
            switch.link(&format!(
                "add bridge type bridge mcast_snooping {snooping} mcast_query_response_interval {RESPONSE_10_MS}"
            ))?;
            // It asks for memberships itself, since no router does; until it has, it floods groups.
            switch.link(&format!("set bridge type bridge mcast_querier {snooping}"))?;
            switch.link("set bridge up")?;
        }
        let mut out = Hosts { hosts: Vec::new(), switch, link: link.clone(), _remover: remover };
        for index in 0..count {
            let host = Namespace::new(&role(index.to_string()))?;
            out.join(&host, index)?;
            out.hosts.push(host);
        }
        Ok(out)
    }

    /// Gives a host its link.
    fn join(&self, host: &Namespace, index: u32) -> Result<(), LabError> {
        let (port, mtu) = (port(index), self.link.mtu_bytes);
        host.link(&format!("add {INTERFACE} type veth peer name {port} netns {}", self.switch.name()))?;
        // The only addresses are those given here: no host spends its first seconds on finding out whether others are taken.
        host.link(&format!("set {INTERFACE} mtu {mtu} addrgenmode none"))?;
        self.switch.link(&format!("set {port} mtu {mtu} addrgenmode none"))?;
        match self.link.switch {
            Switch::Bridge => {
                self.switch.link(&format!("set {port} master bridge"))?;
                if let Some(rate_mbit) = self.link.rate_mbit {
                    queues::limit(host, INTERFACE, rate_mbit, &self.link)?;
                    queues::limit(&self.switch, &port, rate_mbit, &self.link)?;
                }
            }
            // The relay decides about single packets, and takes them uncut where the kernel tells of them.
            Switch::Relay(_) if tells_of_uncut_datagrams() => {}
            Switch::Relay(_) => host.link(&format!("set {INTERFACE} gso_max_segs 1"))?,
        }
        self.switch.link(&format!("set {port} up"))?;
        host.ip(&format!("address add {}/24 dev {INTERFACE}", address(index)))?;
        Ok(host.link(&format!("set {INTERFACE} up"))?)
    }

    /// The interface of every host.
    pub(crate) const INTERFACE: &str = "eth0";

    /// The address of each host on its link.
    pub(crate) fn addresses(&self) -> Vec<Ipv4Addr> {
        (0..self.hosts.len() as u32).map(address).collect()
    }

    /// The same program on the host `index`.
    pub(crate) fn launcher(&self, launcher: &Launcher, index: u32) -> Launcher {
        self.hosts.get(index as usize).map_or_else(|| launcher.clone(), |host| launcher.within_namespace(host.name()))
    }

    /// Starts the process that joins the links, where they are not joined by a bridge; `chance` decides what it does to which frame.
    pub(crate) fn relay(&self, launcher: &Launcher, chance: u64) -> Result<Option<Relay>, LabError> {
        self.relay_of_stream(launcher, chance, None)
    }

    /// The same, which counts the packets of a stream apart.
    pub(crate) fn relay_of_stream(
        &self,
        launcher: &Launcher,
        chance: u64,
        stream: Option<RelayedStream>,
    ) -> Result<Option<Relay>, LabError> {
        let Switch::Relay(impairment) = &self.link.switch else { return Ok(None) };
        let order = RelayOrder {
            ports: (0..self.hosts.len() as u32).map(port).collect(),
            impairment: impairment.clone(),
            rate_mbit: self.link.rate_mbit,
            queue: self.link.queue,
            chance,
            stream,
        };
        Relay::start(&launcher.within_namespace(self.switch.name()), order).map(Some)
    }

    /// Drops of the queues at both ends of a host's link so far: none where the link has no rate.
    pub(crate) fn queues(&self, index: u32) -> Result<Layers, LabError> {
        let (Some(host), Some(_), Switch::Bridge) =
            (self.hosts.get(index as usize), self.link.rate_mbit, &self.link.switch)
        else {
            return Ok(Layers::default());
        };
        let ends = [("from", host, INTERFACE.to_owned()), ("to", &self.switch, port(index))];
        let count = |(way, place, interface): (&str, &Namespace, String)| {
            Ok((format!("queue.{way}_host{index}.dropped"), queues::dropped(place, &interface)?))
        };
        ends.into_iter().map(count).collect()
    }
}

/// Whether packet sockets tell of datagrams that are not cut (Linux 6.2); receiving one fails otherwise.
fn tells_of_uncut_datagrams() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6_u32, 2_u32)
}

/// Unreachable from outside: the switch has no way out.
fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(SUBNET.to_bits() + index + 1)
}

fn port(index: u32) -> String {
    format!("port{index}")
}

/// Units of 10 ms for hosts to answer a bridge that asks for memberships.
const RESPONSE_10_MS: u32 = 10;
const INTERFACE: &str = Hosts::INTERFACE;
const SUBNET: Ipv4Addr = Ipv4Addr::new(10, 89, 0, 0);
static NEXT: AtomicU32 = AtomicU32::new(0);

#[cfg(test)]
mod tests;
