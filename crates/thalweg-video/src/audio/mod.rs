//! Linear audio over RTP: L16 (RFC 3551 §4.5.11) and L24 (RFC 3190) at 48 kHz, as AES67 and ST 2110-30 use them.
//!
//! [`AudioSender`] makes packets of samples, [`AudioReceiver`] makes blocks of samples of packets, each to be played at a time
//! that it shares with the picture. Packets that were lost come again as those of pictures do, while they can still be played (RFC 4585,
//! RFC 4588). Both are state machines without I/O. Deliberately absent: other rates than 48 kHz,
//! resampling (blocks carry the time at which they are to be played, which follows the sender's clock), and codecs.

mod config;
mod counters;
mod format;
mod numbers;
mod receiver;
mod repair;
mod resend;
mod samples;
mod sender;
#[cfg(test)]
mod tests;
mod timeline;
mod tone;
mod track;

pub use config::{AudioConcealment, AudioReceiverConfig, PictureSync};
pub use counters::{AudioBlock, AudioCounters, AudioError};
pub use format::{AudioFormat, AudioRefusal, CHANNELS_MAX, PacketTime, SAMPLE_RATE_HZ};
pub use receiver::AudioReceiver;
pub use resend::SOUND_KEPT;
pub use sender::{AudioSender, AudioSenderConfig};
pub use tone::{TONE_PERIOD, Tones};
