//! Sockets, threads and clocks around the state machines of this crate.

mod analyse;
mod announce;
mod arrivals;
mod control;
mod frames;
mod pace;
mod receive;
mod send;
mod socket;
mod windows;

pub use analyse::{AnalysisReport, run_analyser};
pub use announce::{SessionAnnouncement, hear_sessions, interface_index};
pub use pace::Lateness;
pub use receive::{Farewell, ReceiveError, ReceiveOptions, ReceiveReport, ReceiveSecond, ReceiveTimes, run_receiver};
pub use send::{PeerReport, SendError, SendOptions, SendReport, SendSecond, run_sender};
pub use socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, Protocol};
pub use windows::Windows;
