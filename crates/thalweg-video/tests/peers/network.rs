//! The loopback interface of these tests: ports, who listens at them, and what the kernel dropped there.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use thalweg_testing::program::PATIENCE;

/// The first of four ports that no other test uses; an even one.
pub fn ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    NEXT.fetch_add(4, Ordering::Relaxed)
}

/// Waits until somebody listens at a port of UDP.
#[track_caller]
pub fn wait_for_listener(port: u16) {
    wait("a listener", || !rows(port).is_empty());
}

/// Datagrams that found no room at the sockets of a port so far.
pub fn dropped(port: u16) -> u64 {
    rows(port).iter().filter_map(|row| row.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// Waits until a file has this many octets; returns whether it came to that.
pub fn file_fills(path: &Path, octets: u64, patience: Duration) -> bool {
    wait_until(patience, || fs::metadata(path).is_ok_and(|file| file.len() >= octets))
}

#[track_caller]
fn wait(what: &str, fits: impl FnMut() -> bool) {
    assert!(wait_until(PATIENCE, fits), "no {what} within {PATIENCE:?}");
}

fn wait_until(patience: Duration, mut fits: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while !fits() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The kernel's rows of the sockets that are bound to a port, over IPv4 and IPv6.
fn rows(port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let is_bound = |row: &&str| row.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&suffix));
    let tables = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"]
        .map(|table| fs::read_to_string(table).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines()).filter(is_bound).map(str::to_owned).collect()
}
