//! The record that a subscriber keeps of each arrival.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use thalweg_host::monotonic_nanos;

use crate::arrivals::ArrivalBitmap;
use crate::fault::Fault;
use crate::order::Order;
use crate::publisher::parts;
use crate::records::ReceivedSample;
use crate::so_far::Tally;
use crate::timetable::Timetable;

/// Progress of a subscriber, for the thread that waits for its end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) different: AtomicU64,
    pub(crate) last_ns: AtomicU64,
}

/// Notes each arrival with its time, in memory that was found before.
#[derive(Debug)]
pub struct Note {
    samples: Vec<(u64, u64, u64)>,
    room: usize,
    unkept: u64,
    /// By number of the publisher.
    arrivals: Vec<ArrivalBitmap>,
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
        // Twice what can arrive leaves room for duplicates; memory is taken only as far as it is used.
        let room = (2 * numbers * writers + 1_024) as usize;
        Note {
            samples: Vec::with_capacity(room),
            room,
            unkept: 0,
            arrivals: vec![ArrivalBitmap::with_room_for(numbers); order.timetable.publishers as usize],
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
        let Some(arrivals) = self.arrivals.get_mut(writer as usize).filter(|_| number < self.timetable.measured().end)
        else {
            return Err(Fault::Here(format!(
                "sample {number} of publisher {writer} arrived, which was never written; please report this"
            )));
        };
        self.last_ns = now;
        let before = arrivals.received();
        arrivals.note(number);
        if arrivals.received() > before {
            self.different += 1;
            if let Some(onward) = &self.onward {
                // Nobody is there any more when the run has failed.
                let _ = onward.send((writer, number));
            }
            if number >= self.timetable.first {
                self.tally.add_arrival(self.timetable.due_ns(writer, number), now);
            }
        }
        if self.samples.len() < self.room {
            self.samples.push((id, written_ns, now));
        } else {
            self.unkept += 1;
        }
        Ok(())
    }

    /// To be called after the samples that were taken together: tells how far the subscriber is.
    pub fn handled_some(&self) {
        self.progress.different.store(self.different, Ordering::Relaxed);
        self.progress.last_ns.store(self.last_ns, Ordering::Relaxed);
    }

    pub(crate) fn unkept(&self) -> u64 {
        self.unkept
    }

    pub(crate) fn finish(self, origin_ns: u64) -> Vec<ReceivedSample> {
        let received = |(id, written, received): &(u64, u64, u64)| {
            let (writer, number) = parts(*id);
            ReceivedSample {
                writer,
                number,
                written_ns: written.saturating_sub(origin_ns),
                received_ns: received.saturating_sub(origin_ns),
            }
        };
        self.samples.iter().map(received).collect()
    }
}
