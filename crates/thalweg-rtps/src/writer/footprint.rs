//! The memory of a writer.

use super::Writer;

/// What a writer keeps, in numbers that stay within bounds however its readers behave. To be watched by operators and tests;
/// counting costs a look at each matched reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterFootprint {
    /// Samples and ends of instances in the history; HISTORY and RESOURCE_LIMITS bound them.
    pub samples: usize,
    /// Bytes that the history is charged for them: payloads and a fixed cost of each. At most
    /// [`WriterOptions::history_bytes_max`](super::WriterOptions::history_bytes_max), or one sample.
    pub bytes: usize,
    /// Places in the history, those of samples that are gone until they are swept included.
    pub slots: usize,
    /// Instances that the history knows.
    pub instances: usize,
    /// Instances that are registered; at most 2^20, or as many as RESOURCE_LIMITS allows.
    pub registered: usize,
    /// Ends of instances that not every reader knows of.
    pub departures: usize,
    /// Samples of an asynchronous writer that wait for tokens.
    pub waiting: usize,
    /// Matched readers.
    pub readers: usize,
    /// Large samples of which readers asked for fragments, or that were repaired and did not tell of it yet, at most 256 for each reader.
    pub large_repairs: usize,
}

impl Writer {
    /// Memory of this writer.
    pub fn footprint(&self) -> WriterFootprint {
        let places = self.history.places();
        WriterFootprint {
            samples: self.history.len(),
            bytes: self.history.bytes(),
            slots: places.slots,
            instances: places.instances,
            registered: self.registered.len(),
            departures: places.departures,
            waiting: self.outgoing.asynchronous.as_ref().map_or(0, |waiting| waiting.written()),
            readers: self.readers.len(),
            large_repairs: self.readers.iter().map(|reader| reader.repairs.large.len()).sum(),
        }
    }
}
