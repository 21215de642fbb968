//! Which processors handle the packets of the stream's interface: by steering, and by interrupts.

use thalweg_host::ProcessorSet;

use super::{Context, Draft};
use crate::advice::{AdviceStep, Effect, Setting};
use crate::figures::grouped;
use crate::place::SettingPlace;

pub(super) fn advise(context: &Context<'_>, device: &str) -> Vec<Setting> {
    let mut settings = spread(context, device);
    settings.push(interrupts(context, device));
    settings
}

/// Steering of packets (RPS) and of flows (RFS) where the interface has one queue.
fn spread(context: &Context<'_>, device: &str) -> Vec<Setting> {
    let Some(now) = context.system.device.as_ref() else { return Vec::new() };
    let [only] = now.receive_queues.as_slice() else { return Vec::new() };
    let place = |entry: &str| SettingPlace::Device { device: device.to_owned(), entry: format!("queues/rx-0/{entry}") };
    let online = &context.system.processors.online;
    let load = context.load();
    let is_loaded = load.is_some_and(|load| load > 0.7) && context.stream.writers > 1 && online.len() > 1;
    let masks = Draft::new(
        format!(
            "one receive queue, {} processors; the stream takes {} of one processor. From 70 % on several flows should be spread",
            online.len(),
            load.map_or("an unknown share".to_owned(), |load| format!("{:.0} %", 100.0 * load))
        ),
        "packets of several flows are handled by several processors (softnet_stat, first column)",
    );
    let is_unset = only.bytes().all(|byte| matches!(byte, b'0' | b','));
    let mask = if is_loaded && is_unset {
        masks.write(place("rps_cpus"), Some(only.clone()), online.to_mask())
    } else {
        masks.keep(&place("rps_cpus").to_string(), Some(only.clone()), None)
    };
    let flows = || {
        let why = format!(
            "where packets are spread, {} entries lead each flow to the processor of its reader; the only queue has all of them",
            grouped(FLOW_ENTRIES)
        );
        Draft::new(why, "packets are handled where the caches of their reader are")
    };
    let entries = now.flow_entries.first().copied().flatten();
    let text = entries.map(|entries| entries.to_string());
    let of_queue = match entries {
        Some(entries) if is_loaded && u64::from(entries) < FLOW_ENTRIES => {
            flows().write(place("rps_flow_cnt"), text, FLOW_ENTRIES.to_string())
        }
        _ => flows().keep(&place("rps_flow_cnt").to_string(), text, None),
    };
    let of_host = if is_loaded {
        context.at_least(FLOWS, FLOW_ENTRIES, flows())
    } else {
        flows().keep(FLOWS, context.system.setting(FLOWS).map(str::to_owned), None)
    };
    vec![mask, of_queue, of_host]
}

fn interrupts(context: &Context<'_>, device: &str) -> Setting {
    let name = format!("{device} interrupts");
    let online = &context.system.processors.online;
    let reader = context.system.processors.allowed.as_ref().unwrap_or(online);
    let draft = Draft::new(
        format!(
            "an interrupt stops what runs on its processor: a pinned reader belongs on another one that shares its cache; this process may \
             run on {reader}"
        ),
        "stalls of the reader while packets come in",
    );
    if let Some(none) = context.lacks_hardware() {
        return draft.effect(none).keep(&name, None, None);
    }
    let all = context.system.device.as_ref().map_or(&[][..], |device| device.interrupts.as_slice());
    if all.is_empty() {
        let unknown = Effect::Unknown("the system does not show the interrupts of this interface".to_owned());
        return draft.effect(unknown).keep(&name, None, None);
    }
    let handling: ProcessorSet = all.iter().flat_map(|one| one.processors.iter()).collect();
    let now = Some(format!("{} on processors {handling}", all.len()));
    let is_pinned = !online.is_within(reader);
    let in_the_way = all.iter().filter(|one| is_pinned && one.processors.is_within(reader));
    let in_the_way: Vec<String> = in_the_way.map(|one| one.number.to_string()).collect();
    if !in_the_way.is_empty() {
        let to = near(context, reader).to_string();
        let command = format!(
            "for irq in {}; do echo {to} > /proc/irq/$irq/smp_affinity_list; done; irqbalance, where it runs, moves them again",
            in_the_way.join(" ")
        );
        return draft.into_setting(&name, now, Some(to), AdviceStep::ByHand { command });
    }
    if !is_pinned && handling.len() == 1 && online.len() > 1 {
        let command = format!("taskset -c {} COMMAND, for the reader", near(context, &handling));
        return draft.into_setting(&name, now, None, AdviceStep::ByHand { command });
    }
    draft.keep(&name, now, None)
}

/// The processors beside `busy` that share a cache with them; all others where none does.
fn near(context: &Context<'_>, busy: &ProcessorSet) -> ProcessorSet {
    let processors = &context.system.processors;
    let free = processors.online.without(busy);
    let shares = |processor: &usize| {
        let has_both = |cache: &ProcessorSet| cache.has(*processor) && busy.iter().any(|one| cache.has(one));
        processors.caches.iter().any(has_both)
    };
    let near: ProcessorSet = free.iter().filter(shares).collect();
    if near.is_empty() { free } else { near }
}

const FLOWS: &str = "net.core.rps_sock_flow_entries";
/// What the kernel's documentation names for a host of some thousand flows (scaling.rst, RFS).
const FLOW_ENTRIES: u64 = 32_768;
