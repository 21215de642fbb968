//! The stream's interface: width, moderation of interrupts, rings, offloads, polling and the bus.

use thalweg_host::BusReads;

use super::{Context, Draft, steering};
use crate::advice::{AdviceStep, Effect, Setting};
use crate::figures::{grouped, time, whole};
use crate::place::{CoalescingKnob, SettingPlace};
use crate::probes::ProbeKind;
use crate::system::VIRTUAL;

pub(super) fn advise(context: &Context<'_>) -> Vec<Setting> {
    let Some(device) = context.device() else { return Vec::new() };
    let mut settings = vec![width(context, device)];
    settings.extend(moderation(context, device));
    settings.push(ring(context, device));
    settings.push(channels(context, device));
    settings.extend(offloads(context, device));
    settings.push(socket_batches(context));
    settings.extend(polling(context, device));
    settings.extend(steering::advise(context, device));
    settings.push(bus(context, device));
    settings
}

fn width(context: &Context<'_>, device: &str) -> Setting {
    let place = SettingPlace::Device { device: device.to_owned(), entry: "mtu".to_owned() };
    let now = context.system.mtu_bytes();
    let text = Some(now.to_string());
    let path = context.answers.path;
    let load = context.load();
    let packets = |mtu| grouped(whole(context.stream.packets_per_second(mtu)));
    let share = load.map_or("an unknown share".to_owned(), |load| format!("{:.0} %", 100.0 * load));
    let why = format!(
        "{} packets/s at MTU {now}, {share} of one processor's budget; {} at 9,000. Worth it from half of the budget on, and only if \
         every link of the path carries it",
        packets(context.measured.mtu_bytes),
        packets(JUMBO)
    );
    let draft = Draft::new(why, "fewer packets for the same bytes: less processor time, fewer losses in rings")
        .shown_by(ProbeKind::Path);
    if context.system.device_name() == "lo" {
        let none = Effect::NoneHere("loopback is wider than any frame".to_owned());
        return draft.effect(none).keep(&place.to_string(), text, None);
    }
    if now >= JUMBO {
        let effect = match path {
            Some(path) if path.is_confirmed && path.bytes < JUMBO => {
                Effect::NoneHere(format!("the path carries {} B", path.bytes))
            }
            Some(path) if path.is_confirmed => Effect::Works,
            _ => Effect::Unknown("give --peer to try the path".to_owned()),
        };
        return draft.effect(effect).keep(&place.to_string(), text, None);
    }
    if load.is_some_and(|load| load <= 0.5) {
        return draft.keep(&place.to_string(), text, None);
    }
    // Only a path of jumbo frames could be tried with them, and this interface does not send them: the owner of the path decides.
    let effect = Effect::Unknown("whether switches and peers carry 9,000 B cannot be tried below it".to_owned());
    let command = format!("{}, and the same on the peer and all switches; then `advise --peer`", place.command("9000"));
    draft.effect(effect).into_setting(&place.to_string(), text, Some(JUMBO.to_string()), AdviceStep::ByHand { command })
}

/// Microseconds for which the interface may wait, and why.
fn wait_for_more(context: &Context<'_>) -> (u64, String) {
    let deadline = context.stream.deadline.as_micros();
    let tenth = u64::try_from(deadline / 10).unwrap_or(u64::MAX);
    let packets = context.stream.packets_per_second(context.measured.mtu_bytes).max(1.0);
    let ring = context.system.nic.as_ref().and_then(|nic| nic.rings).map_or(RING_USUAL, |rings| rings.rx);
    let held = whole(f64::from(ring) / 2.0 / packets * 1e6).saturating_sub(SOFT_INTERRUPT_US);
    let value = tenth.min(held).min(WAIT_MAX_US);
    let why = format!(
        "min(a tenth of the deadline = {} µs, half of {} packets in the ring / {} packets/s − {SOFT_INTERRUPT_US} µs = \
         {} µs, {WAIT_MAX_US} µs)",
        grouped(tenth),
        grouped(u64::from(ring)),
        grouped(whole(packets)),
        grouped(held)
    );
    (value, why)
}

fn moderation(context: &Context<'_>, device: &str) -> Vec<Setting> {
    let place = |knob| SettingPlace::Coalescing { device: device.to_owned(), knob };
    let (rx_usecs, adaptive) = (place(CoalescingKnob::RxUsecs), place(CoalescingKnob::AdaptiveRx));
    let (value, why) = wait_for_more(context);
    let changes = "interrupts a second and processor time against latency";
    let Some(now) = context.system.nic.as_ref().and_then(|nic| nic.coalescing) else {
        let kind = context.system.kind();
        let none = Effect::NoneHere(format!(
            "the driver of {device} ({kind}) has no moderation; a receiver that wakes by a timer has the same effect"
        ));
        return vec![Draft::new(why, changes).effect(none).keep(&rx_usecs.to_string(), None, Some(value.to_string()))];
    };
    let effect = match context.system.kind() {
        VIRTUAL => {
            Effect::Unknown("drivers of virtual machines' interfaces show moderation and often refuse it".to_owned())
        }
        _ => Effect::Works,
    };
    let was_adaptive = if now.adaptive_rx { "on" } else { "off" }.to_owned();
    vec![
        Draft::new("a fixed wait is even; an adaptive one changes with the load, and RTT and jitter with it", changes)
            .effect(effect.clone())
            .shown_by(ProbeKind::Path)
            .write(adaptive, Some(was_adaptive), "off".to_owned()),
        Draft::new(why, changes).effect(effect).shown_by(ProbeKind::Path).write(
            rx_usecs,
            Some(now.rx_usecs.to_string()),
            value.to_string(),
        ),
    ]
}

fn ring(context: &Context<'_>, device: &str) -> Setting {
    let place = SettingPlace::ReceiveRing { device: device.to_owned() };
    let changes = "packets wait in the ring while interrupts are handled (rx_missed_errors, rx_fifo_errors)";
    let Some(now) = context.system.nic.as_ref().and_then(|nic| nic.rings) else {
        let none = Effect::NoneHere(format!("the driver of {device} ({}) has no rings to set", context.system.kind()));
        return Draft::new("a ring holds packets until the processor takes them", changes).effect(none).keep(
            &place.to_string(),
            None,
            None,
        );
    };
    let (wait, _) = wait_for_more(context);
    // A burst comes at the speed of the link.
    let packet_bits = f64::from(context.measured.mtu_bytes + ETHERNET_BYTES) * 8.0;
    let peak = context.measured.link_bits_per_second.map_or_else(
        || context.stream.packets_per_second(context.measured.mtu_bytes) * 2.0,
        |link| link as f64 / packet_bits,
    );
    let needed = whole(peak * (wait + INTERRUPT_MAX_US) as f64 / 1e6);
    let value = u32::try_from(needed)
        .unwrap_or(u32::MAX)
        .checked_next_power_of_two()
        .unwrap_or(u32::MAX)
        .clamp(RING_MIN.min(now.rx_max), now.rx_max);
    let draft = Draft::new(
        format!(
            "{} packets/s at the speed of the link · ({wait} µs wait + {INTERRUPT_MAX_US} µs until the interrupt is handled) = {}; a power \
             of two, at most {}",
            grouped(whole(peak)),
            grouped(needed),
            now.rx_max
        ),
        changes,
    );
    if now.rx >= value || now.rx_max <= now.rx {
        let draft = if now.rx_max <= now.rx && now.rx < value {
            draft.effect(Effect::NoneHere(format!("the ring of {device} is as large as it can be")))
        } else {
            draft
        };
        return draft.keep(&place.to_string(), Some(now.rx.to_string()), Some(value.to_string()));
    }
    draft.write(place, Some(now.rx.to_string()), value.to_string())
}

fn channels(context: &Context<'_>, device: &str) -> Setting {
    let name = format!("{device} channels");
    let draft = Draft::new(
        format!(
            "one flow uses one queue; more queues than {} processors help nobody",
            context.system.processors.online.len()
        ),
        "several flows are received by several processors",
    );
    let Some(now) = context.system.nic.as_ref().and_then(|nic| nic.queues) else {
        let none = Effect::NoneHere(format!("the driver of {device} does not tell its queues"));
        return draft.effect(none).keep(&name, None, None);
    };
    let (count, most) = if now.combined_max > 0 { (now.combined, now.combined_max) } else { (now.rx, now.rx_max) };
    let processors = u32::try_from(context.system.processors.online.len().max(1)).unwrap_or(u32::MAX);
    if count <= processors {
        return draft.keep(&name, Some(format!("{count} of {most}")), None);
    }
    let kind = if now.combined_max > 0 { "combined" } else { "rx" };
    let command = format!("ethtool -L {device} {kind} {processors}");
    draft.into_setting(
        &name,
        Some(format!("{count} of {most}")),
        Some(processors.to_string()),
        AdviceStep::ByHand { command },
    )
}

fn offloads(context: &Context<'_>, device: &str) -> Vec<Setting> {
    let Some(nic) = context.system.nic.as_ref() else { return Vec::new() };
    let rules = [
        (
            "rx-gro",
            "on",
            "the kernel joins received packets before IP; a socket with UDP_GRO takes them joined",
            Some(ProbeKind::Segmentation),
        ),
        (
            "tx-udp-segmentation",
            "on",
            "one send of 64 kB crosses the kernel once and is cut by the driver",
            Some(ProbeKind::Segmentation),
        ),
        ("tx-generic-segmentation", "on", "the kernel cuts as late as it can", Some(ProbeKind::Segmentation)),
        (
            "rx-udp-gro-forwarding",
            "off",
            "only bridges and routers gain; on an end host UDP_GRO of the socket counts",
            None,
        ),
    ];
    let advise = |(feature, value, why, probe): (&str, &str, &str, Option<ProbeKind>)| {
        let now = nic.features.get(feature)?;
        let text = if now.is_on { "on" } else { "off" };
        let place = SettingPlace::Feature { device: device.to_owned(), feature: feature.to_owned() };
        let mut draft = Draft::new(why, "processor time of a datagram, sent or received");
        draft.probe = probe;
        if value == "off" || text == value {
            return Some(draft.keep(
                &place.to_string(),
                Some(text.to_owned()),
                (text != value).then(|| value.to_owned()),
            ));
        }
        if now.is_fixed {
            let none = Effect::NoneHere(format!("the driver of {device} cannot"));
            return Some(draft.effect(none).keep(&place.to_string(), Some(text.to_owned()), Some(value.to_owned())));
        }
        Some(draft.write(place, Some(text.to_owned()), value.to_owned()))
    };
    rules.into_iter().filter_map(advise).collect()
}

fn socket_batches(context: &Context<'_>) -> Setting {
    let seen = context.answers.segmentation;
    let effect = match seen {
        Some(seen) if seen.messages < seen.datagrams => Effect::Works,
        Some(_) => Effect::NoneHere("a receiver took each datagram alone".to_owned()),
        None => Effect::Unknown("the probe gave no answer".to_owned()),
    };
    let why = seen.map_or("datagrams of one size travel through the kernel together".to_owned(), |seen| {
        format!("one send of {} datagrams came in {} message(s) over loopback", seen.datagrams, seen.messages)
    });
    let step = if effect == Effect::Works { AdviceStep::InProgram } else { AdviceStep::Keep };
    Draft::new(why, "system calls, and the charge of a waiting datagram (1.02 instead of 1.2 to 2 times its bytes)")
        .effect(effect)
        .shown_by(ProbeKind::Segmentation)
        .into_setting("UDP_SEGMENT, UDP_GRO", None, Some("on".to_owned()), step)
}

fn polling(context: &Context<'_>, device: &str) -> Vec<Setting> {
    let Some(now) = context.system.device.as_ref().map(|device| &device.polling) else { return Vec::new() };
    let effect = context.lacks_hardware().map(|_| {
        Effect::NoneHere(format!(
            "{device} is {}, which polls without interrupts that could be deferred: round trips do not move with the timer",
            context.system.kind()
        ))
    });
    let entries = [
        ("gro_flush_timeout", now.flush_timeout_ns.map(|value| value.to_string())),
        ("napi_defer_hard_irqs", now.deferred_interrupts.map(|value| value.to_string())),
        ("threaded", now.is_threaded.map(|value| u8::from(value).to_string())),
    ];
    let why = "alone it only adds up to its time to every round trip; it belongs to busy polling (200 µs and 2), for deadlines below 50 µs";
    let advise = |(entry, now): (&str, Option<String>)| {
        let draft = Draft::new(why, "interrupts a second against latency");
        draft.effect(effect.clone().unwrap_or(Effect::Works)).keep(&format!("{device} {entry}"), now, None)
    };
    let mut settings: Vec<Setting> = entries.into_iter().map(advise).collect();
    settings.extend(busy_polling(context, effect.as_ref()));
    settings
}

/// Polling by a socket, and for all sockets of the host.
fn busy_polling(context: &Context<'_>, effect: Option<&Effect>) -> [Setting; 3] {
    let changes = "the reader polls the interface instead of sleeping";
    let draft = |why: String| {
        let draft = Draft::new(why, changes);
        match effect {
            Some(none) => draft.effect(none.clone()),
            None => draft,
        }
    };
    let deadline = context.stream.deadline;
    let is_urgent = deadline.as_micros() < 50;
    let why = format!("for deadlines below 50 µs and with a processor to spare; this one is {}", time(deadline));
    let of_socket = draft(why).keep("SO_BUSY_POLL", None, is_urgent.then(|| "50".to_owned()));
    let of_all = |name: &str| {
        let draft =
            draft("it makes every socket of the host poll; a reader that needs it asks by SO_BUSY_POLL".to_owned());
        let now = context.system.setting(name).map(str::to_owned);
        if matches!(now.as_deref(), None | Some("0")) {
            return draft.keep(name, now, None);
        }
        let command = format!("sysctl -w {name}=0, unless another program of this host needs it");
        draft.into_setting(name, now, Some("0".to_owned()), AdviceStep::ByHand { command })
    };
    [of_socket, of_all("net.core.busy_read"), of_all("net.core.busy_poll")]
}

fn bus(context: &Context<'_>, device: &str) -> Setting {
    let name = format!("{device} bus reads");
    let draft = Draft::new(
        "the interface reads packets to send in pieces of this size; a larger one wastes less of the bus (the paper: +18 % at MTU 1500)",
        "throughput of a sender near the limit of its bus",
    );
    let bus = context.system.device.as_ref().and_then(|device| device.bus);
    let (now, wanted, command) = match bus {
        Some(BusReads::PciX { bytes }) => (
            bytes,
            PCI_X_READS,
            format!("setpci, PCI-X command register, MMRBC {PCI_X_READS}; not kept over a restart"),
        ),
        Some(BusReads::PciExpress { bytes, .. }) => (
            bytes,
            PCI_EXPRESS_READS,
            format!(
                "setpci CAP_EXP+8.w, MaxReadReq {PCI_EXPRESS_READS}; the driver's or firmware's choice is right as a rule"
            ),
        ),
        None => {
            let reason = if context.system.has_hardware() {
                Effect::Unknown(
                    "configuration space shows no such capability to this user, or there is none".to_owned(),
                )
            } else {
                context.lacks_hardware().unwrap_or(Effect::Works)
            };
            return draft.effect(reason).keep(&name, None, None);
        }
    };
    let text = Some(now.to_string());
    if now >= wanted {
        return draft.keep(&name, text, Some(wanted.to_string()));
    }
    // Reported only: a wrong write to configuration space stops the machine.
    draft.into_setting(&name, text, Some(wanted.to_string()), AdviceStep::ByHand { command })
}

const JUMBO: u32 = 9000;
/// Preamble, header, check sequence and gap.
const ETHERNET_BYTES: u32 = 38;
/// Time that one round of the kernel's polling takes.
const SOFT_INTERRUPT_US: u64 = 50;
/// A wait longer than this brings nothing: batches are full by then.
const WAIT_MAX_US: u64 = 200;
/// The longest time for which interrupts are off on a usual kernel.
const INTERRUPT_MAX_US: u64 = 500;
const RING_USUAL: u32 = 256;
const RING_MIN: u32 = 256;
/// The best of the paper's for several streams (Figure 4).
const PCI_X_READS: u32 = 2048;
/// The default of most firmware.
const PCI_EXPRESS_READS: u32 = 512;
