//! A flood: many source ports whose answers are not read.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use super::generator::send;
use super::plan::{Flood, LoadPlan};
use super::request::Template;
use super::result::LoadCounts;
use super::schedule::Schedule;
use super::sockets::{flood_network, open_port};
use crate::error::LabError;

/// The flood's ports, which send in turn. Of many ports only those that sent last have a socket open.
pub(super) struct Crowd {
    target: SocketAddr,
    network: Ipv4Addr,
    ports: u64,
    sockets: Vec<UdpSocket>,
    schedule: Schedule,
    template: Template,
    sent: u64,
}

impl Crowd {
    /// # Errors
    /// When requests of the plan are impossible.
    pub(super) fn new(flood: &Flood, plan: &LoadPlan) -> Result<Crowd, LabError> {
        Ok(Crowd {
            target: plan.target,
            network: flood_network(),
            ports: u64::from(flood.ports),
            sockets: Vec::new(),
            schedule: Schedule::steady(flood.rate, plan),
            template: Template::new(&plan.request)?,
            sent: 0,
        })
    }

    /// Sends due requests, a few at a time; returns whether there were any.
    ///
    /// # Errors
    /// When a port cannot be had.
    pub(super) fn send_due(&mut self, now: u64, counts: &mut LoadCounts) -> Result<bool, LabError> {
        for number in 0..SENDS_PER_TURN {
            if self.schedule.take(now).is_none() {
                return Ok(number > 0);
            }
            let place = self.place()?;
            let round = self.sent / self.ports;
            let datagram = self.template.datagram(round as u16, self.sent);
            counts.flood += u64::from(send(&self.sockets[place], datagram));
            self.sent += 1;
        }
        Ok(true)
    }

    /// Index of the socket of the next port.
    fn place(&mut self) -> Result<usize, LabError> {
        let port = self.sent % self.ports;
        let is_held = self.ports <= SOCKETS_MAX && self.sent >= self.ports;
        let place = if self.ports <= SOCKETS_MAX { port } else { self.sent % SOCKETS_MAX } as usize;
        if !is_held {
            let socket = open_port(self.target, self.network, port as u32)?;
            match self.sockets.get_mut(place) {
                Some(before) => *before = socket,
                None => self.sockets.push(socket),
            }
        }
        Ok(place)
    }
}

/// Sockets of the flood that are open at once; many more would need a privilege on some systems.
pub(super) const SOCKETS_MAX: u64 = 1024;
/// As many as the clients' own in a turn.
const SENDS_PER_TURN: usize = 32;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::net::IpAddr;

    use super::super::sockets::{FIRST_FLOOD_PORT, FLOOD_PORTS_PER_ADDRESS, Sockets};
    use super::*;

    /// How often each port sent in `sent` turns of so many. Its two choices count as one: a process that another test starts holds
    /// what this one closes until it is itself.
    fn turns(ports: u32, sent: u64) -> HashMap<(IpAddr, u32), u64> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = LoadPlan::new(server.local_addr().unwrap());
        let taken = open_port(plan.target, flood_network(), 0).unwrap().local_addr().unwrap().port();
        // Held on all addresses by this test, or by whoever had it before.
        let _elsewhere = UdpSocket::bind(("0.0.0.0", taken + 3));
        Sockets::new(plan.target, plan.sockets() + SOCKETS_MAX).unwrap();
        let mut crowd = Crowd::new(&Flood { ports, rate: 1.0 }, &plan).unwrap();
        let mut seen = HashMap::new();
        for _ in 0..sent {
            let place = crowd.place().unwrap();
            let address = crowd.sockets[place].local_addr().unwrap();
            let number = (u32::from(address.port()) - FIRST_FLOOD_PORT) % FLOOD_PORTS_PER_ADDRESS;
            *seen.entry((address.ip(), number)).or_default() += 1;
            crowd.sent += 1;
        }
        assert!(crowd.sockets.len() as u64 <= SOCKETS_MAX);
        seen
    }

    #[test]
    fn every_port_has_its_turn_however_few_sockets_are_open() {
        let few = turns(7, 21);
        assert!(few.len() == 7 && few.values().all(|turns| *turns == 3), "{few:?}");
        let many = turns(SOCKETS_MAX as u32 + 5, 2 * (SOCKETS_MAX + 5));
        assert!(many.len() as u64 == SOCKETS_MAX + 5 && many.values().all(|turns| *turns == 2));
    }
}
