//! A flood: many source ports whose answers nobody reads.

use std::net::UdpSocket;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::generator::send;
use super::plan::{Flood, LoadPlan};
use super::request::Template;
use super::result::LoadCounts;
use super::schedule::Schedule;
use super::sockets::Sockets;
use crate::error::LabError;

/// The flood's sockets, which send in turn.
pub(super) struct Crowd {
    sockets: Vec<UdpSocket>,
    schedule: Schedule,
    template: Template,
    sent: u64,
}

impl Crowd {
    /// Opens the sockets.
    ///
    /// # Errors
    /// When they cannot be had.
    pub(super) fn new(flood: &Flood, plan: &LoadPlan, sockets: &mut Sockets) -> Result<Crowd, LabError> {
        let open = |_| {
            let socket = sockets.open()?;
            // Answers fill it at once and are dropped: the least of memory for them.
            set_socket_recv_buffer_size(&socket, 1)
                .map_err(|error| LabError::Here(format!("a socket of the flood cannot be made small: {error}")))?;
            Ok(socket)
        };
        let sockets = (0..flood.ports).map(open).collect::<Result<Vec<UdpSocket>, LabError>>()?;
        let (schedule, template) = (Schedule::steady(flood.rate, plan), Template::new(&plan.request)?);
        Ok(Crowd { sockets, schedule, template, sent: 0 })
    }

    /// Sends what is due, a few at a time; whether that was anything.
    pub(super) fn send_due(&mut self, now: u64, counts: &mut LoadCounts) -> bool {
        for number in 0..SENDS_PER_TURN {
            if self.schedule.take(now).is_none() {
                return number > 0;
            }
            let ports = self.sockets.len() as u64;
            let (socket, round) = (&self.sockets[(self.sent % ports) as usize], self.sent / ports);
            let datagram = self.template.datagram(round as u16, self.sent);
            counts.flood += u64::from(send(socket, datagram));
            self.sent += 1;
        }
        true
    }
}

/// As many as the clients' own in a turn.
const SENDS_PER_TURN: usize = 32;
