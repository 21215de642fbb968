//! The measurements that every peer program offers, whatever middleware it measures: `peers/README.md` describes them.
//!
//! A program supplies a [`Middleware`] and calls [`run`]; it gets the command line, the processes and the figures.

mod burst;
mod figures;
mod interface;
mod latency;
mod listen;
mod middleware;
mod options;
mod process;
mod station;
mod throughput;

pub use interface::Interface;
pub use middleware::{Channel, End, Keep, Middleware, Profile, Reader, Setup, Sink, Wait, WriteError, Writer};
pub use process::wait_until;

use clap::{CommandFactory, FromArgMatches};

use options::{Measurement, Program};

/// Reads the command line, measures with `M` and ends the process: 0, or 1 with the reason on standard error.
pub fn run<M: Middleware>() -> ! {
    let about = format!("Measures {} the way `thalweg perf` measures Thalweg", M::PEER);
    let command = Program::command().name(M::PROGRAM).about(about);
    let matches = command.version(format!("({} {})", M::PEER, M::VERSION)).get_matches();
    let outcome = Program::from_arg_matches(&matches).map_err(|error| error.to_string()).and_then(|program| {
        process::die_with_parent()?;
        match program.measurement {
            Measurement::Station => std::process::exit(station::run::<M>()?),
            Measurement::Latency(options) => latency::run::<M>(&options),
            Measurement::Throughput(options) => throughput::run::<M>(&options),
            Measurement::Burst(options) => burst::run::<M>(&options),
            Measurement::Listen(options) => listen::run::<M>(&options),
        }
    });
    if let Err(error) = outcome {
        eprintln!("{}: {error}", M::PROGRAM);
        std::process::exit(1);
    }
    std::process::exit(0);
}
