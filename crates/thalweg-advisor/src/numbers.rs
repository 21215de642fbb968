//! The five numbers that follow from a stream and from measurements, each with its arithmetic.

use std::time::Duration;

use serde::Serialize;

use crate::figures::{grouped, rate, time, whole};
use crate::stream::{AdvisedStream, BATCH_DATAGRAMS, DatagramPlan, Departing};

/// What the numbers follow from, beside the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Largest IP packet on the path, in bytes.
    pub mtu_bytes: u32,
    /// Bytes that a receive buffer is charged for one datagram of the stream's size.
    pub charge_bytes: u64,
    /// The longest time for which the reading thread does not run.
    pub stall: Duration,
    /// Bits that the link carries in a second, where known.
    pub link_bits_per_second: Option<u64>,
    /// Round trip to the peer.
    pub round_trip: Duration,
    /// Processor time of one datagram, sent and received, where measured.
    pub packet_cost: Option<Duration>,
    /// `net.ipv4.ipfrag_time` or `net.ipv6.ip6frag_time`: seconds for which the fragments of a datagram wait for the missing ones.
    pub fragment_time_s: u64,
}

/// A number with the arithmetic that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Computed {
    /// The number, in the unit of its field.
    pub value: u64,
    /// The formula with its figures.
    pub why: String,
}

/// The five numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FiveNumbers {
    /// Bytes that the receive buffer has to hold, as the kernel charges them (twice what `SO_RCVBUF` is asked for).
    pub receive_buffer: Computed,
    /// The same where the kernel joins datagrams before it queues them (GRO), and charges them hardly more than they hold.
    pub receive_buffer_joined: Computed,
    /// Bytes that a reliable writer may have sent and not acknowledged; `None` for streams without acknowledgements.
    pub writer_window: Option<Computed>,
    /// Bits a second at which the writers on this link together send at most.
    pub pacing_rate: Computed,
    /// Bytes of fragments that wait for lost ones; 0 where datagrams are not cut.
    pub fragment_memory: Computed,
    /// Packets a second that one processor moves; `None` where the cost was not measured.
    pub packet_budget: Option<Computed>,
}

impl FiveNumbers {
    /// Computes them.
    pub fn compute(stream: &AdvisedStream, measured: &Measured) -> FiveNumbers {
        let plan = stream.datagrams(measured.mtu_bytes);
        let receive_buffer = receive_buffer(stream, &plan, measured, measured.charge_bytes);
        let joined_charge = whole(plan.payload_bytes as f64 * JOINED_FACTOR).min(measured.charge_bytes);
        FiveNumbers {
            receive_buffer_joined: self::receive_buffer(stream, &plan, measured, joined_charge),
            writer_window: stream
                .profile
                .is_acknowledged()
                .then(|| writer_window(stream, &plan, measured, receive_buffer.value)),
            pacing_rate: pacing_rate(stream, measured),
            fragment_memory: fragment_memory(stream, &plan, measured),
            packet_budget: measured.packet_cost.map(|cost| packet_budget(stream, measured, cost)),
            receive_buffer,
        }
    }

    /// Bytes to ask `SO_RCVBUF` for: half of what is needed, since the kernel doubles it, in whole pages.
    pub fn receive_buffer_ask(&self) -> u64 {
        self.receive_buffer.value.div_ceil(2).next_multiple_of(PAGE_BYTES)
    }

    /// As [`FiveNumbers::receive_buffer_ask`] where the kernel joins datagrams.
    pub fn receive_buffer_joined_ask(&self) -> u64 {
        self.receive_buffer_joined.value.div_ceil(2).next_multiple_of(PAGE_BYTES)
    }
}

/// What arrives during the longest stall, in charged bytes, and a quarter to spare.
fn receive_buffer(stream: &AdvisedStream, plan: &DatagramPlan, measured: &Measured, charge: u64) -> Computed {
    let writers = u64::from(stream.writers);
    let stall = measured.stall.as_secs_f64();
    let (waiting, words) = match stream.departing {
        Departing::Paced => {
            let per_second = stream.rate_hz * plan.count as f64;
            let batch = plan.count.min(BATCH_DATAGRAMS);
            let words = format!(
                "({} datagrams/s · {} stall + a batch of {batch})",
                grouped(whole(per_second)),
                time(measured.stall)
            );
            (per_second * stall + batch as f64, words)
        }
        // Samples that are due within the stall, and the one that it begins with.
        Departing::AtOnce => {
            let samples = (stream.rate_hz * stall).floor() + 1.0;
            let words = format!(
                "(1 + ⌊{:.4}/s · {} stall⌋) samples · {} datagrams at once",
                stream.rate_hz,
                time(measured.stall),
                grouped(plan.count)
            );
            (samples * plan.count as f64, words)
        }
    };
    let value = whole(SPARE_FACTOR * writers as f64 * waiting * charge as f64);
    let why = format!(
        "{SPARE_FACTOR} · {} · {words} · {} B = {} B; a datagram of {} B is charged {} B",
        if writers == 1 { "1 writer".to_owned() } else { format!("{} writers", grouped(writers)) },
        grouped(charge),
        grouped(value),
        grouped(plan.payload_bytes),
        grouped(charge),
    );
    Computed { value, why }
}

/// min(what the reader's buffer holds, 2 · bandwidth · delay + what is written between two heartbeats).
fn writer_window(stream: &AdvisedStream, plan: &DatagramPlan, measured: &Measured, buffer: u64) -> Computed {
    let held = buffer as f64 * plan.carried_bytes as f64 / measured.charge_bytes.max(1) as f64;
    let written = stream.rate_hz * stream.sample_bytes as f64 * HEARTBEAT_PERIOD.as_secs_f64();
    let of_reader = format!(
        "{} B buffer · {} B carried / {} B charged = {} B",
        grouped(buffer),
        grouped(plan.carried_bytes),
        grouped(measured.charge_bytes),
        grouped(whole(held))
    );
    let Some(link) = measured.link_bits_per_second else {
        return Computed { value: whole(held), why: format!("{of_reader}; the speed of the link is not known") };
    };
    let delay_product = link as f64 / 8.0 * measured.round_trip.as_secs_f64();
    let in_flight = 2.0 * delay_product + written;
    let why = format!(
        "min({of_reader}, 2 · {} · {} + {} B written in {} between heartbeats = {} B)",
        rate(link as f64),
        time(measured.round_trip),
        grouped(whole(written)),
        time(HEARTBEAT_PERIOD),
        grouped(whole(in_flight))
    );
    Computed { value: whole(held.min(in_flight)), why }
}

/// min(0.9 · link / flows, max(1.2 · rate, a sample in half its time)).
fn pacing_rate(stream: &AdvisedStream, measured: &Measured) -> Computed {
    let writers = f64::from(stream.writers);
    let bits = stream.sample_bytes as f64 * 8.0;
    let time_of_sample = stream.deadline.as_secs_f64().min(1.0 / stream.rate_hz);
    let (steady, urgent) = (1.2 * bits * stream.rate_hz, bits / (0.5 * time_of_sample));
    let wanted = steady.max(urgent);
    let wanted_words = format!(
        "max(1.2 · {} · {:.2}/s = {}, {} B in half of {} = {})",
        grouped(stream.sample_bytes),
        stream.rate_hz,
        rate(steady),
        grouped(stream.sample_bytes),
        time(Duration::from_secs_f64(time_of_sample)),
        rate(urgent)
    );
    let per_flow = |why: String, bits: f64| Computed {
        value: whole(bits * writers),
        why: if stream.writers == 1 { why } else { format!("{} writers · {why}", stream.writers) },
    };
    match measured.link_bits_per_second {
        Some(link) => {
            let share = 0.9 * link as f64 / writers;
            let why =
                format!("min(0.9 · {} / {} = {}, {wanted_words})", rate(link as f64), stream.writers, rate(share));
            per_flow(why, wanted.min(share))
        }
        None => per_flow(format!("{wanted_words}; the speed of the link is not known"), wanted),
    }
}

/// Datagrams a second · chance that one lacks a fragment · time that its fragments wait · fragments · charge.
fn fragment_memory(stream: &AdvisedStream, plan: &DatagramPlan, measured: &Measured) -> Computed {
    if plan.fragments < 2 {
        let why =
            format!("datagrams of {} B fit the MTU of {} B: nothing is cut", plan.payload_bytes, measured.mtu_bytes);
        return Computed { value: 0, why };
    }
    let datagrams = stream.rate_hz * plan.count as f64 * f64::from(stream.writers);
    let fragments = plan.fragments as f64;
    let incomplete = 1.0 - (1.0 - LOSS_ASSUMED).powf(fragments);
    let charge = FRAGMENT_CHARGE_BYTES.max(measured.charge_bytes.div_ceil(plan.fragments));
    let value = whole(datagrams * incomplete * measured.fragment_time_s as f64 * fragments * charge as f64);
    let why = format!(
        "{} datagrams/s · (1 − 0.99^{}) = {:.3} incomplete at 1 % loss · {} s · {} fragments · {} B = {} B",
        grouped(whole(datagrams)),
        plan.fragments,
        incomplete,
        measured.fragment_time_s,
        plan.fragments,
        grouped(charge),
        grouped(value)
    );
    Computed { value, why }
}

fn packet_budget(stream: &AdvisedStream, measured: &Measured, cost: Duration) -> Computed {
    let value = whole(1.0 / cost.as_secs_f64().max(1e-9));
    let packets = stream.packets_per_second(measured.mtu_bytes);
    let why = format!(
        "1 / {} a datagram; the stream has {} packets/s, {:.0} % of one processor",
        time(cost),
        grouped(whole(packets)),
        100.0 * packets / value as f64
    );
    Computed { value, why }
}

/// A quarter to spare: rates are means, and stalls were measured for seconds only.
const SPARE_FACTOR: f64 = 1.25;
/// Charge of joined datagrams, by their bytes: 1.02 measured over veth.
const JOINED_FACTOR: f64 = 1.05;
/// Default of Thalweg's reliable writers.
const HEARTBEAT_PERIOD: Duration = Duration::from_millis(20);
/// One packet of a hundred is lost: a bad Wi-Fi, and more than any wire.
const LOSS_ASSUMED: f64 = 0.01;
/// What a fragment of 1,500 bytes is charged.
const FRAGMENT_CHARGE_BYTES: u64 = 2304;
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamProfile;

    fn measured() -> Measured {
        Measured {
            mtu_bytes: 1500,
            charge_bytes: 2304,
            stall: Duration::from_millis(10),
            link_bits_per_second: Some(10_000_000_000),
            round_trip: Duration::from_millis(1),
            packet_cost: Some(Duration::from_micros(2)),
            fragment_time_s: 30,
        }
    }

    #[test]
    fn ten_point_clouds_in_phase_need_twenty_one_megabytes() {
        // The example of the design: 1 MiB, 741 datagrams, ten writers at the same instant.
        let stream = AdvisedStream { writers: 10, rate_hz: 10.0, ..StreamProfile::Bulk.stream() };
        let numbers = FiveNumbers::compute(&stream, &measured());
        assert_eq!(numbers.receive_buffer.value, 10 * 741 * 2304 * 5 / 4);
        assert_eq!(numbers.receive_buffer_ask(), (10 * 741 * 2304 * 5 / 8_u64).next_multiple_of(4096));
        assert!(numbers.receive_buffer_joined.value < 15_000_000, "{:?}", numbers.receive_buffer_joined);
        let paced = AdvisedStream { departing: Departing::Paced, ..stream };
        let paced = FiveNumbers::compute(&paced, &measured()).receive_buffer.value;
        assert_eq!(paced, whole(1.25 * 10.0 * (7410.0 * 0.01 + 16.0) * 2304.0));
    }

    #[test]
    fn a_window_is_bounded_by_the_buffer_and_by_what_is_under_way() {
        let stream = StreamProfile::Bulk.stream();
        let window = FiveNumbers::compute(&stream, &measured()).writer_window.expect("acknowledged").value;
        // The buffer of one sample: 1.25 MiB of payload, less than 2 · 1.25 MB + 1 MiB.
        assert_eq!(window, whole(741.0 * 1.25 * 1416.0));
        let slow = Measured { stall: Duration::from_secs(1), link_bits_per_second: Some(100_000_000), ..measured() };
        let window = FiveNumbers::compute(&stream, &slow).writer_window.expect("acknowledged").value;
        assert_eq!(window, 2 * 12_500 + (1 << 20));
        assert_eq!(FiveNumbers::compute(&StreamProfile::Video.stream(), &slow).writer_window, None);
    }

    #[test]
    fn pacing_leaves_a_tenth_of_the_link_and_spreads_a_sample_over_half_its_time() {
        let stream = StreamProfile::Video.stream();
        let free = FiveNumbers::compute(&stream, &measured()).pacing_rate.value;
        assert!((free as f64 / (2.0 * stream.bits_per_second()) - 1.0).abs() < 1e-6, "{free}");
        let narrow = Measured { link_bits_per_second: Some(1_000_000_000), ..measured() };
        assert_eq!(FiveNumbers::compute(&stream, &narrow).pacing_rate.value, 900_000_000);
        let unknown = Measured { link_bits_per_second: None, ..measured() };
        assert!(FiveNumbers::compute(&stream, &unknown).pacing_rate.why.contains("not known"));
    }

    #[test]
    fn fragments_that_wait_for_lost_ones_outgrow_the_default_memory() {
        // The example of the design: 1 MB at 10 Hz in datagrams of 64 kB, 30 s: about 180 MB against 4 MiB.
        let stream = AdvisedStream {
            rate_hz: 10.0,
            sample_bytes: 1_000_000,
            datagram_bytes: Some(65_000),
            ..StreamProfile::Bulk.stream()
        };
        let value = FiveNumbers::compute(&stream, &measured()).fragment_memory.value;
        assert!((150_000_000..220_000_000).contains(&value), "{value}");
        let short = Measured { fragment_time_s: 1, ..measured() };
        let value = FiveNumbers::compute(&stream, &short).fragment_memory.value;
        assert!((5_000_000..7_500_000).contains(&value), "{value}");
        assert_eq!(FiveNumbers::compute(&StreamProfile::Bulk.stream(), &measured()).fragment_memory.value, 0);
    }

    #[test]
    fn a_budget_is_the_inverse_of_a_cost() {
        let budget = FiveNumbers::compute(&StreamProfile::Video.stream(), &measured()).packet_budget.expect("measured");
        assert_eq!(budget.value, 500_000);
        assert!(budget.why.contains("26 % of one processor"), "{}", budget.why);
    }
}
