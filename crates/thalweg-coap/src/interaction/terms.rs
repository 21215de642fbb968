//! Options that a request must agree in with its handler, decided before the handler runs (RFC 7252 §5.10).

use super::handler::{Existence, Terms};
use crate::message::{CoapRequest, Code, ETag, OptionNumber, Response};

/// The options of a request that the framework decides on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    accept: Option<u16>,
    content_format: Option<u16>,
    is_if_match: bool,
    is_if_none_match: bool,
}

impl Conditions {
    /// Reads them in one pass.
    #[inline]
    pub(super) fn read(request: &CoapRequest<'_>) -> Conditions {
        let mut conditions = Conditions::default();
        for (number, value) in request.options {
            let format = || value.iter().fold(0, |format: u16, byte| format << 8 | u16::from(*byte));
            match number {
                OptionNumber::IF_MATCH => conditions.is_if_match = true,
                OptionNumber::IF_NONE_MATCH => conditions.is_if_none_match = true,
                OptionNumber::CONTENT_FORMAT => conditions.content_format = Some(format()),
                OptionNumber::ACCEPT => conditions.accept = Some(format()),
                _ if number > OptionNumber::ACCEPT => break,
                _ => {}
            }
        }
        conditions
    }

    /// Whether there is none, so that a request that changes nothing reaches its handler in any case.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        self.accept.is_none() && self.content_format.is_none() && !self.is_if_match && !self.is_if_none_match
    }

    /// Why a request cannot reach its handler; `existence` asks that, only where a condition needs it.
    #[inline]
    pub(super) fn refusal(
        self,
        request: &CoapRequest<'_>,
        terms: &Terms,
        existence: impl FnOnce() -> Existence,
    ) -> Option<Response> {
        if let Some(format) = self.accept.filter(|_| !matches!(request.code, Code::PUT | Code::DELETE))
            && !terms.produces.is_empty()
            && !terms.produces.contains(&format)
        {
            return Some(not_acceptable());
        }
        if let Some(format) = self.content_format.filter(|_| !matches!(request.code, Code::GET | Code::DELETE))
            && !terms.consumes.is_empty()
            && !terms.consumes.contains(&format)
        {
            let diagnosis = format!("content format {format} is not understood here");
            return Some(Response::error(Code::UNSUPPORTED_CONTENT_FORMAT, diagnosis));
        }
        if self.is_if_match || self.is_if_none_match { self.unfulfilled(request, terms, existence) } else { None }
    }

    #[cold]
    fn unfulfilled(
        self,
        request: &CoapRequest<'_>,
        terms: &Terms,
        existence: impl FnOnce() -> Existence,
    ) -> Option<Response> {
        if !terms.conditional {
            let number = if self.is_if_match { OptionNumber::IF_MATCH } else { OptionNumber::IF_NONE_MATCH };
            return Some(Response::error(Code::BAD_OPTION, format!("{number} cannot be evaluated for this resource")));
        }
        let (exists, tags) = match existence() {
            Existence::Absent => (false, Vec::new()),
            Existence::Present(tags) => (true, tags),
        };
        let is_wanted = |value: &[u8]| value.is_empty() || tags.iter().any(|tag: &ETag| **tag == *value);
        let failed = |diagnosis: &'static str| Some(Response::error(Code::PRECONDITION_FAILED, diagnosis));
        match () {
            () if self.is_if_none_match && exists => failed("the resource exists"),
            () if self.is_if_match && !exists => failed("there is no such resource"),
            () if self.is_if_match && !request.if_match().any(is_wanted) => failed("the resource has changed"),
            () => None,
        }
    }

    /// The answer of a handler, unless its client accepts another format only. What changed something is told in any case.
    #[inline]
    pub(super) fn acceptable(self, request: &CoapRequest<'_>, response: Response) -> Response {
        let is_other = |accept: u16| response.content_format.is_some_and(|format| format != accept);
        if response.code == Code::CONTENT && request.code.is_safe() && self.accept.is_some_and(is_other) {
            return not_acceptable();
        }
        response
    }
}

#[cold]
fn not_acceptable() -> Response {
    Response::error(Code::NOT_ACCEPTABLE, "there is no representation of that format")
}
