//! What rules say where they apply, on recorded machines that are changed for them.

use std::time::Duration;

use thalweg_advisor::{
    AdviceStep, AdvisedStream, Effect, HostAdvice, HostPlaces, NetworkFacts, PacingEffect, PacketCost, PathMtu,
    PlantedProbes, Setting, SettingPlace, SettingPlaces, StreamNetwork, StreamProfile, StreamVerification,
};

use crate::machines::find;
use crate::tree::{Tree, recorded_probes};

/// Advice for a changed copy of a machine, with its own answers.
fn advise(tree: &Tree, stream: &AdvisedStream, device: &str) -> HostAdvice {
    advise_with(tree, stream, device, (recorded_probes(tree.path()), "192.0.2.1"))
}

fn advise_with(
    tree: &Tree,
    stream: &AdvisedStream,
    device: &str,
    (mut probes, peer): (PlantedProbes, &str),
) -> HostAdvice {
    let places = HostPlaces::recorded(tree.path());
    let peer = Some(peer.parse().expect("an address"));
    let facts = NetworkFacts { device: Some(device), peer, link_bits_per_second: None };
    HostAdvice::make(stream, &facts, (places.files(), places.nics()), &mut probes).expect("advice")
}

#[track_caller]
fn check_written(setting: &Setting, expect: &str) {
    assert!(matches!(&setting.step, AdviceStep::Write { value, .. } if value == expect), "{setting:?}");
}

#[track_caller]
fn check_by_hand(setting: &Setting, words: &str) {
    assert!(matches!(&setting.step, AdviceStep::ByHand { command } if command.contains(words)), "{setting:?}");
}

#[track_caller]
fn check_kept(setting: &Setting) {
    assert_eq!(setting.step, AdviceStep::Keep, "{setting:?}");
}

/// Ten writers whose large datagrams are cut by IP.
fn cut(writers: u32) -> AdvisedStream {
    AdvisedStream { writers, datagram_bytes: Some(65_000), rate_hz: 10.0, ..StreamProfile::Bulk.stream() }
}

#[test]
fn every_setting_that_is_read_has_a_rule() {
    const LOOKED_AT: [&str; 4] =
        ["kernel.osrelease", "net.core.default_qdisc", "net.ipv4.conf.all.rp_filter", "net.ipv4.ip_local_port_range"];
    const SIXTH: [&str; 3] = ["ip6frag_high_thresh", "ip6frag_low_thresh", "ip6frag_time"];
    let tree = Tree::of("laptop-powersave");
    for name in ["net/core/busy_read", "net/core/netdev_budget_usecs", "net/core/rps_sock_flow_entries"] {
        tree.set(&format!("proc/sys/{name}"), "0");
    }
    tree.set("proc/sys/net/ipv4/ipfrag_max_dist", "64");
    SIXTH.iter().for_each(|name| tree.set(&format!("proc/sys/net/ipv6/{name}"), "60"));
    let of = |peer| advise_with(&tree, &StreamProfile::Video.stream(), "enp3s0", (recorded_probes(tree.path()), peer));
    let (fourth, sixth) = (of("192.0.2.1"), of("2001:db8::1"));
    let has_rule = |name: &str| fourth.settings.iter().chain(&sixth.settings).any(|setting| setting.name == name);
    for name in fourth.system.settings.keys().filter(|name| !LOOKED_AT.contains(&name.as_str())) {
        assert!(has_rule(name), "{name} is read, and no rule looks at it");
    }
    for name in ["core.busy_read", "core.netdev_budget_usecs", "core.rps_sock_flow_entries", "ipv4.ipfrag_max_dist"] {
        assert!(fourth.system.settings.contains_key(&format!("net.{name}")), "{name}");
    }
    for name in SIXTH {
        assert!(has_rule(&format!("net.ipv6.{name}")), "{name}");
    }
}

#[test]
fn polling_gets_the_time_that_its_packets_take() {
    const NAME: &str = "net.core.netdev_budget_usecs";
    const PATH: &str = "proc/sys/net/core/netdev_budget_usecs";
    let tree = Tree::of("server-10g");
    let stream = StreamProfile::Video.stream();
    check_kept(find(&advise(&tree, &stream, "eno1"), NAME));
    tree.set(PATH, "1000");
    // 2 · 600 · 1.4 µs.
    check_written(find(&advise(&tree, &stream, "eno1"), NAME), "1680");
    let mut probes = recorded_probes(tree.path());
    probes.answers.packet_cost = Some(PacketCost { each: Duration::from_micros(50), datagrams: 100 });
    check_written(find(&advise_with(&tree, &stream, "eno1", (probes, "192.0.2.1")), NAME), "20000");
    // The laptop's budget was never exhausted.
    let tree = Tree::of("laptop-powersave");
    tree.set(PATH, "1000");
    check_kept(find(&advise(&tree, &stream, "enp3s0"), NAME));
}

#[test]
fn polling_by_every_socket_of_the_host_is_no_ones_wish() {
    let tree = Tree::of("server-10g");
    let step = |name: &str| find(&advise(&tree, &StreamProfile::Video.stream(), "eno1"), name).clone();
    for name in ["busy_read", "busy_poll"] {
        check_kept(&step(&format!("net.core.{name}")));
        tree.set(&format!("proc/sys/net/core/{name}"), "50");
        check_by_hand(&step(&format!("net.core.{name}")), &format!("sysctl -w net.core.{name}=0"));
    }
}

/// Telemetry that takes more than 70 % of one of the laptop's processors.
fn heavy() -> AdvisedStream {
    AdvisedStream { rate_hz: 25_000.0, ..StreamProfile::Telemetry.stream() }
}

#[test]
fn packets_are_spread_over_the_processors_that_are_switched_on() {
    const QUEUE: &str = "enp3s0 queues/rx-0/rps_cpus";
    let tree = Tree::of("laptop-powersave");
    check_kept(find(&advise(&tree, &StreamProfile::Telemetry.stream(), "enp3s0"), QUEUE));
    check_written(find(&advise(&tree, &heavy(), "enp3s0"), QUEUE), "f");
    tree.set("sys/devices/system/cpu/cpu1/online", "0");
    check_written(find(&advise(&tree, &heavy(), "enp3s0"), QUEUE), "d");
    tree.set("sys/class/net/enp3s0/queues/rx-0/rps_cpus", "1");
    check_kept(find(&advise(&tree, &heavy(), "enp3s0"), QUEUE));
}

#[test]
fn flows_follow_their_readers_where_packets_are_spread() {
    const QUEUE: &str = "enp3s0 queues/rx-0/rps_flow_cnt";
    const HOST: &str = "net.core.rps_sock_flow_entries";
    let tree = Tree::of("laptop-powersave");
    tree.set("sys/class/net/enp3s0/queues/rx-0/rps_flow_cnt", "0");
    tree.set("proc/sys/net/core/rps_sock_flow_entries", "0");
    let light = advise(&tree, &StreamProfile::Telemetry.stream(), "enp3s0");
    let loaded = advise(&tree, &heavy(), "enp3s0");
    for name in [QUEUE, HOST] {
        check_kept(find(&light, name));
        check_written(find(&loaded, name), "32768");
    }
    tree.set("sys/class/net/enp3s0/queues/rx-0/rps_flow_cnt", "65536");
    tree.set("proc/sys/net/core/rps_sock_flow_entries", "65536");
    let wide = advise(&tree, &heavy(), "enp3s0");
    [QUEUE, HOST].iter().for_each(|name| check_kept(find(&wide, name)));
}

#[test]
fn fragments_of_many_writers_may_come_in_any_order() {
    const NAME: &str = "net.ipv4.ipfrag_max_dist";
    let tree = Tree::of("server-10g");
    tree.set("proc/sys/net/ipv4/ipfrag_max_dist", "64");
    // Eight fragments a datagram at an MTU of 9,000.
    check_by_hand(find(&advise(&tree, &cut(10), "eno1"), NAME), "net.ipv4.ipfrag_max_dist=0");
    check_kept(find(&advise(&tree, &cut(9), "eno1"), NAME));
    let whole = advise(&tree, &StreamProfile::Bulk.stream(), "eno1");
    assert!(matches!(find(&whole, NAME).effect, Effect::NoneHere(_)));
    tree.set("proc/sys/net/ipv4/ipfrag_max_dist", "0");
    check_kept(find(&advise(&tree, &cut(10), "eno1"), NAME));
}

#[test]
fn a_stream_to_a_peer_of_the_sixth_version_of_ip_is_reckoned_with_its_headers_and_settings() {
    let tree = Tree::of("server-10g");
    for (name, value) in [("high_thresh", "4194304"), ("low_thresh", "3145728"), ("time", "60")] {
        tree.set(&format!("proc/sys/net/ipv6/ip6frag_{name}"), value);
    }
    let of = |stream: &AdvisedStream, peer| advise_with(&tree, stream, "eno1", (recorded_probes(tree.path()), peer));
    let payload = |advice: &HostAdvice| advice.stream.datagrams(advice.mtu_bytes).payload_bytes;
    let bulk = StreamProfile::Bulk.stream();
    let (fourth, sixth) = (of(&bulk, "192.0.2.1"), of(&bulk, "2001:db8::1"));
    assert_eq!((fourth.stream.network, payload(&fourth)), (StreamNetwork::V4, 8972));
    assert_eq!((sixth.stream.network, payload(&sixth)), (StreamNetwork::V6, 8952));
    let (fourth, sixth) = (of(&cut(10), "192.0.2.1"), of(&cut(10), "2001:db8::1"));
    check_written(find(&sixth, "net.ipv6.ip6frag_time"), "1");
    assert!(matches!(find(&sixth, "net.ipv6.ip6frag_high_thresh").step, AdviceStep::Write { .. }));
    assert!(sixth.numbers.fragment_memory.why.contains("· 60 s ·"), "{}", sixth.numbers.fragment_memory.why);
    assert!(fourth.numbers.fragment_memory.why.contains("· 30 s ·"), "{}", fourth.numbers.fragment_memory.why);
    assert!(!sixth.settings.iter().any(|setting| setting.name.starts_with("net.ipv4.ipfrag")));
    assert!(!fourth.settings.iter().any(|setting| setting.name.starts_with("net.ipv6")));
    const FILTER: &str = "net.ipv4.conf.eno1.rp_filter";
    check_written(find(&fourth, FILTER), "2");
    check_kept(find(&sixth, FILTER));
}

#[test]
fn deep_idle_states_are_left_alone_until_threads_wake_late() {
    let tree = Tree::of("laptop-powersave");
    let telemetry = || advise(&tree, &StreamProfile::Telemetry.stream(), "enp3s0");
    assert!(matches!(find(&telemetry(), "idle state").effect, Effect::NoneHere(_)));
    let state = |number: u32, name: &str, exit_us: u32| {
        let folder = format!("sys/devices/system/cpu/cpu0/cpuidle/state{number}");
        tree.set(&format!("{folder}/name"), name);
        tree.set(&format!("{folder}/latency"), &exit_us.to_string());
    };
    state(1, "C1", 2);
    check_kept(find(&telemetry(), "idle state"));
    state(2, "C6", 133);
    let advice = telemetry();
    let idle = find(&advice, "idle state");
    check_by_hand(idle, "/dev/cpu_dma_latency");
    assert_eq!(idle.now.as_deref(), Some("C6, 133 µs to leave"));
    // 900 µs are less than a tenth of two frames.
    check_kept(find(&advise(&tree, &StreamProfile::Video.stream(), "enp3s0"), "idle state"));
}

#[test]
fn readers_and_interrupts_are_kept_apart_and_near() {
    const NAME: &str = "eno1 interrupts";
    let tree = Tree::of("server-10g");
    let said = || find(&advise(&tree, &StreamProfile::Video.stream(), "eno1"), NAME).clone();
    assert!(matches!(said().effect, Effect::Unknown(_)));
    for irq in [40, 41] {
        tree.set(&format!("sys/class/net/eno1/device/msi_irqs/{irq}"), "msix");
        tree.set(&format!("proc/irq/{irq}/smp_affinity_list"), "2");
    }
    check_by_hand(&said(), "taskset -c 0-1,3-15 COMMAND");
    for cpu in 0..16 {
        let list = if cpu < 4 { "0-3" } else { "4-15" };
        tree.set(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list"), list);
    }
    check_by_hand(&said(), "taskset -c 0-1,3 COMMAND");
    assert_eq!(said().now.as_deref(), Some("2 on processors 2"));
    tree.set("proc/irq/41/smp_affinity_list", "5");
    check_kept(&said());
    tree.set("proc/self/status", "Cpus_allowed_list:\t5");
    check_by_hand(&said(), "for irq in 41; do echo 4,6-15 > /proc/irq/$irq/smp_affinity_list");
    tree.set("proc/self/status", "Cpus_allowed_list:\t7");
    check_kept(&said());
}

#[test]
fn the_class_of_datagrams_is_that_of_the_kind_of_stream() {
    let tree = Tree::of("server-10g");
    let said = |profile: StreamProfile, device| find(&advise(&tree, &profile.stream(), device), "DSCP").clone();
    check_by_hand(&said(StreamProfile::Video, "eno1"), "thalweg video send --dscp 34");
    check_by_hand(&said(StreamProfile::Telemetry, "eno1"), "transport_priority=46");
    check_by_hand(&said(StreamProfile::Bulk, "eno1"), "transport_priority=8");
    check_kept(&said(StreamProfile::Video, "lo"));
}

#[test]
fn memory_is_not_moved_about_for_a_reader_that_stands_still_too_long() {
    const PATH: &str = "sys/kernel/mm/transparent_hugepage/defrag";
    let said = |machine: &str, device: &str, text: &str| {
        let tree = Tree::of(machine);
        tree.set(PATH, text);
        find(&advise(&tree, &StreamProfile::Video.stream(), device), "transparent_hugepage/defrag").clone()
    };
    check_by_hand(&said("container-quota", "eth0", "[always] defer madvise never"), "echo madvise");
    check_kept(&said("container-quota", "eth0", "always defer [madvise] never"));
    check_kept(&said("server-10g", "eno1", "[always] defer madvise never"));
}

#[test]
fn a_buffer_leaves_the_memory_of_its_control_group_to_the_programs() {
    let tree = Tree::of("container-quota");
    let said = |bytes: u64, name: &str| {
        tree.set("sys/fs/cgroup/memory.max", &bytes.to_string());
        find(&advise(&tree, &StreamProfile::Video.stream(), "eth0"), name).step.clone()
    };
    let is_told = |step: &AdviceStep| matches!(step, AdviceStep::Refused { reason } if reason.contains("67,108,864 B that the control groups"));
    for name in ["SO_RCVBUF", "net.core.rmem_max"] {
        // 19 MB of buffer are more than a quarter of 64 MiB, and less than one of 128 MiB.
        let (small, large) = (said(64 << 20, name), said(128 << 20, name));
        assert!(is_told(&small) && !is_told(&large), "{name}: {small:?} {large:?}");
    }
}

#[test]
fn the_path_of_datagrams_that_are_cut_carries_their_fragments() {
    let tree = Tree::of("server-10g");
    let is_met = |stream: &AdvisedStream, bytes: u32| {
        let mut probes = recorded_probes(tree.path());
        let round_trip = Some(Duration::from_micros(85));
        probes.answers.path = Some(PathMtu { bytes, is_confirmed: true, round_trip });
        let advice = advise_with(&tree, stream, "eno1", (probes, "192.0.2.1"));
        StreamVerification::of(&advice).checks.iter().find(|check| check.name == "path").expect("a check").is_met
    };
    assert_eq!(is_met(&cut(1), 1500), Some(true));
    assert_eq!(is_met(&cut(1), 9000), Some(true));
    assert_eq!(is_met(&StreamProfile::Bulk.stream(), 1500), Some(true));
}

#[test]
fn a_queue_that_is_longer_than_any_advice_is_not_shortened() {
    const NAME: &str = "eno1 tx_queue_len";
    const PATH: &str = "sys/class/net/eno1/tx_queue_len";
    let tree = Tree::of("server-10g");
    tree.set("proc/net/dev", "Inter-| Receive\n face |bytes\n  eno1: 9 9 0 0 0 0 0 0 9 9 0 7 0 0 0 0");
    // 118 datagrams of each.
    let stream = AdvisedStream { writers: 200, ..StreamProfile::Bulk.stream() };
    tree.set(PATH, "5000");
    check_written(find(&advise(&tree, &stream, "eno1"), NAME), "10000");
    for longer in ["10000", "20000"] {
        tree.set(PATH, longer);
        check_kept(find(&advise(&tree, &stream, "eno1"), NAME));
    }
}

#[test]
fn the_queue_of_an_interface_is_judged_only_where_a_peer_is_behind_it() {
    let tree = Tree::of("server-10g");
    let mut places = HostPlaces::recorded(tree.path());
    places.write(&SettingPlace::RootQueue { device: "eno1".to_owned() }, Some("fq")).expect("changed");
    let mut probes = recorded_probes(tree.path());
    let seen_bytes_per_second = 310_000_000;
    probes.answers.pacing = Some(PacingEffect { asked_bytes_per_second: 1_000_000, seen_bytes_per_second });
    let mut effect = |device, peer: Option<&str>| {
        let peer = peer.map(|peer| peer.parse().expect("an address"));
        let facts = NetworkFacts { device: Some(device), peer, link_bits_per_second: None };
        let stream = StreamProfile::Video.stream();
        let advice = HostAdvice::make(&stream, &facts, (places.files(), places.nics()), &mut probes).expect("advice");
        find(&advice, "SO_MAX_PACING_RATE").effect.clone()
    };
    assert_eq!(effect("eno1", None), Effect::Unknown("give --peer to try the queue of eno1".to_owned()));
    let is_judged = |effect: Effect| matches!(effect, Effect::NoneHere(reason) if reason.contains("no fq queue"));
    assert!(is_judged(effect("eno1", Some("192.0.2.1"))));
    assert!(is_judged(effect("lo", None)));
}
