//! The record that a subscriber keeps of each arrival.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use thalweg_host::monotonic_nanos;

use crate::arrivals::ArrivalBitmap;
use crate::fault::Fault;
use crate::order::Order;
use crate::publisher::parts;
use crate::records::{ArrivalCount, ReceivedSample, write_arrivals, write_received};
use crate::so_far::Tally;
use crate::timetable::Timetable;

/// Progress of a subscriber, for the thread that waits for its end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) different: AtomicU64,
    pub(crate) last_ns: AtomicU64,
}

/// What a subscriber noted.
pub(crate) enum SubscriberRecords {
    /// Every arrival of an open schedule.
    Samples(Vec<ReceivedSample>),
    /// Counts of a closed loop.
    Counts(Vec<ArrivalCount>),
}

impl SubscriberRecords {
    pub(crate) fn write(&self, folder: &Path, index: u32) -> Result<(), Fault> {
        match self {
            SubscriberRecords::Samples(samples) => write_received(folder, index, samples),
            SubscriberRecords::Counts(counts) => write_arrivals(folder, index, counts),
        }
    }
}

/// What is kept of the arrivals.
#[derive(Debug)]
enum Kept {
    /// Each one with its time, in memory that was found before.
    Samples {
        /// Id, time of the write, time of the arrival.
        samples: Vec<(u64, u64, u64)>,
        room: usize,
        unkept: u64,
    },
    /// So many within each second of the measurement, by publisher: a closed loop has more arrivals than memory holds.
    Counts(Vec<Vec<ArrivalCount>>),
}

/// Notes each arrival.
#[derive(Debug)]
pub struct Note {
    kept: Kept,
    /// By number of the publisher.
    arrivals: Vec<ArrivalBitmap>,
    /// Numbers from here on no publisher writes.
    expected: u64,
    different: u64,
    last_ns: u64,
    timetable: Timetable,
    progress: Arc<Progress>,
    tally: Arc<Tally>,
    /// Where publisher and number of each sample go that is new.
    onward: Option<Sender<(u32, u64)>>,
}

impl Note {
    pub(crate) fn new<Setup>(
        order: &Order<Setup>,
        writers: u64,
        (progress, tally): (Arc<Progress>, Arc<Tally>),
        onward: Option<Sender<(u32, u64)>>,
    ) -> Note {
        let numbers = order.timetable.measured().end;
        let publishers = order.timetable.publishers;
        let (kept, expected) = match order.closed_loop {
            Some(_) => {
                let seconds = order.timetable.seconds() + 2;
                let count = |writer| move |second| ArrivalCount { writer, second, ..ArrivalCount::default() };
                let counts = (0..publishers).map(|writer| (0..seconds).map(count(writer)).collect()).collect();
                (Kept::Counts(counts), u64::MAX)
            }
            None => {
                // Twice what can arrive leaves room for duplicates; memory is taken only as far as it is used.
                let room = (2 * numbers * writers + 1_024) as usize;
                (Kept::Samples { samples: Vec::with_capacity(room), room, unkept: 0 }, numbers)
            }
        };
        Note {
            kept,
            arrivals: vec![ArrivalBitmap::with_room_for(numbers); publishers as usize],
            expected,
            different: 0,
            last_ns: 0,
            timetable: order.timetable.clone(),
            progress,
            tally,
            onward,
        }
    }

    /// Notes a sample that arrived now, with the time and the number that it carries.
    ///
    /// # Errors
    /// No publisher of this run wrote it.
    pub fn handle(&mut self, written_ns: u64, id: u64) -> Result<(), Fault> {
        let now = monotonic_nanos();
        let (writer, number) = parts(id);
        let Some(arrivals) = self.arrivals.get_mut(writer as usize).filter(|_| number < self.expected) else {
            return Err(Fault::Here(format!(
                "sample {number} of publisher {writer} arrived, which was never written; please report this"
            )));
        };
        self.last_ns = now;
        let (received, reordered) = (arrivals.received(), arrivals.out_of_order());
        arrivals.note(number);
        let is_new = arrivals.received() > received;
        let is_reordered = arrivals.out_of_order() > reordered;
        self.different += u64::from(is_new);
        if let Some(onward) = self.onward.as_ref().filter(|_| is_new) {
            // Nobody is there any more when the run has failed.
            let _ = onward.send((writer, number));
        }
        let origin_ns = self.tally.origin_ns();
        match &mut self.kept {
            Kept::Samples { samples, room, unkept } => {
                if is_new && number >= self.timetable.first {
                    self.tally.add_arrival(self.timetable.due_ns(writer, number), now);
                }
                if samples.len() < *room {
                    samples.push((id, written_ns, now));
                } else {
                    *unkept += 1;
                }
            }
            Kept::Counts(counts) => {
                let second = self.timetable.second_of(now.saturating_sub(origin_ns));
                let count = &mut counts[writer as usize][second as usize];
                count.received += u64::from(is_new);
                count.duplicates += u64::from(!is_new);
                count.reordered += u64::from(is_reordered);
                if second > 0 {
                    self.tally.add_arrival(written_ns.saturating_sub(origin_ns), now);
                }
            }
        }
        Ok(())
    }

    /// To be called after the samples that were taken together: tells how far the subscriber is.
    pub fn handled_some(&self) {
        self.progress.different.store(self.different, Ordering::Relaxed);
        self.progress.last_ns.store(self.last_ns, Ordering::Relaxed);
    }

    pub(crate) fn unkept(&self) -> u64 {
        if let Kept::Samples { unkept, .. } = &self.kept { *unkept } else { 0 }
    }

    pub(crate) fn finish(self, origin_ns: u64) -> SubscriberRecords {
        let received = |(id, written, received): &(u64, u64, u64)| {
            let (writer, number) = parts(*id);
            ReceivedSample {
                writer,
                number,
                written_ns: written.saturating_sub(origin_ns),
                received_ns: received.saturating_sub(origin_ns),
            }
        };
        match self.kept {
            Kept::Samples { samples, .. } => SubscriberRecords::Samples(samples.iter().map(received).collect()),
            Kept::Counts(counts) => {
                let is_empty = |count: &ArrivalCount| count.received + count.duplicates == 0;
                SubscriberRecords::Counts(counts.concat().into_iter().filter(|count| !is_empty(count)).collect())
            }
        }
    }
}
