//! Options of whoever hears a stream.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use thalweg_video::io::{ControlPort, ReceiveOptions, hear_session, interface_index};
use thalweg_video::receiver::{ReceiverConfig, Repair};
use thalweg_video::sdp::SessionDescription;

use super::description::read;
use super::offered::{first_picture, sources_at};
use super::path::{RETRANSMISSION, control_port};
use super::picture::PictureOptions;
use crate::interrupt::Interrupt;
use crate::outcome::Failure;

/// Where packets are heard, and what they are.
#[derive(Args, Clone, Debug)]
pub struct HearingOptions {
    /// Hear packets at ADDR:PORT, an address of this host or a group; given twice, hear two paths, ST 2022-7 (default: where the session
    /// description sends them).
    #[arg(long, value_name = "ADDR:PORT", required_unless_present_any = ["sdp", "session"])]
    pub bind: Vec<SocketAddr>,

    /// Receive the first picture of the session description in FILE (default: the options tell the picture).
    #[arg(long, value_name = "FILE")]
    pub sdp: Option<PathBuf>,

    /// Receive the first picture of the session that is announced by SAP under NAME, awaited for 65 seconds (default: none).
    #[arg(long, value_name = "NAME", conflicts_with = "sdp")]
    pub session: Option<String>,

    /// The form of the picture, where no session description tells it.
    #[command(flatten)]
    pub picture: PictureOptions,

    /// Hear RTCP at the next port, mux: at that of RTP, or the picture's at PORT (default: as the session description says, next without
    /// one).
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
    /// The session description, from a file or an announcement; `None` where the options tell the picture.
    ///
    /// # Errors
    /// It cannot be read, nobody announces it before it is interrupted, or other options tell the picture as well.
    pub fn find_session(&self, interrupt: &Interrupt) -> Result<Option<SessionDescription>, Failure> {
        if self.sdp.is_some() || self.session.is_some() {
            // Plain descriptions may leave the rate out.
            PictureOptions { rate: None, ..self.picture.clone() }.refuse_beside("a session description")?;
        }
        let Some(name) = &self.session else { return self.sdp.as_deref().map(read).transpose() };
        let heard = hear_session(name, self.interface_index()?, SESSION_PATIENCE, &interrupt.flag())
            .map_err(|error| Failure::Failed(format!("no announcement can be heard: {error}; --interface may help")))?;
        if interrupt.came() {
            return Err(Failure::Interrupted);
        }
        if let Some(session) = heard.iter().find(|session| session.name == *name) {
            return Ok(Some(session.clone()));
        }
        let names: Vec<String> = heard.iter().map(|session| format!("{:?}", session.name)).collect();
        let others = if names.is_empty() {
            "nobody announces any".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        Err(Failure::TimedOut(format!("nobody announced the session {name:?}; {others}; --interface may help")))
    }

    fn interface_index(&self) -> Result<u32, Failure> {
        let index = self.interface.as_deref().map_or(Ok(0), interface_index);
        index.map_err(|error| Failure::Usage(error.to_string()))
    }

    /// How the driver hears such a stream.
    ///
    /// # Errors
    /// The options do not fit each other or the session description.
    pub fn driver_options(&self, session: Option<&SessionDescription>) -> Result<ReceiveOptions, Failure> {
        let offered = session.map(|session| first_picture(session, &self.picture)).transpose()?;
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
        receive.group_sources =
            offered.as_ref().map_or_else(Vec::new, |offered| sources_at(bind, &offered.to, &offered.sources));
        receive.group_interface = self.interface_index()?;
        if let Some(bytes) = self.buffer {
            receive.stream.receive_buffer_bytes = bytes as usize;
        }
        Ok(receive)
    }
}

/// Senders of this program announce each 30 seconds: two announcements may be lost.
const SESSION_PATIENCE: Duration = Duration::from_secs(65);
