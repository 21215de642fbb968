//! The command line of the programs that measure other middleware: `peers/README.md` describes it. The measurements are those of
//! `thalweg-lab-station`, as in Thalweg's own.
//!
//! A program implements [`Middleware`] and calls [`run`].

mod interface;
mod options;
mod process;
pub mod shapes;

pub use interface::Interface;
pub use thalweg_lab_station::{
    DATA, ECHOES, Fault, Keep, Middleware, NumberedSample, OctetArrival, OctetSample, PING, PONG, PeerDestination,
    PeerProfile, PeerSetup, ProcessEnd, SAMPLES, SampleChannel, SampleReader, SampleSink, SampleWriter,
    ScheduledSample, TO_READER, Wait, Work, WriteError, to_writer,
};

use std::io::BufReader;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use thalweg_lab_station::{
    BurstPublisher, PerfOptions, Stop, Streamed, echo_bursts, listen, ping, pong, read_stream, serve_bursts,
    serve_station, until_input_ends, write_stream,
};

use options::{BurstOptions, CommandLine, Measurement, Options, Role};

/// The type of samples on the wire, `final struct { uint64 number; sequence<octet> bytes; }`.
pub const TYPE_NAME: &str = "ThalwegBurst";

/// A program and what its middleware offers.
pub struct Program {
    /// The name of the program, for example `cyclone-perf`.
    pub name: &'static str,
    /// What the middleware can be told about waiting for data, the preferred way first.
    pub waits: &'static [Wait],
    /// Why this middleware has no profile `batch`; `None` if it has one.
    pub no_batch: Option<&'static str>,
    /// Whether it can be bound to another interface than loopback.
    pub leaves_host: bool,
}

/// Reads the command line, measures with `M` and ends the process: 0, or 1 with the reason on standard error.
pub fn run<M>(program: &Program) -> !
where
    M: Middleware<Setup = PeerSetup, Sample: NumberedSample>,
{
    let about = format!("Measures {} the way `thalweg perf` measures Thalweg", M::NAME);
    let command = CommandLine::command().name(program.name).about(about);
    let matches = command.version(format!("({} {})", M::NAME, M::VERSION)).get_matches();
    let outcome = CommandLine::from_arg_matches(&matches).map_err(|error| error.to_string()).and_then(|line| {
        process::die_with_parent()?;
        measure::<M>(program, &line.measurement)
    });
    if let Err(error) = outcome {
        eprintln!("{}: {error}", program.name);
        std::process::exit(1);
    }
    std::process::exit(0);
}

fn measure<M>(program: &Program, measurement: &Measurement) -> Result<(), String>
where
    M: Middleware<Setup = PeerSetup, Sample: NumberedSample>,
{
    match measurement {
        Measurement::Station => {
            let output = process::own_output().map_err(|error| format!("standard output: {error}"))?;
            // Subscribers wait as they can where the scenario's way is not theirs.
            let adapt = |setup: &mut PeerSetup| {
                setup.wait = if program.waits.contains(&setup.wait) { setup.wait } else { program.waits[0] };
                options::check::<M>(program, setup).map_err(Fault::Here)
            };
            let code = serve_station::<M>(Box::new(output), adapt);
            std::process::exit(i32::from(code != ExitCode::SUCCESS))
        }
        Measurement::Latency(options) => round_trips::<M>(program, options),
        Measurement::Throughput(options) => stream::<M>(program, options),
        Measurement::Burst(options) => burst::<M>(program, options),
        Measurement::Listen(options) => {
            let setup = options.setup::<M>(program)?;
            listen::<M>(&setup, std::io::stdin().lock()).map_err(|fault| fault.to_string())
        }
    }
}

fn round_trips<M>(program: &Program, options: &Options) -> Result<(), String>
where
    M: Middleware<Setup = PeerSetup, Sample: NumberedSample>,
{
    let perf = options.perf::<M>(program, thalweg_lab_station::Measurement::Latency)?;
    let measured = |perf: &PerfOptions<PeerSetup>| {
        let figures = ping::<M>(perf, &Stop::default()).map_err(|fault| fault.to_string())?;
        options.print(&figures, &figures.to_text())
    };
    match options.role {
        _ if options.readers != 1 => Err("latency is measured with one reader".to_owned()),
        Role::Sub => pong::<M>(&perf, &Stop::default()).map_err(|fault| fault.to_string()),
        Role::Pub => measured(&perf),
        Role::Both => {
            let subscribers = process::start_subscribers("latency", options)?;
            measured(&perf)?;
            subscribers.into_iter().try_for_each(process::Subscriber::finish)
        }
    }
}

fn stream<M>(program: &Program, options: &Options) -> Result<(), String>
where
    M: Middleware<Setup = PeerSetup, Sample: NumberedSample>,
{
    let perf = options.perf::<M>(program, thalweg_lab_station::Measurement::Throughput)?;
    let stop = Stop::default();
    let print = |streamed: Result<Streamed, Fault>| {
        let Streamed { figures, fault } = streamed.map_err(|fault| fault.to_string())?;
        // The figures tell the loss; a middleware that loses samples is not wrong here.
        fault.iter().for_each(|fault| eprintln!("{fault}"));
        options.print(&figures, &figures.to_text())
    };
    match options.role {
        Role::Sub => print(read_stream::<M>(&perf, &stop)),
        Role::Pub => print(write_stream::<M>(&perf, &stop)),
        Role::Both => {
            let subscribers = process::start_subscribers("throughput", options)?;
            print(write_stream::<M>(&perf, &stop))?;
            subscribers.into_iter().try_for_each(process::Subscriber::finish)
        }
    }
}

fn burst<M>(program: &Program, options: &BurstOptions) -> Result<(), String>
where
    M: Middleware<Setup = PeerSetup, Sample: NumberedSample>,
{
    let setup = options.setup::<M>(program)?;
    let (input, stop) = (BufReader::new(std::io::stdin()), Stop::default());
    let made = match options.role {
        Role::Both => return Err("burst takes --role pub or --role sub, each in a process of its own".to_owned()),
        Role::Sub => echo_bursts::<M>(&setup, options.cpu, until_input_ends(input)),
        Role::Pub => BurstPublisher::<M>::open(&setup, options.cpu, options.max_size, &stop).and_then(|publisher| {
            let ready = publisher.ready(&setup, options.place.profile.name());
            serve_bursts(publisher, &ready, input, std::io::stdout(), &stop)
        }),
    };
    made.map_err(|fault| fault.to_string())
}
