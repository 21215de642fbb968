//! The ways of packets that are lost, and of RTCP.

use clap::ValueEnum;
use thalweg_video::io::ControlPort;

/// The payload type of the picture, and that of repetitions.
pub const PAYLOAD_TYPE: u8 = 96;
/// The payload type of repetitions without a session description.
pub const RETRANSMISSION: u8 = 97;

/// How lost packets come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RepairName {
    /// In a stream of their own, of payload type 97 (RFC 4588).
    Rtx,
    /// In the stream itself, for peers without RFC 4588.
    Same,
    /// Not at all.
    Off,
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
