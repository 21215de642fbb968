//! Figures in the text format of OpenMetrics 1.0.

use std::fmt;

use thalweg_metrics::{DescriptorEncoder, LabelledValue, MetricType, NoLabelSet, counters, gauges};

use super::Figures;
use super::document::read_cost_s;
use crate::endpoint::Counters;
use crate::interaction::counts::LoopCounts;
use crate::scheduler::observer::WaitHistogram;

/// All figures as one exposition; names begin with `thalweg_coap_`.
pub fn to_open_metrics(figures: &Figures) -> String {
    let exposition = Exposition(figures.clone());
    thalweg_metrics::to_open_metrics("thalweg_coap", move |encoder| exposition.encode(encoder))
}

#[derive(Debug)]
struct Exposition(Figures);

impl Exposition {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let figures = &self.0;
        self.encode_loops(encoder)?;
        self.encode_protocol(encoder)?;
        self.encode_links(encoder)?;
        self.encode_pools(encoder)?;
        let network = &figures.network;
        let kinds = [("hit", network.hits), ("joined", network.joined), ("request", network.requests)];
        let lines = kinds.map(|(kind, count)| (vec![("kind", kind)], count));
        counters(encoder, "network_requests", "Requests to other things, by how they were answered", &lines)?;
        let lines = [(Vec::new(), network.validated)];
        counters(encoder, "network_validated", "Answers of other things that confirmed the cache", &lines)?;
        let cost = read_cost_s(figures);
        let sensing = |of: fn(&crate::resource::SensingReport) -> f64| {
            let line = |(path, report): &'_ (String, _)| (path.clone(), of(report));
            figures.sensing.iter().map(line).collect::<Vec<_>>()
        };
        let by_path = |values: &[(String, f64)], encoder: &mut DescriptorEncoder, name, help| {
            let lines: Vec<LabelledValue<'_, f64>> =
                values.iter().map(|(path, value)| (vec![("path", path.as_str())], *value)).collect();
            gauges(encoder, name, help, &lines)
        };
        let saved =
            |report: &crate::resource::SensingReport| report.reads_at_fixed_period.saturating_sub(report.reads) as f64;
        by_path(&sensing(|report| report.period.as_secs_f64()), encoder, "sensing_period_seconds", "Reading period")?;
        by_path(&sensing(|report| report.error_max), encoder, "sensing_error_max", "Largest difference of readings")?;
        by_path(&sensing(saved), encoder, "sensing_reads_saved", "Readings less than at the shortest period")?;
        let total: f64 = figures.sensing.iter().map(|(_, report)| saved(report)).sum::<f64>() * cost;
        gauges(encoder, "sensing_processor_saved_seconds", "Processor time of readings not made", &[(vec![], total)])
    }

    fn encode_loops(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut total = LoopCounts::default();
        self.0.server.loops.iter().for_each(|counts| total += *counts);
        let answers = [
            (vec![("class", "2xx")], total.answers.success),
            (vec![("class", "4xx")], total.answers.client_error),
            (vec![("class", "5xx")], total.answers.server_error),
        ];
        counters(encoder, "answers", "Answers by the class of their code", &answers)?;
        let datagrams = [(vec![("direction", "in")], total.received), (vec![("direction", "out")], total.sent)];
        counters(encoder, "datagrams", "Datagrams", &datagrams)?;
        let lost = [
            (vec![("where", "kernel")], total.kernel_drops),
            (vec![("where", "filter")], total.filtered),
            (vec![("where", "loop")], total.dropped),
            (vec![("where", "too_long")], total.truncated),
            (vec![("where", "sending")], total.send_lost),
        ];
        counters(encoder, "lost", "Datagrams that were lost or dropped", &lost)?;
        let kinds = self.0.server.filtered.iter().map(|kind| {
            let labels =
                vec![("method", kind.method.as_str()), ("path", kind.path.as_str()), ("pool", kind.pool.as_str())];
            (labels, kind.count)
        });
        let kinds: Vec<LabelledValue<'_, u64>> = kinds.collect();
        counters(encoder, "filtered_requests", "Requests that the kernel dropped for a pool without room", &kinds)?;
        let refused = [
            (vec![("reason", "overload")], total.unavailable),
            (vec![("reason", "rate")], total.limited),
            (vec![("reason", "peers")], self.sum(|one| one.peers_refused)),
            (vec![("reason", "observers")], self.sum(|one| one.observers_refused)),
            (vec![("reason", "bytes")], self.sum(|one| one.bytes_refused)),
            (vec![("reason", "protection")], self.sum(|one| one.protected_refused)),
            (vec![("reason", "malformed")], self.sum(|one| one.malformed)),
        ];
        counters(encoder, "refused", "Requests and datagrams that were refused", &refused)?;
        let put_off = [(Vec::new(), total.put_off)];
        counters(encoder, "notifications_put_off", "Notifications that were put off for want of time", &put_off)
    }

    fn encode_protocol(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let gauge = |of: fn(&Counters) -> u64| [(Vec::new(), self.sum(of) as f64)];
        gauges(encoder, "peers", "Peers that are remembered", &gauge(|one| one.peers as u64))?;
        let observers = self.sum(|one| one.observers as u64) + self.0.server.connections.observers as u64;
        gauges(encoder, "observers", "Registrations of clients", &[(Vec::new(), observers as f64)])?;
        gauges(encoder, "exchanges", "Requests that handlers work on", &gauge(|one| one.exchanges as u64))?;
        let remote = [(vec![], self.0.remote.requests as f64)];
        gauges(encoder, "remote_requests", "Own requests and observations that are not over", &remote)?;
        let counts = [(Vec::new(), self.sum(|one| one.duplicates))];
        counters(encoder, "duplicates", "Requests that came before", &counts)?;
        let counts = [(Vec::new(), self.sum(|one| one.repetitions))];
        counters(encoder, "repetitions", "Messages that were sent again", &counts)
    }

    /// Sessions and connections.
    fn encode_links(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (sessions, connections) = (&self.0.server.sessions, &self.0.server.connections);
        gauges(encoder, "sessions", "DTLS sessions", &[(Vec::new(), sessions.sessions as f64)])?;
        let handshakes =
            [(vec![("outcome", "established")], sessions.established), (vec![("outcome", "failed")], sessions.failed)];
        counters(encoder, "handshakes", "DTLS handshakes that are over", &handshakes)?;
        let help = "Connections over TCP, TLS and WebSocket";
        gauges(encoder, "connections", help, &[(Vec::new(), connections.connections as f64)])?;
        let ended =
            [(vec![("reason", "aborted")], connections.aborted), (vec![("reason", "silence")], connections.timed_out)];
        counters(encoder, "connections_ended", "Connections that the server ended", &ended)
    }

    fn encode_pools(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let scheduler = &self.0.server.scheduler;
        let groups: Vec<(String, f64)> =
            scheduler.groups.iter().map(|one| (one.group.to_string(), one.threads as f64)).collect();
        let lines: Vec<LabelledValue<'_, f64>> =
            groups.iter().map(|(group, count)| (vec![("group", group.as_str())], *count)).collect();
        gauges(encoder, "threads", "Threads by their group", &lines)?;
        let of = |value: fn(&crate::scheduler::PoolSnapshot) -> f64| -> Vec<LabelledValue<'_, f64>> {
            scheduler.pools.iter().map(|pool| (vec![("pool", pool.name.as_str())], value(pool))).collect()
        };
        gauges(encoder, "pool_threads", "Threads of a pool", &of(|pool| pool.threads as f64))?;
        gauges(encoder, "pool_queue", "Jobs that wait", &of(|pool| pool.gauge.queue as f64))?;
        let help = "Time in the queue of a pool, in seconds";
        let mut metric = encoder.encode_descriptor("queue_delay_seconds", help, None, MetricType::Histogram)?;
        for pool in &scheduler.pools {
            let bounds = WaitHistogram::BOUNDS.iter().map(std::time::Duration::as_secs_f64).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(pool.totals.waits.0).collect();
            let labels = [("pool", pool.name.as_str())];
            let sum = pool.totals.waited.as_secs_f64();
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, pool.totals.taken, &buckets, None)?;
        }
        Ok(())
    }

    fn sum(&self, of: fn(&Counters) -> u64) -> u64 {
        self.0.server.protocol.iter().map(of).sum()
    }
}
