//! Samples that each layer passed on and lost, from the publisher to the application.

use super::source::{Source, Tally};
use crate::figures::grouped;
use crate::plot::{Stage, grid, ladder};
use crate::report::{Figure, Section};
use crate::table::Table;
use crate::trial::Totals;

pub(super) fn section(source: &Source<'_>) -> Section {
    let mut all = Tally::default();
    source.cells.iter().for_each(|cell| all.join(&cell.tally));
    let sum = |of: fn(&Totals) -> u64| -> u64 { source.result.cells.iter().map(|cell| cell.sum(of)).sum() };
    let rows: Vec<(String, Vec<u64>)> = source
        .each()
        .map(|(cell, data)| {
            let counts = losses(&data.tally, cell.sum(|totals| totals.lost)).map(|(_, count)| count);
            (cell.name.clone(), counts.to_vec())
        })
        .collect();
    let lost = sum(|totals| totals.lost);
    let columns = losses(&all, lost).map(|(name, _)| name);
    let mut figures = vec![
        Figure::new(
            "The pipe narrows where something was lost; samples are counted at both ends, packets between them.",
            ladder("What each layer passed on and lost", &stages(&all, sum)),
        )
        .resting_on(
            "All runs together; the kernel counts for the whole network namespace, so other programs are in its counters. Reliable \
             writers repair what was lost on the way.",
        )
        .with_table(counters(&all)),
    ];
    if rows.iter().any(|(_, counts)| counts.iter().any(|count| *count > 0)) {
        let row = |(name, counts): &(String, Vec<u64>)| {
            [name.clone()].into_iter().chain(counts.iter().map(|count| grouped(*count))).collect()
        };
        let header = [&["cell"][..], &columns].concat();
        let table = Table::of("Losses by cell and layer", &header, rows.iter().map(row));
        figures.push(
            Figure::new(
                "Each field is the loss of one layer in one cell; a dot stands for none.",
                grid("Losses by cell and layer", &columns, &rows),
            )
            .resting_on(
                "All runs of a cell together; the darker, the more digits. Of several flows in a run the first one has what was counted on \
                 whole machines.",
            )
            .with_table(table),
        );
    }
    Section {
        title: "Where samples were lost".to_owned(),
        lead: "From the first measured sample to the end of the drain: publishers, sockets, devices, the links between hosts, IP and reassembly, sockets again, readers."
            .to_owned(),
        seen: vec![culprit(&all, lost)],
        figures,
        ..Section::default()
    }
}

/// Each place where something can get lost, from the publisher to the application.
fn losses(tally: &Tally, lost: u64) -> [(&'static str, u64); 12] {
    // Linux also counts here the ICMP answers that it does not send to datagrams for closed ports, as discovery sends them.
    let discarded = tally.count("ip", &["OutDiscards"]).saturating_sub(tally.count("udp", &["NoPorts"]));
    [
        ("not sent", tally.due - tally.written),
        ("writer overwrote", tally.overwritten_by_writers),
        ("socket out", tally.count("udp", &["SndbufErrors"])),
        ("device out", tally.count("device", &["tx_errors", "tx_drop", "tx_fifo"]) + discarded),
        (
            "link",
            tally.count("queue", &["dropped"]) + tally.count("relay", &["dropped", "missed", "overflowed", "refused"]),
        ),
        ("device in", tally.count("device", &["rx_errors", "rx_drop", "rx_fifo"])),
        ("softnet queue", tally.count("softnet", &["dropped"])),
        ("IP reassembly", tally.count("reassembly", &["ReasmFails", "FragFails"]) + tally.count("ip", &["InDiscards"])),
        ("socket in", tally.count("udp", &["RcvbufErrors", "InCsumErrors", "MemErrors"]).max(tally.socket_drops)),
        ("reader rejected", tally.rejected_at_readers),
        ("reader overwrote", tally.overwritten_at_readers),
        ("samples lost", lost),
    ]
}

fn stages(tally: &Tally, sum: impl Fn(fn(&Totals) -> u64) -> u64) -> Vec<Stage> {
    let lost = |place: usize| losses(tally, 0).get(place).map_or(0, |(_, count)| *count);
    let stage = |name: &str, passed, unit, lost| Stage { name: name.to_owned(), passed, unit, lost };
    let device = |words: &[&str]| Some(tally.count("device", words)).filter(|count| *count > 0);
    let several_devices = {
        let mut devices: Vec<&str> =
            tally.layers.keys().filter_map(|name| name.strip_prefix("device.")?.split('.').next()).collect();
        devices.dedup();
        devices.len() > 1
    };
    let arrived = sum(Totals::received) + tally.overwritten_at_readers;
    vec![
        stage("offered", Some(tally.due), "samples", 0),
        stage("publisher", Some(tally.written), "samples", lost(0)),
        stage("writer's history", Some(tally.transmitted + tally.repaired), "submessages", 0),
        stage("socket out", Some(tally.count("udp", &["OutDatagrams"])), "datagrams", lost(2)),
        stage("queue and device out", device(&["tx_packets"]), "packets", lost(3)),
        stage(if several_devices { "wire" } else { "wire (loopback)" }, None, "packets", lost(4)),
        stage("device in", device(&["rx_packets"]), "packets", lost(5) + lost(6)),
        stage("IP and reassembly", Some(tally.count("ip", &["InDelivers"])), "packets", lost(7)),
        stage("socket in", Some(tally.count("udp", &["InDatagrams"])), "datagrams", lost(8)),
        stage("readers", Some(arrived), "deliveries", sum(|totals| totals.lost).saturating_sub(lost(10))),
        stage("application", Some(sum(Totals::received)), "deliveries", lost(10)),
        stage("in time", Some(sum(|totals| totals.in_time)), "deliveries", sum(|totals| totals.late)),
    ]
}

/// The layer that lost the missing samples, in a sentence.
fn culprit(tally: &Tally, lost: u64) -> String {
    let not_sent = tally.due - tally.written;
    let unsent = match not_sent {
        0 => String::new(),
        count => format!(" {} samples were never written: the publisher lost them.", grouped(count)),
    };
    if lost == 0 {
        let below = losses(tally, 0)[1..9].iter().map(|(_, count)| count).sum::<u64>();
        let despite = match below {
            0 => "and no layer below lost anything",
            _ => "although layers below lost something, of these programs or of others",
        };
        return format!("Every sample that was written arrived, {despite}.{unsent}");
    }
    let places = losses(tally, 0);
    let worst = places[2..11].iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count);
    let where_to = match worst {
        Some((name, count)) => format!("the layer that lost most is “{name}” with {}", grouped(*count)),
        None => "no layer of this host counted a loss: they were lost between writer and reader by design of the QoS, or beyond this host".to_owned(),
    };
    format!("{} samples that were written never arrived; {where_to}.{unsent}", grouped(lost))
}

fn counters(tally: &Tally) -> Table {
    let rows = tally.layers.iter().map(|(name, count)| vec![name.clone(), grouped(*count)]);
    Table::of("Counters that moved, all runs together", &["counter", "count"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(layers: &[(&str, u64)]) -> Tally {
        let layers = layers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Tally { due: 100, written: 100, layers, ..Tally::default() }
    }

    #[track_caller]
    fn check(tally: &Tally, lost: u64, expect: &str) {
        assert!(culprit(tally, lost).contains(expect), "{}", culprit(tally, lost));
    }

    #[test]
    fn the_layer_that_lost_most_is_named() {
        check(&tally(&[("udp.RcvbufErrors", 7), ("device.lo.rx_drop", 3)]), 5, "“socket in” with 7");
        check(&tally(&[("udp6.Udp6RcvbufErrors", 7)]), 5, "“socket in” with 7");
        check(&tally(&[("device.eth0.rx_drop", 9), ("udp.RcvbufErrors", 7)]), 5, "“device in” with 9");
        let unanswered = [("ip.OutDiscards", 218), ("udp.NoPorts", 224), ("udp.RcvbufErrors", 88)];
        check(&tally(&unanswered), 88, "“socket in” with 88");
        check(&tally(&[("ip.OutDiscards", 5), ("udp.RcvbufErrors", 3)]), 5, "“device out” with 5");
        check(&tally(&[("reassembly.ReasmFails", 1)]), 1, "“IP reassembly”");
        check(&Tally { overwritten_at_readers: 4, ..tally(&[]) }, 4, "“reader overwrote” with 4");
        check(&Tally { rejected_at_readers: 4, ..tally(&[]) }, 4, "“reader rejected” with 4");
        check(&tally(&[("relay.host0-host1.dropped", 5), ("queue.to_host1.dropped", 1)]), 4, "“link” with 6");
        check(&tally(&[]), 3, "no layer of this host");
        check(&tally(&[("udp.RcvbufErrors", 7)]), 0, "although layers below lost something");
        check(&tally(&[("udp.InDatagrams", 7)]), 0, "no layer below lost anything");
        check(&Tally { written: 90, ..tally(&[]) }, 0, "10 samples were never written");
    }
}
