//! Advice for recorded machines, compared with texts.
//!
//! `THALWEG_ADVICE_WRITE=1` writes the texts anew; a reader of the difference decides whether they are right.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_advisor::{
    AdviceStep, AdvisedStream, Effect, HostAdvice, HostPlaces, NetworkFacts, PlantedProbes, Setting, StreamProfile,
};

use crate::tree::{Tree, advise as advise_video, recorded_probes};

fn folder(machine: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(machine)
}

fn advise(machine: &str, profile: StreamProfile, device: &str) -> HostAdvice {
    let folder = folder(machine);
    let places = HostPlaces::recorded(&folder);
    let answers = fs::read_to_string(folder.join("probes.json")).expect("recorded");
    let mut probes = PlantedProbes::parse(&answers).expect("answers");
    let peer = probes.answers.path.map(|_| "192.0.2.1".parse().expect("an address"));
    let surroundings = NetworkFacts { device: Some(device), peer, link_bits_per_second: None };
    HostAdvice::make(&profile.stream(), &surroundings, (places.files(), places.nics()), &mut probes).expect("advice")
}

#[track_caller]
fn check(machine: &str, profile: StreamProfile, device: &str) -> HostAdvice {
    let advice = advise(machine, profile, device);
    let path = folder(machine).join(format!("advice-{}.txt", profile.name()));
    let text = advice.to_text();
    if std::env::var_os("THALWEG_ADVICE_WRITE").is_some() {
        fs::write(&path, &text).expect("written");
    }
    let expect = fs::read_to_string(&path).expect("a text");
    for (line, (got, wanted)) in text.lines().zip(expect.lines()).enumerate() {
        assert_eq!(got, wanted, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(text, expect, "{}", path.display());
    advice
}

#[track_caller]
pub fn find<'a>(advice: &'a HostAdvice, name: &str) -> &'a Setting {
    advice.settings.iter().find(|setting| setting.name == name).unwrap_or_else(|| panic!("no advice on {name}"))
}

#[test]
fn a_server_with_ten_gigabit_gets_larger_buffers_a_fixed_wait_and_fq() {
    let advice = check("server-10g", StreamProfile::Video, "eno1");
    assert!(
        matches!(&find(&advice, "net.core.rmem_max").step, AdviceStep::Write { value, .. } if value.parse::<u64>().is_ok_and(|value| value > 212_992))
    );
    assert!(matches!(find(&advice, "eno1 adaptive-rx").step, AdviceStep::Write { .. }));
    assert!(matches!(&find(&advice, "eno1 root qdisc").step, AdviceStep::Write { value, .. } if value == "fq"));
    assert!(
        matches!(&find(&advice, "net.ipv4.conf.eno1.rp_filter").step, AdviceStep::Write { value, .. } if value == "2")
    );
    assert!(matches!(&find(&advice, "net.core.netdev_budget").step, AdviceStep::Write { value, .. } if value == "600"));
    check("server-10g", StreamProfile::Telemetry, "eno1");
}

#[test]
fn a_laptop_that_wakes_late_gets_another_governor_and_keeps_its_configured_queue() {
    let advice = check("laptop-powersave", StreamProfile::Telemetry, "enp3s0");
    assert!(
        matches!(&find(&advice, "cpu0 scaling_governor").step, AdviceStep::Write { value, .. } if value == "performance")
    );
    let video = check("laptop-powersave", StreamProfile::Video, "enp3s0");
    assert!(
        matches!(&find(&video, "enp3s0 root qdisc").step, AdviceStep::Refused { reason } if reason.contains("cake"))
    );
    assert!(
        matches!(&find(&video, "net.core.rmem_max").step, AdviceStep::Refused { reason } if reason.contains("bpftune"))
    );
    assert!(video.remarks.iter().any(|remark| remark.contains("bpftune")));
}

#[test]
fn a_container_is_told_what_its_host_has_to_set() {
    let advice = check("container-quota", StreamProfile::Video, "eth0");
    assert_eq!(advice.writes().count(), 0, "nothing can be written there");
    assert!(
        matches!(&find(&advice, "net.core.rmem_max").step, AdviceStep::Refused { reason } if reason.contains("on the host: sysctl -w"))
    );
    assert!(
        matches!(&find(&advice, "eth0 gro_flush_timeout").effect, Effect::NoneHere(reason) if reason.contains("veth"))
    );
    assert!(
        matches!(&find(&advice, "cgroup cpu.max").step, AdviceStep::ByHand { command } if command.contains("5000 10000"))
    );
    assert!(matches!(&find(&advice, "SO_RCVBUF").step, AdviceStep::Refused { reason } if reason.contains("under way")));
}

#[test]
fn no_ring_is_advised_that_the_driver_does_not_have() {
    let tree = Tree::of("server-10g");
    let path = tree.path().join("nic/eno1.json");
    let known = fs::read_to_string(&path).expect("recorded");
    let small = known.replace("\"rx_max\": 4096", "\"rx_max\": 128").replace("\"rx\": 512", "\"rx\": 64");
    assert_ne!(small, known);
    fs::write(&path, small).expect("written");
    let advice = advise_copy(&tree, StreamProfile::Video, "eno1");
    let ring = advice.settings.iter().find(|setting| setting.name.contains("ring")).expect("advice on the ring");
    assert!(matches!(&ring.step, AdviceStep::Write { value, .. } if value == "128"), "{ring:?}");
}

/// What a container with this `cpu.max` is told to do about it.
fn step_of_quota(quota: &str) -> AdviceStep {
    let tree = Tree::of("container-quota");
    fs::write(tree.path().join("sys/fs/cgroup/cpu.max"), quota).expect("written");
    find(&advise_copy(&tree, StreamProfile::Video, "eth0"), "cgroup cpu.max").step.clone()
}

/// Advice for the copy of a machine.
fn advise_copy(tree: &Tree, profile: StreamProfile, device: &str) -> HostAdvice {
    let places = HostPlaces::recorded(tree.path());
    let surroundings = NetworkFacts { device: Some(device), peer: None, link_bits_per_second: None };
    let mut probes = recorded_probes(tree.path());
    HostAdvice::make(&profile.stream(), &surroundings, (places.files(), places.nics()), &mut probes).expect("advice")
}

#[test]
fn a_period_is_advised_only_if_it_is_shorter_and_the_kernel_takes_its_quota() {
    let is_told = |quota: &str, words: &str| {
        let step = step_of_quota(quota);
        assert!(matches!(&step, AdviceStep::ByHand { command } if command.contains(words)), "{quota}: {step:?}");
    };
    is_told("50000 100000\n", "--cpu-period=10000 --cpu-quota=5000");
    is_told("5000 100000\n", "\"1000 20000\"");
    for quota in ["1000 100000\n", "2500 5000\n", "5000 10000\n", "0 100000\n", "1000 1000000\n"] {
        assert_eq!(step_of_quota(quota), AdviceStep::Keep, "{quota}");
    }
}

#[test]
fn ports_that_a_wider_range_reserves_are_not_reserved_again() {
    let tree = Tree::of("server-10g");
    let folder = tree.path().join("proc/sys/net/ipv4");
    fs::write(folder.join("ip_local_port_range"), "1024\t65000\n").expect("written");
    let step = |reserved: &str| {
        fs::write(folder.join("ip_local_reserved_ports"), reserved).expect("written");
        find(&advise_copy(&tree, StreamProfile::Telemetry, "eno1"), "net.ipv4.ip_local_reserved_ports").step.clone()
    };
    for reserved in ["7400-7649\n", "80,7400-7700\n", "7000-8000,9000\n"] {
        assert_eq!(step(reserved), AdviceStep::Keep, "{reserved}");
    }
    for reserved in ["7400\n", "7400-7600,7602-7700\n", "80,7401-7649\n"] {
        let step = step(reserved);
        assert!(matches!(&step, AdviceStep::Write { value, .. } if value.ends_with(",7400-7649")), "{step:?}");
    }
}

#[test]
fn the_queues_of_hardware_that_have_fq_each_keep_it() {
    let tree = Tree::of("server-10g");
    fs::write(tree.path().join("proc/sys/net/core/default_qdisc"), "fq\n").expect("written");
    let advice = advise_copy(&tree, StreamProfile::Video, "eno1");
    assert_eq!(find(&advice, "eno1 root qdisc").step, AdviceStep::Keep);
}

#[test]
fn a_small_board_keeps_what_its_driver_cannot_change() {
    let advice = check("raspberry-pi", StreamProfile::Bulk, "eth0");
    assert!(matches!(&find(&advice, "eth0 feature tx-udp-segmentation").effect, Effect::NoneHere(_)));
    assert!(matches!(&find(&advice, "eth0 rx ring").effect, Effect::NoneHere(_)));
    assert!(matches!(find(&advice, "net.core.rmem_max").step, AdviceStep::Write { .. }));
}

#[test]
fn the_machine_of_the_paper_is_told_what_became_of_its_settings() {
    let advice = check("paper-pci-x", StreamProfile::Paper2006, "eth1");
    assert_eq!(advice.paper.len(), 10);
    assert!(
        matches!(&find(&advice, "eth1 bus reads").step, AdviceStep::ByHand { command } if command.contains("2048"))
    );
    let row = advice.paper.iter().find(|row| row.name == "MMRBC").expect("a row");
    assert_eq!(row.here.as_deref(), Some("512 (PCI-X)"));
}

/// Advice on a bulk stream of 1 GiB samples that so many writers send at once, over the server's link or a slower one.
fn advise_much(root: &Path, writers: u32, link_bits_per_second: Option<u64>) -> HostAdvice {
    let places = HostPlaces::recorded(root);
    let mut probes = recorded_probes(root);
    let surroundings = NetworkFacts { device: Some("eno1"), peer: None, link_bits_per_second };
    let usual = StreamProfile::Bulk.stream();
    let stream = AdvisedStream { rate_hz: 0.5, sample_bytes: 1 << 30, writers, ..usual };
    HostAdvice::make(&stream, &surroundings, (places.files(), places.nics()), &mut probes).expect("advice")
}

#[test]
fn no_more_memory_is_written_than_the_kernel_grants_or_the_host_has() {
    let is_refused = |advice: &HostAdvice, name: &str, words: &str| {
        let step = &find(advice, name).step;
        assert!(matches!(step, AdviceStep::Refused { reason } if reason.contains(words)), "{name}: {step:?}");
    };
    let tree = Tree::of("server-10g");
    // 2.5 GB and more: beyond what a socket gets, whatever memory there is.
    is_refused(&advise_much(tree.path(), 2, None), "net.core.rmem_max", "1 GiB");
    fs::write(tree.path().join("proc/meminfo"), "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n").expect("written");
    let advice = advise_much(tree.path(), 2, None);
    is_refused(&advice, "net.core.rmem_max", "1 GiB");
    is_refused(&advice, "net.ipv4.udp_mem", "a quarter of the 8,192,000,000 B of memory");
    assert!(!advice.writes().any(|(_, place, _)| place.to_string() == "net.ipv4.udp_mem"));
    // What the usual stream needs is written as before.
    let usual = advise_video(tree.path(), &HostPlaces::recorded(tree.path()), &mut recorded_probes(tree.path()));
    assert!(matches!(find(&usual, "net.core.rmem_max").step, AdviceStep::Write { .. }));
}

#[test]
fn a_stream_that_its_link_does_not_carry_is_told() {
    let tree = Tree::of("server-10g");
    let tells = |link: Option<u64>| {
        let advice = advise_much(tree.path(), 1, link);
        advice.remarks.iter().find(|remark| remark.contains("more than the link carries")).cloned()
    };
    assert_eq!(tells(Some(10_000_000_000)), None);
    let remark = tells(Some(1_000_000)).expect("told");
    assert!(remark.contains("1 Mbit/s") && remark.contains("4.29 Gbit/s"), "{remark}");
}
