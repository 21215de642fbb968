//! The energy that a host tells of its processors (RAPL), by the kernel's power capping framework.

use std::fs;
use std::path::{Path, PathBuf};

/// The counters of all processor packages, and what they have counted.
#[derive(Debug)]
pub struct Energy(Vec<Package>);

/// One package's counter, which begins again at zero after its range: on many processors every hour.
#[derive(Debug)]
struct Package {
    counter: PathBuf,
    /// What it counts to, in microjoules, where the host tells.
    range_uj: Option<u64>,
    /// What it said last.
    last_uj: Option<u64>,
    /// What was counted since the first look.
    total_uj: u64,
}

impl Energy {
    /// The counters of this host.
    pub fn of_host() -> Energy {
        Energy::of_folder(Path::new(POWERCAP))
    }

    /// Only whole packages: what lies below them is part of them (`intel-rapl:0:0`), and the platform, which has a place
    /// beside them, contains them.
    fn of_folder(folder: &Path) -> Energy {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let zones = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(ZONE));
        let mut packages: Vec<Package> = zones.filter_map(|zone| Package::of_zone(&zone.path())).collect();
        packages.sort_by(|one, other| one.counter.cmp(&other.counter));
        Energy(packages)
    }

    /// Joules since the first look; `None` where the host has no counters or does not let this user read them all.
    pub fn read(&mut self) -> Option<f64> {
        let totals: Option<Vec<u64>> = self.0.iter_mut().map(Package::read).collect();
        totals.filter(|totals| !totals.is_empty()).map(|totals| totals.iter().sum::<u64>() as f64 / 1e6)
    }
}

impl Package {
    fn of_zone(zone: &Path) -> Option<Package> {
        let name = fs::read_to_string(zone.join("name")).ok()?;
        let range_uj = number(&zone.join("max_energy_range_uj"));
        let package = Package { counter: zone.join("energy_uj"), range_uj, last_uj: None, total_uj: 0 };
        name.starts_with("package").then_some(package)
    }

    fn read(&mut self) -> Option<u64> {
        let now_uj = number(&self.counter)?;
        let last_uj = self.last_uj.replace(now_uj).unwrap_or(now_uj);
        self.total_uj += match now_uj.checked_sub(last_uj) {
            Some(grown) => grown,
            None => self.range_uj?.saturating_sub(last_uj) + now_uj,
        };
        Some(self.total_uj)
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

const POWERCAP: &str = "/sys/class/powercap";
/// The kernel's name for what has such counters, of whichever maker. `intel-rapl-mmio:0` shows the same package again.
const ZONE: &str = "intel-rapl:";

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up `/sys/class/powercap`.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Tree {
            let folder = std::env::temp_dir().join(format!("thalweg-powercap-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("made");
            Tree(folder)
        }

        fn zone(self, zone: &str, name: &str, energy_uj: u64) -> Tree {
            fs::create_dir_all(self.0.join(zone)).expect("made");
            fs::write(self.0.join(zone).join("name"), format!("{name}\n")).expect("written");
            fs::write(self.0.join(zone).join("max_energy_range_uj"), "10000000\n").expect("written");
            self.count(zone, energy_uj);
            self
        }

        fn count(&self, zone: &str, energy_uj: u64) {
            fs::write(self.0.join(zone).join("energy_uj"), format!("{energy_uj}\n")).expect("written");
        }

        fn energy(&self) -> Energy {
            Energy::of_folder(&self.0)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn energy_is_that_of_whole_packages_each_once() {
        let tree = Tree::new("packages")
            .zone("intel-rapl:0", "package-0", 0)
            .zone("intel-rapl:0:0", "core", 0)
            .zone("intel-rapl:1", "package-1", 0)
            .zone("intel-rapl:2", "psys", 0)
            .zone("intel-rapl-mmio:0", "package-0", 0);
        let mut energy = tree.energy();
        assert_eq!(energy.read(), Some(0.0));
        let zones = ["intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "intel-rapl:2", "intel-rapl-mmio:0"];
        zones
            .iter()
            .zip([2_000_000, 1_000_000, 500_000, 4_000_000, 2_000_000])
            .for_each(|(zone, uj)| tree.count(zone, uj));
        assert_eq!(energy.read(), Some(2.5));
    }

    #[test]
    fn a_counter_that_began_again_goes_on() {
        let tree = Tree::new("wrap").zone("intel-rapl:0", "package-0", 9_000_000);
        let mut energy = tree.energy();
        assert_eq!(energy.read(), Some(0.0));
        tree.count("intel-rapl:0", 500_000);
        assert_eq!(energy.read(), Some(1.5), "1 J to the end of its range and half a joule after it");
        tree.count("intel-rapl:0", 2_500_000);
        assert_eq!(energy.read(), Some(3.5));
    }

    #[test]
    fn a_host_whose_counters_cannot_all_be_read_has_no_energy() {
        assert_eq!(Tree::new("none").energy().read(), None);
        let tree = Tree::new("hidden").zone("intel-rapl:0", "package-0", 1).zone("intel-rapl:1", "package-1", 1);
        fs::remove_file(tree.0.join("intel-rapl:1").join("energy_uj")).expect("removed");
        assert_eq!(tree.energy().read(), None);
    }
}
