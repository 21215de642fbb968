//! Announcements of sessions by multicast (SAP, RFC 2974): ours while a stream is sent, and hearing those of others.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::stream::{PortSharing, StreamOptions, StreamReceiver, StreamScratch, StreamSocket, Waker};
use thalweg_transport::{clock, interfaces};

use super::options::random_words;
use super::send::STOP_DELAY;
use crate::sap::{SAP_PORT, SapAnnouncer, SapConfig, SapDirectory, announcement_group};
use crate::sdp::SessionDescription;

/// A session that is announced until this is dropped, which tells others that it is over.
pub struct SessionAnnouncement {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl SessionAnnouncement {
    /// Announces `description` of a session to `destination`, in the group of its scope, on the interface with this index (0: the
    /// system's choice); `config` has our address and how often.
    ///
    /// # Errors
    /// The group cannot be joined, or the system refuses a socket or a thread.
    pub fn start(
        description: String,
        destination: IpAddr,
        config: SapConfig,
        interface: u32,
    ) -> io::Result<SessionAnnouncement> {
        let group = announcement_group(destination);
        let socket = StreamSocket::bind(group, &sap_options(interface))?;
        socket.join(group.ip(), interface)?;
        let receiver = StreamReceiver::new(&[&socket])?;
        let [upper, lower, _] = random_words()?;
        let seed = u64::from(upper) << 32 | u64::from(lower);
        let announcer = SapAnnouncer::new(clock::now(), config, description, seed);
        let (stop, waker) = (Arc::new(AtomicBool::new(false)), receiver.waker());
        let announcing = Announcing { announcer, socket, receiver, group, own: Vec::new() };
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("video-sap".to_owned());
        let thread = Some(thread.spawn(move || announcing.run(&stopped))?);
        Ok(SessionAnnouncement { stop, waker, thread })
    }
}

impl Drop for SessionAnnouncement {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

/// The thread that announces.
struct Announcing {
    announcer: SapAnnouncer,
    socket: StreamSocket,
    receiver: StreamReceiver,
    group: SocketAddr,
    /// Our last announcement, which the group gives back to us.
    own: Vec<u8>,
}

impl Announcing {
    fn run(mut self, stop: &AtomicBool) {
        // The more others announce, the rarer everybody does.
        let mut others = SapDirectory::default();
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            let mut out = Vec::new();
            if self.announcer.poll_announcement(now, others.len(), &mut out) {
                self.own = out;
                self.send(&self.own);
            }
            while others.poll_expired(now).is_some() {}
            let due = self.announcer.poll_timeout().min(others.poll_timeout());
            if self.receiver.wait_until(due).is_err() {
                break;
            }
            let Announcing { receiver, own, .. } = &mut self;
            hear(receiver, 1, |from, datagram| {
                if datagram != &own[..] {
                    // What is no announcement is no matter of ours.
                    let _ = others.handle_datagram(now, from, datagram);
                }
            });
        }
        let mut out = Vec::new();
        self.announcer.create_deletion(&mut out);
        self.send(&out);
    }

    fn send(&self, datagram: &[u8]) {
        let mut scratch = StreamScratch::default();
        let mut burst = self.socket.burst(&mut scratch, self.group);
        burst.push([datagram]);
        // The next announcement makes up for one that the system did not take.
        burst.send(PATIENCE);
    }
}

/// Hears for `duration` which sessions are announced in the groups of all scopes, on the interface with this index (0: the system's
/// choice), or until `stop` is set.
///
/// # Errors
/// No group can be joined, or the system refuses sockets or timers.
pub fn hear_sessions(interface: u32, duration: Duration, stop: &AtomicBool) -> io::Result<Vec<SessionDescription>> {
    hear_until(interface, duration, stop, |_| false)
}

/// As [`hear_sessions`], but ends once a session of this name is announced.
///
/// # Errors
/// As there.
pub fn hear_session(
    name: &str,
    interface: u32,
    duration: Duration,
    stop: &AtomicBool,
) -> io::Result<Vec<SessionDescription>> {
    hear_until(interface, duration, stop, |session| session.name == name)
}

/// Hears sessions until one of them is `wanted`.
fn hear_until(
    interface: u32,
    duration: Duration,
    stop: &AtomicBool,
    wanted: impl Fn(&SessionDescription) -> bool,
) -> io::Result<Vec<SessionDescription>> {
    let mut sockets = Vec::new();
    let mut refusal = None;
    for (any, groups) in [(V4_ANY, &GROUPS_V4[..]), (V6_ANY, &GROUPS_V6[..])] {
        match open_listener(any, groups, interface) {
            Ok(socket) => sockets.push(socket),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    if let (true, Some(error)) = (sockets.is_empty(), refusal) {
        return Err(error);
    }
    let mut receiver = StreamReceiver::new(&sockets.iter().collect::<Vec<_>>())?;
    let mut directory = SapDirectory::default();
    let end = clock::now() + duration;
    loop {
        let now = clock::now();
        if now >= end || stop.load(Ordering::Relaxed) || directory.sessions().any(&wanted) {
            return Ok(directory.sessions().cloned().collect());
        }
        receiver.wait_until(end.min(now + STOP_DELAY))?;
        hear(&mut receiver, sockets.len(), |from, datagram| note(&mut directory, now, from, datagram));
    }
}

fn note(directory: &mut SapDirectory, now: Instant, from: IpAddr, datagram: &[u8]) {
    // What is no announcement is no matter of ours.
    let _ = directory.handle_datagram(now, from, datagram);
}

/// Joins as many of these groups as the system lets.
fn open_listener(any: IpAddr, groups: &[IpAddr], interface: u32) -> io::Result<StreamSocket> {
    let socket = StreamSocket::bind(SocketAddr::new(any, SAP_PORT), &sap_options(interface))?;
    let mut outcome = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for group in groups {
        let joined = socket.join(*group, interface);
        outcome = outcome.or(joined);
    }
    outcome.map(|()| socket)
}

fn sap_options(interface: u32) -> StreamOptions {
    StreamOptions {
        receive_buffer_bytes: BUFFER_BYTES,
        sharing: PortSharing::Shared,
        // Scopes bound announcements and not routers (RFC 2974 §3).
        hops: Some(255),
        multicast_interface: (interface != 0).then_some(interface),
        ..StreamOptions::default()
    }
}

/// Gives everything that the last wait told of to `handle`, with its source, in a bounded amount.
fn hear(receiver: &mut StreamReceiver, places: usize, mut handle: impl FnMut(IpAddr, &[u8])) {
    for place in 0..places {
        for _ in 0..BATCHES_MAX {
            if !receiver.is_ready(place) || receiver.receive(place).is_err() {
                break;
            }
            while let Some(arrival) = receiver.next_arrival() {
                arrival.datagrams().for_each(|datagram| handle(arrival.source.ip(), datagram));
            }
        }
    }
}

/// The index of the interface that has this name.
///
/// # Errors
/// There is none; the error lists those that are there. Or the system does not tell.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let listed = interfaces::list()?;
    let found = listed.iter().find(|listed| listed.interface.name == name);
    found.map(|listed| listed.interface.index).ok_or_else(|| {
        let all: Vec<String> = listed.iter().map(ToString::to_string).collect();
        io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name:?}; there are {}", all.join(", ")))
    })
}

const V4_ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const V6_ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// The groups of all scopes (RFC 2974 §3): the world, the site and the organization.
const GROUPS_V4: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(224, 2, 127, 254)),
    IpAddr::V4(Ipv4Addr::new(239, 255, 255, 255)),
    IpAddr::V4(Ipv4Addr::new(239, 195, 255, 255)),
];
/// Those of IPv6: the link, the site, the organization and the world.
const GROUPS_V6: [IpAddr; 4] = [sap_v6(0x2), sap_v6(0x5), sap_v6(0x8), sap_v6(0xe)];

const fn sap_v6(scope: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xff00 | scope, 0, 0, 0, 0, 0, 2, 0x7ffe))
}

/// Bytes of receive buffer: 100 announcements as the kernel charges them.
const BUFFER_BYTES: usize = 256 << 10;
/// Batches of messages that a socket gives in a row.
const BATCHES_MAX: usize = 8;
/// How long an announcement waits for room.
const PATIENCE: Duration = Duration::from_millis(5);
