//! Two hosts of our own, joined by a relay that loses datagrams. Root and iproute2 are needed: `cargo xtask test
//! video` runs these tests.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thalweg_base::rng::Rng;
use thalweg_host::Namespace;
use thalweg_transport::frames::FramePort;
use thalweg_video::topics::{SampleUnit, Spread, TopicReliability};

use crate::fixture::domain;
use crate::processes::{Findings, Other, Task};

/// Of a thousand frames of the link, so many are lost in each direction.
const LOSS: &str = "THALWEG_TEST_LOSS";
/// Bytes of the largest frame, with what is put before it.
const FRAME_BYTES_MAX: usize = 66_000;

/// Two hosts and the one between them.
struct Network {
    left: Namespace,
    middle: Namespace,
    right: Namespace,
}

impl Network {
    fn new(mtu: u32) -> Network {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let host = |role: &str| Namespace::new(&format!("{number}-{role}")).unwrap_or_else(|error| panic!("{error}"));
        let network = Network { left: host("left"), middle: host("middle"), right: host("right") };
        for (index, end) in [&network.left, &network.right].into_iter().enumerate() {
            let middle = network.middle.name();
            end.ip(&format!("link add eth0 type veth peer name end{index} netns {middle}")).unwrap();
            end.ip(&format!("address add 10.78.0.{}/24 dev eth0", index + 1)).unwrap();
            // Datagrams are split before the relay sees them: it loses one at a time.
            end.link(&format!("set eth0 mtu {mtu} gso_max_segs 1 up")).unwrap();
            network.middle.link(&format!("set end{index} mtu {mtu} gso_max_segs 1 up")).unwrap();
        }
        network
    }
}

/// Forwards between the two ends until the parent ends this process.
pub fn relay() -> String {
    let loss: u64 = std::env::var(LOSS).unwrap().parse().unwrap();
    let ports = ["end0", "end1"].map(|name| FramePort::open(name).unwrap());
    let mut rng = Rng::new(7);
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(600) {
        let mut wanted = ports.each_ref().map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN));
        let wait = Timespec { tv_sec: 1, tv_nsec: 0 };
        poll(&mut wanted, Some(&wait)).unwrap();
        for (from, to) in [(0, 1), (1, 0)] {
            while let Some(bytes) = ports[from].receive(&mut buffer).unwrap() {
                if rng.below(1000) >= loss {
                    ports[to].send(&buffer[..bytes], &[]).unwrap();
                }
            }
        }
    }
    String::new()
}

/// A stream over a link that loses `loss` of a thousand datagrams: what publisher and subscriber found.
fn run(task: Task, mtu: u32, loss: u64) -> (Findings, Findings) {
    let network = Network::new(mtu);
    let inside = |host: &Namespace| {
        let host = host.command("env");
        move |program: &std::path::Path| {
            let mut command = host;
            command.arg(program).env(LOSS, loss.to_string());
            command
        }
    };
    let _relay = Other::start("relay", task, inside(&network.middle));
    let subscriber = Other::start("subscribe", task, inside(&network.right));
    let publisher = Other::start("publish", task, inside(&network.left));
    let sent = publisher.finish();
    (sent, subscriber.finish())
}

fn task(unit: SampleUnit, reliability: TopicReliability) -> Task {
    let (size, spread) = ((640, 360), Spread::default());
    Task { domain: domain(), size, rate: 10, unit, reliability, spread, frames: 40, on_loopback: false }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_reliable_stream_stays_complete_where_a_hundredth_is_lost() {
    for unit in [SampleUnit::Frame, SampleUnit::Slice(24)] {
        let (sent, got) = run(task(unit, TopicReliability::Reliable), 1500, 10);
        assert_eq!(got.number("wrong"), 0.0, "{got:?}");
        assert_eq!(got.number("complete"), sent.number("sent"), "{unit:?}: {sent:?} {got:?}");
    }
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_best_effort_stream_conceals_what_is_lost_and_counts_it() {
    let (sent, got) = run(task(SampleUnit::Slice(24), TopicReliability::BestEffort), 1500, 10);
    assert_eq!(got.number("wrong"), 0.0, "{got:?}");
    assert!(got.number("concealed") > 0.0, "{got:?}");
    assert!(got.number("expected") <= sent.number("sent"), "{sent:?} {got:?}");
}
