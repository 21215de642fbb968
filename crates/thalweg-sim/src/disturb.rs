//! Pauses, moves and narrow paths as they happen.

use std::time::Duration;

use thalweg_rtps::time::Instant;
use thalweg_rtps::types::GuidPrefix;

use crate::plan::Plan;
use crate::simulation::{Happening, Simulation};

/// When hosts look again how wide the paths are; production does so once a minute.
const WIDER_KNOWN_AFTER: Duration = Duration::from_millis(500);

impl Simulation {
    /// The time at which a paused process goes on. Void time-outs are not kept.
    pub(crate) fn postpone(&mut self, happening: &Happening) -> Option<Instant> {
        let process = match *happening {
            Happening::Receive(process)
            | Happening::Timeout(process)
            | Happening::HearHousemates(process)
            | Happening::Commit(process)
            | Happening::Committed(process)
            | Happening::BeginSet(process)
            | Happening::EndSet(process) => process,
            Happening::CreateWriter(number)
            | Happening::DeleteWriter(number)
            | Happening::Burst(number)
            | Happening::Assert(number)
            | Happening::SetWriterQos(number)
            | Happening::CallEnds(number)
            | Happening::Retry(number)
            | Happening::GiveUp { writer: number, .. } => self.writers[number].record.process,
            Happening::CreateReader(number)
            | Happening::DeleteReader(number)
            | Happening::SetReaderQos(number)
            | Happening::Take(number) => self.readers[number].record.process,
            _ => return None,
        };
        let (now, process) = (self.now, &mut self.processes[process]);
        let resumes = Some(process.paused_until).filter(|until| *until > now)?;
        if matches!(happening, Happening::Timeout(_)) {
            if process.timer_at != now {
                return None; // Its time has changed since: it does nothing.
            }
            process.timer_at = resumes;
        }
        Some(resumes)
    }

    pub(crate) fn pause(&mut self, number: usize) {
        let pause = self.plan.pauses[number];
        let process = &mut self.processes[pause.process];
        process.paused_until = process.paused_until.max(pause.until);
        self.note(pause.process, format!("does not run for {:?}", pause.until.since(pause.from)));
    }

    pub(crate) fn move_host(&mut self, number: usize) {
        let host = self.plan.moves[number].host;
        self.network.move_host(host);
        let address = self.network.address_of(host);
        for process in self.processes.iter_mut().filter(|process| process.host == host) {
            process.source.set_ip(address);
        }
        self.note(0, format!("host {host} gets the address {address}"));
    }

    pub(crate) fn tell_move(&mut self, host: usize) {
        for number in self.processes_of(host) {
            self.note(number, "learns of its new address".to_string());
            self.processes[number].change_addresses(self.now, &self.plan, &self.network);
            self.drive(number);
        }
    }

    pub(crate) fn change_paths(&mut self, number: usize) {
        let mtu_bytes = self.plan.paths[number].mtu_bytes;
        self.network.set_mtu(mtu_bytes);
        self.note(0, format!("paths carry packets of {mtu_bytes} bytes"));
        // No refused datagram would tell of a wider path.
        for host in (0..self.plan.hosts.len()).filter(|host| self.network.mtu_known(*host) < mtu_bytes) {
            self.queue.plan(self.now + WIDER_KNOWN_AFTER, Happening::TellPath(host));
        }
    }

    pub(crate) fn tell_path(&mut self, host: usize) {
        let before = self.network.mtu_known(host);
        if self.network.tell_mtu(host) == before {
            return;
        }
        for number in self.processes_of(host) {
            let Some(participant) = &self.processes[number].participant else { continue };
            let peers: Vec<GuidPrefix> = participant.participants().map(|known| known.data.guid_prefix).collect();
            peers.into_iter().for_each(|peer| self.measure_path(number, peer));
            self.drive(number);
        }
    }

    /// Tells a participant the path MTU that its host knows.
    pub(crate) fn measure_path(&mut self, number: usize, peer: GuidPrefix) {
        let process = &mut self.processes[number];
        let now = process.local(self.now);
        let elsewhere = self
            .plan
            .processes
            .iter()
            .enumerate()
            .any(|(other, plan)| plan.host != process.host && crate::process::prefix(other) == peer);
        if let Some(participant) = process.participant.as_mut().filter(|_| elsewhere) {
            participant.set_path_mtu(now, peer, self.network.mtu_known(process.host));
        }
    }

    pub(crate) fn create_controller(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let now = process.local(self.now);
        let Some(settings) = self.plan.processes[number].controller else { return };
        let Some(participant) = &mut process.participant else { return };
        if let Err(error) = participant.create_flow_controller(now, Plan::CONTROLLER, settings) {
            self.breach(format!("p{number}: {error}"));
        }
    }

    fn processes_of(&self, host: usize) -> Vec<usize> {
        (0..self.processes.len()).filter(|number| self.processes[*number].host == host).collect()
    }
}
