//! Sockets, threads and clocks around the state machines of this crate.

mod socket;

pub use socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, Protocol};
