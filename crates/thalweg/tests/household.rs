//! Participants of one process cost little each, and nothing while nothing happens. Alone in its process, which is what is measured.

use std::time::{Duration, Instant};

use thalweg::DomainParticipant;
use thalweg_host::ProcessUsage;

const PATIENCE: Duration = Duration::from_secs(60);
/// Of which the second half is weighed.
const PARTICIPANTS: usize = 60;

/// Waits until each knows all others.
fn meet(crowd: &[DomainParticipant]) {
    let start = Instant::now();
    while crowd.iter().any(|participant| participant.discovered_participants().len() + 1 < crowd.len()) {
        assert!(start.elapsed() < PATIENCE, "they do not meet");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn one_more_participant_of_a_process_costs_little_memory_and_wakes_nobody() {
    let domain = 1 + std::process::id().wrapping_mul(31) % 230;
    let participant = |_| DomainParticipant::builder(domain).loopback_only().create().unwrap();
    let mut crowd: Vec<DomainParticipant> = (0..PARTICIPANTS / 2).map(participant).collect();
    meet(&crowd);
    let half = ProcessUsage::read().resident_kib;
    crowd.extend((PARTICIPANTS / 2..PARTICIPANTS).map(participant));
    meet(&crowd);
    let grown = ProcessUsage::read().resident_kib.saturating_sub(half);
    let each = grown as f64 * 1.024e-3 / (PARTICIPANTS / 2) as f64;
    assert!(each < 1.0, "{each:.2} MB for each");
    // The first announcements are repeated, until all know that all know.
    std::thread::sleep(Duration::from_secs(6));
    let (start, before) = (Instant::now(), ProcessUsage::read().sleeps());
    std::thread::sleep(Duration::from_secs(6));
    let sleeps = (ProcessUsage::read().sleeps() - before) as f64;
    let rate = sleeps / PARTICIPANTS as f64 / start.elapsed().as_secs_f64();
    assert!(rate < 2.0, "{rate:.2} wake-ups a second of each");
    meet(&crowd);
}
