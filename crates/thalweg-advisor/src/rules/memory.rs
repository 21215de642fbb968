//! Memory of sockets and of fragments.

use super::{Context, Draft};
use crate::advice::{AdviceStep, Effect, Setting};
use crate::figures::{grouped, rate, whole};
use crate::probes::ProbeKind;
use crate::stream::StreamNetwork;

pub(super) fn advise(context: &Context<'_>) -> Vec<Setting> {
    let mut settings = vec![receive_buffer(context), receive_cap(context), receive_default(context)];
    settings.extend([send_cap(context), udp_pages(context), option_memory(context)]);
    settings.extend(fragments(context));
    settings
}

fn receive_buffer(context: &Context<'_>) -> Setting {
    let ask = context.numbers.receive_buffer_ask();
    let why = format!(
        "half of {} B, since the kernel doubles what is asked for; with joined datagrams (UDP_GRO) {} B would do",
        grouped(context.numbers.receive_buffer.value),
        grouped(context.numbers.receive_buffer_joined_ask())
    );
    let granted = context.answers.granted_buffer;
    let cap = receive_cap(context);
    let effect = match (too_much(context, ask), granted) {
        (Some(reason), _) => Effect::NoneHere(reason),
        (None, Some(granted)) if granted.best_bytes() >= ask => Effect::Works,
        (None, Some(granted)) if matches!(cap.step, AdviceStep::Write { .. }) => Effect::Unknown(format!(
            "{} B are granted until net.core.rmem_max is raised",
            grouped(granted.best_bytes())
        )),
        (None, Some(granted)) => Effect::NoneHere(format!(
            "only {} B are granted; raise net.core.rmem_max, or pace the writers, or let them keep at most {} B under way",
            grouped(granted.best_bytes()),
            grouped(payload_of(context, granted.best_bytes()))
        )),
        (None, None) => Effect::Unknown("no receive buffer could be asked for".to_owned()),
    };
    let step = match &effect {
        Effect::NoneHere(reason) => AdviceStep::Refused { reason: reason.clone() },
        _ => AdviceStep::InProgram,
    };
    let now = granted.map(|granted| granted.default_bytes.to_string());
    Draft::new(
        why,
        "datagrams that arrive while the reader does not run wait instead of being lost (UdpRcvbufErrors, SO_RXQ_OVFL)",
    )
    .effect(effect)
    .shown_by(ProbeKind::GrantedBuffer)
    .into_setting("SO_RCVBUF", now, Some(ask.to_string()), step)
}

/// Bytes of samples that fit a buffer of which this much was granted.
fn payload_of(context: &Context<'_>, granted_bytes: u64) -> u64 {
    let plan = context.stream.datagrams(context.measured.mtu_bytes);
    let share = plan.carried_bytes as f64 / context.measured.charge_bytes.max(1) as f64;
    whole(2.0 * granted_bytes as f64 * share / 1.25)
}

fn receive_cap(context: &Context<'_>) -> Setting {
    let ask = context.numbers.receive_buffer_ask();
    let draft = Draft::new(
        format!(
            "a program gets at most this, and this stream's asks for {} B; never lower, and no larger than computed",
            grouped(ask)
        ),
        "SO_RCVBUF is granted in full",
    )
    .shown_by(ProbeKind::GrantedBuffer);
    let is_forced =
        context.answers.granted_buffer.and_then(|granted| granted.forced_bytes).is_some_and(|bytes| bytes >= ask);
    let now = context.system.number("net.core.rmem_max");
    match now {
        Some(now)
            if now < ask
                && is_forced
                && context.system.settings.get("net.core.rmem_max").is_none_or(|one| !one.is_writable) =>
        {
            let reason = "this user may exceed it (SO_RCVBUFFORCE), as Thalweg does".to_owned();
            draft.effect(Effect::NoneHere(reason)).keep(
                "net.core.rmem_max",
                Some(now.to_string()),
                Some(ask.to_string()),
            )
        }
        None if is_forced => {
            let reason = "it is not shown here, and this user may exceed it (SO_RCVBUFFORCE)".to_owned();
            draft.effect(Effect::NoneHere(reason)).keep("net.core.rmem_max", None, Some(ask.to_string()))
        }
        _ => match too_much(context, ask) {
            Some(reason) => {
                let step = AdviceStep::Refused { reason };
                draft.into_setting("net.core.rmem_max", now.map(|now| now.to_string()), Some(ask.to_string()), step)
            }
            None => context.at_least("net.core.rmem_max", ask, draft),
        },
    }
}

/// Why a receive buffer of which `ask` bytes are asked for is not to be had; `None` where it is.
pub(super) fn too_much(context: &Context<'_>, ask: u64) -> Option<String> {
    const REMEDY: &str = "pace the writers, or spread them over sockets and hosts";
    if ask > SOCKET_MAX_BYTES {
        return Some(format!("the kernel grants a socket no more than 1 GiB; {REMEDY}"));
    }
    more_than_memory(context).map(|reason| format!("{reason}; {REMEDY}"))
}

/// Whether the receive buffer takes more of the memory that there is than a stream may.
fn more_than_memory(context: &Context<'_>) -> Option<String> {
    let needed = context.numbers.receive_buffer.value;
    let of_host = context.system.memory_bytes.map(|bytes| (bytes, "of memory"));
    // The kernel counts buffers of sockets against it, and drops what does not fit.
    let of_group = context.system.group_memory_bytes;
    let of_group = of_group.map(|bytes| (bytes, "that the control groups of this process may use (memory.max)"));
    let (memory, whose) = of_host.into_iter().chain(of_group).min_by_key(|(bytes, _)| *bytes)?;
    (needed > memory / MEMORY_DIVISOR)
        .then(|| format!("{} B are more than a quarter of the {} B {whose}", grouped(needed), grouped(memory)))
}

fn receive_default(context: &Context<'_>) -> Setting {
    let now = context.system.setting("net.core.rmem_default").map(str::to_owned);
    Draft::new(
        "it changes every socket of the host; a program that needs more asks for more",
        "nothing for this stream",
    )
    .effect(Effect::NoneHere("this stream does not depend on it".to_owned()))
    .keep("net.core.rmem_default", now, None)
}

fn send_cap(context: &Context<'_>) -> Setting {
    let link = context.measured.link_bits_per_second;
    let in_flight = link.map_or(0, |link| link / 8 / 1000);
    let least = in_flight.max(SEND_MIN_BYTES);
    let words = link.map_or("the speed of the link is not known".to_owned(), |link| {
        format!("{} / 8 · 1 ms until a sent packet is freed = {} B", rate(link as f64), grouped(in_flight))
    });
    let draft = Draft::new(
        format!("max(two datagrams of 64 kB as they are charged = {} B, {words})", grouped(SEND_MIN_BYTES)),
        "a batch leaves by one system call instead of waiting for room (UdpSndbufErrors)",
    );
    context.at_least("net.core.wmem_max", least, draft)
}

fn udp_pages(context: &Context<'_>) -> Setting {
    const NAME: &str = "net.ipv4.udp_mem";
    let now = context.system.setting(NAME);
    let pages = context.numbers.receive_buffer.value.div_ceil(PAGE_BYTES) * 3 / 2;
    let words: Vec<u64> = now.unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    let draft = Draft::new(
        format!(
            "{} B of buffer / 4,096 · 1.5 = {} pages; the least, the pressure and the most of all UDP sockets",
            grouped(context.numbers.receive_buffer.value),
            grouped(pages)
        ),
        "datagrams are not refused for want of memory for all UDP sockets (UdpMemErrors)",
    );
    match (&words[..], more_than_memory(context)) {
        ([_, _, most], Some(reason)) if *most < pages => {
            let step = AdviceStep::Refused { reason };
            draft.into_setting(NAME, now.map(str::to_owned), Some(format!("at least {pages} pages")), step)
        }
        ([least, pressure, most], None) if *most < pages => {
            let value = format!("{} {} {pages}", least.max(&(pages / 2)), pressure.max(&(pages * 3 / 4)));
            let step = context.sysctl(NAME, &value);
            draft.into_setting(NAME, now.map(str::to_owned), Some(value), step)
        }
        _ => draft.keep(NAME, now.map(str::to_owned), Some(format!("at least {pages} pages"))),
    }
}

fn option_memory(context: &Context<'_>) -> Setting {
    let now = context.system.setting("net.core.optmem_max").map(str::to_owned);
    Draft::new(
        "control messages of a send take 80 B and a filter a few kilobytes; only zero-copy sends need more",
        "nothing for this stream",
    )
    .effect(Effect::NoneHere("this stream does not depend on it".to_owned()))
    .keep("net.core.optmem_max", now, None)
}

fn fragments(context: &Context<'_>) -> Vec<Setting> {
    let needed = &context.numbers.fragment_memory;
    let names = match context.stream.network {
        StreamNetwork::V4 => ["net.ipv4.ipfrag_high_thresh", "net.ipv4.ipfrag_time", "net.ipv4.ipfrag_low_thresh"],
        StreamNetwork::V6 => ["net.ipv6.ip6frag_high_thresh", "net.ipv6.ip6frag_time", "net.ipv6.ip6frag_low_thresh"],
    };
    let [high_name, time_name, low_name] = names;
    let changes = "datagrams that lack a fragment do not keep out those that are complete (ReasmFails)";
    let now = |name: &str| context.system.setting(name).map(str::to_owned);
    if needed.value == 0 {
        let keep = |name: &&str| Draft::new(needed.why.clone(), changes).effect(not_cut()).keep(name, now(name), None);
        return names.iter().map(keep).chain(disorder(context)).collect();
    }
    // A fragment that has not come within four round trips does not come.
    let wait = whole(4.0 * context.measured.round_trip.as_secs_f64()).max(1);
    let waiting = needed.value / context.measured.fragment_time_s.max(1) * wait;
    let high = (2 * waiting).max(FRAGMENT_MIN_BYTES).next_multiple_of(PAGE_BYTES);
    let why = format!(
        "{}; with a wait of max(1 s, 4 round trips) = {wait} s they are {} B, which may fill half. Datagrams within the MTU need none",
        needed.why,
        grouped(waiting)
    );
    let time_step = match now(time_name) {
        Some(now) if now == wait.to_string() => AdviceStep::Keep,
        _ => context.sysctl(time_name, &wait.to_string()),
    };
    let time_setting =
        Draft::new(why.clone(), changes).into_setting(time_name, now(time_name), Some(wait.to_string()), time_step);
    // The kernel refuses a low threshold above the high one: the high one comes first.
    let high_setting = context.at_least(high_name, high, Draft::new(why, changes));
    let low = high / 4 * 3;
    let low_setting = context.at_least(low_name, low, Draft::new(format!("3/4 of {} B", grouped(high)), changes));
    [high_setting, low_setting, time_setting].into_iter().chain(disorder(context)).collect()
}

fn not_cut() -> Effect {
    Effect::NoneHere("this stream's datagrams are not cut".to_owned())
}

/// How many fragments of a sender may come between two of one datagram before the kernel gives it up; IPv6 has no such rule.
fn disorder(context: &Context<'_>) -> Option<Setting> {
    const NAME: &str = "net.ipv4.ipfrag_max_dist";
    if context.stream.network == StreamNetwork::V6 {
        return None;
    }
    let changes = "datagrams whose fragments come between many others are not given up (ReasmFails)";
    let now = context.system.number(NAME);
    let text = now.map(|now| now.to_string());
    let fragments = context.stream.datagrams(context.measured.mtu_bytes).fragments;
    if fragments < 2 {
        let why = context.numbers.fragment_memory.why.clone();
        return Some(Draft::new(why, changes).effect(not_cut()).keep(NAME, text, None));
    }
    let others = u64::from(context.stream.writers).saturating_sub(1);
    let between = others * fragments;
    let draft = Draft::new(
        format!(
            "{} other writers · {fragments} fragments = {} that may come between two of one datagram; 0 allows any number",
            grouped(others),
            grouped(between)
        ),
        changes,
    );
    if now.is_none_or(|now| now == 0 || between <= now) {
        return Some(draft.keep(NAME, text, None));
    }
    // Without it, fragments of an old datagram may be taken for those of one with the same number: a risk for the owner to weigh.
    let unknown = Effect::Unknown("only if one host sends for all these writers".to_owned());
    let command = format!("sysctl -w {NAME}=0, if one host sends for the writers or several paths lead here");
    Some(draft.effect(unknown).into_setting(NAME, text, Some("0".to_owned()), AdviceStep::ByHand { command }))
}

/// Twice what a datagram of 64 kB is charged.
const SEND_MIN_BYTES: u64 = 212_992;
const FRAGMENT_MIN_BYTES: u64 = 4 << 20;
const PAGE_BYTES: u64 = 4096;
/// Half of the largest `int`: the kernel doubles what is asked for (`sock_setsockopt`).
const SOCKET_MAX_BYTES: u64 = (i32::MAX / 2) as u64;
/// A stream's buffer takes a quarter of the host's memory at most: the programs that read it need the rest.
const MEMORY_DIVISOR: u64 = 4;
