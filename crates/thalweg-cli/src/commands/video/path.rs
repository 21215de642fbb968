//! The ways of packets that are lost, and of RTCP.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use clap::ValueEnum;
use thalweg_video::io::ControlPort;
use thalweg_video::receiver::Repair;
use thalweg_video::sender::Resend;

/// The payload type of the picture.
pub const PAYLOAD_TYPE: u8 = 96;
/// The payload type of repetitions of the picture without a session description.
pub const RETRANSMISSION: u8 = 97;
/// The payload type of sound without a session description.
pub const SOUND_PAYLOAD_TYPE: u8 = 98;
/// The payload type of repetitions of sound without a session description.
pub const SOUND_RETRANSMISSION: u8 = 99;

/// How lost packets come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RepairName {
    /// In a stream of their own, of payload type 97, of sound 99 (RFC 4588).
    Rtx,
    /// In the stream itself, for peers without RFC 4588.
    Same,
    /// Not at all.
    Off,
}

impl RepairName {
    /// How a sender repeats packets of the stream `ssrc`; a stream of repetitions has a random identity of its own.
    pub fn resend(self, payload_type: u8, ssrc: u32) -> Resend {
        match self {
            RepairName::Off => Resend::Never,
            RepairName::Same => Resend::Same,
            RepairName::Rtx => {
                let random = RandomState::new().hash_one(ssrc);
                let (other, first_sequence) = ((random >> 32) as u32, random as u16);
                let ssrc = if other == ssrc { !other } else { other };
                Resend::Retransmission { payload_type, ssrc, first_sequence }
            }
        }
    }

    /// How a receiver asks for packets that come again in this way; `described` tells the payload type of repetitions, or else it is
    /// `payload_type`.
    pub fn repair(self, described: Repair, payload_type: u8) -> Repair {
        match (self, described) {
            (RepairName::Off, _) => Repair::Off,
            (RepairName::Same, _) => Repair::Nack { reorder_window: Repair::REORDER_WINDOW, retransmission: None },
            (RepairName::Rtx, Repair::Nack { retransmission: Some(told), .. }) => Repair::by_retransmission(told),
            (RepairName::Rtx, _) => Repair::by_retransmission(payload_type),
        }
    }
}

/// Where RTCP goes: `next`, `mux` or a port.
pub fn control_port(text: &str) -> Result<ControlPort, String> {
    match text {
        "next" => Ok(ControlPort::Next),
        "mux" => Ok(ControlPort::Multiplexed),
        port => match port.parse() {
            Ok(port) if port > 0 => Ok(ControlPort::At(port)),
            _ => Err("no place for RTCP; give next, mux or a port from 1 to 65535".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtcp_has_a_port_of_its_own_or_none() {
        assert_eq!(control_port("next"), Ok(ControlPort::Next));
        assert_eq!(control_port("mux"), Ok(ControlPort::Multiplexed));
        assert_eq!(control_port("5007"), Ok(ControlPort::At(5007)));
        for wrong in ["0", "65536", "", "above"] {
            assert!(control_port(wrong).is_err(), "{wrong}");
        }
    }
}
