//! HEARTBEATs in, ACKNACKs and NACK_FRAGs out (RTPS 2.5 §8.4.12.2, §8.4.14.2).

use super::doubt::Questions;
use super::writer_proxy::WriterProxy;
use super::{Reader, ReaderOutcome};
use crate::outbox::Outbox;
use crate::time::Instant;
use crate::types::{Guid, SequenceNumber, VendorId};
use crate::wire::batch::{AckNackBatch, HeartbeatBatch};
use crate::wire::write;
use crate::wire::{AckNack, AskedBy, Echo, FragmentSet, Heartbeat, HeartbeatFrag, NackFrag, SequenceSet};

/// NACK_FRAG submessages in one answer, which ask for 16,384 fragments or more: with fragments of an Ethernet frame, 22 MB of a
/// large sample in one round trip. Writers of Thalweg keep as many requests.
const NACK_FRAGS_MAX: usize = 64;
/// Bytes of one datagram of an answer: it fits every Ethernet frame.
const ANSWER_BYTES_MAX: usize = 1_400;

impl Reader {
    /// Takes a HEARTBEAT into account; duplicates and unknown writers change nothing.
    pub fn handle_heartbeat(&mut self, now: Instant, writer: Guid, heartbeat: &Heartbeat) -> ReaderOutcome {
        self.note_heartbeat(now, writer, heartbeat, None)
    }

    /// Takes a HEARTBEAT_BATCH into account, which is a HEARTBEAT that tells the same in batches as well.
    pub fn handle_heartbeat_batch(&mut self, now: Instant, writer: Guid, batch: &HeartbeatBatch) -> ReaderOutcome {
        self.note_heartbeat(now, writer, &batch.heartbeat, Some(batch))
    }

    fn note_heartbeat(
        &mut self,
        now: Instant,
        writer: Guid,
        heartbeat: &Heartbeat,
        batch: Option<&HeartbeatBatch>,
    ) -> ReaderOutcome {
        let Some(index) = self.writers.place(writer) else { return ReaderOutcome::default() };
        let crowd = self.round_trip.estimate();
        let proxy = &mut self.writers[index];
        if !proxy.matched.reliable {
            proxy.doubt.told_last = Some(heartbeat.last);
            return ReaderOutcome::default();
        }
        if !proxy.believes(heartbeat) {
            return self.doubt(now, index);
        }
        if !proxy.heartbeat_counts.accept(heartbeat.count) {
            // A late one tells nothing new: the count of the one before may have been forged.
            proxy.contradict_relapse(heartbeat);
            let is_news = heartbeat.last > proxy.announced;
            return if is_news { self.doubt(now, index) } else { ReaderOutcome::default() };
        }
        proxy.requests.crowd = crowd;
        if proxy.skip_history {
            proxy.skip_history = false;
            if !proxy.contacted {
                proxy.skipped_history = true;
                proxy.window.mark_irrelevant(SequenceNumber::FIRST, heartbeat.last.next());
            }
        }
        proxy.notice_restart(heartbeat);
        let begun_anew = proxy.note_relapse(now, heartbeat);
        if begun_anew {
            self.begin_writer_anew(index);
        }
        let proxy = &mut self.writers[index];
        proxy.contacted = true;
        if !heartbeat.is_final {
            proxy.asked_by = Some((AskedBy::Heartbeat(heartbeat.count), now));
        }
        proxy.note_gone(heartbeat.first);
        let ask_at = proxy.anchor(now, heartbeat);
        proxy.doubt.note_told(heartbeat.first);
        if let Some(end) = proxy.passed_over_until(heartbeat.last) {
            let lost = proxy.window.lose_below(end);
            self.handover.lose_at_writer(&proxy.matched, lost);
        }
        // Samples that were gone before the first HEARTBEAT were never promised to this reader.
        let lost = proxy.window.lose_below(heartbeat.first);
        if proxy.announced_by_heartbeat.is_some() {
            self.handover.lose_at_writer(&proxy.matched, lost);
        }
        proxy.announced_by_heartbeat = Some(heartbeat.last);
        let delivered = self.handover.drain(now, &mut self.writers[index]);
        let proxy = &mut self.writers[index];
        if let Some(batch) = batch {
            proxy.batches.announced(batch, proxy.window.next());
        }
        let (is_doubted, question_due) = (proxy.may_have_begun_anew(), proxy.doubt.question_due());
        if !is_doubted && (!heartbeat.is_final || proxy.misses_any()) && !proxy.has_just_asked(now) {
            proxy.answer_at(now);
            self.writers.note_due(now);
        }
        if let Some(at) = ask_at.or(question_due) {
            self.writers.note_due(at);
        }
        ReaderOutcome { begun_anew, ..self.outcome(now, index, delivered > 0) }
    }

    /// Takes a HEARTBEAT_FRAG into account: fragments up to the named one were sent.
    pub fn handle_heartbeat_frag(&mut self, now: Instant, writer: Guid, heartbeat: &HeartbeatFrag) -> ReaderOutcome {
        let Some(index) = self.writers.place(writer) else { return ReaderOutcome::default() };
        let proxy = &mut self.writers[index];
        if !proxy.matched.reliable {
            return ReaderOutcome::default();
        }
        if !proxy.wants_fragments(heartbeat.sequence) {
            return self.tell_of_completed(now, index, heartbeat.count);
        }
        if !proxy.window.reaches(heartbeat.sequence) {
            return self.doubt(now, index);
        }
        if !proxy.heartbeat_frag_counts.accept(heartbeat.count) {
            return ReaderOutcome::default();
        }
        proxy.heard(heartbeat.sequence);
        proxy.asked_by = Some((AskedBy::HeartbeatFrag(heartbeat.count), now));
        proxy.announced_fragments = Some((heartbeat.sequence, heartbeat.last_fragment));
        if proxy.matched.vendor == VendorId::THALWEG {
            proxy.reassembly.note_vouched(now, heartbeat.sequence);
            proxy.answer_at(now);
            self.writers.note_due(now);
        } else if proxy.misses_fragments(heartbeat.sequence, heartbeat.last_fragment)
            && let Some(due) = proxy.gap_seen(now)
        {
            // Others do not wait for progress: Cyclone DDS says with every packet how far it is (11.0.1, 450 times in 6 MB).
            self.writers.note_due(due);
        }
        ReaderOutcome { answer_due: self.is_due(now), ..ReaderOutcome::default() }
    }

    /// Answers a HEARTBEAT_FRAG of a sample that is here: what came with it has completed the sample, and a writer of Thalweg waits
    /// to hear so, with its window closed until the next HEARTBEAT. While something else is missing, it would learn nothing.
    fn tell_of_completed(&mut self, now: Instant, index: usize, count: u32) -> ReaderOutcome {
        let proxy = &mut self.writers[index];
        let waits = proxy.matched.vendor == VendorId::THALWEG && !proxy.misses_any();
        if waits && proxy.heartbeat_frag_counts.accept(count) {
            proxy.asked_by = Some((AskedBy::HeartbeatFrag(count), now));
            proxy.answer_at(now);
            self.writers.note_due(now);
        }
        ReaderOutcome { answer_due: self.is_due(now), ..ReaderOutcome::default() }
    }

    /// Appends the answers that are due at `now`, one datagram for each writer unless many fragments are missing.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut Outbox) {
        if !self.is_due(now) {
            return;
        }
        let (guid, crowd) = (self.guid, self.round_trip.estimate());
        self.writers.answer_due(now, |proxy| {
            self.counters.acknacks += 1;
            proxy.requests.crowd = crowd;
            proxy.answer(now, guid, outbox);
        });
        outbox.finish();
    }
}

impl WriterProxy {
    fn answer(&mut self, now: Instant, reader: Guid, outbox: &mut Outbox) {
        if self.matched.unicast.is_empty() {
            self.requests.due = None;
            self.doubt.note_answer(now, self.announced);
            return;
        }
        self.begin_answer(reader, outbox);
        let still_missing = self.misses_any();
        self.requests.counts.acknack = self.requests.counts.acknack.wrapping_add(1);
        let count = self.requests.counts.acknack;
        let (reader_id, writer_id) = (reader.entity, self.matched.guid.entity);
        // An answer without a request needs no answer itself; the very first one asks for a HEARTBEAT.
        let Questions { asks_back, of_jump } = self.doubt.note_answer(now, self.announced);
        let of_jump = of_jump && self.matched.vendor == VendorId::THALWEG;
        let believed = self.acknowledged();
        // Missing samples may be gone if a jump is true, which is asked first.
        let is_doubtful = believed < self.window.next() || of_jump;
        let asks_back = asks_back || is_doubtful || self.reassembly.is_any_stuck(now);
        self.tell_of_forgone(reader, is_doubtful, outbox);
        self.name_question(now, reader, outbox);
        let is_final = |missing: &SequenceSet| self.contacted && missing.is_empty() && !asks_back;
        // Fragments are asked for by number: naming their batch would have all of it repeated. So are the others while the next sample
        // waits for room: batches do not tell which of their samples are here.
        let by_number = is_doubtful || !self.reassembly.is_empty() || still_missing && self.window.is_ready();
        let batches = (!by_number).then(|| self.batches.state(self.window.next(), still_missing));
        if let Some(state) = batches.flatten() {
            let is_final = is_final(&state);
            let acknack = AckNackBatch { reader: reader_id, writer: writer_id, state, count, is_final };
            write::acknack_batch(outbox.buffer(), &acknack);
        } else {
            let state = match is_doubtful {
                true => SequenceSet::at(believed),
                false => self.window.missing(self.announced, |sequence| self.is_coming_in_parts(now, sequence)),
            };
            let is_final = is_final(&state);
            write::acknack(outbox.buffer(), &AckNack { reader: reader_id, writer: writer_id, state, count, is_final });
        }
        self.ask_for_fragments(reader, outbox);
        if still_missing && !is_doubtful {
            self.note_asked_for(by_number);
        }
        self.asked(now, still_missing && !of_jump);
        if still_missing && of_jump {
            self.answer_at(now + self.repeat_period());
        }
    }

    fn begin_answer(&self, reader: Guid, outbox: &mut Outbox) {
        outbox.begin(&self.matched.unicast[..1]);
        write::header(outbox.buffer(), reader.prefix);
        write::info_destination(outbox.buffer(), self.matched.guid.prefix);
    }

    /// Tells a writer of Thalweg which of its requests is answered.
    fn name_question(&mut self, now: Instant, reader: Guid, outbox: &mut Outbox) {
        let Some((asked_by, at)) = self.asked_by.take() else { return };
        if self.matched.vendor == VendorId::THALWEG {
            let held_micros = u32::try_from(now.since(at).as_micros()).unwrap_or(u32::MAX);
            let (reader, writer) = (reader.entity, self.matched.guid.entity);
            write::echo(outbox.buffer(), &Echo { reader, writer, asked_by, held_micros });
        }
    }

    /// Whether fragments of a sample are asked for, and not all of it. Thalweg's writers repeat a sample whole that has no fragments;
    /// others may keep silent where only a forged fragment says that it has some.
    fn is_coming_in_parts(&self, now: Instant, sequence: SequenceNumber) -> bool {
        let is_whole = self.matched.vendor != VendorId::THALWEG && self.reassembly.is_stuck(sequence, now);
        self.reassembly.contains(sequence) && !is_whole
    }

    fn ask_for_fragments(&mut self, reader: Guid, outbox: &mut Outbox) {
        let mut asked = 0;
        let announced = self.announced_fragments.take();
        let mut reported = false;
        let mut index = 0;
        while let Some(sequence) = self.reassembly.sequence(index) {
            index += 1;
            // A HEARTBEAT that names a sample says that all of it was sent.
            let known = match announced {
                _ if self.announced_whole(sequence) => Some(u32::MAX),
                Some((named, last)) if named == sequence => Some(last),
                _ => None,
            };
            let mut from = 1;
            while asked < NACK_FRAGS_MAX
                && let Some(mut set) = self.reassembly.missing(sequence, from, known)
            {
                from = set.base().saturating_add(256);
                // The window tells how far the writer was heard: its answer is to the request for that.
                if let Some((named, last)) = announced
                    && named == sequence
                {
                    set.widen_to(last);
                }
                self.push_nack_frag(reader, sequence, set, outbox);
                reported |= announced.is_some_and(|(named, _)| named == sequence);
                asked += 1;
            }
        }
        // Thalweg's writers wait for progress within a sample: tell it even when nothing is missing.
        if let Some((sequence, last)) = announced
            && !reported
            && asked < NACK_FRAGS_MAX
        {
            match self.reassembly.first_missing(sequence) {
                Some(first) if self.matched.vendor == VendorId::THALWEG => {
                    self.push_nack_frag(reader, sequence, FragmentSet::new(first), outbox);
                }
                Some(_) => {}
                None => {
                    let mut set = FragmentSet::new(1);
                    (1..=last.min(256)).for_each(|number| {
                        set.insert(number);
                    });
                    self.push_nack_frag(reader, sequence, set, outbox);
                }
            }
        }
    }

    /// Whether a fragment up to `last` of a sample that is wanted has not arrived.
    fn misses_fragments(&self, sequence: SequenceNumber, last: u32) -> bool {
        !self.reassembly.contains(sequence)
            || self.reassembly.first_missing(sequence).is_some_and(|first| first <= last)
    }

    fn announced_whole(&self, sequence: SequenceNumber) -> bool {
        self.announced_by_heartbeat.is_some_and(|last| sequence <= last)
    }

    fn push_nack_frag(&mut self, reader: Guid, sequence: SequenceNumber, state: FragmentSet, outbox: &mut Outbox) {
        if outbox.open_len() + write::NACK_FRAG_MAX_LEN > ANSWER_BYTES_MAX {
            self.begin_answer(reader, outbox);
        }
        self.requests.counts.nack_frag = self.requests.counts.nack_frag.wrapping_add(1);
        let nack = NackFrag {
            reader: reader.entity,
            writer: self.matched.guid.entity,
            sequence,
            state,
            count: self.requests.counts.nack_frag,
        };
        write::nack_frag(outbox.buffer(), &nack);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::MatchedWriter;
    use super::super::tests::{LATER, READER, Session, WRITER, matched_writer, number};
    use super::*;
    use crate::wire::{Message, Submessage};

    /// What answers name now, after `pause`, and for how many microseconds they were held back.
    fn named(session: &mut Session, pause: Duration) -> Vec<(AskedBy, u32)> {
        session.answer_after(pause);
        let datagrams: Vec<Vec<u8>> = session.outbox.datagrams().map(|datagram| datagram.to_vec()).collect();
        let submessages = datagrams.iter().flat_map(|bytes| Message::parse(bytes).expect("well-formed").submessages());
        submessages
            .filter_map(|one| match one.expect("well-formed") {
                Submessage::Echo(echo) => Some((echo.asked_by, echo.held_micros)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_answer_names_the_request_that_was_heard_last_and_each_once() {
        let mut session = Session::reliable();
        assert_eq!(named(&mut session, LATER), [], "nobody has asked");
        session.heartbeat(1, 2);
        assert_eq!(named(&mut session, Duration::ZERO), [(AskedBy::Heartbeat(1), 0)]);
        assert_eq!(named(&mut session, LATER), [], "it asks again by itself");
        session.data(&[1, 2]).heartbeat(1, 2).heartbeat(1, 2);
        assert_eq!(named(&mut session, Duration::from_micros(1_500)), [(AskedBy::Heartbeat(3), 1_500)]);
        let (reader, writer) = (READER.entity, WRITER.entity);
        let told = HeartbeatFrag { reader, writer, sequence: number(3), last_fragment: 2, count: 7 };
        session.reader.handle_heartbeat_frag(session.now, WRITER, &told);
        assert_eq!(named(&mut session, Duration::ZERO), [(AskedBy::HeartbeatFrag(7), 0)]);
        session.reader.handle_heartbeat_frag(session.now, WRITER, &told);
        assert_eq!(named(&mut session, LATER), [], "it is repeated");
    }

    #[test]
    fn writers_of_other_vendors_are_told_no_name() {
        let mut session = Session::reliable();
        session.reader.unmatch_writer(session.now, WRITER);
        session.reader.match_writer(session.now, MatchedWriter { vendor: VendorId::CYCLONE, ..matched_writer() });
        session.heartbeat(1, 2);
        assert_eq!(named(&mut session, Duration::ZERO), []);
        assert!(session.outbox.datagrams().next().is_some(), "it has answered");
    }
}
