//! Figures as one document, for JSON and CBOR.

use super::Figures;
use crate::dtls::SessionCounts;
use crate::endpoint::Counters;
use crate::endpoint::reliable::ReliableCounts;
use crate::interaction::counts::{FilteredRequests, LoopCounts};
use crate::scheduler::PoolSnapshot;
use thalweg_types::document::{Document, MapKey};

/// All figures; counts are since the start.
pub fn to_document(figures: &Figures) -> Document {
    let mut total = LoopCounts::default();
    figures.server.loops.iter().for_each(|counts| total += *counts);
    let scheduler = &figures.server.scheduler;
    let groups = scheduler.groups.iter().map(|one| {
        map([
            ("group", text(one.group.to_string())),
            ("threads", number(one.threads as u64)),
            ("nice", Document::Integer(one.nice.into())),
        ])
    });
    let threads = figures.threads.iter().map(|thread| {
        map([
            ("name", text(&thread.name)),
            ("group", thread.group.map_or(Document::Null, |group| text(group.to_string()))),
            ("nice", Document::Integer(thread.nice.into())),
            ("processor_s", Document::Real(thread.processor_s)),
        ])
    });
    map([
        ("loops", loops(&total)),
        ("filtered_requests", Document::Array(figures.server.filtered.iter().map(filtered).collect())),
        ("protocol", protocol(figures.server.protocol.iter())),
        ("sessions", sessions(&figures.server.sessions)),
        ("connections", connections(&figures.server.connections)),
        ("pools", Document::Array(scheduler.pools.iter().map(pool).collect())),
        ("groups", Document::Array(groups.collect())),
        ("threads", Document::Array(threads.collect())),
        ("refusals", Document::Array(scheduler.refusals.iter().map(|refusal| text(refusal.to_string())).collect())),
        (
            "network",
            map([
                ("hits", number(figures.network.hits)),
                ("joined", number(figures.network.joined)),
                ("requests", number(figures.network.requests)),
                ("validated", number(figures.network.validated)),
                ("evicted", number(figures.network.evicted)),
            ]),
        ),
        ("remote", protocol(std::iter::once(&figures.remote))),
        ("sensing", Document::Array(sensing(figures))),
    ])
}

fn loops(total: &LoopCounts) -> Document {
    map([
        ("received", number(total.received)),
        ("sent", number(total.sent)),
        ("inline", number(total.inline)),
        ("pooled", number(total.pooled)),
        ("unavailable", number(total.unavailable)),
        ("limited", number(total.limited)),
        ("dropped", number(total.dropped)),
        ("put_off", number(total.put_off)),
        ("filtered", number(total.filtered)),
        ("kernel_drops", number(total.kernel_drops)),
        ("truncated", number(total.truncated)),
        ("send_lost", number(total.send_lost)),
        ("answers_2xx", number(total.answers.success)),
        ("answers_4xx", number(total.answers.client_error)),
        ("answers_5xx", number(total.answers.server_error)),
    ])
}

/// Requests of one kind that the kernel dropped.
fn filtered(kind: &FilteredRequests) -> Document {
    map([
        ("method", text(&kind.method)),
        ("path", text(&kind.path)),
        ("pool", text(&kind.pool)),
        ("count", number(kind.count)),
    ])
}

fn protocol<'a>(counters: impl Iterator<Item = &'a Counters> + Clone) -> Document {
    let sum = |of: fn(&Counters) -> u64| number(counters.clone().map(of).sum());
    map([
        ("peers", sum(|one| one.peers as u64)),
        ("observers", sum(|one| one.observers as u64)),
        ("exchanges", sum(|one| one.exchanges as u64)),
        ("requests", sum(|one| one.requests as u64)),
        ("peers_refused", sum(|one| one.peers_refused)),
        ("observers_refused", sum(|one| one.observers_refused)),
        ("observers_evicted", sum(|one| one.observers_evicted)),
        ("bytes_refused", sum(|one| one.bytes_refused)),
        ("malformed", sum(|one| one.malformed)),
        ("duplicates", sum(|one| one.duplicates)),
        ("repetitions", sum(|one| one.repetitions)),
        ("protected_refused", sum(|one| one.protected_refused)),
        ("answers_evicted", sum(|one| one.answers_evicted)),
        ("expired", sum(|one| one.expired)),
        ("answer_bytes", sum(|one| one.answer_bytes as u64)),
        ("transfer_bytes", sum(|one| one.transfer_bytes as u64)),
    ])
}

/// Those of DTLS.
fn sessions(counts: &SessionCounts) -> Document {
    map([
        ("sessions", number(counts.sessions as u64)),
        ("handshakes", number(counts.handshakes as u64)),
        ("challenged", number(counts.challenged)),
        ("established", number(counts.established)),
        ("failed", number(counts.failed)),
        ("evicted", number(counts.evicted)),
        ("unreadable", number(counts.unreadable)),
    ])
}

/// Those of TCP, TLS and WebSocket.
fn connections(counts: &ReliableCounts) -> Document {
    map([
        ("connections", number(counts.connections as u64)),
        ("observers", number(counts.observers as u64)),
        ("inbound_bytes", number(counts.inbound_bytes as u64)),
        ("outbound_bytes", number(counts.outbound_bytes as u64)),
        ("opened", number(counts.opened)),
        ("aborted", number(counts.aborted)),
        ("timed_out", number(counts.timed_out)),
        ("received", number(counts.received)),
        ("sent", number(counts.sent)),
    ])
}

fn pool(pool: &PoolSnapshot) -> Document {
    let record = pool.history.last().copied().unwrap_or_default();
    map([
        ("name", text(&pool.name)),
        ("law", text(pool.law.to_string())),
        ("threads", number(pool.threads as u64)),
        ("threads_max", number(record.threads_max as u64)),
        ("queue", number(pool.gauge.queue as u64)),
        ("accepted", number(pool.totals.accepted)),
        ("refused", number(pool.totals.refused)),
        ("dropped", number(pool.totals.dropped)),
        ("completed", number(pool.totals.completed)),
        ("busy_s", Document::Real(pool.totals.thread_time.busy.as_secs_f64())),
        ("processor_s", Document::Real(pool.totals.thread_time.processor.as_secs_f64())),
        ("wait_mean_s", Document::Real(record.observation.sojourn.as_secs_f64())),
        ("wait_max_s", Document::Real(record.waited_max.as_secs_f64())),
    ])
}

/// What adaptive sensing saves is told in readings, and in processor time as far as the readings of the resource pool tell
/// what one costs.
fn sensing(figures: &Figures) -> Vec<Document> {
    let cost = read_cost_s(figures);
    let of = |(path, report): &(String, crate::resource::SensingReport)| {
        let saved = report.reads_at_fixed_period.saturating_sub(report.reads);
        map([
            ("path", text(path)),
            ("wanted", Document::Boolean(report.is_wanted)),
            ("period_s", Document::Real(report.period.as_secs_f64())),
            ("error", Document::Real(report.policy.error)),
            ("error_max", Document::Real(report.error_max)),
            ("exceeded", number(report.exceeded)),
            ("compared", number(report.compared)),
            ("reads", number(report.reads)),
            ("reads_saved", number(saved)),
            ("processor_saved_s", Document::Real(saved as f64 * cost)),
        ])
    };
    figures.sensing.iter().map(of).collect()
}

/// Mean processor time of a reading in seconds; 0 before the first.
pub(super) fn read_cost_s(figures: &Figures) -> f64 {
    let pool = figures.server.scheduler.pools.iter().find(|pool| pool.name == "resource");
    let of =
        |pool: &PoolSnapshot| pool.totals.thread_time.processor.as_secs_f64() / pool.totals.completed.max(1) as f64;
    pool.map_or(0.0, of)
}

fn map<const N: usize>(members: [(&str, Document); N]) -> Document {
    Document::Map(members.into_iter().map(|(name, value)| (MapKey::from(name), value)).collect())
}

fn text(text: impl Into<String>) -> Document {
    Document::Text(text.into())
}

fn number(number: u64) -> Document {
    Document::Integer(number.into())
}
