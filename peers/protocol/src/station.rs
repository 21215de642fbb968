//! The endpoints of one run of a scenario, with the schedule, the records and the words of the laboratory's own processes.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_lab_station as lab;
use thalweg_lab_station::{
    Fault, HistorySetting, Note, Order, PeerSetup, PublisherPlace, ReliabilitySetting, SubscriberPlace,
};

use crate::middleware::{Channel, End, Keep, Middleware, Profile, Reader, Setup, Sink, Wait, WriteError, Writer};
use crate::{Interface, options};

/// Takes an order from standard input and makes this process's part of the run; returns the exit code.
pub fn run<M: Middleware>() -> Result<i32, String> {
    let output = own_output().map_err(|error| format!("standard output: {error}"))?;
    let code = lab::serve_station::<Peer<M>>(Box::new(output));
    Ok(i32::from(code != std::process::ExitCode::SUCCESS))
}

/// Standard output for our words alone: what a library prints goes to standard error from now on.
fn own_output() -> io::Result<File> {
    // SAFETY: plain calls with descriptors that every process has; the new one is ours alone.
    unsafe {
        let own = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        if own < 0 || libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from_raw_fd(own))
    }
}

/// A middleware of this workspace as the laboratory drives it.
struct Peer<M>(PhantomData<M>);

impl<M: Middleware> lab::Middleware for Peer<M> {
    type Setup = PeerSetup;

    fn publication(order: &Order<PeerSetup>, place: &PublisherPlace) -> Result<Box<dyn lab::Publication>, Fault> {
        let setup = setup::<M>(order, End::Publisher(place.index)).map_err(Fault::Here)?;
        let middleware = M::open(&setup).map_err(Fault::Here)?;
        let writer = middleware.writer(&channel(order, &place.topic)).map_err(Fault::Here)?;
        let bytes = vec![0x5a; bytes_of(order)];
        Ok(Box::new(Publication { writer, bytes, _middleware: middleware }))
    }

    fn subscription(order: &Order<PeerSetup>, place: &SubscriberPlace) -> Result<Box<dyn lab::Subscription>, Fault> {
        let setup = setup::<M>(order, End::Subscriber(place.writers.clone())).map_err(Fault::Here)?;
        let middleware = M::open(&setup).map_err(Fault::Here)?;
        let desk = Desk::default();
        let reader = |topic: &String| middleware.reader(&channel(order, topic), desk.clone());
        let readers = place.topics.iter().map(reader).collect::<Result<_, _>>().map_err(Fault::Here)?;
        Ok(Box::new(Subscription::<M> { readers, desk, _middleware: middleware }))
    }
}

fn setup<M: Middleware>(order: &Order<PeerSetup>, end: End) -> Result<Setup, String> {
    let asked = &order.setup;
    let profile = match asked.profile {
        lab::PeerProfile::Default => Profile::Default,
        lab::PeerProfile::Tuned => Profile::Tuned,
    };
    let wait = match asked.wait {
        lab::WaitMode::Listener => Wait::Listener,
        lab::WaitMode::Block => Wait::Block,
    };
    let wait = Some(wait).filter(|wait| M::WAITS.contains(wait));
    let interface = Interface::with_address(asked.address)?;
    let setup = options::setup::<M>(asked.domain, interface, profile, wait, bytes_of(order))?;
    let count = |endpoints: u32| endpoints as usize;
    let (readers, writers) = (count(asked.topic_readers), count(asked.topic_writers));
    Ok(Setup { readers, writers, end, publishers: asked.publishers.clone(), ..setup })
}

fn channel(order: &Order<PeerSetup>, topic: &str) -> Channel {
    let keep = match order.qos.history {
        HistorySetting::KeepLast(depth) => Keep::Last(depth),
        HistorySetting::KeepAll(room) => Keep::AllOf(room),
    };
    Channel {
        topic: topic.to_owned(),
        type_name: "ThalwegScenario",
        keep,
        best_effort: order.qos.reliability == ReliabilitySetting::BestEffort,
        durable: false,
        samples_max: None,
        max_blocking: order.qos.max_blocking,
    }
}

/// Octets of a sample: what its number and its length leave of its serialized size, at least the eight of the time.
fn bytes_of(order: &Order<PeerSetup>) -> usize {
    const NUMBER_AND_LENGTH: u64 = 12;
    order.setup.sample_bytes.saturating_sub(NUMBER_AND_LENGTH).max(size_of::<u64>() as u64) as usize
}

/// A writer with its participant, which goes after it.
struct Publication<M: Middleware> {
    writer: M::Writer,
    /// The time, and what fills the sample.
    bytes: Vec<u8>,
    _middleware: M,
}

impl<M: Middleware> lab::Publication for Publication<M> {
    fn matched(&self) -> usize {
        self.writer.matched()
    }

    fn write(&mut self, time_ns: u64, id: u64) -> Result<bool, Fault> {
        self.bytes[..size_of::<u64>()].copy_from_slice(&time_ns.to_le_bytes());
        match self.writer.write(id, &self.bytes) {
            // Nothing may wait for a sample that is due a period later.
            Ok(()) => self.writer.flush().map(|()| true).map_err(Fault::Here),
            Err(WriteError::NoRoom) => Ok(false),
            Err(WriteError::Failed(reason)) => Err(Fault::Here(reason)),
        }
    }

    fn wait_for_acknowledgements(&self, patience: Duration) -> Result<bool, Fault> {
        Ok(self.writer.wait_for_acknowledgements(patience))
    }
}

/// The readers of a subscriber, one a topic, with their participant.
struct Subscription<M: Middleware> {
    readers: Vec<M::Reader>,
    desk: Desk,
    _middleware: M,
}

impl<M: Middleware> lab::Subscription for Subscription<M> {
    fn matched(&self) -> usize {
        self.readers.iter().map(Reader::matched).sum()
    }

    fn run(&self, over: &(dyn Fn() -> bool + Sync), note: Note) -> Result<Note, Fault> {
        const LOOK_PERIOD: Duration = Duration::from_millis(10);
        self.desk.lock().note = Some(note);
        while !over() {
            std::thread::sleep(LOOK_PERIOD);
            let mut state = self.desk.lock();
            if let Some(fault) = state.fault.take() {
                return Err(fault);
            }
            // Not every middleware says that nothing more is there.
            if let Some(note) = &state.note {
                note.handled_some();
            }
        }
        self.desk.lock().note.take().ok_or_else(|| Fault::Here("a subscription was run twice".to_owned()))
    }
}

/// Where the samples of all readers of a subscriber arrive, one at a time.
#[derive(Clone, Default)]
struct Desk(Arc<Mutex<DeskState>>);

#[derive(Default)]
struct DeskState {
    /// There while the subscriber runs.
    note: Option<Note>,
    fault: Option<Fault>,
}

impl Desk {
    fn lock(&self) -> std::sync::MutexGuard<'_, DeskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Desk {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let mut state = self.lock();
        let Some(note) = state.note.as_mut() else { return };
        let time = bytes.first_chunk().map(|time| u64::from_le_bytes(*time));
        let noted = match time {
            Some(time) => note.handle(time, number),
            None => Err(Fault::Here(format!("a sample of {} bytes arrived, which nobody wrote", bytes.len()))),
        };
        if let Err(fault) = noted {
            state.fault = Some(fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg_lab_station::Order;

    use super::{bytes_of, channel};
    use crate::middleware::Keep;

    /// The order of the README with other delivery and another length.
    fn order(qos: &str, sample_bytes: u64) -> Order<super::PeerSetup> {
        let text = format!(
            r#"{{"setup":{{"domain":20,"address":"127.0.0.1","publishers":[],"profile":"tuned","wait":"listener","sample_bytes":{sample_bytes},
            "topic_writers":1,"topic_readers":7}},"qos":{{{qos},"max_blocking_ns":5000000}},"timetable":{{"rate_hz":100.0,
            "publishers":1,"phase":"spread","first":100,"count":2000}},"pace":{{"behind_max_ns":1000000000,"wake":"sleep",
            "drain_ns":1000000000,"match_ns":30000000000}},"publishers":[],"subscribers":[],"folder":"/tmp/run"}}"#
        );
        serde_json::from_str(&text).expect("an order")
    }

    #[test]
    fn a_sample_is_as_long_as_thalwegs_and_has_room_for_its_time() {
        const QOS: &str = r#""reliability":"reliable","history":{"keep_last":10}"#;
        assert_eq!([32, 65_552, 24, 0].map(|bytes| bytes_of(&order(QOS, bytes))), [20, 65_540, 12, 8]);
    }

    #[test]
    fn delivery_is_what_the_order_says() {
        let check = |qos: &str, keep: Keep, best_effort: bool| {
            let channel = channel(&order(qos, 32), "t");
            assert!(channel.keep == keep && channel.best_effort == best_effort, "{qos}");
            assert_eq!((channel.topic.as_str(), channel.max_blocking), ("t", Duration::from_millis(5)));
        };
        check(r#""reliability":"reliable","history":{"keep_last":10}"#, Keep::Last(10), false);
        check(r#""reliability":"best-effort","history":{"keep_all":7}"#, Keep::AllOf(7), true);
    }
}
