//! The measurements of the laboratory, whatever middleware moves the data: open schedules, round trips, streams, bursts, readers on
//! demand.
//!
//! The middleware is a parameter, whatever implements [`Middleware`]. Thalweg's own processes and the programs that measure other
//! middleware are the same code but for that, so that schedule, work, records and clocks cannot differ between them. What they say is in
//! `peers/README.md`.
#![forbid(unsafe_code)]

mod arrivals;
mod burst;
mod channel;
mod closed_loop;
mod conversation;
mod executor;
mod fault;
mod latencies;
mod latency;
mod link;
mod listen;
mod middleware;
mod note;
mod onward;
mod order;
mod peer;
mod perf_options;
mod publisher;
mod records;
mod round_trips;
mod so_far;
mod station;
mod stream_figures;
#[cfg(test)]
mod stub;
mod subscriber;
mod throughput;
mod timetable;

pub use arrivals::ArrivalBitmap;
pub use burst::{
    BurstAnswer, BurstPublisher, BurstReady, BurstRequest, ECHOES, SAMPLES, echo_bursts, echo_on, serve_bursts,
    until_input_ends,
};
pub use channel::{Keep, ProcessEnd, SampleChannel};
pub use closed_loop::ClosedLoop;
pub use conversation::{TO_READER, to_writer};
pub use executor::ExecutorSetting;
pub use fault::Fault;
pub use latencies::{LONGEST_NANOS, Latencies, TAIL_MIN, is_supported};
pub use latency::{PING, PONG, ping, pong};
pub use link::{Output, ParentPipe, Stop, WorkerMessage, lock, serve};
pub use listen::listen;
pub use middleware::{
    ArrivedSample, Middleware, NumberedSample, OctetArrival, OctetSample, SampleReader, SampleSink, SampleWriter,
    ScheduledSample, TransportCounts, Wait, Work, WriteError,
};
pub use note::Note;
pub use order::{
    HistorySetting, LinkCosts, Onward, Order, PublisherPlace, PublisherReport, Qos, ReliabilitySetting, StationCommand,
    SubscriberPlace, SubscriberReport, TimetablePace, Wake, Word, WorkerReport, WriterEffort,
};
pub use peer::{PeerDestination, PeerProfile, PeerSetup};
pub use perf_options::{Limit, Measurement, PerfOptions};
pub use publisher::ACKNOWLEDGEMENT_PATIENCE;
pub use records::{
    ArrivalCount, ClosedRecords, LatencySample, RawRecords, ReceivedSample, WrittenSample, not_written, write_arrivals,
    write_received, write_round_trips, write_written,
};
pub use round_trips::RoundTripFigures;
pub use so_far::SoFar;
pub use station::{serve_station, wait_until, work};
pub use stream_figures::{Cost, Rates, ReaderEnd, SampleCosts, ThroughputFigures, WriterEnd};
pub use throughput::{DATA, Streamed, read_stream, write_stream};
pub use timetable::{PublisherPhase, Timetable};
