//! The energy that a host tells of its processors (RAPL), by the kernel's power capping framework.

use crate::files::HostFiles;

/// The counters of all processor packages, and what they have counted.
#[derive(Debug)]
pub struct Energy {
    files: HostFiles,
    packages: Vec<Package>,
}

/// One package's counter, which begins again at zero after its range: on many processors every hour.
#[derive(Debug)]
struct Package {
    /// Its file.
    counter: String,
    /// What it counts to, in microjoules, where the host tells.
    range_uj: Option<u64>,
    /// What it said last.
    last_uj: Option<u64>,
    /// What was counted since the first look.
    total_uj: u64,
}

impl Energy {
    /// The counters of a host: only whole packages, since what lies below them is part of them (`intel-rapl:0:0`), and the platform,
    /// which has a place beside them, contains them.
    pub fn of(files: &HostFiles) -> Energy {
        let zones = files.entries(POWERCAP).into_iter().filter(|zone| zone.starts_with(ZONE));
        Energy { packages: zones.filter_map(|zone| Package::find(files, &zone)).collect(), files: files.clone() }
    }

    /// Joules since the first look; `None` where the host has no counters or does not let this user read them all.
    pub fn read(&mut self) -> Option<f64> {
        let totals: Option<Vec<u64>> = self.packages.iter_mut().map(|package| package.read(&self.files)).collect();
        totals.filter(|totals| !totals.is_empty()).map(|totals| totals.iter().sum::<u64>() as f64 / 1e6)
    }
}

impl Package {
    fn find(files: &HostFiles, zone: &str) -> Option<Package> {
        let folder = format!("{POWERCAP}/{zone}");
        let range_uj = number(files, &format!("{folder}/max_energy_range_uj"));
        let package = Package { counter: format!("{folder}/energy_uj"), range_uj, last_uj: None, total_uj: 0 };
        files.text(format!("{folder}/name"))?.starts_with("package").then_some(package)
    }

    fn read(&mut self, files: &HostFiles) -> Option<u64> {
        let now_uj = number(files, &self.counter)?;
        let last_uj = self.last_uj.replace(now_uj).unwrap_or(now_uj);
        self.total_uj += match now_uj.checked_sub(last_uj) {
            Some(grown) => grown,
            None => self.range_uj?.saturating_sub(last_uj) + now_uj,
        };
        Some(self.total_uj)
    }
}

fn number(files: &HostFiles, path: &str) -> Option<u64> {
    files.text(path)?.trim().parse().ok()
}

const POWERCAP: &str = "sys/class/powercap";
/// The kernel's name for what has such counters, of whichever maker. `intel-rapl-mmio:0` shows the same package again.
const ZONE: &str = "intel-rapl:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Tree;

    /// A tree with one more zone.
    fn with_zone(tree: Tree, zone: &str, name: &str, energy_uj: u64) -> Tree {
        count(&tree, zone, energy_uj);
        let folder = format!("{POWERCAP}/{zone}");
        tree.with(&format!("{folder}/name"), &format!("{name}\n"))
            .with(&format!("{folder}/max_energy_range_uj"), "10000000\n")
    }

    fn count(tree: &Tree, zone: &str, energy_uj: u64) {
        tree.write(&format!("{POWERCAP}/{zone}/energy_uj"), &format!("{energy_uj}\n"));
    }

    #[test]
    fn energy_is_that_of_whole_packages_each_once() {
        let zones = [
            ("intel-rapl:0", "package-0", 2_000_000),
            ("intel-rapl:0:0", "core", 1_000_000),
            ("intel-rapl:1", "package-1", 500_000),
            ("intel-rapl:2", "psys", 4_000_000),
            ("intel-rapl-mmio:0", "package-0", 2_000_000),
        ];
        let tree = zones.iter().fold(Tree::new("packages"), |tree, (zone, name, _)| with_zone(tree, zone, name, 0));
        let mut energy = Energy::of(&tree.files());
        assert_eq!(energy.read(), Some(0.0));
        zones.iter().for_each(|(zone, _, uj)| count(&tree, zone, *uj));
        assert_eq!(energy.read(), Some(2.5));
    }

    #[test]
    fn a_counter_that_began_again_goes_on() {
        let tree = with_zone(Tree::new("wrap"), "intel-rapl:0", "package-0", 9_000_000);
        let mut energy = Energy::of(&tree.files());
        assert_eq!(energy.read(), Some(0.0));
        count(&tree, "intel-rapl:0", 500_000);
        assert_eq!(energy.read(), Some(1.5), "1 J to the end of its range and half a joule after it");
        count(&tree, "intel-rapl:0", 2_500_000);
        assert_eq!(energy.read(), Some(3.5));
    }

    #[test]
    fn a_host_whose_counters_cannot_all_be_read_has_no_energy() {
        assert_eq!(Energy::of(&Tree::new("none").files()).read(), None);
        let tree = with_zone(Tree::new("hidden"), "intel-rapl:0", "package-0", 1);
        let tree = with_zone(tree, "intel-rapl:1", "package-1", 1);
        tree.remove(&format!("{POWERCAP}/intel-rapl:1/energy_uj"));
        assert_eq!(Energy::of(&tree.files()).read(), None);
    }
}
