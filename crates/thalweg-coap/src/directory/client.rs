//! Registration of this thing's resources at a directory elsewhere.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::link_format;
use crate::message::{Code, RequestBuf, Response, content_format};
use crate::resource::ResourceError;
use crate::service::{Remote, ServiceStop, Things};

/// How this thing is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationPlan {
    /// The directory's host and port.
    pub directory: String,
    /// The name of this endpoint, `ep`.
    pub endpoint: String,
    /// The sector, `d`; empty for the default one.
    pub sector: String,
    /// The URI of this server. `None` lets the directory take the address that the request comes from; that is right only
    /// where requests leave by the port of the server (RFC 9176 §5).
    pub base: Option<String>,
    /// Lifetime, from 60 s; refreshed after three quarters of it.
    pub lifetime: Duration,
}

/// Keeps a registration: made anew when links change or the directory has forgotten it, refreshed in time, and removed at
/// the end. It is a service: [`run`](Self::run) blocks until it shall stop.
pub struct Registration {
    plan: RegistrationPlan,
    remote: Arc<dyn Remote>,
    /// The path of the newest registration, unless the directory has forgotten it.
    location: Option<String>,
    registered_links: String,
    /// Comes when it shall end.
    stop: ServiceStop,
}

impl Registration {
    /// Not registered yet.
    pub fn new(plan: RegistrationPlan, remote: Arc<dyn Remote>) -> Registration {
        let (location, registered_links, stop) = (None, String::new(), ServiceStop::default());
        Registration { plan, remote, location, registered_links, stop }
    }

    /// Keeps the resources of `things` registered until `stop` comes; a silent directory holds its end up for a second. `tell`
    /// hears of each change of the state: registered, or why not.
    pub fn run(mut self, things: &Things, stop: &ServiceStop, tell: &dyn Fn(&Result<String, ResourceError>)) {
        self.stop = stop.clone();
        let mut pause = RETRY_MIN;
        let mut is_registered = false;
        // At the end of the thing nobody waits for a silent directory: the lifetime ends there, too.
        let end_patience = loop {
            match self.renew(link_format::encode(things.local().links().iter())) {
                Ok(()) => {
                    if !is_registered {
                        tell(&Ok(self.location.clone().unwrap_or_default()));
                    }
                    (is_registered, pause) = (true, RETRY_MIN);
                    let due = self.plan.lifetime.mul_f64(REFRESH_PART);
                    if self.wait_for_change(things, stop, due) {
                        break END_PATIENCE;
                    }
                }
                Err(ResourceError::NoAnswer(_)) if stop.came() => break Duration::ZERO,
                Err(error) => {
                    is_registered = false;
                    tell(&Err(error));
                    if stop.wait(pause) {
                        break END_PATIENCE;
                    }
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        };
        if let Some(location) = self.location.take() {
            let _ = self.ask(RequestBuf::delete(&location), end_patience);
        }
    }

    /// Waits until it is time to refresh or the links are others; true when it shall stop.
    fn wait_for_change(&self, things: &Things, stop: &ServiceStop, due: Duration) -> bool {
        let mut left = due;
        while !left.is_zero() {
            let step = left.min(LOOK_PERIOD);
            if stop.wait(step) {
                return true;
            }
            left -= step;
            if link_format::encode(things.local().links().iter()) != self.registered_links {
                return false;
            }
        }
        false
    }

    /// Refreshes the registration, or makes it anew: for other links, and where the directory refuses to refresh it. Other
    /// links come after a refresh: where this host has another address, a directory may refuse them before it.
    pub(super) fn renew(&mut self, links: String) -> Result<(), ResourceError> {
        if self.location.is_some() {
            match self.refresh() {
                Ok(()) if links == self.registered_links => return Ok(()),
                Ok(()) => {}
                // The path may become that of another registration.
                Err(ResourceError::Refused(Code::NOT_FOUND, _)) => self.location = None,
                Err(ResourceError::Refused(..)) => {}
                Err(error) => return Err(error),
            }
        }
        self.register(links)
    }

    fn register(&mut self, links: String) -> Result<(), ResourceError> {
        let mut target = format!("/rd?ep={}&lt={}", escaped(&self.plan.endpoint), self.plan.lifetime.as_secs());
        if !self.plan.sector.is_empty() {
            target.push_str(&format!("&d={}", escaped(&self.plan.sector)));
        }
        if let Some(base) = &self.plan.base {
            target.push_str(&format!("&base={}", escaped(base)));
        }
        let request = RequestBuf::post(&target, links.clone()).with_content_format(content_format::LINK_FORMAT);
        let response = self.ask(request, PATIENCE)?;
        if response.code != Code::CREATED && response.code != Code::CHANGED {
            return Err(self.refused(&response));
        }
        let Some(location) = response.location() else {
            return Err(ResourceError::BadAnswer(format!("{} told no location", self.plan.directory)));
        };
        (self.location, self.registered_links) = (Some(location), links);
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), ResourceError> {
        let location = self.location.clone().unwrap_or_default();
        let response = self.ask(RequestBuf::post(&location, Vec::new()), PATIENCE)?;
        if response.code == Code::CHANGED { Ok(()) } else { Err(self.refused(&response)) }
    }

    /// Asks the directory; once this registration shall end, an answer has [`END_PATIENCE`] left.
    fn ask(&self, request: RequestBuf, patience: Duration) -> Result<Response, ResourceError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let completion = move |outcome| {
            // The receiver is gone when the answer came too late.
            let _ = sender.send(outcome);
        };
        self.remote.request(&self.plan.directory, request, Box::new(completion));
        let mut left = patience;
        while !left.is_zero() {
            let step = left.min(STOP_LOOK_PERIOD);
            match answer.recv_timeout(step) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => left -= step,
            }
            if self.stop.came() {
                left = left.min(END_PATIENCE);
            }
        }
        Err(ResourceError::NoAnswer(format!("the directory {} gave no answer", self.plan.directory)))
    }

    fn refused(&self, response: &Response) -> ResourceError {
        let text = String::from_utf8_lossy(&response.payload);
        let reason = format!("the directory {} answered {:?} {text}", self.plan.directory, response.code);
        ResourceError::Refused(response.code, reason.trim_end().to_owned())
    }
}

/// A value in a query.
fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte.is_ascii_alphanumeric() || b"-._~:[]/".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.bytes().map(escape).collect()
}

/// The part of the lifetime after which a registration is refreshed.
const REFRESH_PART: f64 = 0.75;
/// After a failure the directory is asked again, later each time.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Interval at which links are compared.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// MAX_TRANSMIT_WAIT.
const PATIENCE: Duration = Duration::from_secs(93);
/// For the removal, and for the answer that is under way when a registration shall end: what that makes is removed, too.
const END_PATIENCE: Duration = Duration::from_millis(900);
/// Interval at which a request looks whether the registration shall end.
const STOP_LOOK_PERIOD: Duration = Duration::from_millis(100);
