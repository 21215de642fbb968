//! Many threads that use the same endpoints at once: nothing is lost, and everything ends.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use thalweg::conditions::WaitSet;
use thalweg::qos::ResourceLimits;
use thalweg::segment::{Segment, SegmentReader};
use thalweg::{DataReader, DataWriter, Delivery, ReadFilter};

use crate::fixture::*;

const WRITERS: u64 = 4;
const SAMPLES_EACH: u64 = 300;

/// Fails when `run` does not end: then threads wait for each other.
fn within(limit: Duration, run: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let running = thread::spawn(move || {
        run();
        _ = ended.send(());
    });
    if end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("threads wait for each other, or for nobody, after {limit:?}");
    }
    if let Err(panic) = running.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Writes from many threads, each of which waits for room now and then.
fn write_from_many_threads(writer: &DataWriter<Count>) {
    thread::scope(|scope| {
        for first in 0..WRITERS {
            scope.spawn(move || {
                for value in 0..SAMPLES_EACH {
                    writer.write(&Count { value: first * SAMPLES_EACH + value }).unwrap();
                    if value.is_multiple_of(100) {
                        writer.wait_for_acknowledgments(PATIENCE).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn listeners_switched_while_many_threads_write_hear_of_every_sample() {
    within(4 * PATIENCE, || {
        let mut qos = reliable_writer();
        qos.resource_limits = ResourceLimits { max_samples: Some(16), ..ResourceLimits::default() };
        let Pair { writer, reader, participants } = pair::<Count>("threads", qos, reliable_reader());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = || {
            let heard = Arc::clone(&heard);
            move |reader: &DataReader<Count>| {
                let samples = reader.take(usize::MAX);
                heard.lock().unwrap().extend(samples.iter().map(|sample| sample.data().unwrap().value));
            }
        };
        let is_written = AtomicBool::new(false);
        thread::scope(|scope| {
            let is_written = &is_written;
            scope.spawn(|| {
                for delivery in [Delivery::Thread, Delivery::Inline].into_iter().cycle() {
                    if is_written.load(Ordering::Relaxed) {
                        break;
                    }
                    reader.on_data(delivery, listener()).unwrap();
                    reader.on_status(delivery, |_| ()).unwrap();
                    writer.on_status(delivery, |_| ()).unwrap();
                    thread::yield_now();
                    reader.clear_on_data();
                }
                // The last one hears of everything that is left.
                reader.on_data(Delivery::Thread, listener()).unwrap();
            });
            scope.spawn(|| {
                let topic = participants.0.create_topic::<Count>(&unique("threads beside"));
                while !is_written.load(Ordering::Relaxed) {
                    let beside = participants.0.create_writer(&topic, reliable_writer()).unwrap();
                    let other = participants.1.create_reader(&topic, reliable_reader()).unwrap();
                    beside.write(&Count { value: 0 }).unwrap();
                    drop((beside, other));
                }
            });
            write_from_many_threads(&writer);
            is_written.store(true, Ordering::Relaxed);
        });
        let total = usize::try_from(WRITERS * SAMPLES_EACH).unwrap();
        eventually("every sample is heard of", || heard.lock().unwrap().len() >= total);
        let heard = heard.lock().unwrap();
        assert_eq!((heard.len(), heard.iter().collect::<BTreeSet<_>>().len()), (total, total), "once each");
    });
}

#[test]
fn a_write_that_waits_ends_when_its_reader_is_dropped_on_another_thread() {
    within(2 * PATIENCE, || {
        let mut writer_qos = reliable_writer();
        writer_qos.resource_limits = ResourceLimits { max_samples: Some(4), ..ResourceLimits::default() };
        let mut reader_qos = reliable_reader();
        reader_qos.resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
        let Pair { writer, reader, participants } = pair::<Count>("dropped", writer_qos, reader_qos);
        thread::scope(|scope| {
            let writes = scope.spawn(|| (0..40).for_each(|value| _ = writer.write(&Count { value }).unwrap()));
            let waits = scope.spawn(|| writer.wait_for_acknowledgments(PATIENCE).unwrap());
            assert!(reader.wait(PATIENCE));
            eventually("a write waits", || writer.counters().refused > 0);
            drop((reader, participants.1));
            writes.join().unwrap();
            waits.join().unwrap();
        });
    });
}

#[test]
fn a_wait_ends_in_time_although_its_condition_rings_at_each_look() {
    within(2 * PATIENCE, || {
        let Pair { writer, reader, participants: _alive } =
            pair::<Count>("rings", reliable_writer(), reliable_reader());
        let (set, reader) = (WaitSet::new().unwrap(), Arc::new(reader));
        let inside = Arc::downgrade(&reader);
        let query = reader.query_condition(ReadFilter::ALL, move |_: &Count| {
            // Marks the sample READ, which may make a condition of the reader true.
            inside.upgrade().is_some_and(|reader| reader.read(1).is_empty())
        });
        set.attach(&query);
        writer.write(&Count { value: 1 }).unwrap();
        assert!(reader.wait(PATIENCE));
        assert!(set.wait(Duration::from_millis(20)).unwrap_err().is_timeout());
    });
}

#[test]
fn a_wait_for_a_payload_ends_in_time_although_segments_never_do() {
    within(2 * PATIENCE, || {
        let Pair { writer, reader, participants: _alive } =
            pair::<Segment>("endless", reliable_writer(), reliable_reader());
        let is_over = AtomicBool::new(false);
        let write = |source: u8| {
            for transfer in 1.. {
                // Never whole: the second half does not come.
                let head = Segment { source: [source; 16], transfer, count: 2, total_bytes: 2, ..Segment::default() };
                writer.write(&Segment { bytes: vec![1], ..head }).unwrap();
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| write(1));
            scope.spawn(|| write(2));
            let mut reader = SegmentReader::new(reader);
            assert!(reader.wait(Duration::from_millis(100)).is_none());
            is_over.store(true, Ordering::Relaxed);
            drop(reader);
        });
    });
}

/// Endpoints that are used once more when their thread ends.
struct Last {
    writer: DataWriter<Shape>,
    reader: DataReader<Shape>,
}

impl Drop for Last {
    fn drop(&mut self) {
        self.writer.write(&Shape::new("last", 1)).unwrap();
        let taken = take(&self.reader, 1);
        assert_eq!(taken[0].data().unwrap().color, "last");
        self.writer.dispose(&Shape::new("last", 1)).unwrap();
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
}

thread_local! {
    static KEPT: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[test]
fn endpoints_in_variables_of_a_thread_work_until_it_has_ended() {
    let Pair { writer, reader, participants } = pair::<Shape>("ending", reliable_writer(), reliable_reader());
    let topic = participants.1.create_topic::<Shape>(&unique("ending"));
    let other = participants.1.create_reader(&topic, reliable_reader()).unwrap();
    writer.wait_for_matched(2, PATIENCE).unwrap();
    let ends = thread::spawn(move || {
        // Before the thread has used the writer: what is made first is dropped last.
        KEPT.set(Some(Last { writer, reader }));
        KEPT.with_borrow(|kept| _ = kept.as_ref().unwrap().writer.write(&Shape::new("first", 0)).unwrap());
        KEPT.with_borrow(|kept| assert_eq!(take(&kept.as_ref().unwrap().reader, 1).len(), 1));
    });
    ends.join().unwrap();
    let samples = take(&other, 3);
    assert_eq!(samples.iter().filter(|sample| sample.is_valid()).count(), 2);
}
