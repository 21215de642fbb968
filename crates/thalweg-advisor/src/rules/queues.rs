//! Queues between program and wire, and the kernel's rules on which datagrams pass.

use super::{Context, Draft};
use crate::advice::{AdviceStep, Effect, Setting};
use crate::figures::{grouped, time, whole};
use crate::place::{DEFAULT, SettingPlace};
use crate::probes::ProbeKind;
use crate::stream::{Departing, StreamNetwork, StreamProfile};
use crate::system::reverse_path_filter;

pub(super) fn advise(context: &Context<'_>) -> Vec<Setting> {
    let mut settings = vec![backlog(context), budget(context), budget_time(context)];
    settings.extend(queue_length(context));
    settings.extend([pacing_rate(context), root_queue(context)].into_iter().flatten());
    settings.push(marking(context));
    settings.extend(reverse_path(context));
    settings.extend(reserved_ports(context));
    settings.push(memberships(context));
    settings
}

fn backlog(context: &Context<'_>) -> Setting {
    const NAME: &str = "net.core.netdev_max_backlog";
    let dropped = context.system.counters.get("softnet.dropped");
    let packets = whole(context.stream.packets_per_second(context.measured.mtu_bytes) / 100.0);
    let draft = Draft::new(
        format!(
            "softnet_stat counts {} packets dropped here; {} packets/s · 10 ms = {}",
            grouped(dropped),
            grouped(packets * 100),
            grouped(packets)
        ),
        "packets of loopback, veth pairs and RPS are not dropped before IP sees them (softnet_stat, second column)",
    );
    let now = context.system.setting(NAME).map(str::to_owned);
    if context.system.has_hardware() {
        let none = Effect::NoneHere(format!("{} polls (NAPI) and does not use it", context.system.device_name()));
        return draft.effect(none).keep(NAME, now, None);
    }
    if dropped == 0 {
        return draft.keep(NAME, now, None);
    }
    context.at_least(NAME, packets.max(BACKLOG_USUAL), draft)
}

/// How often polling ran out of its budget, in how many seconds, and thus in each.
fn squeezes(context: &Context<'_>) -> (u64, f64, f64) {
    let squeezed = context.system.counters.get("softnet.time_squeeze");
    let uptime = context.system.uptime_s.unwrap_or(0.0).max(1.0);
    (squeezed, uptime, squeezed as f64 / uptime)
}

fn budget(context: &Context<'_>) -> Setting {
    const NAME: &str = "net.core.netdev_budget";
    let (squeezed, uptime, each_second) = squeezes(context);
    let draft = Draft::new(
        format!(
            "polling ran out of its budget {} times in {:.0} s, {each_second:.3}/s; from 1/s on twice the kernel's default of 300",
            grouped(squeezed),
            uptime
        ),
        "received packets are taken from the ring at once (softnet_stat, third column)",
    );
    let now = context.system.number(NAME);
    match now {
        Some(_) if each_second > 1.0 => context.at_least(NAME, BUDGET_WIDE, draft),
        _ => draft.keep(NAME, now.map(|now| now.to_string()), None),
    }
}

fn budget_time(context: &Context<'_>) -> Setting {
    const NAME: &str = "net.core.netdev_budget_usecs";
    let changes = "a round of polling ends by its packets, not by its time (softnet_stat, third column)";
    let now = context.system.number(NAME);
    let text = now.map(|now| now.to_string());
    let Some(cost) = context.measured.packet_cost else {
        return Draft::new("the cost of a packet could not be measured", changes).keep(NAME, text, None);
    };
    let needed = (2 * u128::from(BUDGET_WIDE) * cost.as_nanos()).div_ceil(1000);
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let (_, _, each_second) = squeezes(context);
    let draft = Draft::new(
        format!(
            "2 · {BUDGET_WIDE} packets · {} = {} µs, and no more than {} µs; from one exhausted budget a second on, {each_second:.3}/s here",
            time(cost),
            grouped(needed),
            grouped(BUDGET_TIME_MAX_US)
        ),
        changes,
    );
    match now {
        Some(_) if each_second > 1.0 => context.at_least(NAME, needed.min(BUDGET_TIME_MAX_US), draft),
        _ => draft.keep(NAME, text, None),
    }
}

fn queue_length(context: &Context<'_>) -> Option<Setting> {
    let device = context.system.device.as_ref()?;
    let place = SettingPlace::Device { device: device.name.clone(), entry: "tx_queue_len".to_owned() };
    let dropped = context.system.counters.get(&format!("device.{}.tx_drop", device.name));
    let plan = context.stream.datagrams(context.measured.mtu_bytes);
    let burst = match context.stream.departing {
        Departing::AtOnce => plan.count * plan.fragments * u64::from(context.stream.writers),
        Departing::Paced => crate::stream::BATCH_DATAGRAMS * u64::from(context.stream.writers),
    };
    let draft = Draft::new(
        format!(
            "{} packets leave at once; the interface has dropped {} of all that were sent",
            grouped(burst),
            grouped(dropped)
        ),
        "a burst waits in the queue instead of being dropped there (UdpSndbufErrors, qdisc dropped)",
    );
    let now = device.queue_packets;
    let text = now.map(|now| now.to_string());
    let queue = context.system.nic.as_ref().and_then(|nic| nic.root_queue.as_ref()).map(|queue| queue.kind.as_str());
    if matches!(queue, None | Some("noqueue")) {
        let none = Effect::NoneHere(format!("{} has no queue (noqueue)", device.name));
        return Some(draft.effect(none).keep(&place.to_string(), text, None));
    }
    // A queue that somebody has made longer than the most that is advised stays.
    let wanted = burst.min(QUEUE_MAX);
    let is_short = now.is_some_and(|now| u64::from(now) < wanted);
    if dropped == 0 || !is_short {
        return Some(draft.keep(&place.to_string(), text, None));
    }
    Some(draft.write(place, text, wanted.to_string()))
}

fn pacing_rate(context: &Context<'_>) -> Option<Setting> {
    let rate = context.numbers.pacing_rate.value / 8 / u64::from(context.stream.writers.max(1));
    let draft = Draft::new(
        format!("{}; in bytes a second of one writer", context.numbers.pacing_rate.why),
        "datagrams leave evenly, and small buffers on the way hold them",
    )
    .shown_by(ProbeKind::Pacing);
    let untried = context.device().filter(|device| context.peer.is_none() && *device != "lo");
    let effect = match (untried, context.answers.pacing) {
        // What loopback does says nothing about it.
        (Some(device), _) => Effect::Unknown(format!("give --peer to try the queue of {device}")),
        (None, Some(seen)) if seen.is_effective() => Effect::Works,
        (None, Some(seen)) => Effect::NoneHere(format!(
            "a socket that asked for {} B/s sent {} B/s: the option succeeds and no fq queue obeys it; Thalweg's senders pace themselves",
            grouped(u64::from(seen.asked_bytes_per_second)),
            grouped(seen.seen_bytes_per_second)
        )),
        (None, None) => Effect::Unknown("the probe gave no answer".to_owned()),
    };
    let step = if effect == Effect::Works { AdviceStep::InProgram } else { AdviceStep::Keep };
    Some(draft.effect(effect).into_setting("SO_MAX_PACING_RATE", None, Some(rate.to_string()), step))
}

fn root_queue(context: &Context<'_>) -> Option<Setting> {
    let device = context.device()?;
    let place = SettingPlace::RootQueue { device: device.to_owned() };
    let queue = context.system.nic.as_ref()?.root_queue.as_ref();
    let now = queue.map(|queue| queue.kind.clone());
    let draft = Draft::new(
        "fq alone holds datagrams back to a socket's rate; a paced sender gains most from it, and Thalweg's paces itself",
        "the kernel paces datagrams that are sent by the batch",
    )
    .shown_by(ProbeKind::Pacing);
    if let Some(none) = context.lacks_hardware() {
        return Some(draft.effect(none).keep(&place.to_string(), now, None));
    }
    if context.stream.departing == Departing::AtOnce {
        return Some(draft.effect(Effect::NoneHere("this stream is not paced".to_owned())).keep(
            &place.to_string(),
            now,
            None,
        ));
    }
    if now.as_deref() == Some("fq") {
        return Some(draft.keep(&place.to_string(), now, Some("fq".to_owned())));
    }
    // Below mq each queue of the hardware has the default discipline; one fq for all of them would take their place.
    if now.as_deref() == Some("mq") && context.system.setting("net.core.default_qdisc") == Some("fq") {
        return Some(draft.keep(&place.to_string(), now, Some("fq below mq".to_owned())));
    }
    if queue.is_some_and(|queue| !queue.is_default) {
        let reason = format!(
            "somebody configured {}, whose settings could not be put back; by hand: tc qdisc replace dev {device} root fq",
            now.as_deref().unwrap_or(DEFAULT)
        );
        return Some(draft.into_setting(
            &place.to_string(),
            now,
            Some("fq".to_owned()),
            AdviceStep::Refused { reason },
        ));
    }
    let unknown = Effect::Unknown("whether this kernel has fq shows when it is set".to_owned());
    Some(draft.effect(unknown).write(place, now, "fq".to_owned()))
}

/// The class of the stream's datagrams (RFC 4594 §2.3).
fn marking(context: &Context<'_>) -> Setting {
    let (class, command) = match context.stream.profile {
        StreamProfile::Video | StreamProfile::Paper2006 => ("34 (AF41)", "thalweg video send --dscp 34"),
        StreamProfile::Telemetry => ("46 (EF)", "--qos transport_priority=46 of the writers"),
        StreamProfile::Bulk => ("8 (CS1)", "--qos transport_priority=8 of the writers"),
    };
    let draft = Draft::new(
        "control first (46), then video (34), bulk last (8); queues that know Differentiated Services, and Wi-Fi, serve them in this order",
        "delay and losses beside other traffic",
    );
    if context.system.device_name() == "lo" {
        let none = Effect::NoneHere("loopback has no queue".to_owned());
        return draft.effect(none).keep("DSCP", None, Some(class.to_owned()));
    }
    let unknown = Effect::Unknown("only other traffic shows whether the path obeys".to_owned());
    let step = AdviceStep::ByHand { command: command.to_owned() };
    draft.effect(unknown).into_setting("DSCP", None, Some(class.to_owned()), step)
}

fn reverse_path(context: &Context<'_>) -> Option<Setting> {
    let device = context.device()?;
    let name = reverse_path_filter(device);
    let now = context.system.number(&name)?;
    // The kernel takes the larger of the interface's value and that of all.
    let of_all = context.system.number("net.ipv4.conf.all.rp_filter").unwrap_or(0);
    let draft = Draft::new(
        format!(
            "{} physical interfaces; {now} here and {of_all} for all, of which the larger counts: 1 drops what comes in at another \
             interface than its answer would leave by",
            context.system.physical_devices
        ),
        "datagrams of hosts with several interfaces are not dropped (IPReversePathFilter)",
    );
    if context.stream.network == StreamNetwork::V6 {
        let none = Effect::NoneHere("this stream is carried by the sixth version of IP".to_owned());
        return Some(draft.effect(none).keep(&name, Some(now.to_string()), None));
    }
    if context.system.physical_devices < 2 || now.max(of_all) != 1 {
        return Some(draft.keep(&name, Some(now.to_string()), None));
    }
    let step = context.sysctl(&name, "2");
    Some(draft.into_setting(&name, Some(now.to_string()), Some("2".to_owned()), step))
}

fn reserved_ports(context: &Context<'_>) -> Option<Setting> {
    const NAME: &str = "net.ipv4.ip_local_reserved_ports";
    let range = context.system.setting("net.ipv4.ip_local_port_range")?;
    let (first, _) = range.split_once(' ')?;
    let first: u32 = first.parse().ok()?;
    let now = context.system.setting(NAME).unwrap_or_default();
    let draft = Draft::new(
        format!(
            "the system hands out ports {} by itself; domain 0 of DDS uses 7400 to 7649",
            range.replace(' ', " to ")
        ),
        "a participant finds its ports free",
    );
    let is_clear = first > DDS_PORTS_LAST || now.split(',').any(has_dds_ports);
    if is_clear || !context.stream.profile.is_acknowledged() {
        return Some(draft.keep(NAME, Some(now.to_owned()), None));
    }
    let value = if now.is_empty() { DDS_PORTS.to_owned() } else { format!("{now},{DDS_PORTS}") };
    let step = context.sysctl(NAME, &value);
    Some(draft.into_setting(NAME, Some(now.to_owned()), Some(value), step))
}

/// Whether an entry of a list of ports has those of DDS; the kernel joins entries that touch each other.
fn has_dds_ports(entry: &str) -> bool {
    let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
    first.parse().is_ok_and(|first: u32| first <= DDS_PORTS_FIRST)
        && last.parse().is_ok_and(|last: u32| last >= DDS_PORTS_LAST)
}

fn memberships(context: &Context<'_>) -> Setting {
    let now = context.system.setting("net.ipv4.igmp_max_memberships").map(str::to_owned);
    Draft::new("groups of one socket; Thalweg joins one or two on each interface", "the twenty-first group is joined")
        .keep("net.ipv4.igmp_max_memberships", now, None)
}

/// The kernel's default.
const BACKLOG_USUAL: u64 = 1000;
/// Twice the kernel's default; more keeps programs from running.
const BUDGET_WIDE: u64 = 600;
/// Polling for longer keeps programs from running that are to read what it brings.
const BUDGET_TIME_MAX_US: u64 = 20_000;
const QUEUE_MAX: u64 = 10_000;
const DDS_PORTS: &str = "7400-7649";
const DDS_PORTS_FIRST: u32 = 7400;
const DDS_PORTS_LAST: u32 = 7649;
