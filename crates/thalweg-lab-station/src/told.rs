//! A middleware that only tells what was written, for tests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::middleware::{Middleware, OctetArrival, OctetSample, SampleReader, SampleSink, SampleWriter, WriteError};

/// The middleware.
pub(crate) struct Told;

/// A writer that keeps what it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct TellingWriter(Arc<Mutex<Vec<(u64, Vec<u8>)>>>);

/// A reader that gets nothing.
pub(crate) struct DeafReader;

impl TellingWriter {
    /// The latest sample.
    #[track_caller]
    pub(crate) fn last(&self) -> (u64, Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last().cloned().expect("something was written")
    }
}

impl Middleware for Told {
    const NAME: &'static str = "paper";
    const VERSION: &'static str = "0";

    type Setup = ();
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = TellingWriter;
    type Reader = DeafReader;

    fn open((): &(), _end: &ProcessEnd) -> Result<Told, Fault> {
        Ok(Told)
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample::default())
    }

    fn writer(&self, _channel: &SampleChannel) -> Result<TellingWriter, Fault> {
        Ok(TellingWriter::default())
    }

    fn reader<S: SampleSink<Told>>(&self, _channel: &SampleChannel, _sink: S) -> Result<DeafReader, Fault> {
        Ok(DeafReader)
    }
}

impl SampleWriter<Told> for TellingWriter {
    fn write(&mut self, sample: &OctetSample) -> Result<(), WriteError> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.push((sample.number, sample.bytes.clone()));
        Ok(())
    }

    fn send_back(&mut self, arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        self.write(&OctetSample { number: arrival.number, bytes: arrival.bytes.to_vec() })
    }

    fn matched(&self) -> usize {
        1
    }

    fn wait_for_acknowledgements(&mut self, _patience: Duration) -> Result<bool, Fault> {
        Ok(true)
    }
}

impl SampleReader for DeafReader {
    fn matched(&self) -> usize {
        1
    }
}
