//! Packets of `video` that come late, in another order or not at all, and what counts them.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::program::{PATIENCE, Running, Said, command, run};
use crate::video::{SIZE, address, figure, json, receiver};

/// What becomes of every 17th packet of the picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mishap {
    Lost,
    /// The next packet comes before it.
    Overtaken,
}

/// A host between sender and receiver with a mishap for some packets, which tells how many those were.
struct Relay {
    hit: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Passes packets from `here` on to `to`, and RTCP of the next ports in both directions.
    fn start(here: &str, to: &str, mishap: Mishap) -> Relay {
        let above = |address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            SocketAddr::new(address.ip(), address.port() + 1)
        };
        let (media, control) = (UdpSocket::bind(here).expect("free"), UdpSocket::bind(above(here)).expect("free"));
        let (hit, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        for socket in [&media, &control] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        }
        let (to, receiver): (SocketAddr, SocketAddr) = (to.parse().expect("an address"), above(to));
        let (hits, stopped) = (Arc::clone(&hit), Arc::clone(&stop));
        let pictures = std::thread::spawn(move || {
            let (mut buffer, mut count, mut overtaken) = ([0; 65_536], 0_u64, None);
            while !stopped.load(Ordering::Relaxed) {
                let Ok((octets, _)) = media.recv_from(&mut buffer) else { continue };
                // Repetitions have payload type 97.
                let is_picture = buffer[1] & 0x7f == 96;
                count += u64::from(is_picture);
                // Another packet would overtake the last one of a frame with the next frame, or never.
                let is_within_frame = buffer[1] & 0x80 == 0;
                if is_picture && count % 17 == 5 && (mishap == Mishap::Lost || is_within_frame) {
                    hits.fetch_add(1, Ordering::Relaxed);
                    overtaken = (mishap == Mishap::Overtaken).then(|| buffer[..octets].to_vec());
                    continue;
                }
                media.send_to(&buffer[..octets], to).expect("sent");
                if let Some(packet) = overtaken.take() {
                    media.send_to(&packet, to).expect("sent");
                }
            }
        });
        let stopped = Arc::clone(&stop);
        let reports = std::thread::spawn(move || {
            let (mut buffer, mut sender) = ([0; 65_536], None);
            while !stopped.load(Ordering::Relaxed) {
                let Ok((octets, from)) = control.recv_from(&mut buffer) else { continue };
                if from == receiver {
                    sender.map(|sender| control.send_to(&buffer[..octets], sender));
                } else {
                    sender = Some(from);
                    control.send_to(&buffer[..octets], receiver).expect("sent");
                }
            }
        });
        Relay { hit, stop, threads: vec![pictures, reports] }
    }

    /// Ends it; returns how many packets had the mishap.
    fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
        self.hit.load(Ordering::Relaxed)
    }
}

/// A stream through a relay: what both ends say, and how many packets had the mishap.
fn spoiled_stream(mishap: Mishap, send: &[&str], receive: &[&str]) -> ([Said; 2], u64) {
    let (between, end) = (address(), address());
    let relay = Relay::start(&between, &end, mishap);
    let receiver = receiver(&end, &[&["--bind", &end, "--playout-frames", "3", "--json"], &SIZE[..], receive].concat());
    let sent = run(&[&["video", "send", "--to", &between, "--frames", "6", "--json"], &SIZE[..], send].concat());
    ([sent, receiver.finish()], relay.finish())
}

#[test]
fn lost_packets_come_again_and_are_counted_as_often_as_they_were_lost() {
    let ([sent, received], lost) = spoiled_stream(Mishap::Lost, &[], &[]);
    let (sent, received) = (json(&sent.expect_code(0)), json(&received.expect_code(0)));
    assert!(lost > 10, "{lost}");
    assert_eq!((figure(&received, "packets_recovered"), figure(&received, "packets_lost")), (lost as f64, 0.0));
    assert_eq!(received["layers"]["wire_gaps"], lost);
    assert_eq!(figure(&received, "frames_complete"), figure(&sent, "frames_sent"), "{received}");
    assert!(figure(&sent, "packets_resent") >= lost as f64, "{sent}");
}

#[test]
fn without_repair_lost_packets_are_lost_and_the_exit_code_says_so() {
    let ([sent, received], lost) = spoiled_stream(Mishap::Lost, &[], &["--repair", "off", "--conceal", "drop"]);
    sent.expect_code(0);
    let received = received.expect_code(1);
    assert!(received.stderr.contains(&format!("{lost} packets were lost")), "{}", received.stderr);
    let figures = json(&received);
    assert_eq!(
        (figure(&figures, "packets_lost"), figure(&figures, "frames_complete")),
        (lost as f64, 0.0),
        "{figures}"
    );
    assert_eq!(figures["law"]["holds"], true, "a loss breaks no law");
}

#[test]
fn packets_that_others_overtake_are_counted_one_by_one_and_none_is_lost() {
    let ([sent, received], overtaken) = spoiled_stream(Mishap::Overtaken, &[], &["--repair", "off"]);
    let (sent, received) = (json(&sent.expect_code(0)), json(&received.expect_code(0)));
    assert!(overtaken > 5, "{overtaken}");
    assert_eq!(figure(&received, "packets_reordered"), overtaken as f64, "{received}");
    assert_eq!((figure(&received, "packets_lost"), &received["layers"]["wire_gaps"]), (0.0, &0.into()), "{received}");
    assert_eq!(figure(&received, "packets_received"), figure(&sent, "packets_sent"));
    assert_eq!(figure(&received, "frames_complete"), figure(&sent, "frames_sent"), "{received}");
}

/// Datagrams that found no room at a UDP port of this host, by the kernel's own account.
fn kernel_drops(port: &str) -> u64 {
    let port: u16 = port.parse().expect("a port");
    let (text, end) = (std::fs::read_to_string("/proc/net/udp").expect("Linux"), format!(":{port:04X}"));
    let own = text.lines().filter(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&end)));
    own.map(|line| line.split_whitespace().next_back().and_then(|drops| drops.parse::<u64>().ok()).expect("drops"))
        .sum()
}

#[test]
fn what_finds_no_room_at_a_stopped_receiver_is_counted_alike_at_the_socket_in_proc_and_by_number() {
    let address = address();
    let port = address.rsplit(':').next().expect("a port");
    let picture = ["--size", "320x180", "--rate", "10", "--repair", "off"];
    let receive = ["--bind", &address, "--buffer", "131072", "--playout-frames", "3", "--sink", "null", "--json"];
    let receiver = receiver(&address, &[&receive[..], &picture].concat());
    // One datagram is one message: of joined ones the kernel counts one.
    let send = ["video", "send", "--to", &address, "--mtu", "1500", "--batching", "1", "--seconds", "120"];
    let sender = Running::start(command(&[&send[..], &picture].concat()));
    std::thread::sleep(Duration::from_millis(1500));
    receiver.signal("STOP");
    let deadline = Instant::now() + PATIENCE;
    while kernel_drops(port) < 100 {
        assert!(Instant::now() < deadline, "a stopped receiver loses nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    receiver.signal("CONT");
    // The drops are told with packets that come afterwards, and read in proc at whole seconds.
    std::thread::sleep(Duration::from_millis(2500));
    let dropped = kernel_drops(port);
    sender.signal("INT");
    sender.finish();
    let figures = json(&receiver.finish().expect_code(1));
    let [gaps, socket, proc] =
        ["wire_gaps", "rxq_ovfl", "proc_net_udp"].map(|name| figures["layers"][name].as_u64().expect("a count"));
    assert!(dropped >= 100 && gaps >= dropped, "{dropped} by the kernel: {figures}");
    assert_eq!((socket, proc), (gaps, gaps), "{figures}");
    let law = ["received", "recovered", "lost", "expected"].map(|name| figures["law"][name].as_u64().expect("a count"));
    assert_eq!((law[0] + law[1] + law[2], law[2]), (law[3], gaps), "{figures}");
    assert_eq!(figures["law"]["holds"], true, "{figures}");
    assert!(figures["layers"]["host"].as_object().is_some_and(|host| !host.is_empty()), "the layer of UDP: {figures}");
}
