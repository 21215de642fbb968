//! New samples into the history.

use super::transmission::Place;
use super::{NewChange, WriteRefused, Writer, Written};
use crate::history::{Change, ChangeKind, FrameLimit, PushResult, SmallSample};
use crate::time::{Instant, Timestamp};
use crate::types::{Guid, KeyHash, SampleIdentity, SequenceNumber};
use crate::wire::write;

/// Samples up to this size are collected by copy; larger ones share datagrams as they are.
pub(super) const FRAMED_BYTES_MAX: usize = 2_048;

impl Writer {
    /// Adds a sample to the history; it leaves with the next [`Writer::start_sending`] or [`Writer::poll_transmit`] that its
    /// transmission method allows.
    ///
    /// # Errors
    /// [`WriteRefused`] when the history has no room. The caller waits for `Event::SpaceAvailable`, at most
    /// [`Writer::max_blocking_time`], and tries again.
    pub fn write(&mut self, now: Instant, change: NewChange) -> Result<Written, WriteRefused> {
        self.write_related(now, change, None)
    }

    /// As [`Writer::write`] for a sample that is related to another one, as a reply is to its request: readers are told.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write_related(
        &mut self,
        now: Instant,
        change: NewChange,
        related: Option<&SampleIdentity>,
    ) -> Result<Written, WriteRefused> {
        let bytes = change.payload.len();
        if change.kind != ChangeKind::Write {
            self.history.clean_up(now);
        }
        if !self.make_room_for(&change.instance, bytes) {
            return Err(self.refuse(now, bytes));
        }
        self.collection.note_written(now, bytes);
        self.history.set_conflating(self.collection.conflates());
        let (instance, kind) = (change.instance, change.kind);
        // Frames keep nothing beside the samples' bytes.
        let is_framed = related.is_none() && change.kind == ChangeKind::Write && self.frames(bytes);
        let small = change.timestamp.filter(|_| is_framed);
        let pushed = match (small, change.payload.split_first_chunk()) {
            (Some(timestamp), Some((encapsulation, body))) => {
                let sample = SmallSample { instance: change.instance, timestamp, encapsulation: *encapsulation, body };
                self.history.collect(&sample, self.frame_limit())
            }
            _ => self.history.push(Change {
                sequence: SequenceNumber::UNKNOWN,
                kind: change.kind,
                instance: change.instance,
                timestamp: change.timestamp,
                fragment_bytes: self.route.fragment_bytes(bytes),
                payload: change.payload,
            }),
        };
        self.registered.note(instance, kind);
        self.note_promised(now, (instance, kind), pushed.sequence);
        self.coherent.note_written(pushed.sequence, &self.history);
        if let Some(related) = related {
            self.note_related(pushed.sequence, *related);
        }
        Ok(self.note_pushed(now, pushed, bytes))
    }

    /// As [`Writer::write`] for a sample that may be collected with others: `serialized` is copied to where it will be sent
    /// from. `None` when it is not to be collected, because it is large or the writer is idle: then it is to be written by
    /// [`Writer::write`].
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub fn write_small(
        &mut self,
        now: Instant,
        instance: KeyHash,
        timestamp: Timestamp,
        serialized: &[u8],
    ) -> Option<Result<Written, WriteRefused>> {
        let (encapsulation, body) = serialized.split_first_chunk()?;
        if !self.frames(serialized.len()) {
            return None;
        }
        if !self.make_room_for(&instance, serialized.len()) {
            return Some(Err(self.refuse(now, serialized.len())));
        }
        self.collection.note_written(now, serialized.len());
        self.history.set_conflating(self.collection.conflates());
        let sample = SmallSample { instance, timestamp, encapsulation: *encapsulation, body };
        let pushed = self.history.collect(&sample, self.frame_limit());
        self.registered.note(instance, ChangeKind::Write);
        self.note_promised(now, (instance, ChangeKind::Write), pushed.sequence);
        Some(Ok(self.note_pushed(now, pushed, serialized.len())))
    }

    /// Samples wait from now on, until [`Writer::resume`], [`Writer::flush`], or 60,000 bytes of them (DDS 1.4 §2.2.2.4.1.8). The samples of
    /// an asynchronous writer wait for their flow controller alone.
    pub fn suspend(&mut self) {
        self.collection.suspend();
    }

    /// Samples that wait leave with the next [`Writer::start_sending`] or [`Writer::poll_transmit`], and later ones as ever.
    pub fn resume(&mut self) {
        self.collection.resume();
    }

    /// Nobody knows what the store holds: nothing counts as stored, and the next [`Writer::take_records`] tells all that the history holds.
    /// What the store has beside that is to go.
    pub fn retell_records(&mut self) {
        self.history.retell_records();
    }

    #[inline]
    fn note_promised(&mut self, now: Instant, change: (KeyHash, ChangeKind), sequence: SequenceNumber) {
        if let Some(promises) = &mut self.promises {
            promises.note_written(now, change, sequence, &self.history);
        }
    }

    /// A sample of `instance` is about to be written that the content filters of the readers `refusing` refuse. `Some` when nobody else is
    /// there to get it, now or later: then it is not to be written, and counts as written for DEADLINE and LIVELINESS. The number is that
    /// of the last sample that was written.
    pub fn pass_over_unwanted(&mut self, now: Instant, instance: KeyHash, refusing: &[Guid]) -> Option<Written> {
        let is_unwanted = !self.keeps_history()
            && !self.coherent.is_open()
            && !self.readers.is_empty()
            && self.readers.iter().all(|reader| refusing.contains(&reader.matched.guid));
        is_unwanted.then(|| {
            self.counters.unwanted += 1;
            self.registered.note(instance, ChangeKind::Write);
            self.note_promised(now, (instance, ChangeKind::Write), SequenceNumber::ZERO);
            let owes_assertion = self.promises.as_ref().is_some_and(|promises| promises.owes_assertion());
            let arm = self.newly_armed();
            Written { sequence: self.last(), arm: if owes_assertion { Some(now) } else { arm } }
        })
    }

    /// True while samples of the usual size wait for others in one buffer, so that [`Writer::write_small`] will take them.
    #[inline]
    pub fn collects(&self) -> bool {
        self.frames(self.collection.sample_bytes())
    }

    /// Whether a sample of so many bytes becomes part of a frame: where a datagram has no room for two of them, a frame would
    /// only be one more copy.
    #[inline]
    fn frames(&self, bytes: usize) -> bool {
        let two_fit = |limit: FrameLimit| 2 * (bytes + limit.overhead) <= limit.bytes;
        self.collection.collects()
            && !self.coherent.is_open()
            && !self.coherent.is_grouped()
            && !self.readers.is_empty()
            && bytes <= FRAMED_BYTES_MAX
            && two_fit(self.frame_limit())
    }

    fn frame_limit(&self) -> FrameLimit {
        let around = write::HEADER_LEN
            + write::INFO_DST_LEN
            + write::DATA_BATCH_HEAD_LEN
            + write::ENCAPSULATION_LEN
            + write::HEARTBEAT_BATCH_LEN
            + 3;
        FrameLimit { bytes: self.route.datagram_bytes().saturating_sub(around), overhead: write::BATCH_SAMPLE_LEN }
    }

    pub(super) fn note_pushed(&mut self, now: Instant, pushed: PushResult, bytes: usize) -> Written {
        if let Some(overwritten) = pushed.overwrote
            && self.readers.summary().awaited().is_some_and(|acknowledged| acknowledged < overwritten)
        {
            self.counters.overwritten_unacknowledged += 1;
        }
        if self.readers.is_empty() {
            self.outgoing.place = Place::before(pushed.sequence.next());
            self.history.sent_up_to(pushed.sequence.next());
            self.free_history(pushed.sequence, pushed.sequence);
            return Written { sequence: pushed.sequence, arm: self.newly_armed() };
        }
        if self.collection.collects() {
            self.collection.add(now, bytes);
        }
        self.ahead.unsent_bytes += bytes as u64;
        if self.heartbeat.due.is_none() && self.is_awaiting() {
            self.schedule_heartbeat(now);
        }
        let arm = self.newly_armed();
        let queued = self.note_written(now, pushed.sequence);
        Written { sequence: pushed.sequence, arm: if queued { Some(now) } else { arm } }
    }

    /// Lets what only late readers would get go for a change. Returns whether it fits then: into the history, and into the store.
    #[inline]
    pub(super) fn make_room_for(&mut self, instance: &KeyHash, bytes: usize) -> bool {
        if self.room.evicts {
            self.history.make_room(instance, bytes);
        }
        self.history.room_for(instance, bytes) && self.history.has_record_room(bytes)
    }

    fn refuse(&mut self, now: Instant, bytes: usize) -> WriteRefused {
        self.room.wait();
        self.counters.refused += 1;
        self.flush();
        self.request_acknowledgement(now);
        WriteRefused {
            readers_behind: self.readers_behind(),
            readers: self.readers.iter().filter(|reader| reader.matched.reliable).count(),
            held: self.history.len(),
            awaits_store: !self.history.has_record_room(bytes),
            arm: self.newly_armed().or_else(|| self.collection.is_asynchronous().then_some(now)),
        }
    }
}
