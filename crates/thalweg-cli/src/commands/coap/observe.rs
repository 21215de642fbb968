//! `thalweg coap observe`.

use std::time::{Duration, Instant};

use clap::Args;
use thalweg_coap::endpoint::{Confirmability, EndpointEvent};
use thalweg_coap::interaction::client::ClientError;
use thalweg_coap::message::{Observe, RequestBuf};

use super::protection::ClientProtection;
use super::target::{TargetUri, failure, representation, representation_json};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, print_line};

/// Options of `coap observe`.
#[derive(Args, Debug)]
pub struct ObserveOptions {
    /// Resource to observe, such as coap://127.0.0.1/note.
    #[arg(value_name = "URI", value_parser = TargetUri::parse)]
    pub target: TargetUri,

    /// Exit after N lines (default: go on until Ctrl-C).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Give up with exit code 3 when --count is not reached after SECONDS; without --count, exit then (default: no limit).
    #[arg(long, value_name = "SECONDS", value_parser = crate::parse::seconds)]
    pub timeout: Option<Duration>,

    /// Print each state as one line of JSON: code, content_format, max_age_s, etag, and text or hex (default: the representation alone).
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    /// The keys of the request.
    pub protection: ClientProtection,
}

/// Prints each state of the resource that the server tells.
///
/// # Errors
/// The server cannot be reached or does not notify, or `--count` is not reached in time.
pub fn run(options: &ObserveOptions, interrupt: &Interrupt) -> Result<(), Failure> {
    let server = options.target.address()?;
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut client = options.protection.client(&options.target, server, options.timeout.unwrap_or(CONNECT_TIME))?;
    let request = RequestBuf::get(&options.target.resource).with_observe(Observe::Register);
    let registration = client.send(request, Confirmability::Confirmable).map_err(|error| failure(&error))?;
    let mut printed = 0;
    loop {
        let rest = deadline.map_or(LOOK_PERIOD, |deadline| deadline.saturating_duration_since(Instant::now()));
        // Ctrl-C does not end the wait for datagrams by itself.
        let event = client.next(rest.min(LOOK_PERIOD)).map_err(|error| failure(&error))?;
        match event {
            Some(EndpointEvent::Response { request, response, .. }) if request == registration => {
                match options.json {
                    true => print_line(representation_json(&response)?)?,
                    false => print_line(representation(&response)?)?,
                }
                printed += 1;
                if options.count == Some(printed) {
                    break;
                }
                if response.observe.is_none() {
                    return Err(Failure::Failed(NOT_TOLD.to_owned()));
                }
            }
            Some(EndpointEvent::Failed { request, error, .. }) if request == registration => {
                return Err(failure(&ClientError::Request(error)));
            }
            _ => {}
        }
        if interrupt.came() && options.count.is_some() {
            return Err(Failure::Interrupted);
        }
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late && let Some(count) = options.count {
            return Err(Failure::TimedOut(format!("{printed} of {count} states came in time; raise --timeout")));
        }
        if is_late || interrupt.came() {
            break;
        }
    }
    client.cancel(registration);
    Ok(())
}

const NOT_TOLD: &str = "the server tells no further states: it does not notify of this resource, or not now";
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// Time for a connection where the options limit none.
const CONNECT_TIME: Duration = Duration::from_secs(10);
