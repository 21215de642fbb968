//! `thalweg coap load --observe`.

use clap::Args;
use thalweg_coap::identity::Transport;
use thalweg_host::pin_to_cpu;
use thalweg_lab::coap_load::{self, ObserverIdentity, ObserverLoadPlan, ObserverLoadResult};
use thalweg_report::figures::{grouped, rounded};

use super::load::LoadOptions;
use crate::commands::laboratory::from_lab;
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};

/// Observers in place of requests.
#[derive(Args, Debug)]
pub struct ObserverOptions {
    /// In place of requests, register N observers of PATH (default: /note), change it by PUT, and report how long a change takes to reach
    /// them. To a server on the loopback network of IPv4 each is at an address of its own, from 127.64.0.1 on; elsewhere they differ by their
    /// tokens, and the server sees one client (default: no observers).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["clients", "outstanding", "rate", "phases", "duration", "warm_up", "con", "size", "expect", "no_expect", "flood", "windows", "self_check"])]
    pub observe: Option<u32>,

    /// Change the observed resource N times, a second after all know the state before (default: 5).
    #[arg(long, value_name = "N", default_value_t = 5, hide_default_value = true, requires = "observe")]
    pub changes: u32,
}

/// Registers `count` observers and prints in which time changes reach them.
///
/// # Errors
/// The server cannot be reached, its resource cannot be observed or changed, or the user interrupted it.
pub fn run(options: &LoadOptions, count: u32, interrupt: &Interrupt) -> Result<(), Failure> {
    if options.target.transport != Transport::Udp {
        return Err(Failure::Usage("--observe needs a target of coap, over UDP".to_owned()));
    }
    let beside = &options.beside;
    if let Some(cpu) = beside.cpu {
        pin_to_cpu(cpu).map_err(|error| Failure::Usage(format!("CPU {cpu} cannot be used: {error}")))?;
    }
    let path = match options.target.resource.as_str() {
        "/" => "/note",
        path => path,
    };
    let plan = ObserverLoadPlan {
        target: options.target.address()?,
        resource: options.path.clone().unwrap_or_else(|| path.to_owned()),
        observers: count,
        changes: options.observers.changes,
        time_limit: options.time_limit,
        server_process: beside.server_pid,
    };
    let result = coap_load::run_observers(&plan, &interrupt.flag()).map_err(from_lab)?;
    if beside.json {
        print_line(serde_json::to_string(&result).map_err(Failure::from_cause)?)
    } else {
        print_line(text(&result))
    }
}

/// The result for people.
fn text(result: &ObserverLoadResult) -> String {
    let by = match result.told_apart_by {
        ObserverIdentity::Address => "each at an address of its own",
        ObserverIdentity::Token => "told apart by their tokens",
    };
    let mut lines = vec![format!(
        "registered {} of {} observers in {} s, {by}; refused {}",
        grouped(result.registered),
        grouped(result.observers),
        rounded(result.registration_s),
        grouped(result.refused)
    )];
    lines.extend(result.memory.map(|memory| {
        format!(
            "server {} KiB of memory, {} before them: {} bytes for each",
            grouped(memory.after_kib),
            grouped(memory.before_kib),
            grouped(memory.each_bytes)
        )
    }));
    let told = |time: Option<f64>| time.map_or_else(|| "–".to_owned(), rounded);
    lines.extend(result.changes.iter().zip(1..).map(|(change, number)| {
        format!(
            "change {number} reached {}, missing {}; time in µs: p50 {} p99 {} max {}",
            grouped(change.reached),
            grouped(change.missing),
            told(change.p50_us),
            told(change.p99_us),
            told(change.max_us)
        )
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use thalweg_lab::coap_load::{ChangeFigures, ObserverMemory};

    use super::*;

    #[test]
    fn a_result_names_who_was_told_when_and_who_was_not() {
        let change = ChangeFigures {
            reached: 99,
            missing: 1,
            p50_us: Some(400.0),
            p99_us: Some(900.0),
            max_us: Some(f64::INFINITY),
        };
        let result = ObserverLoadResult {
            schema: String::new(),
            told_apart_by: ObserverIdentity::Token,
            observers: 120,
            registered: 100,
            refused: 20,
            registration_s: 0.5,
            memory: Some(ObserverMemory { before_kib: 9000, after_kib: 9100, each_bytes: 1024 }),
            changes: vec![change],
        };
        let told = text(&result);
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].contains("100 of 120 observers") && lines[0].contains("tokens; refused 20"), "{told}");
        assert!(lines[1].contains("1,024 bytes for each"), "{told}");
        assert_eq!(lines[2], "change 1 reached 99, missing 1; time in µs: p50 400 p99 900 max ∞");
    }
}
