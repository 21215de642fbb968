//! Two hosts joined by one link without a switch: what leaves one arrives at the other, whole messages included.

use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use thalweg_host::{Namespace, NamespaceError, NamespaceRemover, may_make_namespaces};

use super::{Hosts, INTERFACE, NEXT, address, queues};
use crate::error::LabError;
use crate::scenario::LinkPlan;

/// Two hosts and the veth pair between them; removed when dropped.
#[derive(Debug)]
pub(crate) struct HostPair {
    hosts: [Namespace; 2],
    // Dropped last: it removes the others where this process cannot.
    _remover: NamespaceRemover,
}

/// A share of a link's rate for what is marked with a code point of Differentiated Services.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarkedShare {
    pub(crate) code_point: u8,
    pub(crate) rate_mbit: f64,
}

impl HostPair {
    /// Makes the hosts and their link of this MTU, after removing what processes that are gone left behind.
    ///
    /// # Errors
    /// As [`Hosts::new`].
    pub(crate) fn new(mtu_bytes: u32) -> Result<HostPair, LabError> {
        if !may_make_namespaces() {
            return Err(NamespaceError::NotRoot.into());
        }
        Namespace::remove_abandoned();
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let roles = [0, 1].map(|index| format!("lab{serial}-{index}"));
        let names = roles.each_ref().map(|role| Namespace::name_of(role));
        let remover = NamespaceRemover::start(&names)
            .map_err(|source| LabError::NotStarted { process: "remover of hosts".to_owned(), source })?;
        let hosts = [Namespace::new(&roles[0])?, Namespace::new(&roles[1])?];
        hosts[0].link(&format!("add {INTERFACE} type veth peer name {INTERFACE} netns {}", hosts[1].name()))?;
        for (host, index) in hosts.iter().zip(0..) {
            host.link(&format!("set {INTERFACE} mtu {mtu_bytes} addrgenmode none"))?;
            host.ip(&format!("address add {}/24 dev {INTERFACE}", address(index)))?;
            host.link(&format!("set {INTERFACE} up"))?;
        }
        Ok(HostPair { hosts, _remover: remover })
    }

    /// One of the hosts: 0 or 1.
    pub(crate) fn host(&self, index: usize) -> &Namespace {
        &self.hosts[index]
    }

    /// Lets the kernel cut what leaves by the link into packets before it leaves.
    ///
    /// # Errors
    /// The command fails.
    pub(crate) fn cut_before_the_link(&self) -> Result<(), LabError> {
        for host in &self.hosts {
            host.link(&format!("set {INTERFACE} gso_max_segs 1"))?;
        }
        Ok(())
    }

    /// Limits what leaves the first host; one queue for all.
    ///
    /// # Errors
    /// The command fails: a kernel without the token bucket filter.
    pub(crate) fn limit(&self, rate_mbit: f64, link: &LinkPlan) -> Result<(), LabError> {
        Ok(queues::limit(&self.hosts[0], INTERFACE, rate_mbit, link)?)
    }

    /// Limits what leaves the first host, with a class of its own for what is marked.
    ///
    /// # Errors
    /// The command fails: a kernel without HTB or its filter.
    pub(crate) fn limit_in_classes(
        &self,
        rate_mbit: f64,
        marked: MarkedShare,
        link: &LinkPlan,
    ) -> Result<(), LabError> {
        Ok(queues::limit_in_classes(&self.hosts[0], INTERFACE, (rate_mbit, marked), link)?)
    }
}

/// The addresses of the two hosts of a link, in a pair and among [`Hosts`].
pub(crate) fn pair_addresses() -> [Ipv4Addr; 2] {
    [address(0), address(1)]
}

impl Hosts {
    /// One of the hosts.
    pub(crate) fn host(&self, index: usize) -> Option<&Namespace> {
        self.hosts.get(index)
    }
}
