//! LIVELINESS: which remote writers are alive by their leases, and the signs of life of this participant's own (DDS 1.4 §2.2.3.11,
//! RTPS 2.5 §8.4.13).
//!
//! A writer whose liveliness is automatic lives as long as anything comes from its participant. One of MANUAL_BY_PARTICIPANT needs a
//! sample of its own or of another such writer of its participant, or a participant message; one of MANUAL_BY_TOPIC a sample of its
//! own or a HEARTBEAT that says so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Event, Participant};
use crate::assertion::ManualAssertion;
use crate::history::{ChangeKind, TakenSample};
use crate::payload::Payload;
use crate::qos::{LEASE_MIN, Liveliness as LivelinessQos, LivelinessKind};
use crate::time::{INFINITE, Instant};
use crate::types::{EntityId, Guid, GuidPrefix, KeyHash};
use crate::writer::NewChange;

/// What a participant knows of the liveliness of writers with a finite lease.
#[derive(Debug, Default)]
pub(super) struct Liveliness {
    /// Those that local readers are matched with.
    watched: BTreeMap<Guid, Watched>,
    due: BTreeSet<(Instant, Guid)>,
    own: OwnLeases,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    qos: LivelinessQos,
    asserted: Instant,
    /// When it is looked at again; in `due`.
    due: Instant,
    is_alive: bool,
}

/// The leases of local writers, which the participant renews for them.
#[derive(Debug, Default)]
struct OwnLeases {
    /// Number of writers of each automatic lease.
    automatic: BTreeMap<Duration, usize>,
    /// The same of MANUAL_BY_PARTICIPANT.
    manual: BTreeMap<Duration, usize>,
    asserted: ManualAssertion,
    /// The last assertion that the others were told of.
    told: Instant,
    /// When they were told.
    told_at: Instant,
    /// When to look for an assertion that the others were not told of; `None` without such writers.
    tell_at: Option<Instant>,
}

/// How often in a lease its owner gives a sign of life. With three, two of them may be late or have to be repeated.
const SIGNS_PER_LEASE: u32 = 3;

/// Kinds of participant messages (RTPS 2.5 §9.6.3.2).
const AUTOMATIC_UPDATE: [u8; 4] = [0, 0, 0, 1];
const MANUAL_UPDATE: [u8; 4] = [0, 0, 0, 2];

impl OwnLeases {
    /// The shortest time between two messages about manual assertions. Two assertions that are no more than a lease apart are told within
    /// a lease of each other: the first at once, or a pause after the message before it.
    fn pause(&self) -> Option<Duration> {
        self.manual.keys().next().map(|lease| *lease / SIGNS_PER_LEASE)
    }

    /// When the others are to be told of a manual assertion: at once, unless they were told of one a pause ago; or when to look
    /// whether there is one.
    fn due(&self) -> Option<Instant> {
        let (look_at, pause, asserted) = (self.tell_at?, self.pause()?, self.asserted.last());
        let is_untold = self.told < asserted;
        Some(if is_untold { look_at.min(asserted.max(self.told_at + pause)) } else { look_at })
    }
}

impl Liveliness {
    pub(super) fn next_due(&self) -> Option<Instant> {
        let watched = self.due.first().map(|(due, _)| *due);
        match (watched, self.own.due()) {
            (Some(watched), Some(own)) => Some(watched.min(own)),
            (watched, own) => watched.or(own),
        }
    }

    /// The assertions of local writers of MANUAL_BY_PARTICIPANT.
    pub(super) fn own_assertion(&self) -> &ManualAssertion {
        &self.own.asserted
    }

    /// The longest pause between two signs of life that automatic writers allow.
    pub(super) fn automatic_period(&self) -> Duration {
        self.own.automatic.keys().next().map_or(INFINITE, |lease| *lease / SIGNS_PER_LEASE)
    }

    /// A local writer was created.
    pub(super) fn add_own(&mut self, now: Instant, qos: LivelinessQos) {
        if let Some(leases) = self.leases_of(qos) {
            *leases.entry(qos.lease).or_insert(0) += 1;
            self.plan_to_tell(now);
        }
    }

    /// A local writer was deleted.
    pub(super) fn remove_own(&mut self, now: Instant, qos: LivelinessQos) {
        let Some(leases) = self.leases_of(qos) else { return };
        if let Some(count) = leases.get_mut(&qos.lease) {
            *count -= 1;
            if *count == 0 {
                leases.remove(&qos.lease);
            }
        }
        self.plan_to_tell(now);
    }

    fn leases_of(&mut self, qos: LivelinessQos) -> Option<&mut BTreeMap<Duration, usize>> {
        match qos.kind {
            _ if qos.lease == INFINITE => None,
            LivelinessKind::Automatic => Some(&mut self.own.automatic),
            LivelinessKind::ManualByParticipant => Some(&mut self.own.manual),
            LivelinessKind::ManualByTopic => None,
        }
    }

    fn plan_to_tell(&mut self, now: Instant) {
        let pause = self.own.pause();
        if pause.is_none() {
            // Nobody wants to know, and later writers are alive from their creation on.
            self.own.told = self.own.asserted.last();
        }
        self.own.tell_at = pause.map(|pause| now + pause);
        self.own.asserted.await_from(pause.map_or(Instant::NEVER, |pause| self.own.told_at + pause));
    }

    /// Whether the others are to be told of a manual assertion now.
    fn take_untold(&mut self, now: Instant) -> bool {
        if self.own.due().is_none_or(|due| now < due) {
            return false;
        }
        let is_untold = self.own.told < self.own.asserted.last();
        if is_untold {
            self.note_told(now);
        } else {
            self.plan_to_tell(now);
        }
        is_untold
    }

    /// The others are told of all assertions so far.
    fn note_told(&mut self, now: Instant) {
        (self.own.told, self.own.told_at) = (self.own.asserted.last(), now);
        self.plan_to_tell(now);
    }

    fn file(&mut self, writer: Guid, watched: Watched) {
        if let Some(before) = self.watched.insert(writer, watched) {
            self.due.remove(&(before.due, writer));
        }
        self.due.insert((watched.due, writer));
    }

    /// Whether `writer` is alive, as far as its lease tells.
    pub(super) fn is_alive(&self, writer: Guid) -> bool {
        self.watched.get(&writer).is_none_or(|watched| watched.is_alive)
    }

    /// Watches a writer no longer.
    pub(super) fn forget(&mut self, writer: Guid) {
        if let Some(watched) = self.watched.remove(&writer) {
            self.due.remove(&(watched.due, writer));
        }
    }

    /// A sign of life of a writer. Returns true when it was not alive.
    fn assert(&mut self, now: Instant, writer: Guid) -> bool {
        let Some(watched) = self.watched.get_mut(&writer) else { return false };
        watched.asserted = now;
        if watched.is_alive {
            return false;
        }
        let back = Watched { is_alive: true, due: now + watched.qos.lease, ..*watched };
        self.file(writer, back);
        true
    }

    /// The writers of a participant that are asserted together.
    fn of_participant(&self, prefix: GuidPrefix) -> Vec<Guid> {
        let all = Guid::new(prefix, EntityId([0; 4]))..=Guid::new(prefix, EntityId([0xff; 4]));
        let together = |watched: &Watched| watched.qos.kind == LivelinessKind::ManualByParticipant;
        self.watched.range(all).filter(|(_, watched)| together(watched)).map(|(writer, _)| *writer).collect()
    }
}

impl Participant {
    /// A local reader is matched with a writer, which is alive now.
    pub(super) fn watch_liveliness(&mut self, now: Instant, writer: Guid) {
        let Some(known) = self.database.publications.get(writer) else { return };
        let announced = known.data.qos.liveliness;
        // Others may announce any lease, even none: each look at a writer has to lie ahead.
        let qos = LivelinessQos { lease: announced.lease.max(LEASE_MIN), ..announced };
        let is_near = writer.prefix == self.config.prefix || self.housemates.contain(writer.prefix);
        let was_alive = self.liveliness.is_alive(writer);
        if qos.lease == INFINITE || qos.kind == LivelinessKind::Automatic && is_near {
            // This process lives, or nobody would ask.
            self.liveliness.forget(writer);
        } else if self.liveliness.watched.get(&writer).is_none_or(|watched| watched.qos != qos) {
            let watched = Watched { qos, asserted: now, due: now + qos.lease, is_alive: true };
            self.liveliness.file(writer, watched);
        } else {
            return;
        }
        if !was_alive {
            self.tell_alive(writer);
        }
    }

    /// A sample of a writer came, or a HEARTBEAT that asserts its liveliness.
    #[inline]
    pub(super) fn note_asserted(&mut self, now: Instant, writer: Guid) {
        if !self.liveliness.watched.is_empty() {
            self.assert_writer(now, writer);
        }
    }

    #[inline(never)]
    fn assert_writer(&mut self, now: Instant, writer: Guid) {
        let Some(kind) = self.liveliness.watched.get(&writer).map(|watched| watched.qos.kind) else { return };
        match kind {
            LivelinessKind::ManualByParticipant => self.assert_participant(now, writer.prefix),
            _ if self.liveliness.assert(now, writer) => self.tell_alive(writer),
            _ => {}
        }
    }

    /// The liveliness of all writers of a participant is asserted that are asserted together.
    fn assert_participant(&mut self, now: Instant, prefix: GuidPrefix) {
        for writer in self.liveliness.of_participant(prefix) {
            if self.liveliness.assert(now, writer) {
                self.tell_alive(writer);
            }
        }
    }

    /// A participant message came: an automatic one says no more than any datagram does.
    pub(super) fn handle_participant_message(&mut self, now: Instant, prefix: GuidPrefix, sample: &TakenSample) {
        let about = sample.payload.get(ENCAPSULATION_LEN..).and_then(|body| body.split_first_chunk::<12>());
        let Some((about, kind)) = about.filter(|_| sample.info.valid) else { return };
        if GuidPrefix(*about) == prefix && kind.starts_with(&MANUAL_UPDATE) {
            self.assert_participant(now, prefix);
        }
    }

    fn tell_alive(&mut self, writer: Guid) {
        for reader in self.matched_readers_of(writer) {
            if let Some(shared) = self.endpoints.reader(reader) {
                shared.lock().writer_alive(writer);
            }
            self.reports.tell(Event::WriterAlive { reader, writer });
        }
    }

    fn tell_not_alive(&mut self, now: Instant, writer: Guid) {
        for reader in self.matched_readers_of(writer) {
            self.tell_reader_not_alive(now, reader, writer);
        }
    }

    /// Tells a local reader that a writer that it is matched with is not alive.
    pub(super) fn tell_reader_not_alive(&mut self, now: Instant, reader: EntityId, writer: Guid) {
        let Some(shared) = self.endpoints.reader(reader) else { return };
        let (outcome, armed) = {
            let mut state = shared.lock();
            (state.writer_not_alive(now, writer), state.newly_armed())
        };
        self.note_reader_outcome(now, reader, outcome, armed);
        self.reports.tell(Event::WriterNotAlive { reader, writer });
    }

    fn matched_readers_of(&self, writer: Guid) -> Vec<EntityId> {
        self.database.publications.get(writer).map_or_else(Vec::new, |known| known.matched.clone())
    }

    /// Does what is due: leases of others end, and our own manual writers give signs of life.
    pub(super) fn check_liveliness(&mut self, now: Instant) {
        while let Some((due, writer)) = self.liveliness.due.first().copied().filter(|(due, _)| *due <= now) {
            let Some(watched) = self.liveliness.watched.get(&writer).copied() else {
                self.liveliness.due.remove(&(due, writer));
                continue;
            };
            let asserted = watched.asserted.max(self.last_sign_of(writer.prefix, watched.qos.kind));
            let ends = asserted + watched.qos.lease;
            let is_alive = ends > now;
            // One that is back is noticed by what comes from it, but for signs that are looked for here.
            let look_again = if is_alive { ends } else { now + watched.qos.lease };
            self.liveliness.file(writer, Watched { asserted, due: look_again, is_alive, ..watched });
            match (watched.is_alive, is_alive) {
                (true, false) => self.tell_not_alive(now, writer),
                (false, true) => self.tell_alive(writer),
                _ => {}
            }
        }
        if self.liveliness.take_untold(now) {
            self.write_manual_message(now);
        }
    }

    /// When a participant last gave a sign of life for its writers of this kind without a message of its own.
    fn last_sign_of(&self, prefix: GuidPrefix, kind: LivelinessKind) -> Instant {
        match kind {
            LivelinessKind::Automatic => {
                self.database.participants.get(&prefix).map_or(Instant::ZERO, |known| known.alive_at)
            }
            LivelinessKind::ManualByParticipant if prefix == self.config.prefix => self.liveliness.own.asserted.last(),
            LivelinessKind::ManualByParticipant => self.housemates.asserted_by(prefix),
            LivelinessKind::ManualByTopic => Instant::ZERO,
        }
    }

    /// Asserts the liveliness of this participant, and with it that of its writers of MANUAL_BY_PARTICIPANT (DDS 1.4 §2.2.2.2.1.18).
    pub fn assert_liveliness(&mut self, now: Instant) {
        self.liveliness.own.asserted.assert(now);
        self.liveliness.note_told(now);
        if self.liveliness.own.tell_at.is_some() {
            self.write_manual_message(now);
        }
        self.assert_participant(now, self.config.prefix);
    }

    fn write_manual_message(&mut self, now: Instant) {
        let message = participant_message(self.config.prefix, MANUAL_UPDATE);
        self.write_builtin(now, EntityId::PARTICIPANT_MESSAGE_WRITER, message);
    }
}

/// A message that tells automatic writers of a participant to be alive, and renews its lease.
pub(super) fn automatic_message(prefix: GuidPrefix) -> NewChange {
    participant_message(prefix, AUTOMATIC_UPDATE)
}

/// A `ParticipantMessageData` without data (RTPS 2.5 §9.6.3.2).
fn participant_message(prefix: GuidPrefix, kind: [u8; 4]) -> NewChange {
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend_from_slice(&prefix.0);
    bytes.extend_from_slice(&kind);
    bytes.extend_from_slice(&[0; 4]);
    let mut instance = [0; 16];
    instance[..12].copy_from_slice(&prefix.0);
    instance[12..].copy_from_slice(&kind);
    let (kind, instance) = (ChangeKind::Write, KeyHash(instance));
    NewChange { kind, instance, timestamp: None, payload: Payload::from(bytes) }
}

const ENCAPSULATION_LEN: usize = 4;
