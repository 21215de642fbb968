//! Thalweg as a station measures it.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thalweg_lab_station::{
    Fault, Middleware, Note, Order, ParentPipe, Publication, PublisherPlace, SubscriberPlace, Subscription,
    WorkerReport, WriterEffort,
};

use super::traces;
use crate::error::LabError;
use crate::scenario::Load;
use crate::station::{
    ArrivalHandler, ArrivedSample, Flow, SampleReceiver, Sending, Station, StationNetwork, TokenBucket, Wait,
};

/// The first message to a process of a run.
pub(crate) type TrialOrder = Order<Setup>;

/// Thalweg's own part of an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) network: StationNetwork,
    pub(crate) load: Load,
    pub(crate) sending: Sending,
    /// The flow controller that `sending` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) flow_controller: Option<TokenBucket>,
    pub(crate) wait: Wait,
    /// Every how many samples its layers are traced.
    pub(crate) trace: Option<NonZeroU32>,
}

/// Makes one run's part of this process.
pub(crate) fn work(order: &TrialOrder, link: &ParentPipe) -> Result<WorkerReport, LabError> {
    Ok(thalweg_lab_station::work::<Ours>(order, link)?)
}

struct Ours;

impl Middleware for Ours {
    type Setup = Setup;

    fn begin_measurement(order: &TrialOrder) {
        if let Some(every) = order.setup.trace {
            thalweg::trace::start(every);
        }
    }

    fn end_measurement(order: &TrialOrder, origin_ns: u64) -> Result<(), Fault> {
        if order.setup.trace.is_some() {
            thalweg::trace::stop();
            traces::write(&order.folder, &order.process_name(), origin_ns)?;
        }
        Ok(())
    }

    fn publication(order: &TrialOrder, place: &PublisherPlace) -> Result<Box<dyn Publication>, Fault> {
        let setup = &order.setup;
        let station = Station::open(&setup.network, Wait::Listener)?;
        setup.flow_controller.as_ref().map_or(Ok(()), |bucket| station.create_flow_controller(bucket))?;
        let writer = station.publication(&place.topic, setup.load, &order.qos, &setup.sending)?;
        Ok(Box::new(Writer { writer, _station: station }))
    }

    fn subscription(order: &TrialOrder, place: &SubscriberPlace) -> Result<Box<dyn Subscription>, Fault> {
        let setup = &order.setup;
        let station = Station::open(&setup.network, setup.wait)?;
        let readers: Result<_, LabError> =
            place.topics.iter().map(|topic| station.subscription(topic, setup.load, &order.qos)).collect();
        Ok(Box::new(Readers { readers: readers?, wait: setup.wait, _station: station }))
    }
}

/// A writer with its participant, which goes after it.
struct Writer {
    writer: Box<dyn Publication>,
    _station: Station,
}

impl Publication for Writer {
    fn matched(&self) -> usize {
        self.writer.matched()
    }

    fn write(&mut self, time_ns: u64, id: u64) -> Result<bool, Fault> {
        self.writer.write(time_ns, id)
    }

    fn wait_for_acknowledgements(&self, patience: Duration) -> Result<bool, Fault> {
        self.writer.wait_for_acknowledgements(patience)
    }

    fn effort(&self) -> WriterEffort {
        self.writer.effort()
    }
}

/// The readers of a subscriber, one a topic, with their participant.
struct Readers {
    readers: Vec<SampleReceiver>,
    wait: Wait,
    _station: Station,
}

impl Subscription for Readers {
    fn matched(&self) -> usize {
        self.readers.iter().map(SampleReceiver::matched).sum()
    }

    fn run(&self, over: &(dyn Fn() -> bool + Sync), note: Note) -> Result<Note, Fault> {
        let note = Shared(Arc::new(Mutex::new(note)));
        // All but one of these threads only wait: the participant's thread that receives calls each reader's listener.
        let run = |reader: &SampleReceiver| reader.run(self.wait, Duration::MAX, &over, note.clone()).map(drop);
        let outcomes: Result<(), LabError> = match self.readers.as_slice() {
            [reader] => run(reader),
            readers => std::thread::scope(|scope| {
                let threads: Vec<_> = readers.iter().map(|reader| scope.spawn(|| run(reader))).collect();
                threads.into_iter().try_for_each(|thread| {
                    thread.join().unwrap_or_else(|_| Err(LabError::Here("the thread of a reader failed".to_owned())))
                })
            }),
        };
        outcomes?;
        let note = Arc::into_inner(note.0).ok_or_else(|| Fault::Here("a listener outlived its reader".to_owned()))?;
        Ok(note.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn overwritten(&self) -> u64 {
        self.readers.iter().map(SampleReceiver::overwritten).sum()
    }

    fn rejected(&self) -> u64 {
        self.readers.iter().map(SampleReceiver::rejected).sum()
    }
}

/// What all readers of a subscriber note into.
#[derive(Clone)]
struct Shared(Arc<Mutex<Note>>);

impl ArrivalHandler for Shared {
    fn handle(&mut self, arrival: ArrivedSample<'_>) -> Result<Flow, LabError> {
        let written = arrival.payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).handle(written, arrival.number)?;
        Ok(Flow::Continue)
    }

    fn handled_some(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).handled_some();
    }
}
