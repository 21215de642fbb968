//! Options of whoever hears a stream.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use thalweg_video::io::{ControlPort, ReceiveOptions, interface_index};
use thalweg_video::receiver::{ReceiverConfig, Repair};

use super::description::read;
use super::offered::{OfferedPicture, first_picture};
use super::path::{RETRANSMISSION, control_port};
use super::picture::PictureOptions;
use crate::outcome::Failure;

/// Where packets are heard, and what they are.
#[derive(Args, Clone, Debug)]
pub struct HearingOptions {
    /// Hear packets at ADDR:PORT, an address of this host or a group; given twice, hear two paths (ST 2022-7). Default: where the session
    /// description sends them.
    #[arg(long, value_name = "ADDR:PORT", required_unless_present = "sdp")]
    pub bind: Vec<SocketAddr>,

    /// Receive the first picture of the session description in FILE (default: the options tell the picture).
    #[arg(long, value_name = "FILE")]
    pub sdp: Option<PathBuf>,

    /// The form of the picture, where no session description tells it.
    #[command(flatten)]
    pub picture: PictureOptions,

    /// Hear RTCP at the next port, mux: at that of RTP, or at PORT (default: as the session description says, next without one).
    #[arg(long, value_name = "PORT", value_parser = control_port)]
    pub rtcp: Option<ControlPort>,

    /// Hear groups on interface NAME (default: the system's choice).
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// Ask for a receive buffer of BYTES (default: 33554432).
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(4096..=1 << 30))]
    pub buffer: Option<u32>,
}

impl HearingOptions {
    /// How the driver hears such a stream.
    ///
    /// # Errors
    /// The options do not fit each other or the session description, or that cannot be read.
    pub fn driver_options(&self) -> Result<ReceiveOptions, Failure> {
        let offered = self.offered()?;
        let format = offered.as_ref().map_or_else(|| self.picture.format(), |offered| Ok(offered.format))?;
        let mut config = ReceiverConfig::new(format);
        config.payload_type = offered.as_ref().map(|offered| offered.payload_type);
        config.repair = offered.as_ref().map_or(Repair::by_retransmission(RETRANSMISSION), |offered| offered.repair);
        let bind = match &offered {
            Some(offered) if self.bind.is_empty() => &offered.to,
            _ => &self.bind,
        };
        let (Some(first), 1..=2) = (bind.first(), bind.len()) else {
            return Err(Failure::Usage(format!("{} addresses are given; a stream has one or two paths", bind.len())));
        };
        let mut receive = ReceiveOptions::new(*first, config).map_err(Failure::from_cause)?;
        receive.bind.clone_from(bind);
        receive.control = self.rtcp.or(offered.as_ref().map(|offered| offered.control)).unwrap_or_default();
        receive.group_source = offered.and_then(|offered| offered.source);
        if let Some(name) = &self.interface {
            receive.group_interface = interface_index(name).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        if let Some(bytes) = self.buffer {
            receive.stream.receive_buffer_bytes = bytes as usize;
        }
        Ok(receive)
    }

    fn offered(&self) -> Result<Option<OfferedPicture>, Failure> {
        let Some(path) = &self.sdp else { return Ok(None) };
        // Plain descriptions may leave the rate out.
        PictureOptions { rate: None, ..self.picture.clone() }.refuse_beside("a session description")?;
        first_picture(&read(path)?, &self.picture).map(Some)
    }
}
