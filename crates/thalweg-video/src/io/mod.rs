//! Sockets, threads and clocks around the state machines of this crate.

mod analyse;
mod announce;
mod arrivals;
mod control;
mod frames;
mod options;
mod pace;
mod pacing;
mod receive;
mod receive_error;
mod send;
mod send_error;
mod socket;
mod sound_receive;
mod sound_send;
mod windows;

pub use analyse::{AnalysisReport, run_analyser};
pub use announce::{SessionAnnouncement, hear_session, hear_sessions, interface_index};
pub use options::{Farewell, PathRoom, ReceiveOptions, SendOptions};
pub use pace::Lateness;
pub use receive::{ReceiveReport, ReceiveSecond, ReceiveTimes, run_receiver};
pub use receive_error::ReceiveError;
pub use send::{PeerReport, SendReport, SendSecond, run_sender};
pub use send_error::SendError;
pub use socket::{ControlPort, MediaArrival, MediaOptions, MediaReceiver, MediaSocket, Protocol};
pub use sound_receive::{PictureTimes, SoundReceiveOptions, SoundReceiveReport, SoundReceiver, run_sound_receiver};
pub use sound_send::{SoundSendOptions, SoundSendReport, SoundSender, StreamStart, run_sound_sender};
pub use thalweg_transport::stream::payload_max;
pub use windows::Windows;
