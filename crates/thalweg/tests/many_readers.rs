//! Readers cost tasks, not threads. A binary of its own: it counts the threads of its process.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use thalweg::qos::{History, ReaderQos, Reliability, WriterQos};
use thalweg::{DataReader, DomainParticipant, Topic};

const READERS: usize = 10_000;
const THREADS_MAX: usize = 5;
/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Topic, Debug)]
struct Count {
    value: u64,
}

/// A task, and the queue that it goes to when it is woken.
struct Task {
    future: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
    woken: Sender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        _ = self.woken.clone().send(self);
    }
}

/// Adds up what the reader receives, for ever.
async fn receive(reader: DataReader<Count>, sum: Arc<AtomicUsize>, received: Arc<AtomicUsize>) {
    loop {
        let value = reader.recv().await.data().unwrap().value;
        sum.fetch_add(usize::try_from(value).unwrap(), Ordering::Relaxed);
        received.fetch_add(1, Ordering::Relaxed);
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn ten_thousand_readers_receive_on_five_threads_at_most() {
    let domain = 1 + std::process::id() % 230;
    let participant = DomainParticipant::builder(domain).loopback_only().create().unwrap();
    let topic = participant.create_topic::<Count>(&format!("many {}", std::process::id()));
    let reliability = Reliability::Reliable { max_blocking_time: PATIENCE };
    let writer_qos = WriterQos { reliability, history: History::KeepAll, ..WriterQos::default() };
    let reader_qos =
        ReaderQos { reliability: Reliability::RELIABLE, history: History::KeepAll, ..ReaderQos::default() };
    let writer = participant.create_writer(&topic, writer_qos).unwrap();
    let (woken, wakes) = mpsc::channel::<Arc<Task>>();
    let (sum, received) = (Arc::default(), Arc::<AtomicUsize>::default());
    for _ in 0..READERS {
        let reader = participant.create_reader(&topic, reader_qos.clone()).unwrap();
        let future = Mutex::new(Box::pin(receive(reader, Arc::clone(&sum), Arc::clone(&received))) as Pin<Box<_>>);
        woken.send(Arc::new(Task { future, woken: woken.clone() })).unwrap();
    }
    writer.wait_for_matched(READERS, PATIENCE).unwrap();
    for value in 1..=3 {
        writer.write(&Count { value }).unwrap();
    }
    let mut threads_max = 0;
    while received.load(Ordering::Relaxed) < 3 * READERS {
        let task = wakes.recv_timeout(PATIENCE).expect("a task is woken while samples are missing");
        threads_max = threads_max.max(threads());
        let waker = Waker::from(Arc::clone(&task));
        _ = task.future.lock().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
    }
    assert_eq!(sum.load(Ordering::Relaxed), 6 * READERS);
    println!("{READERS} readers, {threads_max} threads");
    assert!(threads_max <= THREADS_MAX, "{threads_max} threads");
}
