//! A process of a laboratory run: its endpoints follow an open schedule, note every sample and tell the controller how far they are.
//!
//! The middleware is a parameter: [`serve_station`] runs whatever implements [`Middleware`]. Thalweg's own processes and the programs that
//! measure other middleware are the same code but for that, so that schedule, records and clocks cannot differ between them. What they
//! say is in `peers/README.md`.
#![forbid(unsafe_code)]

mod arrivals;
mod fault;
mod link;
mod middleware;
mod note;
mod onward;
mod order;
mod peer;
mod publisher;
mod records;
mod so_far;
mod station;
mod subscriber;
mod timetable;

pub use arrivals::ArrivalBitmap;
pub use fault::Fault;
pub use link::{Output, ParentPipe, Stop, WorkerMessage, serve};
pub use middleware::{Middleware, Publication, Subscription};
pub use note::Note;
pub use order::{
    HistorySetting, Onward, Order, PublisherPlace, PublisherReport, Qos, ReliabilitySetting, StationCommand,
    SubscriberPlace, SubscriberReport, TimetablePace, Wake, Word, WorkerReport, WriterEffort,
};
pub use peer::{PeerProfile, PeerSetup, WaitMode};
pub use publisher::ACKNOWLEDGEMENT_PATIENCE;
pub use records::{RawRecords, ReceivedSample, WrittenSample, not_written, write_received, write_written};
pub use so_far::SoFar;
pub use station::{serve_station, work};
pub use timetable::{PublisherPhase, Timetable};
