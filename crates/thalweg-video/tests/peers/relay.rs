//! A network between two ends: datagrams to one port leave for another one, later, or not at all.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::stream::local;

/// Whether a datagram is dropped.
pub type Drops = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// One direction; it ends when dropped.
pub struct Route {
    dropped: Arc<AtomicU64>,
    least_nanos: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    port: u16,
    threads: Vec<JoinHandle<()>>,
}

impl Route {
    /// Sends on to port `to` what comes at port `port`, `delay` later, but for what `drops` names.
    pub fn start(port: u16, to: u16, delay: Duration, mut drops: Drops) -> Route {
        let socket = Arc::new(UdpSocket::bind(local(port)).expect("the port is free"));
        let least_nanos = Arc::new(AtomicU64::new(u64::MAX));
        let (dropped, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (queue, queued) = channel::<(Instant, Vec<u8>)>();
        let (leaving, least) = (Arc::clone(&socket), Arc::clone(&least_nanos));
        let forward = std::thread::spawn(move || {
            for (arrived, datagram) in queued {
                std::thread::sleep((arrived + delay).saturating_duration_since(Instant::now()));
                least.fetch_min(arrived.elapsed().as_nanos() as u64, Ordering::Relaxed);
                // A peer that has ended refuses it.
                let _ = leaving.send_to(&datagram, local(to));
            }
        });
        let (counter, stopped) = (Arc::clone(&dropped), Arc::clone(&stop));
        let take = std::thread::spawn(move || {
            let mut datagram = vec![0; usize::from(u16::MAX)];
            while !stopped.load(Ordering::Relaxed) {
                let Ok((octets, _)) = socket.recv_from(&mut datagram) else { continue };
                if drops(&datagram[..octets]) {
                    counter.fetch_add(1, Ordering::Relaxed);
                } else {
                    queue.send((Instant::now(), datagram[..octets].to_vec())).expect("the other thread lives");
                }
            }
        });
        Route { dropped, least_nanos, stop, port, threads: vec![take, forward] }
    }

    /// Datagrams dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// How long it held a datagram at least: the delay, and what a busy machine added.
    pub fn least_delay(&self) -> Duration {
        Duration::from_nanos(self.least_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for datagrams.
        let waker = UdpSocket::bind(local(0)).and_then(|socket| socket.send_to(&[0; 4], local(self.port)));
        if waker.is_ok() {
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

/// Drops nothing.
pub fn keep() -> Drops {
    Box::new(|_| false)
}

/// Lets `first` packets of the stream pass, then drops one in `period`, and no repetition.
pub fn drop_one_in(period: u64, first: u64) -> Drops {
    let mut packets = 0;
    Box::new(move |datagram| {
        let is_original = datagram.get(1).is_some_and(|kind| kind & 0x7f == 96);
        packets += u64::from(is_original);
        is_original && packets > first && packets.is_multiple_of(period)
    })
}
