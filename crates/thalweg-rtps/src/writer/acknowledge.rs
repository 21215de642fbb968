//! What readers answer, and what happens when they do not (RTPS 2.5 §8.4.9).

use super::Writer;
use super::charges::kernel_cost;
use super::congestion::{Answered, DATAGRAM};
use super::flow::Position;
use super::loss::Loss;
use super::pack::batch_bytes;
use super::reader_proxy::{AllAsked, MatchedReader, Owed, ReaderProxy};
use super::repair::cut_of;
use super::repairs::Repairs;
use super::transmission::Place;
use crate::history::{HeldSample, WriterHistory};
use crate::time::Instant;
use crate::types::{Guid, SequenceNumber};
use crate::wire::batch::AckNackBatch;
use crate::wire::{AckNack, NackFrag, SequenceSet, write};

/// What an input changed for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterOutcome {
    /// A refused write may be tried again.
    pub space: bool,
    /// Every reader has acknowledged everything, or every one that was not given up as much as somebody waits for, and had not before.
    pub all_acknowledged: bool,
    /// A reader made no progress for as long as the writer's QoS allows, and is no longer waited for.
    pub given_up: Option<Guid>,
    /// Some instance was not written for longer than the writer's DEADLINE.
    pub deadline_missed: bool,
    /// The application did not assert the writer's liveliness in time.
    pub liveliness_lost: bool,
    /// It tells of the reader's path: [`Writer::judge_path`] is to be called when the rest of the datagram was handled.
    pub tells_of_path: bool,
}

/// What an ACKNACK and an ACKNACK_BATCH have in common.
struct Answer {
    /// First sample that the reader does not have.
    base: SequenceNumber,
    /// It asks for something.
    asks: bool,
    /// And for nothing that was sent.
    asks_in_vain: bool,
    /// The last sample that it tells of: what it does not ask for up to there has arrived.
    told: SequenceNumber,
    count: u32,
    is_final: bool,
}

impl Answer {
    /// `state` asks for samples or packs, of which `unsent` is the first that was not sent.
    fn new(base: SequenceNumber, state: &SequenceSet, unsent: SequenceNumber, count: u32, is_final: bool) -> Answer {
        let first = state.iter().next();
        Answer {
            base,
            asks: first.is_some(),
            asks_in_vain: first.is_some_and(|first| first >= unsent),
            told: base.previous(),
            count,
            is_final,
        }
    }

    /// True for what Thalweg's readers send until they have heard of the writer: it may have crossed a HEARTBEAT and answers none.
    fn asks_for_heartbeat(&self) -> bool {
        !self.asks && !self.is_final
    }

    /// True for what readers send before they have heard anything of the writer (RTPS 2.5 §8.4.2.3.4): RTI and Fast DDS from 0 on,
    /// Cyclone DDS from 1 on with a count of 0.
    fn is_preemptive(&self) -> bool {
        !self.asks && (self.base < SequenceNumber::FIRST || self.base == SequenceNumber::FIRST && self.count == 0)
    }
}

impl Writer {
    /// Takes an ACKNACK into account; unknown readers and repeated messages change nothing.
    pub fn handle_acknack(&mut self, now: Instant, reader: Guid, acknack: &AckNack) -> WriterOutcome {
        let base = acknack.state.base();
        let unsent = self.outgoing.place.sample;
        let answer = Answer::new(base, &acknack.state, unsent, acknack.count, acknack.is_final);
        let told = acknack.state.last().unwrap_or(answer.told);
        let answer = Answer { told, ..answer };
        let old = self.excused(reader);
        let (place, charges, usual_bytes) = (self.outgoing.place, self.flow.charges, self.collection.sample_bytes());
        let uses_group = self.route.uses_group();
        self.handle_answer(now, reader, &answer, |proxy, history| {
            let suppression = proxy.suppression();
            // Large ones leave part by part.
            let Repairs { samples, large, .. } = &mut proxy.repairs;
            let leaves = |number| large.iter().any(|large| large.sequence == number && !large.is_done());
            let lost = samples.request(now, acknack.state, unsent, old, suppression, leaves);
            let tells = !uses_group || proxy.group.has_brought_any();
            let uncut = |proxy: &ReaderProxy, number, bytes| {
                let repeated = Some(proxy.repairs.charges).filter(|_| proxy.repairs.samples.was_repeated(number));
                repeated.unwrap_or_default().or(charges).of(bytes)
            };
            let single = |cost| Loss::datagram(if tells { cost } else { 0 });
            let each = |number| match history.get(number) {
                Some(sample) if cut_of(&sample, proxy.repair_bytes, place).is_none() => {
                    single(uncut(proxy, number, sample.len()))
                }
                Some(sample) => proxy.lose_whole(now, sample, place, tells).unwrap_or(single(DATAGRAM)),
                None => single(uncut(proxy, number, usual_bytes).min(DATAGRAM)),
            };
            lost.iter().map(each).fold(Loss::default(), Loss::and)
        })
    }

    /// Takes an ACKNACK_BATCH into account, as [`Writer::handle_acknack`] does.
    pub fn handle_acknack_batch(&mut self, now: Instant, reader: Guid, acknack: &AckNackBatch) -> WriterOutcome {
        if !self.believes_pack(acknack.state.base()) {
            return WriterOutcome::default();
        }
        // Of packs that went before they were sent, the first one there is has the next number and later samples.
        let base = self.history.pack(acknack.state.base()).0.min(self.outgoing.place.sample);
        let unsent = self.history.pack_of(self.outgoing.place.sample);
        let answer = Answer::new(base, &acknack.state, unsent, acknack.count, acknack.is_final);
        let old = self.history.pack_of(self.excused(reader).next()).previous();
        let (usual_cost, uses_group) = (self.usual_cost(), self.route.uses_group());
        self.handle_answer(now, reader, &answer, |proxy, history| {
            let suppression = proxy.suppression();
            let lost = proxy.repairs.packs.request(now, acknack.state, unsent, old, suppression, |_| false);
            let tells = !uses_group || proxy.group.has_brought_any();
            let each = |pack| Loss::datagram(frame_cost(history, pack).unwrap_or(usual_cost));
            lost.iter().filter(|_| tells).map(each).fold(Loss::default(), Loss::and)
        })
    }

    /// The last sample of which a reader may lack some although its path carries what is sent now: it came later, was left behind, or
    /// what is sent was slowed down for it since.
    fn excused(&self, reader: Guid) -> SequenceNumber {
        let sent = self.outgoing.place.position();
        self.readers.get(reader).map_or(SequenceNumber::ZERO, |proxy| proxy.joined.max(proxy.excused(sent).sample))
    }

    fn handle_answer(
        &mut self,
        now: Instant,
        reader: Guid,
        answer: &Answer,
        request: impl FnOnce(&mut ReaderProxy, &WriterHistory) -> Loss,
    ) -> WriterOutcome {
        if !self.believes_base(reader, answer.base) {
            self.put_right(now, reader);
            return WriterOutcome::default();
        }
        let unsent = self.outgoing.place.sample;
        let was_behind = !self.all_acknowledged();
        let place = self.outgoing.place.position();
        let uses_group = self.route.uses_group();
        let Some(mut proxy) = self.readers.get_mut(reader) else {
            return WriterOutcome::default();
        };
        if !proxy.matched.reliable || !proxy.accept_acknack(answer.count) {
            return WriterOutcome::default();
        }
        self.counters.acknacks += 1;
        let highest = proxy.base;
        if proxy.matched.vendor.traits().may_begin_anew && proxy.relapse.note_answer(answer.base, highest) {
            proxy.shorten_pause();
        }
        proxy.base = highest.max(answer.base);
        let acknowledged = Position::whole(answer.base.previous().min(unsent.previous()));
        let progressed = acknowledged > proxy.acknowledged;
        let announced = self.flow.announced_between(proxy.acknowledged, acknowledged);
        // What is sent to all, and the requests beside it, do not reach one that gets nothing but repairs.
        let (announced, all_asked) = match proxy.repairs_only {
            None => (announced, self.heartbeat.all_asked),
            Some(_) => (None, AllAsked::default()),
        };
        let is_named = proxy.echoes.take_name(now);
        if proxy.matched.vendor.traits().asks_until_greeted && answer.asks_for_heartbeat() && !is_named {
            proxy.last_heard = now;
        } else if proxy.echoes.measure {
            proxy.asking.note_told(is_named);
            proxy.last_heard = now;
        } else if let Some(took) = proxy.take_answer(now, &all_asked, announced, answer.asks) {
            self.heartbeat.round_trip.measured(took);
        }
        // What one that is behind lacked first has arrived. Others lose too little for that to tell how long their queue is.
        let is_measured = progressed && !proxy.is_up_to_date();
        let first = proxy.acknowledged.sample.next();
        let repaired = is_measured.then(|| proxy.repairs.sent_once_at(first)).flatten().map(|at| now.since(at));
        let took = announced.filter(|at| !proxy.repairs.followed(*at)).map(|at| now.since(at));
        let told = Position::whole(answer.told.min(unsent.previous()));
        let reached = acknowledged.max(proxy.acknowledged).max(told);
        let answered = Answered { repaired, ..self.flow.answered(reached, took) };
        let first_contact = !proxy.proven;
        proxy.proven |= !proxy.must_prove_itself() || !answer.is_preemptive();
        let proves = first_contact && proxy.proven;
        let newest = self.history.get(acknowledged.sample);
        let was_large = newest.is_some_and(|sample| sample.fragment_bytes.is_some());
        let was_active = proxy.active;
        if progressed {
            proxy.acknowledged = acknowledged;
            if !std::mem::replace(&mut proxy.active, true) {
                proxy.forgone.pass_over(unsent);
            }
            proxy.note_progress();
            proxy.repairs.forget_below(answer.base);
        }
        proxy.repairs.paused_until = None;
        if answer.asks {
            proxy.shorten_pause();
            let lost = request(&mut proxy, &self.history);
            proxy.note_loss(lost);
        } else {
            proxy.repairs.withdraw_samples();
        }
        // A request that is not served because its repair is on its way gets no HEARTBEAT either: the reader would answer
        // with the same request at once, and so on.
        let is_owed = first_contact || !answer.asks || answer.asks_in_vain && proxy.is_to_be_put_right(now);
        if !answer.is_final && proxy.repairs.is_empty() && is_owed {
            proxy.owed = proxy.owed.max_with(if first_contact { Owed::Greeting } else { Owed::Heartbeat });
        }
        let tells_of_path = proxy.hear(answered);
        // What it was not told of until now.
        if proves && proxy.matched.vendor.traits().needs_proof_of_match && proxy.acknowledged.sample < unsent.previous()
        {
            proxy.owed = proxy.owed.max_with(Owed::Heartbeat);
        }
        if !answer.asks_in_vain {
            proxy.group.note_acknack(answer.asks, progressed, place);
        }
        let group_fails = uses_group && proxy.judge_group();
        if group_fails {
            proxy.change_path(now, &answered, place);
        }
        let asks_soon = answer.asks && proxy.is_awaited();
        let has_relapsed = proxy.relapse.is_open() && proxy.is_awaited();
        let counts_otherwise = was_active != proxy.active || proves;
        let leaves_group = group_fails.then(|| proxy.matched.clone());
        drop(proxy);
        if let Some(matched) = &leaves_group {
            self.leave_group(matched);
        }
        if counts_otherwise || group_fails {
            self.readers_changed();
        }
        if has_relapsed || (progressed || asks_soon) && self.heartbeat.due.is_some() {
            self.hasten_heartbeat(now);
        }
        if progressed && was_large {
            self.flow.note_arrival();
        }
        let space = progressed && self.release_acknowledged();
        let all_acknowledged = self.poll_acknowledgement() || was_behind && self.all_acknowledged();
        WriterOutcome { space, all_acknowledged, tells_of_path, ..WriterOutcome::default() }
    }

    /// Takes a NACK_FRAG into account.
    pub fn handle_nack_frag(&mut self, now: Instant, reader: Guid, nack: &NackFrag) -> WriterOutcome {
        if !self.believes_fragments(reader, nack) {
            return WriterOutcome::default();
        }
        let next_unsent = self.outgoing.place.sample;
        let uses_group = self.route.uses_group();
        let Some(mut proxy) = self.readers.get_mut(reader) else {
            return WriterOutcome::default();
        };
        if !proxy.matched.reliable || !proxy.accept_nack_frag(nack.count) {
            return WriterOutcome::default();
        }
        self.counters.acknacks += 1;
        proxy.last_heard = now;
        proxy.proven = true;
        let suppression = proxy.suppression();
        proxy.repairs.paused_until = None;
        let confirms = proxy.matched.vendor.traits().confirms_fragments;
        if !confirms && !nack.state.is_empty() {
            self.flow.note_loss();
        }
        let limit = proxy.repair_bytes;
        let held = self.history.get(nack.sequence);
        // Where the path has become narrower in its midst, what was sent at first is of no use to the reader, but not lost.
        let first_cut = held.as_ref().and_then(|sample| sample.fragment_bytes);
        match held.map(|sample| cut_of(&sample, limit, self.outgoing.place)) {
            Some(Some(cut)) => {
                let slowed_at = proxy.excused(self.outgoing.place.position());
                let tells = !uses_group || proxy.group.has_brought_any();
                let is_first_cut = tells && first_cut.is_none_or(|bytes| bytes == cut.fragment_bytes);
                let counts =
                    |fragments| is_first_cut && Position { sample: nack.sequence.previous(), fragments } > slowed_at;
                let lost = proxy.repairs.request_fragments(now, nack.sequence, cut, &nack.state, suppression, counts);
                proxy.note_loss(lost.loss());
            }
            // The reader holds a forged fragment for a part of the sample, which needs none.
            Some(None) if !nack.state.is_empty() => {
                proxy.repairs.samples.add(now, nack.sequence, next_unsent, suppression);
            }
            Some(None) => {}
            None if nack.sequence < next_unsent && !nack.state.is_empty() => {
                proxy.repairs.samples.add_gone(nack.sequence)
            }
            None => {}
        }
        // Thalweg's readers answer every HEARTBEAT_FRAG: what is below the base has arrived, and the set reaches as far as they
        // were told. Those that count in smaller fragments, since their path became narrower, may be beyond all that was sent.
        let sent = if nack.sequence == next_unsent { self.outgoing.place.fragment } else { u32::MAX };
        let below_base = nack.state.base().saturating_sub(1).min(sent);
        let position = Position { sample: nack.sequence.previous(), fragments: below_base };
        let told = Position { fragments: below_base.saturating_add(nack.state.bits()), ..position };
        let announced = self.flow.announced_between(proxy.told, told);
        let took = announced.filter(|at| told > position || !proxy.repairs.followed(*at)).map(|at| now.since(at));
        proxy.told = proxy.told.max(told);
        let answered = self.flow.answered(told, took);
        let next_sample = proxy.acknowledged.sample.next() == nack.sequence;
        let confirmed = confirms && next_sample && position >= proxy.acknowledged;
        let progressed = confirmed && position > proxy.acknowledged;
        let tells_of_path = confirms && proxy.hear(answered);
        let is_news = proxy.is_up_to_date() && told.sample >= proxy.joined;
        if is_news {
            proxy.group.note_fragments(told, nack.state.iter());
        }
        let group_fails = is_news && uses_group && proxy.judge_group();
        if group_fails {
            proxy.change_path(now, &answered, self.outgoing.place.position());
        }
        if progressed {
            proxy.acknowledged = position;
            proxy.note_progress();
        }
        let leaves_group = group_fails.then(|| proxy.matched.clone());
        drop(proxy);
        if progressed && self.heartbeat.due.is_some() {
            self.hasten_heartbeat(now);
        }
        if let Some(matched) = &leaves_group {
            self.leave_group(matched);
            self.readers_changed();
        }
        // What it confirms may not have been asked about when it came.
        let space = confirmed && self.release_acknowledged();
        WriterOutcome { space, tells_of_path, ..WriterOutcome::default() }
    }

    /// The group does not reach a reader. Where nobody is sent to through it any more, what others have lost of what was says nothing of
    /// their paths either.
    fn leave_group(&mut self, matched: &MatchedReader) {
        self.route.insert(matched);
        if self.route.uses_group() {
            return;
        }
        let sent = self.outgoing.place.position();
        let excuse = |reader: &mut ReaderProxy| {
            if !reader.group.has_brought_any() {
                reader.slowed_at = reader.slowed_at.max(sent);
            }
        };
        self.readers.change(|_, _| true, excuse);
    }

    /// To be called when a datagram of a reader was handled: its path is judged by all that it has told together.
    pub fn judge_path(&mut self, now: Instant, reader: Guid) {
        let Some(answered) = self.readers.get(reader).and_then(|proxy| proxy.heard) else { return };
        let place = self.outgoing.place.position();
        let has_changed = self.readers.get_mut(reader).is_some_and(|mut proxy| {
            proxy.heard = None;
            proxy.adapt_path(now, &answered, place)
        });
        if has_changed {
            self.paths_changed();
        }
        self.settle_laggard(now, reader);
    }

    /// Frees what was sent and every awaited reader has acknowledged. Returns whether a blocked write should be tried again.
    ///
    /// A reader that has just come acknowledges what was written before it, which says nothing of whether that was sent: others may
    /// still be owed it.
    pub(super) fn release_acknowledged(&mut self) -> bool {
        let sent = self.outgoing.place.sample.previous();
        let together = *self.readers.summary();
        let known = self.free_history(sent, together.awaited().unwrap_or(sent));
        if !self.keeps_history() && together.any.given_up {
            let forsake = |reader: &mut ReaderProxy| reader.forsaken = reader.forsaken.max(known);
            self.readers.change(|readers, _| readers.any.given_up, forsake);
        }
        let slowest = together.following.unwrap_or(Position::whole(sent));
        let in_mid_sample = self.outgoing.place.fragment > 0;
        let all = slowest.sample > sent || slowest.sample == sent && !in_mid_sample;
        self.flow.record_acknowledged(slowest, all);
        let has_room = self.room.is_drained(&self.history) || self.is_waiting_for_nobody();
        let drained = self.room.take_awaited(has_room);
        self.note_movement() || drained
    }
}

impl ReaderProxy {
    /// It asks for all of `sample`, of which no part has arrived; where its first transmission `tells` of the path, that counts. Returns what that tells to be lost; `None` where the
    /// sample has no parts, or the reader asks for all when it lacks some.
    fn lose_whole(&mut self, now: Instant, sample: HeldSample<'_>, place: Place, tells: bool) -> Option<Loss> {
        let cut = cut_of(&sample, self.repair_bytes, place)?;
        if !self.matched.vendor.traits().confirms_fragments {
            return None;
        }
        let (before, slowed_at) = (sample.sequence.previous(), self.excused(place.position()));
        let is_first_cut = tells && sample.fragment_bytes.is_none_or(|bytes| bytes == cut.fragment_bytes);
        let counts = |fragments| is_first_cut && Position { sample: before, fragments } > slowed_at;
        let lost = self.repairs.lose_whole(now, sample.sequence, cut, self.suppression(), counts);
        if self.is_up_to_date() {
            self.group.note_fragments(Position { sample: before, fragments: cut.fragments }, 1..=cut.fragments);
        }
        Some(lost.loss())
    }
}

impl Owed {
    pub(super) fn max_with(self, other: Owed) -> Owed {
        if self == Owed::Greeting { self } else { other }
    }
}

/// Kernel memory of a frame on its way, which is lost as a whole; `None` for a change by itself and for what is gone.
fn frame_cost(history: &WriterHistory, pack: SequenceNumber) -> Option<u64> {
    let at = history.frame_with(history.pack(pack).0).filter(|at| at.batch == pack)?;
    let bytes = batch_bytes(at.frame) + write::HEADER_LEN;
    // Short ones share a datagram.
    Some((bytes as u64 * 7 / 4).min(kernel_cost(bytes)))
}
