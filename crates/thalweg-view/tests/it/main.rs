//! Views of participants of this process, over sockets, with clients that read and clients that do not.

mod clients;
mod topics;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use thalweg::qos::{Durability, History, Reliability, WriterQos};
use thalweg::types::Keyed;
use thalweg::{DataWriter, DomainParticipant, Raw};
use thalweg_recording::TopicSelection;
use thalweg_testing::program::PATIENCE;
use thalweg_types::idl;
use thalweg_view::{View, ViewNews, ViewOptions, ViewSummary, Visitors};

/// A domain of its own with a view of it, which looks until it is dropped.
struct Scene {
    tag: String,
    address: SocketAddr,
    news: Receiver<ViewNews>,
    is_over: Arc<AtomicBool>,
    view: Option<JoinHandle<ViewSummary>>,
}

impl Scene {
    fn new(prepare: impl FnOnce(&mut ViewOptions)) -> Scene {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let tag = format!("view-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut options = ViewOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            name: "test".to_owned(),
            visitors: Visitors::default(),
            topics: TopicSelection::default(),
            latched_depth: 100,
            client_bytes_max: 1 << 20,
        };
        prepare(&mut options);
        let (own_tag, is_over) = (tag.clone(), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&is_over);
        let (started, address) = channel();
        let (sender, news) = channel();
        let view = std::thread::spawn(move || {
            let participant = participant(&own_tag);
            let nowhere = |_: &str| Ok(None);
            let mut view = View::start(&participant, options, &nowhere).expect("it listens");
            started.send(view.address()).expect("the test waits");
            while !stop.load(Ordering::Relaxed) {
                for one in view.look() {
                    // The test may be over.
                    let _ = sender.send(one);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            view.summary()
        });
        let address = address.recv_timeout(PATIENCE).expect("the view has started");
        Scene { tag, address, news, is_over, view: Some(view) }
    }

    /// Another participant of the domain.
    fn participant(&self) -> DomainParticipant {
        participant(&self.tag)
    }

    /// Waits for news that fit.
    #[track_caller]
    fn expect(&self, what: &str, fits: impl Fn(&ViewNews) -> bool) -> ViewNews {
        let until = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while let Ok(news) = self.news.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if fits(&news) {
                return news;
            }
            heard.push(news);
        }
        panic!("no news of {what}: {heard:?}");
    }

    /// Ends the view.
    fn finish(mut self) -> ViewSummary {
        self.is_over.store(true, Ordering::Relaxed);
        self.view.take().expect("once").join().expect("the view ends well")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(view) = self.view.take() {
            // Its panic is reported already.
            let _ = view.join();
        }
    }
}

fn participant(tag: &str) -> DomainParticipant {
    DomainParticipant::builder(0).loopback_only().domain_tag(tag).create().expect("a participant")
}

/// A writer of serialized samples that tells its type.
fn writer(participant: &DomainParticipant, topic: &str, text: &str, qos: WriterQos) -> DataWriter<Raw> {
    let types = idl::parse(text).expect("IDL");
    let of = types.iter().last().expect("a type");
    let name = of.name().expect("a name");
    let topic = participant.create_raw_topic(topic, name, Keyed::No, None).described_as(of).expect("described");
    participant.create_writer(&topic, qos).expect("a writer")
}

fn volatile() -> WriterQos {
    WriterQos { reliability: Reliability::Reliable { max_blocking_time: PATIENCE }, ..WriterQos::default() }
}

fn latched(depth: u32) -> WriterQos {
    WriterQos { durability: Durability::TransientLocal, history: History::KeepLast(depth), ..volatile() }
}

const LONG: &str = "@final struct Reading { long value; };";
const BYTES: &str = "@final struct Blob { sequence<octet> data; };";

/// A serialized `Reading`.
fn reading(value: i32) -> Vec<u8> {
    [&[0, 1, 0, 0][..], &value.to_le_bytes()].concat()
}

/// A serialized `Blob` of so many octets, which begin with a number.
fn blob(number: u32, bytes: u32) -> Vec<u8> {
    let mut out = [&[0, 1, 0, 0][..], &bytes.to_le_bytes(), &number.to_le_bytes()].concat();
    out.resize(8 + bytes as usize, 7);
    out
}
