//! `thalweg coap top`.

use std::fmt::Write;
use std::io::{IsTerminal, Write as _, stdout};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::message::{RequestBuf, content_format};
use thalweg_coap::statistics::STATISTICS_PATH;

use super::protection::ClientProtection;
use super::target::{TargetUri, failure, representation};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, InLine, Shown, print_line};

/// Options of `coap top`.
#[derive(Args, Debug)]
pub struct FigureOptions {
    /// The gateway to look at, such as 127.0.0.1:5683.
    #[arg(value_name = "HOST", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Look again after SECONDS (default: 1).
    #[arg(long, value_name = "SECONDS", default_value = "1", hide_default_value = true, value_parser = crate::parse::seconds)]
    pub every: Duration,

    /// Show the figures once, counted since the start, and end (default: go on until Ctrl-C, counted since the last look).
    #[arg(long)]
    pub once: bool,

    /// Print the figures as one JSON object; needs --once (default: a screen of text).
    #[arg(long, requires = "once")]
    pub json: bool,

    #[command(flatten)]
    /// The keys of the request.
    pub protection: ClientProtection,
}

/// Shows the figures of a gateway.
///
/// # Errors
/// It cannot be reached, or does not tell its figures.
pub fn run(options: &FigureOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let server = options.target.address()?;
    let mut client = options.protection.client(&options.target, server, PATIENCE)?;
    let mut look = || {
        let request = RequestBuf::get(STATISTICS_PATH).with_accept(content_format::JSON);
        let answer = client.exchange(request, Confirmability::Confirmable, PATIENCE);
        let text = representation(&answer.map_err(|error| failure(&error))?)?;
        serde_json::from_str::<Value>(&text)
            .map_err(|error| Failure::Failed(format!("{server} tells no figures: {error}")))
    };
    let mut before = look()?;
    if options.once {
        return if options.json {
            print_line(&before)
        } else {
            print_line(screen(&Value::Null, &before, None).trim_end())
        };
    }
    let mut looked = Instant::now();
    let is_screen = stdout().is_terminal();
    loop {
        interrupt.wait_until(looked + options.every);
        if interrupt.came() {
            break;
        }
        let now = look()?;
        let text = Shown(screen(&before, &now, Some(looked.elapsed()))).to_string();
        looked = Instant::now();
        before = now;
        // Home, the text, and nothing of the one before.
        let shown = if is_screen { format!("\x1b[H\x1b[2J{text}") } else { text };
        if stdout().write_all(shown.as_bytes()).and_then(|()| stdout().flush()).is_err() {
            break;
        }
    }
    Ok(())
}

/// All figures as text; rates where the time since `before` is known.
fn screen(before: &Value, now: &Value, passed: Option<Duration>) -> String {
    let rate = |total: u64, was: u64| match passed {
        Some(passed) => format!("{:.0}/s", total.saturating_sub(was) as f64 / passed.as_secs_f64().max(1e-3)),
        None => total.to_string(),
    };
    let count = |place: &str| {
        let of = |figures: &Value| figures.pointer(place).and_then(Value::as_u64).unwrap_or_default();
        rate(of(now), of(before))
    };
    let state = |place: &str| now.pointer(place).and_then(Value::as_u64).unwrap_or_default();
    let mut text = format!(
        "received {} sent {} answers 2.xx {} 4.xx {} 5.xx {}\n",
        count("/loops/received"),
        count("/loops/sent"),
        count("/loops/answers_2xx"),
        count("/loops/answers_4xx"),
        count("/loops/answers_5xx"),
    );
    let _ = writeln!(
        text,
        "peers {} observers {} refused {} dropped {} other things: requests {} cache hits {} under way {}",
        state("/protocol/peers"),
        state("/protocol/observers"),
        count("/protocol/peers_refused"),
        count("/loops/dropped"),
        count("/network/requests"),
        count("/network/hits"),
        state("/remote/requests"),
    );
    for kind in list(now, "/filtered_requests") {
        let is_alike = |one: &&Value| ["method", "path", "pool"].iter().all(|key| one[*key] == kind[*key]);
        let was = list(before, "/filtered_requests").iter().find(is_alike).map_or(0, |one| whole(one, "count"));
        let count = rate(whole(kind, "count").unsigned_abs(), was.unsigned_abs());
        let (method, path, pool) = (word(kind, "method"), InLine(word(kind, "path")), word(kind, "pool"));
        let _ = match method {
            "" => writeln!(text, "dropped in the kernel {count} of other kinds"),
            _ => writeln!(text, "dropped in the kernel {count} {method} {path}: pool {pool} has no room"),
        };
    }
    list(now, "/pools").iter().for_each(|pool| {
        let _ = writeln!(
            text,
            "pool {:<10} {:<12} threads {:>3} of {:<3} queue {:<5} wait {:.1} ms max {:.1} ms",
            word(pool, "name"),
            word(pool, "law"),
            whole(pool, "threads"),
            whole(pool, "threads_max"),
            whole(pool, "queue"),
            number(pool, "wait_mean_s") * 1e3,
            number(pool, "wait_max_s") * 1e3,
        );
    });
    for group in list(now, "/groups") {
        let _ = writeln!(
            text,
            "group {:<12} nice {:>3} threads {}",
            word(group, "group"),
            whole(group, "nice"),
            whole(group, "threads")
        );
        let name = group["group"].as_str();
        for thread in list(now, "/threads").iter().filter(|thread| thread["group"].as_str() == name) {
            let (nice, seconds) = (whole(thread, "nice"), number(thread, "processor_s"));
            let _ = writeln!(text, "  {:<16} nice {nice:>3} processor {seconds:.2} s", word(thread, "name"));
        }
    }
    for one in list(now, "/sensing") {
        let _ = writeln!(
            text,
            "sensing /{} every {:.3} s error {} of {} reads {} saved {} ({:.3} s of a processor)",
            word(one, "path"),
            number(one, "period_s"),
            number(one, "error_max"),
            number(one, "error"),
            whole(one, "reads"),
            whole(one, "reads_saved"),
            number(one, "processor_saved_s"),
        );
    }
    text
}

fn list<'a>(figures: &'a Value, place: &str) -> &'a [Value] {
    figures.pointer(place).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn word<'a>(one: &'a Value, key: &str) -> &'a str {
    one[key].as_str().unwrap_or_default()
}

fn whole(one: &Value, key: &str) -> i64 {
    one[key].as_i64().unwrap_or_default()
}

fn number(one: &Value, key: &str) -> f64 {
    one[key].as_f64().unwrap_or_default()
}

/// Time for one look.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_kernel_dropped_is_told_by_method_path_and_pool() {
        let figures = |count: u64, others: u64| {
            json!({"filtered_requests": [
                {"method": "GET", "path": "/slow", "pool": "blocking", "count": count},
                {"method": "", "path": "", "pool": "", "count": others},
            ]})
        };
        let once = screen(&Value::Null, &figures(500, 7), None);
        assert!(once.contains("dropped in the kernel 500 GET /slow: pool blocking has no room\n"), "{once}");
        assert!(once.contains("dropped in the kernel 7 of other kinds\n"), "{once}");
        let live = screen(&figures(500, 7), &figures(900, 7), Some(Duration::from_secs(2)));
        assert!(live.contains("dropped in the kernel 200/s GET /slow: pool blocking"), "{live}");
    }
}
