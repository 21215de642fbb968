//! Processors: clock, sharing, limits.

use std::time::Duration;

use super::{Context, Draft};
use crate::advice::{AdviceStep, Effect, Setting};
use crate::figures::time;
use crate::place::SettingPlace;
use crate::probes::ProbeKind;

pub(super) fn advise(context: &Context<'_>) -> Vec<Setting> {
    let mut settings = governors(context);
    settings.extend([idle(context), wake_ups(context), siblings(context), quota(context)]);
    settings.extend([autogroups(context), compaction(context)]);
    settings
}

/// Lateness that 99 of 100 wake-ups do not exceed, and a tenth of the deadline.
fn lateness(context: &Context<'_>) -> (Option<Duration>, Duration) {
    (context.answers.wake_ups.map(|late| late.p99), context.stream.deadline / 10)
}

/// The first half of a sentence on lateness.
fn late_words(late: Option<Duration>) -> String {
    late.map_or("lateness was not measured".to_owned(), |late| format!("wake-ups are late by {} (p99)", time(late)))
}

/// Whether a thread stood still for more than half of the time within which a sample has to be there.
fn has_long_stall(context: &Context<'_>) -> bool {
    context.answers.wake_ups.is_some_and(|late| late.worst > context.stream.deadline / 2)
}

fn governors(context: &Context<'_>) -> Vec<Setting> {
    let (late, bound) = lateness(context);
    let words = late_words(late);
    let why = format!("{words}; from a tenth of the deadline on, {}, the clock should not fall", time(bound));
    let changes = "lateness of wake-ups after idle times";
    let governors = &context.system.processors.governors;
    if governors.is_empty() {
        let none = Effect::NoneHere("this system shows no governor, as most guests".to_owned());
        return vec![Draft::new(why, changes).effect(none).keep("scaling_governor", None, None)];
    }
    let is_late = late.is_some_and(|late| late > bound);
    let advise = |(processor, now): &(usize, String)| {
        let place = SettingPlace::Governor { processor: *processor };
        let draft = Draft::new(why.clone(), changes).shown_by(ProbeKind::WakeUps);
        match is_late {
            true => draft.write(place, Some(now.clone()), "performance".to_owned()),
            false => draft.keep(&place.to_string(), Some(now.clone()), None),
        }
    };
    governors.iter().map(advise).collect()
}

fn idle(context: &Context<'_>) -> Setting {
    const NAME: &str = "idle state";
    let (late, bound) = lateness(context);
    let draft = Draft::new(
        format!(
            "{}; from a tenth of the deadline on, {}, no processor should sleep so deep that it takes more than {HELD_US} µs to wake",
            late_words(late),
            time(bound)
        ),
        "lateness of wake-ups after idle times, at the price of power",
    );
    let Some(deepest) = &context.system.processors.idle else {
        let none = Effect::NoneHere("this system shows no idle states, as most guests".to_owned());
        return draft.effect(none).keep(NAME, None, None);
    };
    let now = Some(format!("{}, {} to leave", deepest.name, time(Duration::from_micros(deepest.exit_us))));
    if deepest.exit_us <= HELD_US || late.is_none_or(|late| late <= bound) {
        return draft.keep(NAME, now, None);
    }
    let command = format!(
        "hold /dev/cpu_dma_latency open with {HELD_US} µs while the stream runs, as the profile network-latency of tuned does"
    );
    draft.into_setting(NAME, now, Some(format!("at most {HELD_US} µs")), AdviceStep::ByHand { command })
}

fn wake_ups(context: &Context<'_>) -> Setting {
    let draft = Draft::new(
        format!(
            "the longest stall that was reckoned with is {}; a real-time thread is not kept waiting by other programs",
            time(context.measured.stall)
        ),
        "stalls of the reader, and with them the buffer that it needs",
    )
    .shown_by(ProbeKind::WakeUps);
    let late = context.answers.wake_ups;
    let now = late.map(|late| format!("p99 {}, worst {} of {} wake-ups", time(late.p99), time(late.worst), late.count));
    let is_long = has_long_stall(context);
    let step = if is_long {
        AdviceStep::ByHand {
            command: "chrt -f 20 COMMAND, or LimitRTPRIO= and CPUSchedulingPolicy=fifo in its unit".to_owned(),
        }
    } else {
        AdviceStep::Keep
    };
    draft.into_setting("thread priority", now, is_long.then(|| "SCHED_FIFO 20".to_owned()), step)
}

fn siblings(context: &Context<'_>) -> Setting {
    let siblings = context.system.processors.siblings.clone();
    let draft = Draft::new(
        "two threads of one core share its caches and units: sender and receiver belong on different cores (the paper: \
         load −3 to −7 % with it on)",
        "processor time of each datagram where both run at once",
    );
    match siblings {
        Some(list) => {
            let command = format!("taskset, with one processor of {list} only");
            draft.into_setting("SMT siblings", Some(list), None, AdviceStep::ByHand { command })
        }
        None => {
            draft.effect(Effect::NoneHere("a core has one thread here".to_owned())).keep("SMT siblings", None, None)
        }
    }
}

fn quota(context: &Context<'_>) -> Setting {
    let changes = "stalls of whole periods in which the group has used up its time (cpu.stat nr_throttled)";
    let Some(quota) = context.system.processors.quota else {
        return Draft::new("no group of this process is limited", changes).keep("cgroup cpu.max", None, None);
    };
    let now = format!("{} {}", quota.quota_us, quota.period_us);
    let stall = Duration::from_micros(quota.stall_us(1));
    let draft = Draft::new(
        format!(
            "{:.2} processors; one busy thread stands still for {} of each {}, more threads for longer",
            quota.processors(),
            time(stall),
            time(Duration::from_micros(quota.period_us))
        ),
        changes,
    );
    if stall.is_zero() {
        return draft.keep("cgroup cpu.max", Some(now), None);
    }
    // A shorter period leaves the share and shortens the stall, as long as the kernel takes the quota that belongs to it.
    let least = QUOTA_MIN_US.saturating_mul(quota.period_us).div_ceil(quota.quota_us.max(1));
    let period = PERIOD_SHORT_US.max(least);
    if period >= quota.period_us {
        let none =
            Effect::NoneHere("a shorter period would not help, or have a quota that the kernel refuses".to_owned());
        return draft.effect(none).keep("cgroup cpu.max", Some(now), None);
    }
    let share = quota.quota_us.saturating_mul(period) / quota.period_us.max(1);
    let value = format!("{share} {period}");
    let command = format!(
        "write \"{value}\" to cpu.max of the group (the same share, shorter stalls), or docker run --cpu-period={period} \
         --cpu-quota={share}"
    );
    draft.into_setting("cgroup cpu.max", Some(now), Some(value), AdviceStep::ByHand { command })
}

fn autogroups(context: &Context<'_>) -> Setting {
    let now = context.system.processors.has_autogroups;
    let draft = Draft::new(
        "with 1 a session competes as a whole: a compiler in another terminal counts as much as the stream, whatever nice values say; \
         real-time threads are not concerned",
        "how much other sessions delay the reader",
    );
    match now {
        Some(true) if has_long_stall(context) => {
            let command =
                "sysctl -w kernel.sched_autogroup_enabled=0, or start the stream by a unit of its own".to_owned();
            draft.into_setting(
                "kernel.sched_autogroup_enabled",
                Some("1".to_owned()),
                Some("0".to_owned()),
                AdviceStep::ByHand { command },
            )
        }
        now => draft.keep("kernel.sched_autogroup_enabled", now.map(|now| u8::from(now).to_string()), None),
    }
}

fn compaction(context: &Context<'_>) -> Setting {
    const NAME: &str = "transparent_hugepage/defrag";
    let draft = Draft::new(
        "with always a program that touches new memory waits while the kernel moves pages about to make a huge one",
        "stalls of the reader when it uses memory for the first time",
    );
    let now = context.system.compaction.clone();
    if now.is_none() {
        let none = Effect::NoneHere("this kernel shows no huge pages".to_owned());
        return draft.effect(none).keep(NAME, None, None);
    }
    if now.as_deref() == Some("always") && has_long_stall(context) {
        let command = "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag".to_owned();
        return draft.into_setting(NAME, now, Some("madvise".to_owned()), AdviceStep::ByHand { command });
    }
    draft.keep(NAME, now, None)
}

/// What tuned(8) holds for networks; shallow idle states are left faster.
const HELD_US: u64 = 3;
const PERIOD_SHORT_US: u64 = 10_000;
/// The kernel refuses a smaller quota (`min_cfs_quota_period`, 1 ms).
const QUOTA_MIN_US: u64 = 1_000;
