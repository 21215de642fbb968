//! Sockets, threads and clocks around the state machines of this crate.

mod frames;
mod pace;
mod socket;
mod windows;

pub use pace::Lateness;
pub use socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, Protocol};
pub use windows::Windows;
