//! The subscriber's side: counts what arrives and echoes when a run is complete.

use super::{ANNOUNCEMENT, COMPLETE, ENQUIRY, Number};
use crate::middleware::{Sink, Writer};

/// The run that is under way.
pub struct Collector<W> {
    writer: W,
    run: u32,
    count: u32,
    size: usize,
    next: u32,
    arrived: u32,
    fault: Option<String>,
}

impl<W: Writer> Collector<W> {
    pub fn new(writer: W) -> Collector<W> {
        Collector { writer, run: 0, count: 0, size: 0, next: 0, arrived: 0, fault: None }
    }

    fn answer(&self, number: Number, bytes: &[u8]) {
        let written = self.writer.write(number.on_wire(), bytes).map_err(String::from);
        if let Err(error) = written.and_then(|()| self.writer.flush()) {
            eprintln!("echo of run {}: {error}", number.run);
        }
    }

    /// Starts the run that the bytes of an announcement describe.
    fn announced(&mut self, number: Number, bytes: &[u8]) {
        let word = |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes);
        if let (Some(count), Some(size)) = (word(0), word(4)) {
            (self.run, self.count, self.size) = (number.run, count, size as usize);
            (self.next, self.arrived, self.fault) = (0, 0, None);
            self.answer(number, &[]);
        }
    }

    fn check(&self, number: Number, bytes: &[u8]) -> Option<String> {
        let byte = number.check_byte();
        if number.index != self.next {
            return Some(format!("sample {} came where {} was due", number.index, self.next));
        }
        if bytes.len() != self.size {
            return Some(format!("sample {} has {} bytes instead of {}", number.index, bytes.len(), self.size));
        }
        let altered = [bytes.first(), bytes.last()].into_iter().flatten().any(|end| *end != byte);
        altered.then(|| format!("sample {} arrived altered", number.index))
    }
}

impl<W: Writer> Sink for Collector<W> {
    fn take(&mut self, number: u64, bytes: &[u8]) {
        let number = Number::from_wire(number);
        match number.index {
            ANNOUNCEMENT => return self.announced(number, bytes),
            ENQUIRY => return self.answer(number, &self.arrived.to_le_bytes()),
            _ if number.run != self.run => return, // Of a run that was given up.
            _ => (),
        }
        if self.fault.is_none() {
            self.fault = self.check(number, bytes);
        }
        self.next = self.next.max(number.index.saturating_add(1));
        self.arrived += 1;
        if self.arrived == self.count {
            let fault = self.fault.take().unwrap_or_default();
            self.answer(Number::new(self.run, COMPLETE), fault.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use super::Collector;
    use crate::burst::{ANNOUNCEMENT, ENQUIRY, Number};
    use crate::middleware::{Sink, WriteError, Writer};

    #[derive(Clone, Default)]
    struct Notebook(Arc<Mutex<Vec<(u32, u32, Vec<u8>)>>>);

    impl Writer for Notebook {
        fn write(&self, number: u64, bytes: &[u8]) -> Result<(), WriteError> {
            let Number { run, index } = Number::from_wire(number);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push((run, index, bytes.to_vec()));
            Ok(())
        }

        fn matched(&self) -> usize {
            1
        }

        fn wait_for_acknowledgements(&self, _time: Duration) -> bool {
            true
        }
    }

    /// Announces a run of three samples of two bytes, hands in the samples and returns the last echo.
    fn last_echo(samples: &[(u32, u32, &[u8])]) -> (u32, u32, Vec<u8>) {
        let notebook = Notebook::default();
        let collector = Rc::new(RefCell::new(Collector::new(notebook.clone())));
        let take = |run, index, bytes: &[u8]| {
            collector.borrow_mut().take(Number::new(run, index).on_wire(), bytes);
        };
        take(5, ANNOUNCEMENT, &[3, 0, 0, 0, 2, 0, 0, 0]);
        for (run, index, bytes) in samples {
            take(*run, *index, bytes);
        }
        notebook.0.lock().unwrap().last().unwrap().clone()
    }

    #[test]
    fn a_run_is_echoed_when_its_last_sample_is_there() {
        let all: [(u32, u32, &[u8]); 3] = [(5, 0, &[0, 0]), (5, 1, &[1, 1]), (5, 2, &[2, 2])];
        assert_eq!(last_echo(&all), (5, 0, vec![]));
        assert_eq!(last_echo(&all[..2]), (5, ANNOUNCEMENT, vec![]));
    }

    #[test]
    fn a_run_that_is_not_whole_is_not_said_to_be() {
        let says = |samples: &[(u32, u32, &[u8])], what: &str| {
            let (_, _, bytes) = last_echo(samples);
            assert_eq!(String::from_utf8_lossy(&bytes), what);
        };
        says(&[(5, 0, &[0, 0]), (5, 2, &[2, 2]), (5, 1, &[1, 1])], "sample 2 came where 1 was due");
        says(&[(5, 0, &[0, 0]), (5, 1, &[1]), (5, 2, &[2, 2])], "sample 1 has 1 bytes instead of 2");
        says(&[(5, 0, &[0, 0]), (5, 1, &[1, 9]), (5, 2, &[2, 2])], "sample 1 arrived altered");
    }

    #[test]
    fn an_enquiry_is_answered_without_the_samples_of_other_runs() {
        let samples: [(u32, u32, &[u8]); 4] = [(4, 2, &[2, 2]), (5, 0, &[0, 0]), (5, 1, &[1, 1]), (5, ENQUIRY, &[])];
        assert_eq!(last_echo(&samples), (5, ENQUIRY, vec![2, 0, 0, 0]));
    }
}
