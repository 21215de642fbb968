//! The statistics of a server, in lines: text for people, JSON for programs.

use std::fmt::Write;
use std::time::Duration;

use thalweg_coap::dtls::SessionCounts;
use thalweg_coap::endpoint::reliable::ReliableCounts;
use thalweg_coap::interaction::counts::{FilteredRequests, LoopCounts};
use thalweg_coap::interaction::server::ServerSnapshot;
use thalweg_coap::scheduler::PoolSnapshot;
use thalweg_lab::paper5::{ConnectionLine, PoolLine, ServerLine, SessionLine};

use crate::outcome::{Failure, InLine};

/// The counts since the server started, `at` ago, as one object of JSON.
///
/// # Errors
/// It cannot be written as JSON.
pub fn to_json(now: &ServerSnapshot, at: Duration) -> Result<String, Failure> {
    let total = total(&now.loops);
    let line = ServerLine {
        at_s: at.as_secs_f64(),
        received: total.received,
        sent: total.sent,
        inline: total.inline,
        pooled: total.pooled,
        unavailable: total.unavailable,
        dropped: total.dropped,
        put_off: total.put_off,
        limited: total.limited,
        kernel_drops: total.kernel_drops,
        filtered: total.filtered,
        truncated: total.truncated,
        peers_refused: total.peers_refused,
        observers_refused: total.observers_refused,
        observers_evicted: total.observers_evicted,
        bytes_refused: total.bytes_refused,
        sessions: session_line(&now.sessions),
        connections: connection_line(&now.connections),
        demoted: now.demoted.clone(),
        pools: now.scheduler.pools.iter().map(pool_line).collect(),
    };
    serde_json::to_string(&line).map_err(Failure::from_cause)
}

fn session_line(counts: &SessionCounts) -> SessionLine {
    SessionLine {
        open: counts.sessions as u64,
        handshakes: counts.handshakes as u64,
        challenged: counts.challenged,
        established: counts.established,
        failed: counts.failed,
        evicted: counts.evicted,
        unreadable: counts.unreadable,
    }
}

fn connection_line(counts: &ReliableCounts) -> ConnectionLine {
    let ReliableCounts { opened, aborted, timed_out, .. } = *counts;
    ConnectionLine { open: counts.connections as u64, opened, aborted, timed_out }
}

fn pool_line(pool: &PoolSnapshot) -> PoolLine {
    let totals = &pool.totals;
    PoolLine {
        name: pool.name.clone(),
        law: pool.law.to_string(),
        age_s: pool.age.as_secs_f64(),
        threads: pool.threads as u64,
        threads_max: pool.history.last().map_or(0, |record| record.threads_max as u64),
        queue: pool.gauge.queue as u64,
        accepted: totals.accepted,
        refused: totals.refused,
        dropped: totals.dropped,
        completed: totals.completed,
        busy_s: totals.thread_time.busy.as_secs_f64(),
        processor_s: totals.thread_time.processor.as_secs_f64(),
    }
}

/// The counts since `before`, in one line.
pub fn to_text(before: &ServerSnapshot, now: &ServerSnapshot, passed: Duration) -> String {
    let (total, was) = (total(&now.loops), total(&before.loops));
    let per_second = |count: u64, before: u64| ((count - before) as f64 / passed.as_secs_f64()).round();
    let mut line = format!(
        "received {}/s sent {}/s inline {}/s pooled {}/s",
        per_second(total.received, was.received),
        per_second(total.sent, was.sent),
        per_second(total.inline, was.inline),
        per_second(total.pooled, was.pooled),
    );
    let losses = [
        ("5.03", total.unavailable, was.unavailable),
        ("4.29", total.limited, was.limited),
        ("dropped", total.dropped, was.dropped),
        ("notifications put off", total.put_off, was.put_off),
        ("dropped in the kernel", total.filtered, was.filtered),
        ("lost by the kernel", total.kernel_drops, was.kernel_drops),
        ("not sent", total.send_lost, was.send_lost),
        ("too long", total.truncated, was.truncated),
        ("without place for its peer", total.peers_refused, was.peers_refused),
        ("not observing", total.observers_refused, was.observers_refused),
        ("observation ended for others", total.observers_evicted, was.observers_evicted),
        ("too many bytes in handlers", total.bytes_refused, was.bytes_refused),
        ("handshakes failed", now.sessions.failed, before.sessions.failed),
        ("sessions made room for others", now.sessions.evicted, before.sessions.evicted),
        ("connections aborted", now.connections.aborted, before.connections.aborted),
        ("connections timed out", now.connections.timed_out, before.connections.timed_out),
    ];
    for (name, count, before) in losses.iter().filter(|(_, count, before)| count > before) {
        let _ = write!(line, " {name} {}", count - before);
    }
    for kind in &now.filtered {
        let is_alike =
            |one: &&FilteredRequests| (&one.method, &one.path, &one.pool) == (&kind.method, &kind.path, &kind.pool);
        let was = before.filtered.iter().find(is_alike).map_or(0, |one| one.count);
        let count = kind.count.saturating_sub(was);
        if count > 0 {
            let _ = write!(line, "; the kernel dropped {count} {}", shown(kind));
        }
    }
    let (sessions, handshakes) = (now.sessions.sessions, now.sessions.handshakes);
    if sessions + handshakes > 0 {
        let _ = write!(line, "; {sessions} DTLS sessions and {handshakes} handshakes");
    }
    if now.connections.connections > 0 {
        let _ = write!(line, "; {} connections", now.connections.connections);
    }
    now.scheduler.pools.iter().for_each(|pool| describe(pool, &mut line));
    now.demoted.iter().for_each(|path| {
        let _ = write!(line, "; {path} takes too long inline and runs in the pool");
    });
    line
}

/// A kind of requests that the kernel drops, and why.
fn shown(kind: &FilteredRequests) -> String {
    let FilteredRequests { method, path, pool, .. } = kind;
    match method.is_empty() {
        true => "of other kinds".to_owned(),
        false => format!("{method} {} for which {pool} has no room", InLine(path)),
    }
}

fn describe(pool: &PoolSnapshot, line: &mut String) {
    let record = pool.history.last().copied().unwrap_or_default();
    let observation = record.observation;
    let _ = write!(
        line,
        "; {} {} threads {} of {} queue {} wait {:.1} ms max {:.1} ms dropped {}",
        pool.name,
        pool.law,
        pool.threads,
        record.threads_max,
        observation.queue,
        observation.sojourn.as_secs_f64() * 1e3,
        record.waited_max.as_secs_f64() * 1e3,
        record.dropped,
    );
    if let Some(shortage) = &pool.shortage {
        let _ = write!(line, " ({shortage})");
    }
}

fn total(loops: &[LoopCounts]) -> LoopCounts {
    let mut total = LoopCounts::default();
    loops.iter().for_each(|counts| total += *counts);
    total
}
