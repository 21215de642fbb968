//! Writing compound packets.

use super::clock::NtpTime;
use super::packet::{Dlrr, NACK_ENTRIES_MAX, NackEntry, ReportBlock, SenderInfo, XrBlock};
use super::packet::{PT_BYE, PT_RECEIVER_REPORT, PT_SDES, PT_SENDER_REPORT, PT_TRANSPORT_FEEDBACK, PT_XR};

/// The most that a count of five bits tells: report blocks of a packet, sources of a BYE.
const COUNT_MAX: usize = 31;

/// The longest text of an item or a reason: its length is one octet.
const TEXT_MAX: usize = 255;

/// Appends RTCP packets to a datagram. Texts longer than 255 octets are cut at the end of a character.
///
/// The caller keeps the order of a compound: a report first, then the source description (RFC 3550 §6.1).
#[derive(Debug)]
pub struct CompoundWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> CompoundWriter<'a> {
    /// Writes behind what `out` holds.
    pub fn new(out: &'a mut Vec<u8>) -> CompoundWriter<'a> {
        CompoundWriter { out }
    }

    /// A sender report; reports beyond 31 follow in receiver reports, as RFC 3550 §6.1 asks.
    pub fn sender_report(&mut self, ssrc: u32, info: &SenderInfo, reports: &[ReportBlock]) {
        let (first, others) = reports.split_at(reports.len().min(COUNT_MAX));
        self.packet(PT_SENDER_REPORT, first.len(), |out| {
            put(out, ssrc);
            out.extend(info.ntp.0.to_be_bytes());
            put(out, info.rtp);
            put(out, info.packets);
            put(out, info.octets);
            first.iter().for_each(|block| put_report(out, block));
        });
        if !others.is_empty() {
            self.receiver_report(ssrc, others);
        }
    }

    /// A receiver report, or as many as the blocks need; one without blocks says that its sender is there.
    pub fn receiver_report(&mut self, ssrc: u32, reports: &[ReportBlock]) {
        let mut rest = reports;
        loop {
            let (first, others) = rest.split_at(rest.len().min(COUNT_MAX));
            self.packet(PT_RECEIVER_REPORT, first.len(), |out| {
                put(out, ssrc);
                first.iter().for_each(|block| put_report(out, block));
            });
            rest = others;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// A description of one source by items of kind and text, such as [`SDES_CNAME`](super::SDES_CNAME).
    pub fn description(&mut self, ssrc: u32, items: &[(u8, &str)]) {
        self.descriptions(&[(ssrc, items)]);
    }

    /// Descriptions of up to 31 sources in one packet.
    pub fn descriptions(&mut self, sources: &[(u32, &[(u8, &str)])]) {
        let sources = &sources[..sources.len().min(COUNT_MAX)];
        self.packet(PT_SDES, sources.len(), |out| {
            for (ssrc, items) in sources {
                let start = out.len();
                put(out, *ssrc);
                for (kind, text) in *items {
                    let text = cut(text);
                    out.push(*kind);
                    put_text(out, text);
                }
                // The list of a source ends with one to four zero octets.
                out.push(0);
                fill(out, start);
            }
        });
    }

    /// A BYE for up to 31 sources.
    pub fn bye(&mut self, sources: &[u32], reason: &str) {
        let sources = &sources[..sources.len().min(COUNT_MAX)];
        self.packet(PT_BYE, sources.len(), |out| {
            sources.iter().for_each(|source| put(out, *source));
            if !reason.is_empty() {
                put_text(out, cut(reason));
            }
        });
    }

    /// An extended report with a reference time, answers to those of others, or both; nothing when there is neither.
    pub fn extended_report(&mut self, ssrc: u32, reference: Option<NtpTime>, answers: &[Dlrr]) {
        if reference.is_none() && answers.is_empty() {
            return;
        }
        self.packet(PT_XR, 0, |out| {
            put(out, ssrc);
            if let Some(ntp) = reference {
                out.extend([XrBlock::REFERENCE_TIME, 0, 0, 2]);
                out.extend(ntp.0.to_be_bytes());
            }
            let answers = &answers[..answers.len().min(COUNT_MAX)];
            if !answers.is_empty() {
                // 31 answers of three words each fit one octet of the length.
                out.extend([XrBlock::DLRR, 0, 0, answers.len() as u8 * 3]);
                for answer in answers {
                    put(out, answer.ssrc);
                    put(out, answer.last_report);
                    put(out, answer.delay_since_last);
                }
            }
        });
    }

    /// A generic NACK of up to [`NACK_ENTRIES_MAX`] entries; nothing without entries, which RFC 4585 §6.2.1 forbids.
    pub fn nack(&mut self, sender: u32, media: u32, entries: &[NackEntry]) {
        let entries = &entries[..entries.len().min(NACK_ENTRIES_MAX)];
        if entries.is_empty() {
            return;
        }
        self.packet(PT_TRANSPORT_FEEDBACK, 1, |out| {
            put(out, sender);
            put(out, media);
            for entry in entries {
                out.extend(entry.first.to_be_bytes());
                out.extend(entry.following.to_be_bytes());
            }
        });
    }

    /// A packet around the body that `write` appends, filled to a multiple of four octets.
    fn packet(&mut self, packet_type: u8, count: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend([0x80 | count as u8, packet_type, 0, 0]);
        write(self.out);
        fill(self.out, start);
        // The longest packet is a NACK of 1,036 octets.
        let words = ((self.out.len() - start) / 4 - 1) as u16;
        self.out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
    }
}

fn put(out: &mut Vec<u8>, word: u32) {
    out.extend(word.to_be_bytes());
}

/// Adds zero octets until what begins at `start` is a multiple of four octets.
fn fill(out: &mut Vec<u8>, start: usize) {
    while !(out.len() - start).is_multiple_of(4) {
        out.push(0);
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend(text.as_bytes());
}

fn put_report(out: &mut Vec<u8>, block: &ReportBlock) {
    let lost = block.cumulative_lost.clamp(-(1 << 23), (1 << 23) - 1);
    put(out, block.ssrc);
    put(out, (u32::from(block.fraction_lost) << 24) | (lost as u32 & 0x00ff_ffff));
    put(out, block.highest_sequence);
    put(out, block.jitter);
    put(out, block.last_sender_report);
    put(out, block.delay_since_last);
}

/// The beginning of a text that fits an octet's length.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX)]
}
