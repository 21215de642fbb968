//! The I/O thread of a participant: it receives, drives the state machine, sends, and delivers events.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thalweg_rtps::outbox::Outbox;
use thalweg_rtps::participant::Event;
use thalweg_rtps::qos::TrafficClass;
use thalweg_rtps::shared::debug_assert_none_held;
use thalweg_rtps::time::Instant;
use thalweg_rtps::types::EntityId;
use thalweg_transport::udp::{Datagram, Origin, Receiver, Wakeup};
use thalweg_transport::{clock, thread};

use super::RuntimeState;
use super::addresses::{AddressPlan, local_addresses};
use super::gathering::Gathering;
use super::household;
use super::paths::Paths;
use super::turn_times::TurnTimes;
use crate::trace;

/// Settings of the I/O thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct IoOptions {
    /// Polls the sockets without ever sleeping.
    pub(crate) busy_poll: bool,
    /// Processors that it may run on; empty means any.
    pub(crate) affinity: Vec<usize>,
}

thread_local! {
    static IS_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// True on the I/O thread of any participant, which must not wait: it could not receive meanwhile.
pub(crate) fn on_io_thread() -> bool {
    IS_IO_THREAD.get()
}

/// The longest sleep while reliable writers are active: a write then rarely has to wake the thread for its deadline, which is
/// later.
const ACTIVE_SLEEP_MAX: Duration = Duration::from_millis(20);
/// Time after the last request of a writer for which sleeps stay short.
const ACTIVE_FOR: Duration = Duration::from_millis(30);
/// Longest delay until a busy participant learns of a step of the wall clock; an idle one learns of it when it wakes up.
const CLOCK_PERIOD: Duration = Duration::from_millis(100);
/// Polls of a busy I/O thread between two checks of everything but busy sockets.
const POLLS_PER_WAIT: u32 = 32;
/// Timer slack of timed waits; Linux's default of 50 µs is a whole round trip.
const TIMER_SLACK: Duration = Duration::from_micros(5);
/// Most times that the I/O thread gives way to calls of the API in one turn.
const YIELDS_MAX: usize = 64;
/// Rounds of farewell messages at shutdown, bounded in case a peer keeps asking.
const FAREWELL_ROUNDS_MAX: usize = 64;

pub(crate) struct IoThread {
    state: Arc<RuntimeState>,
    receiver: Receiver,
    plan: AddressPlan,
    options: IoOptions,
    inbox: Vec<Datagram>,
    outbox: Outbox,
    events: Vec<Event>,
    requests: Vec<(EntityId, Instant)>,
    paths: Paths,
    gathering: Gathering,
    /// When the participant wants to be called again.
    due: Instant,
    turns: TurnTimes,
    /// Time until which writers count as active.
    active_until: Instant,
    /// Time at which the participant last got the wall-clock offset.
    clock_told: Instant,
}

impl IoThread {
    pub(super) fn new(state: Arc<RuntimeState>, receiver: Receiver, plan: AddressPlan, options: IoOptions) -> IoThread {
        let gathering = Gathering::new(state.participant.lock().receive_buffer_bytes());
        IoThread {
            state,
            receiver,
            plan,
            options,
            inbox: Vec::new(),
            outbox: Outbox::new(),
            events: Vec::new(),
            requests: Vec::new(),
            paths: Paths::default(),
            gathering,
            due: Instant::ZERO,
            turns: TurnTimes::new(clock::now()),
            active_until: Instant::ZERO,
            clock_told: Instant::ZERO,
        }
    }

    pub(super) fn run(mut self) {
        IS_IO_THREAD.set(true);
        thread::set_timer_slack(TIMER_SLACK);
        if !self.options.affinity.is_empty()
            && let Err(error) = thread::set_affinity(&self.options.affinity)
        {
            tracing::warn!("the I/O thread runs on any processor: {error}");
        }
        while !self.state.is_stopping() {
            if self.turns.wants_to_ask() {
                self.ask_all();
            }
            let received = self.receiver.receive(&mut self.inbox);
            if received > 0 {
                trace::received();
            }
            if received == 0 && self.turns.take_settled() {
                if self.options.busy_poll {
                    self.poll()
                } else {
                    self.sleep()
                }
                // Most likely a datagram ended the wait: it is received before the next turn, which would otherwise do nothing.
                continue;
            }
            let has_more = self.turn();
            self.turns.end_turn(has_more);
        }
        self.say_farewell();
    }

    /// One turn: handles received datagrams and due timers, sends, delivers events. True when more is to be sent.
    fn turn(&mut self) -> bool {
        self.let_callers_pass();
        let now = clock::now();
        if self.turns.has_missed(now, self.due) {
            self.ask_all();
            self.receiver.receive(&mut self.inbox);
        }
        let timers_wait = self.turns.begin_turn(now, self.due, self.inbox.len());
        self.state.alarm.take_requests(&mut self.requests);
        if !self.requests.is_empty() {
            self.active_until = now + ACTIVE_FOR;
        }
        let is_due = self.due <= now || !self.requests.is_empty();
        let mut participant = self.state.participant.lock();
        if now.since(self.clock_told) > CLOCK_PERIOD {
            participant.set_wall_clock(now, self.state.timestamp(now));
            self.clock_told = now;
        }
        for (entity, at) in self.requests.drain(..) {
            participant.rearm(entity, at);
        }
        self.gathering.set_budget(now, participant.latency_budget());
        self.gathering.note_arrivals(now, self.inbox.iter().map(|datagram| datagram.payload.len()));
        participant.handle_datagrams(now, self.inbox.iter().map(|datagram| (&datagram.payload, datagram.source)));
        self.inbox.clear();
        participant.handle_household(now);
        if is_due && !timers_wait && participant.poll_timeout() <= now {
            participant.handle_timeout(now);
        }
        let more = participant.poll_transmit(now, &mut self.outbox);
        let class = participant.traffic_class();
        while let Some(event) = participant.poll_event() {
            self.events.push(event);
        }
        self.due = participant.poll_timeout();
        let more = more || self.due <= now;
        drop(participant);
        // Listeners come before sending: the application's data matter more than an acknowledgement.
        for event in self.events.drain(..) {
            if let Event::AddressesChosen(prefix) = event {
                self.paths.note_chosen(prefix);
            }
            self.state.deliver(event);
        }
        self.state.agenda.run_inline();
        self.send(class);
        let types = &self.state.types;
        let asked = types.due() <= now && types.look_up(now, &self.state.participant);
        self.measure_paths(now) || asked || more
    }

    fn send(&mut self, class: TrafficClass) {
        if !self.outbox.is_empty() {
            debug_assert_none_held();
            trace::sending(|| self.state.sender.send_as(Origin::Metatraffic, class, &self.outbox));
            self.outbox.clear();
        }
    }

    /// Tells the participant how large datagrams may be; true when a size has changed, so that it may have something to send.
    fn measure_paths(&mut self, now: Instant) -> bool {
        if self.state.sender.take_path_news() {
            self.paths.note_news();
        }
        let told = self.paths.measure(now, &self.state.participant, &self.state.sender);
        self.due = self.due.min(self.paths.due()).min(self.state.types.due());
        told
    }

    /// Lets calls of the API that wait for the participant go first: this thread would otherwise take the lock again at once, and
    /// calls to a busy participant would wait for ever.
    fn let_callers_pass(&self) {
        for _ in 0..YIELDS_MAX {
            if self.state.callers.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn sleep(&mut self) {
        if let Some(until) = self.gathering.pause_after(self.turns.last()) {
            std::thread::sleep(until.min(self.due).since(clock::now()));
            self.ask_all();
            return;
        }
        // The time of the last turn is exact enough, since it only keeps sleeps short while writers are active.
        let limit =
            if self.turns.last() < self.active_until { self.turns.last() + ACTIVE_SLEEP_MAX } else { Instant::NEVER };
        let until = self.due.min(limit);
        if self.state.alarm.fall_asleep(until) && !self.state.is_stopping() {
            let waited = self.receiver.wait_until(until);
            self.note_wakeup(waited);
        }
        self.state.alarm.awake();
    }

    /// Spins until there is something to do.
    fn poll(&mut self) {
        loop {
            for _ in 0..POLLS_PER_WAIT {
                if self.receiver.receive_polling(&mut self.inbox) > 0 {
                    trace::received();
                    return;
                }
                std::hint::spin_loop();
            }
            if self.ask_all() || self.state.alarm.has_requests() || clock::now() >= self.due {
                return;
            }
        }
    }

    /// Asks all sockets whether they have something; true when there is any news.
    fn ask_all(&mut self) -> bool {
        let waited = self.receiver.wait(Some(Duration::ZERO));
        self.note_wakeup(waited)
    }

    /// Handles the events of a wait; true when there were any.
    fn note_wakeup(&mut self, waited: std::io::Result<Wakeup>) -> bool {
        match waited {
            Ok(wakeup) => {
                let has_news = wakeup != Wakeup::default();
                self.turns.note_asked(has_news);
                if wakeup.interfaces_changed {
                    self.use_new_interfaces();
                }
                has_news
            }
            Err(error) => {
                tracing::error!("the participant can no longer receive: {error}");
                self.state.stopping.store(true, Ordering::Release);
                true
            }
        }
    }

    fn use_new_interfaces(&mut self) {
        match self.receiver.refresh_interfaces(&self.state.sender) {
            Ok((interfaces, notices)) => {
                notices.iter().for_each(|notice| tracing::warn!("{notice}"));
                let addresses = local_addresses(&self.plan, &interfaces);
                self.state.participant.lock().set_addresses(clock::now(), addresses);
                self.paths.note_news();
            }
            Err(error) => tracing::warn!("network interfaces changed, but cannot be listed: {error}"),
        }
    }

    /// Tells all peers that the participant leaves, before the sockets close.
    fn say_farewell(&mut self) {
        self.state.participant.lock().shutdown(clock::now());
        household::wake_told();
        for _ in 0..FAREWELL_ROUNDS_MAX {
            let (more, class) = {
                let mut participant = self.state.participant.lock();
                (participant.poll_transmit(clock::now(), &mut self.outbox), participant.traffic_class())
            };
            self.send(class);
            if !more {
                return;
            }
        }
    }
}
