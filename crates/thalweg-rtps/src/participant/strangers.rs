//! Received announcements, and challenges: a participant is known once it has proved its address. Until then it is a stranger, is
//! sent at most three bytes for each of its own, and is matched with nothing (docs/decisions/0014-strangers.md).

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::{Event, LostReason, Participant};
use crate::discovery::challenge::HALVES;
use crate::discovery::database::DiscoveryLimit;
use crate::discovery::participant_data::ParticipantData;
use crate::discovery::reach::is_own;
use crate::discovery::strangers::{ANNOUNCEMENT_MAX, Former, Stranger, StrangerKey};
use crate::discovery::{KnownParticipant, Reach};
use crate::history::ChangeKind;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::time::Instant;
use crate::types::{EntityId, Guid, GuidPrefix, Locator, SequenceNumber};
use crate::wire::parameters::ParameterList;
use crate::wire::write;
use crate::wire::{AckNack, Content, Data, Heartbeat, SequenceSet};

/// Time without anything from the known address of a participant, while it is asked there, after which it counts as moved.
const SILENCE: Duration = Duration::from_secs(2);
/// Most strangers that are sent something in one outbox.
const SERVED_MAX: usize = 64;

/// The announcement, if it is short enough to be kept; an ordinary one has about 400 bytes. A longer one is decoded each time that
/// it comes.
fn kept(announced: &[u8]) -> &[u8] {
    if announced.len() <= ANNOUNCEMENT_KEPT_MAX { announced } else { &[] }
}

/// Bytes of the longest announcement that is kept of a participant.
const ANNOUNCEMENT_KEPT_MAX: usize = 2_048;

impl Participant {
    /// The number of participants that have announced themselves and not proved their address.
    pub fn strangers(&self) -> usize {
        self.strangers.len()
    }

    /// Handles an announcement or a farewell of a participant.
    pub(super) fn handle_participant_data(
        &mut self,
        now: Instant,
        (source, from): (GuidPrefix, SocketAddr),
        datagram: &Payload,
        data: &Data<'_>,
    ) {
        match &data.content {
            Content::Data(range) => self.handle_announced(now, source, from, &datagram[range.clone()]),
            Content::Key(range) => match ParticipantData::decode_key(&datagram[range.clone()]) {
                Ok(prefix) if prefix == source => self.handle_farewell(now, source, from.ip()),
                _ => self.reports.counters.unusable_announcements += 1,
            },
            Content::None => {
                let status = data.inline_qos.as_ref().map_or(0, ParameterList::status_info);
                if ChangeKind::from_status_info(status).disposes() {
                    self.handle_farewell(now, source, from.ip());
                }
            }
        }
    }

    fn handle_farewell(&mut self, now: Instant, prefix: GuidPrefix, from: IpAddr) {
        self.strangers.remove_from(prefix, from);
        let known = self.database.participants.get(&prefix);
        match known.map(|known| known.reach.sends_from(&self.config.addresses, from)) {
            Some(false) => self.reports.counters.foreign_source += 1,
            _ => self.remove_participant(now, prefix, LostReason::Left),
        }
    }

    fn handle_announced(&mut self, now: Instant, source: GuidPrefix, from: SocketAddr, announced: &[u8]) {
        let known = self.database.participants.get(&source);
        if known.is_some_and(|known| *known.announced == *announced) && !self.may_have_moved(source, from.ip()) {
            return;
        }
        if let Some(key) = self.strangers.find_same(source, from.ip(), announced) {
            return self.strangers.note_announcement(now, key, write::DATA_HEAD_LEN + announced.len());
        }
        match ParticipantData::decode(announced) {
            Ok(data) if data.guid_prefix == source && announced.len() <= ANNOUNCEMENT_MAX => {
                self.handle_announcement(now, from, data, announced);
            }
            _ => self.reports.counters.unusable_announcements += 1,
        }
    }

    /// Whether a known participant speaks from another one of its addresses and has left several questions unanswered where it is known to
    /// be: a network between the two is gone, of which its announcements need not tell.
    fn may_have_moved(&self, prefix: GuidPrefix, from: IpAddr) -> bool {
        let (local, known) = (&self.config.addresses, self.database.participants.get(&prefix));
        let is_elsewhere =
            known.is_some_and(|known| known.reach.sends_from(local, from) && !known.reach.is_at(local, from));
        is_elsewhere
            && self.endpoints.builtin().standard().any(|topic| {
                let writer = self.endpoints.writer(topic.writer);
                writer.is_some_and(|writer| writer.lock().is_reader_silent(Guid::new(prefix, topic.reader)))
            })
    }

    /// Files a stranger, or updates a known participant.
    fn handle_announcement(&mut self, now: Instant, source: SocketAddr, data: ParticipantData, announced: &[u8]) {
        let prefix = data.guid_prefix;
        let is_no_peer = data.domain_id.is_some_and(|id| id != self.config.domain_id)
            || data.domain_tag != self.config.domain_tag
            || prefix == self.config.prefix
            || prefix == GuidPrefix::UNKNOWN
            || self.company.is_banned(prefix);
        if is_no_peer {
            return;
        }
        let may_have_moved = self.may_have_moved(prefix, source.ip());
        let (local, host) = (&self.config.addresses, self.config.host);
        if let Some(known) = self.database.participants.get_mut(&prefix) {
            let is_there = known.reach.sends_from(local, source.ip());
            if *known.data == data {
                self.housemates.listen_to(&data);
                if is_there && *known.announced != *kept(announced) {
                    known.announced = kept(announced).into();
                }
                // The same data from another source address do not move a participant that answers.
                if !may_have_moved {
                    return;
                }
            } else if !self.company.accepts(&data) {
                // Only the participant itself may change its groups.
                if is_there {
                    self.avoid(now, &data);
                }
                return;
            } else {
                let reach = Reach::within(local, host, &data, source, Some(known.reach.proved().to_vec()));
                if is_there && !reach.metatraffic.is_empty() {
                    known.announced = kept(announced).into();
                    return self.update_participant(now, data, reach);
                }
            }
        } else if !self.company.accepts(&data) {
            return self.avoid(now, &data);
        } else {
            self.company.forget(prefix);
        }
        let reach = Reach::new(local, host, &data, source);
        let is_own = is_own(local, source.ip());
        let (key, evicted) = self.strangers.file(now, source.ip(), is_own, (data, announced, reach));
        self.reports.counters.strangers_evicted += evicted;
        let can_answer = self.strangers.get_mut(key).is_some_and(|stranger| stranger.challenge.is_possible());
        self.reports.counters.unprovable += u64::from(!can_answer);
        self.strangers.note_announcement(now, key, write::DATA_HEAD_LEN + announced.len());
    }

    /// Updates the data of a known participant.
    fn update_participant(&mut self, now: Instant, data: ParticipantData, reach: Reach) {
        let prefix = data.guid_prefix;
        let Some(known) = self.database.participants.get_mut(&prefix) else { return };
        (known.data, known.announced) = self.housemates.share(data, Arc::clone(&known.announced));
        known.reach = reach.keeping_path_of(&known.reach);
        known.heard_at = now;
        known.renew_lease(now);
        self.order.schedule.set_lease_check(self.database.next_lease_end());
        self.neighbours.note_change(now);
        self.match_builtin(now, prefix);
        self.rematch_participant(now, prefix);
        self.reports.tell(Event::AddressesChosen(prefix));
        self.show_participant(now, prefix);
    }

    /// Handles a HEARTBEAT of a stranger: a challenge, or a sign that the stranger waits for us.
    pub(super) fn note_stranger_heartbeat(
        &mut self,
        now: Instant,
        source: GuidPrefix,
        from: SocketAddr,
        heartbeat: &Heartbeat,
    ) {
        let Some(half) = HALVES.iter().position(|(writer, _)| *writer == heartbeat.writer) else {
            return self.note_stranger_waits(now, source, from, (heartbeat.writer, write::HEARTBEAT_LEN));
        };
        let is_empty = heartbeat.last < heartbeat.first;
        if self.database.participants.contains_key(&source) {
            self.housemates.note_heartbeat(source, heartbeat);
            // Our reader answers where the participant is known to be. If it may have moved, it is answered there, too: both ends may have.
            if !is_empty || self.strangers.find_from(source, from.ip()).is_none() {
                return;
            }
        }
        let Some(key) = self.strangers.find(source, from.ip()) else { return };
        let Some(stranger) = self.strangers.get_mut(key) else { return };
        if !is_empty {
            // It knows us and waits: a challenge or its answer was lost.
            stranger.has_spoken = true;
            stranger.earn(write::HEARTBEAT_LEN);
            return self.strangers.ask_again(now, key);
        }
        let asks = !heartbeat.is_final && heartbeat.first > SequenceNumber::FIRST;
        if asks && stranger.data.vendor.traits().challenges_strangers {
            stranger.earn(write::HEARTBEAT_LEN);
            stranger.owed.numbers[half] = Some(heartbeat.first);
            stranger.owed.to = Some(from.ip());
            self.strangers.queue(key);
        }
    }

    /// Handles a message of a stranger from or to a built-in writer without challenges: the stranger knows us and waits, so a
    /// challenge or its answer was lost.
    fn note_stranger_waits(&mut self, now: Instant, source: GuidPrefix, from: SocketAddr, sent: (EntityId, usize)) {
        let (writer, bytes) = sent;
        if self.strangers.is_empty() || !writer.is_builtin() || self.database.participants.contains_key(&source) {
            return;
        }
        let Some(key) = self.strangers.find(source, from.ip()) else { return };
        if let Some(stranger) = self.strangers.get_mut(key) {
            stranger.earn(bytes);
            self.strangers.ask_again(now, key);
        }
    }

    /// Notes that a stranger has sent samples of discovery, which are not heard: it has to repeat them once it is known.
    pub(super) fn note_stranger_speaks(&mut self, source: GuidPrefix, from: SocketAddr, writer: EntityId) {
        if self.strangers.is_empty() || !writer.is_builtin() || self.database.participants.contains_key(&source) {
            return;
        }
        let key = self.strangers.find(source, from.ip());
        if let Some(stranger) = key.and_then(|key| self.strangers.get_mut(key)) {
            stranger.has_spoken = true;
        }
    }

    /// Checks whether an ACKNACK answers the challenge of a stranger.
    pub(super) fn judge_stranger(&mut self, now: Instant, source: GuidPrefix, from: SocketAddr, acknack: &AckNack) {
        let pair = (acknack.writer, acknack.reader);
        let Some(half) = HALVES.iter().position(|half| *half == pair) else {
            return self.note_stranger_waits(now, source, from, (acknack.writer, write::ACKNACK_MIN_LEN));
        };
        if self.strangers.is_empty() {
            return;
        }
        let keys: Vec<StrangerKey> = self.strangers.of(source).collect();
        if keys.is_empty() {
            return;
        }
        let base = acknack.state.base();
        let former = self.addresses_proved(source);
        let is_back = self.numbers_beyond(source, half).is_some_and(|beyond| beyond.contains(&base))
            || former.iter().any(|address| self.strangers.secret().challenge(source, *address, half) == base);
        let local = &self.config.addresses;
        let is_there = |address: IpAddr| {
            let here = is_own(local, address) && is_own(local, from.ip());
            is_back && (address == from.ip() || here || former.contains(&address))
        };
        let mut right = None;
        for key in &keys {
            let Some(stranger) = self.strangers.get_mut(*key) else { continue };
            if let Some(address) = stranger.challenge.address_proved_by(half, base, is_there) {
                stranger.challenge.accept(half, address, from.ip());
                right = Some(*key);
            }
        }
        let Some(key) = right else {
            for key in keys {
                let stranger = self.strangers.get_mut(key);
                self.reports.counters.wrong_proofs +=
                    u64::from(stranger.is_some_and(|stranger| stranger.challenge.refuse(base)));
            }
            return;
        };
        let proved = self.strangers.get_mut(key).and_then(|stranger| stranger.challenge.proved());
        if let Some(address) = proved {
            self.meet(now, key, address);
        }
    }

    /// Addresses that a participant has proved, even if it is no longer known.
    fn addresses_proved(&self, prefix: GuidPrefix) -> Vec<IpAddr> {
        let mut addresses = self.strangers.former(prefix).map(|former| former.addresses.clone()).unwrap_or_default();
        let known = self.database.participants.get(&prefix);
        addresses.extend(known.iter().flat_map(|known| known.reach.proved()));
        addresses
    }

    /// The numbers that a reader may ask for if it knows us from an earlier match.
    fn numbers_beyond(&self, prefix: GuidPrefix, half: usize) -> Option<RangeInclusive<SequenceNumber>> {
        let (writer, reader) = HALVES[half];
        let writer = self.endpoints.writer(writer)?.lock();
        let former = || self.strangers.former(prefix).map(|former| former.acknowledged[half]);
        let acknowledged = writer.acknowledged_by(Guid::new(prefix, reader)).or_else(former)?;
        Some(acknowledged.next()..=writer.last().next())
    }

    /// Remembers the last announcements that a participant has acknowledged, and its addresses, before it is forgotten.
    pub(super) fn remember_former(&mut self, prefix: GuidPrefix) {
        let acknowledged = HALVES.map(|(writer, reader)| {
            let writer = self.endpoints.writer(writer)?.lock();
            writer.acknowledged_by(Guid::new(prefix, reader))
        });
        if let [Some(publications), Some(subscriptions)] = acknowledged {
            let known = self.database.participants.get(&prefix);
            let addresses = known.map(|known| known.reach.proved().to_vec()).unwrap_or_default();
            let acknowledged = [publications, subscriptions];
            self.strangers.remember_former(prefix, Former { acknowledged, addresses });
        }
    }

    /// Handles the proof that a stranger is at `address`.
    fn meet(&mut self, now: Instant, key: StrangerKey, address: IpAddr) {
        let prefix = key.0;
        if let Some(known) = self.database.participants.get(&prefix) {
            let Some(stranger) = self.strangers.get_mut(key) else { return };
            if known.reach.is_at(&self.config.addresses, address) {
                // It has not moved, and announcements in its name from elsewhere do not count.
                self.strangers.remove(key);
                return;
            }
            let silent_at = known.heard_at.max(stranger.since) + SILENCE;
            if now < silent_at && now < known.lease_until {
                return self.strangers.set_due(key, silent_at);
            }
        }
        // Data announced from that very address take precedence.
        let key = self.strangers.find_from(prefix, address).unwrap_or(key);
        let Some(stranger) = self.strangers.remove(key) else { return };
        if !self.company.accepts(&stranger.data) {
            return self.avoid(now, &stranger.data);
        }
        if !self.has_room_for(prefix, address) {
            return self.reports.note_over_limit(prefix, DiscoveryLimit::Participants);
        }
        self.strangers.remove_all(prefix);
        self.company.forget(prefix);
        self.admit(now, stranger, address);
    }

    /// A participant was silent for all of its lease where it was. If it has answered elsewhere meanwhile, it is there.
    pub(super) fn follow_at_lease_end(&mut self, now: Instant, prefix: GuidPrefix) {
        let keys: Vec<StrangerKey> = self.strangers.of(prefix).collect();
        for key in keys {
            let proved = self.strangers.get_mut(key).and_then(|stranger| stranger.challenge.proved());
            let known = self.database.participants.get(&prefix);
            let is_elsewhere =
                |address: &IpAddr| known.is_some_and(|known| !known.reach.is_at(&self.config.addresses, *address));
            if let Some(address) = proved.filter(is_elsewhere) {
                self.meet(now, key, address);
                // It may have forgotten us since.
                self.announcer.greet(prefix);
            }
        }
    }

    /// Whether there is room for one more participant at `address`: those of one other host take at most half of the room.
    fn has_room_for(&self, prefix: GuidPrefix, address: IpAddr) -> bool {
        let participants = &self.database.participants;
        let max = self.database.limits.participants_max;
        let at_address = || participants.values().filter(|known| known.reach.proved().contains(&address)).count();
        let is_own = is_own(&self.config.addresses, address);
        participants.contains_key(&prefix) || participants.len() <= max && (is_own || at_address() < max.div_ceil(2))
    }

    fn admit(&mut self, now: Instant, stranger: Stranger, address: IpAddr) {
        let (local, host) = (&self.config.addresses, self.config.host);
        let (source, prefix) = (SocketAddr::new(stranger.source(), 0), stranger.data.guid_prefix);
        let mut reach = Reach::within(local, host, &stranger.data, source, Some(vec![address]));
        let (data, announced) = self.housemates.share(stranger.data, kept(&stranger.announced).into());
        if let Some(from) = stranger.challenge.answered_from() {
            reach.senders.add(from);
        }
        if let Some(known) = self.database.participants.get_mut(&prefix) {
            known.announced = announced;
            return self.update_participant(now, ParticipantData::clone(&data), reach);
        }
        let mut known = KnownParticipant {
            announced,
            data,
            reach,
            lease_until: now,
            alive_at: now,
            heard_at: now,
            has_spoken: stranger.has_spoken,
        };
        known.renew_lease(now);
        self.database.participants.insert(prefix, known);
        // Its challenge came with a greeting, but it may have forgotten us since.
        if self.strangers.former(prefix).is_some() {
            self.announcer.greet(prefix);
        }
        self.order.schedule.set_lease_check(self.database.next_lease_end());
        self.neighbours.note_change(now);
        self.reports.tell(Event::ParticipantDiscovered(prefix));
        self.reports.tell(Event::AddressesChosen(prefix));
        self.match_builtin(now, prefix);
        self.show_participant(now, prefix);
    }

    /// Notes addresses of an endpoint's own: its participant sends from them, and those that have not answered are not used.
    pub(super) fn note_addresses(&mut self, prefix: GuidPrefix, unicast: &[Locator]) {
        if let Some(known) = self.database.participants.get_mut(&prefix) {
            known.reach.senders.add_locators(unicast);
            self.reports.counters.unproved_locators +=
                known.reach.count_unproved(&self.config.addresses, unicast) as u64;
        }
    }

    /// Does what is due for strangers: asks them again, or lets those move that were silent for long enough at their known address.
    pub(super) fn look_at_strangers(&mut self, now: Instant) {
        while let Some(key) = self.strangers.pop_due(now) {
            let proved = self.strangers.get_mut(key).and_then(|stranger| stranger.challenge.proved());
            if let Some(address) = proved {
                self.meet(now, key, address);
            }
            self.strangers.ask(key);
        }
    }

    /// Appends answers and challenges for strangers, as far as these have paid for them.
    pub(super) fn transmit_to_strangers(&mut self, now: Instant, outbox: &mut Outbox) {
        for _ in 0..SERVED_MAX {
            let Some(key) = self.strangers.pop_queued() else { break };
            self.answer_stranger(key, outbox);
            self.challenge_stranger(now, key, outbox);
        }
    }

    fn answer_stranger(&mut self, key: StrangerKey, outbox: &mut Outbox) {
        let Some(stranger) = self.strangers.get_mut(key) else { return };
        let owed = std::mem::take(&mut stranger.owed);
        let count = owed.numbers.iter().flatten().count();
        let is_near = |locator: &&Locator| locator.socket_address().map(|at| at.ip()) == owed.to;
        let to = stranger.reach.metatraffic.iter().find(is_near).or(stranger.reach.metatraffic.first()).copied();
        let bytes = write::HEADER_LEN + write::INFO_DST_LEN + count * write::ACKNACK_MIN_LEN;
        let Some(to) = to.filter(|_| count > 0 && stranger.pay(bytes)) else { return };
        outbox.begin(&[to]);
        write::header(outbox.buffer(), self.config.prefix);
        write::info_destination(outbox.buffer(), key.0);
        for ((writer, reader), base) in HALVES.into_iter().zip(owed.numbers) {
            let Some(base) = base else { continue };
            // Count 0, since our readers begin to count at 1.
            let acknack = AckNack { reader, writer, state: SequenceSet::new(base), count: 0, is_final: true };
            write::acknack(outbox.buffer(), &acknack);
        }
        outbox.finish();
    }

    fn challenge_stranger(&mut self, now: Instant, key: StrangerKey, outbox: &mut Outbox) {
        let secret = self.strangers.secret();
        let Some(stranger) = self.strangers.get_mut(key) else { return };
        if !stranger.take_request() {
            return;
        }
        let halves: Vec<usize> = (0..HALVES.len()).filter(|half| stranger.challenge.has_half(*half)).collect();
        let bytes = write::HEADER_LEN + write::INFO_DST_LEN + halves.len() * write::HEARTBEAT_LEN;
        // A known participant that may have moved is also asked at its known address, or not at all: whoever says so might pay for one
        // question alone.
        let known = self.database.participants.get(&key.0);
        let before = known.and_then(|known| known.reach.metatraffic.first()).copied();
        let questions = 1 + usize::from(before.is_some());
        if halves.is_empty() || !stranger.pay(questions * bytes) {
            return self.strangers.plan_next(now, key, false);
        }
        let Some((to, announces)) = stranger.next_address(now, secret) else {
            return self.strangers.plan_next(now, key, false);
        };
        let numbers = to.socket_address().and_then(|address| stranger.challenge.numbers(address.ip()));
        outbox.begin(&[to]);
        write::header(outbox.buffer(), self.config.prefix);
        if announces && stranger.pay(self.announcer.announcement_bytes()) {
            self.announcer.append_announcement(outbox);
        }
        self.append_challenge(key.0, &halves, numbers.unwrap_or_default(), outbox);
        if let Some(before) = before {
            outbox.begin(&[before]);
            write::header(outbox.buffer(), self.config.prefix);
            // The numbers that prove the new address go to that one alone.
            let numbers = before.socket_address().map(|at| [0, 1].map(|half| secret.challenge(key.0, at.ip(), half)));
            self.append_challenge(key.0, &halves, numbers.unwrap_or_default(), outbox);
        }
        outbox.finish();
        self.strangers.plan_next(now, key, true);
    }

    /// Appends empty HEARTBEATs of our writers of endpoint discovery to the open datagram.
    fn append_challenge(
        &self,
        prefix: GuidPrefix,
        halves: &[usize],
        numbers: [SequenceNumber; 2],
        outbox: &mut Outbox,
    ) {
        write::info_destination(outbox.buffer(), prefix);
        for &half in halves {
            let (writer, reader) = HALVES[half];
            if let Some(writer) = self.endpoints.writer(writer) {
                write::heartbeat(outbox.buffer(), &writer.lock().empty_heartbeat(reader, numbers[half]));
            }
        }
    }
}
