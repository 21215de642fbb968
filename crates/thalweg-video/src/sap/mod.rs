//! Announcements of sessions by multicast (SAP, RFC 2974).
//!
//! [`SapPacket`] is one announcement or deletion, [`SapAnnouncer`] repeats one as often as the RFC allows, and
//! [`SapDirectory`] keeps what others announce. Deliberately absent: authentication, encryption and compression, which RFC 2974
//! leaves open or optional and which announcers of studios do not use.

mod announcer;
mod directory;
mod packet;
#[cfg(test)]
mod tests;

pub use announcer::{SapAnnouncer, SapConfig, announcement_group};
pub use directory::{DIRECTORY_MAX, SapDirectory, SapEvent, SapSession};
pub use packet::{SAP_PORT, SapError, SapKind, SapPacket};
