//! Load for CoAP servers, as many clients make it, with every answer verified.
//!
//! Each client has a socket, and so a source port, of its own. In an open loop requests follow a schedule that does not wait
//! for answers and latency counts from the scheduled time, so that a server that falls behind cannot hide it.

mod plan;
mod result;

pub use plan::{Arrival, Delivery, Flood, LoadPlan, Phase, RequestPlan};
pub use result::{Capacity, GeneratorFigures, LoadCounts, LoadResult, ResponseTimes, SCHEMA, Window};
