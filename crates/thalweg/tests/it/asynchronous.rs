//! Tasks of any asynchronous runtime: here a waker that counts, and a thread that sleeps until it is woken.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use futures_core::Stream;
use thalweg::qos::{Reliability, ResourceLimits};
use thalweg::status::{ReaderStatus, WriterStatus};
use thalweg::types::INFINITE;

use crate::fixture::*;

/// Wakes the thread that polls, and counts how often.
struct Alarm {
    thread: Thread,
    woken: AtomicUsize,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        self.thread.unpark();
    }
}

fn alarm() -> Arc<Alarm> {
    Arc::new(Alarm { thread: thread::current(), woken: AtomicUsize::new(0) })
}

/// The result of a future, which has to come in time.
#[track_caller]
pub fn block_on<R>(future: impl Future<Output = R>) -> R {
    let mut future = pin!(future);
    let waker = Waker::from(alarm());
    let start = Instant::now();
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        assert!(start.elapsed() < PATIENCE, "the future did not end in time");
        thread::park_timeout(PATIENCE);
    }
}

fn poll_once<R>(future: &mut (impl Future<Output = R> + Unpin), alarm: &Arc<Alarm>) -> Poll<R> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(Arc::clone(alarm))))
}

/// A writer whose history holds two samples, and a reader that takes one at a time.
fn narrow_pair(name: &str) -> Pair<Count> {
    let mut writer_qos = reliable_writer();
    writer_qos.resource_limits = ResourceLimits { max_samples: Some(2), ..ResourceLimits::default() };
    writer_qos.reliability = Reliability::Reliable { max_blocking_time: INFINITE };
    let mut reader_qos = reliable_reader();
    reader_qos.resource_limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    pair(name, writer_qos, reader_qos)
}

#[test]
fn a_task_that_receives_is_woken_by_the_sample() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("recv", reliable_writer(), reliable_reader());
    let alarm = alarm();
    let mut received = reader.recv();
    assert!(poll_once(&mut received, &alarm).is_pending());
    writer.write(&Count { value: 7 }).unwrap();
    // A status may wake it as well.
    let mut polls = 0;
    let sample = loop {
        eventually("the task is woken", || alarm.woken.load(Ordering::Relaxed) > polls);
        polls += 1;
        if let Poll::Ready(sample) = poll_once(&mut received, &alarm) {
            break sample;
        }
    };
    assert_eq!(sample.data().unwrap().value, 7);
}

#[test]
fn a_future_that_is_dropped_takes_no_sample_and_wakes_nobody() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("dropped", reliable_writer(), reliable_reader());
    let alarm = alarm();
    let mut dropped = reader.recv();
    assert!(poll_once(&mut dropped, &alarm).is_pending());
    drop(dropped);
    let woken = alarm.woken.load(Ordering::Relaxed);
    for value in 0..3 {
        writer.write(&Count { value }).unwrap();
    }
    let received: Vec<u64> = (0..3).map(|_| block_on(reader.recv()).data().unwrap().value).collect();
    assert_eq!(received, [0, 1, 2]);
    assert_eq!(alarm.woken.load(Ordering::Relaxed), woken, "of a task that does not wait any more");
    assert_eq!(Arc::strong_count(&alarm), 1, "its waker is kept");
}

#[test]
fn the_last_waker_that_polled_is_the_one_that_is_woken() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("moved", reliable_writer(), reliable_reader());
    let (first, second) = (alarm(), alarm());
    let mut received = reader.recv();
    assert!(poll_once(&mut received, &first).is_pending());
    assert!(poll_once(&mut received, &second).is_pending());
    let woken = first.woken.load(Ordering::Relaxed);
    writer.write(&Count { value: 1 }).unwrap();
    eventually("the second is woken", || second.woken.load(Ordering::Relaxed) > 0);
    assert_eq!(first.woken.load(Ordering::Relaxed), woken);
}

#[test]
fn many_tasks_of_one_reader_share_its_samples() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("shared", reliable_writer(), reliable_reader());
    let mut values: Vec<u64> = thread::scope(|scope| {
        let receive = || (0..25).map(|_| block_on(reader.recv()).data().unwrap().value).collect::<Vec<_>>();
        let tasks: Vec<_> = (0..4).map(|_| scope.spawn(receive)).collect();
        for value in 0..100 {
            writer.write(&Count { value }).unwrap();
        }
        tasks.into_iter().flat_map(|task| task.join().unwrap()).collect()
    });
    values.sort_unstable();
    assert!(values.iter().copied().eq(0..100), "each once: {values:?}");
}

#[test]
fn a_stream_gives_every_sample_in_order() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("stream", reliable_writer(), reliable_reader());
    thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|value| _ = writer.write(&Count { value }).unwrap()));
        let mut samples = reader.stream();
        for value in 0..50 {
            let next = std::future::poll_fn(|context| Pin::new(&mut samples).poll_next(context));
            assert_eq!(block_on(next).unwrap().data().unwrap().value, value);
        }
    });
}

#[test]
fn a_send_waits_for_room_without_its_thread_and_writes_once() {
    let Pair { writer, reader, participants: _alive } = narrow_pair("room");
    let alarm = alarm();
    let mut written = 0;
    let mut waiting = loop {
        let mut sent = writer.send(&Count { value: written });
        match poll_once(&mut sent, &alarm) {
            Poll::Ready(sequence) => written += u64::from(sequence.is_ok()),
            Poll::Pending => break sent,
        }
        assert!(written < 1_000, "a bounded history has taken {written} samples that nobody has room for");
    };
    // One that is given up before it had room was not written.
    let mut given_up = writer.send(&Count { value: 9_999 });
    assert!(poll_once(&mut given_up, &alarm).is_pending());
    drop(given_up);
    assert!(poll_once(&mut waiting, &alarm).is_pending());
    let receive = || block_on(reader.recv()).data().unwrap().value;
    let mut values: Vec<u64> = (0..written).map(|_| receive()).collect();
    block_on(waiting).unwrap();
    values.push(receive());
    assert!(values.iter().copied().eq(0..=written), "{values:?}");
    block_on(writer.until_acknowledged()).unwrap();
    assert_eq!(reader.available(), 0);
}

#[test]
fn sends_of_many_tasks_that_wait_for_room_all_come_through() {
    let Pair { writer, reader, participants: _alive } = narrow_pair("many sends");
    let mut values: Vec<u64> = thread::scope(|scope| {
        for first in 0..4 {
            let writer = &writer;
            scope.spawn(move || {
                (0..50).for_each(|n| _ = block_on(writer.send(&Count { value: first * 50 + n })).unwrap())
            });
        }
        (0..200).map(|_| block_on(reader.recv()).data().unwrap().value).collect()
    });
    values.sort_unstable();
    assert!(values.iter().copied().eq(0..200), "{values:?}");
}

#[test]
fn matches_and_statuses_end_their_futures() {
    let (domain, name) = (domain(), unique("async matches"));
    let (here, there) = (participant(domain), participant(domain));
    let reader = there.create_reader(&there.create_topic::<Count>(&name), reliable_reader()).unwrap();
    let alarm = alarm();
    let mut matched = reader.until_matched(1);
    assert!(poll_once(&mut matched, &alarm).is_pending());
    let mut status = reader.until_status();
    assert!(poll_once(&mut status, &alarm).is_pending());
    let writer = here.create_writer(&here.create_topic::<Count>(&name), reliable_writer()).unwrap();
    block_on(writer.until_matched(1));
    block_on(matched);
    let is_match = |status: &ReaderStatus| matches!(status, ReaderStatus::SubscriptionMatched(now) if now.current == 1);
    assert!(block_on(status).iter().any(is_match));
    let told = block_on(writer.until_status());
    assert!(told.iter().any(|status| matches!(status, WriterStatus::PublicationMatched(_))), "{told:?}");
    drop(reader);
    let told = block_on(writer.until_status());
    let is_gone = |status: &WriterStatus| matches!(status, WriterStatus::PublicationMatched(now) if now.current == 0);
    assert!(told.iter().any(is_gone), "{told:?}");
}

#[test]
fn acknowledgements_end_their_future_and_not_before() {
    let Pair { writer, reader, participants: _alive } = narrow_pair("async acks");
    let alarm = alarm();
    for value in 0..2 {
        block_on(writer.send(&Count { value })).unwrap();
    }
    let mut acknowledged = writer.until_acknowledged();
    assert!(poll_once(&mut acknowledged, &alarm).is_pending(), "the reader has room for one of two");
    let values: Vec<u64> = (0..2).map(|_| block_on(reader.recv()).data().unwrap().value).collect();
    assert_eq!(values, [0, 1]);
    block_on(acknowledged).unwrap();
}

#[test]
fn futures_may_move_between_threads() {
    fn sendable<F: Future + Send>(future: F) -> F {
        future
    }
    let Pair { writer, reader, participants: _alive } = pair::<Shape>("moves", reliable_writer(), reliable_reader());
    drop((sendable(reader.recv()), sendable(reader.until_unread()), sendable(reader.until_status())));
    drop(sendable(writer.until_acknowledged()));
    let written = sendable(writer.send(&Shape::new("RED", 1)));
    thread::scope(|scope| _ = scope.spawn(|| block_on(written)).join().unwrap().unwrap());
    block_on(reader.until_unread());
    assert_eq!(reader.take_one().unwrap().data().unwrap().x, 1);
}

/// An executor that has been shut down, say.
struct Broken;

impl Wake for Broken {
    fn wake(self: Arc<Self>) {
        panic!("as the test wants it");
    }
}

#[test]
fn a_waker_that_panics_takes_nothing_from_others() {
    let Pair { writer, reader, participants: _alive } = pair::<Count>("broken", reliable_writer(), reliable_reader());
    let (mut first, mut second) = (reader.until_unread(), reader.until_unread());
    let alarm = alarm();
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&Waker::from(Arc::new(Broken)))).is_pending());
    assert!(poll_once(&mut second, &alarm).is_pending());
    writer.write(&Count { value: 1 }).unwrap();
    eventually("the other task is woken", || alarm.woken.load(Ordering::Relaxed) == 1);
    writer.write(&Count { value: 2 }).unwrap();
    assert_eq!(take(&reader, 2).len(), 2);
}
