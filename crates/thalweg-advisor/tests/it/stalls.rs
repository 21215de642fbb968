//! The computed receive buffer against planted stalls: large enough, and not by much.
//!
//! A paced stream runs over loopback, or from one network namespace to another by a veth pair; its receiver stops reading for a known
//! time. The kernel counts what the full buffer refused.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_advisor::{AdvisedStream, BATCH_DATAGRAMS, FiveNumbers, LiveProbes, Measured, Probes, StreamProfile};
use thalweg_host::{Namespace, may_make_namespaces, request_exact_timers};
use thalweg_transport::tuning::{force_receive_buffer, receive_buffer, set_receive_buffer, socket_memory};

const TRIALS: u32 = 20;
const MTU_BYTES: u32 = 9000;
/// Disturbed stalls that are repeated.
const TRIES_MAX: u32 = 50;

/// The stream of the test: 21,579 datagrams a second of 7,226 bytes.
fn stream() -> AdvisedStream {
    StreamProfile::Video.stream()
}

fn payload_bytes() -> usize {
    usize::try_from(stream().datagrams(MTU_BYTES).payload_bytes).expect("fits")
}

/// The buffer to ask for, as the advisor computes it for a measured charge and this stall.
fn ask(stall: Duration, charge_bytes: u64) -> usize {
    let measured = Measured {
        mtu_bytes: MTU_BYTES,
        charge_bytes,
        stall,
        link_bits_per_second: None,
        round_trip: Duration::from_millis(1),
        packet_cost: None,
        fragment_time_s: 30,
    };
    usize::try_from(FiveNumbers::compute(&stream(), &measured).receive_buffer_ask()).expect("fits")
}

/// Sends the stream until it is told to stop or two minutes have passed.
fn send(to: SocketAddr, goes_on: &AtomicBool) {
    request_exact_timers();
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("bound");
    let payload = vec![0; payload_bytes()];
    let started = Instant::now();
    let period = Duration::from_secs_f64(BATCH_DATAGRAMS as f64 / stream().packets_per_second(MTU_BYTES));
    let mut due = started;
    while goes_on.load(Ordering::Relaxed) && started.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for _ in 0..BATCH_DATAGRAMS {
            // Nobody may listen yet.
            let _ = socket.send_to(&payload, to);
        }
        due += period;
    }
}

/// What came of one stall.
struct Stalled {
    /// Datagrams that the full buffer refused, until it was empty again.
    refused: u32,
    /// The time for which the socket really was not read.
    stood: Duration,
    /// The longest time for which this machine kept the reader from running while it should have read.
    kept_away: Duration,
}

/// Reads for `time`; the longest time that one read took, which waits for 1 ms at most.
fn read_for(socket: &UdpSocket, time: Duration) -> Duration {
    let mut buffer = vec![0; payload_bytes()];
    let (started, mut longest, mut received) = (Instant::now(), Duration::ZERO, 0);
    while started.elapsed() < time {
        let began = Instant::now();
        received += u32::from(socket.recv(&mut buffer).is_ok());
        longest = longest.max(began.elapsed());
    }
    assert!(received > 0, "the stream runs");
    longest
}

/// One stall with this buffer; `None` where this user does not get it.
fn stalled(address: SocketAddr, buffer_bytes: usize, stall: Duration) -> Option<Stalled> {
    let socket = UdpSocket::bind(address).expect("bound");
    if force_receive_buffer(&socket, buffer_bytes).is_err() {
        set_receive_buffer(&socket, buffer_bytes).expect("asked");
    }
    if receive_buffer(&socket).expect("told") < buffer_bytes {
        return None;
    }
    socket.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
    let before = read_for(&socket, Duration::from_millis(60));
    let refused = socket_memory(&socket).expect("told").refused;
    let stopped = Instant::now();
    std::thread::sleep(stall);
    let stood = stopped.elapsed();
    // What waited is read, and the stream read on: losses of that time count.
    let after = read_for(&socket, Duration::from_millis(40));
    let refused = socket_memory(&socket).expect("told").refused - refused;
    Some(Stalled { refused, stood, kept_away: before.max(after) })
}

/// Trials in which nothing was lost with the whole buffer, and in which something was with half of it.
fn judge(address: SocketAddr, charge_bytes: u64) -> Option<(u32, u32)> {
    let (mut enough, mut lossy) = (0, 0);
    for trial in 0..TRIALS {
        // 40 to 135 ms, as compilers cause them.
        let stall = Duration::from_millis(40 + 5 * u64::from(trial));
        let whole = ask(stall, charge_bytes);
        // Stalls that were planted: one of the machine's own on top is another experiment, whatever came of it.
        let of = |bytes| {
            (0..TRIES_MAX).find_map(|_| match stalled(address, bytes, stall) {
                Some(one) if one.stood > stall.mul_f64(1.1) || one.kept_away > stall / 5 => None,
                result => Some(result),
            })
        };
        enough += u32::from(of(whole)??.refused == 0);
        lossy += u32::from(of(whole / 2)??.refused > 0);
    }
    println!("{enough} of {TRIALS} stalls without loss, {lossy} of {TRIALS} with loss at half the buffer");
    Some((enough, lossy))
}

fn charge_bytes() -> u64 {
    let mut probes = LiveProbes { watching: Duration::from_millis(1) };
    probes.charge(payload_bytes() as u64).expect("measured").charged_bytes
}

/// Takes a quarter of a minute of a quiet machine.
#[test]
#[ignore = "measures: run it alone on a quiet machine, by name"]
fn the_computed_buffer_holds_over_planted_stalls_and_half_of_it_does_not() {
    let probe = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let address = probe.local_addr().expect("told");
    drop(probe);
    let goes_on = AtomicBool::new(true);
    let judged = std::thread::scope(|scope| {
        scope.spawn(|| send(address, &goes_on));
        let judged = std::panic::catch_unwind(|| judge(address, charge_bytes()));
        goes_on.store(false, Ordering::Relaxed);
        judged.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let (enough, lossy) = judged.expect("the buffer is granted and the machine is quiet: run it as root, and alone");
    assert!(enough == TRIALS && lossy >= 15, "{enough} without loss, {lossy} with loss at half");
}

#[test]
fn one_end_of_a_veth_pair() {
    let Ok(address) = std::env::var("THALWEG_STALL_ADDRESS") else { return };
    let address: SocketAddr = address.parse().expect("an address");
    if std::env::var_os("THALWEG_STALL_SENDS").is_some() {
        return send(address, &AtomicBool::new(true));
    }
    let (enough, lossy) = judge(address, charge_bytes()).expect("the buffer is granted and the machine is quiet");
    assert!(enough == TRIALS && lossy >= 15, "{enough} without loss, {lossy} with loss at half");
}

/// A child that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "measures: run it alone on a quiet machine, as root, by name"]
fn the_computed_buffer_holds_over_a_veth_pair_too() {
    assert!(may_make_namespaces(), "network namespaces need root");
    let (near, far) = (Namespace::new("stall-a").expect("made"), Namespace::new("stall-b").expect("made"));
    near.link(&format!("add stall0 mtu 9000 type veth peer name stall1 mtu 9000 netns {}", far.name())).expect("made");
    for (side, device, address) in [(&near, "stall0", "10.77.3.1/24"), (&far, "stall1", "10.77.3.2/24")] {
        side.ip(&format!("addr add {address} dev {device}")).expect("set");
        side.link(&format!("set {device} up")).expect("set");
    }
    let child = |side: &Namespace| {
        let mut command = side.command(std::env::current_exe().expect("this program"));
        command.args(["--exact", "stalls::one_end_of_a_veth_pair", "--nocapture"]);
        command.env("THALWEG_STALL_ADDRESS", "10.77.3.2:7777").stdout(Stdio::inherit());
        command
    };
    let mut sender = child(&near);
    // It is killed within its test: what it prints would look like a binary that did not come to its end.
    let sender = sender.env("THALWEG_STALL_SENDS", "1").stdout(Stdio::null());
    let _sender = Ended(sender.spawn().expect("started"));
    assert!(child(&far).status().expect("started").success());
}
