//! Time from the first of n writes to the echo of a reader that has received all of them.

mod collect;
mod publish;

use std::io::Read;

use crate::middleware::{Channel, Keep, Middleware};
use crate::options::{BurstOptions, Role};
use crate::process;

/// What a sample's number says: the run in the high 32 bits, in the low the index or one of the two below.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Number {
    run: u32,
    index: u32,
}

/// Index of the sample that announces a run; its bytes are n and the size, both `u32` little-endian.
/// Echoed with the same number. Run 0 with n = 0 only asks whether the subscriber is there.
const ANNOUNCEMENT: u32 = u32::MAX;

/// Index of the sample that asks how many of a run arrived; the echo's bytes are the answer, `u32` little-endian.
const ENQUIRY: u32 = u32::MAX - 1;

/// Index of the echo that ends a run; its bytes are empty, or say what was wrong.
const COMPLETE: u32 = 0;

impl Number {
    fn new(run: u32, index: u32) -> Number {
        Number { run, index }
    }

    fn from_wire(number: u64) -> Number {
        Number { run: (number >> 32) as u32, index: number as u32 }
    }

    fn on_wire(self) -> u64 {
        u64::from(self.run) << 32 | u64::from(self.index)
    }

    /// What the first and the last byte of the sample carry.
    fn check_byte(self) -> u8 {
        self.index as u8
    }
}

fn channel(topic: &str) -> Channel {
    Channel {
        topic: topic.to_owned(),
        type_name: "ThalwegBurst",
        keep: Keep::All,
        best_effort: false,
        durable: false,
        samples_max: None,
        max_blocking: Channel::MAX_BLOCKING,
    }
}

/// The samples of the runs, and those that ask.
fn samples() -> Channel {
    channel("thalweg_burst")
}

/// What the subscriber answers.
fn echoes() -> Channel {
    channel("thalweg_burst_echo")
}

/// Runs the end that the options name until standard input ends.
pub fn run<M: Middleware>(options: &BurstOptions) -> Result<(), String> {
    let setup = options.setup::<M>()?;
    process::pin(options.cpu.as_ref())?;
    let middleware = M::open(&setup)?;
    match options.role {
        Role::Both => Err("burst takes --role pub or --role sub, each in a process of its own".to_owned()),
        Role::Pub => publish::serve::<M>(&middleware, options),
        Role::Sub => {
            let writer = middleware.writer(&echoes())?;
            let _reader = middleware.reader(&samples(), collect::Collector::new(writer))?;
            let mut rest = Vec::new();
            std::io::stdin().read_to_end(&mut rest).map_err(|error| error.to_string()).map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn a_number_carries_run_and_index() {
        let number = Number::new(7, 0x0102_03ff);
        assert_eq!(number.on_wire(), 0x0000_0007_0102_03ff);
        assert!(Number::from_wire(number.on_wire()) == number);
        assert_eq!(number.check_byte(), 0xff);
    }
}
