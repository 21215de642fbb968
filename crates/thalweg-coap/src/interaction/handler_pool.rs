//! The paper's handler pool: threads for requests that the loop does not answer itself.

use std::sync::Arc;
use std::time::Duration;

use super::routes::{Routes, Target};
use super::send_handler::SendHandler;
use crate::endpoint::ExchangeId;
use crate::identity::Caller;
use crate::message::{Code, RequestBuf, Response};
use crate::scheduler::admission::AdmissionRank;
use crate::scheduler::pool::Crew;
use crate::scheduler::queue::Refused;

/// A request on its way through a pool.
#[derive(Debug)]
pub(super) struct Job {
    /// Which loop waits for the answer.
    pub(super) home: usize,
    pub(super) exchange: ExchangeId,
    pub(super) rank: AdmissionRank,
    pub(super) target: Target,
    pub(super) request: RequestBuf,
    pub(super) caller: Caller,
}

/// The threads of one class.
pub(super) struct Handlers {
    pub(super) routes: Arc<Routes>,
    pub(super) homes: Arc<[SendHandler]>,
}

impl Crew<Job> for Handlers {
    fn work(&self, job: Job) {
        let response = self.routes.handle(job.target, &job.request.view().of(&job.caller));
        self.homes[job.home].answer(job, response);
    }

    fn expire(&self, refused: Refused<Job>) {
        self.homes[refused.job.home].expire(refused);
    }

    fn flush(&self) {
        self.homes.iter().for_each(SendHandler::flush);
    }
}

/// The answer to a request that will not be handled: none for a non-confirmable one, else 5.03 with the time to retry.
pub(super) fn refusal(rank: AdmissionRank, retry_after: Duration) -> Option<Response> {
    match rank {
        AdmissionRank::Droppable => None,
        AdmissionRank::Kept => Some(later(Code::SERVICE_UNAVAILABLE, retry_after)),
    }
}

/// An error that says when to ask again, in whole seconds, at least one.
pub(super) fn later(code: Code, retry_after: Duration) -> Response {
    let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
    Response::new(code).with_max_age(u32::try_from(seconds.max(1)).unwrap_or(u32::MAX))
}
