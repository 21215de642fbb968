//! A middleware for tests that takes every sample and brings none.

use std::time::Duration;

use crate::channel::{ProcessEnd, SampleChannel};
use crate::fault::Fault;
use crate::middleware::{Middleware, OctetArrival, OctetSample, SampleReader, SampleSink, SampleWriter, WriteError};

pub(crate) struct Stub;

/// An end of it, whose partner seems to be there.
pub(crate) struct StubEnd;

impl Middleware for Stub {
    const NAME: &'static str = "stub";
    const VERSION: &'static str = "1";

    type Setup = ();
    type Sample = OctetSample;
    type Arrival<'a> = OctetArrival<'a>;
    type Writer = StubEnd;
    type Reader = StubEnd;

    fn open(_setup: &(), _end: &ProcessEnd) -> Result<Stub, Fault> {
        Ok(Stub)
    }

    fn scheduled_sample(&self) -> Result<OctetSample, Fault> {
        Ok(OctetSample { number: 0, bytes: vec![0; 16] })
    }

    fn writer(&self, _channel: &SampleChannel) -> Result<StubEnd, Fault> {
        Ok(StubEnd)
    }

    fn reader<S: SampleSink<Stub>>(&self, _channel: &SampleChannel, _sink: S) -> Result<StubEnd, Fault> {
        Ok(StubEnd)
    }
}

impl SampleWriter<Stub> for StubEnd {
    fn write(&mut self, _sample: &OctetSample) -> Result<(), WriteError> {
        Ok(())
    }

    fn send_back(&mut self, _arrival: OctetArrival<'_>) -> Result<(), WriteError> {
        Ok(())
    }

    fn matched(&self) -> usize {
        1
    }

    fn wait_for_acknowledgements(&mut self, _patience: Duration) -> Result<bool, Fault> {
        Ok(true)
    }
}

impl SampleReader for StubEnd {
    fn matched(&self) -> usize {
        1
    }
}
