//! The end that asks for a measurement.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use thalweg_lab_station::Stop;
use thalweg_transport::clock;

use super::channel::ControlChannel;
use super::links::{self, Links};
use super::meter::UsageMeter;
use super::received::{ReceiveProgress, SecondCutter};
use super::round_trips::StreamTrips;
use super::sent::StreamSent;
use super::workers::Workers;
use super::{round_trips, tcp};
use crate::control::{Begin, ControlMessage, EndRole, Ready, SECONDS_KEPT};
use crate::error::ProbeError;
use crate::figures::{ProbeFigures, RoundTripTotals};
use crate::order::{ProbeOrder, ProbeProtocol, Shape, StreamDirection};
use crate::reports::{EndReport, ProbeSecond, ReceivedReport, SentReport};

/// Where a client measures to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// The server's address.
    pub server: SocketAddr,
}

/// Carries an order out with the server; `on_second` hears each second of a stream when it is over.
///
/// # Errors
/// The order is out of bounds, nobody answers, either end fails, the ends contradict each other, or `stop` was requested.
pub fn measure(
    options: &ClientOptions,
    order: ProbeOrder,
    stop: &Stop,
    on_second: &mut dyn FnMut(&ProbeSecond),
) -> Result<ProbeFigures, ProbeError> {
    let order = order.checked()?;
    if order.protocol == ProbeProtocol::Udp {
        links::check_path(&order, options.server)?;
    }
    let stream = TcpStream::connect_timeout(&options.server, CONNECT_PATIENCE)
        .map_err(|error| ProbeError::Unreachable(options.server, error))?;
    let mut channel = ControlChannel::new(stream, EndRole::Client, stop)?;
    let outcome = Course { channel: &mut channel, order: &order, seconds: Vec::new(), on_second }.run();
    if let Err(error) = &outcome {
        channel.give_up(error);
    }
    outcome
}

/// A measurement at its client.
struct Course<'a> {
    channel: &'a mut ControlChannel,
    order: &'a ProbeOrder,
    seconds: Vec<ProbeSecond>,
    on_second: &'a mut dyn FnMut(&ProbeSecond),
}

impl Course<'_> {
    fn run(mut self) -> Result<ProbeFigures, ProbeError> {
        let links = self.prepare()?;
        match self.order.shape {
            Shape::Stream { direction: StreamDirection::ToServer, .. } => self.send(&links),
            Shape::Stream { direction: StreamDirection::ToClient, .. } => self.receive(&links),
            Shape::RoundTrips => self.ask(&links),
        }
    }

    fn prepare(&mut self) -> Result<Links, ProbeError> {
        self.channel.say(&ControlMessage::Order(self.order.clone()))?;
        let ControlMessage::Ready(Ready { token, ports }) = self.channel.hear()? else { return Err(ProbeError::Left) };
        let (here, there) = self.channel.addresses()?;
        match self.order.protocol {
            ProbeProtocol::Udp => {
                let sockets = links::open_datagram_sockets(self.order, here, 0)?;
                Ok(Links::Datagrams(links::link_datagrams(sockets, there, &ports, token)))
            }
            ProbeProtocol::Tcp => {
                let mut door = there;
                door.set_port(ports.first().copied().unwrap_or(0));
                let links = tcp::connect(self.order, door, token)?;
                Ok(Links::Tcp(links.into_iter().map(Arc::new).collect()))
            }
        }
    }

    /// Lets the server begin; the observation of this end begins with it.
    fn begin(&mut self, ports: Vec<u16>) -> Result<UsageMeter, ProbeError> {
        self.channel.say(&ControlMessage::Begin(Begin { ports }))?;
        let ControlMessage::Begun = self.channel.hear()? else { return Err(ProbeError::Left) };
        Ok(UsageMeter::start())
    }

    fn send(mut self, links: &Links) -> Result<ProbeFigures, ProbeError> {
        let meter = self.begin(Vec::new())?;
        let workers = links.send(self.order);
        while !workers.are_finished() {
            self.hear_second()?;
        }
        let mut report = EndReport { sent: Some(SentReport::of(&workers.finish()?)), ..meter.finish() };
        self.channel.say(&ControlMessage::Ended(report.clone()))?;
        let theirs = self.hear_report()?;
        if let Some(sent) = &mut report.sent {
            // Only now has everything arrived.
            sent.retransmitted_segments = links.retransmitted_segments();
        }
        ProbeFigures::of_stream(self.order, report, theirs, self.seconds)
    }

    fn receive(mut self, links: &Links) -> Result<ProbeFigures, ProbeError> {
        let progress = Arc::new(ReceiveProgress::new(self.order.streams));
        let workers = links.receive(self.order, &progress)?;
        if let Links::Datagrams(links) = links {
            links::knock(links);
        }
        let meter = self.begin(links.ports())?;
        let mut cutter = SecondCutter::new(clock::now());
        let theirs = loop {
            let now = clock::now();
            if now >= cutter.next() {
                self.note_second(cutter.cut(now, &progress));
            }
            match self.channel.hear_until(cutter.next())? {
                Some(ControlMessage::Ended(report)) => break report,
                Some(_) => return Err(ProbeError::Left),
                None => {}
            }
        };
        progress.tell_offered(theirs.sent.as_ref().map(|sent| sent.offered.clone()).unwrap_or_default());
        let received = workers.finish()?;
        let received = Some(ReceivedReport::of(&received, links.buffers(self.order)));
        let report = EndReport { received, ..meter.finish() };
        self.channel.say(&ControlMessage::Report(report.clone()))?;
        ProbeFigures::of_stream(self.order, theirs, report, self.seconds)
    }

    fn ask(mut self, links: &Links) -> Result<ProbeFigures, ProbeError> {
        let meter = self.begin(Vec::new())?;
        let start = clock::now();
        let workers: Workers<StreamTrips> = match links {
            Links::Datagrams(links) => round_trips::ask_by_datagrams(self.order, links, start)?,
            Links::Tcp(links) => round_trips::ask_by_tcp(self.order, links, start),
        };
        while !workers.are_finished() {
            self.hear_second()?;
        }
        let trips = workers.finish()?;
        let sent: Vec<StreamSent> = trips.iter().map(|trips| trips.sent).collect();
        let mut sent = SentReport::of(&sent);
        sent.retransmitted_segments = links.retransmitted_segments();
        let report = EndReport { sent: Some(sent), ..meter.finish() };
        self.channel.say(&ControlMessage::Ended(report.clone()))?;
        let theirs = self.hear_report()?;
        let mut totals = RoundTripTotals::default();
        trips.iter().for_each(|trips| totals.add(&trips.latencies, trips.lost, trips.measured));
        Ok(ProbeFigures::of_round_trips(self.order, &totals, report, theirs))
    }

    /// Waits a little, and hears a second where there is one.
    fn hear_second(&mut self) -> Result<(), ProbeError> {
        match self.channel.hear_until(clock::now() + WATCH_PERIOD)? {
            Some(ControlMessage::Second(second)) => self.note_second(second),
            Some(_) => return Err(ProbeError::Left),
            None => {}
        }
        Ok(())
    }

    fn hear_report(&mut self) -> Result<EndReport, ProbeError> {
        loop {
            match self.channel.hear()? {
                ControlMessage::Second(second) => self.note_second(second),
                ControlMessage::Report(report) => return Ok(report),
                _ => return Err(ProbeError::Left),
            }
        }
    }

    fn note_second(&mut self, second: ProbeSecond) {
        (self.on_second)(&second);
        if self.seconds.len() < SECONDS_KEPT {
            self.seconds.push(second);
        }
    }
}

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
const WATCH_PERIOD: Duration = Duration::from_millis(50);
