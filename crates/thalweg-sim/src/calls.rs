//! Send calls of applications that take time: their thread holds the writer's sender token while the participant goes on.

use std::time::Duration;

use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::rng::Rng;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::SequenceNumber;

use crate::simulation::{Happening, Simulation};

/// How long the send calls of a process's applications last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendTimes {
    /// Time for each datagram.
    pub datagram: Duration,
    /// Probability that the thread is interrupted in a call, before its datagrams leave or after.
    pub interrupted: f64,
    /// The longest interruption.
    pub interruption: Duration,
}

impl SendTimes {
    /// Nothing happens during a call.
    pub const NONE: SendTimes = SendTimes { datagram: Duration::ZERO, interrupted: 0.0, interruption: Duration::ZERO };

    fn draw(&self, rng: &mut Rng, datagrams: usize) -> Duration {
        let work = self.datagram * u32::try_from(datagrams).unwrap_or(u32::MAX);
        let most = self.interruption.as_nanos() as u64;
        match most > 0 && rng.chance(self.interrupted) {
            true => work + Duration::from_nanos(rng.below(most)),
            false => work,
        }
    }
}

/// What a thread does after it has sent for a writer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// The writing thread goes on with its burst, or waits for room if `sequence` is missing; the participant is to send at `arm`.
    GoOnWriting { sequence: Option<SequenceNumber>, arm: Option<Instant> },
    /// The participant is told that liveliness was asserted.
    Assert { by_participant: bool },
    /// The participant is told of the end of a set.
    EndSet,
}

/// A send call that is under way.
pub(crate) struct Call {
    began: Instant,
    ends: Instant,
    datagrams: usize,
    /// Datagrams that leave at its end, since the thread was interrupted before.
    held: Outbox,
    /// When the participant is to send what may not leave yet.
    pause: Option<Instant>,
    then: Then,
}

impl Call {
    /// When it is over.
    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// The thread that writes is in it.
    pub(crate) fn keeps_from_writing(&self) -> bool {
        matches!(self.then, Then::GoOnWriting { .. })
    }
}

impl Simulation {
    /// Sends on the application's thread, as production does, and does what follows. Returns `None` if the call lasts: what follows
    /// comes with its end. Otherwise whether the thread may write again.
    pub(crate) fn transmit(&mut self, number: usize, mut then: Then) -> Option<bool> {
        let process = self.writers[number].record.process;
        let now = self.processes[process].local(self.now);
        let handle = self.writers[number].handle.clone()?;
        self.outbox.clear();
        let sending = handle.lock().start_sending(now, &mut self.outbox);
        let pause = handle.lock().pause_to_arm();
        let arms_first = sending && handle.lock().has_promises();
        if let Then::GoOnWriting { arm, .. } = &mut then
            && let Some(at) = arm.take_if(|_| arms_first)
        {
            let entity = handle.lock().guid().entity;
            let outbox = std::mem::take(&mut self.outbox);
            if let Some(participant) = self.processes[process].participant.as_mut() {
                participant.rearm(entity, at);
            }
            self.drive(process);
            self.outbox = outbox;
        }
        self.go_on_sending(number, sending, pause, then)
    }

    fn go_on_sending(
        &mut self,
        number: usize,
        mut sending: bool,
        mut pause: Option<Instant>,
        then: Then,
    ) -> Option<bool> {
        let process = self.writers[number].record.process;
        let now = self.processes[process].local(self.now);
        let handle = self.writers[number].handle.clone()?;
        while sending {
            let datagrams = self.outbox.len();
            let times = self.plan.processes[process].sends;
            let lasts = times.draw(&mut self.interruptions, datagrams);
            if lasts > Duration::ZERO {
                let held = match self.interruptions.chance(0.5) {
                    true => std::mem::take(&mut self.outbox),
                    false => Outbox::new(),
                };
                self.send(process);
                let ends = self.now + lasts;
                self.writers[number].call = Some(Call { began: self.now, ends, datagrams, held, pause, then });
                self.queue.plan(ends, Happening::CallEnds(number));
                return None;
            }
            self.send(process);
            self.outbox.clear();
            sending = handle.lock().continue_sending(now, now, datagrams, &mut self.outbox);
            // The new deadline is earlier than the one reported before.
            pause = handle.lock().pause_to_arm().or(pause);
        }
        Some(self.after_sending(number, pause, then))
    }

    /// A send call is over.
    pub(crate) fn end_call(&mut self, number: usize) {
        let writer = &mut self.writers[number];
        let Some(call) = writer.call.take_if(|call| call.ends <= self.now) else { return };
        let (process, Some(handle)) = (writer.record.process, writer.handle.clone()) else { return };
        self.outbox = call.held;
        self.send(process);
        self.outbox.clear();
        let clock = &self.processes[process];
        let (began, now) = (clock.local(call.began), clock.local(self.now));
        let sending = handle.lock().continue_sending(began, now, call.datagrams, &mut self.outbox);
        let pause = handle.lock().pause_to_arm().or(call.pause);
        let writes_on = self.go_on_sending(number, sending, pause, call.then);
        if let Then::GoOnWriting { sequence, .. } = call.then {
            match writes_on {
                Some(true) => self.write(number),
                // Room that came during the call was told to nobody.
                Some(false) if sequence.is_none() && self.ask_for_room(number) => {
                    self.queue.plan(self.now, Happening::Retry(number));
                }
                _ => {}
            }
        }
    }

    /// Returns whether the writer has room for the change that was refused; else it will tell of it.
    fn ask_for_room(&self, number: usize) -> bool {
        let application = &self.writers[number];
        let (index, process) = (application.record.index, application.record.process);
        let topic = &self.plan.topics[index.topic];
        let now = self.processes[process].local(self.now);
        let change = application.change(topic, &topic.writers[index.place], now);
        let Some((handle, change)) = application.handle.as_ref().zip(change) else { return false };
        handle.lock().ask_for_room(&change.instance, change.payload.len())
    }

    fn after_sending(&mut self, number: usize, pause: Option<Instant>, then: Then) -> bool {
        let (index, process) = (self.writers[number].record.index, self.writers[number].record.process);
        let Some(handle) = self.writers[number].handle.clone() else { return false };
        let entity = handle.lock().guid().entity;
        let now = self.processes[process].local(self.now);
        let Some(participant) = self.processes[process].participant.as_mut() else { return false };
        match then {
            Then::GoOnWriting { sequence, arm } => {
                for at in [arm, pause].into_iter().flatten() {
                    participant.rearm(entity, at);
                }
                self.drive(process);
                if sequence.is_none() {
                    self.wait_for_space(number);
                    return false;
                }
                let plan = &self.plan.topics[index.topic].writers[index.place];
                if self.writers[number].left_in_burst == 0 {
                    self.queue.plan(self.now + plan.period, Happening::Burst(number));
                }
                true
            }
            Then::Assert { by_participant } => {
                if by_participant {
                    participant.assert_liveliness(now);
                    // The participant gives its sign when the call is over.
                    self.writers[number].record.told.asserted.push(self.now);
                }
                participant.rearm(entity, now);
                self.drive(process);
                true
            }
            Then::EndSet => {
                for at in [Some(now), pause].into_iter().flatten() {
                    participant.rearm(entity, at);
                }
                self.drive(process);
                true
            }
        }
    }
}
