//! Load for CoAP servers, as many clients make it, with every answer verified.
//!
//! Each client has a socket, and so a source port, of its own. In an open loop requests follow a schedule that does not wait
//! for answers and latency counts from the scheduled time, so that a server that falls behind cannot hide it. In a closed loop
//! requests of one client that follow answers read together leave by one system call on the loopback interface; the server
//! gets each as a datagram of its own.

mod capacity;
mod crowd;
mod generator;
mod ledger;
mod meter;
mod observers;
mod plan;
mod repeats;
mod request;
mod responder;
mod result;
mod schedule;
mod sessions;
mod sockets;
mod tally;
#[cfg(test)]
mod tests;

pub use capacity::{capacity, check_answer};
pub(crate) use generator::Generator;
pub use generator::run;
pub use observers::{
    ChangeFigures, ObserverIdentity, ObserverLoadPlan, ObserverLoadResult, ObserverMemory, run_observers,
};
pub use plan::{ArrivalProcess, Flood, LoadPlan, Phase, RequestPlan};
pub use responder::{Replies, Responder, ResponderCounts, write_content};
pub use result::{Capacity, GeneratorFigures, LoadCounts, LoadResult, ResponseTimes, SCHEMA, ServerFigures, Window};
pub use sessions::{SessionLoadPlan, SessionLoadResult, run_sessions};
