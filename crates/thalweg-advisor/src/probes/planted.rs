//! Answers that were recorded on another machine, or made up.

use std::io;
use std::net::IpAddr;

use super::{
    DatagramCharge, GrantedBuffer, PacingEffect, PacketCost, PathMtu, ProbeAnswers, Probes, Segmentation, WakeUps,
};

/// Probes that give recorded answers.
#[derive(Clone, Debug, Default)]
pub struct PlantedProbes {
    /// What they answer.
    pub answers: ProbeAnswers,
}

impl PlantedProbes {
    /// Reads answers from JSON, as `advise --json` prints them.
    ///
    /// # Errors
    /// The text is not of this form; it says where.
    pub fn parse(text: &str) -> Result<PlantedProbes, serde_json::Error> {
        Ok(PlantedProbes { answers: serde_json::from_str(text)? })
    }
}

impl Probes for PlantedProbes {
    fn granted_buffer(&mut self, bytes: u64) -> io::Result<GrantedBuffer> {
        let recorded = recorded(self.answers.granted_buffer)?;
        // What was recorded is the most that the user gets.
        Ok(GrantedBuffer {
            asked_bytes: bytes,
            granted_bytes: bytes.min(recorded.granted_bytes),
            forced_bytes: recorded.forced_bytes.map(|forced| bytes.min(forced)),
            ..recorded
        })
    }

    fn charge(&mut self, payload_bytes: u64) -> io::Result<DatagramCharge> {
        let nearest = self.answers.charges.iter().find(|charge| charge.payload_bytes >= payload_bytes);
        recorded(nearest.copied()).map(|charge| DatagramCharge { payload_bytes, ..charge })
    }

    fn segmentation(&mut self, _payload_bytes: u64) -> io::Result<Segmentation> {
        recorded(self.answers.segmentation)
    }

    fn path(&mut self, _peer: IpAddr, at_most: u32) -> io::Result<PathMtu> {
        recorded(self.answers.path).map(|path| PathMtu { bytes: path.bytes.min(at_most), ..path })
    }

    fn wake_ups(&mut self) -> io::Result<WakeUps> {
        recorded(self.answers.wake_ups)
    }

    fn pacing(&mut self, _peer: Option<IpAddr>) -> io::Result<PacingEffect> {
        recorded(self.answers.pacing)
    }

    fn packet_cost(&mut self, _payload_bytes: u64) -> io::Result<PacketCost> {
        recorded(self.answers.packet_cost)
    }
}

fn recorded<Answer>(answer: Option<Answer>) -> io::Result<Answer> {
    answer.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "not recorded on this machine"))
}
