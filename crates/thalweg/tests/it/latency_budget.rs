//! LATENCY_BUDGET between processes: what may wait is received together.

use std::time::Duration;

use thalweg::qos::{ReaderQos, ReaderTiming};

use crate::fixture::*;
use crate::policies::reader_of;

#[test]
fn small_samples_that_may_wait_are_received_together_until_an_endpoint_is_in_a_hurry() {
    let timing = ReaderTiming { latency_budget: Duration::from_millis(50), ..ReaderTiming::default() };
    let (_other, reader, participant) = reader_of("fast", ReaderQos { timing, ..reliable_reader() });
    let mut taken = Vec::new();
    let mut before = participant.receive_counts();
    // Waits in a hundred datagrams, once there were so many.
    let mut waits = || {
        let samples = reader.take(usize::MAX);
        taken.extend(samples.iter().map(|sample| sample.data().unwrap().x));
        let now = participant.receive_counts();
        let (waits, datagrams) = (now.waits - before.waits, now.datagrams - before.datagrams);
        if datagrams < 100 {
            return None;
        }
        before = now;
        Some(100 * waits / datagrams)
    };
    eventually("the thread does not wait for each", || waits().is_some_and(|waits| waits < 34));
    let topic = participant.create_topic::<Shape>(&unique("hasty"));
    let hasty = participant.create_reader(&topic, reliable_reader()).unwrap();
    eventually("it waits for most", || waits().is_some_and(|waits| waits > 50));
    drop(hasty);
    eventually("nobody is in a hurry any more", || waits().is_some_and(|waits| waits < 34));
    let builder = participant.reader_builder(&topic).qos(ReaderQos { timing, ..reliable_reader() });
    let _noting = builder.hand_over_on_arrival().create().unwrap();
    eventually("one notes arrivals", || waits().is_some_and(|waits| waits > 50));
    let first = taken[0];
    assert!(taken.iter().enumerate().all(|(index, x)| *x == first + index as i32), "none is lost");
}
