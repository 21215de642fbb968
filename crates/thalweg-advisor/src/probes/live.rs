//! Measurements on this host, over loopback where no peer is needed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use thalweg_host::{request_exact_timers, thread_cpu_time};
use thalweg_transport::tuning::{
    cut_sends, force_receive_buffer, join_receives, receive_buffer, set_pacing_rate, set_receive_buffer, socket_memory,
};

use super::path::measure_path;
use super::{DatagramCharge, GrantedBuffer, PacingEffect, PacketCost, PathMtu, Probes, Segmentation, WakeUps};

/// Probes of this host and of this thread's network namespace.
#[derive(Clone, Copy, Debug)]
pub struct LiveProbes {
    /// How long threads are watched; rare stalls need long.
    pub watching: Duration,
}

impl Default for LiveProbes {
    /// Three seconds.
    fn default() -> LiveProbes {
        LiveProbes { watching: Duration::from_secs(3) }
    }
}

/// The charge of datagrams that are sent `count` at a time.
fn charge_of(payload_bytes: u64, count: usize) -> io::Result<DatagramCharge> {
    let (sender, receiver) = pair()?;
    let bytes = payload(payload_bytes)?;
    if count > 1 {
        cut_sends(&sender, u16::try_from(bytes).map_err(io::Error::other)?)?;
    }
    let before = socket_memory(&receiver)?;
    // Nobody reads: each datagram stays charged, until the buffer is half full or there are enough for a mean.
    for _ in 0..CHARGED_MAX {
        sender.send(&vec![0; bytes * count])?;
        let now = socket_memory(&receiver)?;
        if now.refused > before.refused || u64::from(now.charged_bytes) * 2 > u64::from(now.limit_bytes) {
            break;
        }
    }
    let charged = u64::from(socket_memory(&receiver)?.charged_bytes);
    receiver.set_nonblocking(true)?;
    let mut datagrams = 0;
    let mut buffer = vec![0; bytes];
    while receiver.recv(&mut buffer).is_ok() {
        datagrams += 1;
    }
    if datagrams == 0 || charged == 0 {
        return Err(io::Error::other("no datagram waited in the receive buffer"));
    }
    Ok(DatagramCharge { payload_bytes, charged_bytes: charged.div_ceil(datagrams), datagrams })
}

/// A socket of loopback, or of whichever family it has.
fn socket() -> io::Result<UdpSocket> {
    let any = [SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0)];
    let socket = UdpSocket::bind(&any[..])?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// A sender that is connected to a receiver.
fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let (sender, receiver) = (socket()?, socket()?);
    sender.connect(receiver.local_addr()?)?;
    Ok((sender, receiver))
}

impl Probes for LiveProbes {
    fn granted_buffer(&mut self, bytes: u64) -> io::Result<GrantedBuffer> {
        let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
        let socket = socket()?;
        let default_bytes = receive_buffer(&socket)?;
        set_receive_buffer(&socket, wanted)?;
        let granted_bytes = receive_buffer(&socket)?;
        let forced = force_receive_buffer(&socket, wanted).and_then(|()| receive_buffer(&socket));
        Ok(GrantedBuffer {
            asked_bytes: bytes,
            granted_bytes: granted_bytes as u64,
            forced_bytes: forced.ok().map(|bytes| bytes as u64),
            default_bytes: default_bytes as u64,
        })
    }

    fn charge(&mut self, payload_bytes: u64) -> io::Result<DatagramCharge> {
        let alone = charge_of(payload_bytes, 1)?;
        // A datagram that was cut from a large send may be charged otherwise; the receiver does not choose how it was sent.
        let count = MESSAGE_MAX_BYTES / payload(payload_bytes)?.max(1);
        match charge_of(payload_bytes, count.clamp(1, SEGMENTS_MAX)) {
            Ok(cut) if cut.charged_bytes > alone.charged_bytes => Ok(cut),
            _ => Ok(alone),
        }
    }

    fn segmentation(&mut self, payload_bytes: u64) -> io::Result<Segmentation> {
        let (sender, receiver) = pair()?;
        let each = payload(payload_bytes)?.max(1);
        let count = (MESSAGE_MAX_BYTES / each).clamp(1, SEGMENTS_MAX);
        cut_sends(&sender, u16::try_from(each).map_err(io::Error::other)?)?;
        join_receives(&receiver)?;
        sender.send(&vec![0; each * count])?;
        let (mut received, mut messages) = (0, 0);
        let mut buffer = vec![0; MESSAGE_MAX_BYTES];
        while received < each * count {
            received += receiver.recv(&mut buffer)?;
            messages += 1;
        }
        Ok(Segmentation { datagrams: count as u64, messages })
    }

    fn path(&mut self, peer: IpAddr, at_most: u32) -> io::Result<PathMtu> {
        measure_path(peer, at_most)
    }

    fn wake_ups(&mut self) -> io::Result<WakeUps> {
        let watching = self.watching;
        // A thread of its own, since the exact timers that it asks for would stay.
        let watch = std::thread::Builder::new().name("wake-ups".to_owned()).spawn(move || watch(watching))?;
        watch.join().map_err(|_| io::Error::other("the watching thread panicked"))
    }

    fn pacing(&mut self, peer: Option<IpAddr>) -> io::Result<PacingEffect> {
        let to = SocketAddr::new(peer.unwrap_or(Ipv4Addr::LOCALHOST.into()), UNUSED_PORT);
        let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Not connected: the peer's refusals are of no interest.
        let sender = UdpSocket::bind(SocketAddr::new(any, 0))?;
        set_pacing_rate(&sender, PACED_BYTES_PER_SECOND)?;
        let started = Instant::now();
        for _ in 0..PACED_DATAGRAMS {
            sender.send_to(&[0; PACED_BYTES], to)?;
        }
        // A datagram is charged to its sender until it has left the queue.
        while socket_memory(&sender)?.unsent_bytes > 0 {
            if started.elapsed() >= PATIENCE {
                // They wait for a neighbour that does not answer, and no queue has seen them.
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the datagrams did not leave"));
            }
            std::thread::sleep(NAP / 10);
        }
        let bytes = (PACED_DATAGRAMS * PACED_BYTES) as f64;
        let seen = bytes / started.elapsed().as_secs_f64().max(1e-9);
        Ok(PacingEffect { asked_bytes_per_second: PACED_BYTES_PER_SECOND, seen_bytes_per_second: seen as u64 })
    }

    fn packet_cost(&mut self, payload_bytes: u64) -> io::Result<PacketCost> {
        let (sender, receiver) = pair()?;
        let payload = vec![0; payload(payload_bytes)?];
        let mut buffer = vec![0; payload.len()];
        let before = thread_cpu_time();
        // Over loopback the sender's system call delivers as well: one thread's time is all of it.
        for _ in 0..COSTED_DATAGRAMS {
            sender.send(&payload)?;
            receiver.recv(&mut buffer)?;
        }
        let used = thread_cpu_time().saturating_sub(before);
        Ok(PacketCost { each: used / COSTED_DATAGRAMS, datagrams: u64::from(COSTED_DATAGRAMS) })
    }
}

fn watch(watching: Duration) -> WakeUps {
    request_exact_timers();
    let started = Instant::now();
    let mut lateness = Vec::new();
    while started.elapsed() < watching && lateness.len() < WAKE_UPS_MAX {
        let slept = Instant::now();
        std::thread::sleep(NAP);
        lateness.push(slept.elapsed().saturating_sub(NAP));
    }
    lateness.sort_unstable();
    let at = |rank: usize| lateness.get(rank).copied().unwrap_or_default();
    WakeUps {
        count: lateness.len() as u64,
        p99: at(lateness.len() * 99 / 100),
        worst: at(lateness.len().saturating_sub(1)),
    }
}

fn payload(bytes: u64) -> io::Result<usize> {
    let fits = usize::try_from(bytes).ok().filter(|bytes| *bytes <= DATAGRAM_MAX_BYTES);
    fits.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a datagram has at most 65,507 bytes"))
}

const PATIENCE: Duration = Duration::from_secs(2);
/// The discard service, which hosts have not run for decades.
pub(super) const UNUSED_PORT: u16 = 9;
const DATAGRAM_MAX_BYTES: usize = 65_507;
/// Datagrams that are enough for a mean; a default buffer holds fewer large ones.
const CHARGED_MAX: usize = 64;
/// The kernel cuts a message of at most 64 KiB into at most 64 datagrams (UDP_MAX_SEGMENTS was 64 before Linux 6.9).
const MESSAGE_MAX_BYTES: usize = 65_000;
const SEGMENTS_MAX: usize = 16;
const NAP: Duration = Duration::from_millis(1);
/// An hour of naps.
const WAKE_UPS_MAX: usize = 3_600_000;
/// 60 datagrams of 1,000 bytes at 1 MB/s take 60 ms when they are paced, and less than one when not; they fit a default
/// send buffer.
const PACED_BYTES_PER_SECOND: u32 = 1_000_000;
const PACED_BYTES: usize = 1000;
const PACED_DATAGRAMS: usize = 60;
const COSTED_DATAGRAMS: u32 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn probes() -> LiveProbes {
        LiveProbes { watching: Duration::from_millis(200) }
    }

    #[test]
    fn a_buffer_is_granted_and_never_more_than_was_asked() {
        let granted = probes().granted_buffer(100_000).expect("granted");
        assert!(granted.granted_bytes <= 100_000 && granted.granted_bytes > 0, "{granted:?}");
        let huge = probes().granted_buffer(1 << 30).expect("granted");
        assert!(huge.granted_bytes < 1 << 30, "{huge:?}");
    }

    #[test]
    fn a_larger_datagram_is_charged_more_and_each_more_than_it_holds() {
        let charges: Vec<DatagramCharge> =
            [1, 1220, 8945].map(|bytes| probes().charge(bytes).expect("charged")).to_vec();
        assert!(charges.iter().all(|charge| charge.charged_bytes > charge.payload_bytes), "{charges:?}");
        assert!(charges.is_sorted_by_key(|charge| charge.charged_bytes), "{charges:?}");
        assert!(probes().charge(65_508).is_err());
    }

    #[test]
    fn a_cut_send_arrives_whole_in_some_messages() {
        let seen = probes().segmentation(1220).expect("cut");
        assert_eq!(seen.datagrams, 16);
        assert!((1..=16).contains(&seen.messages), "{seen:?}");
    }

    #[test]
    fn threads_wake_late_and_datagrams_cost_time() {
        let late = probes().wake_ups().expect("watched");
        assert!(late.count > 0 && late.p99 <= late.worst, "{late:?}");
        let cost = probes().packet_cost(1000).expect("measured");
        assert!(cost.each > Duration::from_nanos(100) && cost.each < Duration::from_millis(1), "{cost:?}");
    }

    #[test]
    fn loopback_has_no_queue_that_paces() {
        assert!(!probes().pacing(None).expect("arrived").is_effective());
    }
}
