//! What is kept of the announcements of writers.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg::types::SequenceNumber;

use super::topics::AboutTopic;
use crate::demand::Demand;
use crate::numbers::NumberSet;
use crate::qos::RecordedQos;

/// A writer that was announced.
pub struct AnnouncedWriter {
    pub demand: Demand,
    /// Its topic with its definition of the type; `None` where it is not recorded.
    pub about: Option<Arc<AboutTopic>>,
    qos: Arc<RecordedQos>,
    /// The last numbers that were written with earlier QoS, of which samples may still wait for the disk; the oldest first.
    former: VecDeque<(SequenceNumber, Arc<RecordedQos>)>,
    /// Numbers that came before its own reader was known to be that.
    taken: NumberSet,
    /// The number that its own reader brought last.
    latest: SequenceNumber,
    /// Nobody announces it any more: late readers would get nothing of it.
    pub is_gone: bool,
}

impl AnnouncedWriter {
    /// One that was not known before, of which readers have brought these numbers.
    pub fn new(demand: Demand, about: Option<Arc<AboutTopic>>, qos: RecordedQos, taken: NumberSet) -> AnnouncedWriter {
        let (qos, former, latest) = (Arc::new(qos), VecDeque::new(), SequenceNumber::ZERO);
        AnnouncedWriter { demand, about, qos, former, taken, latest, is_gone: false }
    }

    /// It is announced anew, and another reader is its own from now on: what that one brings of before has come already.
    pub fn change(&mut self, demand: Demand, about: Option<Arc<AboutTopic>>, qos: RecordedQos) {
        let last = self.taken.last().map_or(self.latest, |taken| taken.max(self.latest));
        let former = std::mem::replace(&mut self.qos, Arc::new(qos));
        // One of which nothing came is the QoS of no sample.
        if self.former.back().is_none_or(|(before, _)| *before != last) {
            self.former.push_back((last, former));
        }
        if self.former.len() > FORMER_MAX {
            self.former.pop_front();
        }
        (self.demand, self.about, self.taken, self.is_gone) = (demand, about, NumberSet::up_to(last), false);
    }

    /// The QoS with which a sample was written. They are asked for in the order in which they came: what comes behind the last one of an
    /// earlier QoS has a later one.
    pub fn take_qos(&mut self, sequence: SequenceNumber) -> Arc<RecordedQos> {
        while self.former.front().is_some_and(|(last, _)| *last < sequence) {
            self.former.pop_front();
        }
        Arc::clone(self.former.front().map_or(&self.qos, |(_, qos)| qos))
    }

    /// Takes a number that its own reader brings; false where another one has brought it. A reader brings the numbers of a writer in their
    /// order: what is lower behind the last of those that others brought is of a writer that has begun anew under its GUID.
    pub fn take_number(&mut self, sequence: SequenceNumber) -> bool {
        self.latest = sequence;
        let is_behind = self.taken.last().is_some_and(|last| sequence > last);
        if is_behind {
            self.taken = NumberSet::default();
        }
        is_behind || !self.taken.has(sequence)
    }
}

/// Earlier QoS of a writer that are kept, chosen by us: more often than that, nobody moves a writer while its samples wait for the disk.
const FORMER_MAX: usize = 64;
