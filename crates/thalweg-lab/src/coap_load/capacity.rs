//! Checks before a load: whether the server answers, and the capacity of the generator.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thalweg_coap::endpoint::Confirmability;
use thalweg_coap::message::CoapMessage;

use super::generator::run;
use super::plan::{ArrivalProcess, LoadPlan};
use super::request::{Template, Verdict};
use super::responder::{Responder, write_content};
use super::result::Capacity;
use super::sockets::Sockets;
use crate::error::LabError;
use crate::host::monotonic_nanos;

/// Measures what as many clients reach against a responder of this process that keeps no state, on logical CPU
/// `responder_cpu` if one is named. Takes a quarter more than `duration`.
///
/// # Errors
/// As [`run`].
pub fn capacity(
    plan: &LoadPlan,
    duration: Duration,
    responder_cpu: Option<usize>,
    is_stopped: &AtomicBool,
) -> Result<Capacity, LabError> {
    let payload = plan.request.expected.clone().unwrap_or_default().into_bytes();
    let responder = Responder::start(responder_cpu, move |request, replies| {
        replies.push(|out| write_content(request, &payload, out));
    })?;
    let outstanding = match plan.arrival {
        ArrivalProcess::Closed(outstanding) => outstanding,
        ArrivalProcess::Rate(_) | ArrivalProcess::Phases(_) => 1,
    };
    let outstanding = outstanding.min(OUTSTANDING_MAX);
    let plan = LoadPlan {
        target: responder.address(),
        clients: plan.clients.min(OUTSTANDING_MAX / outstanding),
        arrival: ArrivalProcess::Closed(outstanding),
        duration,
        warm_up: duration / 4,
        window: None,
        flood: None,
        server_process: None,
        ..plan.clone()
    };
    let result = run(&plan, is_stopped);
    responder.finish()?;
    let result = result?;
    let served_per_busy_s = result.served_per_s / result.generator.busy;
    Ok(Capacity { served_per_s: result.served_per_s, busy: result.generator.busy, served_per_busy_s })
}

/// Sends one request, and repeats it without an answer, so that a wrong address or resource is reported at once.
///
/// # Errors
/// When no answer comes within the plan's time limit, or a different one than the plan expects.
pub fn check_answer(plan: &LoadPlan) -> Result<(), LabError> {
    let socket = Sockets::new(plan.target, 1)?.open()?;
    let failed = |error: io::Error| LabError::Here(format!("{} cannot be asked: {error}", plan.target));
    socket.set_nonblocking(false).map_err(failed)?;
    socket.set_read_timeout(Some(plan.time_limit.min(PAUSE))).map_err(failed)?;
    let mut request = plan.request.clone();
    // An answer that comes by itself after an acknowledgement would have to be waited for and acknowledged.
    request.delivery = Confirmability::NonConfirmable;
    let mut template = Template::new(&request)?;
    let mut bytes = [0; 2048];
    let began = monotonic_nanos();
    let mut id = began as u16;
    while Duration::from_nanos(monotonic_nanos() - began) < plan.time_limit {
        id = id.wrapping_add(1);
        let answer = socket.send(template.datagram(id, began)).and_then(|_| socket.recv(&mut bytes));
        let Ok(len) = answer else {
            // A port without a socket refuses at once; the server may be about to open it.
            std::thread::sleep(REFUSAL_PAUSE);
            continue;
        };
        let told = match CoapMessage::parse(&bytes[..len]) {
            Ok(message) if message.token.to_u64() != Some(began) => continue,
            Ok(message) if template.judge(id, &message) == Verdict::Right => return Ok(()),
            Ok(message) => format!("{:?} with {:?}", message.code, String::from_utf8_lossy(message.payload)),
            Err(error) => format!("what is no CoAP message ({error})"),
        };
        let expected = plan.request.expected.as_ref().map_or(String::new(), |text| format!(" with {text:?}"));
        return Err(LabError::Here(format!(
            "{} answers a GET of {} by {told} where 2.05{expected} is expected; name the resource and its payload",
            plan.target, plan.request.resource
        )));
    }
    Err(LabError::Here(format!(
        "nothing was heard from {} for {:?} after a GET of {}; is a CoAP server running there?",
        plan.target, plan.time_limit, plan.request.resource
    )))
}

/// Requests that wait in the responder's receive buffer must fit there.
const OUTSTANDING_MAX: u32 = 4096;
const PAUSE: Duration = Duration::from_millis(500);
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);
