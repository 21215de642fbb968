//! Laws of flow controllers and of the order among writers: participants in virtual time.

use std::time::Duration;

use super::tests::*;
use super::*;
use crate::flow_control::{Amount, FlowControllerSettings, Scheduling};
use crate::outbox::Outbox;
use crate::qos::{BACKGROUND, History, Method, ReaderQos, Reliability, Transmission, WriterQos};
use crate::reader::Reader;
use crate::rng::Rng;
use crate::shared::Shared;
use crate::types::{EntityId, Keyed};
use crate::writer::Writer;

const MILLISECOND: Duration = Duration::from_millis(1);

fn asynchronous(controller: &str) -> WriterQos {
    let transmission = Transmission::by(Method::asynchronous(controller));
    WriterQos { transmission, ..reliable_writer(History::KeepAll) }
}

fn tokens(max: u32, added: u32, period: Duration, bytes: u32) -> FlowControllerSettings {
    FlowControllerSettings {
        max_tokens: Amount::Limited(max),
        tokens_added_per_period: Amount::Limited(added),
        period,
        bytes_per_token: Amount::Limited(bytes),
        ..FlowControllerSettings::default()
    }
}

fn best_effort() -> WriterQos {
    WriterQos { reliability: Reliability::BestEffort, history: History::KeepAll, ..WriterQos::default() }
}

fn entity(writer: &Shared<Writer>) -> EntityId {
    writer.lock().guid().entity
}

/// Two or more participants; the first has a controller "link" and a writer under it, the others have readers.
struct Transfer {
    net: Net,
    writer: Shared<Writer>,
    readers: Vec<Shared<Reader>>,
}

fn transfer(nodes: u8, settings: FlowControllerSettings) -> Transfer {
    let mut net = Net::new(nodes);
    let now = net.now;
    net.nodes[0].participant.create_flow_controller(now, "link", settings).expect("legal settings");
    let writer = net.writer(0, asynchronous("link"), Keyed::No);
    let reader = |net: &mut Net, node| net.reader(node, reliable_reader(History::KeepAll), Keyed::No);
    let readers = (1..usize::from(nodes)).map(|node| reader(&mut net, node)).collect();
    net.run_for(SECOND);
    net.sent.clear();
    Transfer { net, writer, readers }
}

impl Transfer {
    fn write(&mut self, samples: usize, bytes: usize) {
        for n in 0..samples {
            let mut sample = vec![7; bytes];
            sample[0] = n as u8;
            assert!(self.net.write(0, &self.writer, &sample));
        }
    }

    /// Bytes of the writer's samples that were sent, once for each destination.
    fn paid(&self) -> impl Iterator<Item = (Instant, u64)> {
        let writer = entity(&self.writer);
        let own = move |sent: &&Sent| sent.from == 0 && sent.writers.contains(&writer);
        self.net.sent.iter().filter(own).map(|sent| (sent.at, sent.bytes * sent.destinations))
    }

    fn total(&self) -> f64 {
        self.paid().map(|(_, bytes)| bytes as f64).sum()
    }

    /// Checks that in no stretch of time more was sent than a full bucket and the tokens added meanwhile, but for `slack` bytes.
    #[track_caller]
    fn check_bursts(&self, bucket: f64, rate: f64, slack: f64) {
        let (mut level, mut last) = (0.0f64, self.net.sent[0].at);
        for (at, bytes) in self.paid() {
            level = (level - at.since(last).as_secs_f64() * rate).max(0.0) + bytes as f64;
            last = at;
            assert!(level <= bucket + slack, "{level} bytes in a burst, the bucket holds {bucket}");
        }
    }
}

#[track_caller]
fn near(got: f64, expect: f64, tolerance: f64) {
    assert!((got / expect - 1.0).abs() <= tolerance, "{got} instead of {expect}");
}

#[test]
fn odd_settings_give_their_rate_and_no_burst_above_the_bucket() {
    for (settings, sample) in [
        (tokens(11, 3, Duration::from_micros(1_703), 1_337), 5_000),
        (tokens(1_999, 997, Duration::from_micros(313), 7), 100),
        (tokens(2, 1, Duration::from_micros(36_500), 33_000), 32_768),
        (tokens(9_001, 1_250_001, SECOND, 1), 3_000),
    ] {
        let mut transfer = transfer(2, settings);
        let (Amount::Limited(max), Amount::Limited(added), Amount::Limited(bytes)) =
            (settings.max_tokens, settings.tokens_added_per_period, settings.bytes_per_token)
        else {
            unreachable!("all are limited")
        };
        let bucket = f64::from(max) * f64::from(bytes);
        let rate = f64::from(added) * f64::from(bytes) / settings.period.as_secs_f64();
        let seconds = (6_000_000.0 / rate).min(4.0);
        transfer.write((rate * seconds * 1.1) as usize / sample + 1, sample);
        transfer.net.run_for(Duration::from_secs_f64(seconds));
        let mean = (transfer.total() - bucket.min(rate * settings.period.as_secs_f64())) / seconds;
        near(mean, rate, 0.01);
        transfer.check_bursts(bucket, rate, 1_500.0);
        assert!(!transfer.writer.lock().all_acknowledged(), "the test is long enough");
        transfer.net.run_for(SECOND);
        assert!(transfer.writer.lock().all_acknowledged());
    }
}

#[test]
fn every_destination_is_paid_for() {
    let rate = 400_000.0;
    let mut transfer = transfer(3, tokens(10, 400, SECOND, 1_000));
    transfer.write(400, 1_000);
    transfer.net.run_for(SECOND * 2);
    near(transfer.total(), 2.0 * rate, 0.03);
    let arrived = take(&transfer.net, &transfer.readers[0]).len();
    near(arrived as f64, rate / 1_060.0, 0.05);
    transfer.check_bursts(10_000.0, rate, 200.0);
}

#[test]
fn new_settings_are_effective_at_once_while_a_transfer_runs() {
    let mut transfer = transfer(2, tokens(1, 1, SECOND * 3_600, 10_000));
    transfer.write(1_000, 1_000);
    transfer.net.run_for(SECOND);
    assert!(transfer.total() < 12_000.0, "the next token comes in an hour");
    for (rate, expect) in [(100_000, 100_000.0), (500_000, 500_000.0), (50_000, 50_000.0)] {
        let before = transfer.total();
        let now = transfer.net.now;
        let settings = tokens(5_000, rate, SECOND, 1);
        transfer.net.nodes[0].participant.set_flow_controller(now, "link", settings).unwrap();
        transfer.net.run_for(SECOND);
        near(transfer.total() - before, expect, 0.08);
    }
}

#[test]
fn repairs_pay_as_well_and_neither_they_nor_new_samples_starve() {
    for seed in 0..8 {
        let rate = 1_000_000.0;
        let mut transfer = transfer(2, tokens(20, 1_000, SECOND, 1_000));
        transfer.net.rng = Rng::new(seed);
        transfer.net.loss = 0.2;
        transfer.write(2_000, 1_000);
        let (mut last, mut total) = (transfer.writer.lock().counters(), 0.0);
        for _ in 0..8 {
            transfer.net.run_for(SECOND / 4);
            let counters = transfer.writer.lock().counters();
            // While heartbeats are lost in a row, the writer waits for its reader and not for tokens.
            if transfer.total() - total > rate / 4.0 * 0.8 {
                assert!(counters.transmitted > last.transmitted + 50, "new samples starve, seed {seed}");
                assert!(counters.repaired > last.repaired + 10, "repairs starve, seed {seed}");
            }
            (last, total) = (counters, transfer.total());
        }
        assert!(transfer.total() <= 2.0 * rate * 1.01 + 20_000.0, "{} bytes in 2 s", transfer.total());
        transfer.check_bursts(20_000.0, rate, 1_500.0);
        transfer.net.run_for(SECOND * 8);
        let samples = take(&transfer.net, &transfer.readers[0]);
        assert!(first_bytes(&samples).iter().enumerate().all(|(n, first)| *first == n as u8));
        assert_eq!(samples.len(), 2_000, "seed {seed}");
    }
}

#[test]
fn large_samples_are_repaired_within_the_tokens() {
    let mut transfer = transfer(2, tokens(8, 1_000, SECOND, 1_500));
    transfer.net.loss = 0.2;
    transfer.write(20, 60_000);
    transfer.net.run_for(SECOND);
    assert!(transfer.total() <= 1_500_000.0 * 1.01 + 12_000.0);
    transfer.check_bursts(12_000.0, 1_500_000.0, 1_500.0);
    transfer.net.run_for(SECOND * 5);
    assert_eq!(take(&transfer.net, &transfer.readers[0]).len(), 20);
}

/// The writers of the samples in the order in which they left, runs of one writer as one.
fn order(scheduling: Scheduling, qos: [(i32, Duration); 3]) -> Vec<usize> {
    let mut net = Net::new(2);
    let now = net.now;
    let settings = FlowControllerSettings { scheduling, ..tokens(1, 1, MILLISECOND, 1_000) };
    net.nodes[0].participant.create_flow_controller(now, "link", settings).expect("legal settings");
    let writers = qos.map(|(priority, budget)| {
        let mut qos = WriterQos { transport_priority: priority, ..asynchronous("link") };
        qos.timing.latency_budget = budget;
        net.writer(0, qos, Keyed::No)
    });
    let mut reader = reliable_reader(History::KeepAll);
    reader.timing.latency_budget = SECOND * 100;
    net.reader(1, reader, Keyed::No);
    net.run_for(SECOND);
    net.sent.clear();
    for _ in 0..4 {
        for writer in &writers {
            assert!(net.write(0, writer, &[1; 900]));
        }
        net.run_for(Duration::from_micros(100));
    }
    net.run_for(SECOND);
    let ids = writers.each_ref().map(entity);
    let index = |writer: &EntityId| ids.iter().position(|id| id == writer);
    net.sent.iter().flat_map(|sent| sent.writers.iter().filter_map(index)).collect()
}

#[test]
fn controllers_serve_their_writers_in_the_order_of_their_scheduling() {
    let plain = (0, Duration::ZERO);
    let hpf = order(Scheduling::HighestPriorityFirst, [plain, (9, Duration::ZERO), plain]);
    assert_eq!(hpf.len(), 12);
    // The first one found the bucket full before the others had written.
    assert_eq!(hpf[1..5].iter().filter(|writer| **writer == 1).count(), 4 - usize::from(hpf[0] == 1), "{hpf:?}");
    let rest: Vec<usize> = hpf[1..].iter().copied().filter(|writer| *writer != 1).collect();
    assert!(rest.windows(2).all(|pair| pair[0] != pair[1]), "equals take turns: {hpf:?}");

    let edf = order(Scheduling::EarliestDeadlineFirst, [(9, SECOND), (0, MILLISECOND * 2), (0, Duration::ZERO)]);
    let last = |wanted| edf.iter().rposition(|writer| *writer == wanted).unwrap();
    assert!(last(2) < last(1) && last(1) < last(0), "{edf:?}");
    assert_eq!(edf[9..], [0, 0, 0], "{edf:?}");

    let round = order(Scheduling::RoundRobin, [(9, Duration::ZERO), plain, (-3, SECOND)]);
    assert!(round.windows(3).all(|turn| turn[0] != turn[1] && turn[0] != turn[2] && turn[1] != turn[2]), "{round:?}");
}

#[test]
fn a_writer_that_always_has_something_waiting_does_not_starve_others_by_deadline() {
    let mut net = Net::new(2);
    let now = net.now;
    let settings =
        FlowControllerSettings { scheduling: Scheduling::EarliestDeadlineFirst, ..tokens(2, 1, MILLISECOND, 1_500) };
    net.nodes[0].participant.create_flow_controller(now, "link", settings).expect("legal settings");
    let [steady, late] = [0, 0].map(|_| net.writer(0, asynchronous("link"), Keyed::No));
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    net.sent.clear();
    for n in 0..300 {
        // Three samples in two milliseconds, where there are tokens for two.
        net.write(0, &steady, &[0; 1_400]);
        if n == 150 {
            net.write(0, &late, &[0; 1_400]);
        }
        net.run_for(Duration::from_micros(667));
    }
    net.run_for(SECOND);
    let order: Vec<EntityId> = net.sent.iter().flat_map(|sent| sent.writers.iter().copied()).collect();
    assert_eq!(order.len(), 602, "every sample in two fragments");
    let place = order.iter().position(|writer| *writer == entity(&late)).expect("it was sent");
    assert!((298..=308).contains(&place), "in the order of writing: {place}");
}

/// The writers whose samples are in the next outbox of node 0 with samples, in order.
fn next_outbox(net: &mut Net) -> Vec<EntityId> {
    let mut outbox = Outbox::new();
    loop {
        let more = net.nodes[0].participant.poll_transmit(net.now, &mut outbox);
        assert!(outbox.len() <= 66, "an outbox has a bound: {}", outbox.len());
        let writers: Vec<EntityId> = outbox.datagrams().flat_map(|one| writers_in(&one.to_vec())).collect();
        if !writers.is_empty() || !more {
            return writers;
        }
        outbox.clear();
    }
}

#[test]
fn a_synchronous_writer_of_high_priority_does_not_wait_for_a_background_transfer() {
    let mut net = Net::new(2);
    let background = net.writer(0, asynchronous(BACKGROUND), Keyed::No);
    let urgent = net.writer(0, WriterQos { transport_priority: 5, ..best_effort() }, Keyed::No);
    net.reader(1, ReaderQos::default(), Keyed::No);
    net.run_for(SECOND);
    for _ in 0..100 {
        net.write(0, &background, &[0; 30_000]);
    }
    for _ in 0..200 {
        net.run_for(MILLISECOND);
        net.write(0, &urgent, &[1; 100]);
        assert_eq!(next_outbox(&mut net).first(), Some(&entity(&urgent)), "it leaves with the very next datagram");
    }
    let sent = background.lock().counters().transmitted;
    assert!(sent > 1_000, "the transfer went on meanwhile: {sent}");
}

#[test]
fn higher_priority_leaves_first_and_equals_wait_for_one_outbox_at_most() {
    let mut net = Net::new(2);
    let mut writer = |priority| {
        let qos = WriterQos { transport_priority: priority, ..best_effort() };
        net.writer(0, qos, Keyed::No)
    };
    let (bulk, equal, high, low) = (writer(0), writer(0), writer(7), writer(-1));
    net.reader(1, ReaderQos::default(), Keyed::No);
    net.run_for(SECOND);
    for _ in 0..100 {
        net.write(0, &bulk, &[0; 1_400]);
    }
    for writer in [&low, &equal, &high] {
        net.write(0, writer, &[0; 10]);
    }
    // Each outbox has one traffic class.
    assert_eq!(next_outbox(&mut net), [entity(&high)]);
    let first = next_outbox(&mut net);
    assert!(first.len() >= 64 && first.iter().all(|writer| *writer == entity(&bulk)));
    assert_eq!(next_outbox(&mut net)[0], entity(&equal), "after one outbox of its equal");
    let mut next = next_outbox(&mut net);
    while next[0] == entity(&bulk) {
        next = next_outbox(&mut net);
    }
    assert_eq!(next, [entity(&low)], "strictly after all others");
    assert!(next_outbox(&mut net).is_empty());
}

#[test]
fn acknowledgements_leave_before_samples() {
    let mut net = Net::new(2);
    let there = net.writer(1, reliable_writer(History::KeepAll), Keyed::No);
    let bulk = net.writer(0, reliable_writer(History::KeepAll), Keyed::No);
    net.reader(0, reliable_reader(History::KeepAll), Keyed::No);
    net.reader(1, reliable_reader(History::KeepAll), Keyed::No);
    net.run_for(SECOND);
    for _ in 0..60 {
        net.write(0, &bulk, &[0; 1_400]);
    }
    net.write(1, &there, &[1]);
    there.lock().request_acknowledgement(net.now);
    let mut outbox = Outbox::new();
    net.nodes[1].participant.poll_transmit(net.now, &mut outbox);
    let source = std::net::SocketAddr::from((net.nodes[1].address, 7411));
    for datagram in outbox.datagrams() {
        let payload = crate::payload::Payload::from(&datagram.to_vec()[..]);
        net.nodes[0].participant.handle_datagram(net.now, &payload, source);
    }
    outbox.clear();
    net.nodes[0].participant.poll_transmit(net.now, &mut outbox);
    let first = outbox.datagram(0).expect("output").to_vec();
    assert_eq!(writers_in(&first), [], "an ACKNACK");
    assert!(outbox.len() > 10);
}

#[test]
fn tokens_leak_only_while_nobody_waits() {
    let mut settings = tokens(100, 10, SECOND, 100);
    for (leaked, expect) in [(Amount::Limited(0), 10_000.0), (Amount::Limited(8), 5_200.0), (Amount::Unlimited, 0.0)] {
        settings.tokens_leaked_per_period = leaked;
        let mut transfer = transfer(2, settings);
        transfer.net.run_for(SECOND * 20);
        transfer.write(400, 44);
        transfer.net.exchange();
        let burst = transfer.total();
        // With a leak of 8 it began with a period's 10 tokens and gained 2 a second: 52 after 21 s.
        assert!((burst - expect).abs() <= 1_500.0, "leak {leaked}: {burst} instead of {expect}");
        transfer.net.run_for(SECOND * 20);
        near(transfer.total() - burst, 20_000.0, 0.08);
    }
}

#[test]
fn unlimited_controllers_hold_nothing_back() {
    let mut transfer = transfer(2, FlowControllerSettings::default());
    transfer.write(50, 1_000);
    transfer.net.run_for(MILLISECOND * 5);
    assert_eq!(take(&transfer.net, &transfer.readers[0]).len(), 50);
    let now = transfer.net.now;
    let counters = transfer.net.nodes[0].participant.flow_controller_counters(now, "link").unwrap();
    assert_eq!((counters.tokens, counters.waits, counters.bytes_waiting), (None, 0, 0));
}

#[test]
fn a_token_without_bytes_pays_for_a_datagram() {
    let mut settings = tokens(1, 100, SECOND, 1);
    settings.bytes_per_token = Amount::Unlimited;
    let mut transfer = transfer(2, settings);
    transfer.write(200, 1_000);
    transfer.net.run_for(SECOND);
    near(transfer.paid().count() as f64, 101.0, 0.02);
}

#[test]
fn the_thread_is_not_woken_for_every_token() {
    let mut transfer = transfer(2, tokens(1_000_000, 100_000_000, SECOND, 1));
    transfer.write(50_000, 1_000);
    let end = transfer.net.now + SECOND / 4;
    let mut wakeups = 0;
    while transfer.net.now < end {
        while transfer.net.exchange() {}
        let due = transfer.net.nodes.iter().map(|node| node.participant.poll_timeout()).min().unwrap();
        wakeups += u32::from(due > transfer.net.now);
        transfer.net.now = due.max(transfer.net.now);
        let now = transfer.net.now;
        transfer.net.nodes.iter_mut().for_each(|node| node.participant.handle_timeout(now));
    }
    near(transfer.total(), 25_000_000.0, 0.06);
    assert!(wakeups <= 1_500, "{wakeups} in 250 ms");
}

#[test]
fn controllers_are_counted_and_stay_while_writers_use_them() {
    let mut transfer = transfer(2, tokens(1, 1, SECOND * 60, 2_000));
    transfer.write(10, 1_000);
    transfer.net.run_for(SECOND);
    let now = transfer.net.now;
    let participant = &mut transfer.net.nodes[0].participant;
    let counters = participant.flow_controller_counters(now, "link").unwrap();
    assert_eq!((counters.writers, counters.writers_waiting, counters.bytes_waiting), (1, 1, 9 * 1_004));
    assert_eq!((counters.datagrams_sent, counters.waits), (1, 1));
    let in_use = participant.delete_flow_controller("link").unwrap_err().to_string();
    assert_eq!(in_use, "1 writers send under the flow controller \"link\"; delete them first");
    let permanent = participant.delete_flow_controller(BACKGROUND).unwrap_err().to_string();
    assert_eq!(permanent, "this flow controller is always there; it can only be changed");
    let exists = participant.create_flow_controller(now, BACKGROUND, FlowControllerSettings::default());
    assert!(exists.unwrap_err().to_string().starts_with("a flow controller \"background\" exists"));
    participant.delete_writer(now, entity(&transfer.writer));
    participant.delete_flow_controller("link").unwrap();
    let unknown = participant.flow_controller_settings("link").unwrap_err().to_string();
    assert_eq!(unknown, "no flow controller \"link\"; create it first, or name one of [\"background\"]");
    assert!(participant.poll_timeout() > now);
}

#[test]
fn a_writer_with_an_unknown_controller_is_refused_and_told_which_there_are() {
    let mut net = Net::new(1);
    let now = net.now;
    let config = WriterConfig {
        topic_name: "topic".into(),
        type_name: "type".into(),
        keyed: Keyed::No,
        qos: asynchronous("bulk").into(),
        options: crate::writer::WriterOptions::default(),
    };
    let error = net.nodes[0].participant.create_writer(now, config).unwrap_err().to_string();
    assert!(error.contains("asynchronous (bulk)") && error.contains("[\"background\"]"), "{error}");
}
