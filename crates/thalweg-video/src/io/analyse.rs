//! The driver of an analyser: datagrams of one path, each with the kernel's time of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_base::time::Instant;
use thalweg_transport::stream::{KernelJoining, ReceiveCounts, StreamOptions};
use thalweg_transport::{clock, thread};

use super::options::ReceiveOptions;
use super::receive::open_paths;
use super::receive_error::ReceiveError;
use super::send::{STOP_DELAY, TIMER_SLACK};
use super::socket::{MediaReceiver, Protocol};
use crate::analysis::{StreamAnalyser, StreamAnalysis};

/// What an analyser found.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalysisReport {
    /// Since the first packet; zero before it.
    pub elapsed: Duration,
    /// What the stream is.
    pub analysis: StreamAnalysis,
    /// What the sockets counted: datagrams that found no room here were not missing on the wire.
    pub sockets: ReceiveCounts,
}

/// Analyses the stream at the first address of `options`, in which format, payload type, limits and sockets count, until a limit is
/// reached or `stop` is set; calls `each_second` in between. The kernel joins no datagrams, so that each has its time.
///
/// # Errors
/// The sockets cannot be opened, or the system's timers fail.
pub fn run_analyser(
    options: &ReceiveOptions,
    stop: &AtomicBool,
    mut each_second: impl FnMut(&AnalysisReport),
) -> Result<AnalysisReport, ReceiveError> {
    let stream = StreamOptions { joining: KernelJoining::Neither, ..options.stream };
    let bind = options.bind.iter().take(1).copied().collect();
    let paths = open_paths(&ReceiveOptions { bind, stream, ..options.clone() }).map_err(ReceiveError::Socket)?;
    let mut receiver = MediaReceiver::new(&paths).map_err(ReceiveError::Socket)?;
    let mut analyser = StreamAnalyser::new(options.receiver.format, options.receiver.payload_type);
    thread::set_timer_slack(TIMER_SLACK);
    let start = clock::now();
    let (end, mut second) = (start + options.duration, start + SECOND);
    let mut begun: Option<Instant> = None;
    let mut is_more = false;
    loop {
        let now = clock::now();
        if stop.load(Ordering::Relaxed) || now >= end || analyser.frames() > options.frames_max {
            break;
        }
        if !is_more {
            receiver.wait_until(end.min(second).min(now + STOP_DELAY)).map_err(ReceiveError::Socket)?;
        }
        is_more = receiver.receive(|arrival| {
            for (protocol, datagram) in arrival.datagrams() {
                if protocol == Protocol::Media {
                    begun.get_or_insert(arrival.message.arrived);
                    analyser.handle_datagram(arrival.message.arrived, datagram);
                }
            }
        });
        if clock::now() >= second {
            second += SECOND;
            each_second(&report(&analyser, &receiver, begun));
        }
    }
    analyser.finish();
    Ok(report(&analyser, &receiver, begun))
}

fn report(analyser: &StreamAnalyser, receiver: &MediaReceiver, begun: Option<Instant>) -> AnalysisReport {
    let elapsed = begun.map_or(Duration::ZERO, |begun| clock::now().since(begun));
    AnalysisReport { elapsed, analysis: analyser.analysis(), sockets: receiver.counts() }
}

const SECOND: Duration = Duration::from_secs(1);
