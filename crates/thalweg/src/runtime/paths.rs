//! Measures how large packets may be on the paths to the other participants, and tells the state machine.

use std::collections::BTreeSet;
use std::time::Duration;

use thalweg_rtps::participant::Participant;
use thalweg_rtps::shared::Shared;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::{GuidPrefix, Locator};
use thalweg_transport::clock;
use thalweg_transport::udp::Sender;

/// The paths to measure, and when all were measured last.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Participants whose addresses were chosen; the number of known participants bounds them.
    chosen: BTreeSet<GuidPrefix>,
    /// All paths are to be measured.
    all: bool,
    all_measured: Instant,
    /// The shortest time to the next measurement of all paths.
    pause: Duration,
}

/// The shortest time between two measurements of all paths that find something new.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest such time, reached while measurements find nothing new: neither forged ICMP nor a path narrower than any datagram
/// keeps the I/O thread busy.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Age of the measurements from which on all paths are measured anew at the next occasion: the kernel forgets the reports of
/// routers after ten minutes (`net.ipv4.route.mtu_expires`), and a route may have become wider.
const VALID: Duration = Duration::from_secs(60);

impl Paths {
    /// Notes that the addresses of a participant were chosen.
    pub(super) fn note_chosen(&mut self, prefix: GuidPrefix) {
        self.chosen.insert(prefix);
    }

    /// Notes that a datagram was too large for its path, or that the interfaces have changed.
    pub(super) fn note_news(&mut self) {
        self.all = true;
    }

    /// When [`Paths::measure`] has something to do; it may be called at any time.
    pub(super) fn due(&self) -> Instant {
        match (self.chosen.is_empty(), self.all) {
            (false, _) => Instant::ZERO,
            (true, true) => self.all_measured + self.pause,
            (true, false) => Instant::NEVER,
        }
    }

    /// Measures due paths; true when a size changed.
    pub(super) fn measure(&mut self, now: Instant, participant: &Shared<Participant>, sender: &Sender) -> bool {
        let all = if self.all { self.due() <= now } else { now.since(self.all_measured) > VALID };
        if !all && self.chosen.is_empty() {
            return false;
        }
        let chosen = std::mem::take(&mut self.chosen);
        if all {
            (self.all, self.all_measured) = (false, now);
        }
        let asked: Vec<(GuidPrefix, Vec<Locator>)> = {
            let participant = participant.lock();
            let paths = participant.paths().filter(|(prefix, _)| all || chosen.contains(prefix));
            paths.map(|(prefix, locators)| (prefix, locators.to_vec())).collect()
        };
        // The kernel is asked for routes without the lock.
        let measured: Vec<(GuidPrefix, u32)> =
            asked.iter().filter_map(|(prefix, locators)| Some((*prefix, narrowest(sender, locators)?))).collect();
        let mut participant = participant.lock();
        let mut changed = false;
        for (prefix, mtu) in measured {
            changed |= participant.set_path_mtu(clock::now(), prefix, mtu);
        }
        if all {
            self.pause = if changed { PAUSE_MIN } else { (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) };
        }
        changed
    }
}

/// The smallest MTU of the paths to `locators`; `None` when there is no path.
fn narrowest(sender: &Sender, locators: &[Locator]) -> Option<u32> {
    let addresses = locators.iter().filter_map(Locator::socket_address);
    addresses.filter_map(|address| sender.path_mtu(address).ok()).min()
}
