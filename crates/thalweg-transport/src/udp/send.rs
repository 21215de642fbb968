//! Hands the datagrams of an outbox to the kernel by as few system calls as it allows.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_base::locator::Locator;
use thalweg_base::outbox::Outbox;
use thalweg_base::traffic_class::TrafficClass;

use super::connections::Connections;
use super::flight::Flight;
use crate::counters::{SendCounters, SendCounts, add};
use crate::interfaces::Interface;
use crate::outgo::{MESSAGE_MAX_BYTES, Sent};
use crate::socket::{UdpSocket, route_mtu};
use crate::sys::address::Family;
use crate::sys::control::Exit;
use crate::sys::send::SendScratch;

/// Which socket a datagram leaves from; its port is the source address that peers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Discovery and everything else the I/O thread sends. Errors that announcements to unused ports provoke come back
    /// to this socket only. Datagrams larger than their path leave in IP fragments, which routers may cut further: announcements
    /// cannot be cut otherwise, and repairs get through where a router drops large packets without telling.
    Metatraffic,
    /// Samples that application threads write. A datagram larger than its path is refused by the kernel, leaves as
    /// [`Origin::Metatraffic`] instead, and [`Sender::take_path_news`] tells.
    User,
}

/// One socket a family.
#[derive(Debug, Default)]
pub(super) struct PerFamily {
    v4: Option<Arc<UdpSocket>>,
    v6: Option<Arc<UdpSocket>>,
}

impl PerFamily {
    pub(super) fn set(&mut self, socket: Arc<UdpSocket>) {
        match socket.family() {
            Family::V4 => self.v4 = Some(socket),
            Family::V6 => self.v6 = Some(socket),
        }
    }

    pub(super) fn get(&self, family: Family) -> Option<&UdpSocket> {
        match family {
            Family::V4 => self.v4.as_deref(),
            Family::V6 => self.v6.as_deref(),
        }
    }
}

/// Sends from any thread through the sockets of one participant.
#[derive(Debug)]
pub struct Sender {
    metatraffic: PerFamily,
    user: PerFamily,
    exits: Mutex<Vec<Exit>>,
    /// Largest segment that the kernel cuts to loopback and to other destinations; lowered when it refuses.
    segment_max_loopback: AtomicU32,
    segment_max_network: AtomicU32,
    ranks: AtomicBool,
    connections: Connections,
    send_buffer_bytes: usize,
    counters: SendCounters,
}

thread_local! {
    static SCRATCH: RefCell<SendScratch> = RefCell::default();
}

impl Sender {
    pub(super) fn new(
        metatraffic: PerFamily,
        user: PerFamily,
        interfaces: &[Interface],
        send_buffer_bytes: usize,
    ) -> Sender {
        let sender = Sender {
            metatraffic,
            user,
            exits: Mutex::default(),
            segment_max_loopback: AtomicU32::default(),
            segment_max_network: AtomicU32::default(),
            ranks: AtomicBool::new(true),
            connections: Connections::default(),
            send_buffer_bytes,
            counters: SendCounters::default(),
        };
        sender.set_interfaces(interfaces);
        sender
    }

    /// Sends multicast through `interfaces` from now on, and tries GSO and ranks anew, since the paths are new as well: what the kernel
    /// refuses with an address that is gone says nothing about its age.
    pub fn set_interfaces(&self, interfaces: &[Interface]) {
        let mut exits = Vec::new();
        for interface in interfaces.iter().filter(|interface| interface.multicast) {
            // Linux routes IPv4 multicast through loopback, but no IPv6 multicast.
            let v6 = interface.v6().filter(|_| !interface.loopback);
            let sources = [interface.v4(), v6].into_iter().flatten();
            exits.extend(sources.map(|source| Exit { interface: interface.index, source }));
        }
        *self.exits.lock().unwrap_or_else(PoisonError::into_inner) = exits;
        self.connections.clear();
        self.segment_max_loopback.store(MESSAGE_MAX_BYTES as u32, Ordering::Relaxed);
        self.segment_max_network.store(MESSAGE_MAX_BYTES as u32, Ordering::Relaxed);
        self.ranks.store(true, Ordering::Relaxed);
    }

    /// Never cuts messages by GSO again until the interfaces change; for comparing and for kernels that do it badly.
    pub fn disable_segmentation(&self) {
        self.segment_max_loopback.store(0, Ordering::Relaxed);
        self.segment_max_network.store(0, Ordering::Relaxed);
    }

    /// Sends every datagram of `outbox` to each of its destinations, in order. One datagram to one destination costs
    /// exactly one system call; equal-sized neighbours leave as one message (GSO), several messages as one call.
    ///
    /// Never fails as a whole: refused datagrams are counted, as if the network had lost them. Waits at most 50 ms in
    /// total when the send buffer is full.
    pub fn send(&self, origin: Origin, outbox: &Outbox) -> Sent {
        self.send_as(origin, TrafficClass::DEFAULT, outbox)
    }

    /// As [`Sender::send`], with every datagram marked by the code point of `class`, and ranked by it in this host's queues
    /// where the kernel lets datagrams be ranked one by one (Linux 6.14).
    pub fn send_as(&self, origin: Origin, class: TrafficClass, outbox: &Outbox) -> Sent {
        let send = |scratch: &mut SendScratch| Flight::new(self, origin, class, outbox, scratch).send();
        // A thread that is ending has no scratch any more, but may drop a writer that has something to send.
        let sent = SCRATCH.try_with(|scratch| send(&mut scratch.borrow_mut()));
        let sent = sent.unwrap_or_else(|_| send(&mut SendScratch::default()));
        add(&self.counters.calls, sent.calls);
        add(&self.counters.datagrams, sent.datagrams);
        sent
    }

    /// The largest IP packet, headers included, that gets to `destination` in one piece, as far as this host knows: the MTU of
    /// the interface on the way there, or less where routers have told so. Opens a socket for a moment: four system calls.
    ///
    /// # Errors
    /// When there is no route.
    pub fn path_mtu(&self, destination: SocketAddr) -> io::Result<u32> {
        route_mtu(destination, None)
    }

    /// Whether a datagram was larger than its path since the last call: then the paths are to be measured anew.
    pub fn take_path_news(&self) -> bool {
        let families = [Family::V4, Family::V6];
        let sockets = families.iter().flat_map(|family| [self.metatraffic.get(*family), self.user.get(*family)]);
        sockets.flatten().any(UdpSocket::take_path_news)
    }

    /// A socket connected to `destination`, if that is worth while: an address of user data on this host.
    pub(super) fn connection(&self, origin: Origin, destination: SocketAddr) -> Option<Arc<UdpSocket>> {
        if origin != Origin::User || !destination.ip().is_loopback() {
            return None;
        }
        self.connections.get(destination, |to| UdpSocket::connected(to, self.send_buffer_bytes).ok())
    }

    /// Whether datagrams are ranked in this host's queues; cleared when the kernel knows no such control message.
    pub(super) fn ranks(&self) -> &AtomicBool {
        &self.ranks
    }

    /// Counts of sent datagrams since the sockets were opened.
    pub fn counts(&self) -> SendCounts {
        self.counters.read()
    }

    pub(super) fn sockets(&self, origin: Origin) -> &PerFamily {
        match origin {
            Origin::Metatraffic => &self.metatraffic,
            Origin::User => &self.user,
        }
    }

    pub(super) fn counters(&self) -> &SendCounters {
        &self.counters
    }

    /// Calls `each` for every way out that multicast of this family takes.
    pub(super) fn for_each_exit(&self, family: Family, each: impl FnMut(Exit)) {
        let exits = self.exits.lock().unwrap_or_else(PoisonError::into_inner);
        exits.iter().copied().filter(|exit| Family::of(&exit.source) == family).for_each(each);
    }

    /// Largest segment that the kernel cuts for `destination`; 0 when it cuts none.
    pub(super) fn segment_max(&self, destination: &Locator) -> &AtomicU32 {
        match destination.socket_address() {
            Some(address) if address.ip().is_loopback() => &self.segment_max_loopback,
            _ => &self.segment_max_network,
        }
    }
}
