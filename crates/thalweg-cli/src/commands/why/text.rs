//! The explanation of a topic for people.

use std::fmt::Write;

use thalweg::explain::DROP_COST_PER_MILLE;

use super::{
    ExplainedTopic, Explanation, GroupView, LinkView, Owner, ParticipantView, ReaderView, Reception, RouteView,
    WriterView,
};
use crate::outcome::push_line;

impl ExplainedTopic {
    pub(super) fn to_text(&self) -> String {
        let mut out = format!(
            "topic {:?} in domain {}: {}, {}\n",
            self.topic,
            self.domain,
            counted(self.writers.len(), "writer"),
            counted(self.readers.len(), "reader")
        );
        if self.writers.is_empty() && self.readers.is_empty() {
            out.push_str("No endpoint uses it; a longer --settle may find more.\n");
        }
        if let Some(found) = &self.nobody_found {
            let _ = writeln!(out, "{}", found.to_text());
        }
        if self.ignored_participants > 0 {
            let ignored = counted(self.ignored_participants, "participant");
            push_line(&mut out, format_args!("{ignored} ignored: other groups; --group joins them"));
        }
        self.writers.iter().for_each(|writer| writer.describe(&mut out));
        self.readers.iter().for_each(|reader| reader.describe(&mut out));
        self.participants.iter().for_each(|participant| participant.describe(&mut out));
        if !self.mismatches.is_empty() {
            out.push_str("\nnot matched\n");
        }
        for pair in &self.mismatches {
            push_line(&mut out, format_args!("  writer {} and reader {}: {}", pair.writer, pair.reader, pair.why));
        }
        out
    }
}

impl Owner {
    fn to_text(&self) -> String {
        match self.participant.is_empty() {
            true => self.vendor.clone(),
            false => format!("{} {:?}", self.vendor, self.participant),
        }
    }
}

impl WriterView {
    fn describe(&self, out: &mut String) {
        out.push('\n');
        push_line(out, format_args!("writer {}, {}", self.guid, self.owner.to_text()));
        push_line(out, format_args!("  {}: {}", self.type_name, self.qos.to_text()));
        match &self.explanation {
            Some(explanation) => explanation.describe(out),
            None if self.thalweg => out.push_str("  did not answer in time; a longer --timeout may help\n"),
            None => out.push_str("  its vendor does not report its transmission method\n"),
        }
        push_line(out, format_args!("  matches {} by QoS", counted(self.matching_readers.len(), "reader")));
    }
}

impl ReaderView {
    fn describe(&self, out: &mut String) {
        out.push('\n');
        push_line(out, format_args!("reader {}, {}", self.guid, self.owner.to_text()));
        push_line(out, format_args!("  {}: {}", self.type_name, self.qos.to_text()));
        push_line(out, format_args!("  reached at {}", [&self.addresses[..], &self.groups[..]].concat().join(" ")));
        match &self.explanation {
            Some(reception) => reception.describe(out),
            None if self.thalweg => out.push_str("  did not answer in time; a longer --timeout may help\n"),
            None => out.push_str("  its vendor does not report received samples\n"),
        }
    }
}

impl ParticipantView {
    /// Prints nothing for a participant without refusals.
    fn describe(&self, out: &mut String) {
        let sentences = self.refused.sentences();
        if !sentences.is_empty() {
            out.push('\n');
            push_line(out, format_args!("participant {}, {}", self.guid_prefix, self.owner.to_text()));
        }
        for sentence in sentences {
            push_line(out, format_args!("  {sentence}"));
        }
    }
}

impl Reception {
    fn describe(&self, out: &mut String) {
        let why = |why: &str| if why.is_empty() { String::new() } else { format!(" ({why})") };
        push_line(
            out,
            format_args!(
                "  {} matched: received {}, lost {}{}, rejected {}{}",
                counted(self.writers, "writer"),
                self.received,
                self.lost,
                why(&self.lost_why),
                self.rejected,
                why(self.rejected_why.as_deref().unwrap_or_default())
            ),
        );
        push_line(
            out,
            format_args!(
                "  {} held; {} replaced by newer ones and {} expired before they were taken",
                counted(self.held, "sample"),
                self.overwritten,
                self.expired
            ),
        );
        if self.doubted > 0 {
            push_line(
                out,
                format_args!(
                    "  {} of numbers that had not been announced, verified with the writer",
                    counted(usize::try_from(self.doubted).unwrap_or(usize::MAX), "claim")
                ),
            );
        }
    }
}

impl Explanation {
    fn describe(&self, out: &mut String) {
        push_line(out, format_args!("  method {}, now {}", self.method, self.method_now));
        for reason in &self.reasons {
            push_line(out, format_args!("    {reason}"));
        }
        let interval = match self.write_interval_us {
            Some(micros) if micros >= 1e6 => format!("every {:.1} s", micros / 1e6),
            Some(micros) if micros > 0.0 => format!("every {micros:.1} µs ({:.0} a second)", 1e6 / micros),
            _ => "at no measured rate".to_owned(),
        };
        push_line(
            out,
            format_args!(
                "  writes {} B {interval}; {:.1} samples a datagram of at most {} B",
                self.sample_bytes, self.samples_per_datagram, self.datagram_bytes
            ),
        );
        let window = match self.window_bytes {
            Some(bytes) => format!("{} of {bytes} B of the window on their way", self.in_flight_bytes),
            None => "no window".to_owned(),
        };
        push_line(
            out,
            format_args!(
                "  {}, {} behind, {} given up; {window}; {} held",
                counted(self.readers, "reader"),
                self.readers_behind,
                self.readers_given_up,
                counted(self.held_samples, "sample")
            ),
        );
        if self.implausible > 0 {
            push_line(
                out,
                format_args!(
                    "  {} about samples that were never sent, refused",
                    counted(usize::try_from(self.implausible).unwrap_or(usize::MAX), "answer")
                ),
            );
        }
        self.route.describe(out);
    }
}

impl RouteView {
    fn describe(&self, out: &mut String) {
        let left_out = self.address_count.saturating_sub(self.addresses.len());
        let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
        let addresses =
            if self.address_count == 1 { "1 address" } else { &format!("{} addresses", self.address_count) };
        push_line(
            out,
            format_args!(
                "  destination {}: {addresses}, {} of them for batches: {}{more}",
                self.destination,
                self.batch_address_count,
                self.addresses.join(" ")
            ),
        );
        push_line(
            out,
            format_args!(
                "    {} on this host, {} elsewhere that no group reaches",
                counted(self.readers_on_this_host, "reader"),
                self.readers_without_group
            ),
        );
        if self.groups.is_empty() && self.readers_on_this_host > 0 && self.readers_without_group == 0 {
            out.push_str("    no group, because all readers are on this host\n");
        }
        self.groups.iter().for_each(|group| group.describe(out));
    }
}

impl GroupView {
    fn describe(&self, out: &mut String) {
        let used = if self.used { "used" } else { "not used" };
        push_line(out, format_args!("    group {}, {used}: {}", self.group, self.why));
        push_line(
            out,
            format_args!(
                "      unicast   {:>9.2} ns of link time for each byte: {} of {}",
                self.unicast_ns_per_byte,
                copies(self.unicast_addresses),
                counted(self.participants, "participant")
            ),
        );
        let Some(multicast) = self.multicast_ns_per_byte else { return };
        push_line(out, format_args!("      multicast {multicast:>9.2} ns of link time for each byte:"));
        self.links.iter().for_each(|link| link.describe(out));
    }
}

impl LinkView {
    fn describe(&self, out: &mut String) {
        let drop_cost = DROP_COST_PER_MILLE as f64 / 1e3;
        let nanos = 1e9 / self.group_bytes_per_second.max(1) as f64;
        push_line(
            out,
            format_args!(
                "        {} ({}, {:.1} MB/s to groups), {} read, {}: {nanos:.2} x (1 + {} x {drop_cost}) = {:.2}",
                self.name,
                self.medium,
                self.group_bytes_per_second as f64 / 1e6,
                counted(self.participants as usize, "participant"),
                counted(self.bystanders as usize, "bystander"),
                self.bystanders,
                nanos * (1.0 + f64::from(self.bystanders) * drop_cost)
            ),
        );
    }
}

fn copies(addresses: usize) -> String {
    if addresses == 1 { "1 copy".to_owned() } else { format!("{addresses} copies") }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
