//! Options of the packets of a stream.

use std::net::SocketAddr;

use clap::Args;
use thalweg_base::traffic_class::TrafficClass;
use thalweg_video::io::{ControlPort, SendError, SendOptions, interface_index};
use thalweg_video::rfc4175::{PacketPlan, Packing};
use thalweg_video::sender::Batching;

use super::description::{OfferedStream, VocabularyName};
use super::path::{RETRANSMISSION, RepairName, control_port};
use crate::outcome::Failure;

/// How packets are made and leave; what a session description tells of them.
#[derive(Args, Clone, Debug)]
pub struct PacketOptions {
    /// Make packets that fit an MTU of BYTES, 68 to 65535, or auto: that of the route (default: auto).
    #[arg(long, value_name = "BYTES", default_value = "auto", hide_default_value = true, value_parser = mtu)]
    pub mtu: Mtu,

    /// Cut a frame into equal packets, blocks of 180 octets (ST 2110-20), or fill each packet (default: equal).
    #[arg(long, value_name = "HOW", default_value = "equal", hide_default_value = true, value_parser = packing)]
    pub packing: Packing,

    /// Let packets leave together as a wide sender of ST 2110-21 may, as lan, which is as many as two system calls take (four
    /// where packets need an MTU above 1500), or N of them, 1 to 64 (default: wide).
    #[arg(long, value_name = "HOW", default_value = "wide", hide_default_value = true, value_parser = batching)]
    pub batching: Batching,

    /// Send packets again that receivers ask for, of picture and sound (default: rtx).
    #[arg(long, value_enum, default_value = "rtx", hide_default_value = true)]
    pub repair: RepairName,

    /// Send and hear RTCP at the next port, mux: that of RTP, or send the picture's to PORT and the sound's to its next one (default: next).
    #[arg(long, value_name = "PORT", default_value = "next", hide_default_value = true, value_parser = control_port)]
    pub rtcp: ControlPort,

    /// Mark datagrams with the code point N of Differentiated Services, 0 to 63, such as 34 (default: 0, best effort).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: Option<u8>,

    /// Let datagrams pass N - 1 routers, 1 to 255 (default: the system's, which keeps a group on its link).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub ttl: Option<u8>,

    /// Let groups leave by interface NAME (default: where the routing table leads).
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,

    /// Describe the session in the words of ST 2110-20 or of RFC 4175 alone (default: 2110).
    #[arg(long, value_enum, default_value = "2110", hide_default_value = true)]
    pub vocabulary: VocabularyName,
}

/// The MTU that packets fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtu {
    Route,
    Bytes(u32),
}

impl PacketOptions {
    /// How the driver sends such packets to one address or two.
    ///
    /// # Errors
    /// There are more, or no port is left for RTCP.
    pub fn driver_options(&self, to: &[SocketAddr]) -> Result<SendOptions, Failure> {
        let (Some(first), 1..=2) = (to.first(), to.len()) else {
            return Err(Failure::Usage(format!("{} addresses are given; a stream has two paths at most", to.len())));
        };
        for to in to {
            self.rtcp.beside(*to).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let mut send = SendOptions::new(*first).map_err(Failure::from_cause)?;
        send.to = to.to_vec();
        send.control = self.rtcp;
        send.mtu = match self.mtu {
            Mtu::Route => None,
            Mtu::Bytes(bytes) => Some(bytes),
        };
        send.packing = self.packing;
        send.sender.batching = self.batching;
        send.sender.resend = self.repair.resend(RETRANSMISSION, send.sender.ssrc);
        send.stream.hops = self.ttl;
        let index = self.interface.as_deref().map(interface_index);
        send.stream.multicast_interface = index.transpose().map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(code_point) = self.dscp {
            send.stream.traffic_class = TrafficClass::of(code_point.into());
        }
        Ok(send)
    }

    /// The stream of the packets of `plan`, for a session description.
    pub fn offered<'options>(&self, plan: &PacketPlan, to: &'options [SocketAddr]) -> OfferedStream<'options> {
        OfferedStream {
            format: plan.format(),
            pixel_aspect: (1, 1),
            to,
            hops: self.ttl,
            control: self.rtcp,
            packing: plan.packing(),
            batching: self.batching,
            repair: self.repair,
            vocabulary: self.vocabulary,
            sound: None,
            datagram_octets: plan.datagram_octets_max(),
        }
    }
}

/// A failure of the driver: wrong options, or a network or source that fails.
pub fn from_send(error: SendError) -> Failure {
    match error {
        SendError::Plan(_) | SendError::Config(_) | SendError::Oversize { .. } | SendError::Channels { .. } => {
            Failure::Usage(error.to_string())
        }
        SendError::Socket(_) | SendError::Frame(_) | SendError::Source(_) => Failure::Failed(error.to_string()),
    }
}

fn mtu(text: &str) -> Result<Mtu, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Mtu::Route),
        Ok(bytes @ 68..=65_535) => Ok(Mtu::Bytes(bytes)),
        _ => Err("no MTU; give auto or a number of bytes from 68 to 65535, such as 1500".to_owned()),
    }
}

fn packing(text: &str) -> Result<Packing, String> {
    match text {
        "equal" => Ok(Packing::Equal),
        "blocks" => Ok(Packing::Blocks),
        "fill" => Ok(Packing::Fill),
        _ => Err("no way to cut a frame; give equal, blocks or fill".to_owned()),
    }
}

fn batching(text: &str) -> Result<Batching, String> {
    match (text, text.parse()) {
        ("wide", _) => Ok(Batching::Wide),
        ("lan", _) => Ok(Batching::Lan),
        (_, Ok(packets @ 1..=64)) => Ok(Batching::Packets(packets)),
        _ => Err("no batching; give wide, lan or a number of packets from 1 to 64".to_owned()),
    }
}
