//! Streams of datagrams, out and in.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_lab_station::Stop;
use thalweg_transport::clock;
use thalweg_transport::stream::{StreamReceiver, StreamScratch};

use super::channel::LOOK_PERIOD;
use super::links::DatagramLink;
use super::received::{ReceiveProgress, StreamReceived};
use super::sent::StreamSent;
use super::workers::Workers;
use crate::account::{Arrivals, DatagramHeader, HEADER_BYTES, MESSAGES_MAX, SendSchedule};
use crate::error::ProbeError;
use crate::order::ProbeOrder;

/// Starts a thread that sends for each link.
pub(super) fn send(order: &ProbeOrder, links: &[DatagramLink], start: Instant) -> Workers<StreamSent> {
    let course = |(number, link): (usize, &DatagramLink)| SendCourse {
        link: link.clone(),
        size_bytes: order.size_bytes as usize,
        schedule: SendSchedule::of(order, number as u32, start),
        start,
        end: start + order.duration(),
    };
    Workers::start(links.iter().enumerate().map(course).collect(), send_stream)
}

struct SendCourse {
    link: DatagramLink,
    size_bytes: usize,
    schedule: Option<SendSchedule>,
    start: Instant,
    end: Instant,
}

impl SendCourse {
    /// How many datagrams leave at `now`, and until when nothing does where that is none; `None` at the end.
    fn ready(&self, now: Instant, number: u64) -> Option<(u64, Instant)> {
        match &self.schedule {
            Some(schedule) if number >= schedule.count() => None,
            Some(schedule) => Some((schedule.ready(now, number), schedule.due(number))),
            None if now >= self.end => None,
            None => Some((if now < self.start { 0 } else { MESSAGES_MAX }, self.start)),
        }
    }
}

fn send_stream(course: SendCourse, stop: &Stop) -> Result<StreamSent, ProbeError> {
    let DatagramLink { socket, peer, token } = &course.link;
    let filling = filling(course.size_bytes);
    let mut heads = [[0; HEADER_BYTES]; MESSAGES_MAX as usize];
    let mut scratch = StreamScratch::default();
    let mut sent = StreamSent::new(course.start);
    loop {
        let now = clock::now();
        let Some((count, due)) = course.ready(now, sent.offered) else { break };
        if stop.is_requested() {
            return Err(ProbeError::Interrupted);
        }
        if count == 0 {
            clock::sleep_until(due.min(now + LOOK_PERIOD));
            continue;
        }
        if course.schedule.is_some() {
            sent.behind_max = sent.behind_max.max(now.since(due));
        }
        let sent_us = (now.as_nanos() / 1_000) as u32;
        for (head, number) in heads.iter_mut().zip(sent.offered..sent.offered + count) {
            *head = DatagramHeader { number, token: *token, sent_us }.to_wire();
        }
        let mut burst = socket.burst(&mut scratch, *peer);
        for head in &heads[..count as usize] {
            burst.push(iter::once(&head[..]).chain((!filling.is_empty()).then_some(&filling[..])));
        }
        let took = burst.send(PATIENCE);
        sent.offered += count;
        sent.not_sent += took.lost as u64;
        sent.bytes += (took.datagrams * course.size_bytes) as u64;
        if took.datagrams == 0 && socket.counts().refused >= count {
            return Err(ProbeError::Failed(format!(
                "the system refuses to send datagrams of {} B to {peer}: no route, a firewall, or a path that is too narrow",
                course.size_bytes
            )));
        }
    }
    sent.ended = clock::now();
    let counts = socket.counts();
    (sent.calls, sent.segmented_messages) = (counts.calls, counts.segmented_messages);
    Ok(sent)
}

/// What stands behind the head of a datagram of this size: octets that count up, so that nothing compresses them to nothing.
pub(super) fn filling(size_bytes: usize) -> Vec<u8> {
    (HEADER_BYTES..size_bytes).map(|at| at as u8).collect()
}

/// Starts a thread that receives for each link, until all that was offered is there or nothing more comes.
pub(super) fn receive(
    order: &ProbeOrder,
    links: &[DatagramLink],
    progress: &Arc<ReceiveProgress>,
) -> Result<Workers<StreamReceived>, ProbeError> {
    let course = |(stream, link): (usize, &DatagramLink)| {
        Ok(ReceiveCourse {
            receiver: StreamReceiver::new(&[&link.socket]).map_err(ProbeError::system("preparing to receive"))?,
            arrivals: Arrivals::new(link.token, order.size_bytes as usize),
            stream,
            progress: Arc::clone(progress),
        })
    };
    let courses = links.iter().enumerate().map(course).collect::<Result<_, ProbeError>>()?;
    Ok(Workers::start(courses, receive_stream))
}

struct ReceiveCourse {
    receiver: StreamReceiver,
    arrivals: Arrivals,
    stream: usize,
    progress: Arc<ReceiveProgress>,
}

fn receive_stream(mut course: ReceiveCourse, stop: &Stop) -> Result<StreamReceived, ProbeError> {
    let ReceiveCourse { receiver, arrivals, stream, progress } = &mut course;
    let mut quiet_since = None;
    loop {
        let mut came = false;
        while receiver.is_ready(0) {
            receiver.receive(0).map_err(ProbeError::system("receiving"))?;
            while let Some(arrival) = receiver.next_arrival() {
                arrival.datagrams().for_each(|datagram| arrivals.handle_datagram(arrival.arrived, datagram));
                came = true;
            }
            progress.note(*stream, &arrivals.counts());
            if stop.is_requested() {
                return Err(ProbeError::Interrupted);
            }
        }
        let now = clock::now();
        if let Some(offered) = progress.offered(*stream) {
            let quiet = if came { *quiet_since.insert(now) } else { *quiet_since.get_or_insert(now) };
            if arrivals.counts().received >= offered || now.since(quiet) >= QUIET {
                break;
            }
        }
        if stop.is_requested() {
            return Err(ProbeError::Interrupted);
        }
        receiver.wait_until(now + LOOK_PERIOD).map_err(ProbeError::system("waiting for datagrams"))?;
    }
    let counts = receiver.counts();
    Ok(StreamReceived {
        counts: arrivals.counts(),
        span: arrivals.span(),
        jitter_us: arrivals.jitter_us(),
        calls: counts.calls + counts.waits,
        joined_messages: counts.joined_messages,
        overflow_drops: counts.kernel_drops,
    })
}

/// What one burst waits for room in the send buffer: a link that takes nothing for so long is dead.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long after the end of a stream nothing may come before what is missing is lost. Chosen here: more than the queues of a path
/// hold a datagram.
const QUIET: Duration = Duration::from_millis(500);
